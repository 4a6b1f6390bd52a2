"""Settings that say how to sample: only what they leave open is tuned.

In the metric of the curvature a pilot shortens the steps until no moment is biased. In another
metric the step size follows from the spectrum of the curvature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skbayes_sgld.inference.choices import GIVEN, Choice
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.lengths import usual_lengths
from skbayes_sgld.inference.planning.pilot_runs import pilot_run, said_of, time_of
from skbayes_sgld.inference.planning.plans import chosen, draft, finish, with_first_step
from skbayes_sgld.inference.planning.rows_asked_for import rows_of_settings
from skbayes_sgld.inference.planning.rows_read import RowsRead
from skbayes_sgld.inference.planning.starts import choose_start
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.setting_checks import AUTO, given_or
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies.accept_reject import accepted_start
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.metric import preconditioned_eigenvalues
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers import SGLD
from skbayes_sgld.sampling.tuning import pilots
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.precision import round_gradient


class Given(Strategy):
    """Sampler, metric, step size or rows as given by the settings."""

    @classmethod
    def plan(cls, task: Task) -> Plan:
        """Plan of the given settings, with a tuned step size if none is given."""
        return finish_given(task, tune_given(task, given_or(task.settings.sampler, SGLD())))


@dataclass(frozen=True)
class GivenRun:
    """A run with a step size, its autocorrelation time, reasons, and the bias if measured."""

    run: Run
    rows_read: RowsRead
    time: float
    why_sampler: str
    why_step_size: str
    bias: tuple[float, float] | None = None

    def at(self, step_size: float, why: str, time: float) -> GivenRun:
        """Copy with another step size, its reason and its autocorrelation time."""
        run = replace(self.run, step_size=step_size)
        return replace(self, run=run, why_step_size=why, time=time)


def tune_given(task: Task, sampler: Sampler) -> GivenRun:
    """Run of a sampler, and its step size."""
    rows_read = rows_of_settings(task, sampler, task.mode)
    run = draft(task, sampler, rows_read, task.mode)
    if task.settings.step_size is AUTO and task.settings.uses_curvature:
        tuned = _piloted(task, run, rows_read)
    else:
        tuned = paced(task, run, rows_read)
    return replace(tuned, run=with_first_step(tuned.run, tuned.run.step_size))


def _piloted(task: Task, run: Run, rows_read: RowsRead) -> GivenRun:
    """Run with the largest step size whose bias a pilot finds acceptable."""
    settings, mode, n_params = task.settings, task.mode, task.posterior.n_params
    # batches, if any, have no visible noise
    quiet = settings.gradient is AUTO and settings.batch_size is AUTO
    if run.batch_size is None:
        run = replace(run, dynamics=round_gradient(run.dynamics, mode))
    choice = pilots.choose_step_size(pilot_run(run, mode) if quiet else run, mode, task.seed)
    assert choice is not None
    step_size, bias = choice.size, choice.bias
    found = said_of(step_size, bias)
    why = _why(settings, f"; {found}")
    time = time_of(run.sampler, step_size, n_params, bias)
    run = replace(run, step_size=step_size)
    if quiet or run.batch_size is None:  # the noise of batches counts as curvature
        run = replace(run, dynamics=run.dynamics.with_curvature(bias.curvature))
    tuned = GivenRun(run, rows_read, time, why, found, bias[:2])
    if quiet or rows_read.noise is None or run.batch_size is None:
        return tuned
    # the sampler's share of the noise, 0 for the thermostat
    gain = max(run.sampler.noise_gain, 1e-12)
    largest = rows_read.noise.step_size(run.batch_size, settings.tau) / gain
    if largest >= step_size:
        return tuned
    shorter = max(largest, pilots.step_sizes(run.sampler)[-1])
    time = run.sampler.step_and_time(np.ones(n_params), shorter)[1]
    return tuned.at(shorter, "a longer one needs a larger batch", time)


def paced(task: Task, run: Run, rows_read: RowsRead) -> GivenRun:
    """Run with a given step size, or one stable at the mode, and its time on a normal posterior."""
    step_size, mode = task.settings.step_size, task.mode
    rates = preconditioned_eigenvalues(run.dynamics.metric, mode.metric)
    first = float(run.schedule(0))  # multiplier of the step size at the first step
    with np.errstate(over="ignore", divide="ignore"):  # the time may be infinite
        eta, time = run.sampler.step_and_time(
            rates, None if step_size is AUTO else step_size * first
        )
    stable = "stable in the steepest direction at the mode"
    why = stable if step_size is AUTO else GIVEN
    return GivenRun(replace(run, step_size=eta), rows_read, time, _why(task.settings), why)


def _why(settings: Settings, finding: str = "") -> str:
    """Reason for the sampler."""
    return GIVEN if settings.sampler is not AUTO else f"the cheapest{finding}"


def finish_given(task: Task, tuned: GivenRun, around: bool = False) -> Plan:
    """Plan of a tuned run; with ``around`` chains start around the mode in any metric."""
    run, mode = tuned.run, task.mode
    lengths = usual_lengths(task, run, tuned.time)
    return finish(
        task,
        run,
        tuned.rows_read.choices | chosen(task, run, tuned.why_sampler, tuned.why_step_size),
        lengths,
        start_of(task, run, mode, lengths.n_walkers, around),
        mode=mode,
        center=mode,
        bias=tuned.bias,
        noise=tuned.rows_read.noise if task.settings.uses_curvature else None,
    )


def start_of(
    task: Task, run: Run, mode: Mode, n_walkers: int, around: bool = False
) -> tuple[Array, Choice]:
    """Starting points; for a sampler that rejects, points from which proposals are accepted."""
    if run.sampler.adjusted:
        return accepted_start(task, run, mode, n_walkers)
    return choose_start(task, mode, n_walkers, around)
