"""Estimators of the gradient of the log posterior from all rows or a minibatch.

A component is bound to a posterior first; the bound estimator gathers the rows of many steps at
once (``prepare``) and is then called once a step. All are unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from skbayes_sgld._components import Component

Array = NDArray[Any]


class Gradient(Component):
    """A rule that estimates the gradient of the log posterior."""

    minibatch = True

    def bind(self, posterior: Any, center: Array | None) -> BoundGradient:
        """Return the estimator for this posterior; ``center (P,)`` is its mode, if known."""
        raise NotImplementedError


class BoundGradient:
    """The full gradient; base of the estimators from minibatches."""

    def __init__(self, posterior: Any) -> None:
        self.posterior = posterior

    def prepare(self, idx: Array | None) -> Any:
        """Return what the steps need of the rows ``idx (T, C, B)``; see :meth:`at`."""
        return None

    def at(self, prepared: Any, t: int) -> Any:
        """Return the part of the prepared rows that step ``t`` needs."""
        return None

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Return what each row of a batch leaves to it, in its local parameters."""
        raise NotImplementedError

    def begin(self, theta: Array) -> dict[str, Array]:
        """Return what is remembered of each chain from step to step, chains first."""
        return {}

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        """Return the estimate of the gradient at ``theta (C, P)``.

        ``memory`` holds what :meth:`begin` returned, among other things; it is brought up to
        date. Without it the estimate is that of a chain that begins at the centre.
        """
        if hasattr(self.posterior, "grad"):  # both parts at once, where that costs less
            return self.posterior.grad(theta)
        likelihood = self.posterior.grad_log_likelihood(theta)
        return likelihood + self.posterior.grad_log_prior(theta)


@dataclass(eq=False, repr=False)
class Full(Gradient):
    """The gradient from all rows; for a normal likelihood from its sufficient statistics."""

    minibatch = False

    def bind(self, posterior: Any, center: Array | None) -> BoundGradient:
        """Return the exact gradient."""
        return BoundGradient(posterior)
