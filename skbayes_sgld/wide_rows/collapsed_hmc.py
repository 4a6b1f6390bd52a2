"""Hamiltonian Monte Carlo of a likelihood with normal noise of each row integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from skbayes_sgld.posterior.whitening import CollapsedPosterior
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.hmc import HMC

_SEEDS = 4  # normals of a step that seed its generator


@dataclass(eq=False, repr=False)
class CollapsedHMC(HMC):
    """Hamiltonian Monte Carlo along :class:`~skbayes_sgld.posterior.whitening.CollapsedPosterior`.

    A step follows a trajectory of the rows' predictors without their noise, accepts or rejects it,
    and then draws the coefficients given its end. The state of a chain is the predictors, in their
    dual coordinates.

    Parameters
    ----------
    path_length : float, default=1.25
    n_leaves : int, default=1
        Draws of the coefficients given each trajectory's end: trajectories cost several times as
        much, and much of the posterior is independent of their ends.
    """

    path_length: float = 1.25
    n_leaves: int = 1

    largest_step = 1.0

    def n_normals(self, n_params: int) -> int:
        """Number of standard normals of a step: a seed, a jitter and one to accept or reject."""
        return _SEEDS + 2

    def init(self, theta: Array) -> State:
        """State: positions, dual coordinates, which are empty until the first step, and counts.

        These are the draws from the latest trajectory's end, and whether it was accepted.
        """
        state = super().init(theta)
        del state["z"], state["force"]
        drawn, latest = np.zeros(len(theta), int), np.zeros(len(theta), bool)
        return state | {"dual": np.empty((len(theta), 0)), "drawn": drawn, "latest": latest}

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """The normals themselves: the step makes its noise from them."""
        return normals

    def step(self, state: State, eta: float, noise: Array, batch: Any, dynamics: Dynamics) -> None:
        """Follow a trajectory, accept or reject it, and draw the coefficients."""
        rows = dynamics.whitened
        assert isinstance(rows, CollapsedPosterior)
        seeds = np.ascontiguousarray(noise[:, :_SEEDS]).view(np.uint64)
        generators = [np.random.default_rng(seed) for seed in seeds]

        dual, drawn = state["dual"], state["drawn"]
        if not dual.size:  # the first trajectory is burn-in: one draw is enough
            dual, drawn = rows.first(generators), drawn - 1
        if not state["drawn"].any():
            steps = self.step_sizes(np.asarray(float(eta)), noise[None, :, -1:])[0]
            end, gain = rows.move(dual, steps, self.gradients(float(eta)), generators)
            accept = np.log(ndtr(noise[:, -2])) < gain
            dual = np.where(accept[:, None], end, dual)
            state["latest"] = accept
        state.update(
            theta=rows.locate(rows.leave(dual, generators)),
            dual=dual.astype(float),
            drawn=(drawn + 1) % self.n_leaves,
            accepted=state["accepted"] + state["latest"],
        )
