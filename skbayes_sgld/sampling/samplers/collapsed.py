"""Hamiltonian Monte Carlo of a likelihood from which noise of the rows' own is integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from skbayes_sgld.posterior.whitening import CollapsedPosterior, Place
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.hmc import HMC

_SEEDS = 4  # numbers of a step that seed a chain's generator of all others


@dataclass(eq=False, repr=False)
class CollapsedHMC(HMC):
    """Hamiltonian Monte Carlo along :class:`~skbayes_sgld.posterior.whitening.CollapsedPosterior`.

    A step is a trajectory of the rows' predictors less their own noise, which is accepted or
    rejected, and a draw of the coefficients given where it has led. What a chain remembers are the
    predictors.
    """

    path_length: float = 1.25

    largest_step = 1.0

    def n_normals(self, n_params: int) -> int:
        """Standard normals that a step takes: a seed, a jitter and one to accept or reject."""
        return _SEEDS + 2

    def init(self, theta: Array) -> State:
        """State: positions, and those of trajectories, which the first step draws."""
        state = super().init(theta)
        del state["z"], state["force"]
        begun, level = np.zeros((2, len(theta)))
        return state | {"begun": begun, "dual": np.empty((len(theta), 0)), "level": level}

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """The normals as they are."""
        return normals

    def step(self, state: State, eta: float, noise: Array, batch: Any, dynamics: Dynamics) -> None:
        """Follow a trajectory, accept or reject it, and draw the coefficients."""
        rows = dynamics.whitened
        assert isinstance(rows, CollapsedPosterior)
        seeds = np.ascontiguousarray(noise[:, :_SEEDS]).view(np.uint64)
        generators = [np.random.default_rng(seed) for seed in seeds]
        if not state["begun"].all():
            moved = state["theta"] - rows.center
            place = rows.enter(dynamics.preconditioner.whiten(moved), generators)
            # trajectories that are not rejected: by steps of leapfrog an energy is systematically
            # larger at the mode, where chains that reject would stay
            free = self.whole_steps(0.16 * rows.softness)
            for _ in range(8):
                place, _ = self._follow(rows, place, rows.momentum(generators), free, noise)
        else:
            place = rows.place(state["dual"].T, state["level"])
        momentum = rows.momentum(generators)
        end, moving = self._follow(rows, place, momentum, float(eta), noise)
        gain = rows.energy(place, momentum) - rows.energy(end, moving)
        accept = np.log(ndtr(noise[:, -2])) < gain
        place = Place(*(np.where(accept, new, old) for new, old in zip(end, place, strict=True)))
        z = rows.leave(place, generators)
        state.update(
            begun=np.ones(len(z)),
            theta=rows.locate(z),
            dual=place.dual.T.astype(float),
            level=place.level.astype(float),
            accepted=state["accepted"] + accept,
        )

    def _follow(
        self, rows: CollapsedPosterior, place: Place, momentum: Place, eta: float, noise: Array
    ) -> tuple[Place, Place]:
        """Ends of trajectories of jittered steps."""
        step = self.steps(np.asarray(eta), noise[None, :, -1:])[0]
        return rows.follow(place, momentum, step, self.gradients(eta))
