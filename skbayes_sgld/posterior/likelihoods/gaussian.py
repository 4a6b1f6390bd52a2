"""Normal observations, of inferred or known variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._components import check_number
from skbayes_sgld.posterior.likelihoods.base import Array, Likelihood


@dataclass(eq=False, repr=False)
class Gaussian(Likelihood):
    """Normal observations, ``y ~ N(eta, sigma^2)`` with ``gamma = log sigma^2`` inferred.

    Karagiannis, Handout 6, eq. (4.1).
    """

    infers_noise = True
    quadratic = True

    def noise_variance(self, gamma: Array | None) -> Any:
        """Return ``exp(gamma)``."""
        assert gamma is not None
        return np.exp(gamma)

    def log_density(self, u: Array, y: Array) -> Array:
        """Return ``-(log 2 pi + gamma + (y - eta)^2 exp(-gamma)) / 2``."""
        gamma = u[:, 1]
        return -0.5 * (np.log(2 * np.pi) + gamma + np.square(y - u[:, 0]) * np.exp(-gamma))

    def score(self, u: Array, y: Array) -> Array:
        """Return ``((y - eta) exp(-gamma), ((y - eta)^2 exp(-gamma) - 1) / 2)``."""
        residual = y - u[:, 0]
        scaled = residual * np.exp(-u[:, 1])
        return np.stack([scaled, 0.5 * (residual * scaled - 1.0)], axis=1)

    def curvature(self, u: Array, y: Array) -> Array:
        """Return the 2 x 2 curvature of (eta, gamma)."""
        residual = y - u[:, 0]
        precision = np.exp(-u[:, 1])
        cross = residual * precision
        rows = [[precision, cross], [cross, 0.5 * residual * cross]]
        return np.stack([np.stack(row, axis=1) for row in rows], axis=1)


@dataclass(eq=False, repr=False)
class FixedGaussian(Likelihood):
    """Normal observations of known variance, ``y ~ N(eta, variance)``.

    Parameters
    ----------
    variance : float, default=1.0
        sigma^2, in squared units of y.
    """

    variance: float = 1.0
    quadratic = True

    def check(self) -> None:
        """Raise where the variance is not positive."""
        check_number(self.variance, "noise_variance", low=0)

    def noise_variance(self, gamma: Array | None) -> Any:
        """Return the known variance."""
        return self.variance

    def log_density(self, u: Array, y: Array) -> Array:
        """Return the normal log density."""
        return -0.5 * (np.log(2 * np.pi * self.variance) + np.square(y - u[:, 0]) / self.variance)

    def score(self, u: Array, y: Array) -> Array:
        """Return ``(y - eta) / variance``."""
        return (y[..., None, :] - u) / self.variance

    def curvature(self, u: Array, y: Array) -> Array:
        """Return ``1 / variance``."""
        return np.full((u.shape[0], 1, 1, u.shape[2]), 1.0 / self.variance)
