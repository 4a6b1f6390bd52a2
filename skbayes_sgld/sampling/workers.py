"""Workers that share the chains of a run: processes, or workers that the caller provides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from joblib import Parallel, effective_n_jobs
from joblib.parallel import get_active_backend

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
