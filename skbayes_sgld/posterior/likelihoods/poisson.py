"""Counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, pdtr, xlogy

from skbayes_sgld.posterior.likelihoods.base import Array, Likelihood
from skbayes_sgld.posterior.likelihoods.rows import RowKernel

_FARTHEST = 350.0  # predictor whose rate can be squared
_LARGEST = 1e18  # rate at which NumPy still draws


class _Rows(RowKernel):
    """Counts, whose rate alone is taken at every gradient."""

    def __init__(self, likelihood: Poisson, y: Array, weight: Array | None, dtype: type) -> None:
        self.pull = (y if weight is None else y * weight)[None]
        self.level = np.zeros_like(self.pull)
        self._likelihood, self._y, self._weight = likelihood, y, weight
        self._factor = dtype(-1.0) if weight is None else -weight.astype(dtype)

    def score(self, v: Array) -> None:
        """``-exp(v)``."""
        np.exp(v, out=v)
        v *= self._factor

    def value_and_score(self, v: Array) -> Array:
        """Log density of every row, which is not linear anywhere, and the score."""
        value = self._likelihood.log_density(v, self._y)
        self.score(v)
        return value.sum(axis=1) if self._weight is None else (value * self._weight).sum(axis=1)


@dataclass(eq=False, repr=False)
class Poisson(Likelihood):
    """Counts, ``P(y) = mu^y exp(-mu) / y!`` of rate ``mu = exp(eta)``."""

    whole = True
    increasing = True
    bounded_curvature = False
    sizes = 1e-20, 1e20  # beyond which rates are known to more digits than floats have
    improper = "some combination of the columns is zero where y is not, and else of one sign"

    def check_target(self, y: Array) -> Array:
        """Counts as floats, with fractions for counts over an exposure; none below 0."""
        if np.any(y < 0):
            raise ValueError(f"y has the value {y.min():g}; counts must be 0 or more.")
        return np.asarray(y, dtype=float)

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Log of the mean count."""
        mean = np.average(y, weights=weight) if has_level else 1.0
        return np.array([np.log(mean) if mean > 0 else 0.0])

    def level_weight(self, y: Array, weight: Array | None = None) -> float:
        """Weighted sum of the counts."""
        return float(y.sum() if weight is None else y @ weight)

    def gains(self, design: Array, y: Array) -> Array:
        """Rows of count 0, which gain as the rate falls, and the others with either sign."""
        some = design[y > 0]
        return np.concatenate([-design[y == 0], some, -some])

    def log_density(self, u: Array, y: Array) -> Array:
        """``y eta - exp(eta) - log y!``, expanded around its maximum at ``eta = log y``.

        For large counts the three terms nearly cancel; the expansion keeps the difference. Of a
        count of 0 only ``-exp(eta)`` is left, however small.
        """
        some = np.where(y > 0, y, 1.0)
        delta = u[:, 0] - np.log(some)
        value = y * delta - some * np.expm1(delta) + (xlogy(y, y) - some - gammaln(y + 1.0))
        return np.where(y > 0, value, -np.exp(u[:, 0]))

    def score(self, u: Array, y: Array) -> Array:
        """``y - mu``."""
        return y[..., None, :] - np.exp(u)

    def bind_rows(self, y: Array, weight: Array | None, dtype: type) -> RowKernel:
        """Rows whose counts are summed once."""
        return _Rows(self, y, weight, dtype)

    def curvature(self, u: Array, y: Array) -> Array:
        """``mu``."""
        return np.exp(u)[:, None]

    def check_predictors(self, eta: Array) -> None:
        """Raise where the square of a rate leaves the range of numbers."""
        largest = float(eta.max(initial=0.0))
        if not largest <= _FARTHEST:
            raise ValueError(
                f"X has a row whose rate is exp({largest:.3g}) under a draw, out of the range of "
                "floating point numbers; check the units of its columns, and the exposure."
            )

    def mean(self, u: Array) -> Array:
        """``mu``."""
        return np.exp(u[:, 0])

    def variance(self, u: Array) -> Array:
        """``mu``."""
        return np.exp(u[:, 0])

    def cdf(self, u: Array, y: Array) -> Array:
        """Probability of a count of at most y."""
        return np.where(y < 0, 0.0, pdtr(np.maximum(y, 0.0), np.exp(u[:, 0])))

    def sample(self, u: Array, rng: np.random.RandomState) -> Array:
        """Draws of a count."""
        return rng.poisson(np.minimum(np.exp(u[:, 0]), _LARGEST))
