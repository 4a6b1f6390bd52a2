"""Chains that share a run: between processes, threads, or groups that fit the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from math import ceil, lcm
from typing import Any, Protocol

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from skbayes_sgld._linalg import GROUP, cpu_count, in_threads
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.run import Chains, Run, RunState, Stretch, join_chains, join_parts
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

Share = Callable[[Iterable[Any]], list[Any]]
"""A function from joblib's delayed calls to their results."""

# Numbers of X that are read
_STEP_NUMBERS = 2**16  # by all chains in a step: they stay in cache
_THREAD_NUMBERS = 2**12  # by one chain in a step, from which threads share the groups
_LEAST_NUMBERS = 2**15  # by a group in a thread, which would else wait for the interpreter
_MOST_NUMBERS = 2**19  # by a group: no cache holds more
_STRETCH_NUMBERS = 2**28  # in a fraction of a second


class Workers(Protocol):
    """Workers that share the chains of a run.

    Attributes
    ----------
    n_workers : int
    least_seconds : float
        Least time of the rest of a run that is worth sharing.
    """

    n_workers: int
    least_seconds: float

    def open(self, n_workers: int) -> AbstractContextManager[Share]:
        """Context of a function from joblib's delayed calls to their results."""
        ...


class Processes:
    """Processes of this machine, or of joblib's backend."""

    def __init__(self, n_jobs: int | None) -> None:
        self.n_workers = effective_n_jobs(n_jobs)
        self.least_seconds = THRESHOLDS.shared_seconds

    @contextmanager
    def open(self, n_workers: int) -> Iterator[Share]:
        """Context of joblib's ``Parallel``."""
        try:
            with Parallel(n_jobs=n_workers) as parallel:
                yield parallel
        except KeyboardInterrupt:
            # within joblib's own end it leaves a closed pool in the backend of a parallel_config
            backend = get_active_backend()[0]
            if getattr(backend, "_pool", None) is not None:
                backend.terminate()
            raise


def side_by_side(
    share: Share,
    advance: Callable[..., Chains],
    run: Run,
    state: RunState,
    edges: list[int],
    *how: Any,
) -> Chains:
    """Chains of ``advance(run, state, *how)``, called for the chains from edge to edge.

    Raises
    ------
    ChainOverflowError
        When chains overflow: the earliest, in the order of steps.
    BrokenExecutor
        When one of the processes ends on its own.
    """
    # the run is the first argument, which a cluster sends to each worker once
    results = share(
        delayed(_attempt)(run, advance, first, state.of_chains(slice(first, last)), *how)
        for first, last in pairwise(edges)
    )
    errors = [each for each in results if isinstance(each, ChainOverflowError)]
    if errors:
        raise min(errors, key=lambda error: (error.step, error.chain))
    return join_chains(results)


def _attempt(
    run: Run, advance: Callable[..., Chains], first: int, state: RunState, *how: Any
) -> Chains | ChainOverflowError:
    """Chains from number ``first`` on, or their overflow: others may have overflowed earlier."""
    try:
        return advance(run.of_chains(slice(first, first + len(state.streams))), state, *how)
    except ChainOverflowError as error:
        return ChainOverflowError(error.step, error.chain + first, error.parameter, error.rejected)


@contextmanager
def ended_processes(n_jobs: int | None, state: RunState) -> Iterator[None]:
    """Context that explains the end of a process that runs chains."""
    try:
        yield
    except BrokenExecutor:
        raise RuntimeError(
            f"n_jobs={n_jobs}: a process that runs chains {state.step} steps into the run has "
            "ended before it was done. It was killed, the memory was at an end, or the model "
            "itself ended it; set n_jobs=None, with which all runs in this process."
        ) from None


def _numbers(run: Run) -> int:
    """About how many numbers of X a chain reads in a step."""
    assert run.batch_size is not None
    return run.batch_size * run.dynamics.posterior.n_params


def groups_of(run: Run, n_chains: int) -> tuple[int, bool] | None:
    """Chains of a group, and whether threads share the groups; None for one group.

    Threads halve the time of two cores for long steps (1,000 rows of 100 columns).
    """
    numbers, alike = _numbers(run), run.dynamics.n_sharing
    if n_chains * numbers <= _STEP_NUMBERS or not run.dynamics.facts.thread_safe:
        return None
    shared = numbers >= _THREAD_NUMBERS and cpu_count() > 1
    if shared:
        most = min(ceil(n_chains / cpu_count()), alike * _MOST_NUMBERS / numbers)
        size = max(most, _LEAST_NUMBERS / numbers)
    else:
        size = max(GROUP, alike * _STEP_NUMBERS / numbers)
    # products with a dense metric, or with rows that walkers share, take several chains at once
    multiple = GROUP if run.dynamics.preconditioner.diagonal is None else 1
    multiple = lcm(multiple, alike)
    n_groups = ceil(n_chains / (multiple * max(1, int(size / multiple))))
    size = multiple * ceil(n_chains / n_groups / multiple)  # the last group may be smaller
    return (size, shared) if size < n_chains else None


def in_groups(
    advance: Callable[..., Chains],
    run: Run,
    state: RunState,
    stretch: Stretch,
    groups: tuple[int, bool],
    block_size: int | None,
    progress: Callable[[int], bool] | None,
) -> Chains:
    """Chains of a stretch that are run in groups, see :func:`groups_of`.

    Each call of ``advance`` makes few steps, so that an interrupt takes effect soon.
    """
    n_chains, (size, shared) = len(state.streams), groups
    edges = [*range(0, n_chains, size), n_chains]
    share = _in_threads if shared else _one_by_one
    n_steps = max(1, run.dynamics.n_sharing * _STRETCH_NUMBERS // (n_chains * _numbers(run)))
    parts: list[Chains] = []
    while stretch.n_steps:
        now, stretch = stretch.cut(n_steps)
        parts.append(side_by_side(share, advance, run, state, edges, now, block_size))
        state = parts[-1].state
        if progress is not None and progress(now.n_steps):
            break
    return join_parts(parts)


def _one_by_one(calls: Iterable[Any]) -> list[Any]:
    """Results of joblib's delayed calls."""
    return [function(*args, **kwargs) for function, args, kwargs in calls]


def _in_threads(calls: Iterable[Any]) -> list[Any]:
    """Results of joblib's delayed calls, computed in threads of this process."""
    return in_threads(lambda call: _one_by_one([call])[0], list(calls))
