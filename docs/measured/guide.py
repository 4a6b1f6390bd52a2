"""Numbers of the guide and of the recipes that belong to no example; half a minute."""

from __future__ import annotations

import warnings

import numpy as np
from _figure import parse, show_rows
from _numbers import measured

from skbayes_sgld import SGLDLinearRegression

NOISE = 4.0  # variance
SHAPES = {"50 x 40": (50, 40), "100 x 20": (100, 20), "100 x 10": (100, 10), "40 x 20": (40, 20)}


def few_rows_a_column(quick):
    """Noise variance and coverage of 90 % intervals, by prior, over data sets of few rows."""
    rows = {}
    for label in ("50 x 40",) if quick else SHAPES:
        n, d = SHAPES[label]
        rows[label] = {"rows x columns": label}
        for prior in ("conjugate_normal", "normal"):
            noise, inside = [], []
            for seed in range(4 if quick else 30):
                rng = np.random.default_rng(seed)
                beta, X = rng.standard_normal(d), rng.standard_normal((n + 200, d))
                y = X @ beta + np.sqrt(NOISE) * rng.standard_normal(n + 200)
                model = SGLDLinearRegression(prior=prior, n_draws=250, random_state=0)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the fit warns of few rows, the subject here
                    model.fit(X[:n], y[:n])
                low, high = model.predict_interval(X[n:], coverage=0.9).T
                noise.append(model.noise_variance_ / NOISE)
                inside.append(np.mean((low < y[n:]) & (y[n:] < high)))
            found = {"noise over the true one": (noise, "±.2f"), "covered": (inside, "±.0f %")}
            for name, (values, shown) in found.items():
                error = np.std(values, ddof=1) / np.sqrt(len(values))
                rows[label][f"{prior}: {name}"] = measured(np.mean(values), error, shown)
    return rows


def main(arguments=None):
    options = parse(__doc__, arguments)
    rows = few_rows_a_column(options.quick)
    show_rows(rows)
    return {"few rows a column": rows}


if __name__ == "__main__":
    main()
