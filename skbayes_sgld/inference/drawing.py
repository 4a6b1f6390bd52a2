"""Chains of a plan, drawn at once, or in parts where a run may stop or writes a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._progress import Progress
from skbayes_sgld.inference.checkpoint import Origin, Writer
from skbayes_sgld.inference.decisions import EARLY_ENDS, Choice
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.sampling.chains import run_chains, run_parts
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.run import Chains, Stretch, join_parts
from skbayes_sgld.sampling.workers import Workers

Array = NDArray[Any]

_SECONDS = 1.0  # longest part, about, of a run that may stop or is written to a file
_PARTS = 20  # least number of parts where the time is bounded
MOST = 10  # largest number of draws, over n_draws


def stopping_points(n_draws: int, target_ess: float | None) -> list[int]:
    """Numbers of draws a chain at which a run may end; they depend on no result of it."""
    if target_ess is None:
        return [n_draws]
    counts = {round(n_draws * 1.25**k) for k in range(-10, 11)}
    return sorted({n for n in counts if 0 < n < MOST * n_draws} | {MOST * n_draws})


def draw(
    plan: Plan, origin: Origin, progress: Progress | None, workers: Workers | None = None
) -> tuple[Chains, Choice | None]:
    """Chains of a plan, run until the draws are made, are enough or the time is up.

    Parameters
    ----------
    plan : Plan
    origin : Origin
    progress : callable or None
        Called with the number of further steps; True ends the run.
    workers : Workers or None
        Workers that run chains side by side; None: the processes of ``n_jobs``.

    Returns
    -------
    chains : Chains
        Chains whose walkers' draws follow one another.
    stopped_by : Choice or None
        Reason why the run ended; None where only the number of draws could end it.

    Raises
    ------
    ValueError
        Where the run is ended before the first draw, or the checkpoint is of another run.
    OSError
        Where the checkpoint cannot be written at the beginning.
    KeyboardInterrupt
        Where the user interrupts; the checkpoint is written once more.
    """
    settings, saved, limit = plan.settings, origin.saved, origin.limit(plan.settings)
    ends = stopping_points(plan.n_each, settings.target_ess)
    parts: list[Chains] = []
    if saved is not None:
        saved.check_plan(plan, ends[-1])
        parts = [saved.chains]
        if progress is not None:
            progress(saved.chains.n_steps)
    writer = None
    if settings.checkpoint is not None:
        parts = parts or [run_chains(plan.run, plan.start, n_draws=0, seed=plan.seed)]
        writer = Writer(settings.checkpoint, plan, origin)
        writer.begin(parts[0])
    stopped, late = None, False
    try:
        for end in ends:
            if parts and end < parts[0].draws.shape[1]:
                continue
            for part in _parts(plan, parts[0] if parts else None, end, progress, workers):
                parts.append(part)
                if writer is not None and writer.due:
                    parts = [join_parts(parts)]
                    writer.write(parts[0])
                late = monotonic() >= limit
                if late:
                    break
            parts = [join_parts(parts)]
            stopped = _stopped(plan, parts[0], end, late)
            if stopped is not None:
                break
    except KeyboardInterrupt:
        if writer is not None:
            writer.write(join_parts(parts))
        raise
    except ChainOverflowError as error:
        error.chain //= plan.n_walkers
        raise
    (chains,) = parts
    if writer is not None:
        writer.write(chains, finished=stopped is None or stopped.value not in EARLY_ENDS)
    if stopped is not None and not chains.draws.shape[1]:
        raise ValueError(_before_the_first_draw(plan, chains, stopped))
    if stopped is None and settings.stops_by_itself:
        stopped = Choice("n_draws", "all of them were made")
    return chains.in_a_row(plan.n_walkers, plan.n_draws), stopped


def _parts(
    plan: Plan,
    chains: Chains | None,
    end: int,
    progress: Progress | None,
    workers: Workers | None,
) -> Iterable[Chains]:
    """Parts of the run from the ``chains``, or from its start, to ``end`` draws a chain."""
    n_draws, n_burnin, seconds = end, plan.n_burnin, None
    if chains is not None:
        n_draws -= chains.draws.shape[1]
        n_burnin = max(0, n_burnin - chains.n_steps)
    if not n_draws + n_burnin:
        return ()
    settings = plan.settings
    if settings.in_parts:
        seconds = min(_SECONDS, (settings.max_time or np.inf) / _PARTS)
    return run_parts(
        plan.run,
        plan.start if chains is None else chains.state,
        Stretch(n_burnin, n_draws, plan.thin),
        seed=plan.seed,
        n_jobs=settings.n_jobs,
        progress=progress,
        seconds=seconds,
        workers=workers,
    )


def _before_the_first_draw(plan: Plan, chains: Chains, stopped: Choice) -> str:
    """Message of a run that was ended before its first draw."""
    path = plan.settings.checkpoint
    there = "" if path is None else f", with resume_from={str(path)!r}"
    ended = "a callback asked to stop"
    if stopped.value == "max_time":
        ended = f"max_time={plan.settings.max_time:g} was up"
    return (
        f"{ended} before the first draw, after {chains.n_steps} of {plan.n_burnin} steps of the "
        f"burn-in; give more time{there}."
    )


def _stopped(plan: Plan, chains: Chains, end: int, late: bool) -> Choice | None:
    """Reason for the run to end here; None where it continues."""
    n_draws, target = chains.draws.shape[1], plan.settings.target_ess
    if n_draws < end:
        if late:
            why = f"{plan.settings.max_time:g} s were up after {n_draws} draws a chain"
            return Choice("max_time", why)
        return Choice("callback", f"a callback asked to stop after {n_draws} draws a chain")
    if target is None:
        return None
    ess, figure = plan.effective_size(chains.draws)
    if ess >= target:
        return Choice("target_ess", f"{figure}: target_ess={target:g} is reached")
    if n_draws >= MOST * plan.n_draws:
        return Choice("cap", f"{figure}: target_ess={target:g} is not reached by {MOST} n_draws")
    return None
