"""Long runs: chains in parts, after each of which they may stop, or be written to a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._progress import Progress
from skbayes_sgld.inference.checkpoint import (
    ChainPlan,
    Checkpoint,
    Writer,
    check_free,
    digest,
    read,
)
from skbayes_sgld.inference.choices import EARLY_ENDS, Choice, Fallback
from skbayes_sgld.inference.settings import LongRunSettings
from skbayes_sgld.sampling.chains import Chains, Stretch, follow, run_chains, run_parts
from skbayes_sgld.sampling.workers import Workers

Array = NDArray[Any]

_SECONDS = 1.0  # that a part takes at the most, about
_PARTS = 20  # of a run whose time is bounded, at the least
_GROWTH = 1.25  # of the draws from one look at their effective size to the next
_FEWER, _MORE = 10, 10  # looks before and after n_draws: from a tenth of it to about ten times
MOST = 10  # times n_draws: so many at the most


@dataclass(frozen=True)
class Origin:
    """Where a run comes from: its seed, its data, and the checkpoint that it goes on from, if any.

    Attributes
    ----------
    seed : int
    positions : ndarray of shape (n_chains, n_params) or None
        Last positions of an earlier fit, where the chains begin.
    inputs : dict
        Digest and short text of the data and of every setting, by name.
    saved : Checkpoint or None
    begin : float
        When the work began, on the monotonic clock.
    fallback : Fallback or None
        What the run does otherwise, since it overflowed before.
    """

    seed: int
    positions: Array | None
    inputs: dict[str, list[str]]
    saved: Checkpoint | None
    begin: float
    fallback: Fallback | None = None

    @classmethod
    def of(
        cls,
        settings: LongRunSettings,
        inputs: dict[str, Any],
        seed: int,
        positions: Array | None = None,
    ) -> Origin:
        """Origin of a run; one that is resumed has the seed and the positions of its checkpoint.

        ``inputs`` are the data and the settings, by name.

        Raises
        ------
        FileNotFoundError, FileExistsError, ValueError
            Where the checkpoint cannot be resumed from, or would replace an unfinished run.
        """
        begin = monotonic()
        if settings.checkpoint is None and settings.resume_from is None:
            return cls(seed, positions, {}, None, begin)
        check_free(settings)
        digests = digest(inputs, settings.random_state)
        if settings.resume_from is None:
            return cls(seed, positions, digests, None, begin)
        saved = read(settings.resume_from)
        saved.check_inputs(digests)
        return cls(saved.seed, saved.positions, digests, saved, begin, saved.fallback)

    def begun_anew(self, fallback: Fallback) -> Origin:
        """Origin of a run that begins again, since it overflowed."""
        return replace(self, saved=None, fallback=fallback)

    @contextmanager
    def interruptible(self, path: Path | None) -> Iterator[None]:
        """Context in which an interrupt names the checkpoint to resume from, if there is one.

        ``path`` is where the run writes its own.
        """
        try:
            yield
        except KeyboardInterrupt:
            if not self.inputs:
                raise
            raise KeyboardInterrupt(f"interrupted; {self._left(path)}") from None

    def limit(self, settings: LongRunSettings) -> float:
        """When the time of the run is up, on the monotonic clock."""
        return np.inf if settings.max_time is None else self.begin + settings.max_time

    def _left(self, path: Path | None) -> str:
        """What an interrupted run has left to go on from."""
        there = self.saved
        try:
            own = None if path is None else read(path)
        except (OSError, ValueError):
            own = None
        # a file of another run, which has come to its end, may stand where this one has not begun
        if own is not None and (own.seed, own.inputs) == (self.seed, self.inputs):
            there = own
        if there is None:
            return f"nothing was written to checkpoint={str(path)!r} yet, so begin anew"
        n_draws = there.chains.draws.shape[1]
        return f"resume_from={str(there.path)!r} goes on from {n_draws} draws a chain"


def looks(n_draws: int, target_ess: float | None) -> list[int]:
    """Numbers of draws a chain at which a run may end; they depend on ``n_draws`` alone."""
    if target_ess is None:
        return [n_draws]
    counts = {round(n_draws * _GROWTH**k) for k in range(-_FEWER, _MORE + 1)}
    return sorted({n for n in counts if 0 < n < MOST * n_draws} | {MOST * n_draws})


def run_long(
    plan: ChainPlan,
    origin: Origin,
    progress: Progress | None,
    workers: Workers | None = None,
) -> tuple[Chains, Choice | None]:
    """Chains of a plan in parts, until the draws are made, are enough or the time is up.

    Parameters
    ----------
    plan : ChainPlan
    origin : Origin
    progress : callable or None
        Told how many steps were made since it was told last; True ends the run.
    workers : Workers or None
        Where chains run side by side; None: in the processes of ``n_jobs``.

    Returns
    -------
    chains : Chains
    stopped_by : Choice or None
        What ended the run; None where only the number of draws could.

    Raises
    ------
    ValueError
        Where the run is ended before the first draw, or the checkpoint is of another run.
    OSError
        Where the checkpoint cannot be written at the beginning.
    KeyboardInterrupt
        Where the user interrupts; the checkpoint is written once more.
    """
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
        known = origin.seed, origin.inputs, origin.positions, origin.fallback
        writer = Writer(settings.checkpoint, plan, *known)
        writer.begin(chains)
    parts, stopped, late = [chains], None, False
    try:
        for end in ends:
            if end < chains.draws.shape[1]:
                continue
            for part in _parts(plan, chains, end, progress, workers):
                parts.append(part)
                if writer is not None and writer.due:
                    parts = [follow(parts)]
                    writer.write(parts[0])
                late = monotonic() >= limit
                if late:
                    break
            parts = [chains := follow(parts)]
            stopped = _stopped(plan, chains, end, late)
            if stopped is not None:
                break
    except KeyboardInterrupt:
        if writer is not None:
            writer.write(follow(parts))
        raise
    early = stopped is not None and stopped.value in EARLY_ENDS
    if writer is not None:
        writer.write(chains, finished=not early)
    if stopped is not None:
        check_drawn(plan, chains, stopped, None if writer is None else writer.path)
    if stopped is None and settings.stops_by_itself:
        stopped = Choice("n_draws", "all of them were made")
    return chains, stopped


def ended_by_callback(chains: Chains) -> Choice:
    """What ended a run with these draws only."""
    made = f"a callback asked to stop after {chains.draws.shape[1]} draws a chain"
    return Choice("callback", made)


def check_drawn(plan: ChainPlan, chains: Chains, stopped: Choice, path: Path | None = None) -> None:
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
    plan: ChainPlan,
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


def _stopped(plan: ChainPlan, chains: Chains, end: int, late: bool) -> Choice | None:
    """What ends the run here, if anything does before its last draw."""
    n_draws, target = chains.draws.shape[1], plan.settings.target_ess
    if n_draws < end and not late:
        return ended_by_callback(chains)
    if n_draws < end:
        made = f"{plan.settings.max_time:g} s were up after {n_draws} draws a chain"
        return Choice("max_time", made)
    if target is None:
        return None
    ess, found = plan.effective_size(chains.draws)
    if ess >= target:
        return Choice("target_ess", f"{found}: target_ess={target:g} is reached")
    if n_draws >= MOST * plan.n_draws:
        return Choice("cap", f"{found}: target_ess={target:g} is not reached by {MOST} n_draws")
    return None
