"""A normal prior of all linear parameters together, such as an earlier posterior is."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import linalg

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.linear_prior import Array, LinearPrior
from skbayes_sgld.posterior.priors import Normal

_CURVATURES, _BLOCK = 200, 64  # draws


@dataclass(frozen=True)
class NormalBelief:
    """Mean ``(K, width)`` and precision of linear parameters, whose intercepts are at X = 0."""

    mean: Array
    precision: Array

    def tempered(self, power: float) -> NormalBelief:
        """The density to a power, at most 1: the same mean, and less weight."""
        return NormalBelief(self.mean, power * self.precision)


@dataclass(frozen=True)
class JointNormal(LinearPrior):
    """Normal prior of mean ``(K, width)`` and precision in the coordinates of ``linear``.

    ``coef`` and ``intercept`` are its marginals.
    """

    mean: Array = field(default_factory=lambda: np.zeros((1, 1)))
    precision: Array = field(default_factory=lambda: np.ones((1, 1)))
    separate: ClassVar[bool] = False

    @cached_property
    def _flat_mean(self) -> Array:
        return self.mean.ravel()

    def _pull(self, linear: Array) -> tuple[Array, Array]:
        """Distance from the mean and the gradient, ``(C, K width)`` each."""
        moved = linear.reshape(len(linear), -1) - self._flat_mean
        return moved, -matmul_rows(moved, self.precision)

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Draw of the linear parameters ``(K, width)``, intercepts at X = 0."""
        upper = linalg.cholesky(self.precision)
        moved = linalg.solve_triangular(upper, rng.standard_normal(self._flat_mean.size))
        linear = self.mean + moved.reshape(shape)
        if self.center is not None:
            linear[:, -1] -= linear[:, :-1] @ self.center
        return linear

    def log_density(self, linear: Array, gamma: Array | None) -> Array:
        """Log density up to a constant ``(C,)``."""
        moved, pull = self._pull(linear)
        return 0.5 * np.einsum("cp,cp->c", moved, pull)

    def grad(self, linear: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Gradient in the parameters ``(C, K, width)``; there is no noise."""
        return self._pull(linear)[1].reshape(linear.shape), None

    def bind_grad(self, constant: Array) -> Callable[[Array], Array]:
        """Gradient plus a ``constant (K, width)``."""
        return lambda linear: self.grad(linear, None)[0] + constant

    def diagonal(self, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Diagonal of the precision."""
        return np.diagonal(self.precision).reshape(linear.shape).copy(), 0.0

    def curvature(self, linear: Array, gamma: float | None) -> tuple[Array, Array, float]:
        """Precision."""
        return self.precision, np.zeros(linear.size), 0.0


def under_belief(posterior: GLMPosterior, belief: NormalBelief) -> GLMPosterior:
    """Posterior whose linear parameters have a normal belief as their prior.

    It is for models whose noise is not a parameter.
    """
    K, width = belief.mean.shape
    at_center = _to_zero(posterior, K, width)
    mean, precision = belief.mean.copy(), at_center.T @ belief.precision @ at_center
    d = posterior.n_features
    if posterior.center is not None:
        mean[:, -1] += mean[:, :-1] @ posterior.center
    sd = np.sqrt(np.diagonal(np.linalg.inv(belief.precision)).reshape(K, width))
    other = copy(posterior)
    other.linear_prior = JointNormal(
        Normal(scale=sd[:, :d].mean(axis=0), location=belief.mean[:, :d].mean(axis=0)),
        Normal(scale=sd[:, -1].mean(), location=belief.mean[:, -1].mean()) if width > d else None,
        d,
        posterior.center,
        mean=mean,
        precision=0.5 * (precision + precision.T),
    )
    other._settled = {}
    return other


def belief_of(
    posterior: GLMPosterior, theta: Array, share: Array, temperature: float
) -> NormalBelief:
    """Normal distribution near a posterior, from draws ``theta (S, P)`` of probability ``share``.

    Its precision is the mean of the curvature over some draws, which adds up from batch to batch
    as sufficient statistics do; without one, as under a prior with kinks, the inverse covariance.
    Its mean is that of the draws, less what the mean of their gradients, zero over the posterior,
    shows of its Monte Carlo error (Mira, Solgi & Imparato 2013, eq. 8).
    """
    K, mean = posterior.n_predictors, share @ theta
    some = theta[np.unique(np.linspace(0, len(theta) - 1, _CURVATURES).astype(int))]
    precision = posterior.mean_curvature(some)
    if precision is None:
        moved = (theta - mean) * np.sqrt(share)[:, None]
        lost = 1.0 - (theta.shape[1] + 2.0) / len(theta)  # of the inverse of a Wishart matrix
        precision = lost * temperature * np.linalg.inv(moved.T @ moved)
    else:
        parts = range(0, len(theta), _BLOCK)
        slope = sum(share[a : a + _BLOCK] @ posterior.grad(theta[a : a + _BLOCK]) for a in parts)
        mean = mean + linalg.solve(precision, slope, assume_a="pos")
    linear = mean.reshape(K, -1).copy()
    back = np.linalg.inv(_to_zero(posterior, K, linear.shape[1]))
    if posterior.center is not None:
        linear[:, -1] -= linear[:, :-1] @ posterior.center
    return NormalBelief(linear, back.T @ precision @ back)


def _to_zero(posterior: GLMPosterior, K: int, width: int) -> Array:
    """Matrix from linear parameters to those with intercepts at X = 0."""
    one = np.eye(width)
    if posterior.center is not None:
        one[-1, :-1] = -posterior.center
    return np.kron(np.eye(K), one)
