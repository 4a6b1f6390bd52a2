"""Remainders of Stirling's formula for the logarithm of the gamma function."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, psi

from skbayes_sgld._typing import Array

LOG_2_PI = float(np.log(2.0 * np.pi))

_LARGE = 20.0  # argument from which the series is used
_STEPS = 10  # by which trigamma moves an argument up, to where the series has 14 digits


def remainder(x: Array, order: int = 0) -> Array:
    """Remainder of Stirling's formula for log gamma, for minus digamma, or for trigamma.

    ``log gamma = (x - 1/2) log x - x + log(2 pi) / 2 + R``; the others are ``-R'`` and ``R''``.

    Parameters
    ----------
    x : ndarray
        Positive.
    order : {0, 1, 2}, default=0
    """
    small = x < _LARGE
    if not small.any():  # takes a quarter of the time, for totals that are nearly binomial
        return _series(x, order)
    return np.where(
        small, _exact(np.minimum(x, _LARGE), order), _series(np.maximum(x, _LARGE), order)
    )


def _series(x: Array, order: int) -> Array:
    """Remainder at large arguments."""
    w = 1.0 / np.square(x)
    if order == 0:
        return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w / 1188)))) / x
    if order == 1:
        return w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w / 132))))
    return w / x * (1 / 6 - w * (1 / 30 - w * (1 / 42 - w * (1 / 30 - w * 5 / 66))))


def _exact(x: Array, order: int) -> Array:
    """Remainder at small arguments, by the gamma functions."""
    if order == 0:
        return gammaln(x) - (x - 0.5) * np.log(x) + x - 0.5 * LOG_2_PI
    if order == 1:
        return np.log(x) - 0.5 / x - psi(x)
    # SciPy's trigamma takes ten times as long
    end = x + _STEPS
    trigamma = _series(end, 2) + 1.0 / end + 0.5 / np.square(end)
    for step in range(_STEPS):
        trigamma += 1.0 / np.square(x + step)
    return trigamma - 1.0 / x - 0.5 / np.square(x)


def rise(k: Array, z: Array, order: int = 0) -> Array:
    """Increase from z to ``z + k`` of log gamma beyond ``k log z``, of digamma, or of trigamma.

    Parameters
    ----------
    k, z : ndarray
        k is not negative, z is positive.
    order : {0, 1, 2}, default=0
    """
    end = z + k
    if order == 0:
        return (end - 0.5) * np.log1p(k / z) - k + remainder(end) - remainder(z)
    if order == 1:
        return np.log1p(k / z) + 0.5 * k / (z * end) + remainder(z, 1) - remainder(end, 1)
    correction = 0.5 * k * (z + end) / np.square(z * end)
    return remainder(end, 2) - remainder(z, 2) - k / (z * end) - correction
