"""Many rows of which a few are steep: trajectories follow these in shorter steps than the others.

One outlying row can make the density fall steeply on one side of a direction, and so bound the
step of trajectories on all rows. Steps on all rows are several times as long if only the steep rows
take short ones: with 21,634 rows of 77 columns and seven classes, of which 33 are steep, 0.3 in
place of 0.056.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.strategies.accept_reject import (
    adapt_run,
    draft_adjusted,
    finish_adapted,
)
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.steep_rows import SteepRows
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers.split_hmc import SplitGradient, SplitHMC
from skbayes_sgld.sampling.tuning.adaptation import Pilot
from skbayes_sgld.sampling.tuning.mode import Center, Mode

_STEEP = 4.0  # leverage, within two sds of a row's predictor, from which a row is steep
_MOST = 200  # steep rows, of which a short step then costs a small share of one on all rows
_EXPENSIVE = 2**16  # rows times parameters, from which a gradient takes more than a short step
_LONG = 0.15  # shorter steps are bounded by the other rows too


class SplitSteps(Strategy):
    """HMC on all rows, with shorter steps along a few steep ones."""

    only = ("condensable",)

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether Langevin steps are biased, and trajectories on all rows are expensive."""
        settings, facts, posterior = task.settings, task.facts, task.posterior
        left = settings.left_to_tuning and settings.gradient is AUTO and settings.clip is None
        smooth = facts.light_tailed and not facts.n_own and posterior.n_params <= MAX_DENSE
        costly = posterior.n_samples * posterior.n_params > _EXPENSIVE
        return left and task.finding is not None and smooth and costly

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan of trajectories in two step sizes, if steep rows are few."""
        posterior, mode = task.posterior, task.mode
        assert isinstance(posterior, GLMPosterior) and task.finding is not None
        moves = np.sqrt(task.settings.tau) * mode.metric.sqrt(np.eye(posterior.n_params))
        leverages = posterior.leverages(mode.theta, moves, _STEEP)
        rows = np.flatnonzero((leverages > _STEEP).any(axis=0))
        if not 0 < len(rows) <= _MOST:
            return task
        # In the metric of all rows the fall at the mode counts, but not the long way to the other
        # side: variances there were 0.3 to 10, and 0.1 to 2 in that of the others
        curvature = posterior.curvature(mode.theta)
        curvature -= posterior.take(rows).expand_likelihood(mode.theta).curvature
        center = Center.from_curvature(mode.theta, curvature)
        pilot = SplitPilot(SteepRows(posterior, rows))
        run, rows_read = draft_adjusted(task, SplitHMC(n_points=3, target_acceptance=0.65))
        said = "a row is" if len(rows) == 1 else f"{len(rows):,} rows are"
        why = f"{task.finding.why}; {said} steep"
        tuned = adapt_run(task, run, center, why, pilot)
        if tuned.run.step_size < _LONG:
            return task
        return finish_adapted(task, rows_read, tuned, pilot)


@dataclass
class SplitPilot(Pilot):
    """A pilot of trajectories that follow steep rows in shorter steps."""

    steep: SteepRows

    def size(self, run: Run, origin: Center) -> tuple[int, tuple[int, ...], float]:
        """Number of chains, points of each round, and the first step size."""
        # it tunes only the step; its chains forget their start, and walkers begin at their ends
        return 16, (30, 30), 0.3

    def learn(
        self, draws: Array, origin: Center, center: Center, run: Run, step_size: float
    ) -> tuple[Center, float]:
        """Centre and metric as they are: steps are not bounded by the metric."""
        return center, step_size

    def prepared(self, run: Run, mode: Mode, center: Center) -> Run:
        """Run whose gradient knows the steep rows."""
        run = super().prepared(run, mode, mode)  # normal draws about the centre go beyond the rows
        gradient = SplitGradient(run.dynamics.gradient.posterior, steep=self.steep)
        return replace(run, dynamics=replace(run.dynamics, gradient=gradient))
