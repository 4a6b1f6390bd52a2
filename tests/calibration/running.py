"""Replications over two processes with progress, and tables as text or Markdown."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
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


def as_text(table: pd.DataFrame, markdown: bool = False) -> str:
    """A table of formatted figures; words to the left, figures to the right."""
    columns = [[str(name), *map(_figure, table[name])] for name in table]
    words = [table[name].dtype.kind not in "if" for name in table]
    widths = [max(map(len, column)) for column in columns]
    rows = [
        [cell.ljust(w) if word else cell.rjust(w) for cell, w, word in zip(*parts, strict=True)]
        for parts in ((row, widths, words) for row in zip(*columns, strict=True))
    ]
    if not markdown:
        return "\n".join("  ".join(row).rstrip() for row in rows)
    rule = ["-" * w if word else "-" * (w - 1) + ":" for w, word in zip(widths, words, strict=True)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], rule, *rows[1:]])


def _figure(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
