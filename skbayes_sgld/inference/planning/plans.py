"""From the run that a strategy tunes to its plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skbayes_sgld.inference.choices import Choice, Choices, as_given, in_order
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.lengths import Lengths
from skbayes_sgld.inference.planning.rows_read import RowsRead
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.setting_checks import AUTO, check_room, given_or
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.sampling.base import Sampler, check_requirements
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.preconditioners import Curvature
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.schedules import Constant, check_multipliers
from skbayes_sgld.sampling.tuning.mode import Center, Mode
from skbayes_sgld.sampling.tuning.step_bias import step_bias


def draft(task: Task, sampler: Sampler, rows_read: RowsRead, mode: Mode | None) -> Run:
    """Run before its step size is chosen; ``mode`` is None if no mode is needed.

    Raises
    ------
    ValueError, TypeError
        If the posterior lacks what the sampler needs, or the sampler takes no minibatches.
    """
    settings, sampled = task.settings, rows_read.posterior
    gradient, batch_size = (rows_read.choices[name].value for name in ("gradient", "batch_size"))
    at_mode = expansion = metric = None
    if mode is not None:
        at_mode, expansion, metric = mode.theta, rows_read.mode.expansion, mode.metric
    check_requirements(sampler, task.posterior, batch_size)
    return Run(
        sampler,
        Dynamics(
            gradient.bind(sampled, at_mode, expansion),
            given_or(settings.preconditioner, Curvature()).bind(sampled.n_params, metric),
            settings.clip,
            settings.tau,
            density_of=None if sampled is task.posterior else task.posterior,
            center=at_mode if settings.uses_curvature else None,
            curvature=1.0 if settings.uses_curvature and settings.clip is None else None,
        ),
        settings.schedule,
        1.0,  # placeholder for the step size
        sampled.n_samples,
        batch_size,
        gradient.replacement,
        # under "auto" the diagnosis reports a chain that accepts nothing
        stops_lost=settings.sampler is not AUTO or settings.step_size is not AUTO,
    )


def with_first_step(run: Run, step_size: float) -> Run:
    """Run whose first step has this size, after multiplication by its schedule."""
    return replace(run, step_size=step_size / float(run.schedule(0)))


def chosen(task: Task, run: Run, why_sampler: str, why_step_size: str) -> Choices:
    """Choices of sampler and step size."""
    settings = task.settings
    return {
        "sampler": Choice(run.sampler, why_sampler, settings.sampler is not AUTO),
        "step_size": Choice(run.step_size, why_step_size, settings.step_size is not AUTO),
    }


def finish(
    task: Task,
    run: Run,
    choices: Choices,
    lengths: Lengths,
    start: tuple[Array, Choice],
    *,
    mode: Mode | None,
    center: Center | None,
    bias: tuple[float, float] | None = None,
    **findings: Any,
) -> Plan:
    """Plan of a run with its lengths and starting points.

    Parameters
    ----------
    task : Task
    run : Run
    choices : dict of str to Choice
        Sampler, step size, gradient and batch size.
    lengths : Lengths
    start : tuple of ndarray and Choice
        Starting points of all walkers.
    mode : Mode or None
        Mode of the posterior.
    center : Center or None
        Centre and metric from the tuning.
    bias : tuple of float or None
        Largest bias of the step size, with twice its standard error; None if no pilot has
        measured it.
    **findings
        Further attributes of the plan.
    """
    settings, posterior, n_walkers = task.settings, task.posterior, lengths.n_walkers
    n_draws, n_burnin, thin = (each.value for each in lengths[:3])
    check_room(settings.n_chains, n_draws, posterior.n_params)
    if not isinstance(settings.schedule, Constant):
        check_multipliers(settings.schedule, n_burnin + n_draws * thin)
        bias = None  # it will be measured from the draws
    elif mode is not None and bias is None:
        bias = step_bias(run, mode, run.step_size, settings.uses_curvature, task.seed)
    # the walkers of a chain share each batch, unless the user asked for minibatches
    share_batches = settings.may_take_all_rows and run.batch_size is not None
    share_batches = share_batches and task.facts.shares_batches
    run = replace(
        run,
        dynamics=run.dynamics.for_walkers(n_walkers, share_batches),
        # all else is tuned for the final temperature; chains that continue have cooled already
        temperature=None if task.continues else settings.temperature,
    )
    choices = as_given(settings) | {"parameterization": task.parameterization} | choices
    positions, init = start
    choices |= {"init": init}
    return Plan(
        posterior=posterior,
        run=run,
        start=positions,
        seed=task.seed,
        n_draws=n_draws,
        n_burnin=n_burnin,
        thin=thin,
        choices=in_order(choices | task.choices | lengths.choices),
        settings=settings,
        mode=mode,
        center=center,
        bias=bias or (np.nan, np.nan),
        n_walkers=n_walkers,
        modes=task.modes,
        far=task.far,
        **findings,
    )
