"""Fits of a billion rows on paper, for ``docs/scale.md``, from passes that the benchmarks measured.

``python -m benchmarks.blocks`` and ``python -m benchmarks.dask_fit`` measure them.
"""

from __future__ import annotations

import json

from _figure import parse
from _numbers import measured

from benchmarks.blocks import RESULTS

ROWS, COLUMNS, WORKERS, BLOCK = 1e9, 100, 64, 125_000
PASSES, FAN_IN = 3, 8  # sums that a task of the tree adds
PRINTS = 50  # bytes of a block's checksums, pickled
DISK = 200e6  # bytes a second
TASK = 1e-3  # seconds that Dask's pages say its scheduler takes for a task


def found(name):
    return json.loads((RESULTS / f"{name}.json").read_text())["found"]


def tree_size(blocks):
    """Sums that a tree of tasks makes of one for each block, these included."""
    made = here = blocks
    while here > 1:
        here = -(-here // FAN_IN)
        made += here
    return made


def on_paper():
    """Parts of the fit, each a number of the page."""
    (fit,) = (one for one in found("memory") if (one["model"], one["how"]) == ("logistic", "map"))
    a_row = fit["bare_pass_seconds"] / fit["rows"]
    # of the columns a pass takes the number, and its Hessian the square: these were 50
    low, high = (a_row * (COLUMNS / 50.0) ** power for power in (1.0, 2.0))
    blocks, of_worker = ROWS / BLOCK, ROWS / WORKERS
    sums, params = tree_size(int(blocks)), COLUMNS + 1
    one_sum = 8.0 * (params + params**2)
    dask = json.loads((RESULTS.parent / "dask" / "fits.json").read_text())
    first = next(fit["passes"][0]["bytes"] for fit in dask["fits"] if fit["passes"])
    of_sample = first / 50_000.0
    sample = 50_000.0 * (of_sample + 4.0 * (COLUMNS - dask["columns"]))
    tasks = blocks + sums
    longest = PASSES * (of_worker * high + TASK * tasks)
    numbers = {
        "rows measured": (fit["rows"], ",.0f"),
        "seconds measured": (fit["bare_pass_seconds"], ".0f"),
        "us a row": (1e6 * a_row, ".2f"),
        "us a row, at least": (1e6 * low, ".1f"),
        "us a row, at most": (1e6 * high, ".1f"),
        "blocks": (blocks, ",.0f"),
        "MB a block": (4e-6 * BLOCK * COLUMNS, ".0f"),
        "GB": (4e-9 * ROWS * COLUMNS, ".0f"),
        "GB a worker": (4e-9 * of_worker * COLUMNS, ".1f"),
        "million rows a worker": (1e-6 * of_worker, ".0f"),
        "seconds a pass, at least": (of_worker * low, ".0f"),
        "seconds a pass, at most": (of_worker * high, ".0f"),
        "seconds from disk": (4.0 * of_worker * COLUMNS / DISK, ".0f"),
        "sums": (sums, ",.0f"),
        "kB a sum": (1e-3 * one_sum, ".0f"),
        "GB of sums": (1e-9 * one_sum * sums, ".2f"),
        "MB of sums a worker": (1e-6 * one_sum * sums / WORKERS, ".0f"),
        "MB of checksums": (1e-6 * PRINTS * blocks, ".1f"),
        "tasks": (tasks, ",.0f"),
        "seconds of the scheduler": (TASK * tasks, ".0f"),
        "bytes a row of the sample": (of_sample, ".0f"),
        "MB of the sample": (1e-6 * sample, ".0f"),
        "minutes at most": (longest / 60.0, ".1f"),
    }
    return {name: measured(value, None, show) for name, (value, show) in numbers.items()}


def main(arguments=None):
    options = parse(__doc__, arguments)
    if options.quick:  # nothing is measured here
        return {}
    more = [row["with"] / row["without"] - 1.0 for row in found("checksums")]
    memory = found("memory")
    return {
        "on paper": on_paper(),
        "checksums, least": measured(min(more), None, ".0f"),
        "checksums, most": measured(max(more), None, ".0f %"),
        "imports, MB": measured(memory[0]["before"]["address_space"], None, ",.0f"),
        "limit of windows, MB": measured(memory[0]["limit_megabytes"], None, ",.0f"),
        "limit of the map, MB": measured(memory[1]["limit_megabytes"], None, ",.0f"),
    }


if __name__ == "__main__":
    print(main())
