"""Counts whose variance exceeds their mean: Poisson counts whose rates vary from row to row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, fdtrc

from skbayes_sgld.likelihoods.base import Array
from skbayes_sgld.likelihoods.elementary import log1p
from skbayes_sgld.likelihoods.kernel import as_matrices
from skbayes_sgld.likelihoods.own import OwnParameter, clip_log, first_of_equal
from skbayes_sgld.likelihoods.poisson import Poisson, PoissonKernel
from skbayes_sgld.likelihoods.stirling import LOG_2_PI, remainder


class NegativeBinomialKernel(PoissonKernel):
    """Counts, in terms of ``r = 1 / dispersion``.

    The log density is its maximum, at ``mu = y``, plus
    ``y (eta - log y) - (y + r) log((mu + r) / (y + r))``. Of the gamma functions only the
    remainders of Stirling's formula are computed, since the other terms cancel; as the dispersion
    falls to 0 every term then approaches that of a Poisson count.
    """

    def __init__(self, likelihood: Any, y: Array, n_levels: int = 0) -> None:
        super().__init__(likelihood, y)
        self.n_levels = n_levels

    @classmethod
    def bind(cls, likelihood: Any, y: Array) -> Self:
        """Kernel of these counts; if few different counts occur, their terms are looked up."""
        largest = y.max(initial=0.0)
        few = largest < min(1000, y.shape[-1]) and np.array_equal(y, np.floor(y))
        return cls(likelihood, y, int(largest) + 1 if few else 0)

    def __getitem__(self, at: Any) -> Self:
        """Kernel of some of the rows."""
        return type(self)(self.likelihood, self.y[at], self.n_levels)

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Log density, and its derivatives in eta and in the log dispersion."""
        # r is ``(C, 1)`` if it is the same in all rows
        y, r, values = self.y, np.exp(-clip_log(first_of_equal(u[:, 1]))), []
        # mu from the same rounded ratio to y as in the log density
        mu = np.exp(u[:, 0] - self.log_y) * self.unit
        away = mu - y
        # log((mu + r) / (y + r))
        ratio = np.copysign(log1p(np.abs(away) / (np.minimum(mu, y) + r)), away)
        if 0 in orders:
            value: Array = y * (u[:, 0] - self.log_y) - (y + r) * ratio
            values.append(value + self._count_values(_largest, r))
        if 1 in orders:
            mu = np.minimum(mu, 1e30)  # scores do not change beyond
            share = (mu - y) / (mu + r)
            in_t = r * (ratio - share) + self._count_values(_slope, r)
            values.append(np.stack([-r * share, in_t], axis=1))
        if 2 in orders:
            rest = r / (mu + r)
            bend, cross = rest * (y + r) * (mu / (mu + r)), -rest * mu * share
            own = cross + r * (ratio - rest * (mu - y) / (y + r)) + self._count_values(_bend, r)
            values.append(as_matrices([[bend, cross], [cross, own]]))
        return values

    def _count_values(self, function: Callable[[Array, Array], Array], r: Array) -> Array:
        """Values of ``function(y, r)``, one for each row."""
        y, exact = self.y, r.astype(float)
        if r.shape[-1] > 1 or not self.n_levels:
            return function(y.astype(float), exact).astype(y.dtype)
        table = function(np.arange(float(self.n_levels)), exact).astype(y.dtype)
        at = y.astype(np.intp)
        if y.ndim == 1:  # all positions have the same rows
            return table.take(at, axis=1)
        return np.take_along_axis(table, at, axis=1)


def _largest(y: Array, r: Array) -> Array:
    """Largest log density of a count y, at the mean y."""
    rest = remainder(y + r) - remainder(r) - remainder(np.where(y > 0, y, 1.0))
    half = 0.5 * (LOG_2_PI + np.log(np.where(y > 0, y, 1.0)) + np.log1p(y / r))
    return np.where(y > 0, rest - half, 0.0)


def _slope(y: Array, r: Array) -> Array:
    """Derivative of the log density in the log dispersion, at the mean y."""
    return r * (remainder(y + r, 1) - remainder(r, 1)) - 0.5 * y / (y + r)


def _bend(y: Array, r: Array) -> Array:
    """Part that trigamma functions have in minus the second derivative in the log dispersion."""
    rest = remainder(r, 2) - remainder(y + r, 2)
    return _slope(y, r) + 0.5 * (1.0 - np.square(r / (y + r))) + np.square(r) * rest


def _cdf_by_sum(y: Array, none: Array, share: Array, r: Array) -> Array:
    """Probability of a count of at most y, by summation from ``none``, that of a count of 0."""
    term, total = none.copy(), np.where(y < 0, 0.0, none)
    for k in range(int(y.max(initial=0.0))):
        term *= (k + r) * share / (k + 1.0)
        total += np.where(k < y, term, 0.0)
    return np.minimum(total, 1.0)


@dataclass(eq=False, repr=False)
class NegativeBinomial(Poisson):
    r"""Counts of mean :math:`\mu = e^\eta` and variance :math:`\mu + \alpha \mu^2` (NB2)."""

    own = (
        OwnParameter(
            "dispersion", "dispersion_prior", "exponential", transform="positive", has_limit=True
        ),
    )
    kernel = NegativeBinomialKernel
    has_sites = False
    takes_rates = False

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Log of the mean count, and of the dispersion by moments about it.

        Moments about a mean of 1, that of a model without an intercept, say little: the
        dispersion is then the likeliest.
        """
        level = super().start(y, weight, has_level)
        if not has_level:

            def loss(t: float) -> float:
                u = np.repeat([[[0.0], [t]]], len(y), axis=2)
                return -float(np.average(self.log_density(u, y)[0], weights=weight))

            found = minimize_scalar(loss, bounds=(np.log(0.01), 7.0), method="bounded")
            return np.append(level, found.x)
        mean = float(np.exp(level[0]))
        excess = float(np.average(np.square(y - mean), weights=weight)) - mean
        return np.append(level, np.log(max(excess / mean**2, 0.01)))

    def variance(self, u: Array) -> Array:
        """``mu + dispersion mu^2``."""
        mu = self.mean(u)
        return mu + np.exp(u[:, 1]) * np.square(mu)

    def cdf(self, u: Array, y: Array) -> Array:
        """Probability of a count of at most y."""
        t = clip_log(u[:, 1])
        share, r = expit(u[:, 0] + t), np.exp(-t)
        whole = np.floor(np.broadcast_to(y, r.shape))
        log_none = -r * np.logaddexp(0.0, u[:, 0] + t)
        # sums take less time than the F distribution function, unless the first term underflows
        few = np.flatnonzero(np.all((whole < 100) & (log_none > -600.0), axis=1))
        many = np.setdiff1d(np.arange(len(r)), few)
        out = np.empty(r.shape)
        out[few] = _cdf_by_sum(whole[few], np.exp(log_none[few]), share[few], r[few])
        at = np.maximum(whole[many], 0.0)
        # the F distribution function takes a tenth of the time of scipy's incomplete beta function
        above = fdtrc(2.0 * (at + 1.0), 2.0 * r[many], np.exp(u[many, 0]) / (at + 1.0))
        out[many] = np.where(whole[many] < 0, 0.0, above)
        return out

    def ratios(self, u: Array) -> Callable[[float, int], Array]:
        """``(k + r) / (k + 1) mu / (mu + r)``."""
        t = clip_log(u[:, 1])
        r, share = np.exp(-t), expit(u[:, 0] + t)
        return lambda k, rows: (k + r[:rows]) * (share[:rows] / (k + 1.0))

    def sample(self, u: Array, rng: np.random.RandomState) -> Array:
        """Draws of a count: Poisson, with rates drawn from a gamma distribution."""
        r = np.exp(-clip_log(u[:, 1]))
        log_rate = u[:, :1] + np.log(rng.standard_gamma(r) / r)[:, None]
        return super().sample(log_rate, rng)
