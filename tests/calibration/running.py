"""Replications over two processes, with progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from joblib import Parallel, delayed, parallel_config

N_REPLICATIONS = 500


def replicate(
    function: Callable[..., Any], name: str, n_replications: int, changes: dict[str, Any]
) -> list[Any]:
    """``function(name, number, changes)`` of every replication, in their order.

    The replications share two processes with one BLAS thread each; every 50 a line is printed.
    """
    results, start = [], time.perf_counter()
    jobs = (delayed(function)(name, number, changes) for number in range(n_replications))
    with parallel_config(backend="loky", n_jobs=2, inner_max_num_threads=1):
        for result in Parallel(return_as="generator")(jobs):
            results.append(result)
            if len(results) % 50 == 0:
                seconds = time.perf_counter() - start
                line = f"{name}: {len(results)}/{n_replications}, {seconds:.0f} s"
                print(line, file=sys.stderr, flush=True)
    return results
