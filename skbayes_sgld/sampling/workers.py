"""Where chains run side by side: processes of this machine, or what a caller brings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from joblib import Parallel, effective_n_jobs

from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

Share = Callable[[Iterable[Any]], list[Any]]


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
