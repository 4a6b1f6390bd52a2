"""The Laplace prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erf

from skbayes_sgld.posterior.priors.base import Array, CoefficientPrior


@dataclass(eq=False, repr=False)
class Laplace(CoefficientPrior):
    """Laplace (double exponential) prior, density ``exp(-|beta_j - location_j| / b_j) / (2 b_j)``.

    Parameters
    ----------
    scale : float, array-like of shape (n_features,) or "auto", default="auto"
        b; the standard deviation is ``sqrt(2) b``. 1 is the setting of Welling & Teh (2011).
        ``"auto"`` is ``1 / sd(x_j)`` in logistic and Poisson models and ``2.5 sd(y) / sd(x_j)``
        in linear ones, as of :class:`Normal`.
    location : float or array-like of shape (n_features,), default=0.0
        Median.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.posterior import Laplace
    >>> SGLDLinearRegression(prior=Laplace(scale=0.5))
    SGLDLinearRegression(prior=Laplace(scale=0.5))
    """

    scale: Any = "auto"
    location: float | Array = 0.0

    nonsmooth = log_concave = True

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Coefficients ``(K, d)`` drawn from the prior."""
        return self.location + np.multiply(self.scale, rng.laplace(size=shape))

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """``-sum |beta - mu| / b``."""
        return -np.abs((coef - self.location) / self.scale).sum(axis=(1, 2))

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Subgradient ``sign(mu - beta) / b``: 0 at the kink."""
        return np.sign(self.location - coef) / self.scale, None

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Zeros: all curvature is at the kink, where :meth:`smoothed` spreads it out."""
        return np.zeros_like(coef), None, 0.0

    def quantiles(self, u: Array, d: int) -> Array:
        """Quantiles ``(len(u), d)`` of each coefficient minus its location."""
        unit = -np.sign(u - 0.5) * np.log1p(-np.abs(2.0 * u - 1.0))
        return np.outer(unit, np.broadcast_to(self.scale, d))

    def smoothed(self, spread: Array | None) -> CoefficientPrior:
        """Prior averaged over normal errors of sd ``spread (K, d)``, in closed form."""
        width = np.sqrt(2.0) * np.asarray(self.scale) if spread is None else spread
        return _SmoothedLaplace(self.scale, self.location, width)


class _SmoothedLaplace(Laplace):
    """The Laplace log density averaged over normal errors: the mean of a folded normal."""

    def __init__(self, scale: Any, location: float | Array, spread: Array) -> None:
        super().__init__(scale, location)
        self.spread = spread

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        z = (coef - self.location) / self.spread
        folded = np.sqrt(2.0 / np.pi) * np.exp(-0.5 * np.square(z)) + z * erf(z / np.sqrt(2.0))
        return -(self.spread * folded / self.scale).sum(axis=(1, 2))

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        z = (coef - self.location) / self.spread
        return -erf(z / np.sqrt(2.0)) / self.scale, None

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        z = (coef - self.location) / self.spread
        bump = np.sqrt(2.0 / np.pi) * np.exp(-0.5 * np.square(z))
        return bump / (self.spread * self.scale), None, 0.0
