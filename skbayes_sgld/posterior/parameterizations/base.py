"""A posterior in other coordinates: a map, its inverse and log Jacobian, and the density."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from skbayes_sgld._linalg import GROUP, matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Facts, Reported

# Parameters from which products in single precision pay without sums over rows
_LARGE = 128
_BLOCK = 2**14  # numbers of the draws to map at a time, so that temporaries stay in cache


class Expanded(NamedTuple):
    """Parameters at some coordinates, and the chain rule.

    Attributes
    ----------
    theta : ndarray of shape (C, P)
    log_jacobian : ndarray of shape (C,)
        Log determinant of d theta / d phi, up to a constant.
    pull_back : callable
        Function of ``grad (C, P)``, the gradient of f in theta, and of a number tau: gradient in
        phi ``(C, P)`` of ``f(theta) + tau log_jacobian``.
    """

    theta: Array
    log_jacobian: Array
    pull_back: Callable[[Array, float], Any]


class Map:
    """A smooth one-to-one map from coordinates ``phi (C, P)`` to parameters ``theta (C, P)``."""

    def expand(self, phi: Array) -> Expanded:
        """Theta at phi, the log Jacobian and the chain rule."""
        raise NotImplementedError

    def forward(self, phi: Array) -> Array:
        """Theta at phi."""
        return self.expand(phi).theta

    def inverse(self, theta: Array) -> Array:
        """Phi at theta."""
        raise NotImplementedError

    def rounded(self) -> Map:
        """Map in single precision, if there is one, or itself."""
        return self

    def in_groups_of(self, size: int | None) -> Map:
        """Map whose matrix products take ``size`` positions at once, or all if it is None."""
        return self


class Affine(Map):
    """The map ``level + root x``.

    Parameters
    ----------
    level : ndarray of shape (m,)
    root : ndarray of shape (m, m)
    """

    def __init__(self, level: Array, root: Array) -> None:
        self.level, self.root = level, root

    def expand(self, phi: Array) -> Expanded:
        """Values at phi, a log Jacobian of 0, and the chain rule."""

        def pull_back(grad: Array, tau: float) -> Array:
            return _rows_times(grad, self.root)

        values = self.level + _rows_times(phi, self.root.T)
        return Expanded(values, np.zeros(len(phi)), pull_back)

    def inverse(self, theta: Array) -> Array:
        """Coordinates of the values."""
        return np.linalg.solve(self.root, (theta - self.level).T).T


def _rows_times(x: Array, matrix: Array) -> Array:
    return x * matrix if matrix.size == 1 else matmul_rows(np.ascontiguousarray(x), matrix)


class Reparameterized(BasePosterior):
    """A posterior in coordinates phi, whose reported parameters are those of the model.

    Parameters
    ----------
    posterior : BasePosterior
        Posterior of theta.
    coordinates : Map
    temperature : float
        Temperature tau of the sampler. Tempering acts on the density of theta, so the log Jacobian
        is multiplied by tau, which the sampler's power 1 / tau undoes.
    **facts : object
        Facts that differ from the defaults.
    """

    def __init__(
        self, posterior: BasePosterior, coordinates: Map, temperature: float, **facts: Any
    ) -> None:
        self.inner: Any = posterior
        self.own_parameters = posterior.own_parameters
        self.coordinates: Any = coordinates
        self.temperature = temperature
        self.n_samples, self.n_params = posterior.n_samples, posterior.n_params
        self.param_names = posterior.param_names
        inner = posterior.facts
        self._facts = Facts(
            one_mode=inner.one_mode,
            log_concave=inner.log_concave,
            hierarchical=inner.hierarchical,
            n_predictors=inner.n_predictors,
            total_weight=inner.total_weight,
            **facts,
        )

    @property
    def facts(self) -> Facts:
        """Facts about the posterior's shape and cost."""
        return self._facts

    # ---- the density ----------------------------------------------------------------------------

    def log_likelihood(self, phi: Array, idx: Array | None = None) -> Array:
        """Log likelihood of each row ``(C, B)``."""
        return self.inner.log_likelihood(self.coordinates.forward(phi), idx)

    def grad_log_likelihood(self, phi: Array, idx: Array | None = None) -> Array:
        """Gradient of the log likelihood, summed over the rows ``(C, P)``."""
        at = self.coordinates.expand(phi)
        return at.pull_back(self.inner.grad_log_likelihood(at.theta, idx), 0.0)

    def log_prior(self, phi: Array) -> Array:
        """Log prior of phi ``(C,)``, including the log Jacobian."""
        at = self.coordinates.expand(phi)
        return self.inner.log_prior(at.theta) + self.temperature * at.log_jacobian

    def grad_log_prior(self, phi: Array) -> Array:
        """Gradient of the log prior ``(C, P)``."""
        return self._grad(self.inner.grad_log_prior, phi)

    def log_density(self, phi: Array) -> Array:
        """Log posterior density of phi up to a constant ``(C,)``."""
        at = self.coordinates.expand(phi)
        return self.inner.log_density(at.theta) + self.temperature * at.log_jacobian

    def grad(self, phi: Array) -> Array:
        """Gradient of the log posterior ``(C, P)``."""
        return self._grad(self.inner.grad, phi)

    def value_and_grad(self, phi: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        return self._value_and_grad(self.inner.value_and_grad, phi)

    def bind_grad(self, group: int | None = GROUP) -> Callable[[Array], Array]:
        """:meth:`grad` for one run in one thread."""
        in_theta, grouped = self.inner.bind_grad(group), self._in_groups_of(group)
        return lambda phi: grouped._grad(in_theta, phi)

    def bind_value_and_grad(
        self, followed: BasePosterior | None = None, group: int | None = GROUP
    ) -> Callable[[Array], tuple[Array, Array]]:
        """:meth:`value_and_grad`, in one pass also if ``followed`` has the same coordinates."""
        # one pass in double precision takes less time than a second one in single precision
        other = self if followed is None or followed.exact is self else followed
        if not (isinstance(other, Reparameterized) and other.coordinates is self.coordinates):
            return super().bind_value_and_grad(followed, group)
        in_theta = self.inner.bind_value_and_grad(other.inner, group)
        grouped = self._in_groups_of(group)
        return lambda phi: grouped._value_and_grad(in_theta, phi)

    def _in_groups_of(self, group: int | None) -> Self:
        return self._with(coordinates=self.coordinates.in_groups_of(group))

    def _grad(self, in_theta: Callable[[Array], Array], phi: Array) -> Array:
        at = self.coordinates.expand(phi)
        return at.pull_back(in_theta(at.theta), self.temperature)

    def _value_and_grad(
        self, in_theta: Callable[[Array], tuple[Array, Array]], phi: Array
    ) -> tuple[Array, Array]:
        at = self.coordinates.expand(phi)
        value, grad = in_theta(at.theta)
        value = value + self.temperature * at.log_jacobian
        return value, at.pull_back(grad, self.temperature)

    def rounded(self, density: bool = False) -> BasePosterior:
        """Posterior with a rounded gradient, if the model and the map have one, or itself."""
        if density or (self.inner.facts.cheap_full_gradient and self.n_params < _LARGE):
            return self
        inner, coordinates = self.inner.rounded(), self.coordinates.rounded()
        if inner is self.inner or coordinates is self.coordinates:
            return self
        other = copy(self)
        other.inner, other.coordinates, other.exact = inner, coordinates, self
        return other

    def moved_from(self, other: Reparameterized, phi: Array) -> Array:
        """Coordinates ``(S, P)`` of the points that ``other`` has at ``phi (S, P)``."""
        return self.coordinates.inverse(other.coordinates.forward(phi))

    # ---- reported parameters --------------------------------------------------------------------

    @property
    def reported(self) -> Reported:
        """Reported parameters of the model, at phi."""
        model = self.inner.reported
        maps = {"values": self._constrain, "theta": self._unconstrain, "moves": np.asarray}
        return replace(model, **maps)

    def _constrain(self, phi: Array) -> Array:
        """Reported parameters ``(S, P)`` at phi."""
        theta = np.empty_like(phi)
        size = 64 * max(4, _BLOCK // (64 * phi.shape[1]))
        for first in range(0, len(phi), size):
            some = slice(first, first + size)
            theta[some] = self.coordinates.forward(phi[some])
        return self.inner.reported.values(theta)

    def _unconstrain(self, values: Array) -> Array:
        """Coordinates phi ``(S, P)`` of the reported parameters."""
        return self.coordinates.inverse(self.inner.reported.theta(values))

    def zeros(self) -> Array:
        """Point ``(P,)`` at which no parameter of the model has an effect."""
        return self.coordinates.inverse(self.inner.zeros()[None])[0]

    def draw_prior(self, generators: list[np.random.Generator]) -> Array | None:
        """Draws from the prior ``(C, P)``, as reported parameters."""
        return self.inner.draw_prior(generators)
