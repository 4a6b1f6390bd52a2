"""Workers that share the chains of a run: processes, or workers that the caller provides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.run import Chains, Run, RunState, join_chains
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

Share = Callable[[Iterable[Any]], list[Any]]
"""A function from joblib's delayed calls to their results."""


class Workers(Protocol):
    """Workers that share the chains of a run.

    Attributes
    ----------
    n_workers : int
    least_seconds : float
        Seconds that a run must have left for sharing to pay.
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
            # an interrupt inside joblib's own clean-up leaves a closed pool in the backend
            backend = get_active_backend()[0]
            if getattr(backend, "_pool", None) is not None:
                backend.terminate()
            raise


def side_by_side(
    share: Share,
    function: Callable[..., Chains],
    run: Run,
    state: RunState,
    edges: list[int],
    *how: Any,
) -> Chains:
    """Call ``function(run, state, *how)`` for the chains between successive edges, and join them.

    Raises
    ------
    ChainOverflowError
        When chains overflow: the earliest, in the order of steps.
    BrokenExecutor
        When one of the processes ends on its own.
    """
    # the run is the first argument, which a cluster sends to each worker once
    results = share(
        delayed(_attempt)(run, function, first, state.for_chains(slice(first, last)), *how)
        for first, last in pairwise(edges)
    )
    errors = [each for each in results if isinstance(each, ChainOverflowError)]
    if errors:
        raise min(errors, key=lambda error: (error.step, error.chain))
    return join_chains(results)


def _attempt(
    run: Run, function: Callable[..., Chains], first: int, state: RunState, *how: Any
) -> Chains | ChainOverflowError:
    """Chains from number ``first`` on, or their overflow: another group may overflow earlier."""
    some = slice(first, first + len(state.streams))
    try:
        return function(replace(run, dynamics=run.dynamics.for_chains(some)), state, *how)
    except ChainOverflowError as error:
        return ChainOverflowError(error.step, error.chain + first, error.parameter, error.rejected)
