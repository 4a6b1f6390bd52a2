"""Tasks on a Dask cluster, which are waited for as long as there is one."""

from __future__ import annotations

from time import monotonic
from typing import Any

_LOOK = 0.5  # seconds from one look at the cluster to the next
_PATIENCE = "60s"  # without a worker, while one may be on its way


def current_client() -> Any:
    """Client of the cluster that computes, or None where a scheduler of this process does."""
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
        Where the cluster is lost: its scheduler is gone, workers die of the task again and again,
        or there was no worker for longer than ``skbayes-sgld.no-workers-timeout`` of Dask's
        configuration, 60 seconds by default.
    """
    client = current_client()
    return value.compute() if client is None else result_of(client.compute(value), client, what)


def result_of(future: Any, client: Any, what: str) -> Any:
    """Result of a task on a cluster, or an error where that is lost, as :func:`compute` has it."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        _wait(future, client)
        return future.result()
    except KilledWorker as error:
        why = f"its workers died one after the other: {error}"
    except (CancelledError, CommClosedError, _NoWorkers) as error:
        why = str(error)
    raise ConnectionError(
        f"the Dask cluster was lost in {what}: {why} The estimator is as it was; start workers, "
        "and fit again."
    )


class _NoWorkers(Exception):
    """There was no worker for too long."""


def _wait(future: Any, client: Any) -> None:
    import dask
    from dask.utils import parse_timedelta
    from distributed import wait

    patience = parse_timedelta(dask.config.get("skbayes-sgld.no-workers-timeout", _PATIENCE))
    seen = monotonic()
    while True:
        try:
            wait([future], timeout=_LOOK)
            return
        except TimeoutError:
            if client.scheduler_info()["workers"]:
                seen = monotonic()
            elif monotonic() - seen > patience:
                raise _NoWorkers(f"it had no worker for {patience:g} seconds.") from None
