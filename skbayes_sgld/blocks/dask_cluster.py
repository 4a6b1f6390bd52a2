"""Tasks on a Dask cluster: waited for as long as there is one."""

from __future__ import annotations

from time import monotonic
from typing import Any

_LOOK = 0.5  # seconds from one look at the cluster to the next
_PATIENCE = "60s"  # without a worker, while one may be on its way


def current_client() -> Any:
    """Client of the cluster that computes, or None for a scheduler of this process."""
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
        or there has been no worker for longer than ``skbayes-sgld.no-workers-timeout`` of Dask's
        configuration, 60 seconds by default.
    """
    client = current_client()
    if client is None:
        return value.compute()
    return results(client, [client.compute(value)], what)[0]


def results(client: Any, futures: list[Any], what: str) -> list[Any]:
    """Results of tasks, or an error where the cluster is lost; see :func:`compute`."""
    import dask
    from concurrent.futures import CancelledError
    from distributed import KilledWorker, wait
    from dask.utils import parse_timedelta

    patience = parse_timedelta(
        dask.config.get("skbayes-sgld.no-workers-timeout", _PATIENCE), default="s"
    )
    seen = monotonic()
    try:
        while True:
            try:
                wait(futures, timeout=_LOOK)
                return client.gather(futures)
            except TimeoutError:
                if any(future.status == "error" for future in futures):
                    return client.gather(futures)
            if client.scheduler_info()["workers"]:
                seen = monotonic()
            elif monotonic() - seen > patience:
                raise _lost(what, f"it has had no worker for {patience:g} seconds")
    except KilledWorker as error:
        raise _lost(what, f"its workers died one after the other: {error}") from None
    except (CancelledError, OSError) as error:
        if isinstance(error, ConnectionError): raise
        raise _lost(what, str(error)) from None


def _lost(what: str, why: str) -> ConnectionError:
    return ConnectionError(
        f"the Dask cluster was lost in {what}: {why}. The estimator is as it was; start workers, "
        "and fit again."
    )
