"""From plan to result: run the chains of a plan, and plan again if they overflow."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld._progress import Progress, progress_bar
from skbayes_sgld._timings import stage
from skbayes_sgld._warnings import warn
from skbayes_sgld.inference.choices import Choices
from skbayes_sgld.inference.in_parts import (
    MeasureEss,
    draw_in_parts,
    least_ess_of,
    stopped_by_callback,
)
from skbayes_sgld.inference.judging import judge
from skbayes_sgld.inference.origin import Inputs, Journal, Origin, open_journal
from skbayes_sgld.inference.overflow import explain_overflow
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.task import Finding
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies import make_plan
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.run import Chains, reported_draws
from skbayes_sgld.sampling.workers import Workers

Watch = Callable[[int, str], AbstractContextManager[Progress | None]]


def plan_and_run(
    posterior: BasePosterior,
    settings: Settings,
    inputs: Inputs,
    seed: int,
    positions: Array | None = None,
    watch: Watch | None = None,
    workers: Workers | None = None,
    choices: Choices | None = None,
) -> SamplingResult:
    """Plan and run chains; if steps that the user did not choose overflow, make a second plan.

    The second plan takes HMC, which cannot overflow, and its table names the overflow. If the
    settings exclude HMC (minibatches, a bound on the gradient, another metric), the second plan
    takes a quarter of the step size, from starts around the mode, and may be followed by another.
    All chains start again, whichever overflowed: only in this case do the draws of a chain depend
    on other chains.

    ``inputs`` makes the data and settings, by name, by which a checkpoint recognises its run. Other
    parameters and errors are those of :func:`~skbayes_sgld.inference.strategies.make_plan` and
    :func:`run_plan`; the error of an overflow names a step size that does not overflow.
    """
    origin = Origin(seed, positions)
    with open_journal(settings, inputs, origin) as journal:
        if journal is not None:
            origin = journal.origin
        n_left = 5  # further plans to try
        while True:
            with stage("pilots"):
                plan = make_plan(
                    posterior, settings, origin.seed, origin.positions, origin.finding, choices
                )
            try:
                return run_plan(plan, watch, origin, journal, workers)
            except ChainOverflowError as error:
                finding = _finding(error, plan) if n_left else None
                if finding is None:
                    raise explain_overflow(error, plan) from None
            origin, n_left = replace(origin, finding=finding), n_left - 1
            if journal is not None:
                journal.begin_again(origin)


def run_plan(
    plan: Plan,
    watch: Watch | None = None,
    origin: Origin | None = None,
    journal: Journal | None = None,
    workers: Workers | None = None,
) -> SamplingResult:
    """Result of the chains of a plan.

    Parameters
    ----------
    plan : Plan
    watch : callable or None
        Function of the number of steps and their name that returns a context. The value of the
        context is called with finished steps, and returns True to end the run with the draws so
        far. None shows a progress bar if the settings are verbose.
    origin : Origin or None
        Start of the run, from which its time counts; None: now.
    journal : Journal or None
        Files of the run.
    workers : Workers or None
        Workers that run chains side by side; None: the processes of ``n_jobs``.

    Raises
    ------
    ChainOverflowError
        When a chain leaves the range of floating point numbers.

    Warns
    -----
    ConvergenceWarning
        If chains have not converged, or draws are biased: each problem with its figure and its
        remedy.
    """
    begin = (origin or Origin(plan.seed)).begin
    with stage("draws"):
        with (watch or watch_of(plan.settings))(plan.n_steps, "sampling") as progress:
            plan, chains = draw(plan, begin, journal, progress, workers)
        values = reported_draws(plan.posterior, chains.draws, plan.n_burnin, plan.thin)
    # squares of diverging chains overflow
    with stage("diagnosis"), np.errstate(all="ignore"):
        result = judge(plan, chains, values)
    warn_of_problems(result)
    return result


def watch_of(settings: Settings) -> Watch:
    """Watch that shows a progress bar if the settings are verbose."""
    if settings.verbose:
        return partial(progress_bar, settings.verbose)
    return lambda n_steps, name: nullcontext()


def warn_of_problems(result: SamplingResult) -> None:
    """Warn of all problems in one sentence."""
    if result.problems:
        message = "; ".join(result.problems)
        warn(f"{message[0].upper()}{message[1:]}.", ConvergenceWarning)


def draw(
    plan: Plan,
    begin: float,
    journal: Journal | None,
    progress: Progress | None,
    workers: Workers | None = None,
    measure: MeasureEss = least_ess_of,
) -> tuple[Plan, Chains]:
    """Run the chains and join their walkers.

    Parameters are those of :func:`~skbayes_sgld.inference.in_parts.draw_in_parts`.

    Returns
    -------
    plan : Plan
        Plan with the reason of an early end, if any, and the number of draws until then.
    chains : Chains

    Raises
    ------
    ValueError
        If the run is ended before the first draw.
    """
    settings, stopped = plan.settings, None
    try:
        if settings.in_parts:
            chains, stopped = draw_in_parts(plan, begin, journal, progress, workers, measure)
        else:
            chains = run_chains(
                plan.run,
                plan.start,
                n_draws=plan.n_each,
                n_burnin=plan.n_burnin,
                thin=plan.thin,
                seed=plan.seed,
                n_jobs=settings.n_jobs,
                progress=progress,
                workers=workers,
            )
            if chains.draws.shape[1] < plan.n_each:
                stopped = stopped_by_callback(chains)
    except ChainOverflowError as error:
        error.chain //= plan.n_walkers
        raise
    if stopped is not None and not chains.draws.shape[1]:
        ended = "a callback asked to stop"
        if stopped.value == "max_time":
            ended = f"max_time={settings.max_time:g} was up"
        file = settings.checkpoint
        raise ValueError(
            f"{ended} before the first draw, after {chains.n_steps} of {plan.n_burnin} steps of "
            f"the burn-in; give more time{f', with resume_from={str(file)!r}' if file else ''}."
        )
    chains = chains.join_walkers(plan.n_walkers, plan.n_draws)
    if stopped is not None:
        choices = plan.choices | {"stopped_by": stopped}
        plan = replace(plan, n_draws=chains.draws.shape[1], choices=choices)
    return plan, chains


def _finding(error: ChainOverflowError, plan: Plan) -> Finding | None:
    """Finding for a second plan after an overflow; None if the user chose the step size."""
    settings, run = plan.settings, plan.run
    chosen_by_user = settings.sampler is not AUTO or settings.step_size is not AUTO
    if chosen_by_user or run.sampler.adjusted:
        return None
    why = f"chain {error.chain} overflowed at step {error.step}, by steps of {run.step_size:.3g}"
    if settings.left_to_tuning:
        return Finding(f"{run.sampler}: {why}")
    return Finding(why, 0.25 * run.step_size)
