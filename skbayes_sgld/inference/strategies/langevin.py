"""Langevin dynamics without visible bias: the cheapest draws, and the usual plan.

Steps are Leimkuhler-Matthews steps of SGLD in the metric of the curvature at the mode, on all rows
or on batches without visible noise. A pilot runs them on the posterior. If it finds a bias of more
than 1 % of an sd, the next strategy plans.
"""

from __future__ import annotations

from dataclasses import replace

from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.lengths import usual_lengths
from skbayes_sgld.inference.planning.pilot_runs import on_all_rows, pilot_run, said_of, time_of
from skbayes_sgld.inference.planning.plans import chosen, draft, finish, with_first_step
from skbayes_sgld.inference.planning.rows_read import (
    RowsRead,
    all_rows,
    all_rows_as_given,
    cheapest_rows,
)
from skbayes_sgld.inference.planning.starts import choose_start
from skbayes_sgld.inference.planning.task import Finding, Task
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers import SGLD
from skbayes_sgld.sampling.tuning import pilots
from skbayes_sgld.sampling.tuning.adaptation import affordable
from skbayes_sgld.sampling.tuning.leverage import walls_of
from skbayes_sgld.sampling.tuning.noise import step_costs
from skbayes_sgld.sampling.tuning.precision import round_gradient
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

_OFF = f"a pilot's moments are off by more than {THRESHOLDS.max_bias:.1%}"
_ON_BATCHES = f"on batches {_OFF}"
_WALL = "a row bounds the posterior on one side"
_LONG = 0.5  # shorter steps on batches cost more than trajectories on the rows that matter
# Rows of a step, and their share of all, from which the rows that matter are looked for first. To
# look takes about 80 passes over all rows, as many as 8,000 steps on 1 % of them. 8,000 rows in
# fifty levels then take 0.14 (gamma), 0.3 (ordered classes) and 0.5 (Poisson) of the time, 40,000
# rows 0.6; 300,000 rows of counts would take 1.3 times as long
_MANY, _SHARE = 320, 0.01


class Langevin(Strategy):
    """SGLD in the metric of the curvature, if a pilot finds no bias in it."""

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether the settings leave all to the tuning, and there is no finding against it."""
        return task.settings.left_to_tuning and task.finding is None

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan with the largest step size in which a pilot finds no bias."""
        is_given = task.settings.gradient is not AUTO
        rows_read = all_rows_as_given(task, task.mode) if is_given else cheapest_rows(task)
        run = draft(task, SGLD(), rows_read, task.mode)
        if task.facts.steep:
            why = "the noise is too uncertain for steps that are not accepted or rejected"
            return _next(task, run, rows_read, why)
        if not is_given and task.facts.condensable:
            # the rows that matter may be few: many rows and short steps are the next resort
            if reads_many(rows_read, task.posterior.n_samples):
                return task.found(rows_read=rows_read)
            if rows_read.posterior.n_always == 1 and len(walls_of(task.posterior, task.mode)):
                return task.found(finding=Finding(f"{run.sampler}: {_WALL}"), rows_read=rows_read)
            return _long_steps(task, run, rows_read)
        return steps_on_rows(task, run, rows_read)


class ShorterSteps(Strategy):
    """Steps on batches, however short, or on all rows if those cost less or are biased too."""

    only = ("condensable",)

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether the rows of a step are many, or long steps on them biased."""
        return task.rows_read is not None

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan of the largest step size in which a pilot finds no bias."""
        assert task.rows_read is not None
        return steps_on_rows(task, draft(task, SGLD(), task.rows_read, task.mode), task.rows_read)


def reads_many(rows_read: RowsRead, n: int) -> bool:
    """Whether a step reads so many of n rows that those that matter are looked for first."""
    batch_size = rows_read.choices["batch_size"].value
    return (batch_size or n) + rows_read.posterior.n_always > max(_MANY, _SHARE * n)


def steps_on_rows(task: Task, run: Run, rows_read: RowsRead) -> Plan | Task:
    """Plan of steps on batches or on all rows."""
    if run.batch_size is not None and run.n_samples > THRESHOLDS.few_rows:
        return _shorter_steps(task, run, rows_read)
    return plan_steps(task, run, rows_read)


def plan_steps(task: Task, run: Run, rows_read: RowsRead, before: str = "") -> Plan | Task:
    """Plan of steps without visible bias; or the task with their bias as a finding.

    ``before`` is the finding about steps on batches.
    """
    if run.batch_size is None:
        run = replace(run, dynamics=round_gradient(run.dynamics, task.mode))
    step = pilots.choose_step_size(pilot_run(run, task.mode), task.mode, task.seed, has_spare=True)
    if step is None:
        found = _OFF
    elif not pilots.holds_far_out(run, task.mode, step.size, task.seed):
        found = f"a pilot's steps of {step.size:g} overflow from far out"
    elif step.bias.width > THRESHOLDS.widest:
        # with heavy tails or nearly separated classes, steps in the mode's metric are too short
        found = f"a pilot's variances are {step.bias.width:.1f} times those at the mode"
    else:
        return _finish(task, run, rows_read, step, before)
    return _next(task, run, rows_read, before + found)


def _long_steps(task: Task, run: Run, rows_read: RowsRead) -> Plan | Task:
    """Plan of long steps on batches; or the task with their bias as a finding."""
    least = max(_LONG, _least_step(run))
    step = pilots.choose_step_size(pilot_run(run, task.mode), task.mode, task.seed, least=least)
    if step is not None:
        return _finish(task, run, rows_read, step)
    return task.found(finding=Finding(f"{run.sampler}: {_ON_BATCHES}"), rows_read=rows_read)


def _shorter_steps(task: Task, run: Run, rows_read: RowsRead) -> Plan | Task:
    """Plan of steps on batches, or on all rows if batches are biased.

    If long steps are known to be biased, they are not tried again.
    """
    piloted, least, step = pilot_run(run, task.mode), _least_step(run), None
    if task.finding is None or least < _LONG:
        step = pilots.choose_step_size(piloted, task.mode, task.seed, least=least)
    if step is not None:
        return _finish(task, run, rows_read, step)
    rows_read = all_rows(_ON_BATCHES, task.posterior, task.mode)
    return plan_steps(task, on_all_rows(run, task.mode), rows_read, f"{_ON_BATCHES}; ")


def _next(task: Task, run: Run, rows_read: RowsRead, why: str) -> Task:
    """Task for the next strategy, which takes all rows."""
    further = rows_read.choices if run.batch_size is None else {}
    return task.found(finding=Finding(f"{run.sampler}: {why}"), choices=task.choices | further)


def _least_step(run: Run) -> float:
    """Step size below which steps on batches cost more than HMC on all rows."""
    of_batch, of_all = step_costs(run.dynamics.gradient.posterior, run.batch_size or 0)
    # chains of short steps have few walkers, so that the overhead of a step is 10 microseconds per
    # position; a draw by HMC takes about 15 gradients
    return min(0.5, 2.0 * (of_batch + 10_000.0) / (15.0 * of_all))


def _finish(
    task: Task, run: Run, rows_read: RowsRead, step: pilots.StepChoice, before: str = ""
) -> Plan:
    """Plan of a step size whose bias a pilot has measured."""
    time = time_of(run.sampler, step.size, task.posterior.n_params, step.bias)
    run, found = with_first_step(run, step.size), said_of(step.size, step.bias)
    run = replace(run, dynamics=run.dynamics.with_curvature(step.bias.curvature))
    lengths = usual_lengths(task, run, time, min(affordable(run, time), THRESHOLDS.max_thin))
    return finish(
        task,
        run,
        rows_read.choices | chosen(task, run, f"the cheapest; {before}{found}", found),
        lengths,
        choose_start(task, task.mode, lengths.n_walkers),
        mode=task.mode,
        center=task.mode,
        bias=(step.bias.size, step.bias.doubt),
        noise=rows_read.noise,
    )
