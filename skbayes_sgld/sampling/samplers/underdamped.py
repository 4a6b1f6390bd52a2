"""Base of samplers with a velocity: SGHMC and SGNHT."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld._checks import check_number
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State


class Underdamped(Sampler):
    """A sampler whose chains have a velocity, in the preconditioned coordinates."""

    friction: float

    @property
    def _injected(self) -> float:
        """Variance of the noise of a step, over eta tau."""
        return 2.0 * self.friction

    def check(self) -> None:
        """Raise unless 0.001 <= friction <= 1: draws take 2 / friction steps to be independent."""
        check_number(self.friction, "sampler.friction", low=1e-3, high=1, closed="both")

    def init(self, theta: Array) -> State:
        """State: positions, at rest."""
        return {"theta": theta, "velocity": np.zeros_like(theta)}

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """``sqrt(2 friction eta tau) noise`` of every step."""
        scale = np.sqrt(self._injected * dynamics.temperature * eta)
        return normals * scale[:, None, None]

    def pace(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """A step of 0.1 in the steepest direction, and the time of the slowest direction."""
        step = step or 0.1 / rates[-1]
        return step, 2.0 * max(1.0 / self.friction, self.friction / (step * rates[0]))

    def _force(self, state: State, batch: Any, dynamics: Dynamics) -> Array:
        return dynamics.preconditioner.sqrt_t(dynamics.gradient_at(state["theta"], batch, state))

    def _move(self, state: State, velocity: Array, dynamics: Dynamics) -> None:
        state["velocity"] = velocity
        state["theta"] = state["theta"] + dynamics.preconditioner.sqrt(velocity)
