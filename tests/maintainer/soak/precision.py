"""Single and double precision on the truth suite: ``python -m tests.maintainer.soak.precision``.

Every case, and a regression of counts, is fitted with its columns rounded to single precision,
once as such and once as the same numbers in double precision, with one seed: means and standard
deviations must agree to a thousandth of a standard deviation, or to a tenth of the Monte Carlo
standard error where chains that differ in the last digit went apart. The smallest come first.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from sklearn.base import clone

from skbayes_sgld import SGLDPoissonRegressor
from tests.references.cases import all_cases

from .report import Report, options

CLOSE = 1e-3  # sds
SHARE = 0.1  # of the Monte Carlo standard error


def counts():
    """Columns in two units, and counts whose rates they multiply."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3)) * [1.0, 1e3, 1e-3]
    return X, rng.poisson(np.exp(0.5 + X @ [0.4, -3e-4, 200.0]))


def problems():
    """Name, estimator and data ``(X, y)`` or ``(X, y, weight)``, the smallest X first."""
    found = [(case.name, case.estimator(), case.data()) for case in all_cases().values()]
    found.append(("counts", SGLDPoissonRegressor(), counts()))
    return sorted(found, key=lambda one: one[2][0].size)


def fit(model, X, y, weight):
    """Summary of the fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, *weight).summary()


def main() -> None:
    """Fit the cases and print the largest differences; leave with 1 where one is too large."""
    given = options("tests.maintainer.soak.precision", cases=1000, seconds=900.0)
    report, rows = Report("Single and double precision", given.seconds, given.keep), []
    for name, model, (X, y, *weight) in report.each(problems()[: given.cases]):
        single = X.astype(np.float32)
        a, b = (
            fit(clone(model).set_params(random_state=given.seed), rows_of, y, weight)
            for rows_of in (single, single.astype(float))
        )
        sd = b["sd"].to_numpy()
        mean = float((np.abs(a["mean"] - b["mean"]) / sd).max())
        spread = float(np.abs(a["sd"] / sd - 1.0).max())
        error = float((b["mcse_mean"] / sd).max())
        close = max(mean, spread) < max(CLOSE, SHARE * error)
        report.check(close, f"{name}: means apart {mean:.2g} sd, sds {spread:.2g}")
        rows.append((name, mean, spread, error))
    table = pd.DataFrame(rows, columns=["case", "mean", "sd", "monte carlo error"])
    notes = [f"{len(rows)} cases, the largest last"]
    report.end(table.sort_values("mean").tail(12), notes, {"cases": len(rows)})


if __name__ == "__main__":
    main()
