"""Counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln, pdtr, xlogy

from skbayes_sgld._warnings import warn
from skbayes_sgld.likelihoods.base import HIGHEST, Array, Likelihood
from skbayes_sgld.likelihoods.kernel import RowKernel

_LARGEST_RATE = 1e18  # of a count that is drawn


class PoissonKernel(RowKernel):
    """Counts; terms of the log density without the predictor are computed when first needed.

    Batches need only scores, and never compute them.
    """

    @cached_property
    def unit(self) -> Array:
        """The counts; 1 for a count of 0."""
        return np.where(self.y > 0, self.y, self.y.dtype.type(1.0))

    @cached_property
    def log_y(self) -> Array:
        """Logs of the counts; 0 for a count of 0."""
        return np.log(self.unit.astype(float)).astype(self.y.dtype)

    @cached_property
    def constant(self) -> Array:
        """Log densities at their maxima."""
        y = self.y
        constant = np.where(y > 0, xlogy(y, y) - y - gammaln(y + 1.0), 0.0)
        return constant.astype(y.dtype)

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """``y eta - exp(eta) - log y!``, ``y - mu`` and ``mu``.

        The log density is computed relative to its maximum, since for large counts its three terms
        nearly cancel. For a count of 0 it is ``-exp(eta)``, however small.
        """
        if 0 not in orders:
            rate = np.exp(u, out=u)
            return (self.y[..., None, :] - rate, rate[:, None])[: len(orders)]
        delta = u[:, 0] - self.log_y
        if u.dtype == np.float64:
            score = np.where(self.y > 0, -self.y * np.expm1(delta), -np.exp(u[:, 0]))
        else:  # in float32 expm1 takes ten times as long as exp, and np.where four times
            score = np.exp(delta)
            score *= self.unit
            np.subtract(self.y, score, out=score)
        delta *= self.y
        delta += score
        delta += self.constant
        curvature = (self.y - score)[:, None, None] if 2 in orders else score
        return (delta, score[:, None], curvature)[: len(orders)]


@dataclass(eq=False, repr=False)
class Poisson(Likelihood):
    r"""Counts of rate :math:`\mu = e^\eta`, :math:`P(y) = \mu^y e^{-\mu} / y!`."""

    kernel = PoissonKernel
    has_sites = True
    whole = True
    increasing = True
    log_link = "rate", "the units of its columns, and the exposure"
    exponential = "rate"
    takes_rates = True
    bounded_curvature = False
    sizes = 1e-20, 1e20  # larger counts determine rates beyond floating point precision
    improper = "some combination of the columns is zero where y is not, and else of one sign"

    def check_target(self, y: Array) -> Array:
        """Counts as floats, none below 0; fractions are allowed, for counts over an exposure."""
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
        """Minus the rows of count 0, which gain as the rate falls; the others with both signs."""
        some = design[y > 0]
        return np.concatenate([-design[y == 0], some, -some])

    def mean(self, u: Array) -> Array:
        """``mu``."""
        return np.exp(u[:, 0])

    def variance(self, u: Array) -> Array:
        """``mu``."""
        return np.exp(u[:, 0])

    def cdf(self, u: Array, y: Array) -> Array:
        """Probability of a count of at most y."""
        return np.where(y < 0, 0.0, pdtr(np.maximum(y, 0.0), np.exp(u[:, 0])))

    def ratios(self, u: Array) -> Callable[[float, int], Array]:
        """``mu / (k + 1)``."""
        mu = self.mean(u)
        return lambda k, rows: mu[:rows] / (k + 1.0)

    def sample(self, u: Array, rng: np.random.RandomState) -> Array:
        """Draws of a count."""
        rate = np.exp(u[:, 0])
        largest = rate.max(initial=0.0)
        if _LARGEST_RATE < largest < np.exp(HIGHEST):  # rows beyond have a warning of their own
            warn(
                f"the rate of a row is {largest:.3g} under a draw; counts whose rate is above "
                f"{_LARGEST_RATE:g}, the largest that NumPy draws, are drawn as if it were that. "
                "Check the units of the columns, and the exposure.",
                UserWarning,
            )
        return rng.poisson(np.minimum(rate, _LARGEST_RATE))
