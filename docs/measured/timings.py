"""Seconds of each stage of default fits, for ``docs/guide/why_is_it_slow.md``; half a minute."""

from __future__ import annotations

import warnings

import numpy as np
from _figure import parse, show_rows
from _numbers import measured
from sklearn.datasets import load_breast_cancer

from skbayes_sgld import (
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
)

STAGES = "reading", "mode", "pilots", "draws", "diagnosis", "screen"


def fits(quick):
    """Estimators and rows, by what the table calls them."""
    rng = np.random.default_rng(0)

    def columns(n, d):
        X = rng.standard_normal((n, d))
        return X, X @ rng.standard_normal(d) / np.sqrt(d)

    X, eta = columns(10_000, 20)
    classes = (eta + rng.logistic(size=len(eta)) > 0).astype(int)
    yield "classes, 10,000 x 20", SGLDLogisticRegression(), X, classes
    yield "numbers, 10,000 x 20", SGLDLinearRegression(), X, eta + rng.standard_normal(len(eta))
    if quick:
        return
    yield (
        "the same, noise_model='log_linear'",
        SGLDLinearRegression(noise_model="log_linear"),
        X,
        (eta + np.exp(0.3 * X[:, 0]) * rng.standard_normal(len(eta))),
    )
    counts = rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, len(eta)))
    yield "counts, negative binomial, 10,000 x 20", SGLDNegativeBinomialRegressor(), X, counts
    yield "amounts, gamma, 10,000 x 20", SGLDGammaRegressor(), X, rng.gamma(2.0, np.exp(eta) / 2.0)
    labels = rng.integers(50, size=len(eta))
    y = eta + rng.standard_normal(50)[labels] + rng.standard_normal(len(eta))
    by_group = SGLDLinearRegression(group_effects={20: "intercept"})
    yield "numbers, effects of 50 groups, 10,000 x 20", by_group, np.column_stack([X, labels]), y
    X, eta = columns(5_000, 300)
    classes = (eta + rng.logistic(size=len(eta)) > 0).astype(int)
    yield "classes, 5,000 x 300", SGLDLogisticRegression(), X, classes
    X, y = load_breast_cancer(return_X_y=True)
    yield "classes, 569 x 30", SGLDLogisticRegression(), X, y
    yield "the same, prior='horseshoe'", SGLDLogisticRegression(prior="horseshoe"), X, y


def seconds_by_stage(quick):
    """Median seconds of each stage over some fits after a first one."""
    rows = {}
    for label, model, X, y in fits(quick):
        found = []
        for seed in range(2 if quick else 4):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the subject is time
                model.set_params(random_state=seed).fit(X, y)
            found.append(model.result_.timings)
        rows[label] = {"fit": label}
        for name in (*STAGES, "all"):
            each = [sum(t.values()) if name == "all" else t.get(name, 0.0) for t in found[1:]]
            rows[label][name] = measured(float(np.median(each)), None, ".2g")
    return rows


def main(arguments=None):
    options = parse(__doc__, arguments)
    rows = seconds_by_stage(options.quick)
    show_rows(rows)
    return {"stages": rows}


if __name__ == "__main__":
    main()
