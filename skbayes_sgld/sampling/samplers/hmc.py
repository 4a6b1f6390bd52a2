"""Hamiltonian Monte Carlo, and the base of samplers that propose ends of trajectories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from skbayes_sgld._checks import check_number
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.metric import Metric
from skbayes_sgld.sampling.samplers.along_rows import travel_along_rows
from skbayes_sgld.sampling.samplers.leapfrog import (
    equal_kicks,
    kicked,
    kinetic,
    leapfrog,
    unequal_kicks,
)
from skbayes_sgld.sampling.samplers.metropolis import Adjusted, split_noise

_ORIGIN = "theta", "value", "z", "force"  # entries of the state at the start of a trajectory


class Hamiltonian(Adjusted):
    """A sampler that proposes the ends of trajectories, in the coordinates of the metric.

    The coordinates are z, ``theta = center + R z``. Trajectories rotate (:func:`leapfrog`) if the
    posterior has light tails and a known centre.
    """

    rotates = False

    def init(self, theta: Array) -> State:
        """State of an adjusted sampler, with positions z and gradients in z."""
        return super().init(theta) | {"z": np.zeros_like(theta), "force": np.zeros_like(theta)}

    def evaluate(self, theta: Array, dynamics: Dynamics) -> State:
        """Log density, z, and the gradient in z."""
        shifted = theta if dynamics.center is None else theta - dynamics.center
        z = dynamics.metric.whiten(shifted)
        if dynamics.whitened is None:
            value, force = self._value_and_force(theta, dynamics)
        else:
            value, force = dynamics.whitened.value_and_grad(z)
        return {"value": value, "z": z, "force": force}

    @staticmethod
    def _value_and_force(theta: Array, dynamics: Dynamics) -> tuple[Array, Array]:
        """Log density ``(C,)`` and its gradient in z ``(C, P)``."""
        value, grad = dynamics.value_and_gradient_at(theta)
        metric = dynamics.metric
        return value, (metric.rounded() if dynamics.rounded else metric).sqrt_t(grad)

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """Momentum, the log of a uniform number and the leapfrog step of each trajectory."""
        # a temperature for all steps, or one each
        heat = np.reshape(np.sqrt(dynamics.temperature), (-1, 1, 1))
        P = normals.shape[-1] - self.extra_normals
        walls = not dynamics.facts.bounded_curvature
        steps = self.step_sizes(eta[:, None], normals[..., P + 1 :], walls)[..., None]
        uniform = log_ndtr(normals[..., P : P + 1])
        return np.concatenate([heat * normals[..., :P], uniform, steps], axis=-1)

    def step_sizes(self, eta: Array, normals: Array, walls: bool = False) -> Array:
        """Size of each chain's leapfrog steps ``(T, C)``; ``eta (T, 1)``.

        If the density may have ``walls``, where it falls off steeply, some steps should be short
        enough for chains to leave them.
        """
        raise self._undefined("step_sizes")

    def propose(
        self, state: State, eta: float, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """End of a trajectory."""
        momentum, _, step = split_noise(noise, state["z"].shape[1])
        start, n_steps = (state["z"], momentum, state["force"]), self.gradients(float(eta))
        proposal, end = self._travel(*start, step, n_steps, dynamics)
        return proposal, proposal["value"] - state["value"] + kinetic(momentum) - kinetic(end)

    def _travel(
        self,
        z: Array,
        momentum: Array,
        force: Array,
        step: Array,
        n_steps: int,
        dynamics: Dynamics,
    ) -> tuple[State, Array]:
        """State and momentum at the end of a trajectory of leapfrog steps of size ``step (C, 1)``.

        The trajectory may be computed in single precision; the density at its end is not.
        """
        if dynamics.whitened is not None:
            return travel_along_rows(z, momentum, force, step, n_steps, dynamics, self.rotates)
        metric, center = dynamics.metric, dynamics.center
        rotates = self.rotates and center is not None and dynamics.facts.light_tailed
        parts = unequal_kicks(n_steps) if rotates else equal_kicks(n_steps)
        fast = metric.rounded() if dynamics.rounded else metric

        def locate(z: Array, metric: Metric) -> Array:
            theta = metric.sqrt(z)
            if center is not None:
                theta += center.astype(theta.dtype, copy=False)
            return theta

        def gradient(z: Array) -> Array:
            return fast.sqrt_t(dynamics.gradient_at(locate(z, fast), None))

        way: list[Array] = [a.astype(fast.dtype, copy=False) for a in (z, momentum, force, step)]
        z, momentum = leapfrog(way[0], way[1], way[2], way[3], parts[:, :-1], gradient, rotates)
        z, momentum = z.astype(float, copy=False), momentum.astype(float, copy=False)
        theta = locate(z, metric)
        value, force = self._value_and_force(theta, dynamics)
        momentum = kicked(momentum, z, force, parts[0, -1] * step, rotates)
        return {"theta": theta, "value": value, "z": z, "force": force}, momentum


@dataclass(eq=False, repr=False)
class HMC(Hamiltonian):
    """Hamiltonian Monte Carlo: trajectories that are accepted or rejected as a whole.

    A trajectory starts with a momentum from ``N(0, tau)`` in whitened coordinates, takes leapfrog
    steps of ``step_size`` and ends in a proposal that is accepted with probability
    ``min(1, exp(-dH / tau))`` (Duane, Kennedy, Pendleton & Roweth 1987; Neal 2011, Section 5.3). It
    is exact for any step size, and needs the gradient from all rows.

    Under a normal prior, and in the metric of the curvature, a trajectory follows the normal
    approximation of the posterior exactly, and leapfrog steps follow the rest of the force
    (Shahbaba, Lan, Johnson & Neal 2014). Kicks at unequal distances keep the energy better than
    equal ones.

    Parameters
    ----------
    path_length : float, default=2.0
        The time that a trajectory takes, in units of the preconditioned space. A quarter of a
        period, pi / 2, leads to an independent point of a normal distribution in the curvature's
        metric. A longer trajectory ends beyond the centre, which makes up for those that are
        rejected. With 80 rows and 30 columns, 4,000 draws are worth 4,700 in the worst mean and
        1,900 in the worst squared distance from it; 3,100 and 2,300 with 1.8, 4,700 and 1,400 with
        2.2. The number of leapfrog steps is this over the step size, rounded. Each trajectory's
        step is jittered by up to 20 %, so that no trajectory returns to its start every time. For
        counts, and if the noise is inferred, the steps of one trajectory in eight are a quarter as
        long: these densities fall off so steeply that a chain there would reject longer steps.
        ``sampler="auto"`` takes 2.2 under a horseshoe prior, and 1.8 where other priors learn
        their scale.
    target_acceptance : float, default=0.85
        The acceptance that ``step_size="auto"`` aims at by dual averaging (Hoffman & Gelman 2014,
        Section 3.2). Effective draws per gradient vary little between 0.65 and 0.9; a higher
        acceptance gives more of them from as many trajectories.
    n_points : int, default=1
        Draws per trajectory, at the ends of equal parts of it; each is accepted or rejected
        (Nishimura & Dunson 2020, Algorithm 1). The end of a whole trajectory is worth more than
        each of these, but costs more: several points suit trajectories of many steps. A step of
        the chain is then a part of a trajectory.
    step_range : float, default=1.0
        Above 1, the steps of half of the trajectories are shorter, by up to this factor, uniformly
        in its logarithm. Short steps let chains leave the narrow parts of a posterior (Neal 2011,
        Section 5.4.2.2); ``sampler="auto"`` takes 64 if a pilot finds such parts.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.sampling import HMC
    >>> SGLDLogisticRegression(sampler=HMC(path_length=1.5))
    SGLDLogisticRegression(sampler=HMC(path_length=1.5))
    """

    path_length: float = 2.0
    target_acceptance: float = 0.85
    n_points: int = 1
    step_range: float = 1.0

    most_steps = 50  # leapfrog steps at which a trajectory is cut short
    largest_step = 0.6  # longer steps reject most proposals from the tails
    extra_normals = 2  # to accept or reject, and for the jitter
    rotates = True

    def check(self) -> None:
        """Raise if path, target acceptance or number of points is out of range."""
        super().check()
        check_number(self.path_length, "sampler.path_length", low=0)
        check_number(self.n_points, "sampler.n_points", low=1, closed="left", integer=True)
        check_number(self.step_range, "sampler.step_range", low=1, closed="left")

    def whole_steps(self, step: float) -> float:
        """Size of equal steps that make up a path, at most about ``step`` long."""
        part = self.path_length / self.n_points
        # the last step of a path may fall short by 15 %
        return part / max(np.ceil(part / step - 0.15), 1.0)

    def gradients(self, step: float) -> int:
        """Number of leapfrog steps from point to point."""
        length = self.path_length / self.n_points / float(step)  # may be infinite
        return max(round(min(length, self.most_steps)), 1)

    def step_and_time(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Size of a leapfrog step, and the number of points to an independent draw."""
        step = step or 1.0 / np.sqrt(rates[-1])
        reach = step * self.gradients(step) * self.n_points * np.sqrt(rates[0])
        return step, self.n_points * max(1.0, 2.0 / reach**2)

    def init(self, theta: Array) -> State:
        """State; with several points, also the origin of the trajectory and a count of points."""
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
        """End of a trajectory; with several points, its next point."""
        if self.n_points == 1:
            return super().propose(state, eta, noise, dynamics)
        momentum, _, step = split_noise(noise, state["z"].shape[1])
        if state["point"].any():
            state.update({name: state[f"origin_{name}"] for name in _ORIGIN})
        else:  # a trajectory begins at the end of the last one
            state.update({f"origin_{name}": state[name] for name in _ORIGIN})
            state.update(way_z=state["z"], way_force=state["force"], way_momentum=momentum)
            state["energy"] = state["value"] - kinetic(momentum)
        state["point"] = (state["point"] + 1) % self.n_points
        way = state["way_z"], state["way_momentum"], state["way_force"]
        proposal, end = self._travel(*way, step, self.gradients(float(eta)), dynamics)
        state.update(way_z=proposal["z"], way_force=proposal["force"], way_momentum=end)
        return proposal, proposal["value"] - kinetic(end) - state["energy"]

    def step_sizes(self, eta: Array, normals: Array, walls: bool = False) -> Array:
        """Jittered step sizes; with ``walls`` one in eight, on average, is a quarter as long.

        Without the short steps a walker may stand still at a wall, as with few rows of counts. If
        ``step_range`` is above 1, half of the steps are within that range.
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
        return eta * (0.8 + 0.4 * uniform)  # so that no trajectory is always a whole period
