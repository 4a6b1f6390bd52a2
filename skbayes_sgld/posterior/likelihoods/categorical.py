"""Observations of several classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, softmax

from skbayes_sgld.posterior.likelihoods.base import Array, Likelihood


@dataclass(eq=False, repr=False)
class Categorical(Likelihood):
    """Observations of K classes, ``P(y = k) = softmax(eta)_k``; y holds codes 0 ... K - 1.

    Parameters
    ----------
    n_classes : int, default=3
    """

    n_classes: int = 3
    separable = True

    @property
    def n_predictors(self) -> int:  # type: ignore[override]
        """One linear predictor a class."""
        return self.n_classes

    def _observed(self, y: Array) -> Array:
        return y[..., None, :] == np.arange(self.n_classes)[:, None]

    def log_density(self, u: Array, y: Array) -> Array:
        """Return the log of the observed class's probability."""
        return np.where(self._observed(y), log_softmax(u, axis=1), 0.0).sum(axis=1)

    def score(self, u: Array, y: Array) -> Array:
        """Return ``[y = k] - p_k``."""
        p = u - u.max(axis=1, keepdims=True)  # in place from here: large temporaries cost most
        np.exp(p, out=p)
        p *= -1.0 / p.sum(axis=1, keepdims=True)
        p += self._observed(y).astype(float)
        return p

    def value_and_score(self, u: Array, y: Array) -> tuple[Array, Array]:
        """Return both from one exponential a class."""
        observed = self._observed(y).astype(float)
        shifted = u - u.max(axis=1, keepdims=True)
        exponential = np.exp(shifted)
        total = exponential.sum(axis=1)
        shifted *= observed
        value = shifted.sum(axis=1) - np.log(total)
        exponential *= -1.0 / total[:, None]
        exponential += observed
        return value, exponential

    def curvature(self, u: Array, y: Array) -> Array:
        """Return ``diag(p) - p p^T``."""
        p = softmax(u, axis=1)
        outer = -p[:, :, None] * p[:, None]
        k = np.arange(self.n_classes)
        outer[:, k, k] += p
        return outer
