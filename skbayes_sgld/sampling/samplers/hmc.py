"""Hamiltonian Monte Carlo, and Metropolis-adjusted Langevin, its shortest trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import eval_legendre, log_ndtr, ndtr, roots_jacobi

from skbayes_sgld._components import check_number
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.metropolis import Adjusted

_SLACK = 0.15  # of a step, by which the path's last may fall short
_JITTER = 0.2  # of the step, either way: no trajectory is a whole period every time
_SHORT_SHARE, _SHORT = 0.125, 0.25  # of the trajectories, and what their step is multiplied by
# Of the way from kicks at equal distances to those of Gauss-Lobatto quadrature: 0, 0.2, 0.35 and
# 0.5 of it accept 0.79, 0.83, 0.85 and 0.85 of the trajectories of three steps of 325 parameters
# (digits), and 0.80, 0.80, 0.80 and 0.79 of six near the walls of 31 (breast cancer, prior sd 10)
_TOWARDS_LOBATTO = 0.35
_ORIGIN = "theta", "value", "place"  # of the state, where a trajectory begins


def follow(
    place: Array, momentum: Array, maps: Array, n_steps: int, dynamics: Dynamics
) -> tuple[Array, Array, Array, Array]:
    """Follow Hamilton's equations in whitened coordinates by steps of leapfrog (Neal 2011, 5.2.3).

    The coordinates are z, ``theta = center + R z``. Each step is a linear map of position, force
    and momentum, see :func:`leapfrog_maps`.

    Parameters
    ----------
    place : ndarray of shape (C, 2, P)
        Position z and the gradient of the log density there, ``R^T g``.
    momentum : ndarray of shape (C, P)
    maps : ndarray of shape (C, n_maps, 2, 3)
        Of the steps, one after the other, and of the end. Where they are fewer, the last of the
        steps' is that of all further steps; where they are more, the rest of them are not used.
    n_steps : int
    dynamics : Dynamics

    Returns
    -------
    theta : ndarray of shape (C, P)
        Where the trajectories end.
    value : ndarray of shape (C,)
        The log density there.
    place : ndarray of shape (C, 2, P)
    momentum : ndarray of shape (C, P)
    """
    metric, center = dynamics.preconditioner, dynamics.center
    # what drives a trajectory may be rounded; where it ends is as exact as its density
    on_the_way = metric.rounded() if dynamics.rounded else metric
    now: Array = np.empty((len(place), 3, place.shape[2]), on_the_way.dtype)
    now[:, :2], now[:, 2] = place, momentum
    z, force, moved = now[:, 0], now[:, 1], now[:, ::2]
    *steps, last = maps.astype(now.dtype, copy=False).swapaxes(0, 1)
    steps += steps[-1:] * n_steps
    near = None if center is None else center.astype(now.dtype, copy=False)
    for step in steps[: n_steps - 1]:
        moved[...] = step @ now
        if dynamics.whitened is not None:
            force[...] = dynamics.whitened.grad(z)
            continue
        theta = on_the_way.sqrt(z)
        if near is not None:
            theta += near
        force[...] = on_the_way.sqrt_t(dynamics.gradient_at(theta, None))
    moved[...] = steps[n_steps - 1] @ now
    theta = metric.sqrt(z.astype(float, copy=False))
    if center is not None:
        theta += center
    value, force[...] = _value_and_force(z, theta, dynamics)
    end = (last[:, 1:] @ now)[:, 0]
    return theta, value, now[:, :2].astype(float, copy=False), end.astype(float, copy=False)


def follow_rows(
    place: Array, momentum: Array, maps: Array, n_steps: int, dynamics: Dynamics
) -> tuple[Array, Array, Array, Array]:
    """:func:`follow` along whitened rows, by steps that drift, kick and drift.

    Where rows bound their predictors as walls do, errors of the energy are smaller than those of
    steps that kick first, and more trajectories are accepted. A force is taken in the middle of a
    step, and none at the end.
    """
    rows = dynamics.whitened
    assert rows is not None
    z, moving = rows.travel(place[:, 0], momentum, maps, n_steps)
    place = np.stack([z, np.zeros_like(z)], axis=1)
    return rows.locate(z), rows.log_density(z), place, moving


@cache
def kicks_and_drifts(n_steps: int) -> Array:
    """Kicks before the drifts of a trajectory, and drifts ``(2, n_steps + 1)``, in steps.

    Kicks along a rotation, which is followed exactly, add up an integral: to first order in how far
    the posterior is from normal, the energy's error is that of a quadrature. Gauss-Lobatto has next
    to none; errors of second order are least where distances are equal.
    """
    inner = roots_jacobi(n_steps - 1, 1.0, 1.0)[0] if n_steps > 1 else np.empty(0)
    at = np.concatenate([[-1.0], inner, [1.0]])
    kicks = 1.0 / ((n_steps + 1) * eval_legendre(n_steps, at) ** 2)
    drifts = np.append(0.5 * n_steps * np.diff(at), 0.0)
    equal = np.ones((2, n_steps + 1))
    equal[0, [0, -1]], equal[1, -1] = 0.5, 0.0
    return equal + _TOWARDS_LOBATTO * (np.stack([kicks, drifts]) - equal)


def leapfrog_maps(
    step: Array, turns: bool, drifts_first: bool = False, parts: Array | None = None
) -> Array:
    """Linear maps ``(..., n, 2, 3)`` of position, force and momentum to position and momentum.

    A step of leapfrog kicks the momentum by half of the force, drifts, and kicks again; the kicks
    of neighbours are one. The first map begins with half a kick, the second with a whole one, and
    the third is half a kick alone. Steps that drift first have half a drift at either end instead,
    and whole kicks between drifts. Other kicks and the drifts after them, in steps, are
    ``parts (2, n)``, or ``(2, n, ..., 1)`` where they differ.

    Where trajectories turn, the standard normal distribution's share of the force is followed
    exactly, by a rotation of position and momentum, and a kick is of what is left of it: a
    posterior that is nearly normal leaves little, and steps are the longer (Shahbaba, Lan, Johnson
    & Neal 2014, Section 3).
    """
    if parts is None:
        parts = np.array([[0.5, 1.0, 0.5], [1.0, 1.0, 0.0]])
        if drifts_first:
            parts = np.array([[0.0, 1.0, 1.0], [0.5, 1.0, 0.5]])
    maps = np.zeros((*step.shape, parts.shape[1], 2, 3))
    for place, (kick, drift) in enumerate(zip(*parts, strict=True)):
        of_step = maps[..., place, :, :]
        of_step[..., 1, 1] = kick * step
        of_step[..., 1, 2] = of_step[..., 0, 0] = 1.0
        if turns:
            of_step[..., 1, 0] = kick * step
        if np.any(drift):
            z, p, moved = of_step[..., 0, :].copy(), of_step[..., 1, :].copy(), drift * step
            cos, sin = (np.cos(moved), np.sin(moved)) if turns else (np.ones_like(step), moved)
            of_step[..., 0, :] = cos[..., None] * z + sin[..., None] * p
            of_step[..., 1, :] = cos[..., None] * p - turns * sin[..., None] * z
    return maps


def transition_acceptance(theta: Array, eta: float, dynamics: Dynamics) -> float:
    """Mean Metropolis acceptance of one Euler step of size eta from ``theta (C, P)``."""
    z = np.random.default_rng(0).standard_normal(theta.shape)
    momentum = np.sqrt(dynamics.temperature) * z
    maps = leapfrog_maps(np.full(len(theta), np.sqrt(2.0 * eta)), turns=False)
    with np.errstate(all="ignore"):
        value, place = _place(theta, dynamics)
        _, new_value, _, end = follow(place, momentum, maps, 1, dynamics)
        gain = new_value - value + _kinetic(momentum) - _kinetic(end)
        log_ratio = gain / dynamics.temperature
    return float(np.mean(np.exp(np.minimum(np.nan_to_num(log_ratio, nan=-np.inf), 0.0))))


def _kinetic(momentum: Array) -> Array:
    """Kinetic energy ``(C,)``."""
    return 0.5 * np.einsum("cp,cp->c", momentum, momentum)


def _place(theta: Array, dynamics: Dynamics) -> tuple[Array, Array]:
    """Log density ``(C,)``, and whitened position and gradient ``(C, 2, P)``."""
    shifted = theta if dynamics.center is None else theta - dynamics.center
    z = dynamics.preconditioner.whiten(shifted)
    value, force = _value_and_force(z, theta, dynamics)
    return value, np.stack([z, force], axis=1)


def _value_and_force(z: Array, theta: Array, dynamics: Dynamics) -> tuple[Array, Array]:
    """Log density ``(C,)`` and its gradient in z ``(C, P)``."""
    if dynamics.whitened is not None:
        return dynamics.whitened.value_and_grad(z)
    value, grad = dynamics.value_and_gradient_at(theta)
    metric = dynamics.preconditioner
    return value, (metric.rounded() if dynamics.rounded else metric).sqrt_t(grad)


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
        """Each trajectory's momentum, the log of a uniform number, and its maps."""
        assert normals is not None
        # a temperature for all steps, or one each
        heat = np.reshape(np.sqrt(dynamics.temperature), (-1, 1, 1))
        P = normals.shape[-1] - self.extra_normals
        turns = self.turns and dynamics.center is not None and dynamics.posterior.light_tailed
        walls = not dynamics.posterior.bounded_curvature
        steps = self.steps(eta[:, None], normals[..., P + 1 :], walls)
        along_rows = self._along_rows(dynamics)
        parts = self._parts(eta) if turns and not along_rows else None
        maps = leapfrog_maps(steps, turns, along_rows, parts)
        maps = maps.reshape(*maps.shape[:2], -1)
        heated = normals[..., :P] * heat
        return np.concatenate([heated, log_ndtr(normals[..., P : P + 1]), maps], axis=-1)

    def _parts(self, eta: Array) -> Array:
        """Kicks and drifts ``(2, n, T, 1)`` of trajectories, as many as the longest has."""
        found = [kicks_and_drifts(self.gradients(float(size))) for size in eta]
        parts = np.zeros((2, max(each.shape[1] for each in found), len(eta), 1))
        for t, each in enumerate(found):
            n = each.shape[1] - 1
            parts[:, :n, t, 0], parts[:, -1, t, 0] = each[:, :n], each[:, -1]
        return parts

    def _along_rows(self, dynamics: Dynamics) -> bool:
        """Whether trajectories are those of :func:`follow_rows`."""
        return self.turns and dynamics.whitened is not None

    def steps(self, eta: Array, normals: Array, walls: bool = False) -> Array:
        """Size of each chain's leapfrog steps ``(T, C)``; ``eta (T, 1)``.

        Where a density may fall off as walls do, some should be so short that chains leave these.
        """
        raise NotImplementedError

    def pace(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Size of a leapfrog step, and the number of trajectories to an independent draw."""
        step = step or 1.0 / np.sqrt(rates[-1])
        reach = step * self.gradients(step) * np.sqrt(rates[0])
        return step, max(1.0, 2.0 / reach**2)

    def gradients(self, step: float) -> int:
        """Leapfrog steps of a trajectory."""
        return 1

    def propose(
        self, state: State, eta: np.floating, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """Follow a trajectory to its end."""
        momentum = noise[:, : state["theta"].shape[1]]
        proposal, end = self._travel(state["place"], momentum, eta, noise, dynamics)
        return proposal, proposal["value"] - state["value"] + _kinetic(momentum) - _kinetic(end)

    def _travel(
        self, place: Array, momentum: Array, eta: np.floating, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """State and momentum where a trajectory ends."""
        C, P = momentum.shape
        maps, n_steps = noise[:, P + 1 :].reshape(C, -1, 2, 3), self.gradients(float(eta))
        path = follow_rows if self._along_rows(dynamics) else follow
        theta, value, place, end = path(place, momentum, maps, n_steps, dynamics)
        return {"theta": theta, "value": value, "place": place}, end


@dataclass(eq=False, repr=False)
class HMC(Trajectories):
    """Hamiltonian Monte Carlo: trajectories that are accepted or rejected as a whole.

    A trajectory starts with a momentum from ``N(0, tau)`` in whitened coordinates, takes leapfrog
    steps of ``step_size`` and ends in a proposal that is accepted with probability
    ``min(1, exp(-dH / tau))`` (Duane, Kennedy, Pendleton & Roweth 1987; Neal 2011, Section 5.3). It
    is exact for any step size, and needs the gradient from all rows.

    Under a normal prior, and in the metric of the curvature, a trajectory follows the normal
    approximation of the posterior exactly, and leapfrog steps take what is left (Shahbaba, Lan,
    Johnson & Neal 2014); kicks at unequal distances keep the energy better than equal ones.

    Parameters
    ----------
    path_length : float, default=1.8
        The time that a trajectory takes, in units of the preconditioned space. A quarter of a
        period, pi / 2, leads to an independent point of a normal distribution in the curvature's
        metric; a little more makes up for the trajectories that are rejected. The number of
        leapfrog steps is this over the step size, rounded; each trajectory's step is jittered by
        up to 20 %, so that none comes back to its start every time. Of counts, and of noise that
        is inferred, the steps of every eighth trajectory are a quarter as long: their densities
        have walls, at which a chain would reject whatever is longer.
    target_acceptance : float, default=0.85
        The acceptance that ``step_size="auto"`` aims at by dual averaging (Hoffman & Gelman 2014,
        Section 3.2). The draws a gradient vary little between 0.65 and 0.9; more acceptances are
        more draws from as many trajectories.
    n_points : int, default=1
        The draws that a trajectory gives, at ends of equal parts of it, each accepted or rejected
        by itself (Nishimura & Dunson 2020, Algorithm 1). One draw of a whole trajectory is worth
        more than each of several, which cost a part of it: more points suit trajectories of many
        steps, where fewer of them are enough. A step of the chain is a part of a trajectory.
    step_range : float, default=1.0
        Above 1, the steps of half of the trajectories are shorter, by up to this factor, uniformly
        in its logarithm. A posterior with narrow parts needs them to leave these (Neal 2011,
        Section 5.4.2.2); ``sampler="auto"`` takes 64 where a pilot finds such parts.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.sampling import HMC
    >>> SGLDLogisticRegression(sampler=HMC(path_length=2.0))
    SGLDLogisticRegression(sampler=HMC(path_length=2.0))
    """

    path_length: float = 1.8
    target_acceptance: float = 0.85
    n_points: int = 1
    step_range: float = 1.0

    most_steps = 50  # of leapfrog: beyond, a trajectory is cut short
    largest_step = 0.6  # longer ones reject most of what comes from the tails
    extra_normals = 2  # to accept or reject, and for the jitter
    turns = True

    def check(self) -> None:
        """Raise where path, target acceptance or number of points is out of range."""
        super().check()
        check_number(self.path_length, "sampler.path_length", low=0)
        check_number(self.n_points, "sampler.n_points", low=1, closed="left", integer=True)
        check_number(self.step_range, "sampler.step_range", low=1, closed="left")

    def whole_steps(self, step: float) -> float:
        """Size of the fewest steps that make up a path, and hardly exceed ``step``."""
        part = self.path_length / self.n_points
        return part / max(np.ceil(part / step - _SLACK), 1.0)

    def gradients(self, step: float) -> int:
        """Leapfrog steps from point to point."""
        length = self.path_length / self.n_points / float(step)  # infinite for the least of numbers
        return max(round(min(length, self.most_steps)), 1)

    def pace(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Size of a leapfrog step, and the number of points to an independent draw."""
        step = step or 1.0 / np.sqrt(rates[-1])
        reach = step * self.gradients(step) * self.n_points * np.sqrt(rates[0])
        return step, self.n_points * max(1.0, 2.0 / reach**2)

    def init(self, theta: Array, noise: Array | None) -> State:
        """State: with several points, also the origin of the trajectory and where it is."""
        state = super().init(theta, noise)
        if self.n_points > 1:
            origin = {f"origin_{name}": state[name] for name in _ORIGIN}
            numbers = {"energy": state["value"], "passed": np.zeros(len(theta), dtype=int)}
            state |= origin | numbers | {"way": state["place"], "momentum": np.zeros_like(theta)}
        return state

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Go on to the next point, which is accepted, or else the trajectory's origin is."""
        if self.n_points > 1:
            assert noise is not None
            self._resume(state, noise, dynamics)
        super().step(state, eta, noise, batch, dynamics)

    def _resume(self, state: State, noise: Array, dynamics: Dynamics) -> None:
        """Bring the state back to the origin, or where a trajectory has ended start from there."""
        if np.isnan(state["value"]).any():
            state.update(self.evaluate(state["theta"], dynamics))
        if state["passed"].any():
            state.update({name: state[f"origin_{name}"] for name in _ORIGIN})
        else:
            momentum = noise[:, : state["theta"].shape[1]]
            energy = state["value"] - _kinetic(momentum)
            state.update({f"origin_{name}": state[name] for name in _ORIGIN})
            state.update(way=state["place"], momentum=momentum, energy=energy)
        state["passed"] = (state["passed"] + 1) % self.n_points

    def propose(
        self, state: State, eta: np.floating, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """Follow a trajectory to its end, or on to its next point."""
        if self.n_points == 1:
            return super().propose(state, eta, noise, dynamics)
        way, momentum = state["way"], state["momentum"]
        proposal, end = self._travel(way, momentum, eta, noise, dynamics)
        state.update(way=proposal["place"], momentum=end)
        return proposal, proposal["value"] - _kinetic(end) - state["energy"]

    def steps(self, eta: Array, normals: Array, walls: bool = False) -> Array:
        """Jittered step sizes; near walls every eighth on average is a quarter as long.

        Without the short ones a walker may stand still there, as with few rows of counts.
        With a range half of them are within it.
        """
        uniform = ndtr(normals[..., 0])
        if self.step_range > 1.0:
            twice = 2.0 * uniform
            eta = np.where(twice < 1.0, eta * self.step_range ** -np.minimum(twice, 1.0), eta)
            uniform = np.where(twice < 1.0, 0.5, twice - 1.0)
        elif walls:
            short = uniform < _SHORT_SHARE
            eta = np.where(short, _SHORT * eta, eta)
            rest = (uniform - _SHORT_SHARE) / (1.0 - _SHORT_SHARE)
            uniform = np.where(short, uniform / _SHORT_SHARE, rest)
        return eta * (1.0 + _JITTER * (2.0 * uniform - 1.0))


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

    def steps(self, eta: Array, normals: Array, walls: bool = False) -> Array:
        """Steps of ``sqrt(2 eta)``."""
        return np.broadcast_to(np.sqrt(2.0 * eta), normals.shape[:2])
