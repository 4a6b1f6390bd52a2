"""Counts of the soak runs, for ``docs/reliability.md``, as their ``--keep`` kept them."""

from __future__ import annotations

import json

from _figure import parse
from _numbers import measured

from tests.maintainer.soak.report import RESULTS


def shown(value):
    """Number of a run as a page shows it, or text."""
    if isinstance(value, dict):
        return {key: shown(inner) for key, inner in value.items()}
    return value if isinstance(value, str) else measured(value, None, ",.0f")


def main(arguments=None):
    options = parse(__doc__, arguments)
    if options.quick:  # the runs take minutes each; make test draws some of their cases anew
        return {}
    runs = json.loads(RESULTS.read_text())
    found = {name: shown(run) for name, run in runs.items()}
    divergence = runs.get("divergence", {}).get("by sampler", {})
    found["samplers"] = {
        sampler: {"sampler": f"`{sampler}`"}
        | {
            f"{times} times": by_times[key]
            for times, key in (("10", "10"), ("100", "100"), ("1e6", "1e+06"))
        }
        for sampler, by_times in divergence.items()
    }
    return found


if __name__ == "__main__":
    print(main())
