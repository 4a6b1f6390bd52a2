"""Normal observations, of inferred or known variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from skbayes_sgld._checks import check_number
from skbayes_sgld.likelihoods.base import Array, Likelihood
from skbayes_sgld.likelihoods.distribution_functions import normal_cdf
from skbayes_sgld.likelihoods.kernel import RowKernel, as_matrices
from skbayes_sgld.likelihoods.own import OwnParameter
from skbayes_sgld.likelihoods.row_values import RowValues

_LOG_2_PI = float(np.log(2 * np.pi))
_NOISE: tuple[OwnParameter, ...] = (
    OwnParameter(
        "noise_variance", "noise_prior", "inverse_gamma", is_noise=True, transform="positive"
    ),
)


class _Normal(Likelihood):
    """Base of the normal likelihoods, with known or inferred variance."""

    quadratic = True
    increasing = True
    spread_at: int | None = 1

    def check_target(self, y: Array) -> Array:
        """Observations as floats; any finite number is accepted."""
        return np.asarray(y, dtype=float)

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Mean of y, and if the noise is inferred the log of the variance about it."""
        level = float(np.average(y, weights=weight)) if has_level else 0.0
        if not self.infers_noise:
            return np.array([level])
        return np.array([level, np.log(np.average(np.square(y - level), weights=weight))])

    def typical_effect(self, y: Array, weight: Array | None, level: float | None = None) -> float:
        """2.5 standard deviations of y, or 2.5 root mean squared distances from ``level``."""
        about = y - (np.average(y, weights=weight) if level is None else level)
        largest = float(np.abs(about).max())
        if largest == 0.0:  # y is constant: take the known sd of its noise
            return float(np.sqrt(self.noise_variance(np.zeros(1))))
        square = np.average(np.square(about / largest), weights=weight)
        # Gelman, Jakulin, Pittau & Su 2008, for columns of sd 1/2
        return 2.5 * largest * float(np.sqrt(square))

    def mean(self, u: Array) -> Array:
        """``eta``."""
        return u[:, 0]

    def variance(self, u: Array) -> Array:
        """``sigma^2``."""
        gamma = u[:, 1] if self.infers_noise else None
        return np.broadcast_to(self.noise_variance(gamma), u[:, 0].shape)

    def cdf(self, u: Array, y: Array) -> Array:
        """``Phi((y - eta) / sigma)``."""
        with np.errstate(over="ignore"):  # the least noise of far rows beside the largest
            z = (y - u[:, 0]) / np.sqrt(self.variance(u))
        return normal_cdf(z)

    def quantile_start(self, u: Array, q: float) -> tuple[Array, Array]:
        """Quantile ``(C,)`` at the local parameters, and the standard deviation ``(C,)``."""
        sd = np.sqrt(self.variance(u))[:, 0]
        return u[:, 0, 0] + sd * ndtri(q), sd

    def sample(self, u: Array, rng: np.random.RandomState) -> Array:
        """Draws of y."""
        return u[:, 0] + rng.standard_normal(u[:, 0].shape) * np.sqrt(self.variance(u))


class NormalKernel(RowKernel):
    """Normal rows of mean eta and log variance gamma, with one exponential per row."""

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Log density, score, and curvature in (eta, gamma)."""
        gamma, values = u[:, 1], []
        residual, precision = self.y - u[:, 0], np.exp(-gamma)
        cross = residual * precision
        half = 0.5 * residual * cross
        if 0 in orders:
            values.append(-0.5 * (gamma + _LOG_2_PI) - half)
        if 1 in orders:
            score = np.empty_like(u)
            score[:, 0] = cross
            np.subtract(half, 0.5, out=score[:, 1])
            values.append(score)
        if 2 in orders:
            values.append(as_matrices([[precision, cross], [cross, half]]))
        return values


@dataclass(eq=False, repr=False)
class NormalNoise(_Normal):
    r"""Normal observations of inferred variance, :math:`y \sim N(\eta, \sigma^2)`.

    The coordinate of the variance is :math:`\gamma = \log \sigma^2`.

    Karagiannis, Handout 6, eq. (4.1).
    """

    own = _NOISE
    bounded_curvature = False
    kernel: ClassVar[type[RowKernel]] = NormalKernel

    def check_target(self, y: Array) -> Array:
        """Observations as floats; a ValueError if all are equal, as there is no noise to infer."""
        y = super().check_target(y)
        if np.ptp(y) == 0:
            raise ValueError(
                f"y is constant ({y[0]:g}): there is no noise to infer; give noise_variance a "
                "positive number, or check the target."
            )
        return y

    def with_unequal_noise(self) -> Likelihood:
        """Normal observations whose log variance differs from row to row."""
        return UnequalNormalNoise() if self.quadratic else self

    def noise_variance(self, gamma: Array | None) -> Array:
        """``exp(gamma)``."""
        assert gamma is not None
        return np.exp(gamma)


@dataclass(eq=False, repr=False)
class UnequalNormalNoise(NormalNoise):
    """Normal observations whose log variance gamma differs from row to row."""

    quadratic = False


@dataclass(eq=False, repr=False)
class FixedNormalNoise(_Normal):
    r"""Normal observations of known variance, :math:`y \sim N(\eta, \sigma^2)`.

    Parameters
    ----------
    sigma2 : float, default=1.0
        sigma^2, in squared units of y.
    """

    sigma2: float = 1.0

    def check(self) -> None:
        """Raise if the variance is not positive."""
        check_number(self.sigma2, "noise_variance", low=0)

    def bind(self, values: RowValues, dtype: type = np.float64) -> RowKernel:
        """Kernel of rows; the mean of k observations has weight k."""
        if values.n_averaged is not None:
            values = replace(values, n_averaged=None).weighted(values.n_averaged)
        return super().bind(values, dtype)

    def with_inferred_noise(self) -> Likelihood:
        """Normal observations of inferred variance."""
        return NormalNoise()

    def noise_variance(self, gamma: Array | None) -> float:
        """``sigma2``, the known variance."""
        return self.sigma2

    def log_density(self, u: Array, y: Array) -> Array:
        """``-(log(2 pi sigma2) + (y - eta)^2 / sigma2) / 2``."""
        constant = _LOG_2_PI + float(np.log(self.sigma2))
        return -0.5 * (constant + np.square(y - u[:, 0]) / self.sigma2)

    def score(self, u: Array, y: Array) -> Array:
        """``(y - eta) / sigma2``."""
        return (y[..., None, :] - u) / self.sigma2

    def curvature(self, u: Array, y: Array) -> Array:
        """``1 / sigma2``."""
        return np.full((u.shape[0], 1, 1, u.shape[2]), 1.0 / self.sigma2)
