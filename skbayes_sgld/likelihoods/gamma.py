"""Positive observations whose standard deviation is in proportion to their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammainc, gammaincinv, gammaln, ndtri

from skbayes_sgld.likelihoods.base import Array, Likelihood
from skbayes_sgld.likelihoods.elementary import expm1
from skbayes_sgld.likelihoods.kernel import RowKernel, as_matrices
from skbayes_sgld.likelihoods.mixture import Mixture, log_normal
from skbayes_sgld.likelihoods.own import OwnParameter, clip_log, first_if_equal, first_of_equal
from skbayes_sgld.likelihoods.stirling import LOG_2_PI, remainder


class GammaKernel(RowKernel):
    """Gamma rows of log mean eta and log dispersion t, the shape being ``k = exp(-t)``.

    The log density is its maximum in eta, minus k times half the unit deviance,
    ``y / mu - 1 - log(y / mu)``.
    """

    @cached_property
    def log_y(self) -> Array:
        """Logs of the observations."""
        return np.log(np.maximum(self.y, np.finfo(self.y.dtype).tiny))

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Log density, and its derivatives in eta and in the log dispersion."""
        # k is ``(C, 1)`` if it is the same in all rows
        log_ratio, t, values = self.log_y - u[:, 0], clip_log(first_of_equal(u[:, 1])), []
        k = np.exp(-t)
        away = expm1(log_ratio)
        half = away - log_ratio  # half the unit deviance
        if 0 in orders:
            level = -0.5 * (t + LOG_2_PI) - _shape_terms(k, 0)
            values.append((level - self.log_y - k * half).astype(u.dtype))
        if 1 in orders:
            in_t = k * half - 0.5 - k * _shape_terms(k, 1)
            values.append(np.stack([k * away, in_t], axis=1))
        if 2 in orders:
            cross, own = k * away, in_t + 0.5 + k * k * _shape_terms(k, 2)
            values.append(as_matrices([[cross + k, cross], [cross, own]]))
        return values


def _shape_terms(k: Array, order: int) -> Array:
    """Remainders of Stirling's formula for the shapes k."""
    return remainder(k, order).astype(k.dtype)


@dataclass(eq=False, repr=False)
class Gamma(Likelihood):
    r"""Gamma observations of mean :math:`\mu = e^\eta` and variance :math:`\alpha \mu^2`."""

    own = (OwnParameter("dispersion", "dispersion_prior", "inverse_gamma", transform="positive"),)
    kernel = GammaKernel
    increasing = True
    spread_at = 1
    log_link = "mean", "the units of its columns"
    exponential = "mean"
    bounded_curvature = False

    def check_target(self, y: Array) -> Array:
        """Observations as floats, all above 0."""
        if np.any(y <= 0):
            raise ValueError(f"y has the value {y.min():g}; observations must be above 0.")
        return np.asarray(y, dtype=float)

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Log of the mean, and of the dispersion by the mean log (Minka 2002, eq. 13)."""
        level = float(np.log(np.average(y, weights=weight))) if has_level else 0.0
        mean = float(np.average(y * np.exp(-level), weights=weight))
        apart = mean - 1.0 - float(np.average(np.log(y) - level, weights=weight))
        apart = max(apart, 1e-6)
        shape = (3.0 - apart + np.sqrt(np.square(apart - 3.0) + 24.0 * apart)) / (12.0 * apart)
        return np.array([level, -np.log(shape)])

    def level_weight(self, y: Array, weight: Array | None = None) -> float:
        """Sum of the weights: at shape 1 a row's log density falls by 1 for each unit of eta."""
        return float(len(y) if weight is None else weight.sum())

    def mean(self, u: Array) -> Array:
        """``mu``."""
        return np.exp(u[:, 0])

    def variance(self, u: Array) -> Array:
        """``dispersion mu^2``."""
        return np.exp(u[:, 1]) * np.square(self.mean(u))

    def cdf(self, u: Array, y: Array) -> Array:
        """Probability of an observation of at most y."""
        k = np.exp(-clip_log(u[:, 1]))
        mean = np.maximum(self.mean(u), np.finfo(float).tiny)  # may underflow for a far row
        with np.errstate(over="ignore"):  # an overflow gives 1
            return gammainc(k, k * np.maximum(y, 0.0) / mean)

    def quantile_start(self, u: Array, q: float) -> tuple[Array, Array]:
        """Log of the quantile ``(C,)``, and its unit."""
        k = np.exp(-clip_log(u[:, 1]))
        one = first_if_equal(k, axis=0)
        with np.errstate(divide="ignore"):
            inner = np.log(gammaincinv(one, q))
        tail = (np.log(q) + gammaln(one + 1.0)) / one  # if it underflows, its leading term
        inner = np.where(np.isfinite(inner), inner, tail)
        with np.errstate(over="ignore"):  # far in the tail of a large shape the density is 0
            unit = np.exp(log_normal(ndtri(q)) + gammaln(one) + np.exp(inner) - one * inner)
        return (u[:, 0] + inner - np.log(one))[:, 0], np.broadcast_to(unit[:, 0], len(u))

    def averaged_quantile(self, mixture: Mixture, q: float) -> Array:
        """Quantile ``(n,)`` of each row's observation under a mixture of local parameters.

        The equation is solved for the logarithm, since with a dispersion above 1 low quantiles are
        tiny in units of the standard deviation.
        """
        start, unit = self.quantile_start(mixture.center(), q)

        def cdf(u: Array, s: Array) -> Array:
            with np.errstate(over="ignore"):  # an overflow gives 1
                return self.cdf(u, np.exp(s))

        return np.exp(mixture.quantile(cdf, q, start, unit))

    def sample(self, u: Array, rng: np.random.RandomState) -> Array:
        """Draws of an observation."""
        k = np.exp(-clip_log(u[:, 1]))
        return np.maximum(self.mean(u) * rng.standard_gamma(k) / k, np.finfo(float).tiny)
