"""The screen of every fit: false alarms, detections, and its cost.

    python -m benchmarks.screen alarms       1,000 fits of data from the model: how many warn
    python -m benchmarks.screen classes      the same of 3 to 7 classes, at 3 to 60 rows a column
    python -m benchmarks.screen detections   the sets of ``benchmarks.real_data``: which fits warn
    python -m benchmarks.screen cost         processor time of the screen beside that of the fit

Columns of the simulated data are normal, skewed and binary; coefficients are new in every fit.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from benchmarks._real_scores import wrong
from benchmarks._real_sets import SETS
from benchmarks.real_data import RESULTS, default, fit
from skbayes_sgld import (
    ModelMisfitWarning,
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)
from skbayes_sgld.estimators.sampled import SampledEstimator
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

ROWS = 20, 50, 200, 1_000, 10_000, 100_000
Make = Callable[[np.random.Generator, np.ndarray, np.ndarray], tuple[Any, dict[str, Any]]]


def _linear(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Any:
    return SGLDLinearRegression(random_state=0), {"y": eta + rng.standard_normal(len(eta))}


def _log_linear(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Any:
    sd = np.exp(0.3 * X[:, 0])
    model = SGLDLinearRegression(noise_model="log_linear", random_state=0)
    return model, {"y": eta + sd * rng.standard_normal(len(eta))}


def _poisson(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Any:
    level = rng.uniform(-1.0, 4.0)
    return SGLDPoissonRegressor(random_state=0), {"y": rng.poisson(np.exp(eta + level))}


def _exposed(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Any:
    exposure = rng.uniform(0.2, 20.0, len(eta))
    y = rng.poisson(exposure * np.exp(eta))
    return SGLDPoissonRegressor(random_state=0), {"y": y, "exposure": exposure}


def _negative_binomial(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Any:
    mean, shape = np.exp(eta + rng.uniform(-1.0, 4.0)), rng.uniform(0.3, 5.0)
    y = rng.poisson(mean * rng.gamma(shape, 1.0 / shape, len(eta)))
    return SGLDNegativeBinomialRegressor(random_state=0), {"y": y}


def _gamma(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Any:
    shape = rng.uniform(0.5, 10.0)
    y = np.exp(eta) * rng.gamma(shape, 1.0 / shape, len(eta))
    return SGLDGammaRegressor(random_state=0), {"y": y}


def _totals(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Any:
    trials = rng.integers(1, 50, len(eta))
    y = rng.binomial(trials, 1.0 / (1.0 + np.exp(-eta)))
    return SGLDLogisticRegression(random_state=0), {"y": y, "n_trials": trials}


def _wider_totals(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Any:
    trials, size = rng.integers(1, 50, len(eta)), rng.uniform(1.0, 20.0)
    p = 1.0 / (1.0 + np.exp(-eta))
    y = rng.binomial(trials, rng.beta(size * p, size * (1.0 - p)))
    return SGLDBetaBinomialRegressor(random_state=0), {"y": y, "n_trials": trials}


def _logistic(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Any:
    y = rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-2.0 * eta))
    y[:2] = False, True
    return SGLDLogisticRegression(random_state=0), {"y": y.astype(int)}


def _three(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Any:
    scores = np.column_stack([np.zeros(len(eta)), 2.0 * eta, X[:, 0]])
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    y[:3] = 0, 1, 2
    return SGLDLogisticRegression(random_state=0), {"y": y}


def _ordered(rng: np.random.Generator, X: np.ndarray, eta: np.ndarray) -> Any:
    y = np.digitize(2.0 * eta + rng.logistic(size=len(eta)), [-1.0, 0.0, 1.5])
    y[:4] = 0, 1, 2, 3
    return SGLDOrdinalClassifier(random_state=0), {"y": y}


FAMILIES: dict[str, Make] = {
    "linear": _linear,
    "log-linear noise": _log_linear,
    "Poisson": _poisson,
    "Poisson, exposure": _exposed,
    "negative binomial": _negative_binomial,
    "Gamma": _gamma,
    "totals": _totals,
    "beta-binomial totals": _wider_totals,
    "logistic": _logistic,
    "three classes": _three,
    "ordered classes": _ordered,
}


def simulate(name: str, n: int, seed: int) -> tuple[Any, np.ndarray, dict[str, Any]]:
    """Estimator, columns, and the other arguments of its fit, from the model."""
    rng = np.random.default_rng([seed, n])
    d = int(rng.integers(1, max(2, min(12, n // 6))))
    kinds = [rng.standard_normal((n, d)), rng.exponential(size=(n, d)), rng.random((n, d)) < 0.3]
    kind = rng.integers(0, 3, d)
    X = np.choose(kind, kinds).astype(float)
    X[0, kind == 2], X[1, kind == 2] = 0.0, 1.0
    eta = (X - X.mean(axis=0)) @ rng.normal(0.0, 0.5, d) / np.sqrt(d)
    model, data = FAMILIES[name](rng, X, eta)
    return model, X, data


def told(model: Any, *args: Any, **data: Any) -> list[str]:
    """Misfits that a fit tells."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*args, **data)
    return [str(each.message) for each in caught if each.category is ModelMisfitWarning]


def alarms(n_fits: int) -> None:
    """Print the number of fits of each family and number of rows that warn."""
    each = -(-n_fits // (len(FAMILIES) * len(ROWS)))
    total = n_total = 0
    for name in FAMILIES:
        for n in ROWS:
            for seed in range(each):
                model, X, data = simulate(name, n, seed)
                found = told(model, X, **data)
                total, n_total = total + bool(found), n_total + 1
                for message in found:
                    print(f"  {n:,} rows of {X.shape[1]} columns, seed {seed}: {message}")
            print(f"{name}, {n:,} rows: {total} of {n_total} fits so far warn", flush=True)


def of_classes(seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Estimator, columns and labels of 3 to 7 classes, from the model; every other seed ordered."""
    rng = np.random.default_rng(seed)
    n, K = int(rng.choice([60, 120, 200, 300, 500])), int(rng.integers(3, 8))
    d = max(1, int(n / np.exp(rng.uniform(np.log(3.0), np.log(60.0)))))
    d = min(d, THRESHOLDS.learned_parameters // K)  # beyond, no scale is learned
    X = rng.standard_normal((n, d))
    if rng.random() < 0.5:  # categories, some of them rare
        X = np.where(rng.uniform(-0.5, 1.5, d) < X, 1.0, 0.0)
        X[0], X[1] = 0.0, 1.0
    effect = rng.uniform(0.3, 3.0) * rng.standard_normal((d, K)) / np.sqrt(d)
    model: Any = SGLDLogisticRegression(n_draws=250, random_state=0)
    if seed % 2:
        model = SGLDOrdinalClassifier(n_draws=250, random_state=0)
        u = X @ effect[:, 0] + rng.logistic(size=n)
        y = np.digitize(u, np.quantile(u, np.sort(rng.uniform(0.05, 0.95, K - 1))))
    else:
        y = (X @ effect + rng.gumbel(size=(n, K))).argmax(axis=1)
    y[:K] = np.arange(K)
    return model, X, y


def classes(n_fits: int) -> None:
    """Print the number of fits of several classes that warn."""
    total = 0
    for seed in range(n_fits):
        model, X, y = of_classes(seed)
        found = told(model, X, y)
        total += bool(found)
        for message in found:
            print(f"  seed {seed}, {X.shape}: {message}")
        if seed % 50 == 49:
            print(f"{total} of {seed + 1} fits so far warn", flush=True)


def detections() -> None:
    """Print, by real data set, how far default intervals are off and whether the fit says so."""
    kept = json.loads(RESULTS.read_text())
    for name, of_set in kept.items():
        if "coverage" not in of_set["methods"]["default"]:
            continue
        data = SETS[name].data()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(default(data.kind), data)
        said = [str(each.message) for each in caught if each.category is ModelMisfitWarning]
        coverage = of_set["methods"]["default"]["coverage"]
        off = 100.0 * (coverage["0.9"]["all"][0] - coverage["0.9"]["all"][1])
        groups = ", ".join(wrong(coverage)) or "holds"
        print(f"{name}, {len(data.y):,} rows: {off:+.0f} points ({groups}): {said or 'silent'}")


def cost(n_times: int = 9) -> None:
    """Print the processor time of the screen and of the whole fit, medians of several."""
    screen = SampledEstimator._screen
    for name in FAMILIES:
        for n in ROWS:
            taken, whole = [], []

            def timed(model: Any, rows: Any, taken: list[float] = taken) -> None:
                begin = time.process_time()
                screen(model, rows)
                taken.append(time.process_time() - begin)

            model, X, data = simulate(name, n, 0)
            with mock.patch.object(SampledEstimator, "_screen", timed):
                for _ in range(n_times):
                    begin = time.process_time()
                    told(model, X, **data)
                    whole.append(time.process_time() - begin)
            ms, of_fit = 1e3 * np.median(taken), np.median(taken) / np.median(whole)
            print(f"{name}, {n:,} rows: {ms:.1f} ms, {of_fit:.1%} of the fit", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.screen", description=__doc__)
    parser.add_argument("what", choices=["alarms", "classes", "detections", "cost"])
    parser.add_argument("--fits", type=int, default=1_000, help="of alarms and classes, at least")
    options = parser.parse_args()
    if options.what in ("alarms", "classes"):
        {"alarms": alarms, "classes": classes}[options.what](options.fits)
    else:
        {"detections": detections, "cost": cost}[options.what]()


if __name__ == "__main__":
    main()
