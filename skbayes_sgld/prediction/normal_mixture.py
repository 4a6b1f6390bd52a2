"""Quantiles of mixtures of normal distributions, one mixture for each row.

A row's mixture has one component for each draw, with the draw's predictor as mean and the sd of the
draw's noise as sd. If the components differ little, the quantiles of all levels are
computed from the moments of the predictors (:class:`MixtureMoments`, :func:`expand`), in a seventh
of the time. Otherwise the distribution function is computed (:func:`search`), usually once for each
level, beginning at the quantile of the expansion.

Conventions
-----------
``deviation (n, S)``, each draw's predictor minus their mean, and ``scale (S,)``, the sds of the
noise, are in units of the root mean square of the sds. ``share (S,)`` holds the probabilities of
the draws, ``q (m,)`` the levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, factorial
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.distribution_functions import normal_cdf
from skbayes_sgld.likelihoods.mixture import log_normal, solve_quantile
from skbayes_sgld.prediction.blocks import block_size, by_blocks
from skbayes_sgld.prediction.predictors import Spread

_ByPower = dict[tuple[int, int], Any]

_ORDER = 6  # largest order of the moments


class NormalMixtures:
    """The mixtures of many rows, whose components are normal.

    Parameters
    ----------
    spread : Spread
        Mean and deviations of the rows' predictors.
    scale, share : ndarray of shape (S,)
        The scale is in the units ``(n,)`` of the rows, an argument of the methods.
    """

    def __init__(self, spread: Spread, scale: Array, share: Array) -> None:
        self._spread = spread
        self._scale, self._share = scale, share
        self._moments_of = MixtureMoments(scale, share)
        self._noise = float(np.linalg.norm(share))

    def quantiles(self, X: Array, unit: Array, q: Array) -> Array:
        """Quantiles ``(n, m)`` of the rows' mixtures, accurate to 1e-5 of their sds."""
        center, moments = self._moments(X, unit)
        expansion = expand(moments, q, self._noise)
        t, _, error = expansion
        far = np.flatnonzero(~(error < 1e-5).all(axis=1))

        def quantiles_of(part: slice) -> Array:
            rows = far[part]
            _, deviation = self._spread.deviations(X[rows], unit[rows])
            starts = zip(q, expansion[:, rows].transpose(2, 0, 1), strict=True)
            mixtures = deviation, self._scale, self._share
            return np.column_stack([search(*mixtures, *start) for start in starts])

        if len(far):
            t[far] = by_blocks(quantiles_of, len(far), block_size(4 * len(self._share)))
        return center[:, None] + unit[:, None] * t

    def cdf(self, X: Array, unit: Array, t: Array) -> Array:
        """Probabilities ``(n, m)`` of at most each of ``t``; nan if the expansion is inaccurate."""
        center, moments = self._moments(X, unit)
        with np.errstate(all="ignore"):  # a series that diverges has a large error
            sd = np.sqrt(1.0 + moments[2, 0])
            c, last = _coefficients(moments, sd, self._noise)
            cdf = np.empty(t.shape)
            for number, at in enumerate(t.T):
                below, normal, hermite = _series((at - center) / unit / sd, c)
                sure = normal * _remainder(hermite, last) < 1e-6
                cdf[:, number] = np.where(sure, np.clip(below, 0.0, 1.0), np.nan)
        return cdf

    def _moments(self, X: Array, unit: Array) -> tuple[Array, _ByPower]:
        """Means ``(n,)`` and moments of the rows' predictors."""

        def moments_of(rows: slice) -> Array:
            center, deviation = self._spread.deviations(X[rows], unit[rows])
            return np.column_stack([center, self._moments_of(deviation)])

        center, *moments = by_blocks(moments_of, X.shape[0], block_size(2 * len(self._share))).T
        return center, self._moments_of.by_power(moments)


# ---- by moments --------------------------------------------------------------------------------


class MixtureMoments:
    """Function from deviations to their moments ``E[deviation^i excess^j]``, ``i + 2j <= 6``.

    The excess is the variance of a draw's noise relative to the mean variance, minus 1. It counts
    as two powers, because it is of the order of a squared deviation.
    """

    def __init__(self, scale: Array, share: Array) -> None:
        excess = np.square(scale) - 1.0
        most = _ORDER // 2 if np.ptp(excess) > 0 else 0
        self._weight = [share * excess**j for j in range(most + 1)]
        self._rounded = [w.astype(np.float32) for w in self._weight]
        self._powers = [(2, 0)]
        for i in range(1, _ORDER + 1):
            self._powers += [(i, j) for j in range(most + 1) if 3 <= i + 2 * j <= _ORDER]

    def __call__(self, deviation: Array) -> Array:
        """Moments of each row ``(n, n_moments)``; the deviations are overwritten."""
        weight = self._weight if deviation.dtype == np.float64 else self._rounded
        moments = np.empty((len(deviation), len(self._powers)))
        with np.errstate(over="ignore", invalid="ignore"):  # the expansion's error is then nan
            square = deviation * deviation
            power = {1: deviation, 2: square}
            for number, (i, j) in enumerate(self._powers):
                if i not in power:
                    last = power.pop(i - 2)
                    power[i] = np.multiply(last, square, out=None if last is square else last)
                moments[:, number] = power[i] @ weight[j]
        return moments

    def by_power(self, moments: Sequence[Array]) -> _ByPower:
        """Moments ``(n,)`` by their powers (i, j), including the powers (0, j)."""
        alone = {(0, j): float(w.sum()) for j, w in enumerate(self._weight)}
        return alone | dict(zip(self._powers, moments, strict=True))


def expand(moments: _ByPower, q: Array, noise: float) -> Array:
    """Quantiles of each row by the expansion of its distribution around a normal one.

    The distribution function of the standardised mixture is
    ``Phi(x) - phi(x) sum_k c_k He_{k-1}(x)``, the Gram-Charlier series of type A (Kendall's
    Advanced Theory of Statistics, volume 1, 6.17).

    Parameters
    ----------
    moments : dict
        From :meth:`MixtureMoments.by_power`.
    q : ndarray of shape (m,)
    noise : float
        Monte Carlo error of a mean over the draws, in their sds: the root of the sum of squared
        shares.

    Returns
    -------
    expansion : ndarray of shape (3, n, m)
        Quantiles, the densities there, and the error of the quantiles in sds. The error is above
        1e-5, or nan, wherever the series is unreliable.
    """
    sd = np.sqrt(1.0 + moments[2, 0])
    expansion = np.empty((3, len(sd), len(q)))
    with np.errstate(all="ignore"):  # a series that diverges has a large error
        c, last = _coefficients(moments, sd, noise)
        for number, start in enumerate(ndtri(q)):
            x, change = np.full(len(sd), start), np.zeros(len(sd))
            for _ in range(3):  # Newton's method
                x = x - change
                below, normal, hermite = _series(x, c)
                slope = normal * (1.0 + sum(c[k] * hermite[k] for k in c))
                change = (below - q[number]) / slope
            error = _remainder(hermite, last) + np.abs(change)
            expansion[:, :, number] = x * sd, slope / sd, error
    return expansion


def _series(x: Array, c: dict[int, Any]) -> tuple[Array, Array, Array]:
    """The series' distribution function, the normal density, and the Hermite polynomials at x."""
    hermite = np.polynomial.hermite_e.hermevander(x, max(c)).T
    normal = np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
    return ndtr(x) - normal * sum(c[k] * hermite[k - 1] for k in c), normal, hermite


def _remainder(hermite: Array, last: dict[int, Any]) -> Any:
    """Size of the last two terms of the series: at a zero of one polynomial the other is large."""
    return sum(np.abs(last[k]) * (np.abs(hermite[k - 1]) + 0.3 * np.abs(hermite[k])) for k in last)


def _coefficients(
    moments: _ByPower, sd: Array, noise: float
) -> tuple[dict[int, Any], dict[int, Any]]:
    """Coefficients of the series by their orders, and those that estimate its error.

    The series ``1 + sum_k c_k u^k`` is the exponential of one whose coefficients are cumulants
    over factorials. These are known up to order 6; their products continue the c_k.
    """
    variance = np.square(sd)

    def term(i: int, j: int) -> Any:
        """``E[a^i b^j] / (i! j!)`` of ``a = deviation / sd`` and ``b = (ratio - 1) / 2``.

        The ratio is the noise variance over the mixture's variance.
        """
        shift = 1.0 - variance  # excess + shift is 2 b variance
        powers = (comb(j, m) * shift ** (j - m) * moments.get((i, m), 0.0) for m in range(j + 1))
        return sum(powers) / (factorial(i) * factorial(j) * 2.0**j * sd**i * variance**j)

    orders = range(3, _ORDER + 1)
    c3, c4, c5, c6 = (sum(term(k - 2 * j, j) for j in range(k // 2 + 1)) for k in orders)
    own = c6 - 0.5 * c3**2  # minus the product of lower orders
    # c5 and c6 may be nearly 0 by chance; the unknown part of c7 has this Monte Carlo error
    c7 = noise * (term(4, 0) + term(0, 2)) ** 1.75
    c9, c10 = c3 * own + c4 * c5 + c3**3 / 6.0, c4 * own + 0.5 * (c5**2 + c3**2 * c4)
    c = {3: c3, 4: c4, 5: c5, 6: c6, 7: c3 * c4, 8: 0.5 * c4**2 + c3 * c5, 9: c9, 10: c10}
    return c, {5: c5, 6: own, 7: c7, 9: c9, 10: c10}


# ---- by the distribution function ---------------------------------------------------------------


def search(deviation: Array, scale: Array, share: Array, q: float, start: Array) -> Array:
    """Quantile of each row by its distribution function.

    Parameters
    ----------
    deviation : ndarray of shape (n, S)
    scale : ndarray of shape (S,)
    share : ndarray of shape (S,)
    q : float
    start : ndarray of shape (3, n)
        Quantile, density and error by :func:`expand`.

    Returns
    -------
    quantile : ndarray of shape (n,)
        Accurate to 1e-5 of the mixture's sd.
    """
    if q > 0.5:  # so that the smaller of the two probabilities is computed
        mirrored = start * [[-1.0], [1.0], [1.0]]
        return -search(-deviation, scale, share, 1.0 - q, mirrored)
    # single precision is too coarse far out, and cannot hold the inverse of a tiny or huge width
    if q < 1e-3 or not 1e-30 < scale.min() <= scale.max() < 1e30:
        deviation = deviation.astype(np.float64, copy=False)
    inverse, weight = (1.0 / scale).astype(deviation.dtype), share.astype(deviation.dtype)
    center = (deviation @ weight).astype(float)
    width = np.sqrt((np.square(deviation) @ weight).astype(float) + share @ np.square(scale))

    def cdf(t: Array, rows: Array) -> Array:
        z = deviation if len(rows) == len(deviation) else deviation[rows]
        z = t[:, None].astype(z.dtype) - z
        z *= inverse
        return (normal_cdf(z, out=z) @ weight).astype(float)

    t, density, error = start
    doubt = 4.0 * error  # relative error of the density, from that of the quantile
    # a series that diverges has any error; Cantelli's inequality bounds the quantile
    usable = (t > center - width / np.sqrt(q)) & (t < center + width) & (density > 0) & (doubt < 1)
    unit = np.divide(np.exp(log_normal(ndtri(q))), density, where=usable, out=width.copy())
    t, doubt = np.where(usable, t, center + width * ndtri(q)), np.where(usable, doubt, 1.0)
    return solve_quantile(cdf, q, t, unit, doubt=doubt).quantile
