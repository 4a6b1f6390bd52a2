"""What every algorithm of the package is written against: State, Dynamics, Sampler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import Component
from skbayes_sgld.posterior.base import BasePosterior, require
from skbayes_sgld.sampling.clipping import Clip
from skbayes_sgld.sampling.gradients import BoundGradient
from skbayes_sgld.sampling.preconditioners.metric import Metric

Array = NDArray[Any]

State = dict[str, Array]
"""What the next step needs: ``theta (C, P)`` and an algorithm's own arrays, chains first."""


@dataclass
class Dynamics:
    """What moves the chains: gradient, its bound, the metric and the temperature.

    ``target``, if given, is the posterior whose density accepts or rejects; trajectories may
    follow the gradient of another.
    """

    gradient: BoundGradient
    preconditioner: Metric
    clip: Clip | None = None
    temperature: Any = 1.0  # a number; to `prepare` also one a step, to `step` one a chain
    clipped: Array | int = 0
    target: BasePosterior | None = None

    def gradient_at(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """Return ``clip(g)`` at ``theta (C, P)``, counting the chains that were clipped.

        ``memory`` is the chains' state, where the gradient keeps what it remembers.
        """
        grad = self.gradient(theta, batch, memory)
        if self.clip is not None:
            grad, fired = self.clip(grad)
            self.clipped = self.clipped + fired
        return grad

    def value_and_gradient_at(self, theta: Array) -> tuple[Array, Array]:
        """Return the log density ``(C,)`` and ``clip(g)``, both from all rows."""
        if self.target is None:
            value, grad = self.gradient.posterior.value_and_grad(theta)
        else:
            value, grad = self.target.log_density(theta), self.gradient(theta, None)
        if self.clip is not None:
            grad, fired = self.clip(grad)
            self.clipped = self.clipped + fired
        return value, grad

    def value_at(self, theta: Array) -> Array:
        """Return the log density ``(C,)``."""
        return (self.target or self.gradient.posterior).log_density(theta)

    def drift(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """Return ``G clip(g)`` at ``theta (C, P)``."""
        return self.preconditioner.scale(self.gradient_at(theta, batch, memory))


class Algorithm(Component):
    """What advances all chains by one step at a time: a sampler or an optimiser.

    ``init`` makes the state, ``prepare`` turns the normals of many steps into what the steps
    add, ``step`` makes one step.
    """

    uses_noise = True
    full_gradient = False
    extra_normals = 0  # that a step takes besides one a parameter
    requires: tuple[str, ...] = ()  # abilities of the posterior, see posterior.protocol.ABILITIES
    remedy = "choose another sampler"  # where it has not got them, for the error

    def n_normals(self, n_params: int) -> int:
        """Return how many standard normals a step takes."""
        return n_params + self.extra_normals

    def init(self, theta: Array, noise: Array | None) -> State:
        """Return the state at ``theta (C, P)``; ``noise (C, P)`` is each chain's first."""
        return {"theta": theta}

    def prepare(
        self, state: State, normals: Array | None, eta: Array, dynamics: Dynamics
    ) -> Array | None:
        """Return the noise that each step adds ``(T, C, P)``, for ``normals (T, C, P)``."""
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
    require(posterior, algorithm.requires, f"{argument}={algorithm!r}", algorithm.remedy)
    if algorithm.full_gradient and batch_size is not None:
        raise ValueError(
            f"{argument}={algorithm!r} needs the gradient from all rows at every step; set "
            "gradient='full' and batch_size='auto'."
        )


class Sampler(Algorithm):
    """An algorithm whose positions are draws."""

    adjusted = False  # by acceptance and rejection: exact for any step size
    noise_gain = 1.0  # what a minibatch's noise counts for beside the injected, over SGLD's

    def speed(self, rate: float) -> float:
        """Return what a step of size 1 moves by of the way to the mode, at this curvature."""
        return rate

    def pace(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Return a step size, and how many steps it takes to an independent draw.

        They suit a normal law whose curvatures in the preconditioned space are ``rates``,
        ascending; ``step``, if given, is the step size.
        """
        step = step or 0.5 / self.speed(rates[-1])
        return step, 2.0 / (step * self.speed(rates[0]))

    def gradients(self, step: float) -> int:
        """Return how many gradients a step of this size takes."""
        return 1

    def settle(self, state: State, temperature: float) -> None:
        """Bring what the state remembers to where it is after long on a standard normal target.

        A pilot measures chains that have forgotten their start; what a sampler learns on the way
        (a metric, say) would be wrong for longer than a pilot runs. There is nothing to do, the
        default, where the state holds positions only or forgets as fast as they do.
        """

    def gaussian_inflation(self, eta: float) -> float | None:
        """Return the chain's variance over the target's, on a normal target of precision 1.

        None, the default, has it measured by running the sampler on such a target; a closed form
        is exact, and costs nothing. An adjusted sampler's is 1.
        """
        return 1.0 if self.adjusted else None
