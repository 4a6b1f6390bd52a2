"""Hamiltonian Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from skbayes_sgld._checks import check_number
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.hamiltonian import Hamiltonian, kinetic

_SLACK = 0.15  # share of a step by which the last of a path may fall short
_JITTER = 0.2  # of the step, either way: no trajectory is a whole period every time
_SHORT_SHARE, _SHORT = 0.125, 0.25  # share of short trajectories, and their step over the others'
_ORIGIN = "theta", "value", "z", "force"  # entries of the state where a trajectory begins


@dataclass(eq=False, repr=False)
class HMC(Hamiltonian):
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
    rotates = True

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

    def init(self, theta: Array) -> State:
        """State; with several points a trajectory, also its origin and how far it has come."""
        state = super().init(theta)
        if self.n_points > 1:
            zero = np.zeros_like(theta)
            way = {"way_z": zero, "way_force": zero, "way_momentum": zero}
            origin = {f"origin_{name}": state[name] for name in _ORIGIN}
            state |= way | origin | {"energy": state["value"], "point": np.zeros(len(theta), int)}
        return state

    def propose(
        self, state: State, eta: float, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """End of a trajectory, or its next point, which is accepted or else the origin."""
        if self.n_points == 1:
            return super().propose(state, eta, noise, dynamics)
        if state["point"].any():
            state.update({name: state[f"origin_{name}"] for name in _ORIGIN})
        else:  # a trajectory begins where the last one has ended
            momentum = noise[:, :-2]
            state.update({f"origin_{name}": state[name] for name in _ORIGIN})
            state.update(way_z=state["z"], way_force=state["force"], way_momentum=momentum)
            state["energy"] = state["value"] - kinetic(momentum)
        state["point"] = (state["point"] + 1) % self.n_points
        way = state["way_z"], state["way_momentum"], state["way_force"]
        proposal, end = self._travel(*way, eta, noise, dynamics)
        state.update(way_z=proposal["z"], way_force=proposal["force"], way_momentum=end)
        return proposal, proposal["value"] - kinetic(end) - state["energy"]

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
