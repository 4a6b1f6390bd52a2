"""Chains that share a run: between processes, threads, or groups that fit the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import pairwise
from math import ceil, lcm
from typing import Any, Protocol, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from skbayes_sgld._linalg import GROUP, cpu_count, in_threads
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

Share = Callable[[Iterable[Any]], list[Any]]
T = TypeVar("T")

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
            get_active_backend()[0].terminate()
            raise


def side_by_side(
    parallel: Share,
    function: Callable[..., Any],
    run: Any,
    state: Any,
    edges: list[int],
    how: tuple[Any, ...],
    n_jobs: int | None,
) -> Any:
    """Chains of ``function(run, first, state, *how)`` for the chains from edge to edge.

    ``first`` is the number of a share's first chain.

    Raises
    ------
    ChainOverflowError
        When chains overflow: the earliest, in the order of steps.
    RuntimeError
        When one of the processes ends on its own.
    """
    shares = [(a, _select(state, a, b), *how) for a, b in pairwise(edges)]
    try:
        # the run is the first argument, which a cluster sends to each worker once
        results = parallel(delayed(_attempt)(run, function, *share) for share in shares)
    except BrokenExecutor:
        raise RuntimeError(
            f"n_jobs={n_jobs}: a process that runs chains {state.step} steps into the run has "
            "ended before it was done. It was killed, the memory was at an end, or the model "
            "itself ended it; set n_jobs=None, with which all runs in this process."
        ) from None
    errors = [each for each in results if isinstance(each, ChainOverflowError)]
    if errors:
        raise min(errors, key=lambda error: (error.step, error.chain))
    return _join(results)


def _numbers(run: Any) -> int:
    """About how many numbers of X a chain reads in a step."""
    return int(run.batch_size * run.dynamics.posterior.n_params)


def groups_of(run: Any, n_chains: int) -> tuple[int, bool] | None:
    """Chains of a group, and whether threads share the groups; None for one group.

    Threads halve the time of two cores for long steps (1,000 rows of 100 columns).
    """
    numbers, alike = _numbers(run), run.dynamics.shared
    if n_chains * numbers <= _STEP_NUMBERS or not run.dynamics.posterior.facts.thread_safe:
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
    function: Callable[..., Any],
    run: Any,
    state: Any,
    stretch: Any,
    groups: tuple[int, bool],
    how: tuple[Any, ...],
    progress: Callable[[int], bool] | None,
) -> Iterator[Any]:
    """Yield the parts of a stretch whose chains run in groups, see :func:`groups_of`.

    A part has few steps, so that an interrupt takes effect soon.
    """
    n_chains, (size, shared) = len(state.streams), groups
    edges = [*range(0, n_chains, size), n_chains]
    parallel = _in_threads if shared else _one_by_one
    n_steps = max(1, run.dynamics.shared * _STRETCH_NUMBERS // (n_chains * _numbers(run)))
    while stretch.n_steps:
        now, stretch = stretch.cut(n_steps)
        part = side_by_side(parallel, function, run, state, edges, (now, *how), None)
        state = part.state
        yield part
        if progress is not None and progress(now.n_steps):
            return


def _one_by_one(calls: Iterable[Any]) -> list[Any]:
    """Results of joblib's delayed calls."""
    return [function(*args, **kwargs) for function, args, kwargs in calls]


def _in_threads(calls: Iterable[Any]) -> list[Any]:
    """Results of joblib's delayed calls, computed in threads of this process."""
    return in_threads(lambda call: _one_by_one([call])[0], list(calls))


def _select(state: Any, first: int, last: int) -> Any:
    """State of some of the chains."""
    arrays = {name: array[first:last] for name, array in state.sampler_state.items()}
    return replace(state, sampler_state=arrays, streams=state.streams[first:last])


def _join(parts: list[Any]) -> Any:
    """Chains of all shares, with one state."""
    state = parts[0].state
    arrays = {
        name: np.concatenate([part.state.sampler_state[name] for part in parts])
        for name in state.sampler_state
    }
    streams = [stream for part in parts for stream in part.state.streams]
    return replace(
        parts[0],
        draws=np.concatenate([part.draws for part in parts]),
        clipped=np.concatenate([part.clipped for part in parts]),
        state=replace(state, sampler_state=arrays, streams=streams),
    )


def _attempt(
    run: Any, function: Callable[..., T], first: int, *rest: Any
) -> T | ChainOverflowError:
    """Result of a share, or its overflow: another share may have overflowed earlier."""
    try:
        return function(run, first, *rest)
    except ChainOverflowError as error:
        return ChainOverflowError(error.step, error.chain + first, error.parameter, error.rejected)
