"""Hamiltonian Monte Carlo of a likelihood with normal noise of each row integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from skbayes_sgld.posterior.whitening import CollapsedPosterior
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.hmc import HMC

# The first trajectories, from the prior's mean, are never rejected: leapfrog steps raise the
# energy systematically there, and a chain that rejects would not leave
_FREE, _FREE_STEP = 8, 0.16  # their number, and their step size relative to the rows' softness
_SEEDS = 4  # normals of a step that seed its generator


@dataclass(eq=False, repr=False)
class CollapsedHMC(HMC):
    """Hamiltonian Monte Carlo along :class:`~skbayes_sgld.posterior.whitening.CollapsedPosterior`.

    A step follows a trajectory of the rows' predictors without their noise, accepts or rejects it,
    and then draws the coefficients given its end. The state of a chain is the predictors, in their
    dual coordinates.
    """

    path_length: float = 1.25

    largest_step = 1.0

    def n_normals(self, n_params: int) -> int:
        """Number of standard normals of a step: a seed, a jitter and one to accept or reject."""
        return _SEEDS + 2

    def init(self, theta: Array) -> State:
        """State: positions, and dual coordinates, which are empty until the first step."""
        state = super().init(theta)
        del state["z"], state["force"]
        return state | {"dual": np.empty((len(theta), 0))}

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """The normals themselves: the step makes its noise from them."""
        return normals

    def step(self, state: State, eta: float, noise: Array, batch: Any, dynamics: Dynamics) -> None:
        """Follow a trajectory, accept or reject it, and draw the coefficients."""
        rows = dynamics.whitened
        assert isinstance(rows, CollapsedPosterior)
        seeds = np.ascontiguousarray(noise[:, :_SEEDS]).view(np.uint64)
        generators = [np.random.default_rng(seed) for seed in seeds]

        def move(dual: Array, eta: float) -> tuple[Array, Array]:
            steps = self.step_sizes(np.asarray(eta), noise[None, :, -1:])[0]
            return rows.move(dual, steps, self.gradients(eta), generators)

        dual = state["dual"]
        if not dual.size:
            dual = np.zeros((len(dual), rows.n_rows + 1))
            for _ in range(_FREE):
                dual, _ = move(dual, self.whole_steps(_FREE_STEP * rows.softness))
        end, gain = move(dual, float(eta))
        accept = np.log(ndtr(noise[:, -2])) < gain
        dual = np.where(accept[:, None], end, dual)
        state.update(
            theta=rows.locate(rows.leave(dual, generators)),
            dual=dual.astype(float),
            accepted=state["accepted"] + accept,
        )
