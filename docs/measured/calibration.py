"""Simulation-based calibration and coverage of default fits, for ``docs/truth.md``; some minutes.

``python docs/pages.py --run calibration``; the tests are in ``tests/calibration``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from _figure import parse, show_rows
from _numbers import measured

from tests.calibration.calibration import calibrate, family_p_value
from tests.calibration.coverage import LEVELS, cover, covered
from tests.calibration.models import MODELS

QUICK, N_QUICK = "logistic, normal", 30


def coverage_rows(name, table):
    """Rows of one model's table of coverage."""
    return {
        f"{name}, {row['interval for']}, {row['nominal']:g}": {
            "model": name,
            "interval for": row["interval for"],
            "nominal": measured(row["nominal"], show=".0f %"),
            "coverage": measured(row["coverage"], row["se"], "±.1f %"),
        }
        for row in table.to_dict("records")
    }


def calibration_rows(name, table):
    """Rows of one model's table; location and width are standard normal where all is right."""
    return {
        f"{name}, {row['parameter']}": {
            "model": name,
            "parameter": row["parameter"],
            "replications": measured(row["replications"], show=".0f"),
            "p-value": measured(row["p_value"], None, ".3f"),
            "location": measured(row["location"], 1.0),
            "width": measured(row["width"], 1.0),
        }
        for row in table.to_dict("records")
    }


def quick():
    """Coverage of one model over a few data sets, in this process."""
    found = [covered(QUICK, number, {})[0] for number in range(N_QUICK)]
    rows = {}
    for what in found[0]:
        shares = np.array([one[what] for one in found])
        error = shares.std(axis=0, ddof=1) / np.sqrt(N_QUICK)
        for level, mean, se in zip(LEVELS, shares.mean(axis=0), error, strict=True):
            rows[f"{QUICK}, {what}, {level:g}"] = {"coverage": measured(mean, se)}
    return {"coverage": rows}


def main(arguments=None):
    options = parse(__doc__, arguments)
    if options.quick:
        return quick()
    ranks, shares, p_values, warned = {}, {}, [], 0
    for name in MODELS:
        table, told = calibrate(name)
        ranks |= calibration_rows(name, table)
        p_values.append(table)
        warned += told
        table, told = cover(name)
        shares |= coverage_rows(name, table)
        warned += told
    show_rows(ranks)
    show_rows(shares)
    return {
        "calibration": ranks,
        "coverage": shares,
        "parameters": measured(len(ranks), show=".0f"),
        "smallest p-value": measured(family_p_value(pd.concat(p_values)), None, ".2f"),
        "warned": measured(warned, np.sqrt(1.0 + warned), ".0f"),
    }


if __name__ == "__main__":
    main()
