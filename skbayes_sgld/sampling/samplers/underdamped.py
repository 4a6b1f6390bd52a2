"""Underdamped dynamics: samplers whose velocity is a part of their state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._components import check_number
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.protocol import Sampler


class _Underdamped(Sampler):
    """A sampler that moves by a velocity; it is kept in the preconditioned coordinates."""

    friction: float

    @property
    def _injected(self) -> float:
        """Variance of the noise of a step, over eta tau."""
        return 2.0 * self.friction

    def check(self) -> None:
        """Raise where the friction is not in [0.001, 1]."""
        # draws apart by 2 / friction steps are needed
        check_number(self.friction, "sampler.friction", low=1e-3, high=1, closed="both")

    def init(self, theta: Array, noise: Array | None) -> State:
        """State: positions, at rest."""
        return {"theta": theta, "velocity": np.zeros_like(theta)}

    def prepare(
        self, state: State, normals: Array | None, eta: Array, dynamics: Dynamics
    ) -> Array | None:
        """``sqrt(2 friction eta tau) noise`` of every step."""
        assert normals is not None
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


@dataclass(eq=False, repr=False)
class SGHMC(_Underdamped):
    """Stochastic gradient Hamiltonian Monte Carlo (Chen, Fox & Guestrin 2014, eq. 15).

    One step, with friction a, in the preconditioned coordinates ``theta = G^{1/2} u``::

        v <- (1 - a) v + eta g + sqrt(2 a eta tau) noise
        u <- u + v

    With ``friction=1`` it is SGLD's Euler step. On a normal target of precision lambda its
    variance is too large by ``1 / (1 - eta lambda / (2 (2 - a)))``: the variance of the AR(2)
    process that its positions are. A small friction averages over the noise of minibatches.

    With ``integrator="leimkuhler_matthews"`` the velocity is refreshed in the middle of the move
    (Leimkuhler & Matthews 2013, "BAOAB"), at the cost of one gradient too::

        v <- v + eta g
        u <- u + v / 2,   v <- (1 - a) v + sqrt(a (2 - a) eta tau) noise,   u <- u + v / 2

    On a normal target its positions have the target's variance whatever the step size below 4;
    with ``friction=1`` it is the integrator of that name of
    :class:`~skbayes_sgld.sampling.SGLD`, at half of the step size.

    Parameters
    ----------
    friction : float, default=0.2
        The share of its velocity that a chain loses at each step: alpha of the paper.
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
        """Raise where the friction or the integrator is out of range."""
        super().check()
        if self.integrator not in ("euler", "leimkuhler_matthews"):
            raise ValueError(
                f"sampler.integrator={self.integrator!r} is not known; choose one of 'euler', "
                "'leimkuhler_matthews'."
            )

    @property
    def _splits(self) -> bool:
        return self.integrator == "leimkuhler_matthews"

    @property
    def _injected(self) -> float:
        """Variance of the noise of a step, over eta tau."""
        return self.friction * (2.0 - self.friction if self._splits else 2.0)

    @property
    def noise_gain(self) -> float:  # type: ignore[override]
        """SGLD's injected variance over the one here: about one over the friction."""
        return 2.0 / self._injected

    def gaussian_inflation(self, eta: float) -> float:
        """Variance of the chain over the target's, on a normal target of precision 1."""
        return 1.0 if self._splits else 1.0 / (1.0 - eta / (2.0 * (2.0 - self.friction)))

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Advance velocity and position."""
        assert noise is not None
        if self._splits:
            velocity = state["velocity"] + eta * self._force(state, batch, dynamics)
            state["velocity"] = (1.0 - self.friction) * velocity + noise
            move = 0.5 * (velocity + state["velocity"])
            state["theta"] = state["theta"] + dynamics.preconditioner.sqrt(move)
            return
        velocity = (1.0 - self.friction) * state["velocity"]
        velocity += eta * self._force(state, batch, dynamics)
        velocity += noise
        self._move(state, velocity, dynamics)


@dataclass(eq=False, repr=False)
class SGNHT(_Underdamped):
    """Stochastic gradient Nose-Hoover thermostat (Ding et al. 2014, Algorithm 2).

    The friction xi of each chain is a part of its state: it grows where the kinetic energy is
    above the temperature's, so that noise of unknown size in the gradient is cooled away::

        v <- (1 - xi) v + eta g + sqrt(2 A eta tau) noise
        u <- u + v
        xi <- xi + (|v|^2 / P - eta tau) / mu

    On a normal target the thermostat holds ``E v^2 = eta tau``, and the variance is then
    ``(1 - xi / 2)`` times the target's, with xi near A: small where A is.

    The paper's mu is 1. The friction then varies about A with the sd ``sqrt(eta tau / P)``, which
    in few dimensions takes it far below 0, where it drives the chain, and beyond 2, where a step
    is unstable. An inertia mu of the thermostat (Leimkuhler & Shang 2016) divides that sd
    by its root and leaves the distribution of u and v as it is.

    Parameters
    ----------
    friction : float, default=0.05
        A, the friction that balances the injected noise alone.
    inertia : float > 0 or None, default=None
        mu. None is ``max(1, 4 eta tau / (P A^2))``, the least at which the friction's sd is half
        of A: the paper's where there are hundreds of parameters.

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
        """Raise where the friction or the inertia is out of range."""
        check_number(self.friction, "sampler.friction", low=1e-3, high=0.4, closed="left")
        if self.inertia is not None:
            # with less the friction swings, and draws apart take thousands of steps
            check_number(self.inertia, "sampler.inertia", low=0.1, closed="left")

    def init(self, theta: Array, noise: Array | None) -> State:
        """State: positions at rest, and the friction that balances the injected noise."""
        friction = np.full(theta.shape[0], self.friction)
        return super().init(theta, noise) | {"friction": friction}

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Advance velocity, position and friction."""
        assert noise is not None
        velocity = (1.0 - state["friction"])[:, None] * state["velocity"]
        velocity += eta * self._force(state, batch, dynamics)
        velocity += noise
        self._move(state, velocity, dynamics)
        P, wanted = velocity.shape[1], eta * dynamics.temperature
        energy = np.einsum("cp,cp->c", velocity, velocity) / P
        inertia = self.inertia or np.maximum(1.0, 4.0 * wanted / (P * self.friction**2))
        state["friction"] = state["friction"] + (energy - wanted) / inertia
