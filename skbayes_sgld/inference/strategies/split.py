"""Many rows of which a few are steep: trajectories follow these in shorter steps than the others.

One outlying row can make the density fall steeply on one side of a direction, and so bound the
step of trajectories on all rows. Steps on all rows are several times as long if only the steep rows
take short ones: with 21,634 rows of 77 columns and seven classes, of which 33 are steep, 0.3 in
place of 0.056.

Of the other rows few are read. A pilot on a tenth of them, beside an expansion about the mode,
leads to the posterior's bulk. Expansions with averages over its draws have remainders that move no
mean and no sd to first order, so that 2,000 rows are enough there: the fit takes half of the time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.few_rows import (
    by_averages,
    drawn_rows,
    few_rows_matter,
    n_averaged,
)
from skbayes_sgld.inference.planning.rows_read import RowsRead
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.strategies.accept_reject import (
    AdaptedRun,
    adapt_run,
    draft_adjusted,
    finish_adapted,
)
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.posterior.condensed import CondensedPosterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.steep_rows import SteepRows
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers.split_hmc import SplitGradient, SplitHMC
from skbayes_sgld.sampling.tuning.adaptation import Pilot, recentred
from skbayes_sgld.sampling.tuning.mode import Center

_STEEP = 4.0  # leverage, within two sds of a row's predictor, from which a row is steep
_MOST = 200  # steep rows, of which a short step then costs a small share of one on all rows
_EXPENSIVE = 2**16  # rows times parameters, from which a gradient takes more than a short step
_LONG = 0.15  # shorter steps are bounded by the other rows too
_POINTS = 30  # points of a round of the pilot
_SETTLING = 4.0  # autocorrelation time of points at most, in the burn-in
_ROUGH = 2000  # rows of the pilot
_FEWEST = 2000  # rows that are tried first
_LIMIT = 0.04  # error of a mean, in sds, or of an sd, relative


class SplitSteps(Strategy):
    """HMC on all rows, with shorter steps along a few steep ones."""

    only = ("condensable",)

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether Langevin steps are biased, and trajectories on all rows are expensive."""
        settings, facts, posterior = task.settings, task.facts, task.posterior
        assert isinstance(posterior, GLMPosterior)
        left = settings.all_left_to_tuning
        smooth = facts.light_tailed and not posterior.n_own and posterior.n_params <= MAX_DENSE
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
        expansion = posterior.expand_likelihood(mode.theta)
        curvature = posterior.with_prior_part(expansion).curvature
        curvature -= posterior.take(rows).expand_likelihood(mode.theta).curvature
        center = Center.from_curvature(mode.theta, curvature)
        said = "a row is" if len(rows) == 1 else f"{len(rows):,} rows are"
        why = f"{task.finding.why}; {said} steep"
        pilot = SplitPilot(SteepRows(posterior, rows))
        size = leverages.max(axis=0)
        drawn = drawn_rows(size, np.arange(len(size)), rows, _ROUGH, task.seed)
        few = CondensedPosterior(posterior, *drawn, expansion)
        tuned, rows_read = _adapted(replace(task, posterior=few), center, why, pilot)
        if tuned.run.step_size < _LONG:
            return task
        found = _by_averages(posterior, tuned.found.ends, rows, task)
        if found is None:
            tuned, rows_read = _adapted(task, center, why, pilot)
            return finish_adapted(task, rows_read, tuned, pilot)
        few, off = found
        inner = replace(task, posterior=few)
        run, rows_read = _draft(inner, few_rows_matter(few.n_samples, posterior.n_samples, off))
        dynamics = recentred(pilot.prepared(run, mode, center).dynamics, center)
        run = replace(run, dynamics=dynamics, step_size=tuned.run.step_size)
        # every point is a draw, as on all rows; few points forget how the first rows were off
        spacing = min(tuned.spacing, _SETTLING)
        tuned = replace(tuned, run=run, spacing=spacing, most_spaced=1)
        plan = finish_adapted(inner, rows_read, tuned, pilot)
        return replace(plan, posterior=posterior, bias=(off, 0.0))


def _draft(task: Task, why: str = "") -> tuple[Run, RowsRead]:
    """Run of trajectories in two step sizes, and its rows with the reason for them."""
    # Two gradients a draw. With one, at the same length, the least effective sample size of seven
    # classes by 77 columns falls from 650 of 4,000 draws to 140 to 300
    sampler = SplitHMC(path_length=1.8, n_points=3, target_acceptance=0.65)
    run, rows_read = draft_adjusted(task, sampler)
    return run, rows_read.because(why) if why else rows_read


def _adapted(
    task: Task, center: Center, why: str, pilot: SplitPilot
) -> tuple[AdaptedRun, RowsRead]:
    """Run whose step size a pilot has adapted, and its rows."""
    run, rows_read = _draft(task)
    return adapt_run(task, run, center, why, pilot), rows_read


def _by_averages(
    posterior: GLMPosterior, ends: Array, steep: Array, task: Task
) -> tuple[CondensedPosterior, float] | None:
    """Posterior by few rows and averages over draws of a pilot, and its error; None if it is large.

    ``ends`` are positions of the pilot, all chains of one time after the other. Half of the chains
    are averaged over, and the others measure the error.
    """
    P = posterior.n_params
    by_chain = ends.reshape(_POINTS // 2, -1, P)
    half = by_chain.shape[1] // 2
    draws, others = by_chain[:, :half].reshape(-1, P), by_chain[:, half:].reshape(-1, P)
    draws = draws[:: max(1, len(draws) // n_averaged(posterior.n_samples))]
    return by_averages(
        posterior, draws, others, task.settings.tau, task.seed, _LIMIT, _FEWEST, steep
    )


@dataclass
class SplitPilot(Pilot):
    """A pilot of trajectories that follow steep rows in shorter steps."""

    steep: SteepRows

    def size(self, run: Run, origin: Center) -> tuple[int, tuple[int, ...], float]:
        """Number of chains, points of each round, and the first step size."""
        # it tunes only the step; its chains forget their start, and walkers begin at their ends
        return 16, (_POINTS, _POINTS), 0.3

    def learn(
        self, draws: Array, origin: Center, center: Center, run: Run, step_size: float
    ) -> tuple[Center, float]:
        """Centre and metric as they are: steps are not bounded by the metric."""
        return center, step_size

    def prepared(self, run: Run, mode: Center, center: Center) -> Run:
        """Run whose gradient knows the steep rows."""
        run = super().prepared(run, mode, mode)  # normal draws about the centre go beyond the rows
        gradient = SplitGradient(run.dynamics.gradient.posterior, steep=self.steep)
        return replace(run, dynamics=replace(run.dynamics, gradient=gradient))
