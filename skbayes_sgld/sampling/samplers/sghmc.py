"""Stochastic gradient Hamiltonian Monte Carlo, and the base of samplers with a velocity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._checks import check_number
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.sgld import check_integrator


class Underdamped(Sampler):
    """A sampler whose chains have a velocity, in the preconditioned coordinates."""

    friction: float

    @property
    def _injected(self) -> float:
        """Variance of a step's noise, divided by eta tau."""
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

    def step_and_time(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """A step of 0.1 in the steepest direction, and the number that the slowest needs."""
        step = step or 0.1 / rates[-1]
        return step, 2.0 * max(1.0 / self.friction, self.friction / (step * rates[0]))

    def _move(self, state: State, velocity: Array, dynamics: Dynamics) -> None:
        state["velocity"] = velocity
        state["theta"] = state["theta"] + dynamics.metric.sqrt(velocity)


@dataclass(eq=False, repr=False)
class SGHMC(Underdamped):
    r"""Stochastic gradient Hamiltonian Monte Carlo (Chen, Fox & Guestrin 2014, eq. 15).

    One step, with friction a, in the preconditioned coordinates :math:`\theta = G^{1/2} u`, is

    .. math:: v \leftarrow (1 - a)\, v + \eta\, g + \sqrt{2 a \eta \tau}\, \xi, \quad
        u \leftarrow u + v.

    With ``friction=1`` it is SGLD's Euler step. On a normal target of precision lambda its
    variance is too large by ``1 / (1 - eta lambda / (2 (2 - a)))``, since its positions are an
    AR(2) process. A small friction averages over the noise of minibatches.

    With ``integrator="leimkuhler_matthews"`` the velocity is refreshed in the middle of the move
    (Leimkuhler & Matthews 2013, "BAOAB"), also with one gradient per step::

        v <- v + eta g
        u <- u + v / 2,   v <- (1 - a) v + sqrt(a (2 - a) eta tau) noise,   u <- u + v / 2

    On a normal target its positions have the target's variance at any step size below 4. With
    ``friction=1`` it is the integrator of the same name of
    :class:`~skbayes_sgld.sampling.SGLD`, at half the step size.

    Parameters
    ----------
    friction : float, default=0.2
        Share of the velocity that a chain loses at each step: alpha of the paper.
    integrator : {"euler", "leimkuhler_matthews"}, default="euler"
        ``"euler"`` is the paper's recursion.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.sampling import SGHMC
    >>> SGLDLogisticRegression(sampler=SGHMC(friction=0.1))
    SGLDLogisticRegression(sampler=SGHMC(friction=0.1))
    """

    friction: float = 0.2
    integrator: str = "euler"

    def check(self) -> None:
        """Raise if the friction or the integrator is out of range."""
        super().check()
        check_integrator(self.integrator)

    @property
    def _splits(self) -> bool:
        return self.integrator == "leimkuhler_matthews"

    @property
    def _injected(self) -> float:
        """Variance of a step's noise, divided by eta tau."""
        return self.friction * (2.0 - self.friction if self._splits else 2.0)

    @property
    def noise_gain(self) -> float:  # type: ignore[override]
        """Ratio of SGLD's injected variance to this sampler's: about one over the friction."""
        return 2.0 / self._injected

    def gaussian_inflation(self, eta: float) -> float:
        """Variance of the chain over the target's, on a normal target of precision 1."""
        return 1.0 if self._splits else 1.0 / (1.0 - eta / (2.0 * (2.0 - self.friction)))

    def step(self, state: State, eta: float, noise: Array, batch: Any, dynamics: Dynamics) -> None:
        """Advance velocity and position."""
        if self._splits:
            velocity = state["velocity"] + eta * dynamics.force(state, batch)
            state["velocity"] = (1.0 - self.friction) * velocity + noise
            move = 0.5 * (velocity + state["velocity"])
            state["theta"] = state["theta"] + dynamics.metric.sqrt(move)
            return
        velocity = (1.0 - self.friction) * state["velocity"]
        velocity += eta * dynamics.force(state, batch)
        velocity += noise
        self._move(state, velocity, dynamics)
