"""Long runs: chains in parts, after each of which they may stop, or be written to a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import Any

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

_SECONDS = 1.0  # longest part, about
_PARTS = 20  # least number of parts where the time is bounded
_GROWTH = 1.25  # draws at one measurement of the effective size over those at the last
_FEWER, _MORE = 10, 10  # measurements below and above n_draws: from a tenth to ten times as many
MOST = 10  # largest number of draws, over n_draws


def looks(n_draws: int, target_ess: float | None) -> list[int]:
    """Numbers of draws a chain at which a run may end; they depend on no result of it."""
    if target_ess is None:
        return [n_draws]
    counts = {round(n_draws * _GROWTH**k) for k in range(-_FEWER, _MORE + 1)}
    return sorted({n for n in counts if 0 < n < MOST * n_draws} | {MOST * n_draws})


def draw(
    plan: Plan,
    origin: Origin | None,
    progress: Progress | None,
    workers: Workers | None = None,
) -> tuple[Chains, Choice | None]:
    """Chains of a plan, run until the draws are made, are enough or the time is up.

    Parameters
    ----------
    plan : Plan
    origin : Origin or None
        None: no checkpoint is written, and only the number of draws ends the run.
    progress : callable or None
        Called with the number of further steps; True ends the run.
    workers : Workers or None
        Where chains run side by side; None: in the processes of ``n_jobs``.

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
    if origin is not None and plan.settings.in_parts:
        return _draw_in_parts(plan, origin, progress, workers)
    lengths: dict[str, Any] = {"n_draws": plan.n_each, "n_burnin": plan.n_burnin, "thin": plan.thin}
    how: dict[str, Any] = {"n_jobs": plan.settings.n_jobs, "progress": progress, "workers": workers}
    try:
        chains = run_chains(plan.run, plan.start, seed=plan.seed, **lengths, **how)
    except ChainOverflowError as error:
        error.chain //= plan.n_walkers
        raise
    stopped = None
    if chains.draws.shape[1] < plan.n_each:
        stopped = _ended_by_callback(chains)
        _check_drawn(plan, chains, stopped)
    return chains.in_a_row(plan.n_walkers, plan.n_draws), stopped


def _draw_in_parts(
    plan: Plan, origin: Origin, progress: Progress | None, workers: Workers | None
) -> tuple[Chains, Choice | None]:
    """Chains of a run that may stop, or be written to a file, after each of its parts."""
    settings, saved = plan.settings, origin.saved
    limit = origin.limit(settings)
    ends = looks(plan.n_draws, settings.target_ess)
    if saved is None:
        chains = run_chains(plan.run, plan.start, n_draws=0, seed=plan.seed)
    else:
        saved.check_plan(plan, ends[-1])
        chains = saved.chains
        if progress is not None:
            progress(chains.n_steps)
    writer = None
    if settings.checkpoint is not None:
        writer = Writer(settings.checkpoint, plan, origin)
        writer.begin(chains)
    parts, stopped, late = [chains], None, False
    try:
        for end in ends:
            if end < chains.draws.shape[1]:
                continue
            for part in _parts(plan, chains, end, progress, workers):
                parts.append(part)
                if writer is not None and writer.due:
                    parts = [join_parts(parts)]
                    writer.write(parts[0])
                late = monotonic() >= limit
                if late:
                    break
            parts = [chains := join_parts(parts)]
            stopped = _stopped(plan, chains, end, late)
            if stopped is not None:
                break
    except KeyboardInterrupt:
        if writer is not None:
            writer.write(join_parts(parts))
        raise
    early = stopped is not None and stopped.value in EARLY_ENDS
    if writer is not None:
        writer.write(chains, finished=not early)
    if stopped is not None:
        _check_drawn(plan, chains, stopped, None if writer is None else writer.path)
    if stopped is None and settings.stops_by_itself:
        stopped = Choice("n_draws", "all of them were made")
    return chains, stopped


def _ended_by_callback(chains: Chains) -> Choice:
    """Reason of a run that a callback ended with these draws."""
    made = f"a callback asked to stop after {chains.draws.shape[1]} draws a chain"
    return Choice("callback", made)


def _check_drawn(plan: Plan, chains: Chains, stopped: Choice, path: Path | None = None) -> None:
    """Raise where a run was ended before its first draw; its checkpoint is at ``path``."""
    if chains.draws.shape[1]:
        return
    there = "" if path is None else f", with resume_from={str(path)!r}"
    ended = "a callback asked to stop"
    if stopped.value == "max_time":
        ended = f"max_time={plan.settings.max_time:g} was up"
    raise ValueError(
        f"{ended} before the first draw, after {chains.n_steps} of {plan.n_burnin} steps of the "
        f"burn-in; give more time{there}."
    )


def _parts(
    plan: Plan,
    chains: Chains,
    end: int,
    progress: Progress | None,
    workers: Workers | None,
) -> Iterable[Chains]:
    """Parts of the run from where the chains are to ``end`` draws a chain."""
    n_draws = end - chains.draws.shape[1]
    n_burnin = max(0, plan.n_burnin - chains.n_steps)
    if not n_draws + n_burnin:
        return ()
    limit = plan.settings.max_time
    return run_parts(
        plan.run,
        chains.state,
        Stretch(n_burnin, n_draws, plan.thin),
        n_jobs=plan.settings.n_jobs,
        progress=progress,
        seconds=_SECONDS if limit is None else min(_SECONDS, limit / _PARTS),
        workers=workers,
    )


def _stopped(plan: Plan, chains: Chains, end: int, late: bool) -> Choice | None:
    """Reason for the run to end here; None where it goes on."""
    n_draws, target = chains.draws.shape[1], plan.settings.target_ess
    if n_draws < end and not late:
        return _ended_by_callback(chains)
    if n_draws < end:
        made = f"{plan.settings.max_time:g} s were up after {n_draws} draws a chain"
        return Choice("max_time", made)
    if target is None:
        return None
    ess, figure = plan.effective_size(chains.draws)
    if ess >= target:
        return Choice("target_ess", f"{figure}: target_ess={target:g} is reached")
    if n_draws >= MOST * plan.n_draws:
        return Choice("cap", f"{figure}: target_ess={target:g} is not reached by {MOST} n_draws")
    return None
