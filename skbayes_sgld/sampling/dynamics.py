"""Dynamics of a step: a gradient bound to a posterior, joined to a metric.

A bound gradient gathers the rows of many steps at once (``prepare``) and is then called once a
step. All gradient estimators are unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from math import lcm
from typing import Any

from skbayes_sgld._linalg import GROUP
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Facts
from skbayes_sgld.posterior.whitening import WhitenedPosterior
from skbayes_sgld.sampling.clipping import Clip
from skbayes_sgld.sampling.metric import Metric

State = dict[str, Array]
"""State of the chains: ``theta (C, P)`` and an algorithm's own arrays, chains first."""

_GATHERED_NUMBERS = 2**16  # values of the rows of a few steps, which then stay in cache


@dataclass(eq=False)
class BoundGradient:
    """Gradient of one posterior, from all rows; base of the estimators from minibatches.

    Attributes
    ----------
    posterior : BasePosterior
    group : int or None
        Number of positions that a matrix product takes at once; None takes all of them.
    n_sharing : int
        Number of neighbouring positions that share each batch.
    """

    posterior: BasePosterior
    group: int | None = GROUP
    n_sharing: int = 1

    def __getstate__(self) -> dict[str, Any]:
        """State without the work arrays, which belong to one thread."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def full(self) -> Callable[[Array], Array]:
        """Gradient from all rows at ``theta (C, P)``, valid until the next call."""
        return self.posterior.bind_grad(self.group)

    @cached_property
    def density_of(self) -> Callable[[BasePosterior], Callable[[Array], Array]]:
        """Function of a posterior: its log density ``(C,)``, a function of ``theta (C, P)``."""
        return cache(lambda other: other.bind_log_density(self.group))

    @cached_property
    def with_density_of(
        self,
    ) -> Callable[[BasePosterior], Callable[[Array], tuple[Array, Array]]]:
        """Function of a posterior: a log density ``(C,)``, and the gradient from all rows.

        The density is that of the other posterior, which may be exact where the gradient is in
        single precision. Both are functions of ``theta (C, P)``, valid until the next call.
        """
        return cache(lambda other: other.bind_value_and_grad(self.posterior, self.group))

    def prepare(self, idx: Array) -> Sequence[Any]:
        """Batches of the rows ``idx (T, C, B)``, one for each step, valid until the next call."""
        return [None] * len(idx)

    def batches(self, idx: Array) -> Iterator[Any]:
        """Batches of the rows ``idx (T, C, B)``, gathered for as many steps as fit in the cache."""
        most = max(1, _GATHERED_NUMBERS // (idx[0].size * self.posterior.n_params))
        for first in range(0, len(idx), most):
            yield from self.prepare(idx[first : first + most])

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Score that each row adds to the estimate, in its local parameters ``(C, n_local, B)``."""
        raise NotImplementedError

    def bind_move(self, metric: Metric) -> Callable[[Array, Any, float], Array] | None:
        """Function ``(theta, batch, eta)`` for a move under a metric, if one costs less.

        It returns ``theta + eta G g`` as a new array. None: the gradient is computed.
        """
        return None

    def begin(self, theta: Array) -> State:
        """Arrays that the estimator keeps for each chain between steps, chains first."""
        return {}

    def __call__(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """Estimate of the gradient at ``theta (C, P)``.

        ``memory`` has the arrays of :meth:`begin`, and is updated. Without it the estimate is that
        of a chain that begins at the centre.
        """
        return self.full(theta)


@dataclass
class Dynamics:
    """Everything a step needs except the state.

    Attributes
    ----------
    gradient : BoundGradient
    metric : Metric
        Metric of the steps: the run's preconditioner, bound to the posterior.
    clip : Clip or None
    temperature : float or ndarray
        One number, or one for each step in ``prepare``, or one for each chain in ``step``.
    clipped : ndarray of shape (C,)
        Number of gradients of each chain that the clip has changed.
    density_of : BasePosterior or None
        Posterior whose density accepts or rejects proposals; None if it is the gradient's.
    center : ndarray of shape (P,) or None
        Centre of the normal distribution whose covariance is the metric.
    rounded : bool
        Whether trajectories are computed in single precision; their ends are not.
    whitened : WhitenedPosterior or None
        Posterior in the coordinates of the metric about the centre; trajectories follow it in place
        of the gradient.
    n_walkers : int
        Number of neighbouring positions that are walkers of one chain.
    curvature : float or None
        Mean curvature of the log posterior in the coordinates of the metric, over parameters and
        posterior: about 1 in the metric of the mode's curvature. None in other metrics, and with a
        clip.
    """

    gradient: BoundGradient
    metric: Metric
    clip: Clip | None = None
    temperature: float | Array = 1.0
    clipped: Array | int = 0
    density_of: BasePosterior | None = None
    center: Array | None = None
    rounded: bool = False
    whitened: WhitenedPosterior | None = None
    n_walkers: int = 1
    curvature: float | None = None

    @property
    def n_together(self) -> int:
        """Number of neighbouring positions that belong together: one matrix product takes them.

        In products of another size sums would be rounded differently, and draws would change.
        """
        rows = self.whitened
        return self.n_walkers if rows is None else lcm(self.n_walkers, rows.group)

    def in_groups_of(self, size: int | None, n_sharing: int = 1) -> Dynamics:
        """Dynamics whose matrix products take ``size`` positions at once, or all if it is None.

        ``n_sharing`` neighbouring positions share each batch.
        """
        return replace(
            self,
            gradient=replace(self.gradient, group=size, n_sharing=n_sharing),
            metric=self.metric.in_groups_of(size),
        )

    def for_walkers(self, n_walkers: int, share: bool = False) -> Dynamics:
        """Dynamics of chains of ``n_walkers`` neighbouring positions, which may share batches."""
        if n_walkers == 1:
            return self
        grouped = self.in_groups_of(n_walkers, n_walkers if share else 1)
        return replace(grouped, n_walkers=n_walkers)

    def for_chains(self, some: slice) -> Dynamics:
        """Dynamics of some of the chains; each chain may have its own metric and clip."""
        clip = None if self.clip is None else self.clip.for_chains(some)
        return replace(self, metric=self.metric.for_chains(some), clip=clip)

    def with_curvature(self, measured: float) -> Dynamics:
        """Dynamics with the mean curvature that a pilot measured, if it is of use."""
        return self if self.curvature is None else replace(self, curvature=measured)

    def for_thread(self) -> Dynamics:
        """Copy for one run in one thread, which counts clipped gradients from zero."""
        return replace(self, clipped=0, gradient=replace(self.gradient))

    def _clip_and_count(self, grad: Array) -> Array:
        if self.clip is None:
            return grad
        grad, fired = self.clip(grad)
        self.clipped = self.clipped + fired
        return grad

    def gradient_at(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """``clip(g)`` at ``theta (C, P)``; ``memory`` is the state of the chains."""
        return self._clip_and_count(self.gradient(theta, batch, memory))

    def drift(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """``G clip(g)`` at ``theta (C, P)``, which must not be changed."""
        return self.metric.scale(self.gradient_at(theta, batch, memory))

    def force(self, state: State, batch: Any) -> Array:
        """``R^T clip(g)`` at the chains, ``G = R R^T``: the gradient in whitened coordinates."""
        return self.metric.sqrt_t(self.gradient_at(state["theta"], batch, state))

    def move(self, state: State, batch: Any, eta: float) -> Array:
        """``theta + eta G clip(g)``, a new array."""
        theta = state["theta"]
        if self._own_move is not None:
            return self._own_move(theta, batch, eta)
        move = self.drift(theta, batch, state) * eta
        move += theta
        return move

    @cached_property
    def _own_move(self) -> Callable[[Array, Any, float], Array] | None:
        return None if self.clip is not None else self.gradient.bind_move(self.metric)

    def log_density_at(self, theta: Array) -> Array:
        """Log density ``(C,)`` from all rows."""
        return self.gradient.density_of(self.posterior)(theta)

    def value_and_gradient_at(self, theta: Array) -> tuple[Array, Array]:
        """Log density ``(C,)`` and ``clip(g)``, both from all rows."""
        value, grad = self.gradient.with_density_of(self.posterior)(theta)
        return value, self._clip_and_count(grad)

    @property
    def posterior(self) -> BasePosterior:
        """Posterior whose density accepts or rejects proposals."""
        return self.density_of or self.gradient.posterior

    @cached_property
    def facts(self) -> Facts:
        """Facts about that posterior."""
        return self.posterior.facts
