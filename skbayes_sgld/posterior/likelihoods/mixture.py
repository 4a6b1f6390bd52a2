"""Quantiles of mixtures, one per row: the predictive distribution of an observation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

Array = NDArray[Any]

_MAX_STEPS = 200
_MAX_SECANTS = 30  # then the bracket is halved
_TOLERANCE = 1e-5  # in units of the mixture's sd
_EXTREME = 1e-3  # levels nearer to 0 or 1 than this are computed in double precision
_REACH = 6.5  # beyond it the distribution function is 0 or 1 in single precision


def solve_quantile(
    cdf: Callable[[Array, Array], Array], q: float, mean: Array, sd: Array, whole: bool = False
) -> Array:
    """Solve ``cdf(t) = q`` for each row, by the secant method kept inside a bracket.

    Parameters
    ----------
    cdf : callable
        Function from points ``t (m,)`` and the positions of their rows ``(m,)`` to the
        probabilities ``(m,)`` of at most t.
    q : float
        Level of the quantile, in (0, 1).
    mean, sd : ndarray of shape (n,)
        Mean and standard deviation of each row's distribution.
    whole : bool, default=False
        Whether the distribution is one of whole numbers; the quantile is then the smallest t with
        ``cdf(t) >= q``.

    Returns
    -------
    quantile : ndarray of shape (n,)
        Accurate to 1e-5 sds, and exact for whole numbers. Not finite where the moments are not.
    """
    # Cantelli's inequality: no quantile is further from the mean
    low, high = mean - sd * np.sqrt((1 - q) / q), mean + sd * np.sqrt(q / (1 - q))
    t = mean + sd * ndtri(q)
    slope = np.exp(-0.5 * ndtri(q) ** 2) / np.sqrt(2 * np.pi) / np.where(sd > 0, sd, 1.0)
    if whole:
        low, high = np.floor(low) - 1.0, np.ceil(high)
        t = np.clip(np.ceil(t), low + 1.0, high - 1.0)
    active, previous = np.flatnonzero(np.isfinite(t) & (high > low + whole)), None
    for number in range(_MAX_STEPS):
        if not len(active):
            break
        at = t[active]
        excess = cdf(at, active) - q
        high[active] = np.where(excess >= 0, at, high[active])
        low[active] = np.where(excess < 0 if whole else excess <= 0, at, low[active])
        if previous is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                secant = (excess - previous[1]) / (at - previous[0])
            usable = np.isfinite(secant) & (secant > 0)
            slope[active] = np.where(usable, secant, slope[active])
        below, above = low[active], high[active]
        moved, middle = at - excess / slope[active], 0.5 * (below + above)
        if number > _MAX_SECANTS:
            moved = middle
        if whole:
            moved = np.clip(np.ceil(moved), below + 1.0, np.maximum(above, below + 2.0) - 1.0)
            far = above - below > 1.0
        else:
            moved = np.where((moved > below) & (moved < above), moved, middle)
            far = np.abs(moved - at) > _TOLERANCE * sd[active]
        t[active] = moved
        active, previous = active[far], (at[far], excess[far])
    return np.where(np.isfinite(t), high, t) if whole else t


# ---- mixtures of normal distributions ----------------------------------------------------------


def _logit_polynomial(degree: int = 6) -> Array:
    """Coefficients c with ``Phi(z) = (1 + tanh(z sum_k c_k z^2k)) / 2``, fitted on |z| <= 6.5.

    Half the log odds of Phi is an odd, smooth function, and tanh costs a thirtieth of the error
    function. The weights make the fit's error that of Phi, which stays below 1e-6.
    """
    z = np.linspace(1e-3, _REACH, 4000)
    half_log_odds = 0.5 * (log_ndtr(z) - log_ndtr(-z))
    weight = ndtr(z) * ndtr(-z) + 1e-8
    powers = np.vander(z**2, degree + 1, increasing=True) * z[:, None]
    scale = _REACH ** (2 * np.arange(degree + 1))
    fit = np.linalg.lstsq(powers / scale * weight[:, None], half_log_odds * weight, rcond=None)[0]
    return fit / scale


_COEFFICIENTS = _logit_polynomial().astype(np.float32)


def _normal_cdf_mean(z: Array, share: Array) -> Array:
    """``Phi(z) @ share`` for each row of ``z (n, S)``; by tanh in single precision."""
    if z.dtype == np.float64:
        return ndtr(z) @ share
    np.clip(z, -_REACH, _REACH, out=z)
    square = z * z
    odds = square * _COEFFICIENTS[-1]
    for c in _COEFFICIENTS[-2:0:-1]:
        odds += c
        odds *= square
    odds += _COEFFICIENTS[0]
    odds *= z
    np.tanh(odds, out=odds)
    return 0.5 + 0.5 * (odds @ share.astype(np.float32)).astype(float)


def normal_mixture_quantile(deviation: Array, scale: Array, share: Array, q: float) -> Array:
    """Quantile of each row's mixture of normal distributions.

    Parameters
    ----------
    deviation : ndarray of shape (n, S)
        Means of the components, minus an arbitrary number for each row, **over their scales**.
    scale : ndarray of shape (S,)
        Standard deviations of the components, in any unit.
    share : ndarray of shape (S,)
        Weights of the components, which sum to 1.
    q : float
        Level of the quantile, in (0, 1).

    Returns
    -------
    quantile : ndarray of shape (n,)
        Accurate to 1e-5 of the mixture's sd.
    """
    if not _EXTREME <= q <= 1.0 - _EXTREME:
        deviation = deviation.astype(np.float64, copy=False)
    unit = float(np.sqrt(share @ np.square(scale)))
    scale = scale / unit  # before anything is cast: single precision ends at 1e38
    inverse = (1.0 / scale).astype(deviation.dtype)
    first, second = share * scale, share * np.square(scale)
    center = (deviation @ first.astype(deviation.dtype)).astype(float)
    square = (np.square(deviation) @ second.astype(deviation.dtype)).astype(float)
    width = np.sqrt(np.maximum(square - np.square(center), 0.0) + second.sum())

    def cdf(t: Array, rows: Array) -> Array:
        z = t[:, None].astype(deviation.dtype) * inverse
        z -= deviation if len(rows) == len(deviation) else deviation[rows]
        return _normal_cdf_mean(z, share)

    return unit * solve_quantile(cdf, q, center, width)
