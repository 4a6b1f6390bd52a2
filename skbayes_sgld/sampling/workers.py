"""Chains side by side: in processes of this machine, or of what a caller brings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from joblib import Parallel, delayed, effective_n_jobs

from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

Share = Callable[[Iterable[Any]], list[Any]]
T = TypeVar("T")


class Workers(Protocol):
    """Processes that chains are shared between.

    Attributes
    ----------
    n_workers : int
    least_seconds : float
        What is left of a run must take as long to be shared.
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

    def open(self, n_workers: int) -> AbstractContextManager[Share]:
        """Context of joblib's ``Parallel``."""
        return Parallel(n_jobs=n_workers)


def side_by_side(
    parallel: Share,
    function: Callable[..., T],
    run: Any,
    shares: list[tuple[Any, ...]],
    made: int,
    n_jobs: int | None,
) -> list[T]:
    """Results of ``function(run, first, ...)`` for shares of the chains.

    A share is a tuple of all arguments but the run, the number of its first chain before the
    others. ``made`` steps have been made before.

    Raises
    ------
    ChainOverflowError
        When chains overflow: the earliest, in the order of steps.
    RuntimeError
        When one of the processes ends on its own.
    """
    try:
        # the run is the first argument, which a cluster sends to each worker once
        found = parallel(delayed(_attempt)(run, function, *share) for share in shares)
    except BrokenExecutor:
        raise RuntimeError(
            f"n_jobs={n_jobs}: a process that runs chains {made} steps into the run has ended "
            "before it was done. It was killed, the memory was at an end, or the model itself "
            "ended it; set n_jobs=None, with which all runs in this process."
        ) from None
    errors = [each for each in found if isinstance(each, ChainOverflowError)]
    if errors:
        raise min(errors, key=lambda error: (error.step, error.chain))
    return found


def _attempt(
    run: Any, function: Callable[..., T], first: int, *rest: Any
) -> T | ChainOverflowError:
    """A share's result; or its overflow, returned since another part's may have come earlier."""
    try:
        return function(run, first, *rest)
    except ChainOverflowError as error:
        return ChainOverflowError(error.step, error.chain + first, error.parameter, error.rejected)
