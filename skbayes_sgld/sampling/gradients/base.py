"""Estimators of the gradient of the log posterior from all rows or a minibatch.

A component is bound to a posterior first; the bound estimator gathers the rows of many steps at
once (``prepare``) and is then called once a step. All are unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from numpy.typing import NDArray

from skbayes_sgld._components import Component, check_flag
from skbayes_sgld.posterior.base import BasePosterior, require
from skbayes_sgld.posterior.boundary import as_posterior
from skbayes_sgld.posterior.protocol import Expansion, Posterior
from skbayes_sgld.sampling.preconditioners.metric import Metric

Array = NDArray[Any]

_GATHERED_NUMBERS = 2**16  # of a few steps' rows, which then stay in cache


class Gradient(Component):
    """A rule that estimates the gradient of the log posterior; subclasses define :meth:`make`.

    Attributes
    ----------
    requires : tuple of str
        Abilities that the posterior must have, by their names in
        :data:`~skbayes_sgld.posterior.protocol.ABILITIES`.
    remedy : str
        Advice for a posterior that lacks them, for the error.
    minibatch : bool
        Whether a step reads a batch of the rows rather than all of them.
    replacement : bool
        Whether a batch may hold a row twice.
    needs_mode : bool
        Whether the estimator is centred on the mode.
    """

    requires: tuple[str, ...] = ("rows",)
    remedy: str = "set gradient='full', which takes any posterior"
    minibatch: bool = True
    replacement: bool = True
    needs_mode: bool = False

    def check(self) -> None:
        """Raise where a parameter is out of range."""
        check_flag(self.replacement, "gradient.replacement")

    def bind(
        self,
        posterior: Posterior | BasePosterior,
        center: Array | None = None,
        expansion: Expansion | None = None,
    ) -> BoundGradient:
        """Estimator for this posterior.

        Parameters
        ----------
        posterior : Posterior
        center : ndarray of shape (P,), default=None
            Its mode, if known.
        expansion : Expansion, default=None
            Expansion of the log likelihood close to the mode, if known: it saves a pass over the
            rows.

        Raises
        ------
        TypeError
            When the posterior lacks what the estimator requires.
        """
        if not isinstance(posterior, BasePosterior):
            posterior = as_posterior(posterior)
        require(posterior, self.requires, "gradient", self, self.remedy)
        if expansion is not None:
            return self.make_around(posterior, center, expansion)
        return self.make(posterior, center)

    def make(self, posterior: BasePosterior, center: Array | None) -> BoundGradient:
        """Estimator for a posterior that has what is required."""
        raise NotImplementedError

    def make_around(
        self, posterior: BasePosterior, center: Array | None, expansion: Expansion
    ) -> BoundGradient:
        """Estimator where an expansion is known; an estimator that needs none leaves it."""
        return self.make(posterior, center)


class BoundGradient:
    """The full gradient; base of the estimators from minibatches."""

    _grad_of: Callable[[int], Callable[[Array], Array]] | None = None
    _value_and_grad_of: (
        Callable[[int, BasePosterior], Callable[[Array], tuple[Array, Array]]] | None
    ) = None

    def __init__(self, posterior: BasePosterior) -> None:
        self.posterior = posterior

    def in_groups_of(self, size: int | None) -> Self:
        """Copy whose full gradients take products of so many positions at a time; None: of all."""
        grouped = copy(self)
        grouped.posterior = self.posterior.in_groups_of(size)
        return grouped

    def of_run(self) -> Self:
        """Copy for one run in one thread, whose full gradients are bound to the run's chains."""
        bound = copy(self)
        # by the number of chains, since a sampler may hold several replicas of each
        bound._grad_of = cache(self.posterior.bind_grad)
        bound._value_and_grad_of = cache(
            lambda n_chains, target: target.bind_value_and_grad(n_chains, self.posterior)
        )
        return bound

    def of_pilot(self) -> Self:
        """Copy for a pilot, whose number of chains nobody chooses."""
        bound, posterior = self.of_run(), self.posterior.in_groups_of(None)
        bound._grad_of = cache(posterior.bind_grad)
        bound._value_and_grad_of = cache(
            lambda n_chains, target: target.in_groups_of(None).bind_value_and_grad(
                n_chains, posterior
            )
        )
        return bound

    def bind_drift(self, metric: Metric) -> Callable[[Array, Any], Array] | None:
        """``G g`` at ``theta (C, P)`` and a batch, a new array; None: nothing is gained by it."""
        return None

    def full(self, theta: Array) -> Array:
        """Gradient from all rows at ``theta (C, P)``."""
        if self._grad_of is None:
            return self.posterior.grad(theta)
        return self._grad_of(len(theta))(theta)

    def value_and_full(
        self, theta: Array, target: BasePosterior | None = None
    ) -> tuple[Array, Array]:
        """Log density of the target ``(C,)``, and the gradient from all rows."""
        target = target or self.posterior
        if self._value_and_grad_of is None:
            return target.bind_value_and_grad(len(theta), self.posterior)(theta)
        return self._value_and_grad_of(len(theta), target)(theta)

    def prepare(self, idx: Array | None) -> Any:
        """Gather what the steps need of the rows ``idx (T, C, B)``; see :meth:`at`.

        What it returned in a run is valid until it is called again.
        """
        return None

    def at(self, prepared: Any, t: int) -> Any:
        """Part of the prepared rows that step ``t`` needs."""
        return None

    def batches(self, idx: Array) -> Iterator[Any]:
        """What each step needs of the rows ``idx (T, C, B)``, gathered a cache full at a time."""
        most = max(1, _GATHERED_NUMBERS // (idx[0].size * self.posterior.n_params))
        for first in range(0, len(idx), most):
            part = idx[first : first + most]
            prepared = self.prepare(part)
            for t in range(len(part)):
                yield self.at(prepared, t)

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Each row's contribution to a batch's estimate ``(C, n_local, B)``."""
        raise NotImplementedError

    def begin(self, theta: Array) -> dict[str, Array]:
        """Arrays that the estimator keeps of each chain from step to step, chains first."""
        return {}

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        """Estimate of the gradient at ``theta (C, P)``.

        ``memory`` holds what :meth:`begin` returned, among other things; it is brought up to
        date. Without it the estimate is that of a chain that begins at the centre.
        """
        return self.full(theta)


@dataclass(eq=False, repr=False)
class Full(Gradient):
    """The gradient from all rows; for a normal likelihood from its sufficient statistics.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(gradient="full")
    SGLDLogisticRegression(gradient='full')
    """

    requires = ()
    minibatch = False

    def make(self, posterior: BasePosterior, center: Array | None) -> BoundGradient:
        """Exact gradient."""
        return BoundGradient(posterior)
