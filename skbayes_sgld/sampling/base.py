"""What every algorithm of the package is written against: State, Dynamics, Sampler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import Component
from skbayes_sgld.sampling.clipping import Clip
from skbayes_sgld.sampling.gradients import BoundGradient
from skbayes_sgld.sampling.metric import Metric

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
    temperature: float = 1.0
    clipped: Array | int = 0
    target: Any = None

    def gradient_at(self, theta: Array, batch: Any) -> Array:
        """Return ``clip(g)`` at ``theta (C, P)``, counting the chains that were clipped."""
        grad = self.gradient(theta, batch)
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

    def drift(self, theta: Array, batch: Any) -> Array:
        """Return ``G clip(g)`` at ``theta (C, P)``."""
        return self.preconditioner.scale(self.gradient_at(theta, batch))


class Algorithm(Component):
    """What advances all chains by one step at a time: a sampler or an optimiser.

    ``init`` makes the state, ``prepare`` turns the normals of many steps into what the steps
    add, ``step`` makes one step. A state's arrays are replaced, never written into.
    """

    uses_noise = True
    full_gradient = False
    extra_normals = 0  # a step takes besides one a parameter
    requires: tuple[str, ...] = ()  # what the posterior must offer beyond the protocol

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


class Sampler(Algorithm):
    """An algorithm whose positions are draws."""

    adjusted = False  # by acceptance and rejection: exact for any step size

    def candidates(self, full_gradient: bool) -> list[Sampler]:
        """Return the samplers that this one stands for, the first choice first."""
        return [self]

    def gaussian_inflation(self, eta: float) -> float:
        """Return the chain's variance over the target's, on a normal target of precision 1."""
        return 1.0
