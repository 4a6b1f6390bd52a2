"""Bias of every default fit, from twenty seeds, for ``docs/truth.md``; about ten minutes."""

from __future__ import annotations

from _figure import parse, show_rows
from _numbers import measured

from tests.references.cases import all_cases
from tests.references.pooled import pool

QUICK, N_SEEDS = ("lecture", "spector"), 20


def row(found):
    """The largest errors, with their own errors, and what is typical."""
    marks, size = found.broken(), found.largest()
    mean_error, sd_error = size["its se, mean"], size["its se, sd"]
    return {
        "case": found.name,
        "reference": found.worth,
        "mean": measured(size["mean"], mean_error, "±.3f" + " !" * ("mean" in marks)),
        "sd": measured(size["sd"], sd_error, "±.1f %" + "!" * ("sd" in marks)),
        "all means": measured(size["all means"], mean_error, ".3f"),
        "all sds": measured(size["all sds"], sd_error, ".1f %"),
    }


def main(arguments=None):
    options = parse(__doc__, arguments)
    cases, n_seeds = all_cases(), 5 if options.quick else N_SEEDS
    found = {name: pool(cases[name], n_seeds) for name in (QUICK if options.quick else cases)}
    rows = {name: row(one) for name, one in found.items()}
    if options.quick:
        return {"rows": rows}
    for name, one in found.items():
        rows[name]["used"] = one.used
    show_rows(rows)
    broken = sum(bool(one.broken()) for one in found.values())
    return {"rows": rows, "break a bound": measured(broken, None, ".0f")}


if __name__ == "__main__":
    main()
