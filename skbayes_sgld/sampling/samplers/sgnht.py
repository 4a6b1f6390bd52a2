"""The stochastic gradient Nose-Hoover thermostat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._checks import check_number
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.sghmc import Underdamped


@dataclass(eq=False, repr=False)
class SGNHT(Underdamped):
    r"""Stochastic gradient Nose-Hoover thermostat (Ding et al. 2014, Algorithm 2).

    The friction :math:`\xi` of each chain is part of its state. It grows while the kinetic energy
    is above that of the temperature, and so removes the heat of gradient noise of any size. With
    standard normal noise :math:`\epsilon` one step is

    .. math:: v \leftarrow (1 - \xi)\, v + \eta\, g + \sqrt{2 A \eta \tau}\, \epsilon, \quad
        u \leftarrow u + v, \quad
        \xi \leftarrow \xi + \frac{|v|^2 / P - \eta \tau}{\mu}.

    On a normal target the thermostat holds ``E v^2 = eta tau``. The variance of u is then
    ``(1 - xi / 2)`` times the target's, with xi near A: the bias is small if A is.

    The paper's mu is 1. The friction then varies about A with the sd ``sqrt(eta tau / P)``. In
    few dimensions this takes it far below 0, where it accelerates the chain, and beyond 2, where
    steps are unstable. An inertia mu of the thermostat (Leimkuhler & Shang 2016) divides that sd
    by ``sqrt(mu)``, and does not change the distribution of u and v.

    Parameters
    ----------
    friction : float, default=0.05
        A: the friction that balances the injected noise if gradients have none.
    inertia : float > 0 or None, default=None
        mu. None is ``max(1, 4 eta tau / (P A^2))``, the smallest at which the friction's sd is at
        most half of A; with hundreds of parameters that is the paper's 1.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.sampling import SGNHT
    >>> SGLDLogisticRegression(sampler=SGNHT(friction=0.1))
    SGLDLogisticRegression(sampler=SGNHT(friction=0.1))
    """

    friction: float = 0.05
    inertia: float | None = None

    noise_gain = 0.0  # the thermostat removes minibatch noise

    def gaussian_inflation(self, eta: float) -> float:
        """Variance of the chain over the target's, on a normal target of precision 1."""
        # 4 A = xi (2 (2 - xi) - eta), from E v^2 = eta tau and the AR(2) variance
        xi = 0.25 * (4.0 - eta - np.sqrt(np.square(4.0 - eta) - 32.0 * self.friction))
        return float(1.0 - 0.5 * xi)

    def check(self) -> None:
        """Raise if the friction or the inertia is out of range."""
        check_number(self.friction, "sampler.friction", low=1e-3, high=0.4, closed="left")
        if self.inertia is not None:
            # with a smaller inertia the friction oscillates: draws take thousands of steps
            check_number(self.inertia, "sampler.inertia", low=0.1, closed="left")

    def init(self, theta: Array) -> State:
        """State: positions at rest, and the friction that balances the injected noise."""
        friction = np.full(theta.shape[0], self.friction)
        return super().init(theta) | {"friction": friction}

    def step(self, state: State, eta: float, noise: Array, batch: Any, dynamics: Dynamics) -> None:
        """Advance velocity, position and friction."""
        velocity = (1.0 - state["friction"])[:, None] * state["velocity"]
        velocity += eta * dynamics.force(state, batch)
        velocity += noise
        self._move(state, velocity, dynamics)
        P, target = velocity.shape[1], eta * dynamics.temperature
        energy = np.einsum("cp,cp->c", velocity, velocity) / P
        inertia = self.inertia or np.maximum(1.0, 4.0 * target / (P * self.friction**2))
        state["friction"] = state["friction"] + (energy - target) / inertia
