"""Seconds of checks, effects and displays after fits of 10,000 rows x 40 columns, in every family.

``python -m benchmarks.checks`` measures all families, ``python -m benchmarks.checks gamma`` one,
and ``--save`` writes ``benchmarks/results/checks.json`` for ``docs/benchmarks.md``. Seconds are
processor time on one core. ``check_model`` is called with data of the model, and with data whose
mean is curved along two columns and has a product of two others: it then tries remedies.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import skbayes_sgld as sk
from benchmarks._machine import one_core

RESULTS = Path(__file__).parent / "results" / "checks.json"
N, D = 10_000, 40

Data = tuple[Any, np.ndarray, dict[str, Any]]  # estimator, y and arguments by row
Make = Callable[[np.random.Generator, np.ndarray, np.ndarray], Data]


def _normal(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
    return sk.SGLDLinearRegression(), eta + rng.normal(size=N), {}


def _log_linear(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
    y = eta + np.exp(0.3 * X[:, 0]) * rng.normal(size=N)
    return sk.SGLDLinearRegression(noise_model="log_linear"), y, {}


def _student_t(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
    model = sk.SGLDLinearRegression(noise_distribution="student_t")
    return model, eta + rng.standard_t(4.0, N), {}


def _student_t_log_linear(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
    y = eta + np.exp(0.3 * X[:, 0]) * rng.standard_t(4.0, N)
    return sk.SGLDLinearRegression(noise_distribution="student_t", noise_model="log_linear"), y, {}


def _groups(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
    labels = rng.integers(0, 50, N)
    X[:, -1] = labels
    model = sk.SGLDLinearRegression(group_effects={D - 1: ["intercept"]})
    return model, eta + rng.normal(size=50)[labels] + rng.normal(size=N), {}


def _binary(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
    return sk.SGLDLogisticRegression(), (eta + rng.logistic(size=N) > 0.0).astype(int), {}


def _binomial(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
    trials = rng.integers(1, 20, N)
    return sk.SGLDLogisticRegression(), rng.binomial(trials, expit(eta)), {"n_trials": trials}


def _classes(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
    each = np.column_stack([eta, X[:, 0] - X[:, 1], X[:, 2], 0.0 * eta])
    return sk.SGLDLogisticRegression(), (each + rng.gumbel(size=each.shape)).argmax(axis=1), {}


def _ordered(n_classes: int) -> Make:
    def make(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
        z = eta + rng.logistic(size=N)
        shares = np.arange(1, n_classes) / n_classes
        return sk.SGLDOrdinalClassifier(), np.digitize(z, np.quantile(z, shares)), {}

    return make


def _counts(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
    return sk.SGLDPoissonRegressor(), rng.poisson(np.exp(eta)), {}


def _negative_binomial(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
    y = rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, N))
    return sk.SGLDNegativeBinomialRegressor(), y, {}


def _gamma(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
    return sk.SGLDGammaRegressor(), rng.gamma(2.0, 0.5 * np.exp(eta)), {}


def _beta_binomial(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Data:
    trials, p = rng.integers(1, 20, N), expit(eta)
    y = rng.binomial(trials, rng.beta(6.0 * p, 6.0 * (1.0 - p)))
    return sk.SGLDBetaBinomialRegressor(), y, {"n_trials": trials}


FAMILIES: dict[str, Make] = {
    "normal": _normal,
    "log-linear": _log_linear,
    "student-t": _student_t,
    "student-t log-linear": _student_t_log_linear,
    "groups": _groups,
    "binary": _binary,
    "binomial": _binomial,
    "classes4": _classes,
    "ordinal3": _ordered(3),
    "ordinal7": _ordered(7),
    "counts": _counts,
    "negative-binomial": _negative_binomial,
    "gamma": _gamma,
    "beta-binomial": _beta_binomial,
}


def simulate(family: str, misfit: bool) -> tuple[Any, np.ndarray, np.ndarray, dict[str, Any]]:
    """Estimator, X, y and arguments by row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    eta = X @ (0.7 * rng.normal(size=D) / np.sqrt(D))
    if misfit:
        eta += 0.3 * X[:, 0] ** 2 - 0.2 * X[:, 1] ** 2 + 0.2 * X[:, 2] * X[:, 3]
        eta = np.clip(eta, -4.0, 4.0)
    model, y, by_row = FAMILIES[family](rng, X, eta)
    return model.set_params(random_state=0), X, y, by_row


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def measure(family: str) -> dict[str, Any]:
    """Seconds of each function after a fit of a family."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from skbayes_sgld import plotting

    cell: dict[str, Any] = {"family": family}
    model, X, y, by_row = simulate(family, misfit=False)
    cell["fit"], _ = _seconds(lambda: model.fit(X, y, **by_row))
    cell["check"], _ = _seconds(lambda: sk.check_model(model, X, y, **by_row))
    cell["effects"], _ = _seconds(lambda: sk.effects(model, X))
    along = plotting.PartialDependenceDisplay.from_estimator
    cell["dependence"], _ = _seconds(lambda: along(model, X, 0))
    if hasattr(model, "classes_"):
        event = {"pos_label": model.classes_[-1]}
        calibration = plotting.ReliabilityDisplay.from_estimator
        cell["display"], _ = _seconds(lambda: calibration(model, X, y, **event, **by_row))
    else:
        coverage = plotting.CoverageDisplay.from_estimator
        cell["display"], _ = _seconds(lambda: coverage(model, X, y, **by_row))
    plt.close("all")
    model, X, y, by_row = simulate(family, misfit=True)
    model.fit(X, y, **by_row)
    cell["remedies"], report = _seconds(lambda: sk.check_model(model, X, y, **by_row))
    cell["tried"], cell["suggestion"] = len(report.remedies), report.reason.split(".")[0]
    return cell


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checks", description=__doc__)
    parser.add_argument("families", nargs="*", help=", ".join(FAMILIES))
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    cells = []
    with one_core(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks are timed, whatever the fits say
        for family in options.families or FAMILIES:
            cells.append(measure(family))
            if options.save:
                saved = {"rows": N, "columns": D, "cells": cells}
                RESULTS.write_text(json.dumps(saved, indent=1) + "\n")
            shown = {k: f"{v:.2f}" if isinstance(v, float) else v for k, v in cells[-1].items()}
            print(", ".join(f"{k} {v}" for k, v in shown.items()), flush=True)


if __name__ == "__main__":
    main()
