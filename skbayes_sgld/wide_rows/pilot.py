"""The pilot of trajectories along whitened rows: few costly ones, which share products."""

from __future__ import annotations

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import start_normals
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.whitening import WhitenedPosterior
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers.along_rows import along_rows
from skbayes_sgld.sampling.tuning.adaptation import NEARER, Pilot
from skbayes_sgld.sampling.tuning.mode import Center

_VERY_LARGE = 1e9  # multiplications of a trajectory from which a pilot makes as few as it can
_SOFT = 1.1  # leapfrog step, relative to the rows' softness


class PilotAlongRows(Pilot):
    """A pilot in the coordinates of whitened rows."""

    def hands_on(self, center: Center) -> bool:
        """Whether the pilot's metric is good enough for its trajectories to forget their start."""
        return not _rows(center).learns

    def size(self, run: Run, origin: Center) -> tuple[int, tuple[int, ...], float]:
        """Number of chains, trajectories of each round, and the first step size."""
        rows, n = _rows(origin), max(run.n_samples, 1)
        if rows.collapsed:  # at softness / n^(1/4) the acceptance is 0.85
            return rows.n_fewest, (1,), 2.4 * rows.softness * n**-0.25
        step_size = min(0.8 * run.sampler.largest_step, _SOFT * rows.softness)
        work = rows.work_of(run.sampler.gradients(step_size))
        if not rows.learns:
            n_steps = 2 if work > _VERY_LARGE else 4 if work > 2e7 else 6
            return rows.n_together, (n_steps,), step_size
        if work > _VERY_LARGE:
            return rows.n_fewest, (1, 1, 1), step_size
        # a product of rows costs nearly as much with few positions as with many; the pilot learns a
        # single factor of the metric
        rounds = (1, 1, 3) if work > 1e8 else (2, 2, 5) if work > 2e7 else (4, 4, 6)
        return rows.n_together, rounds, step_size

    def prepared(self, run: Run, mode: Center, center: Center) -> Run:
        """Run as it is: whitened rows are smooth, and in single precision."""
        return run

    def start(
        self, run: Run, position: Array, center: Center, seed: int, first_chain: int = 0
    ) -> Array:
        """Starting points moved along trajectories that are never rejected.

        The energy that leapfrog steps conserve differs from the exact one by more within the
        posterior than at its mode, on each of thousands of rows: chains that reject would stay at
        the mode.
        """
        rows = _rows(center)
        if rows.collapsed:
            # the sampler's first trajectories are never rejected, and soon reach the typical
            # distance
            return center.theta + NEARER * (position - center.theta)
        seed ^= 0x5E771E
        length = 1.5  # nearly a quarter of a period
        n_steps = int(np.ceil(length / (_SOFT * rows.softness)))
        step = np.full((len(position), 1), length / n_steps)
        z = NEARER * center.metric.whiten(position - center.theta)
        heat, force = np.sqrt(run.dynamics.temperature), rows.grad(z)
        costly = rows.work_of(n_steps) > _VERY_LARGE
        for number in range(1 if costly else 2):
            chains = range(first_chain, first_chain + len(z))
            momentum = heat * start_normals(seed + number, chains, rows.n_params)
            with one_blas_thread(), np.errstate(all="ignore"):
                z, _, _, force = along_rows(rows, z, momentum, force, step, n_steps)
        finite = np.isfinite(z).all(axis=1, keepdims=True)
        return np.where(finite, rows.locate(z), position)

    def leave(self, run: Run, position: Array, center: Center, seed: int) -> Array:
        """Starting points as they are, which trajectories have reached."""
        return position

    def learn(
        self, draws: Array, origin: Center, center: Center, run: Run, step_size: float
    ) -> tuple[Center, float]:
        """Centre and metric from draws ``(C, S, P)``, and the step size in that metric."""
        tau, before = float(run.dynamics.temperature), _rows(center)
        after = _rows(origin).matched(draws.reshape(-1, draws.shape[2]), tau)
        return Center.from_whitened(after), step_size * after.softness / before.softness


def _rows(center: Center) -> WhitenedPosterior:
    """Whitened rows of a centre that has them."""
    assert center.whitened is not None
    return center.whitened
