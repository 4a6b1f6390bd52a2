"""The likelihood of rows that were not kept, as a normal density of the linear parameters.

It is the site of assumed density filtering (Opper 1998): a second-order expansion whose gradient
and curvature are means over draws of the posterior, so that the next posterior has their mean.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import linalg

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.linear_prior import Array, LinearPrior
from skbayes_sgld.posterior.priors import CoefficientPrior

_CURVATURES, _BLOCK = 200, 64  # draws


@dataclass(frozen=True)
class NormalSite:
    """Log density ``slope' (x - center) - (x - center)' precision (x - center) / 2``.

    Attributes
    ----------
    center, slope : ndarray of shape (K, width)
        In linear parameters x whose intercepts are at X = 0.
    precision : ndarray of shape (K width, K width)
        It may be singular.
    """

    center: Array
    slope: Array
    precision: Array

    def tempered(self, power: float) -> NormalSite:
        """The density to a power."""
        return NormalSite(self.center, power * self.slope, power * self.precision)


@dataclass(frozen=True)
class PriorWithSite(LinearPrior):
    """Prior times a site ``slope' moved - moved' precision moved / 2`` of ``linear - at``."""

    at: Array = field(default_factory=lambda: np.zeros((1, 1)))
    slope: Array = field(default_factory=lambda: np.zeros((1, 1)))
    precision: Array = field(default_factory=lambda: np.zeros((1, 1)))
    separate: ClassVar[bool] = False

    @cached_property
    def _flat(self) -> tuple[Array, Array]:
        return self.at.ravel(), self.slope.ravel()

    def _pull(self, linear: Array) -> tuple[Array, Array]:
        """Distance from the centre and the slope that changes with it, ``(C, K width)`` each."""
        moved = linear.reshape(len(linear), -1) - self._flat[0]
        return moved, -matmul_rows(moved, self.precision)

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Draw ``(K, width)`` of a normal distribution near it, intercepts at X = 0."""
        H, slope = self.curvature(self.at, None)[0], self.grad(self.at[None], None)[0]
        upper = linalg.cholesky(H)
        moved = linalg.cho_solve((upper, False), slope.ravel())
        moved += linalg.solve_triangular(upper, rng.standard_normal(len(moved)))
        linear = self.at + moved.reshape(shape)
        if self.center is not None:
            linear[:, -1] -= linear[:, :-1] @ self.center
        return linear

    def log_density(self, linear: Array, gamma: Array | None) -> Array:
        """Log density up to a constant ``(C,)``."""
        moved, pull = self._pull(linear)
        site = np.einsum("cp,cp->c", moved, 0.5 * pull + self._flat[1])
        return super().log_density(linear, gamma) + site

    def grad(self, linear: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Gradient in the parameters ``(C, K, width)``; there is no noise."""
        slope = self._pull(linear)[1] + self._flat[1]
        return super().grad(linear, gamma)[0] + slope.reshape(linear.shape), None

    def bind_grad(self, constant: Array) -> Callable[[Array], Array]:
        """Gradient plus a ``constant (K, width)``."""
        own = {f.name: getattr(self, f.name) for f in fields(LinearPrior)}
        of_prior = LinearPrior(**own).bind_grad(constant + self.slope)
        return lambda linear: of_prior(linear) + self._pull(linear)[1].reshape(linear.shape)

    def diagonal(self, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Diagonal of the curvature."""
        of_prior, corner = super().diagonal(linear, gamma)
        return of_prior + np.diagonal(self.precision).reshape(linear.shape), corner

    def add_curvature(self, H: Array, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Add minus the Hessian to ``H (K * width, K * width)``."""
        H += self.precision
        return super().add_curvature(H, linear, gamma)


def under_priors(
    posterior: GLMPosterior,
    coef: CoefficientPrior,
    intercept: CoefficientPrior,
    site: NormalSite | None,
) -> GLMPosterior:
    """Posterior of the same rows under given priors, and a site of further rows.

    It is for models whose noise is not a parameter.
    """
    own, other = posterior.linear_prior, copy(posterior)
    acts = posterior.fit_intercept and not intercept.flat
    kept = own.n_features, own.center, own.from_data, own.pin
    other._settled = {}
    if site is None:
        other.linear_prior = LinearPrior(coef, intercept if acts else None, *kept)
        return other
    K, width = site.center.shape
    to_zero = _to_zero(posterior, K, width)
    at = site.center.copy()
    if own.center is not None:
        at[:, -1] += at[:, :-1] @ own.center
    precision = to_zero.T @ site.precision @ to_zero
    other.linear_prior = PriorWithSite(
        _determined(coef),
        _determined(intercept) if posterior.fit_intercept else None,
        *kept,
        at=at,
        slope=(site.slope.ravel() @ to_zero).reshape(K, width),
        precision=0.5 * (precision + precision.T),
    )
    return other


def _determined(prior: CoefficientPrior) -> CoefficientPrior:
    """Prior that counts as proper: beside it the site determines the parameters."""
    if not prior.proper:
        prior = copy(prior)
        prior.proper = True
    return prior


def site_of(posterior: GLMPosterior, theta: Array, share: Array) -> NormalSite:
    """Site of a posterior's rows and of its own site, from draws ``theta (S, P)``.

    ``share (S,)`` is the weight of each draw, of sum 1. The site's slope at the mean
    of the draws is their mean gradient, its precision the mean curvature of some of them.
    """
    K, width = posterior.n_predictors, posterior.n_features + posterior.fit_intercept
    mean = share @ theta
    some = theta[np.unique(np.linspace(0, len(theta) - 1, _CURVATURES).astype(int))]
    precision = posterior.likelihood_curvature(some)
    slope = np.zeros(len(mean))
    for a in range(0, len(theta), _BLOCK):
        part = slice(a, a + _BLOCK)
        slope += share[part] @ posterior.grad_log_likelihood(theta[part])
    earlier = posterior.linear_prior
    if isinstance(earlier, PriorWithSite):
        moved = mean - earlier.at.ravel()
        precision = precision + earlier.precision
        slope += earlier.slope.ravel() - earlier.precision @ moved
    center = mean.reshape(K, width).copy()
    back = np.linalg.inv(_to_zero(posterior, K, width))
    if posterior.center is not None:
        center[:, -1] -= center[:, :-1] @ posterior.center
    return NormalSite(center, (slope @ back).reshape(K, width), back.T @ precision @ back)


def _to_zero(posterior: GLMPosterior, K: int, width: int) -> Array:
    """Matrix from linear parameters to those with intercepts at X = 0."""
    one = np.eye(width)
    if posterior.center is not None:
        one[-1, :-1] = -posterior.center
    return np.kron(np.eye(K), one)
