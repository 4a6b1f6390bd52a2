"""Interfaces of the algorithms: gradients and their dynamics, Algorithm and Sampler.

A gradient is bound to a posterior first; the bound estimator gathers the rows of many steps at
once (``prepare``) and is then called once a step. All gradient estimators are unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from math import lcm
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import Component, check_flag
from skbayes_sgld.posterior.base import BasePosterior, require
from skbayes_sgld.posterior.boundary import as_posterior
from skbayes_sgld.posterior.protocol import Expansion, Posterior
from skbayes_sgld.posterior.whitening import WhitenedPosterior
from skbayes_sgld.sampling.clipping import Clip
from skbayes_sgld.sampling.preconditioners.metric import Metric

Array = NDArray[Any]

State = dict[str, Array]
"""State of the chains: ``theta (C, P)`` and an algorithm's own arrays, chains first."""

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
        for ability in self.requires:
            require(posterior, ability, "gradient", self, self.remedy)
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

    def __call__(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
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


@dataclass
class Dynamics:
    """Gradient, its bound, metric and temperature: all that a step needs beside the state.

    ``target``, if given, is the posterior whose density accepts or rejects; trajectories may
    follow the gradient of another. ``center`` is that of the normal distribution whose
    covariance the metric is, where it is meant to be one; ``rounded`` says that single precision
    is enough for what drives a trajectory; ``bound_drift``, in a run, is :meth:`drift` where its
    linear part is known as a matrix. ``whitened``, if given, is the target in the coordinates of
    the metric about the centre, which trajectories follow in place of the gradient. ``group`` is
    the number of neighbouring positions that are walkers of one chain.
    """

    gradient: BoundGradient
    preconditioner: Metric
    clip: Clip | None = None
    temperature: float | Array = 1.0  # one a step in `prepare`, one a chain in `step`
    clipped: Array | int = 0
    target: BasePosterior | None = None
    center: Array | None = None
    rounded: bool = False
    bound_drift: Callable[[Array, Any], Array] | None = None
    whitened: WhitenedPosterior | None = None
    group: int = 1

    @property
    def whole(self) -> int:
        """Neighbouring positions that processes share as a whole, or bits would differ."""
        return self.group if self.whitened is None else lcm(self.group, self.whitened.group)

    def of_walkers(self, n_walkers: int) -> Dynamics:
        """Dynamics of chains of ``n_walkers`` neighbouring positions each.

        Products with all rows take the positions of a chain together.
        """
        if n_walkers == 1:
            return self
        target = None if self.target is None else self.target.in_groups_of(n_walkers)
        gradient = self.gradient.in_groups_of(n_walkers)
        metric = self.preconditioner.in_groups_of(n_walkers)
        return replace(
            self, gradient=gradient, preconditioner=metric, target=target, group=n_walkers
        )

    def of_chains(self, some: slice) -> Dynamics:
        """Dynamics of some of the chains: each may have a metric and a bound of its own."""
        clip = None if self.clip is None else self.clip.of_chains(some)
        return replace(self, preconditioner=self.preconditioner.of_chains(some), clip=clip)

    def gradient_at(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """``clip(g)`` at ``theta (C, P)``; the chains whose gradient was clipped are counted.

        ``memory`` is the chains' state, where the gradient keeps what it remembers.
        """
        grad = self.gradient(theta, batch, memory)
        if self.clip is not None:
            grad, fired = self.clip(grad)
            self.clipped = self.clipped + fired
        return grad

    def value_and_gradient_at(self, theta: Array) -> tuple[Array, Array]:
        """Log density ``(C,)`` and ``clip(g)``, both from all rows."""
        value, grad = self.gradient.value_and_full(theta, self.target)
        if self.clip is not None:
            grad, fired = self.clip(grad)
            self.clipped = self.clipped + fired
        return value, grad

    @property
    def posterior(self) -> BasePosterior:
        """Posterior whose density accepts or rejects."""
        return self.target or self.gradient.posterior

    def value_at(self, theta: Array) -> Array:
        """Log density ``(C,)``."""
        return self.posterior.log_density(theta)

    def of_run(self) -> Dynamics:
        """Copy for one run in one thread, with what does not depend on theta settled."""
        gradient = self.gradient.of_run()
        drift = gradient.bind_drift(self.preconditioner) if self.clip is None else None
        return replace(self, clipped=0, gradient=gradient, bound_drift=drift)

    def drift(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """``G clip(g)`` at ``theta (C, P)``."""
        if self.bound_drift is not None:
            return self.bound_drift(theta, batch)
        return self.preconditioner.scale(self.gradient_at(theta, batch, memory))


class Algorithm(Component):
    """Rule that advances all chains by one step at a time: a sampler or an optimizer.

    ``init`` makes the state, ``prepare`` turns the normals of many steps into the noise that
    they add, ``step`` makes one step.
    """

    uses_noise = True
    full_gradient = False
    extra_normals = 0  # that a step takes besides one a parameter
    requires: tuple[str, ...] = ()  # abilities of the posterior, see posterior.protocol.ABILITIES
    remedy = "choose another sampler"  # of a posterior that lacks them, for the error

    def n_normals(self, n_params: int) -> int:
        """Standard normals that a step takes."""
        return n_params + self.extra_normals

    def init(self, theta: Array, noise: Array | None) -> State:
        """State at ``theta (C, P)``; ``noise`` holds each chain's first standard normals."""
        return {"theta": theta}

    def prepare(
        self, state: State, normals: Array | None, eta: Array, dynamics: Dynamics
    ) -> Array | None:
        """Noise that each step adds ``(T, C, P)``, made of ``normals (T, C, P)``."""
        return None

    def advance(
        self, state: State, eta: Array, noise: Array | None, dynamics: Dynamics
    ) -> Array | None:
        """Positions ``(T, C, P)`` after every step of a block, on all rows.

        None where :meth:`step` is to make the steps one by one. The state stays as it was.
        """
        return None

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Advance the state by one step of size eta."""
        raise NotImplementedError


def check_requirements(
    algorithm: Algorithm, posterior: BasePosterior, batch_size: int | None
) -> None:
    """Raise where an algorithm cannot run on a posterior, or on minibatches of its rows.

    Parameters
    ----------
    algorithm : Algorithm
        Declares ``requires`` and ``full_gradient``.
    posterior : BasePosterior
    batch_size : int or None
        None where every step takes all rows.

    Raises
    ------
    TypeError
        When the posterior lacks an ability.
    ValueError
        When the algorithm needs the gradient from all rows, and has that of a batch.
    """
    argument = "sampler" if isinstance(algorithm, Sampler) else "optimizer"
    for ability in algorithm.requires:
        require(posterior, ability, argument, algorithm, algorithm.remedy)
    if algorithm.full_gradient and batch_size is not None:
        raise ValueError(
            f"{argument}={algorithm!r} needs the gradient from all rows at every step; set "
            "gradient='full' and batch_size='auto'."
        )


class Sampler(Algorithm):
    """An algorithm whose positions are draws."""

    adjusted = False  # by accepting or rejecting, and so exact at any step size
    separate = False  # whether, in a diagonal metric, coordinates move each by its own gradient
    noise_gain = 1.0  # weight of minibatch noise beside the injected noise, relative to SGLD's

    def speed(self, rate: float) -> float:
        """Share of the way to the mode that a step of size 1 makes, at this curvature."""
        return rate

    def pace(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Step size, and the number of steps to an independent draw.

        They suit a normal distribution whose curvatures in the preconditioned space are ``rates``,
        ascending; ``step``, if given, is the step size.
        """
        step = step or 0.5 / self.speed(rates[-1])
        return step, 2.0 / (step * self.speed(rates[0]))

    def gradients(self, step: float) -> int:
        """Gradients that a step of this size takes."""
        return 1

    def settle(self, state: State, temperature: float) -> None:
        """Bring what the state remembers to where it is after long on a standard normal target.

        A pilot measures chains that have forgotten their start; what a sampler learns on the way
        (a metric, say) would be wrong for longer than a pilot runs. There is nothing to do, the
        default, where the state holds positions only or forgets as fast as they do.
        """

    def gaussian_inflation(self, eta: float) -> float | None:
        """Variance of the chain over the target's, on a normal target of precision 1.

        None, the default, has it measured by running the sampler on such a target; a closed form
        is exact, and costs nothing. An adjusted sampler's is 1.
        """
        return 1.0 if self.adjusted else None
