"""Default fits of tables with rare categories and outlying rows, beside runs on all rows.

    python -m benchmarks.rare                                measure all cells, an hour
    python -m benchmarks.rare --models Poisson --rows 40000  measure some of them
    python -m benchmarks.rare --quick                        the cells up to 8,000 rows

A cell is a model, a table and a number of rows. It compares the default fit with a run of HMC,
whose every step takes all rows, and its processor time with that of the same fit without what is
rare. With log-linear noise HMC is lost in the funnels of rare rows: chains of the noise alone, by
another program (``_unequal``), are compared with.
``mean`` is the largest difference of a mean in sds and ``sd`` the largest relative difference of an
sd, both over the parameters and less two Monte Carlo standard errors. ``times`` is the ratio of the
processor times. A cell is met where they are at most 0.1, 0.05 and 3.

What is measured is kept in ``benchmarks/results/rare.json``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks import _machine
from benchmarks._unequal import chains_of_the_noise
from skbayes_sgld import (
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)

RESULTS = Path(__file__).parent / "results" / "rare.json"
ROWS = 2_000, 8_000, 40_000, 300_000
MEAN, SD, TIMES = 0.1, 0.05, 3.0
_DRAWS = 4_000  # of each chain of the run on all rows
_FEWER = {"eight classes": 1_000}  # beside a row far out, 8,000 rows took 28 s for 500
_COMMON = 30  # rows beyond which a level is not rare
_SHORT = 2.0  # seconds up to which a fit is timed three times


class Table(NamedTuple):
    """Columns with something rare, the predictor, and which columns and rows are ordinary."""

    X: np.ndarray
    eta: np.ndarray
    columns: np.ndarray
    rows: np.ndarray


def _table(X: np.ndarray, coef: np.ndarray, n_ordinary: int, rows: np.ndarray | None) -> Table:
    ordinary = np.arange(X.shape[1]) < n_ordinary
    return Table(X, X @ coef, ordinary, np.ones(len(X), bool) if rows is None else rows)


def _normal(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((n, d)), 0.5 * rng.standard_normal(d) / np.sqrt(d)


def dummies(rng: np.random.Generator, n: int) -> Table:
    """Thirty normal columns, and three categories of 1, 3 and 10 rows."""
    X, coef = _normal(rng, n, 30)
    rare = np.zeros((n, 3))
    for column, size in enumerate((1, 3, 10)):
        rare[rng.choice(n, size, replace=False), column] = 1.0
    return _table(np.hstack([X, rare]), np.r_[coef, 0.5, -0.5, 0.5], 30, None)


def levels(rng: np.random.Generator, n: int) -> Table:
    """Ten normal columns, and fifty levels with frequencies of one over their rank squared."""
    X, coef = _normal(rng, n, 10)
    p = np.arange(1.0, 51.0) ** -2.0
    level = rng.choice(50, n, p=p / p.sum())
    one_hot = (level[:, None] == np.arange(1, 50)).astype(float)
    one_hot = one_hot[:, one_hot.any(axis=0)]
    effect = 0.4 * rng.standard_normal(one_hot.shape[1])
    table = _table(np.hstack([X, one_hot]), np.r_[coef, effect], 10, None)
    table.columns[10:] = one_hot.sum(axis=0) > _COMMON
    return table


def outlier(rng: np.random.Generator, n: int) -> Table:
    """Sixteen normal columns, in one of which a row lies at 1,000 sds."""
    X, coef = _normal(rng, n, 16)
    X[n // 2, 3] = 1e3
    coef[3] = 1e-3
    return _table(X, coef, 16, np.arange(n) != n // 2)


def heavy(rng: np.random.Generator, n: int) -> Table:
    """Ten normal columns, and four with the tails of Student's t of two degrees of freedom."""
    X, coef = _normal(rng, n, 10)
    tails = rng.standard_t(2.0, (n, 4))
    return _table(np.hstack([X, tails]), np.r_[coef, 1.5 / np.abs(tails).max(axis=0)], 10, None)


TABLES: dict[str, Callable[[np.random.Generator, int], Table]] = {
    "dummies": dummies,
    "levels": levels,
    "outlier": outlier,
    "heavy tails": heavy,
}


# ---- models: what is fitted, and a target from the predictor ------------------------------------

Drawn = tuple[np.ndarray, dict[str, np.ndarray]]


def _binary(rng: np.random.Generator, eta: np.ndarray, level: float = 0.0) -> Drawn:
    return (rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta - level))).astype(int), {}


def _one_in_500(rng: np.random.Generator, eta: np.ndarray) -> Drawn:
    return _binary(rng, eta, -6.3)


def _classes(rng: np.random.Generator, eta: np.ndarray, K: int) -> Drawn:
    u = np.outer(eta, np.linspace(-1.0, 1.0, K)) + rng.gumbel(size=(len(eta), K))
    return u.argmax(axis=1), {}


def _ordered(rng: np.random.Generator, eta: np.ndarray) -> Drawn:
    return np.digitize(eta + rng.logistic(size=len(eta)), [-1.5, 0.0, 1.0, 3.0]), {}


def _poisson(rng: np.random.Generator, eta: np.ndarray) -> Drawn:
    return rng.poisson(np.exp(eta + 1.0)), {}


def _negative_binomial(rng: np.random.Generator, eta: np.ndarray) -> Drawn:
    return rng.poisson(np.exp(eta + 1.0) * rng.gamma(2.0, 0.5, len(eta))), {}


def _gamma(rng: np.random.Generator, eta: np.ndarray) -> Drawn:
    return np.exp(eta) * rng.gamma(3.0, 1.0 / 3.0, len(eta)), {}


def _beta_binomial(rng: np.random.Generator, eta: np.ndarray) -> Drawn:
    p, trials = 1.0 / (1.0 + np.exp(-eta)), rng.integers(2, 30, len(eta))
    return rng.binomial(trials, rng.beta(4.0 * p, 4.0 - 4.0 * p)), {"n_trials": trials}


def _student(rng: np.random.Generator, eta: np.ndarray) -> Drawn:
    return eta + rng.standard_t(4.0, len(eta)), {}


def _unequal(rng: np.random.Generator, eta: np.ndarray) -> Drawn:
    return eta + np.exp(0.3 * eta) * rng.standard_normal(len(eta)), {}


MODELS: dict[str, tuple[Callable[..., Any], Callable[..., Drawn]]] = {
    "logistic": (SGLDLogisticRegression, _binary),
    "one in 500": (SGLDLogisticRegression, _one_in_500),
    "three classes": (SGLDLogisticRegression, lambda rng, eta: _classes(rng, eta, 3)),
    "eight classes": (SGLDLogisticRegression, lambda rng, eta: _classes(rng, eta, 8)),
    "ordered classes": (SGLDOrdinalClassifier, _ordered),
    "Poisson": (SGLDPoissonRegressor, _poisson),
    "negative binomial": (SGLDNegativeBinomialRegressor, _negative_binomial),
    "gamma": (SGLDGammaRegressor, _gamma),
    "beta-binomial": (SGLDBetaBinomialRegressor, _beta_binomial),
    "Student-t noise": (
        lambda **settings: SGLDLinearRegression(noise_distribution="student_t", **settings),
        _student,
    ),
    "log-linear noise": (
        lambda **settings: SGLDLinearRegression(noise_model="log_linear", **settings),
        _unequal,
    ),
}


# ---- cells ---------------------------------------------------------------------------------------


def timed(fit: Callable[[], Any]) -> tuple[Any, float, list[str]]:
    """Fitted estimator, least processor seconds, and the warnings of the last fit."""
    best, began = np.inf, process_time()
    for _ in range(3):
        before = process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = fit()
        best = min(best, process_time() - before)
        if process_time() - began > _SHORT:
            break
    return model, best, [f"{type(w.message).__name__}: {w.message}"[:160] for w in caught]


def distance(a: Any, b: Any) -> tuple[float, float, str]:
    """Largest differences of summaries beyond two standard errors, and the worst name.

    They are those of a mean, in sds, and of an sd, relative.
    """
    a = a.loc[b.index]
    sd = b["sd"].to_numpy()

    def relative_difference(what: str, limit: float) -> np.ndarray:
        error = 2.0 * np.hypot(a[f"mcse_{what}"], b[f"mcse_{what}"]).fillna(0.0) / sd
        # draws that say little about themselves do not pass for that
        return (np.abs(a[what] - b[what]) / sd - np.minimum(error, limit)).to_numpy()

    mean, relative = relative_difference("mean", MEAN), relative_difference("sd", SD)
    worst = str(a.index[int(np.argmax(np.maximum(mean / MEAN, relative / SD)))])
    return max(float(mean.max()), 0.0), max(float(relative.max()), 0.0), worst


def measure(model: str, table: str, n: int, seed: int) -> dict[str, Any]:
    """Differences, times and warnings of one cell."""
    estimator, draw = MODELS[model]
    data = TABLES[table](np.random.default_rng([seed, n]), n)
    y, by_row = draw(np.random.default_rng([seed, n, 1]), data.eta)

    def fit(columns: Any = slice(None), rows: Any = slice(None), **settings: Any) -> Any:
        some = {name: values[rows] for name, values in by_row.items()}
        X = data.X[rows][:, columns]
        return estimator(random_state=seed, **settings).fit(X, y[rows], **some)

    auto, seconds, said = timed(fit)
    _, ordinary, _ = timed(lambda: fit(data.columns, data.rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its draws are judged by their standard errors
        if model == "log-linear noise":
            reference = chains_of_the_noise(auto, data.X, y)
        else:
            reference = fit(sampler="hmc", n_draws=_FEWER.get(model, _DRAWS)).summary()
    mean, sd, worst = distance(auto.summary(), reference)
    choices = auto.result_.choices
    used = ", ".join(str(choices[name].value) for name in ("sampler", "step_size", "batch_size"))
    return {
        "model": model,
        "table": table,
        "n": n,
        "seed": seed,
        "mean": round(mean, 3),
        "sd": round(sd, 3),
        "worst": worst,
        "seconds": round(seconds, 3),
        "without": round(ordinary, 3),
        "times": round(seconds / ordinary, 2),
        "used": used,
        "said": said,
        "met": bool(mean <= MEAN and sd <= SD and seconds <= TIMES * ordinary),
    }


def cells(models: list[str], tables: list[str], rows: list[int]) -> Iterator[tuple[str, str, int]]:
    """The chosen cells, the small ones first."""
    for n in rows:
        for model in models:
            for table in tables:
                if model != "one in 500" or n >= 8_000:
                    yield model, table, n


def save(found: dict[str, Any]) -> None:
    """Keep a cell in the place of the one of its name."""
    kept = json.loads(RESULTS.read_text())["cells"] if RESULTS.exists() else []
    key = [found[name] for name in ("model", "table", "n", "seed")]
    kept = [c for c in kept if [c[name] for name in ("model", "table", "n", "seed")] != key]
    kept.append(found)
    kept.sort(key=lambda c: (list(MODELS).index(c["model"]), c["table"], c["n"], c["seed"]))
    RESULTS.write_text(json.dumps({"machine": _machine.describe(), "cells": kept}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--rows", nargs="*", type=int, default=list(ROWS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="cells up to 8,000 rows")
    parser.add_argument("--dry", action="store_true", help="print, and keep nothing")
    options = parser.parse_args()
    rows = [n for n in options.rows if n <= 8_000] if options.quick else options.rows
    for cell in cells(options.models, options.tables, rows):
        found = measure(*cell, options.seed)
        if not options.dry:
            save(found)
        print(
            f"{found['model']:17} {found['table']:11} {found['n']:7,}  mean {found['mean']:6.3f}  "
            f"sd {found['sd']:6.3f}  {found['seconds']:7.2f} s  x{found['times']:6.2f}  "
            f"{'met' if found['met'] else 'NOT MET'}  [{found['used']}] {found['worst']} "
            f"{'; '.join(found['said'])}",
            flush=True,
        )


if __name__ == "__main__":
    main()
