"""Errors next to a pool, for ``docs/scale.md``: what ``python -m benchmarks.blocks pool`` kept."""

from __future__ import annotations

import json

from _figure import parse
from _numbers import measured

from benchmarks.blocks import RESULTS


def main(arguments=None):
    parse(__doc__, arguments)
    found = json.loads((RESULTS / "pool.json").read_text())["found"]
    last = [row for row in found["pools"] if row["pool"] == 50_000]
    one = {row["pool"]: row for row in found["one_column"]}
    derived = found["mean_rms_times_root_of_pool"] / 50_000**0.5
    return {
        "rows": measured(found["rows"], show=",.0f"),
        "means": measured(max(row["mean_most"] for row in last), show=".4f"),
        "sds": measured(max(row["sd_most"] for row in last), show=".2f %"),
        "derived": measured(derived, show=".4f"),
        "one column, 500": measured(one[500]["mean_rms"], show=".5f"),
        "one column, 50,000": measured(one[50_000]["mean_rms"], show=".5f"),
        "sd of one column": measured(one[50_000]["sd_rms"], show=".0e"),
    }


if __name__ == "__main__":
    print(main())
