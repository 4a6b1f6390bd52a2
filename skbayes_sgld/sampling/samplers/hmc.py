"""Hamiltonian Monte Carlo, and Metropolis-adjusted Langevin, its shortest trajectory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from skbayes_sgld._components import check_number
from skbayes_sgld.sampling.protocol import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.metropolis import Adjusted

_MAX_LEAPFROG = 50  # steps: beyond, a trajectory is cut short
_SLACK = 0.15  # of a step, by which the path's last may fall short
_JITTER = 0.2  # of the step, either way: no trajectory is a whole period every time


def follow(
    place: Array, momentum: Array, step: Array, n_steps: int, dynamics: Dynamics, turns: bool
) -> tuple[Array, Array, Array, Array]:
    """Follow Hamilton's equations in whitened coordinates by steps of leapfrog (Neal 2011, 5.2.3).

    The coordinates are z, ``theta = center + R z``. A step kicks the momentum by half of the
    force, drifts, and kicks again. Where trajectories turn, the standard normal distribution's
    share of the force is followed exactly, by a rotation of position and momentum, and a kick is
    of what is left of it: a posterior that is nearly normal leaves little, and steps are the
    longer (Shahbaba, Lan, Johnson & Neal 2014, Section 3).

    Parameters
    ----------
    place : ndarray of shape (C, 2, P)
        Position z and the gradient of the log density there, ``R^T g``.
    momentum : ndarray of shape (C, P)
    step : ndarray of shape (C,)
    n_steps : int
    dynamics : Dynamics
    turns : bool

    Returns
    -------
    theta : ndarray of shape (C, P)
        Where the trajectories end.
    value : ndarray of shape (C,)
        The log density there.
    place : ndarray of shape (C, 2, P)
    kinetic : ndarray of shape (C,)
        Kinetic energy there.
    """
    metric, center = dynamics.preconditioner, dynamics.center
    # position, force and momentum: a step is a linear map of the three
    now = np.concatenate([place, momentum[:, None]], axis=1)
    half, whole = _steps(step, turns)
    for left in range(n_steps, 0, -1):
        now[:, ::2] = (half if left == n_steps else whole) @ now
        theta = metric.sqrt(now[:, 0])
        if center is not None:
            theta += center
        if left > 1:
            grad = dynamics.gradient_at(theta, None)
        else:
            value, grad = dynamics.value_and_gradient_at(theta)
        now[:, 1] = metric.sqrt_t(grad)
    end = now[:, 2] + 0.5 * step[:, None] * (now[:, 0] + now[:, 1] if turns else now[:, 1])
    return theta, value, now[:, :2], 0.5 * np.einsum("cp,cp->c", end, end)


def _steps(step: Array, turns: bool) -> tuple[Array, Array]:
    """Maps ``(C, 2, 3)`` of position, force and momentum to the next position and momentum.

    The first begins with half a kick, the second with a whole one.
    """
    maps = np.empty((2, len(step), 2, 3))
    if turns:
        cos, sin = np.cos(step), np.sin(step)
    else:
        cos, sin = np.ones_like(step), step
    for of_kick, out in zip((0.5 * step, step), maps, strict=True):
        out[:, 0, 0], out[:, 0, 1], out[:, 0, 2] = cos, sin * of_kick, sin
        out[:, 1, 0], out[:, 1, 1], out[:, 1, 2] = 0.0, of_kick, 1.0
        if turns:
            out[:, 0, 0] += sin * of_kick
            out[:, 1] = cos[:, None] * out[:, 1]
            out[:, 1, 0] = of_kick * cos - sin
    return maps[0], maps[1]


def transition_acceptance(theta: Array, eta: float, dynamics: Dynamics) -> float:
    """Mean Metropolis acceptance of one Euler step of size eta from ``theta (C, P)``."""
    z = np.random.default_rng(0).standard_normal(theta.shape)
    momentum = np.sqrt(dynamics.temperature) * z
    step = np.full(len(theta), np.sqrt(2.0 * eta))
    with np.errstate(all="ignore"):
        value, place = _place(theta, dynamics)
        _, new_value, _, kinetic = follow(place, momentum, step, 1, dynamics, False)
        gain = 0.5 * np.einsum("cp,cp->c", momentum, momentum) - kinetic
        log_ratio = (new_value - value + gain) / dynamics.temperature
    return float(np.mean(np.exp(np.minimum(np.nan_to_num(log_ratio, nan=-np.inf), 0.0))))


def _place(theta: Array, dynamics: Dynamics) -> tuple[Array, Array]:
    """Log density ``(C,)``, and whitened position and gradient ``(C, 2, P)``."""
    value, grad = dynamics.value_and_gradient_at(theta)
    metric = dynamics.preconditioner
    shifted = theta if dynamics.center is None else theta - dynamics.center
    return value, np.stack([metric.whiten(shifted), metric.sqrt_t(grad)], axis=1)


class Trajectories(Adjusted):
    """A sampler whose proposals are the ends of trajectories."""

    turns = False  # where the posterior has light tails and its centre is known: see `follow`

    def init(self, theta: Array, noise: Array | None) -> State:
        """State: that of every adjusted sampler, with whitened positions and gradients."""
        state = super().init(theta, noise)
        return state | {"place": np.zeros((len(theta), 2, theta.shape[1]))}

    def evaluate(self, theta: Array, dynamics: Dynamics) -> State:
        """Log density, and whitened position and gradient."""
        value, place = _place(theta, dynamics)
        return {"value": value, "place": place}

    def prepare(
        self, state: State, normals: Array | None, eta: Array, dynamics: Dynamics
    ) -> Array | None:
        """Each trajectory's momentum, the log of a uniform number, and a jitter."""
        assert normals is not None
        # a temperature for all steps, or one each
        heat = np.reshape(np.sqrt(dynamics.temperature), (-1, 1, 1))
        own = normals.shape[-1] - self.extra_normals
        noise = np.empty_like(normals)
        np.multiply(normals[..., :own], heat, out=noise[..., :own])
        noise[..., own] = log_ndtr(normals[..., own])
        noise[..., own + 1 :] = 1.0 + _JITTER * (2.0 * ndtr(normals[..., own + 1 :]) - 1.0)
        return noise

    def trajectory(self, eta: float, jitter: Array) -> tuple[Array, int]:
        """Size of each chain's leapfrog steps, and their number."""
        raise NotImplementedError

    def pace(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Size of a leapfrog step, and the number of trajectories to an independent draw."""
        step = step or 1.0 / np.sqrt(rates[-1])
        reach = step * self.trajectory(step, np.ones((1, 1)))[1] * np.sqrt(rates[0])
        return step, max(1.0, 2.0 / reach**2)

    def gradients(self, step: float) -> int:
        """Leapfrog steps of a trajectory."""
        return self.trajectory(step, np.ones((1, 1)))[1]

    def propose(
        self, state: State, eta: np.floating, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """Follow a trajectory to its end."""
        C, P = state["theta"].shape
        momentum = noise[:, :P]
        step, n_steps = self.trajectory(float(eta), noise[:, P + 1 :])
        turns = self.turns and dynamics.center is not None and dynamics.posterior.light_tailed
        end = follow(state["place"], momentum, step, n_steps, dynamics, turns)
        theta, value, place, kinetic = end
        gain = 0.5 * np.einsum("cp,cp->c", momentum, momentum) - kinetic
        log_ratio = value - state["value"] + gain
        return {"theta": theta, "value": value, "place": place}, log_ratio


@dataclass(eq=False, repr=False)
class HMC(Trajectories):
    """Hamiltonian Monte Carlo: trajectories that are accepted or rejected as a whole.

    A trajectory starts with a momentum from ``N(0, tau)`` in whitened coordinates, takes leapfrog
    steps of ``step_size`` and ends in a proposal that is accepted with probability
    ``min(1, exp(-dH / tau))`` (Duane, Kennedy, Pendleton & Roweth 1987; Neal 2011, Section 5.3). It
    is exact for any step size, and needs the gradient from all rows.

    Under a normal prior, and in the metric of the curvature, a trajectory follows the normal
    approximation of the posterior exactly, and leapfrog steps take what is left (Shahbaba, Lan,
    Johnson & Neal 2014).

    Parameters
    ----------
    path_length : float, default=1.7
        The time that a trajectory takes, in units of the preconditioned space. A quarter of a
        period, pi / 2, leads to an independent point of a normal distribution in the curvature's
        metric; a little more makes up for the trajectories that are rejected. The number of
        leapfrog steps is this over the step size, rounded; each trajectory's step is jittered by
        up to 20 %, so that none comes back to its start every time.
    target_acceptance : float, default=0.8
        The acceptance that ``step_size="auto"`` aims at by dual averaging (Hoffman & Gelman 2014,
        Section 3.2). The draws a gradient vary little between 0.65 and 0.9; more acceptances are
        more draws from as many trajectories.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.sampling import HMC
    >>> SGLDLogisticRegression(sampler=HMC(path_length=2.0))
    SGLDLogisticRegression(sampler=HMC(path_length=2.0))
    """

    path_length: float = 1.7
    target_acceptance: float = 0.8

    largest_step = 0.6  # longer ones reject most of what comes from the tails
    extra_normals = 2  # to accept or reject, and for the jitter
    turns = True

    def check(self) -> None:
        """Raise where the path has no length or the target acceptance is not a probability."""
        super().check()
        check_number(self.path_length, "sampler.path_length", low=0)

    def whole_steps(self, step: float) -> float:
        """Size of the fewest steps that make up a path, and hardly exceed ``step``."""
        return self.path_length / np.ceil(self.path_length / step - _SLACK)

    def trajectory(self, eta: float, jitter: Array) -> tuple[Array, int]:
        """Jittered step sizes, and the number of steps of a path."""
        return eta * jitter[:, 0], int(np.clip(round(self.path_length / eta), 1, _MAX_LEAPFROG))


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

    def trajectory(self, eta: float, jitter: Array) -> tuple[Array, int]:
        """A single step, of ``sqrt(2 eta)``."""
        return np.full(len(jitter), np.sqrt(2.0 * eta)), 1
