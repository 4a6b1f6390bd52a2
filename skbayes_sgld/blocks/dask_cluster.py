"""Tasks on a Dask cluster: results, or an error if the cluster is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any
from uuid import uuid4


def current_client() -> Any:
    """Client of the current cluster; None if this process computes."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "scheduler_info") else None


def compute(value: Any, what: str) -> Any:
    """Value of a delayed task.

    Parameters
    ----------
    value : dask.delayed.Delayed
    what : str
        Name of the computation in an error.

    Raises
    ------
    ConnectionError
        If the cluster is lost: its scheduler is gone, the task kills its workers repeatedly, or
        there was no worker for longer than ``skbayes-sgld.no-workers-timeout`` of Dask's
        configuration, 60 seconds by default.
    """
    client = current_client()
    return value.compute() if client is None else result_of(client.compute(value), client, what)


def result_of(future: Any, client: Any, what: str) -> Any:
    """Result of a task on a cluster; raises as :func:`compute` if the cluster is lost."""
    from concurrent.futures import CancelledError

    import dask
    from dask.utils import parse_timedelta
    from distributed import KilledWorker, wait
    from distributed.comm import CommClosedError

    patience = parse_timedelta(dask.config.get("skbayes-sgld.no-workers-timeout", "60s"))
    last_seen = monotonic()
    try:
        while not future.done():
            with suppress(TimeoutError):
                wait([future], timeout=0.5)
            if future.done() or client.scheduler_info()["workers"]:
                last_seen = monotonic()
            elif monotonic() - last_seen > patience:
                raise CancelledError(f"it had no worker for {patience:g} seconds.")
        return future.result()
    except KilledWorker as error:
        why = f"its workers died one after the other: {error}"
    except (CancelledError, CommClosedError) as error:
        why = str(error)
    raise ConnectionError(
        f"the Dask cluster was lost in {what}: {why} The estimator is as it was; start workers, "
        "and fit again."
    )


class DaskWorkers:
    """Workers of a cluster that run parts of the chains."""

    least_seconds = 0.0  # a cluster's workers are used for any length of run

    def __init__(self, client: Any, n_jobs: int) -> None:
        n_threads = sum(client.nthreads().values())
        n_asked = n_threads + 1 + n_jobs if n_jobs < 0 else n_jobs
        self._client, self.n_workers = client, max(1, min(n_asked, n_threads))

    @contextmanager
    def open(self, n_workers: int) -> Iterator[Callable[[Iterable[Any]], list[Any]]]:
        """Context of a function from joblib's delayed calls to their results."""
        sent: list[Any] = []

        def results(calls: Iterable[Any]) -> list[Any]:
            calls = list(calls)
            try:
                return self._results(calls, sent, n_workers)
            except (ConnectionError, TimeoutError):  # make the same draws in this process
                return [function(*given) for function, given, _ in calls]

        yield results

    def _results(self, calls: list[Any], sent: list[Any], n_workers: int) -> list[Any]:
        """Results of the calls; their first argument, the run, is sent to each worker once."""
        if not sent:
            # several copies, so that the run survives the loss of a worker
            sent.append(self._client.scatter(calls[0][1][0], broadcast=n_workers, hash=False))
        futures = [
            self._client.submit(function, sent[0], *given[1:], key=f"chains-{uuid4().hex}")
            for function, given, _ in calls
        ]
        return [result_of(future, self._client, "the chains") for future in futures]
