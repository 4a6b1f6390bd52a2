"""Default fits of up to 10^8 rows of 20 columns, from Parquet and Dask, beside Dask-ML and Spark.

    python -m benchmarks.many_rows                             10^6, 10^7 and 10^8 rows
    python -m benchmarks.many_rows --rows 1000000              these alone
    python -m benchmarks.many_rows --peers /envs/peers/bin/python

A file of a million rows in float32 is written once. Links to it in a folder make the tables, so
that 10^8 rows take 84 MB of the disk; every pass reads and decodes them all. Each fit is a process
of its own on one core, and a Dask cluster has one worker of one thread. Peers are measured up to
10^7 rows, by the Python that has ``dask-ml`` and ``pyspark`` (and Java); those that are not
installed there are left out. Figures are kept in ``benchmarks/results/many_rows.json``: those of
fits that are measured anew replace the ones before. The table of ``docs/scale.md`` is written from
them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import _machine, _many_rows_worker, _scale_page

WORKER = Path(_many_rows_worker.__file__)
RESULTS = Path(__file__).parent / "results" / "many_rows.json"
COLUMNS = _many_rows_worker.COLUMNS
FILE_ROWS = 1_000_000
ROWS = (10**6, 10**7, 10**8)
OURS = "skbayes-sgld"
PEER_ROWS = 10**7  # above these a peer takes many minutes
SLOW = {"Dask-ML, ADMM": 10**6}  # the same of one method


def write_file(path: Path, n_rows: int = FILE_ROWS) -> None:
    """Write rows: columns, a numeric target, and the label of its sign."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(11)
    X = rng.standard_normal((n_rows, len(COLUMNS)), dtype=np.float32)
    weights = np.linspace(-0.4, 0.4, len(COLUMNS), dtype=np.float32)
    target = X @ weights - 1.0 + rng.logistic(size=n_rows).astype(np.float32)
    table = dict(zip(COLUMNS, X.T, strict=True))
    table |= {"target": target, "label": (target > 0).astype(np.int8)}
    parquet.write_table(pa.table(table), path)


def link(file: Path, folder: Path, n_rows: int) -> Path:
    """Folder whose files are ``n_rows`` rows, each a link to the one file."""
    if n_rows % FILE_ROWS:
        raise ValueError(f"rows are {n_rows:,}; give a multiple of {FILE_ROWS:,}.")
    table = folder / str(n_rows)
    table.mkdir()
    for number in range(n_rows // FILE_ROWS):
        os.link(file, table / f"{number:04d}.parquet")
    return table


def run(python: str, method: str, *tables: Path) -> dict[str, Any] | None:
    """Cost of one fit in a process of its own; None where its library is not installed."""
    command = [python, str(WORKER), method, *map(str, tables)]
    one_thread = dict.fromkeys(_machine.THREADS, "1") | {"ARROW_NUM_THREADS": "1"}
    if hasattr(os, "sched_setaffinity"):
        core = min(os.sched_getaffinity(0))
        command = [python, "-c", _PINNED, str(core), *command[1:]]
    done = subprocess.run(
        command, env=os.environ | one_thread, capture_output=True, text=True, check=False
    )
    if done.returncode:
        if "ModuleNotFoundError" in done.stderr or "PackageNotFoundError" in done.stderr:
            return None
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# what a process starts inherits its core: workers and virtual machines
_PINNED = """
import os, runpy, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def measure(rows: list[int], methods: list[str], peers: str | None, folder: Path | None) -> None:
    """Measure, print, and keep what was found after each fit."""
    kept = json.loads(RESULTS.read_text())["fits"] if RESULTS.exists() else []
    found = {(row["method"], row["rows"]): row for row in kept}
    with TemporaryDirectory(dir=folder) as name:
        file = Path(name) / "rows.parquet"
        write_file(file)
        few = Path(name) / "few"
        few.mkdir()
        write_file(few / "rows.parquet", 60_000)  # more than a fit reads into memory
        for n_rows in rows:
            table = link(file, Path(name), n_rows)
            for method in methods:
                ours = _many_rows_worker.METHODS[method][0] == OURS
                python = sys.executable if ours else peers
                if python is None or not (ours or n_rows <= SLOW.get(method, PEER_ROWS)):
                    continue
                cost = run(python, method, table, few)
                if cost is None:
                    print(f"{method}: not installed", flush=True)
                    continue
                row = {"method": method, "rows": n_rows, "machine": _machine.describe()} | cost
                found[method, n_rows] = row
                print(told(row), flush=True)
                save(found)


def told(row: dict[str, Any]) -> str:
    """Line of one fit."""
    return (
        f"{row['method']:18s}{row['rows']:>12,} rows: {row['passes']} passes, "
        f"{row['seconds']:.1f} s, {row['cpu_seconds']:.1f} s of processors, "
        f"{row['cpu_seconds'] / row['passes']:.2f} a pass, {row['peak_megabytes']:.0f} MB"
    )


def save(found: dict[tuple[str, int], dict[str, Any]]) -> None:
    """Keep the fits in the order of methods and rows, and write the table of the page."""
    order = list(_many_rows_worker.METHODS)
    fits = sorted(found.values(), key=lambda row: (order.index(row["method"]), row["rows"]))
    RESULTS.write_text(json.dumps({"columns": len(COLUMNS), "fits": fits}, indent=1) + "\n")
    _scale_page.write("many rows", fits)


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--methods", nargs="+", default=list(_many_rows_worker.METHODS))
    parser.add_argument("--peers", help="Python that has dask-ml and pyspark")
    parser.add_argument("--folder", type=Path, help="where the file is written, for a while")
    given = parser.parse_args()
    measure(list(given.rows), given.methods, given.peers, given.folder)


if __name__ == "__main__":
    main()
