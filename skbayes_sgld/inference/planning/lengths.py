"""Draws, thinning, burn-in and walkers: functions for strategies."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from skbayes_sgld.inference.choices import Choice, Choices
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.setting_checks import AUTO, given_or
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

_FEWEST = 16  # least number of draws, however long they take


def draws_in_time(n_asked: int, work: float) -> int:
    """Number of the draws that are made in time, by the multiplications of each."""
    half, full = (limit / work for limit in THRESHOLDS.max_draw)
    return ceil(min(1.0, max(full, min(0.5, half))) * n_asked)


class Lengths(NamedTuple):
    """Draws of a chain, its burn-in, the steps between draws, and its walkers."""

    n_draws: Choice
    n_burnin: Choice
    thin: Choice
    n_walkers: int = 1

    @property
    def choices(self) -> Choices:
        """Choices for the plan's table; the number of draws only if it is not the requested one."""
        lengths = {"n_burnin": self.n_burnin, "thin": self.thin}
        return lengths if self.n_draws.given else lengths | {"n_draws": self.n_draws}


def usual_lengths(
    task: Task, run: Run, time: float | None, most_spaced: int = THRESHOLDS.max_thin
) -> Lengths:
    """Lengths of a run from its autocorrelation time in steps, None if that is not known.

    ``most_spaced`` is the largest affordable number of steps between draws. If it is less than
    the draws would be apart, steps are expensive, and the burn-in is half as long.
    """
    n_draws = choose_n_draws(task)
    thin = choose_thin(task.settings, time, most_spaced)
    automatic, why = usual_burnin(time, n_draws.value * thin.value)
    if time is not None and most_spaced < usual_thin(time):
        automatic, why = automatic // 2, "five independent draws' worth, as steps are expensive"
    n_burnin = choose_burnin(task, automatic, why)
    n_walkers = choose_walkers(task, run, n_burnin.value, n_draws.value * thin.value)
    return Lengths(n_draws, n_burnin, thin, n_walkers)


# ---- draws --------------------------------------------------------------------------------------


def choose_n_draws(task: Task, in_time: int | None = None) -> Choice:
    """Number of draws of a chain: as requested, unless memory or time do not allow them."""
    settings, n_params = task.settings, len(task.posterior.reported.names)
    n_asked, n_chains = settings.n_draws, settings.n_chains
    if not task.may_have_walkers:
        return Choice.by_user(n_asked)
    if n_chains * n_asked > THRESHOLDS.max_numbers:
        raise ValueError(
            f"n_draws={n_asked}: of {n_chains} chains, even with one parameter, these are "
            f"more than the {THRESHOLDS.max_numbers:,.0f} numbers that a run keeps; give at most "
            f"{THRESHOLDS.max_numbers // n_chains:.0f}."
        )
    in_memory = int(THRESHOLDS.max_numbers // (n_chains * n_params))
    in_time = n_asked if in_time is None else in_time
    n_draws = max(min(n_asked, in_memory, in_time), min(n_asked, _FEWEST))
    limit = "memory" if in_memory < in_time else "time"
    why = f"{n_asked:,} of {n_params:,} parameters would take too much {limit}"
    return Choice.by_user(n_draws) if n_draws == n_asked else Choice(n_draws, why)


# ---- steps from draw to draw --------------------------------------------------------------------


def usual_thin(time: float) -> int:
    """Steps between draws of chains with an autocorrelation time of ``time`` steps.

    Draws spaced by ``time`` are nearly independent. Long times are halved: draws are then worth
    half as much, at half the cost.
    """
    time = round(max(time, 1.0), 6)  # rounding errors must not add a step
    thin = time if time <= THRESHOLDS.short_thin else max(THRESHOLDS.short_thin, 0.5 * time)
    return int(min(np.ceil(thin), THRESHOLDS.max_thin))


def choose_thin(
    settings: Settings, time: float | None, most_spaced: int = THRESHOLDS.max_thin
) -> Choice:
    """Steps between draws."""
    if settings.thin is not AUTO:
        return Choice.by_user(settings.thin)
    if time is None:
        return Choice(10, "nothing is known of the posterior's widths")
    thin, steps = usual_thin(time), f"{time:.3g}"
    why = f"autocorrelation time of {steps} step{'s' * (steps != '1')}"
    if most_spaced < thin:
        return Choice(most_spaced, f"{why}, and more steps a draw would take too long")
    return Choice(thin, f"{why}; closer draws cost less" if thin + 1 <= time else why)


# ---- burn-in ------------------------------------------------------------------------------------


def ten_times(time: float) -> int:
    """Burn-in of ten autocorrelation times, after which the start is forgotten."""
    time = round(max(time, 1.0), 6)
    return int(min(np.ceil(10.0 * time), 10_000))


def usual_burnin(time: float | None, n_steps: int) -> tuple[int, str]:
    """Burn-in before draws that take ``n_steps``, and its reason."""
    if time is None:
        return n_steps, "half of the run"
    why = "ten independent draws' worth, at most half of the run"
    return min(ten_times(time), n_steps), why


def choose_burnin(task: Task, automatic: int, why: str) -> Choice:
    """Steps before the first draw; by default none if chains continue those of the last fit."""
    settings = task.settings
    if settings.n_burnin is not AUTO:
        return Choice.by_user(settings.n_burnin)
    if task.continues:
        return Choice(0, "chains continue those of the last fit")
    if settings.n_hot:
        return Choice(automatic + settings.n_hot, f"{why} after the temperature has settled")
    return Choice(automatic, why)


# ---- walkers ------------------------------------------------------------------------------------


def choose_walkers(task: Task, run: Run, n_burnin: int, n_steps: int, most: float = np.inf) -> int:
    """Number of walkers of a chain, at most ``most``.

    A step of 32 positions costs little more than one of four, but each walker has a burn-in.
    """
    facts = run.dynamics.facts
    if not (task.may_have_walkers and task.settings.automatic and facts.one_mode):
        return 1
    if run.sampler.at_once:  # walkers save nothing if blocks are made at once
        return 1
    return most_walkers(n_burnin, n_steps, most, facts.many_at_once)


def expected_walkers(task: Task) -> int:
    """Number of walkers of a chain that could share a batch at a step size of 1."""
    settings, facts = task.settings, task.facts
    shared = settings.automatic and settings.allows_walkers
    if not (shared and facts.one_mode and facts.shares_batches):
        return 1
    time = 2.0  # autocorrelation time of steps of size 1
    n_burnin = given_or(settings.n_burnin, ten_times(time))
    return most_walkers(n_burnin, settings.n_draws * given_or(settings.thin, usual_thin(time)))


def most_walkers(
    n_burnin: int, n_steps: int, most: float = np.inf, many_at_once: bool = False
) -> int:
    """Largest number of walkers, at most ``most``, whose burn-in is a small share of the steps.

    It may be large if ``many_at_once`` positions cost little more than one.
    """
    # a product with 16 positions costs half as much as 16 products; more positions gain little. Of
    # 250 draws a chain, eight walkers take half to two thirds of the time of one
    largest_share = {32: 0.1, 16: 0.35, 8: 0.35, 4: 0.35}
    if many_at_once:  # a normal model of 180 rows and 18 labels takes two thirds of the time
        largest_share = {64: 0.7} | largest_share
    usable = (
        k for k, share in largest_share.items() if k <= most and k * n_burnin <= share * n_steps
    )
    return next(usable, 1)


def walkers_along_rows(task: Task, n_draws: int, most: int = 16) -> int:
    """Number of walkers, at most ``most``, that share products with few rows a column.

    Each makes at least as many draws as there are walkers.
    """
    if not task.may_have_walkers:
        return 1
    return next((w for w in (16, 8, 4) if w <= most and w**2 <= n_draws), 1)
