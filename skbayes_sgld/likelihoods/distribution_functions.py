"""Distribution functions that are computed for every draw of every row, faster than by SciPy.

In single precision numpy computes products, exponentials and logarithms of many numbers at once, so
both functions are exponentials and polynomials.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, stdtr

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.elementary import log1p
from skbayes_sgld.likelihoods.own import first_if_equal

NORMAL_REACH = 5.5  # beyond it the normal one is 0 or 1 in single precision
_LARGEST_SCORE = 8.0  # beyond it Student's is computed by SciPy
_BEND = 10.0  # of the variable in which Student's is a polynomial
_TERMS, _TERMS_OF_SHAPE = 12, 8


def normal_cdf(z: Array, out: Array | None = None) -> Array:
    """``Phi(z)``; in single precision with a relative error of 1e-5 from -5.5 to 5.5.

    That takes a sixth of the time of ``ndtr``; with it, predictive intervals of 100,000 rows of 20
    columns (``python -m benchmarks``) take 0.7 of the time.
    """
    if z.dtype != np.float32:
        return ndtr(z, out=out)
    z = np.clip(z, -NORMAL_REACH, NORMAL_REACH, out=out)
    first, *others, last = _logit_polynomial()
    square = z * z
    odds = square * last
    for c in others[::-1]:
        odds += c
        odds *= square
    odds += first
    odds *= z
    np.exp(odds, out=odds)
    odds += np.float32(1.0)
    return np.divide(np.float32(1.0), odds, out=odds if out is None else out)


@cache
def _logit_polynomial() -> Array:
    """Coefficients c with ``Phi(z) = 1 / (1 + exp(z sum_k c_k z^2k))``, fitted on |z| <= 5.5.

    The log odds of Phi are an odd, smooth function. Weights even out their error, which is the
    relative error of a tail probability: 1e-5. It moves a quantile by less than 1e-5 sds.
    """
    z = NORMAL_REACH * np.sin(np.linspace(1e-3, 0.5 * np.pi, 1000))
    minus_log_odds = log_ndtr(-z) - log_ndtr(z)
    powers = np.vander((z / NORMAL_REACH) ** 2, 9, increasing=True) * z[:, None]
    weight = 1.0 / np.maximum(z, 0.3)
    for _ in range(30):
        fit = np.linalg.lstsq(powers * weight[:, None], minus_log_odds * weight, rcond=None)[0]
        error = np.abs(powers @ fit - minus_log_odds)
        weight *= (0.05 + error / error.max()) ** 0.15
    return (fit / NORMAL_REACH ** (2.0 * np.arange(9))).astype(np.float32)


def student_cdf(nu: Array, z: Array) -> Array:
    """Student's distribution function of ``nu`` degrees of freedom, which rows may have in common.

    Its normal score is ``u (1 + p(t, 1 / nu) / nu)``, with ``u = sqrt(nu L)``,
    ``L = log(1 + z^2 / nu)``, ``t = L / (10 + L)`` and a polynomial p: Wallace (1959) has the
    constant ``-1 / 4``. The error is 1e-7, and 7e-7 relative to a tail probability; in single
    precision that of :func:`normal_cdf`. Below one degree of freedom, and beyond normal scores of
    8, SciPy's function takes its place, which takes ten times as long.
    """
    nu = first_if_equal(nu, axis=0)
    inverse = 1.0 / nu.astype(float)
    powers = np.vander(np.minimum(inverse, 1.0).ravel(), _TERMS_OF_SHAPE, increasing=True)
    terms = (_score_polynomial() @ powers.T).reshape(_TERMS, *nu.shape) * inverse
    terms, inverse = terms.astype(z.dtype), inverse.astype(z.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # then SciPy's takes its place
        fall = z * z
        fall *= inverse
    fall = log1p(fall)
    t = fall + z.dtype.type(_BEND)
    np.divide(fall, t, out=t)
    fall /= inverse
    square = fall.max(initial=0.0)
    far = None
    if not square <= _LARGEST_SCORE**2 or nu.min(initial=1.0) < 1.0:
        far = ~(fall <= _LARGEST_SCORE**2) | (nu < 1.0)
    u = np.sqrt(fall, out=fall)
    factor = terms[-1] * t
    for term in terms[-2:0:-1]:
        factor += term
        factor *= t
    factor += terms[0] + z.dtype.type(1.0)
    factor *= np.copysign(u, z, out=u)
    value = normal_cdf(factor, out=factor)
    if far is not None:
        value[far] = stdtr(np.broadcast_to(nu, z.shape)[far], z[far])
    return value


@cache
def _score_polynomial() -> Array:
    """Coefficients of p by the powers of t and of the inverse degrees of freedom."""
    inverse = 0.5 - 0.4998 * np.cos(np.linspace(0.0, np.pi, 30))
    score = 0.5 - 0.49 * np.cos(np.linspace(0.0, np.pi, 50))
    inverse, u = np.meshgrid(inverse, 1.04 * _LARGEST_SCORE * score)
    fall = np.square(u) * inverse
    exact = -ndtri(stdtr(1.0 / inverse, -np.sqrt(np.expm1(fall) / inverse)))
    in_t = np.vander((fall / (_BEND + fall)).ravel(), _TERMS, increasing=True)
    in_inverse = np.vander(inverse.ravel(), _TERMS_OF_SHAPE, increasing=True)
    products = (in_t[:, :, None] * in_inverse[:, None]).reshape(u.size, -1)
    weight = (u * inverse * np.maximum(u, 1.0)).ravel()  # of p in a tail probability
    value = ((exact / u - 1.0) / inverse).ravel()
    fit = np.linalg.lstsq(products * weight[:, None], value * weight, rcond=1e-14)[0]
    return fit.reshape(_TERMS, _TERMS_OF_SHAPE)
