"""Likelihoods of models whose rows see the parameters through linear predictors.

Conventions
-----------
A row sees the parameters through ``u``, of ``n_local`` numbers: its linear predictors and, where
the noise is inferred, ``gamma = log sigma^2`` last. ``u`` is ``(C, n_local, B)`` for C chains and
B rows; ``y`` is ``(B,)``, or ``(C, B)`` when every chain has rows of its own. That view makes one
piece of code serve gradients, curvature and control variates of every model.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from skbayes_sgld._components import Component

Array = NDArray[Any]


class Likelihood(Component):
    """The law of one observation given its local parameters u."""

    n_predictors = 1
    infers_noise = False
    quadratic = False  # in eta: the rows can be summed once, into sufficient statistics
    separable = False  # a plane through the data may push the coefficients to infinity

    @property
    def n_local(self) -> int:
        """How many local parameters a row has."""
        return self.n_predictors + self.infers_noise

    def log_density(self, u: Array, y: Array) -> Array:
        """Return the log density of each observation ``(C, B)``."""
        raise NotImplementedError

    def score(self, u: Array, y: Array) -> Array:
        """Return its gradient in u ``(C, n_local, B)``."""
        raise NotImplementedError

    def curvature(self, u: Array, y: Array) -> Array:
        """Return minus its Hessian in u ``(C, n_local, n_local, B)``."""
        raise NotImplementedError

    def value_and_score(self, u: Array, y: Array) -> tuple[Array, Array]:
        """Return the log density and its gradient; together they may cost less."""
        return self.log_density(u, y), self.score(u, y)

    def noise_variance(self, gamma: Array | None) -> Any:
        """Return the variance of an observation, where it does not depend on eta."""
        raise NotImplementedError
