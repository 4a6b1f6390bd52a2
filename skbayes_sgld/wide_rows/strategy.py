"""Few rows per parameter: most of the posterior is far from its mode; trajectories follow rows.

At the mode most rows are certain, and the curvature comes from the few others. Centre and metric
are those of the normal distribution that matches the posterior's moments. In its coordinates
a gradient takes two products with the rows and none with the metric, and several walkers share each
product. Labels of dense rows are sampled without rejections (``kinetic.py``), all others by HMC.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from math import ceil

import numpy as np
from scipy.sparse import issparse

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.inference.choices import GIVEN
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.lengths import (
    Lengths,
    choose_burnin,
    choose_n_draws,
    choose_thin,
    draws_in_time,
    expected_walkers,
    usual_burnin,
    walkers_along_rows,
)
from skbayes_sgld.inference.planning.plans import chosen, finish, with_first_step
from skbayes_sgld.inference.planning.rows_read import RowsRead, reason_for_all_rows
from skbayes_sgld.inference.planning.task import Task, find_mode
from skbayes_sgld.inference.setting_checks import AUTO, given_or
from skbayes_sgld.inference.strategies.accept_reject import (
    AdaptedRun,
    adapt_run,
    adapted_start,
    draft_adjusted,
    finish_adapted,
    tunes_named,
)
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.whitening import CollapsedPosterior, WhitenedPosterior
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.samplers import HMC, SGLD
from skbayes_sgld.sampling.tuning.adaptation import USUAL
from skbayes_sgld.sampling.tuning.mode import Center, Mode
from skbayes_sgld.wide_rows.collapsed_hmc import CollapsedHMC
from skbayes_sgld.wide_rows.collapsed_rows import collapsed_rows
from skbayes_sgld.wide_rows.kinetic import kinetic_plan
from skbayes_sgld.wide_rows.matching import MOST_ROWS, matched_normal
from skbayes_sgld.wide_rows.pilot import PilotAlongRows
from skbayes_sgld.wide_rows.whitened import WhitenedRows, sparse_rows, whiten_rows

# Squared distance to the mode, per parameter, at which the search stops: the centre is far from it
# (at 5.0 for 3,000 rows and 2,100 columns). The search then takes 3 s instead of 8 s
_NEAR = 0.01
_LARGE_BLOCKS = 1.33  # speed of products in large blocks, relative to others
_DEAR = 3e7  # multiplications of a trajectory of which four draws are taken in place of two


class Wide(Strategy):
    """Kinetic Langevin dynamics or HMC about the normal distribution of the posterior's moments."""

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether chains may accept or reject: by the user's settings, or because none is given."""
        return task.settings.left_to_tuning or tunes_named(task.settings)

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan of trajectories about a centre other than the mode, if there is one."""
        posterior, named = task.posterior, task.settings.sampler
        near = partial(find_mode, posterior.rounded(), _NEAR * posterior.n_params)
        task = replace(task, find=cache(near))
        center = nearest_normal(task, collapse=named is AUTO)
        if center is None:
            return task
        # a clip needs the gradient in theta
        why, rows = GIVEN, center.whitened if task.settings.clip is None else None
        if isinstance(rows, WhitenedRows):
            task = task.found(mode=Mode(*center))  # which serves as one
        run, rows_read = draft_adjusted(task, given_or(named, HMC()), rounds=rows is None)
        if named is AUTO:
            why = f"{SGLD()}: the posterior is far from its mode, with few rows per parameter"
            # target acceptance in many dimensions: Beskos et al. (2013)
            sampler = HMC(target_acceptance=0.65) if rows is None else hmc_along(rows)
            run = replace(run, sampler=sampler)
            if task.settings.gradient is AUTO:
                all_rows = reason_for_all_rows(task.posterior, expected_walkers(task))
                reasons = {n: each._replace(why=all_rows) for n, each in rows_read.choices.items()}
                rows_read = rows_read._replace(choices=reasons)
            # walls of counts grow steeper further in: steps that are not rejected may overflow
            if isinstance(rows, WhitenedRows) and task.facts.bounded_curvature:
                plan = kinetic_plan(task, run, rows_read, center, why)
                if plan is not None:
                    return plan
        pilot = USUAL if rows is None else PilotAlongRows()
        tuned = adapt_run(task, run, center, why, pilot)
        rows = tuned.run.dynamics.whitened  # the pilot may have learned other ones
        if rows is None:
            return finish_adapted(task, rows_read, tuned, pilot)
        return _finish_along(task, rows_read, tuned, rows)


def nearest_normal(task: Task, collapse: bool) -> Center | None:
    """Normal distribution that matches the posterior's moments; None if none is found.

    Sparse rows of many columns have a metric of the curvature's diagonal, about the mode. With
    ``collapse`` the sampler may be the one for collapsed rows.
    """
    posterior, tau = task.posterior, task.settings.tau
    assert isinstance(posterior, GLMPosterior)
    rows: WhitenedPosterior | None = None
    is_sparse, wide = issparse(posterior.X), posterior.n_params > MAX_DENSE
    # at another temperature the tempered likelihood would have to be integrated
    if collapse and tau == 1.0 and is_sparse and posterior.n_samples > MOST_ROWS:
        rows = collapsed_rows(posterior, task.mode.theta)
    if rows is None and is_sparse and wide:
        rows = sparse_rows(posterior, task.mode.theta)
    if rows is None and not wide:
        normal = matched_normal(posterior, task.find, tau)
        if normal is None:
            return None
        rows = whiten_rows(posterior, *normal)
        if rows is None:
            return Center.from_curvature(normal.mean, normal.precision)
    return None if rows is None else Center.from_whitened(rows)


def _finish_along(
    task: Task, rows_read: RowsRead, tuned: AdaptedRun, rows: WhitenedPosterior
) -> Plan:
    """Plan of trajectories along whitened rows, which may take seconds each."""
    tuned, in_time = _shared_trajectories(task, tuned, rows)
    run = with_first_step(tuned.run, tuned.run.step_size)
    lengths = lengths_along(task, tuned, in_time, rows.collapsed)
    return finish(
        task,
        run,
        rows_read.choices | chosen(task, run, tuned.why_sampler, tuned.why_step_size),
        lengths,
        adapted_start(task, run, tuned.found, lengths.n_walkers, PilotAlongRows()),
        mode=None if isinstance(rows, WhitenedRows) else task.mode,
        center=tuned.found.center,
        bias=(0.0, 0.0),
    )


def lengths_along(task: Task, tuned: AdaptedRun, in_time: int, collapsed: bool) -> Lengths:
    """Lengths of a run whose walkers share products: a shorter burn-in, and the number of walkers.

    ``in_time`` is the number of draws that time allows.
    """
    n_draws = choose_n_draws(task, in_time)
    thin = choose_thin(task.settings, tuned.spacing, tuned.most_spaced)
    automatic, _ = usual_burnin(tuned.spacing, n_draws.value * thin.value)
    automatic = min(ceil(0.5 * automatic), ceil(0.06 * n_draws.value) * thin.value)
    why = "five independent draws' worth, after the pilot's trajectories"
    if len(tuned.found.ends):
        automatic = ceil(_draws_to_forget(tuned.run.sampler) * tuned.spacing)
        why = "until a tenth is left of the distances that the pilot's trajectories ended with"
    n_burnin = choose_burnin(task, automatic, why)
    n_walkers = walkers_along_rows(task, n_draws.value, 4 if collapsed else 16)
    return Lengths(n_draws, n_burnin, thin, n_walkers)


def _draws_to_forget(sampler: Sampler) -> int:
    """Independent draws' worth until a tenth of a squared distance from the centre is left.

    A trajectory leaves a share of ``cos^2(path length)``. With two of length 2.4 (3,000 rows of
    1,000 columns), squared distances of the first draws were 1.5 % too small.
    """
    share = np.cos(sampler.path_length) ** 2 if isinstance(sampler, HMC) else 0.0
    return max(2, ceil(np.log(0.1) / np.log(max(share, 1e-3))))


def _shared_trajectories(
    task: Task, tuned: AdaptedRun, rows: WhitenedPosterior
) -> tuple[AdaptedRun, int]:
    """Run, which may take several draws from a trajectory, and the number of draws in the time.

    If trajectories mix as well as the pilot's, fewer of them than draws are enough for intervals.
    """
    settings, n_asked = task.settings, task.settings.n_draws
    n_steps = tuned.run.sampler.gradients(tuned.run.step_size)
    work = rows.work_of(n_steps)
    speed = _LARGE_BLOCKS if isinstance(rows, WhitenedRows) else 1.0
    in_time = draws_in_time(n_asked, work / speed)
    given = settings.sampler is not AUTO or settings.thin is not AUTO
    if rows.collapsed or given or not task.may_have_walkers:
        return tuned, in_time
    few = in_time < n_asked
    # 150 effective draws per chain are half as many again as the limit of the warning
    enough = in_time if few else 150.0 * tuned.found.autocorrelation
    # whole leapfrog steps between points
    most = 4.0 if few or work > _DEAR else 2.0
    between = max(1, round(n_steps / float(np.clip(n_asked / enough, 1.0, most))))
    n_points = max(1, round(n_steps / between))
    if n_points == 1:
        return tuned, in_time
    sampler = hmc_along(rows, n_points)
    step_size = sampler.whole_steps(tuned.run.step_size)
    run = replace(tuned.run, sampler=sampler, step_size=step_size)
    spacing = n_points * tuned.spacing
    return replace(tuned, run=run, spacing=spacing, most_spaced=1), in_time * n_points


def hmc_along(rows: WhitenedPosterior, n_points: int = 1) -> HMC:
    """HMC along whitened rows, with ``n_points`` draws per trajectory."""
    if isinstance(rows, CollapsedPosterior):
        sampler: HMC = CollapsedHMC()
    else:
        # Effective draws per gradient of 32 positions, with path lengths 1.5, 2 and 2.8 (1,500 rows
        # of 1,050 columns, nearly separated): 0.85, 1.1 and 1.3 for means, 1.24, 0.95 and 0.46 for
        # squares
        sampler = HMC(target_acceptance=0.8, n_points=n_points)
    sampler.most_steps = 1000  # the cost has been limited already
    return sampler
