"""Hamiltonian Monte Carlo, and Metropolis-adjusted Langevin, its shortest trajectory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from skbayes_sgld._components import check_number
from skbayes_sgld.sampling.protocol import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.metropolis import Adjusted

_MAX_LEAPFROG = 50  # steps: beyond, a trajectory is cut short
_JITTER = 0.2  # of the step, either way: no trajectory is a whole period every time


def leapfrog(
    theta: Array,
    grad: Array,
    velocity: Array,
    step: float | Array,
    n_steps: int,
    dynamics: Dynamics,
) -> tuple[Array, Array, Array, Array]:
    """Follow Hamilton's equations in the metric G, by leapfrog steps (Neal 2011, eq. 2.28-2.30).

    Parameters
    ----------
    theta, grad, velocity : ndarray of shape (C, P)
        Position, gradient of the log density there, and velocity ``G p``.
    step : float or ndarray of shape (C, 1)
    n_steps : int
    dynamics : Dynamics

    Returns
    -------
    theta : ndarray of shape (C, P)
        Where the trajectories end.
    value : ndarray of shape (C,)
        The log density there.
    grad : ndarray of shape (C, P)
    work : ndarray of shape (C,)
        Gain of kinetic energy, summed over the kicks, so that no ``G^{-1}`` is needed.
    """
    work = np.zeros(len(theta))
    kick = 0.5 * step
    for left in range(n_steps, 0, -1):
        velocity, gain = _push(velocity, grad, kick, dynamics)
        work = work + gain
        kick = step  # neighbouring half kicks are one
        theta = theta + step * velocity
        if left > 1:
            grad = dynamics.gradient_at(theta, None)
    value, grad = dynamics.value_and_gradient_at(theta)
    return theta, value, grad, work + _push(velocity, grad, 0.5 * step, dynamics)[1]


def _push(
    velocity: Array, grad: Array, kick: float | Array, dynamics: Dynamics
) -> tuple[Array, Array]:
    """Velocity after a kick, and the kinetic energy that the kick added."""
    push = kick * dynamics.preconditioner.scale(grad)
    return velocity + push, np.einsum("cp,cp->c", kick * grad, velocity + 0.5 * push)


def transition_acceptance(theta: Array, eta: float, dynamics: Dynamics) -> float:
    """Mean Metropolis acceptance of one Euler step of size eta from ``theta (C, P)``."""
    z = np.random.default_rng(0).standard_normal(theta.shape)
    velocity = np.sqrt(dynamics.temperature) * dynamics.preconditioner.sqrt(z)
    with np.errstate(all="ignore"):
        value, grad = dynamics.value_and_gradient_at(theta)
        end = leapfrog(theta, grad, velocity, np.sqrt(2.0 * eta), 1, dynamics)
        log_ratio = (end[1] - value - end[3]) / dynamics.temperature
    return float(np.mean(np.exp(np.minimum(np.nan_to_num(log_ratio, nan=-np.inf), 0.0))))


class Trajectories(Adjusted):
    """A sampler whose proposals are the ends of trajectories."""

    def prepare(
        self, state: State, normals: Array | None, eta: Array, dynamics: Dynamics
    ) -> Array | None:
        """Each trajectory's velocity, the log of a uniform number, and a jitter."""
        assert normals is not None
        own = normals.shape[-1] - self.extra_normals
        jitter = 1.0 + _JITTER * (2.0 * ndtr(normals[..., own + 1 :]) - 1.0)
        moves = super().prepare(state, normals[..., : own + 1], eta, dynamics)
        return np.concatenate([moves, jitter], axis=-1)

    def trajectory(self, eta: float, jitter: Array) -> tuple[float | Array, int]:
        """Size of each chain's leapfrog steps, and their number."""
        raise NotImplementedError

    def pace(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Size of a leapfrog step, and the number of trajectories to an independent draw."""
        step = step or 1.0 / np.sqrt(rates[-1])
        reach = step * self.trajectory(step, np.ones(1))[1] * np.sqrt(rates[0])
        return step, max(1.0, 2.0 / reach**2)

    def gradients(self, step: float) -> int:
        """Leapfrog steps of a trajectory."""
        return self.trajectory(step, np.ones(1))[1]

    def propose(
        self, state: State, eta: np.floating, noise: Array, dynamics: Dynamics
    ) -> tuple[Array, Array, Array, Array]:
        """Follow a trajectory to its end."""
        theta, value, grad = state["theta"], state["value"], state["grad"]
        P = theta.shape[1]
        step, n_steps = self.trajectory(float(eta), noise[:, P + 1 :])
        end = leapfrog(theta, grad, noise[:, :P], step, n_steps, dynamics)
        proposal, new_value, new_grad, work = end
        return proposal, new_value, new_grad, new_value - value - work


@dataclass(eq=False, repr=False)
class HMC(Trajectories):
    """Hamiltonian Monte Carlo: trajectories that are accepted or rejected as a whole.

    A trajectory starts with a velocity from ``N(0, tau G)``, takes leapfrog steps of ``step_size``
    and ends in a proposal that is accepted with probability ``min(1, exp(-dH / tau))`` (Duane,
    Kennedy, Pendleton & Roweth 1987; Neal 2011, Section 5.3). It is exact for any step size, and
    needs the gradient from all rows.

    Parameters
    ----------
    path_length : float, default=pi / 2
        The time that a trajectory takes, in units of the preconditioned space: a quarter of a
        period leads to an independent point of a normal distribution in the curvature's metric.
        The number of leapfrog steps is this over the step size, rounded; each trajectory's step
        is jittered by up to 20 %, so that none comes back to its start every time.
    target_acceptance : float, default=0.7
        The acceptance that ``step_size="auto"`` aims at by dual averaging (Hoffman & Gelman 2014,
        Section 3.2). In many dimensions 0.65 is optimal (Beskos et al. 2013), in few more.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.sampling import HMC
    >>> SGLDLogisticRegression(sampler=HMC(path_length=2.0))
    SGLDLogisticRegression(sampler=HMC(path_length=2.0))
    """

    path_length: float = np.pi / 2
    target_acceptance: float = 0.7

    largest_step = np.pi / 2
    extra_normals = 2  # to accept or reject, and for the jitter

    def check(self) -> None:
        """Raise where the path has no length or the target acceptance is not a probability."""
        super().check()
        check_number(self.path_length, "sampler.path_length", low=0)

    def trajectory(self, eta: float, jitter: Array) -> tuple[float | Array, int]:
        """Jittered step sizes ``(C, 1)``, and the number of steps of a path."""
        return eta * jitter, int(np.clip(round(self.path_length / eta), 1, _MAX_LEAPFROG))


@dataclass(eq=False, repr=False)
class MALA(Trajectories):
    """The Metropolis-adjusted Langevin algorithm: each Euler step is accepted or rejected.

    ``step_size`` is that of :class:`SGLD`; a step is one leapfrog step of ``sqrt(2 step_size)``
    (Roberts & Tweedie 1996, Section 1.4.1; Neal 2011, Section 5.5.2).

    Parameters
    ----------
    target_acceptance : float, default=0.574
        Of Roberts & Rosenthal 1998, optimal in many dimensions.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(sampler="mala")
    SGLDLogisticRegression(sampler='mala')
    """

    target_acceptance: float = 0.574
    extra_normals = 1

    def pace(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Step size and time of SGLD."""
        step = step or 0.5 / rates[-1]
        return step, 2.0 / (step * rates[0])

    def trajectory(self, eta: float, jitter: Array) -> tuple[float | Array, int]:
        """A single step, of ``sqrt(2 eta)``."""
        return np.sqrt(2.0 * eta), 1
