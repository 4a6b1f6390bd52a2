"""A thousand fits with everything automatic: ``python -m tests.maintainer.soak.automatic``.

Families, priors and shapes are drawn at random: few rows a column, separated classes, no event at
all, outliers, collinear columns, columns in units from 1e-6 to 1e6, two to five chains. No fit may
end in an error, nor let a warning of NumPy's through; warnings that the draws are not to be relied
on are counted.
"""

from __future__ import annotations

import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
    sample,
)
from skbayes_sgld.own_models import FunctionPosterior
from skbayes_sgld.posterior import ImproperPosteriorError

from .report import Report, options

FAMILIES = ("linear", "unequal noise", "binary", "three classes", "counts", "own model")
PRIORS = ("default", "normal", "laplace", "student_t", "cauchy", "horseshoe", "hierarchical_normal")
COLUMNS = ("normal", "lognormal", "heavy", "collinear", "binary", "offset")
SIGNALS = ("ordinary", "none", "strong", "outliers", "rare", "heteroscedastic")
MODELS = {
    "linear": SGLDLinearRegression,
    "unequal noise": SGLDLinearRegression,
    "binary": SGLDLogisticRegression,
    "three classes": SGLDLogisticRegression,
    "counts": SGLDPoissonRegressor,
}


@dataclass(frozen=True)
class Case:
    """One data set and the model of it."""

    seed: int
    family: str
    prior: str
    columns: str
    signal: str
    n: int
    d: int
    unit: float
    intercept: bool
    n_chains: int

    def __str__(self) -> str:
        """All of it, as a label."""
        shape = f"{self.n} x {self.d}"
        rest = ("" if self.intercept else ", no intercept") + f", {self.n_chains} chains"
        return (
            f"{self.seed}: {self.family}, {self.prior}, {self.columns} columns in units of "
            f"{self.unit:g}, {self.signal} signal, {shape}{rest}"
        )


def draw(seed: int) -> Case:
    """Case of a seed."""
    rng = np.random.default_rng(seed)
    family, d = str(rng.choice(FAMILIES)), int(rng.choice([1, 2, 3, 5, 8, 13]))
    n = max(6, int(d * rng.choice([1.2, 2.0, 3.0, 5.0, 10.0, 30.0])))
    if family == "unequal noise":
        n = max(n, 2 * d + 4)
    unequal = family in ("unequal noise", "own model")
    prior = str(rng.choice(PRIORS[:5] if unequal else PRIORS))
    unit = 10.0 ** float(rng.choice([-6, 0, 0, 0, 6]))
    names = str(rng.choice(COLUMNS)), str(rng.choice(SIGNALS))
    intercept, n_chains = bool(rng.random() < 0.85), int(rng.choice([4, 4, 4, 2, 3, 5]))
    return Case(seed, family, prior, *names, n, d, unit, intercept, n_chains)


def data(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """X and y of a case."""
    rng = np.random.default_rng([case.seed, 1])
    X = rng.standard_normal((case.n, case.d))
    if case.columns == "lognormal":
        X = np.exp(X)
    elif case.columns == "heavy":
        X = rng.standard_t(2, X.shape)
    elif case.columns == "collinear":
        X = rng.standard_normal((case.n, 1)) + 1e-3 * X
    elif case.columns == "binary":
        X = (X > 0.7).astype(float)
    elif case.columns == "offset":
        X = X + 1e4
    size = {"none": 0.0, "strong": 10.0}.get(case.signal, 1.0)
    centred = X - X.mean(axis=0)
    f = size * centred @ rng.standard_normal(case.d) / np.sqrt(case.d)
    f = np.clip(f, -30.0, 30.0)
    noise = rng.standard_normal(case.n)
    if case.signal == "outliers":
        noise = noise * np.where(rng.random(case.n) < 0.1, 30.0, 1.0)
    elif case.signal == "heteroscedastic":
        noise = noise * np.exp(0.7 * X[:, 0].clip(-5.0, 5.0))
    unit = 10.0 ** float(rng.choice([-6, 0, 0, 6]))
    if case.family == "counts":
        level = -3.0 if case.signal == "rare" else 0.5
        return X * case.unit, rng.poisson(np.exp(np.clip(f + level, -20.0, 8.0))).astype(float)
    if case.family == "binary":
        level = 2.5 if case.signal == "rare" else 0.0
        y = (f + noise > level).astype(int)
        y[0] = 1 - y[1:].max() if y.min() == y.max() else y[0]
        return X * case.unit, y
    if case.family == "three classes":
        edges = np.quantile(f + noise, [0.4, 0.8])
        return X * case.unit, np.searchsorted(edges, f + noise)
    skewed = case.signal == "rare"
    return X * case.unit, unit * (np.exp(noise) if skewed else f + noise)


def own_model(X: np.ndarray, y: np.ndarray) -> FunctionPosterior:
    """A user's Poisson regression of standardised columns, under a normal prior of sd 2."""
    X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)
    counts = np.floor(np.abs(y) / (np.abs(y).mean() + 1e-300))

    def log_density(theta: np.ndarray) -> np.ndarray:
        u = theta @ X.T
        return u @ counts - np.exp(u).sum(axis=1) - 0.125 * np.square(theta).sum(axis=1)

    def grad(theta: np.ndarray) -> np.ndarray:
        return (counts - np.exp(theta @ X.T)) @ X - 0.25 * theta

    return FunctionPosterior(log_density, grad, n_params=X.shape[1])


def fit(case: Case) -> None:
    """Fit the model of a case, predict and summarize."""
    X, y = data(case)
    if case.family == "own model":
        sample(own_model(X, y), random_state=case.seed, n_chains=case.n_chains)
        return
    settings = {"random_state": case.seed, "n_chains": case.n_chains}
    settings["fit_intercept"] = case.intercept
    if case.prior != "default":
        settings["prior"] = case.prior
    if case.family == "unequal noise":
        settings["noise_model"] = "log_linear"
    model = MODELS[case.family](**settings).fit(X, y)
    predicted = model.predict(X)
    assert case.family in ("binary", "three classes") or np.isfinite(predicted).all()
    assert np.isfinite(model.summary()[["mean", "sd"]].to_numpy(float)).all()


def judge(case: Case) -> tuple[str, str]:
    """Outcome of a fit, and its message.

    It is "right", "warned", "improper", "leaked" or "error".
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            fit(case)
        except ImproperPosteriorError as error:  # no event at all, under a flat intercept
            return ("error" if data(case)[1].any() else "improper"), str(error)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}:{where.lineno}"
            return "error", f"{type(error).__name__}: {error} [{place}]"
    leaked = [w for w in told if issubclass(w.category, RuntimeWarning)]
    if leaked:
        return "leaked", f"{leaked[0].message} [{leaked[0].filename}:{leaked[0].lineno}]"
    warned = [str(w.message) for w in told if issubclass(w.category, ConvergenceWarning)]
    return ("warned", warned[0]) if warned else ("right", "")


def main() -> None:
    """Judge the cases and print their counts; leave with 1 where one failed."""
    given = options("tests.maintainer.soak.automatic", cases=1000, seconds=1500.0)
    report, rows = Report("Automatic fits", given.seconds, given.keep), []
    for number in report.each(range(given.cases)):
        case, begin = draw(1000 * given.seed + number), time.perf_counter()
        outcome, said = judge(case)
        rows.append((case.family, outcome, time.perf_counter() - begin))
        report.check(outcome in ("right", "warned", "improper"), f"{case}: {said}")
        if outcome in ("error", "leaked"):
            print(f"{case}\n    {said}", flush=True)
        if len(rows) % 100 == 0:
            print(f"{len(rows)} fits", flush=True)
    found = pd.DataFrame(rows, columns=["family", "outcome", "seconds"])
    table = pd.crosstab(found["family"], found["outcome"], margins=True).reset_index()
    counts = found["outcome"].value_counts().to_dict()
    report.end(
        table,
        [f"{len(found)} fits in {found['seconds'].sum():.0f} s"],
        {"fits": len(found), **counts},
    )


if __name__ == "__main__":
    main()
