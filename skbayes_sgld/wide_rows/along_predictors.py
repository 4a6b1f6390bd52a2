"""Few rows of labels or counts: trajectories of their predictors, and no mode.

Most of the posterior is far from its mode. Chains move the predictors of the rows without the rows'
own noise, in the metric of the normal distribution nearest to the posterior, which is found without
the mode; each draw of the coefficients is then independent given the predictors.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import start_normals
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.lengths import (
    Lengths,
    choose_burnin,
    choose_n_draws,
    choose_thin,
    draws_in_time,
    walkers_along_rows,
)
from skbayes_sgld.inference.planning.plans import chosen, draft, finish, with_first_step
from skbayes_sgld.inference.planning.rows_read import all_rows
from skbayes_sgld.inference.planning.starts import choose_start
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.sampling.samplers import SGLD
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN, recentred
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.wide_rows.collapsed_hmc import CollapsedHMC
from skbayes_sgld.wide_rows.predictors import Predictors, collapses, predictors_of

_PATH = 1.6  # about a quarter of a period in the metric of the posterior
_FIRST_STEP = 0.32
_LEAST_ACCEPTANCE = 0.3
_LEAST_STEP = 0.02  # shorter ones lead along walls, as of counts of 0 in rows without noise
_CHANGE = 0.5  # typical change of energy along a trajectory, at an acceptance of 0.8
_LARGE = 5e6  # multiplications of a trajectory from which it gives several draws
_ENOUGH = 162  # trajectories of a chain; those of four are worth 600 draws or more


class AlongPredictors(Strategy):
    """HMC of the rows' predictors without their own noise."""

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether nothing but lengths and starts is given, and rows have noise of their own."""
        return task.settings.left_to_tuning and collapses(task.posterior, task.settings)

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan of trajectories whose step a few of them have found."""
        rows = predictors_of(task.posterior)
        assert rows is not None
        sampler = CollapsedHMC(path_length=_PATH)
        step_size, acceptance = tuned_step(rows, sampler, task.seed)
        if acceptance < _LEAST_ACCEPTANCE or step_size < _LEAST_STEP:
            return task
        sampler.n_leaves = _n_leaves(task, rows, sampler.gradients(step_size))
        lengths = _lengths(task, rows, sampler, step_size)
        center = Mode.from_whitened(rows)
        rows_read = all_rows("trajectories follow all rows", task.posterior, center)
        run = draft(task, sampler, rows_read, center)
        run = replace(run, dynamics=recentred(run.dynamics, center))
        run = with_first_step(run, step_size)
        why = f"{SGLD()}: the posterior is far from its mode, with few rows per parameter"
        reason = f"pilot acceptance {acceptance:.0%} near this step size"
        return finish(
            task,
            run,
            rows_read.choices | chosen(task, run, why, reason),
            lengths,
            choose_start(task, center, lengths.n_walkers),
            mode=None,
            center=center,
            bias=(0.0, 0.0),
        )


def tuned_step(rows: Predictors, sampler: CollapsedHMC, seed: int) -> tuple[float, float]:
    """Size of leapfrog steps, and the acceptance of a pilot's trajectories near it.

    The change of the energy along a trajectory is in proportion to the square of the step.
    """
    seeds = start_normals(seed, range(FIRST_CHAIN, FIRST_CHAIN + rows.n_together), 4)
    generators = [np.random.default_rng(each) for each in seeds.view(np.uint64)]
    step = sampler.whole_steps(_FIRST_STEP)
    with one_blas_thread(), np.errstate(all="ignore"):
        dual = rows.first(generators)
        for _ in range(5):
            sizes = np.full(len(dual), step)
            end, gain = rows.move(dual, sizes, sampler.gradients(step), generators)
            # a few trajectories may diverge; four fifths of normal changes are below 1.28 sds
            size = np.abs(np.nan_to_num(gain, nan=np.inf))
            change = np.quantile(size, 0.8, method="higher") / 1.28
            factor = float(np.clip(np.sqrt(_CHANGE / change), 0.25, 2.0))
            before, step = step, sampler.whole_steps(step * factor)
            if step > 0.7 * before:
                break
        ratios = np.nan_to_num(np.exp(gain * (step / before) ** 2))
    return step, float(np.minimum(1.0, ratios).mean())


def _n_leaves(task: Task, rows: Predictors, n_steps: int) -> int:
    """Draws from each trajectory's end: several if trajectories are dear, and mix well."""
    if task.settings.thin is not AUTO:
        return 1
    dear = round(rows.work_of(n_steps) / _LARGE)
    enough = task.settings.n_draws // _ENOUGH
    # leaves share the predictors of rows with little noise of their own
    return int(np.clip(min(dear, enough), 1, 2 if rows.has_bare else 6))


def _lengths(task: Task, rows: Predictors, sampler: CollapsedHMC, step_size: float) -> Lengths:
    """Lengths of a run of nearly independent draws."""
    work = rows.work_of_draw + rows.work * (sampler.gradients(step_size) + 2) / sampler.n_leaves
    n_draws = choose_n_draws(task, draws_in_time(task.settings.n_draws, work))
    n_burnin = choose_burnin(task, 1, "one trajectory, after those from the start")
    n_walkers = walkers_along_rows(task, n_draws.value)
    if n_draws.value < task.settings.n_draws:  # walkers of one length are joined without a copy
        n_draws = n_draws._replace(value=n_draws.value // n_walkers * n_walkers)
    return Lengths(n_draws, n_burnin, choose_thin(task.settings, 1.0), n_walkers)
