"""Users' own models: properties that gradient and curvature at the mode do not show.

Such a density may have several modes, widths that differ from those of its curvature, parts far
away, or jumps. Points, climbs and trajectories around the mode look for them. With several modes or
a part far away the plan is parallel tempering. Otherwise the next strategy plans, as for any model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skbayes_sgld._random import start_normals
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.rows_asked_for import rows_of_settings
from skbayes_sgld.inference.planning.rows_read import needs_mode
from skbayes_sgld.inference.planning.task import Finding, Task
from skbayes_sgld.inference.setting_checks import AUTO, given_or
from skbayes_sgld.inference.strategies.accept_reject import (
    adapt_run,
    draft_adjusted,
    finish_adapted,
)
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.inference.strategies.given import finish_given, tune_given
from skbayes_sgld.inference.strategies.published import plan_published
from skbayes_sgld.own_models.search import energy_error, find_modes, n_trajectories
from skbayes_sgld.own_models.widths import find_far_part, with_widths
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.samplers import SGLD, ParallelTempering
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

_SEVERAL = "several modes"


class OwnModel(Strategy):
    """Parallel tempering of a density with several modes, or with a part far from its mode."""

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether a mode is needed, or the model declares several."""
        return task.facts.multimodal or needs_mode(task)

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan of parallel tempering, or the task with the findings."""
        settings = task.settings
        if task.facts.multimodal:
            if settings.sampler is not AUTO:
                return task
            if not needs_mode(task):
                return plan_published(task, ParallelTempering(), _SEVERAL)
            return _temper(_with_rows(task), ParallelTempering(), _SEVERAL)
        task = _with_rows(_looked_at(task))
        all_rows = "batch_size" in task.choices
        if task.modes and settings.sampler is AUTO and all_rows:
            return _temper(task, ParallelTempering(), _SEVERAL)
        if task.far is not None and settings.automatic and all_rows:
            return _temper_far(task)
        few = task.posterior.n_samples <= THRESHOLDS.few_rows
        may_jump = settings.left_to_tuning and task.finding is None and (all_rows or few)
        if may_jump and (jump := density_jump(task)):
            why = f"the density jumps by {jump:.2g} nats, of which its gradient says nothing"
            return task.found(finding=Finding(f"{SGLD()}: {why}"))
        return task


def _looked_at(task: Task) -> Task:
    """Task with the density's measured widths, its modes, and its part far away."""
    posterior, tau, seed = task.posterior, task.settings.tau, task.seed
    mode = with_widths(posterior, task.mode, tau)
    modes = tuple(find_modes(posterior, mode, tau, seed))
    far = None if modes else find_far_part(posterior, mode, tau, seed)
    return task.found(mode=mode, modes=modes, far=far)


def _with_rows(task: Task) -> Task:
    """Task with the reason why steps take all rows, if they do."""
    if not task.settings.may_take_all_rows:
        return task
    choices = rows_of_settings(task, given_or(task.settings.sampler, SGLD()), task.mode).choices
    return task if choices["batch_size"].value else task.found(choices=task.choices | choices)


def _temper(task: Task, sampler: Sampler, why: str, least_time: float = 0.0) -> Plan:
    """Plan of parallel tempering with at least ``least_time`` steps between draws."""
    if task.settings.step_size is not AUTO or not task.settings.uses_curvature:
        return finish_given(task, replace(tune_given(task, sampler), why_sampler=why))
    run, rows_read = draft_adjusted(task, sampler)
    tuned = adapt_run(task, run, task.mode, why)
    tuned = replace(tuned, spacing=max(tuned.spacing, least_time))
    return finish_adapted(task, rows_read, tuned)


def _temper_far(task: Task) -> Plan:
    """Plan of parallel tempering in a metric as wide as the part that is far from the mode."""
    far = task.far
    assert far is not None
    sampler = ParallelTempering(step_range=max(64.0, 10.0 * far.distance))
    why = f"{far.share:.0%} of the mass is some {far.distance:.3g} sds from the mode"
    # a step finds so narrow a part only by chance
    least_time = min(60.0, 0.06 * far.distance)
    return _temper(task.found(mode=far.as_mode), sampler, why, least_time)


def density_jump(task: Task) -> float:
    """Size of the jumps, in nats, of a density around its mode; 0 if there are none."""
    posterior, mode, tau, seed = task.posterior, task.mode, task.settings.tau, task.seed
    chains = range(FIRST_CHAIN, FIRST_CHAIN + n_trajectories(posterior))
    moves = np.sqrt(tau) * mode.metric.sqrt(start_normals(seed, chains, mode.theta.size))
    return energy_error(posterior, mode, mode.theta + moves, tau, seed)[1]
