"""Quantiles of mixtures, one mixture a row: what the draws together say of an observation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

Array = NDArray[Any]

_MAX_STEPS = 200
_MAX_SECANTS = 30  # then the bracket is halved
_TOLERANCE = 1e-5  # of the mixture's sd
_EXTREME = 1e-3  # levels nearer to 0 or 1 than this are taken in double precision
_REACH = 6.5  # beyond it the distribution function is 0 or 1 in single precision


def solve_quantile(
    cdf: Callable[[Array, Array], Array], q: float, mean: Array, sd: Array, whole: bool = False
) -> Array:
    """Solve ``cdf(t) = q`` for each row, by the secant method kept inside a bracket.

    Parameters
    ----------
    cdf : callable
        Takes points ``t (m,)`` and the numbers of their rows ``(m,)`` to probabilities ``(m,)``.
    q : float
    mean, sd : ndarray of shape (n,)
        Of each row's distribution.
    whole : bool, default=False
        Whether the distribution is one of whole numbers; the quantile is then the least that
        the distribution function is at least q at.

    Returns
    -------
    quantile : ndarray of shape (n,)
        To 1e-5 of the sd; exact where whole. Not finite where the moments are not.
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
    """Coefficients c with ``Phi(z) = (1 + tanh(z sum_k c_k z^2k)) / 2``, fitted where |z| <= 6.5.

    The half log odds of Phi are odd and smooth, and tanh costs a thirtieth of the error
    function. The weights turn the fit's error into that of Phi, which stays below 1e-6.
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
    """``Phi(z) @ share`` for each row of ``z (n, S)``; single precision is fast."""
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
        The components' means, less any number of the row's own, **over their scales**.
    scale : ndarray of shape (S,)
        The components' standard deviations, in any unit.
    share : ndarray of shape (S,)
        Their weights, which sum to 1.
    q : float

    Returns
    -------
    quantile : ndarray of shape (n,)
        To 1e-5 of the mixture's sd.
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
