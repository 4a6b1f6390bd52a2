"""Bias of every default fit, from twenty seeds, for ``docs/truth.md``; about ten minutes."""

from __future__ import annotations

import numpy as np
from _figure import parse, show_rows
from _numbers import measured

from tests.references.cases import all_cases
from tests.references.pooled import pool

QUICK, N_SEEDS = ("lecture", "spector"), 20


def row(found):
    """The largest errors, with their own errors, and what is typical."""
    cells, marks = found.cells(), found.broken()
    j, k = np.argmax(np.abs(found.mean)), np.argmax(np.abs(found.sd))
    mean, sd = abs(found.mean[j]), abs(found.sd[k])
    return {
        "case": found.name,
        "reference": found.worth,
        "mean": measured(mean, found.mean_error[j], "±.3f" + " !" * ("mean" in marks)),
        "sd": measured(sd, found.sd_error[k], "±.1f %" + "!" * ("sd" in marks)),
        "all means": measured(float(cells[6]), found.mean_error[j], ".3f"),
        "all sds": measured(float(cells[7].rstrip("%")) / 100.0, found.sd_error[k], ".1f %"),
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
