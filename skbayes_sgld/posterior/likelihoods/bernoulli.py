"""Binary observations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from skbayes_sgld.posterior.likelihoods.base import Array, Likelihood


@dataclass(eq=False, repr=False)
class Bernoulli(Likelihood):
    """Binary observations, ``P(y = 1) = 1 / (1 + exp(-eta))``; y is 0 or 1."""

    separable = True

    def log_density(self, u: Array, y: Array) -> Array:
        """Return ``y eta - log(1 + exp(eta))``."""
        return y * u[:, 0] - np.logaddexp(0.0, u[:, 0])

    def score(self, u: Array, y: Array) -> Array:
        """Return ``y - p``, with p by tanh: a third of the time of ``expit``."""
        score = np.tanh(0.5 * u)
        score *= -0.5
        score += y[..., None, :] - 0.5
        return score

    def value_and_score(self, u: Array, y: Array) -> tuple[Array, Array]:
        """Return both from one exponential."""
        sign = 2.0 * y[..., None, :] - 1.0
        v = sign * u
        small = np.exp(-np.abs(v))
        value = np.minimum(v, 0.0) - np.log1p(small)
        return value[:, 0], sign * np.where(v > 0, small, 1.0) / (1.0 + small)

    def curvature(self, u: Array, y: Array) -> Array:
        """Return ``p (1 - p)``."""
        p = expit(u)
        return (p * expit(-u))[:, None]
