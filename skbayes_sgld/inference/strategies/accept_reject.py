"""Samplers that accept or reject, whose metric and step size a pilot adapts.

HMC is exact at any step size. It is used if a pilot finds a bias in the cheaper steps of Langevin
dynamics. Samplers of this kind that the user names are tuned here too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skbayes_sgld.inference.choices import GIVEN, Choice
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.lengths import (
    Lengths,
    choose_burnin,
    choose_n_draws,
    choose_thin,
    choose_walkers,
    usual_burnin,
)
from skbayes_sgld.inference.planning.plans import chosen, draft, finish, with_first_step
from skbayes_sgld.inference.planning.rows_asked_for import rows_of_settings
from skbayes_sgld.inference.planning.rows_read import RowsRead, all_rows
from skbayes_sgld.inference.planning.starts import choose_start, walkers
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.setting_checks import AUTO, given_or
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers import HMC
from skbayes_sgld.sampling.tuning.adaptation import (
    USUAL,
    Adaptation,
    Pilot,
    adapt,
    affordable,
    nearer_to_center,
    recentred,
)
from skbayes_sgld.sampling.tuning.mode import Center
from skbayes_sgld.sampling.tuning.precision import round_gradient

# Autocorrelation time, as a noisy pilot measures it, below which every trajectory ends in a draw:
# 4,000 draws are then worth 800 or more. Trajectories lead beyond the centre, and two of them lead
# back: with 10 columns and a horseshoe a second trajectory a draw hardly adds effective draws
_EVERY = 5.0
# Trajectories to an independent draw from which chains do not move. Their number is 1 in ordinary
# fits, below 10 in narrow ones, and 700 to 1e10 where the noise of a few heavy rows is e^-100. A
# trajectory is then cut at 50 steps, and a run of 8,000 rows took minutes for nothing
_STILL, _FEW_DRAWS = 200.0, 100


class AcceptReject(Strategy):
    """HMC, or a named sampler that accepts or rejects, in an adapted metric."""

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether there is a finding against Langevin steps, or the user named such a sampler."""
        has_finding = task.settings.left_to_tuning and task.finding is not None
        return has_finding or tunes_named(task.settings)

    @classmethod
    def plan(cls, task: Task) -> Plan:
        """Plan of trajectories on all rows."""
        path_length = task.facts.path_length
        usual = HMC() if path_length is None else HMC(path_length=path_length)
        run, rows_read = draft_adjusted(task, given_or(task.settings.sampler, usual))
        why = GIVEN if task.finding is None else task.finding.why
        return finish_adapted(task, rows_read, adapt_run(task, run, task.mode, why))


def tunes_named(settings: Settings) -> bool:
    """Whether the user named a sampler that accepts or rejects, and left its steps to a pilot."""
    sampler = settings.sampler
    free_steps = settings.step_size is AUTO and settings.uses_curvature
    return sampler is not AUTO and sampler.adjusted and sampler.adapts and free_steps


def draft_adjusted(task: Task, sampler: Sampler, rounds: bool = True) -> tuple[Run, RowsRead]:
    """Run on all rows, and its choice of rows.

    If it ``rounds``, gradients are in single precision where that is safe.
    """
    if task.settings.all_left_to_tuning:
        rows_read = all_rows(f"{sampler} takes all rows", task.posterior, task.mode)
    else:
        rows_read = rows_of_settings(task, sampler, task.mode)
    run = draft(task, sampler, rows_read, task.mode)
    dynamics = round_gradient(run.dynamics, task.mode) if rounds else run.dynamics
    return replace(run, dynamics=dynamics), rows_read


@dataclass(frozen=True)
class AdaptedRun:
    """A run whose metric and step size a pilot has adapted.

    Attributes
    ----------
    run : Run
    found : Adaptation
        Figures of the pilot. Chains of the run may start at its ``ends``, if there are any.
    spacing : float
        Steps from draw to draw: 1 if the measured autocorrelation time is short, else that time
        minus 1; at most the affordable one.
    most_spaced : int
        Largest affordable number of steps between draws.
    why_sampler, why_step_size : str
    """

    run: Run
    found: Adaptation
    spacing: float
    most_spaced: int
    why_sampler: str
    why_step_size: str


def adapt_run(task: Task, run: Run, center: Center, why: str, pilot: Pilot = USUAL) -> AdaptedRun:
    """Adapt metric and step size from a centre; if nothing is given, step sizes may vary.

    ``why`` is the reason for the sampler.
    """
    settings, mode = task.settings, task.mode
    run = pilot.prepared(run, mode, center)
    adapted = adapt(run, center, task.seed, pilot)
    # Log-linear noise, 17 to 45 rows, three per column: 4 to 7 % of the trajectories had an
    # acceptance probability of 0, and a chain stood still for 40 to 160 trajectories; for 20 with
    # varied step sizes
    may_vary = settings.sampler is AUTO and settings.clip is None and pilot is USUAL
    if may_vary and adapted.lost > 0.03 and isinstance(run.sampler, HMC):
        why += f"; {adapted.lost:.0%} of a pilot's trajectories entered parts too narrow for them"
        # ratio of the longest to the shortest
        run = replace(run, sampler=replace(run.sampler, step_range=64.0))
        adapted = adapt(run, center, task.seed, pilot)
    run = adapted.moved or run
    dynamics = recentred(run.dynamics, adapted.center)
    run = replace(run, dynamics=dynamics, step_size=adapted.step_size)
    n_gradients = run.sampler.gradients(run.step_size)
    expected = run.sampler.step_and_time(np.ones(mode.theta.size), run.step_size)[1]
    # With a Laplace prior, 60 columns and 40 rows every step is a draw: effective sample sizes of
    # 1,200 to 1,800 of 4,000, errors of 5 to 9 % in the worst of 62 sds, and no bias over 20 seeds
    spacing = adapted.autocorrelation - 1.0
    if pilot is USUAL and adapted.autocorrelation < _EVERY:
        spacing = 1.0
    most = 400 / n_gradients  # slower mixing is reported as a problem
    # if there may be several modes, chains that start far apart find more of them; coordinates of
    # learned scales are nearly normal
    facts = run.dynamics.facts
    if not (facts.log_concave or facts.hierarchical):
        adapted = replace(adapted, ends=adapted.ends[:0])
    return AdaptedRun(
        run,
        adapted,
        min(max(1.0, spacing, 0.5 * expected), max(1.0, most)),
        affordable(run, adapted.autocorrelation),
        why,
        f"pilot acceptance {adapted.acceptance:.0%} near this step size",
    )


def finish_adapted(
    task: Task, rows_read: RowsRead, tuned: AdaptedRun, pilot: Pilot = USUAL
) -> Plan:
    """Plan of a run that a pilot has adapted."""
    if tuned.found.moved is not None:
        task = task.moved(tuned.found.moved.dynamics.posterior)
    run = with_first_step(tuned.run, tuned.run.step_size)
    still = stands_still(tuned) if task.settings.left_to_tuning else ""
    if still:
        tuned = replace(tuned, spacing=1.0, most_spaced=1)
    lengths = adapted_lengths(task, replace(tuned, run=run), _FEW_DRAWS if still else None)
    return finish(
        task,
        run,
        rows_read.choices | chosen(task, run, tuned.why_sampler, tuned.why_step_size),
        lengths,
        adapted_start(task, run, tuned.found, lengths.n_walkers, pilot),
        mode=task.mode,
        center=tuned.found.center,
        bias=(0.0, 0.0),
        still=still,
    )


def stands_still(tuned: AdaptedRun) -> str:
    """Finding that chains hardly move; empty if they move."""
    run, acceptance = tuned.run, tuned.found.acceptance
    to_next = run.sampler.step_and_time(np.ones(1), run.step_size)[1] / max(acceptance, 1e-9)
    if to_next <= _STILL:
        return ""
    return (
        f"{run.sampler}: a pilot accepts {acceptance:.0%} of the trajectories, by steps of "
        f"{run.step_size:.2g} sds, and an independent draw would take {to_next:.2g} of them"
    )


def adapted_lengths(task: Task, tuned: AdaptedRun, in_time: int | None = None) -> Lengths:
    """Lengths of a run; the pilot's trajectories count as part of its burn-in.

    ``in_time`` is the largest number of draws, if it is limited.
    """
    settings, ends = task.settings, tuned.found.ends
    n_draws = choose_n_draws(task, in_time)
    thin = choose_thin(settings, tuned.spacing, tuned.most_spaced)
    n_steps = n_draws.value * thin.value
    # draws of long trajectories are closer than independent ones
    settling = max(tuned.spacing, min(tuned.found.autocorrelation, _EVERY) - 1.0)
    automatic, why = usual_burnin(settling, n_steps)
    if settings.init is AUTO and len(ends):
        # the correlation between walkers from one pilot chain falls to 10 %
        least = min(automatic, int(np.ceil(2.0 * tuned.spacing)))
        if tuned.found.n_settling:
            automatic, why = automatic - tuned.found.n_settling, f"{why}, with the pilot's part"
        if automatic < least:
            automatic, why = least, "two independent draws' worth, after those of the pilot"
    n_burnin = choose_burnin(task, automatic, why)
    # at least three chains have walkers that all start at different pilot positions
    most = len(ends) / 3 if len(ends) else np.inf
    n_walkers = choose_walkers(task, tuned.run, n_burnin.value, n_steps, most)
    return Lengths(n_draws, n_burnin, thin, n_walkers)


def adapted_start(
    task: Task, run: Run, found: Adaptation, n_walkers: int, pilot: Pilot
) -> tuple[Array, Choice]:
    """Starting points: positions of the pilot, if they may be used."""
    ends = found.ends
    if not len(ends) or task.settings.init is not AUTO or task.continues:
        return accepted_start(task, run, found.center, n_walkers, pilot)
    why = found.of_ends + walkers(n_walkers)
    return ends[np.arange(n_walkers * task.settings.n_chains) % len(ends)], Choice("pilot", why)


def accepted_start(
    task: Task, run: Run, center: Center, n_walkers: int, pilot: Pilot = USUAL
) -> tuple[Array, Choice]:
    """Starting points, moved to where proposals are accepted."""
    start, choice = choose_start(task, center, n_walkers)
    if task.continues:
        return start, choice
    position = pilot.start(run, start, center, task.seed)
    if choice.value != "mode":
        position = nearer_to_center(run, position, center)
    position = pilot.leave(run, position, center, task.seed)
    if choice.value != "mode" and not np.array_equal(position, start):
        moved = "moved towards the mode, as trajectories from so far out are not accepted"
        choice = choice._replace(why=f"{choice.why}; {moved}")
    return position, choice
