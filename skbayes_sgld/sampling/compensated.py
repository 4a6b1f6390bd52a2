"""Metric of steps on noisy batches, which inject less noise in return.

A batch of B rows adds noise of covariance ``V`` to a step's gradient, in the coordinates of the
metric. On a normal distribution it adds ``eta V / (2 - eta)`` to the variance of a
Leimkuhler-Matthews chain, to first order in V. If V is known, the injected noise can be smaller by
as much (modified SGLD: Vollmer, Zygalakis & Teh 2016, section 5): the chain then has the right
variance on batches that are ten to fifty times smaller.
"""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.sampling.metric import Dense, Metric


class Compensated(Metric):
    """Metric whose ``sqrt``, the root of a step's noise, leaves out the noise of batches.

    Its drift, ``scale``, is that of the metric.

    Parameters
    ----------
    metric : Metric
    noise : ndarray of shape (P, P)
        Covariance that batches add to the chain's draws, in the coordinates of the metric; all
        eigenvalues are below 1.
    """

    def __init__(self, metric: Metric, noise: Array) -> None:
        self.n_params, self._metric = metric.n_params, metric
        left = np.linalg.cholesky(np.eye(len(noise)) - noise)
        self._injected: Metric = Dense(np.ascontiguousarray(metric.sqrt(left.T).T))

    def sqrt(self, x: Array) -> Array:
        """Injected noise, from standard normals."""
        return self._injected.sqrt(x)

    def sqrt_t(self, x: Array) -> Array:
        """``R^T x``, with the root of the metric."""
        return self._metric.sqrt_t(x)

    def scale(self, x: Array) -> Array:
        """``G x``."""
        return self._metric.scale(x)

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x``, with the root of the metric."""
        return self._metric.whiten(x)

    def whiten_t(self, x: Array) -> Array:
        """``R^{-T} x``, with the root of the metric."""
        return self._metric.whiten_t(x)

    def in_groups_of(self, size: int | None) -> Self:
        """Metric whose matrix products take ``size`` positions at once; None: all of them."""
        other = copy(self)
        other._metric = self._metric.in_groups_of(size)
        other._injected = self._injected.in_groups_of(size)
        return other

    def stored(self) -> Metric:
        """The metric, without its noise."""
        return self._metric.stored()
