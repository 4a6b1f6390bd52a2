"""The flat prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbayes_sgld.priors.base import Array, CoefficientPrior


@dataclass(eq=False, repr=False)
class Flat(CoefficientPrior):
    """Flat (improper) prior: the posterior is proportional to the likelihood.

    The posterior is proper only if the data determine every coefficient: with more rows than
    columns, no constant column besides an intercept, and classes that no plane separates.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> SGLDLinearRegression(prior="flat", noise_prior="flat")
    SGLDLinearRegression(noise_prior='flat', prior='flat')
    """

    proper = False
    flat = log_concave = True
    normal = True  # the limit of ever wider normal priors

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Zeros, as an improper prior has no draws and chains may start anywhere."""
        return np.zeros(shape)

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """Zeros ``(C,)``."""
        return np.zeros(coef.shape[0])

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Zeros ``(C, K, d)``, and None for gamma."""
        return np.zeros_like(coef), None

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Zeros ``(K, d)``."""
        return np.zeros_like(coef), None, 0.0
