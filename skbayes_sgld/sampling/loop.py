"""Runs of chains: their steps in one go or in parts, in this process or shared by workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from copy import deepcopy
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from joblib import effective_n_jobs

from skbayes_sgld._random import ChainStreams
from skbayes_sgld.sampling.base import check_requirements
from skbayes_sgld.sampling.dynamics import Array
from skbayes_sgld.sampling.run import Chains, Run, RunState, StepCounts, join_parts
from skbayes_sgld.sampling.threads import advance
from skbayes_sgld.sampling.workers import Processes, Workers, side_by_side


def run_chains(
    run: Run,
    start: Array | RunState,
    *,
    n_draws: int,
    n_burnin: int = 0,
    thin: int = 1,
    seed: int = 0,
    first_chain: int = 0,
    block_size: int | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int], bool] | None = None,
    workers: Workers | None = None,
) -> Chains:
    """Run chains from starting points, or from the state of an earlier run.

    Chain c draws the same numbers whatever the number of chains, the block size and ``n_jobs``.

    A pilot may call this too, to move its starts into the posterior. Two make steps in loops of
    their own, as they do not keep draws of one run:
    :func:`~skbayes_sgld.sampling.tuning.pilots.measure_bias` steps along a second chain, on the
    normal distribution, and :mod:`~skbayes_sgld.sampling.tuning.adaptation` changes the step size
    after every step.

    Parameters
    ----------
    run : Run
        The algorithm and its settings.
    start : ndarray of shape (n_chains, n_params) or RunState
        The starting points, or the ``state`` of an earlier run.
    n_draws, n_burnin, thin : int
        Draws of each chain, steps before the first, and steps from one to the next.
    seed, first_chain, block_size, n_jobs, progress, workers
        Parameters of :func:`run_parts`, whose errors are raised too.

    Returns
    -------
    chains : Chains
    """
    parts = run_parts(
        run,
        start,
        StepCounts(n_burnin, n_draws, thin),
        seed=seed,
        first_chain=first_chain,
        block_size=block_size,
        n_jobs=n_jobs,
        progress=progress,
        workers=workers,
    )
    return join_parts(list(parts))


def run_parts(
    run: Run,
    start: Array | RunState,
    rest: StepCounts,
    *,
    seed: int = 0,
    first_chain: int = 0,
    block_size: int | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int], bool] | None = None,
    seconds: float | None = None,
    workers: Workers | None = None,
) -> Iterator[Chains]:
    """Run the steps ``rest``, and yield the draws part by part.

    Parameters
    ----------
    run : Run
        The algorithm and its settings.
    start : ndarray of shape (n_chains, n_params) or RunState
        The starting points, or the ``state`` of an earlier run.
    rest : StepCounts
        Steps to make.
    seed : int, default=0
        Seed of the chains; not used if an earlier run continues.
    first_chain : int, default=0
        Number of the first chain, on which its random numbers depend.
    block_size : int or None
        Steps whose random numbers are drawn at a time. None: as many as fit in the cache.
    n_jobs : int or None
        Processes that share the chains of a long run. The first part runs in this process, and so
        does the rest if starting processes would take longer.
    progress : callable or None
        Called with the number of steps since its last call; True ends the run.
    seconds : float or None
        Approximate time of a part; None makes as few parts as possible.
    workers : Workers or None
        Workers that run the chains in place of ``n_jobs`` processes.

    Raises
    ------
    ChainOverflowError
        When a chain leaves the range of floating point numbers.
    TypeError, ValueError
        When the posterior or the gradient lacks what the algorithm needs.
    RuntimeError
        When one of the processes ends on its own.
    """
    check_requirements(run.sampler, run.dynamics.gradient.posterior, run.batch_size)
    if isinstance(start, RunState):
        state = start
    else:
        streams = [ChainStreams(seed, first_chain + c) for c in range(len(start))]
        state = RunState(0, run.initial_state(start), streams)
    to_do = _ToDo(run, state, rest, seconds, block_size, progress)
    if workers is None and effective_n_jobs(n_jobs) > 1:
        workers = Processes(n_jobs)
    if workers is None or to_do.n_groups(workers) == 1:
        yield from to_do.in_this_process(state is start)
        return
    # workers share a twentieth of the run at a time; progress is reported after each
    n_shared = -(-rest.n_steps // 20)
    yield from to_do.in_this_process(state is start, n_shared, workers.least_seconds)
    if not to_do.rest.n_steps:
        return
    try:
        yield from to_do.shared_by(workers, n_shared)
    except BrokenExecutor:
        raise RuntimeError(
            f"n_jobs={n_jobs}: a process that runs chains {to_do.state.step} steps into the run "
            "has ended before it was done. It was killed, the memory was at an end, or the "
            "model itself ended it; set n_jobs=None, with which all runs in this process."
        ) from None


@dataclass
class _ToDo:
    """The steps of a run that are still to be made, and the time that earlier ones took."""

    run: Run
    state: RunState
    rest: StepCounts
    seconds: float | None  # approximate time of a part
    block_size: int | None
    progress: Callable[[int], bool] | None
    n_made: int = 0
    duration: float = 0.0

    def n_groups(self, workers: Workers) -> int:
        """Number of groups of chains that workers share: one if they cannot be shared."""
        return min(workers.n_workers, self._n_units)

    @property
    def _n_units(self) -> int:
        return -(-len(self.state.streams) // self.run.dynamics.n_together)

    def in_this_process(
        self, keeps_start: bool, n_first: int | None = None, enough: float = np.inf
    ) -> Iterator[Chains]:
        """Make the steps; after ``n_first`` of them only while less than ``enough`` seconds remain.

        With ``keeps_start`` the state belongs to the caller, and is copied.
        """
        size = self.rest.n_steps if n_first is None else n_first
        if self.seconds is not None:
            size = self.rest.thin  # later parts take about ``seconds``
        while True:
            steps, self.rest = self.rest.cut(size)
            begin = perf_counter()
            # later states belong to the caller and are copied; the first is not, because copying
            # its random streams takes 5 times as long as making them
            own = deepcopy(self.state) if self.n_made or keeps_start else self.state
            part = advance(self.run, own, steps, self.block_size, self.progress)
            self.n_made += steps.n_steps
            self.duration += perf_counter() - begin
            self.state = part.state
            if part.n_steps < steps.n_steps:
                self._end()
            yield part
            to_go = self.duration / max(self.n_made, 1) * self.rest.n_steps
            is_long = n_first is not None and self.n_made >= n_first and to_go >= enough
            if is_long or not self.rest.n_steps:
                return
            size = min(2 * steps.n_steps, self._size_by_time(self.rest.n_steps))
            if self.seconds is None:
                size = self.rest.n_steps

    def shared_by(self, workers: Workers, n_shared: int) -> Iterator[Chains]:
        """Make the steps by workers, about ``n_shared`` at a time."""
        n_workers, unit = self.n_groups(workers), self.run.dynamics.n_together
        edges = np.linspace(0, self._n_units, n_workers + 1).astype(int) * unit
        edges = np.minimum(edges, len(self.state.streams))
        n_shared = min(n_shared, self._size_by_time(n_shared))
        with workers.open(n_workers) as share:
            while self.rest.n_steps:
                steps, self.rest = self.rest.cut(n_shared)
                own = deepcopy(self.state)  # workers may be threads
                part = side_by_side(
                    share, advance, self.run, own, edges.tolist(), steps, self.block_size
                )
                self.state = part.state
                yield part
                if self.progress is not None and self.progress(steps.n_steps):
                    self._end()

    def _size_by_time(self, otherwise: int) -> int:
        """Steps that take about ``seconds``, at least one."""
        if self.seconds is None:
            return otherwise
        return max(1, int(self.seconds * self.n_made / self.duration))

    def _end(self) -> None:
        """Drop the steps that are left."""
        _, self.rest = self.rest.cut(self.rest.n_steps)
