"""This package beside bambi, statsmodels, MAPIE and scikit-learn: ``docs/guide/comparison.md``.

    python -m benchmarks.comparison              measure the tasks that have no result yet
    python -m benchmarks.comparison numbers      measure this one anew

The code that is measured is that of ``docs/guide/snippets``, which the page shows. A snippet is
three paragraphs: its imports, the fit to ``X`` and ``y``, and the predictions of ``X_new``.

Every method predicts the rows of the same five folds. Then all rows are fitted and predicted, in
rounds in which each method has its turn; seconds are medians over the rounds. The reference
posterior is bambi's with the priors of the package, from four times as many draws. bambi's draws
are PyMC's in the rounds, and nutpie's, in a third of the time, in the folds and of the reference.
The program starts itself anew with one thread and without AVX-512, and keeps what it found in
``benchmarks/results/comparison.json`` after each task.

It needs ``pip install -e ".[comparison]"``.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, StratifiedKFold

from benchmarks import _machine
from benchmarks._real_scores import GROUPS, LEVELS, of_intervals, of_probabilities
from benchmarks._real_sets import SETS

ROOT = Path(__file__).parents[1]
SNIPPETS = ROOT / "docs" / "guide" / "snippets"
RESULTS = Path(__file__).parent / "results" / "comparison.json"
OURS, BAMBI, STATSMODELS = "skbayes_sgld", "bambi", "statsmodels"
METHODS = OURS, BAMBI, STATSMODELS, "mapie", "scikit_learn"
LIBRARIES = "bambi", "pymc", "pytensor", "nutpie", "statsmodels", "mapie", "scikit-learn"
FASTER, ADVISED = "bambi, nutpie", "skbayes_sgld, log-linear noise"
# snippets with one argument more: another implementation of NUTS, and what the warning advises
_VARIANTS = {
    FASTER: ("bambi", ".fit(", '.fit(inference_method="nutpie", '),
    ADVISED: ("skbayes_sgld", "LinearRegression(", 'LinearRegression(noise_model="log_linear", '),
}
_FOLDS = 5
_ROUNDS, _ROUNDS_OF_BAMBI = 7, 3
_REFERENCE = {"chains": 4, "draws": 4_000, "tune": 1_000, "random_seed": 1}

# the environment in which bambi's compilers do without AVX-512 and every library has one thread
_ENVIRONMENT = {
    "PYTENSOR_FLAGS": "gcc__cxxflags=-mno-avx512f",
    "NUMBA_CPU_NAME": "haswell",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
_POISSON = {
    "SGLDNegativeBinomialRegressor": "SGLDPoissonRegressor",
    '"negativebinomial"': '"poisson"',
    "NegativeBinomial": "Poisson",
    ", maxiter=500": "",
}


# ---- tasks and snippets --------------------------------------------------------------------------


def diabetes() -> tuple[pd.DataFrame, pd.Series]:
    """Progression of diabetes in a year, columns in the units of the clinic."""
    return load_diabetes(return_X_y=True, as_frame=True, scaled=False)


def careers() -> tuple[pd.DataFrame, pd.Series]:
    """Whether a rookie's career lasted five years."""
    return _frame("rookies' careers")


def visits() -> tuple[pd.DataFrame, pd.Series]:
    """Visits to doctors in a year: every fourth row, or bambi takes an hour for the folds.

    The column "insured" is a copy of "private".
    """
    X, y = (part.iloc[::4].reset_index(drop=True) for part in _frame("visits to doctors"))
    return X.drop(columns="insured"), y


def _frame(name: str) -> tuple[pd.DataFrame, pd.Series]:
    asked = SETS[name]
    frame = asked.load().drop(columns=asked.drop.split()).dropna().reset_index(drop=True)
    y = frame.pop(asked.target).astype(int)
    return frame.astype(float), y


class Task(NamedTuple):
    """Data, the prefix of its snippets, and bambi's family."""

    load: Any
    snippets: str
    family: str


TASKS = {
    "numbers": Task(diabetes, "numbers", "gaussian"),
    "classes": Task(careers, "classes", "bernoulli"),
    "counts": Task(visits, "counts", "negativebinomial"),
    "poisson": Task(visits, "counts", "poisson"),
}


def code(task: str, method: str) -> str:
    """Snippet of a method, "" if it has none for the task."""
    name, there, here = _VARIANTS.get(method, (method, "", ""))
    path = SNIPPETS / f"{TASKS[task].snippets}_{name}.py"
    if not path.exists() or (task == "poisson" and method in METHODS[3:]):
        return ""
    text = path.read_text()
    if method in _VARIANTS and there not in text:
        return ""
    text = text.replace(there, here) if there else text
    for of_counts, of_poisson in _POISSON.items() if task == "poisson" else ():
        text = text.replace(of_counts, of_poisson)
    return text


def n_lines(task: str, method: str) -> int:
    """Lines that a user writes, imports among them."""
    return sum(bool(line.strip()) for line in code(task, method).splitlines())


def methods(task: str) -> list[str]:
    """Names of the snippets of a task."""
    return [name for name in (*METHODS, *_VARIANTS) if code(task, name)]


# ---- one run of a snippet ------------------------------------------------------------------------


class Seconds(NamedTuple):
    """Processor time of this process and its children, and time on the clock."""

    processor: float
    wall: float


def _clock() -> np.ndarray:
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return np.array([sum(u.ru_utime + u.ru_stime for u in used), perf_counter()])


def run(task: str, method: str, X: Any, y: Any, X_new: Any) -> tuple[dict[str, Any], list[Seconds]]:
    """Variables that a snippet leaves, and the seconds of its fit and of its predictions."""
    imports, *parts = code(task, method).split("\n\n")
    space = {"X": X, "y": y, "X_new": X_new}
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a snippet is measured, whatever its library says
        exec(imports, space)
        for part in parts:
            begin = _clock()
            exec(part, space)
            seconds.append(Seconds(*(_clock() - begin)))
    return space, seconds


# ---- coverage and scores -------------------------------------------------------------------------


def cross_validate(task: str, names: list[str]) -> dict[str, dict[str, Any]]:
    """Whether each row is held by its interval or label set, and its score, of every method."""
    X, y = TASKS[task].load()
    names = list(dict.fromkeys(BAMBI if name == FASTER else name for name in names))
    splitter = StratifiedKFold if task == "classes" else KFold
    found = {name: {"held": np.zeros(len(y)), "score": np.full(len(y), np.nan)} for name in names}
    mean, expected = np.zeros(len(y)), []
    for train, test in splitter(_FOLDS, shuffle=True, random_state=0).split(X, y):
        observed = y.iloc[test].to_numpy()
        for name in names:
            way = FASTER if name == BAMBI else name
            space, _ = run(task, way, X.iloc[train], y.iloc[train], X.iloc[test])
            held, score = judge(task, space, observed)
            found[name]["held"][test], found[name]["score"][test] = held, score
            if "probability" in space:
                found[name].setdefault("p", np.zeros(len(y)))[test] = space["probability"]
            if name == STATSMODELS:  # thirds of the rows are the same for all
                mean[test] = space["probability" if task == "classes" else "mean"]
                expected.append(_expected(space))
    ours = found[OURS]["score"]
    thirds = np.array_split(np.argsort(mean, kind="stable"), 3)
    groups = dict(zip(GROUPS, [np.arange(len(y)), *thirds], strict=True))
    results = {}
    for name, each in found.items():
        held, score = each["held"], each["score"]
        results[name] = {"held": {g: _mean(held[rows]) for g, rows in groups.items()}}
        if "p" in each:
            error = y.to_numpy() - each["p"]
            results[name]["calibration"] = {g: _mean(error[rows]) for g, rows in groups.items()}
        if not np.isnan(score).any():
            ratio = score.mean() / ours.mean()
            error = np.std(score - ratio * ours) / np.sqrt(len(y)) / ours.mean()
            results[name] |= {"score": float(score.mean()), "ratio": [float(ratio), float(error)]}
    results[STATSMODELS]["expected"] = float(np.mean(np.concatenate(expected)))
    return results


def _mean(values: np.ndarray) -> list[float]:
    """Mean and its standard error."""
    return [float(values.mean()), float(values.std() / np.sqrt(len(values)))]


def _expected(space: dict[str, Any]) -> np.ndarray:
    """Probability of each interval by its own model: 0.9, and more where its ends are counts."""
    if not hasattr(space["predicted"], "cdf"):
        return np.full(len(space["low"]), LEVELS[0])
    below = space["predicted"].cdf(space["low"] - 1.0)
    return space["predicted"].cdf(space["high"]) - below


def judge(task: str, space: dict[str, Any], y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether each observation is in its interval or label set, and the score."""
    if "sets" in space:
        return space["sets"][np.arange(len(y)), y, 0], np.full(len(y), np.nan)
    if task == "classes":
        p = np.asarray(space["probability"], float)
        judged = of_probabilities(y, np.column_stack([1.0 - p, p]), np.arange(2))
        return judged.held[:, 0], judged.score
    ends = np.column_stack([space["low"], space["high"]]).astype(float)
    judged = of_intervals(y, ends.mean(axis=1), ends[:, :, None], np.full((len(y), 1), LEVELS[0]))
    return judged.held[:, 0], judged.score


# ---- agreement -----------------------------------------------------------------------------------


def coefficients(method: str, space: dict[str, Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """Means and standard deviations of the slopes, of methods that have both."""
    names = list(space["X"].columns)
    if method == OURS:
        table = space["model"].summary().iloc[: len(names)]
        return table["mean"].to_numpy(), table["sd"].to_numpy()
    if method in (BAMBI, FASTER):
        posterior = space["idata"].posterior
        draws = np.stack([posterior[name].to_numpy().ravel() for name in names])
        return draws.mean(axis=1), draws.std(axis=1)
    if method == STATSMODELS:
        return space["found"].params[names].to_numpy(), space["found"].bse[names].to_numpy()
    if method == "scikit_learn" and hasattr(space["model"][-1], "sigma_"):
        scaler, ridge = space["model"]
        return ridge.coef_ / scaler.scale_, np.sqrt(np.diag(ridge.sigma_)) / scaler.scale_
    return None


def reference(task: str, fitted: Any) -> tuple[Any, dict[str, Any]]:
    """bambi's model with the priors of a fitted estimator of the package, and a snippet's space."""
    import bambi as bmb  # noqa: PLC0415
    import pymc as pm  # noqa: PLC0415

    X, y = TASKS[task].load()
    scales = dict(zip(X.columns, fitted.prior_.scale, strict=True))
    priors = {name: bmb.Prior("Normal", mu=0.0, sigma=float(s)) for name, s in scales.items()}
    priors["Intercept"] = bmb.Prior("Flat")
    if task == "numbers":
        alpha, beta = fitted.noise_prior_.shape, fitted.noise_prior_.scale

        def sigma(name: str, **_: Any) -> Any:
            return pm.math.sqrt(pm.InverseGamma("variance", alpha=alpha, beta=beta))

        priors["sigma"] = bmb.Prior("NoisePrior", dist=sigma)
    elif task == "counts":
        scale = fitted.dispersion_prior_.scale

        def size(name: str, **_: Any) -> Any:
            return pm.Exponential("root", scale=scale) ** -2.0

        priors["alpha"] = bmb.Prior("DispersionPrior", dist=size)
    data, formula = X.assign(y=y), "y ~ " + " + ".join(X.columns)
    model = bmb.Model(formula, data, family=TASKS[task].family, priors=priors)
    return model, {"X": X, "y": y, "X_new": X, "model": model}


def sample(model: Any, **options: Any) -> Any:
    """Draws of a reference, with bambi's names of the parameters whose priors are on others."""
    idata = model.fit(inference_method="nutpie", **options)
    posterior = idata.posterior
    if "variance" in posterior:
        posterior["sigma"] = np.sqrt(posterior["variance"])
    if "root" in posterior:
        posterior["alpha"] = posterior["root"] ** -2.0
    return idata


def agreement(task: str, spaces: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Largest errors of means and sds of slopes, and the mean error of the ends of intervals.

    Means are in posterior sds of the reference, sds relative, ends in widths of the reference's
    intervals. ``"the reference"`` has its own Monte Carlo error, and ``"bambi, our priors"`` is
    bambi's snippet with the priors of the reference.
    """
    model, space = reference(task, spaces[OURS]["model"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the errors of the reference are in the table
        space["idata"] = sample(model, **_REFERENCE)
        short = space | {"idata": sample(model, chains=4, random_seed=0)}
        for each in (space, short):
            exec(code(task, BAMBI).split("\n\n")[2], each)
    mean, sd = coefficients(BAMBI, space)
    names = list(space["X"].columns)
    halves = [space["idata"].posterior.isel(chain=chains) for chains in ([0, 1], [2, 3])]
    both = [np.stack([half[name].to_numpy().ravel() for name in names]) for half in halves]
    apart = (both[0].mean(axis=1) - both[1].mean(axis=1)) / 2.0 / sd
    of_sd = both[0].std(axis=1) / both[1].std(axis=1) - 1.0
    found = {
        "the reference": {"mean": float(np.abs(apart).max()), "sd": float(np.abs(of_sd).max() / 2)}
    }
    for name, each in (spaces | {"bambi, our priors": short}).items():
        found[name] = {}
        slopes = coefficients(BAMBI if name == "bambi, our priors" else name, each)
        if slopes is not None:
            found[name]["mean"] = float(np.max(np.abs(slopes[0] - mean) / sd))
            found[name]["sd"] = float(np.max(np.abs(slopes[1] / sd - 1.0)))
        if "low" in each:
            ends = [np.stack([s["low"], s["high"]]).astype(float) for s in (each, space)]
            width = np.mean(ends[1][1] - ends[1][0])
            found[name]["ends"] = float(np.mean(np.abs(ends[0] - ends[1])) / width)
    return found


# ---- one task ------------------------------------------------------------------------------------


def seconds(task: str, names: list[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Median seconds of the fit and the intervals of all rows, and what the last round leaves."""
    X, y = TASKS[task].load()
    rounds: dict[str, list[list[Seconds]]] = {name: [] for name in names}
    spaces = {}
    for i in range(_ROUNDS):
        for name in names:
            if i < (_ROUNDS_OF_BAMBI if name in (BAMBI, FASTER) else _ROUNDS):
                spaces[name], used = run(task, name, X, y, X)
                rounds[name].append(used)
    found = {}
    for name, used in rounds.items():
        fit, predict = np.median(used, axis=0).tolist()
        found[name] = {"fit": fit, "predict": predict, "rounds": len(used)}
    return found, spaces


def measure(task: str, names: list[str], kept: dict[str, Any]) -> dict[str, Any]:
    """Everything that is kept of a task: of the methods named, beside what is kept of others."""
    results = kept.get("methods", {})
    for name, found in cross_validate(task, names).items():
        results[name] = results.get(name, {}) | found
    used, spaces = seconds(task, names)
    spaces.pop(ADVISED, None)  # another model than the reference's
    agree = agreement(task, spaces)
    for name in names:
        new = {"code": code(task, name), "seconds": used[name], "agreement": agree.pop(name, {})}
        results[name] = results.get(name, {}) | new
    results = {name: results[name] for name in methods(task) if name in results}
    X, y = TASKS[task].load()
    return {"n": len(y), "d": X.shape[1], "folds": _FOLDS, "methods": results, "agreement": agree}


def read() -> dict[str, Any]:
    """Results that are kept."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"tasks": {}}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    parser.add_argument("tasks", nargs="*", help=f"some of {', '.join(TASKS)}")
    parser.add_argument(
        "--methods", nargs="+", default=[], help="these, beside ours and statsmodels"
    )
    options = parser.parse_args()
    for asked, known in ((options.tasks, TASKS), (options.methods, (*METHODS, *_VARIANTS))):
        if unknown := set(asked) - set(known):
            parser.error(f"{', '.join(map(repr, unknown))}: choose from {', '.join(known)}")
    wanted = _machine.hidden() | _ENVIRONMENT
    if any(os.environ.get(name) != value for name, value in _ENVIRONMENT.items()):
        command = [sys.executable, "-m", "benchmarks.comparison", *sys.argv[1:]]
        return subprocess.run(command, env=os.environ | wanted, cwd=ROOT).returncode
    logging.getLogger("pymc").setLevel(logging.ERROR)
    for task in options.tasks or [name for name in TASKS if name not in read()["tasks"]]:
        begin = perf_counter()
        asked = [OURS, STATSMODELS, *options.methods] if options.methods else methods(task)
        names = [name for name in methods(task) if name in asked]
        found = measure(task, names, read()["tasks"].get(task, {}))
        kept = read()  # again: another process may have kept another task
        kept["tasks"][task] = found
        kept["machine"] = _machine.describe()
        kept["versions"] = {name: version(name) for name in LIBRARIES}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
        print(f"{task}: {perf_counter() - begin:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
