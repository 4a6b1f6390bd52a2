"""Runs made in parts, since they may stop early or are written to a file."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import numpy as np

from skbayes_sgld._progress import Progress
from skbayes_sgld.diagnostics import least_ess
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.diagnosis import EARLY_ENDS
from skbayes_sgld.inference.origin import Journal
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.sampling.loop import run_parts
from skbayes_sgld.sampling.run import Chains, StepCounts, join_parts, reported_draws
from skbayes_sgld.sampling.workers import Workers

MeasureEss = Callable[[Plan, Chains], tuple[float, str]]

_SECONDS = 1.0  # approximate length of the longest part
_MOST = 10  # largest number of draws with target_ess, in units of n_draws


def stopping_points(n_draws: int, target_ess: float | None) -> list[int]:
    """Numbers of draws per chain at which a run may end, independent of its results."""
    if target_ess is None:
        return [n_draws]
    counts = {round(n_draws * 1.25**k) for k in range(-10, 11)}
    return sorted({n for n in counts if 0 < n < _MOST * n_draws} | {_MOST * n_draws})


def draw_in_parts(
    plan: Plan,
    begin: float,
    journal: Journal | None,
    progress: Progress | None,
    workers: Workers | None,
    measure: MeasureEss,
) -> tuple[Chains, Choice | None]:
    """Run the chains of a plan until all draws are made, they are enough, or the time is up.

    Parameters
    ----------
    plan : Plan
    begin : float
        Start of the work, on the monotonic clock.
    journal : Journal or None
        Files of the run.
    progress : callable or None
        Called with the number of further steps; True ends the run.
    workers : Workers or None
        Workers that run chains side by side; None: the processes of ``n_jobs``.
    measure : callable
        Effective sample size of the chains so far, as by :func:`least_ess_of`.

    Returns
    -------
    chains : Chains
        Chains of all walkers.
    stopped_by : Choice or None
        Reason why the run ended; None if only the number of draws could end it.

    Raises
    ------
    ValueError
        If the run is ended before the first draw, or the checkpoint is of another run.
    OSError
        If the checkpoint cannot be written at the beginning.
    KeyboardInterrupt
        If the user interrupts; the checkpoint is then written again.
    """
    settings = plan.settings
    limit = begin + (settings.max_time or np.inf)
    ends = stopping_points(plan.n_each, settings.target_ess)
    parts: list[Chains] = []
    if journal is not None:
        saved = journal.resume(plan, ends[-1])
        if saved is not None:
            parts = [saved]
            if progress is not None:
                progress(saved.n_steps)
        opened = journal.open(plan, saved)
        parts = parts if opened is None else [opened]
    # at least 20 parts if the time is bounded
    seconds = min(_SECONDS, (settings.max_time or np.inf) / 20)
    how: dict[str, Any] = {"progress": progress, "seconds": seconds, "workers": workers}
    how |= {"seed": plan.seed, "n_jobs": settings.n_jobs}
    stopped, late = None, False
    try:
        for end in ends:
            start: Any = plan.start
            n_made = n_steps = 0
            if parts:
                chains = parts[0]
                start, n_made, n_steps = chains.state, chains.draws.shape[1], chains.n_steps
            if end < n_made:
                continue
            rest = StepCounts(max(0, plan.n_burnin - n_steps), end - n_made, plan.thin)
            for part in run_parts(plan.run, start, rest, **how) if rest.n_steps else ():
                parts.append(part)
                if journal is not None and journal.due:
                    parts = [join_parts(parts)]
                    journal.write(parts[0])
                late = monotonic() >= limit
                if late:
                    break
            parts = [join_parts(parts)]
            stopped = _stopped(plan, parts[0], end, late, measure)
            if stopped is not None:
                break
    except KeyboardInterrupt:
        if journal is not None and parts:
            journal.write(join_parts(parts))
        raise
    (chains,) = parts
    if journal is not None:
        journal.write(chains, finished=stopped is None or stopped.value not in EARLY_ENDS)
    if stopped is None and (settings.max_time, settings.target_ess) != (None, None):
        stopped = Choice("n_draws", "all of them were made")
    return chains, stopped


def least_ess_of(plan: Plan, chains: Chains) -> tuple[float, str]:
    """Effective sample size that is compared with ``target_ess``, and a sentence on it."""
    values = reported_draws(plan.posterior, chains.draws, plan.n_burnin, plan.thin)
    ess, worst = least_ess(values)
    name = plan.posterior.reported.names[worst]
    return ess, f"the least bulk effective sample size is {ess:.0f}, of {name}"


def _stopped(
    plan: Plan, chains: Chains, end: int, late: bool, measure: MeasureEss
) -> Choice | None:
    """Reason for the run to end here; None if it continues."""
    n_draws, target = chains.draws.shape[1], plan.settings.target_ess
    if late and n_draws < end:
        why = f"{plan.settings.max_time:g} s were up after {n_draws} draws a chain"
        return Choice("max_time", why)
    if n_draws < end:
        return stopped_by_callback(chains)
    if target is None:
        return None
    ess, figure = measure(plan, chains)
    if ess >= target:
        return Choice("target_ess", f"{figure}: target_ess={target:g} is reached")
    if n_draws >= _MOST * plan.n_draws:
        return Choice("cap", f"{figure}: target_ess={target:g} is not reached by {_MOST} n_draws")
    return None


def stopped_by_callback(chains: Chains) -> Choice:
    """Reason of a run that a callback ended before its last draw."""
    n_draws = chains.draws.shape[1]
    return Choice("callback", f"a callback asked to stop after {n_draws} draws a chain")
