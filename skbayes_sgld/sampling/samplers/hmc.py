"""Hamiltonian Monte Carlo: trajectories, the samplers that propose their ends, and HMC itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import eval_legendre, log_ndtr, ndtr, roots_jacobi

from skbayes_sgld._checks import check_number
from skbayes_sgld.posterior.whitening import WhitenedPosterior
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.metric import Metric
from skbayes_sgld.sampling.samplers.metropolis import Adjusted

# Share of Gauss-Lobatto quadrature in the kicks: 0, 0.2, 0.35 and 0.5 accept 0.79, 0.83, 0.85 and
# 0.85 of the trajectories of three steps of 325 parameters (digits), and 0.80, 0.80, 0.80 and 0.79
# of six near the walls of 31 (breast cancer, prior sd 10)
_LOBATTO = 0.35
_ORIGIN = "theta", "value", "z", "force"  # entries of the state where a trajectory begins


def leapfrog(
    z: Array,
    momentum: Array,
    force: Array | None,
    step: Array,
    parts: Array,
    gradient: Callable[[Array], Array],
    rotates: bool = False,
) -> tuple[Array, Array]:
    """Follow Hamilton's equations by steps of leapfrog (Neal 2011, Section 5.2.3).

    Where trajectories rotate, the force ``-z`` of the standard normal distribution is followed
    exactly, by a rotation of position and momentum, and kicks are of the rest of the force. A
    posterior that is nearly normal leaves little of it, and steps are longer (Shahbaba, Lan,
    Johnson & Neal 2014, Section 3).

    Parameters
    ----------
    z, momentum : ndarray of shape (C, P)
    force : ndarray of shape (C, P) or None
        Gradient of the log density at z; not used where the first kick is 0.
    step : ndarray of shape (C, 1)
        Size of the steps of each chain.
    parts : ndarray of shape (2, n)
        Kicks, and the drifts after them, in steps. The gradient is taken between a drift and the
        next kick.
    gradient : callable
        Gradient of the log density at ``z (C, P)``.
    rotates : bool

    Returns
    -------
    z, momentum : ndarray of shape (C, P)
    """
    angles = parts[1].astype(z.dtype)[:, None, None] * step
    drifts = [np.cos(angles), np.sin(angles)] if rotates else [angles]
    # repeated per parameter: of few parameters broadcasting takes twice as long
    step, *drifts = (np.repeat(each, z.shape[1], axis=-1) for each in (step, *drifts))
    # kicks as Python's numbers, which leave single precision as it is
    for k, (kick, drift) in enumerate(parts.T.tolist()):
        if k:
            force = gradient(z)
        if kick and force is not None:
            momentum = kicked(momentum, z, force, kick * step, rotates)
        if drift and rotates:
            cos, sin = (each[k] for each in drifts)
            z, momentum = cos * z + sin * momentum, cos * momentum - sin * z
        elif drift:
            z = z + drifts[0][k] * momentum
    return z, momentum


def kicked(momentum: Array, z: Array, force: Array, step: Array, rotates: bool) -> Array:
    """Momentum after a kick of so many steps by the force, or what a rotation leaves of it."""
    push = step * (force + z) if rotates else step * force
    push += momentum
    return push


def equal_kicks(n_steps: int, drifts_first: bool = False) -> Array:
    """Kicks and drifts ``(2, n_steps + 1)`` of plain leapfrog, in steps."""
    parts = np.ones((2, n_steps + 1))
    if drifts_first:
        parts[0, 0], parts[1, [0, -1]] = 0.0, 0.5
    else:
        parts[0, [0, -1]], parts[1, -1] = 0.5, 0.0
    return parts


@cache
def unequal_kicks(n_steps: int) -> Array:
    """Kicks and drifts ``(2, n_steps + 1)`` between those of leapfrog and of a quadrature.

    Kicks along a rotation, which is followed exactly, add up an integral: to first order in the
    posterior's distance from a normal one, the energy's error is that of a quadrature.
    Gauss-Lobatto has next to none; errors of second order are least where distances are equal.
    """
    inner = roots_jacobi(n_steps - 1, 1.0, 1.0)[0] if n_steps > 1 else np.empty(0)
    at = np.concatenate([[-1.0], inner, [1.0]])
    kicks = 1.0 / ((n_steps + 1) * eval_legendre(n_steps, at) ** 2)
    drifts = np.append(0.5 * n_steps * np.diff(at), 0.0)
    equal = equal_kicks(n_steps)
    return equal + _LOBATTO * (np.stack([kicks, drifts]) - equal)


def kinetic(momentum: Array) -> Array:
    """Kinetic energy ``(C,)``."""
    return 0.5 * np.vecdot(momentum, momentum)


class Hamiltonian(Adjusted):
    """A sampler that proposes the ends of trajectories, in the coordinates of the metric.

    With z these coordinates, ``theta = center + R z``. A posterior with light tails about a known
    centre has trajectories that rotate, see :func:`leapfrog`.
    """

    rotates = False

    def init(self, theta: Array) -> State:
        """State of an adjusted sampler, with positions z and gradients in z."""
        return super().init(theta) | {"z": np.zeros_like(theta), "force": np.zeros_like(theta)}

    def evaluate(self, theta: Array, dynamics: Dynamics) -> State:
        """Log density, z, and the gradient in z."""
        shifted = theta if dynamics.center is None else theta - dynamics.center
        z = dynamics.metric.whiten(shifted)
        value, force = self._value_and_force(z, theta, dynamics)
        return {"value": value, "z": z, "force": force}

    @staticmethod
    def _value_and_force(z: Array, theta: Array, dynamics: Dynamics) -> tuple[Array, Array]:
        """Log density ``(C,)`` and its gradient in z ``(C, P)``."""
        if dynamics.whitened is not None:
            return dynamics.whitened.value_and_grad(z)
        value, grad = dynamics.value_and_gradient_at(theta)
        metric = dynamics.metric
        return value, (metric.rounded() if dynamics.rounded else metric).sqrt_t(grad)

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """Momentum, the log of a uniform number and the leapfrog step of each trajectory."""
        # a temperature for all steps, or one each
        heat = np.reshape(np.sqrt(dynamics.temperature), (-1, 1, 1))
        P = normals.shape[-1] - self.extra_normals
        walls = not dynamics.facts.bounded_curvature
        steps = self.steps(eta[:, None], normals[..., P + 1 :], walls)[..., None]
        uniform = log_ndtr(normals[..., P : P + 1])
        return np.concatenate([heat * normals[..., :P], uniform, steps], axis=-1)

    def steps(self, eta: Array, normals: Array, walls: bool = False) -> Array:
        """Size of each chain's leapfrog steps ``(T, C)``; ``eta (T, 1)``.

        Where a density may fall off as a wall does, some steps should be so short that chains
        leave it.
        """
        raise self._undefined("steps")

    def propose(
        self, state: State, eta: float, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """End of a trajectory."""
        momentum = noise[:, :-2]
        proposal, end = self._travel(state["z"], momentum, state["force"], eta, noise, dynamics)
        return proposal, proposal["value"] - state["value"] + kinetic(momentum) - kinetic(end)

    def _travel(
        self,
        z: Array,
        momentum: Array,
        force: Array,
        eta: float,
        noise: Array,
        dynamics: Dynamics,
    ) -> tuple[State, Array]:
        """State and momentum at the end of a trajectory.

        The way may be in single precision; the end is as exact as its density.
        """
        metric, whitened, center = dynamics.metric, dynamics.whitened, dynamics.center
        step, n_steps = noise[:, -1:], self.gradients(float(eta))
        if self.rotates and whitened is not None:
            z, momentum = along_rows(whitened, z, momentum, step, n_steps)
            end = {"theta": whitened.locate(z), "value": whitened.log_density(z), "z": z}
            return end | {"force": np.zeros_like(z)}, momentum
        rotates = self.rotates and center is not None and dynamics.facts.light_tailed
        parts = unequal_kicks(n_steps) if rotates else equal_kicks(n_steps)
        fast = metric.rounded() if dynamics.rounded else metric

        def locate(z: Array, metric: Metric) -> Array:
            theta = metric.sqrt(z)
            if center is not None:
                theta += center.astype(theta.dtype, copy=False)
            return theta

        def gradient(z: Array) -> Array:
            if whitened is not None:
                return whitened.grad(z)
            return fast.sqrt_t(dynamics.gradient_at(locate(z, fast), None))

        way: list[Array] = [a.astype(fast.dtype, copy=False) for a in (z, momentum, force, step)]
        z, momentum = leapfrog(way[0], way[1], way[2], way[3], parts[:, :-1], gradient, rotates)
        z, momentum = z.astype(float, copy=False), momentum.astype(float, copy=False)
        theta = locate(z, metric)
        value, force = self._value_and_force(z, theta, dynamics)
        momentum = kicked(momentum, z, force, parts[0, -1] * step, rotates)
        return {"theta": theta, "value": value, "z": z, "force": force}, momentum


def along_rows(
    rows: WhitenedPosterior, z: Array, momentum: Array, step: Array, n_steps: int
) -> tuple[Array, Array]:
    """Position and momentum at the end of a trajectory along whitened rows, in single precision.

    It drifts first: where rows bound their predictors as walls do, errors of the energy are smaller
    than those of steps that kick first, and more trajectories are accepted.
    """

    def gradient(z: Array) -> Array:
        return rows.grad(z).astype(np.float32, copy=False)

    start = z.astype(np.float32), momentum.astype(np.float32), None, step.astype(np.float32)
    ends = leapfrog(*start, equal_kicks(n_steps, drifts_first=True), gradient, rotates=True)
    return ends[0].astype(float), ends[1].astype(float)


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
        # the last step of a path may fall short by 15 %
        return part / max(np.ceil(part / step - 0.15), 1.0)

    def gradients(self, step: float) -> int:
        """Leapfrog steps from point to point."""
        length = self.path_length / self.n_points / float(step)  # infinite for the least of numbers
        return max(round(min(length, self.most_steps)), 1)

    def step_and_time(self, rates: Array, step: float | None = None) -> tuple[float, float]:
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
            eighths = 8.0 * uniform
            eta = np.where(eighths < 1.0, 0.25 * eta, eta)
            uniform = np.where(eighths < 1.0, eighths, (eighths - 1.0) / 7.0)
        return eta * (0.8 + 0.4 * uniform)  # no trajectory is a whole period every time
