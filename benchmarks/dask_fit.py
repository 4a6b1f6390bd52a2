"""Fits on a Dask cluster of processes: passes, bytes that move, and seconds by part.

``python -m benchmarks.dask_fit`` makes rows on the workers of clusters of one and of two processes,
fits a logistic and a linear model to them, and the same rows in memory without Dask. It prints
what ``docs/scale.md`` shows, saves it in ``benchmarks/results/dask/``, and writes the table of the
page. ``--rows`` takes other numbers of rows. With nothing else to do, two cores take ten minutes.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from benchmarks import _scale_page
from benchmarks._machine import describe
from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.blocks.dask_rows import DaskRows

D, BLOCK = 20, 125_000
ROWS = (100_000, 1_000_000, 10_000_000)
RESULTS = Path(__file__).parent / "results" / "dask"
MODELS = {"logistic": SGLDLogisticRegression, "linear": SGLDLinearRegression}


def make_block(number: int, n_rows: int) -> np.ndarray:
    """X, and the numeric target as a last column."""
    rng = np.random.default_rng([11, number])
    table = rng.standard_normal((n_rows, D + 1), dtype=np.float32)
    noise = rng.logistic(size=n_rows)
    table[:, D] = table[:, :D] @ np.linspace(-0.4, 0.4, D) - 1.0 + noise
    return table


def block_size(n_rows: int) -> int:
    """Rows of a block: eight of them at least."""
    return min(BLOCK, n_rows // 8)


def on_workers(n_rows: int) -> tuple[Any, Any]:
    """X and the target, made and kept by the workers."""
    size = block_size(n_rows)

    def make(block_info: Any) -> np.ndarray:
        (start, stop), _ = block_info[None]["array-location"]
        return make_block(start // size, stop - start)

    meta, chunks = (
        np.empty((0, 0), np.float32),
        da.core.normalize_chunks((size, -1), (n_rows, D + 1)),
    )
    table = da.map_blocks(make, chunks=chunks, dtype=np.float32, meta=meta)
    X, target = dask.persist(table[:, :D], table[:, D])
    wait([X, target])
    return X, target


def in_memory(n_rows: int) -> tuple[Any, Any]:
    """Rows as arrays."""
    size = block_size(n_rows)
    X, target = np.empty((n_rows, D), np.float32), np.empty(n_rows)
    for start in range(0, n_rows, size):
        rows = slice(start, min(start + size, n_rows))
        block = make_block(start // size, rows.stop - start)
        X[rows], target[rows] = block[:, :D], block[:, D]
    return X, target


@contextmanager
def passes() -> Iterator[list[dict[str, float]]]:
    """Seconds of every pass, and the bytes that come back from it."""
    found: list[dict[str, float]] = []
    reduce: Callable[..., Any] = DaskRows.reduce

    def measured(self: DaskRows, *given: Any) -> Any:
        begin = time.perf_counter()
        total = reduce(self, *given)
        seconds = time.perf_counter() - begin
        found.append({"seconds": seconds, "bytes": float(len(pickle.dumps(total)))})
        return total

    with mock.patch.object(DaskRows, "reduce", measured):
        yield found


def sent(dask_worker: Any) -> int:
    """Bytes that a worker has sent."""
    return int(dask_worker.transfer_outgoing_bytes_total)


def fit(name: str, X: Any, target: Any, client: Client | None) -> dict[str, Any]:
    """Time and memory of one fit."""
    y = target > 0 if name == "logistic" else target
    if client is not None:
        y = y.persist()
        wait(y)
    before = 0 if client is None else sum(client.run(sent).values())
    with passes() as found:
        begin = time.perf_counter()
        model = MODELS[name](random_state=0).fit(X, y)
        seconds = time.perf_counter() - begin
    row = {
        "model": name,
        "workers": 0 if client is None else len(client.scheduler_info()["workers"]),
        "rows": int(X.shape[0]),
        "seconds": seconds,
        "passes": found,
        "coef": model.coef_.ravel().tolist(),
        "sd": model.sample_posterior().coef.std(axis=0).tolist(),
    }
    if client is not None:
        row["sent"] = sum(client.run(sent).values()) - before
    return row


def told(row: dict[str, Any]) -> str:
    """Line of the table."""
    each, who = row["passes"], f"{row['workers']} workers" if row["workers"] else "in memory"
    line = f"{row['model']:9s}{row['rows']:>12,} rows  {who:10s}{row['seconds']:7.2f} s"
    if not each:
        return line
    parts = " + ".join(f"{part['seconds']:.2f}" for part in each)
    rest = row["seconds"] - sum(part["seconds"] for part in each)
    to_client = sum(part["bytes"] for part in each) / 1e6
    return (
        f"{line}: {len(each)} passes {parts} s, on the client {rest:.2f} s; "
        f"{to_client:.2f} MB to the client, {row['sent'] / 1e6:.2f} MB left workers"
    )


def measure(n_rows: int) -> list[dict[str, Any]]:
    """Fits of both models in memory, by one worker and by two."""
    X, target = in_memory(n_rows)
    rows = [fit(name, X, target, None) for name in MODELS]
    del X, target
    for row in rows:
        print(told(row), flush=True)
    for n_workers in (1, 2):
        options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": None}
        with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
            X, target = on_workers(n_rows)
            warm = on_workers(8 * 1000)
            for name in MODELS:  # the imports of the workers are not the fit's
                fit(name, *warm, client)
                rows.append(fit(name, X, target, client))
                print(told(rows[-1]), flush=True)
            del X, target, warm
    return rows


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    given = parser.parse_args()
    rows = [row for n_rows in given.rows for row in measure(n_rows)]
    RESULTS.mkdir(parents=True, exist_ok=True)
    result = {"machine": describe(), "columns": D, "fits": rows}
    (RESULTS / "fits.json").write_text(json.dumps(result, indent=1) + "\n")
    _scale_page.write("dask", rows)


if __name__ == "__main__":
    main()
