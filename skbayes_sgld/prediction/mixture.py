"""Quantiles of mixtures of normal laws, one mixture a row, all with the same scales."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

Array = NDArray[Any]

_MAX_STEPS = 60
_TOLERANCE = 1e-5  # of the mixture's sd
_EXTREME = 1e-3  # levels nearer to 0 or 1 than this are taken in double precision
_REACH = 6.5  # beyond it the distribution function is 0 or 1 in single precision


def _logit_polynomial(degree: int = 6) -> Array:
    """Return c with ``Phi(z) = (1 + tanh(z sum_k c_k z^2k)) / 2``, fitted where |z| <= 6.5.

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


def normal_cdf_mean(z: Array, share: Array) -> Array:
    """Return ``Phi(z) @ share`` for each row of ``z (n, S)``; single precision is fast."""
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


def mixture_quantile(deviation: Array, scale: Array, share: Array, q: float) -> Array:
    """Return the q-quantile of each row's mixture.

    Parameters
    ----------
    deviation : ndarray of shape (n, S)
        The components' means, less any number of the row's own, **over their scales**.
    scale : ndarray of shape (S,)
        The components' standard deviations.
    share : ndarray of shape (S,)
        Their weights, which sum to 1.
    q : float

    Returns
    -------
    quantile : ndarray of shape (n,)
        By the secant method kept inside a bracket, to 1e-5 of the mixture's sd.
    """
    if not _EXTREME <= q <= 1.0 - _EXTREME:
        deviation = deviation.astype(np.float64, copy=False)
    inverse = (1.0 / scale).astype(deviation.dtype)
    first, second = share * scale, share * np.square(scale)
    center = (deviation @ first.astype(deviation.dtype)).astype(float)
    square = (np.square(deviation) @ second.astype(deviation.dtype)).astype(float)
    width = np.sqrt(np.maximum(square - np.square(center), 0.0) + second.sum())
    # Cantelli's inequality: no quantile is further from the mean
    low, high = center - width * np.sqrt((1 - q) / q), center + width * np.sqrt(q / (1 - q))
    t = center + width * ndtri(q)
    slope = np.exp(-0.5 * ndtri(q) ** 2) / np.sqrt(2 * np.pi) / width
    active, previous = np.arange(len(t)), None
    for _ in range(_MAX_STEPS):
        at = t[active]
        z = at[:, None].astype(deviation.dtype) * inverse
        z -= deviation if len(active) == len(t) else deviation[active]
        excess = normal_cdf_mean(z, share) - q
        high[active] = np.where(excess >= 0, at, high[active])
        low[active] = np.where(excess <= 0, at, low[active])
        if previous is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                secant = (excess - previous[1]) / (at - previous[0])
            usable = np.isfinite(secant) & (secant > 0)
            slope[active] = np.where(usable, secant, slope[active])
        moved = at - excess / slope[active]
        outside = ~((moved > low[active]) & (moved < high[active]))
        moved = np.where(outside, 0.5 * (low[active] + high[active]), moved)
        t[active] = moved
        far = np.abs(moved - at) > _TOLERANCE * width[active]
        active, previous = active[far], (at[far], excess[far])
        if not len(active):
            break
    return t
