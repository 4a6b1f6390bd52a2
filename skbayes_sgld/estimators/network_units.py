"""Standardised data, their units, and priors in these units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.preprocessing import StandardScaler

from skbayes_sgld.estimators.base import Array
from skbayes_sgld.posterior import NoisePrior
from skbayes_sgld.posterior.mlp import Units

_LARGEST = 1e100  # beyond it squares overflow: columns are divided by a power of two first
_SQUARED = 1e150  # sd of y whose square is still a number
_LEAST_NOISE = 1e-20  # over the variance of y; below it squared residuals overflow
_LOST = 1e-12  # deviation over the largest one, below which it keeps fewer than three digits


class UnitsNoisePrior(NoisePrior):
    """Noise prior in squared units of y, as a prior of the standardised target's noise."""

    def __init__(self, prior: NoisePrior, scale: float) -> None:
        self.prior, self.scale = prior, scale
        self.proper = prior.proper

    def log_density(self, gamma: Array) -> Array:
        """Log density of the standardised log variance."""
        return self.prior.log_density(gamma + 2.0 * np.log(self.scale))

    def grad(self, gamma: Array) -> Array:
        """Derivative of the log density."""
        return self.prior.grad(gamma + 2.0 * np.log(self.scale))


def standardised_noise(variance: float, units: Units) -> float:
    """Fixed noise variance of the standardised target.

    Raises
    ------
    ValueError
        When it is too small beside the variance of y.
    """
    standardised = variance / units.scale / units.scale
    if not _LEAST_NOISE <= standardised < np.inf:
        raise ValueError(
            f"noise_variance={variance!r} is {standardised:.3g} times the variance of y, and must "
            f"be at least {_LEAST_NOISE:g} times; give 'infer', or a value in squared units of y."
        )
    return standardised


def standardise(
    X: Array, y: Array, weight: Array | None, scales_target: bool, names: Sequence[str] | None
) -> tuple[Array, Array, Units]:
    """Standardised X and y, and their units.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
    scales_target : bool
        Whether y is standardised too.
    names : sequence of str or None
        Names of the columns, for errors.

    Raises
    ------
    ValueError
        Where one value is so far out that rounding makes the others equal, or the variance of y
        overflows.
    """
    for j in range(X.shape[1]):
        _check_outlier(X[:, j], f"X[:, {j}]" if names is None else f"X's column {names[j]!r}")
    X, center, width = _standardise(X, weight)
    if not scales_target:
        return X, y, Units(center, width)
    _check_outlier(y, "y")
    column, level, scale = _standardise(y[:, None], weight)
    units = Units(center, width, float(level[0]), float(scale[0]))
    if not 1.0 / _SQUARED <= units.scale <= _SQUARED:
        raise ValueError(
            f"y has the standard deviation {units.scale:.3g}, whose square, the unit of the noise "
            f"variance, is out of the range of numbers; divide y by {units.scale:.0e}."
        )
    return X, column[:, 0], units


def _standardise(X: Array, weight: Array | None) -> tuple[Array, Array, Array]:
    """Standardised columns, their means and standard deviations (1 where they are constant)."""
    X = X.astype(float)
    largest = np.abs(X).max(axis=0)
    extreme = (largest > _LARGEST) | ((largest < 1.0 / _LARGEST) & (largest > 0.0))
    unit = np.ldexp(1.0, np.where(extreme, np.frexp(largest)[1] - 1, 0))
    X /= unit
    with np.errstate(invalid="ignore"):  # the root of a variance that rounding made negative: 1
        scaler = StandardScaler(copy=False).fit(X, sample_weight=weight)
    return scaler.transform(X), scaler.mean_ * unit, scaler.scale_ * unit


def _check_outlier(values: Array, where: str) -> None:
    """Raise where one value is so far out that rounding makes the others equal."""
    values = values.astype(float)
    with np.errstate(over="ignore"):
        apart = np.abs(values - np.median(values))
    others = apart[apart > 0.0]
    if len(others) > 1 and np.median(others) < _LOST * others.max():
        raise ValueError(
            f"{where} has the value {values[apart.argmax()]:g}, beside which the differences of "
            f"the others, {np.median(others):.3g} from their median, are lost to rounding; remove "
            "the outlier, or clip it."
        )
