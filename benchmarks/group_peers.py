"""Groups and curves by this package and by others: lines of code, seconds, agreement, ESS a second.

    python -m benchmarks.group_peers                  measure every task
    python -m benchmarks.group_peers slopes binary    these alone
    python -m benchmarks.group_peers --python bambi=/envs/bambi/bin/python gpboost=...
    python -m docs.pages --run group_peers            then fill the pages

The code that is measured is that of ``docs/guide/snippets/groups``, which the page shows. Each run
is a process of its own, of the Python that is named for its library, or else of this one. A library
that is not installed there is left out, and the results say so; so is one that needs more than
``--limit`` seconds. The methods take turns in three rounds; the best run counts. A method whose run
takes more than 40 seconds has one round, as has a variant of NUTS that is half as fast as another.

NumPyro's programs have the priors of the package, so that their draws are the reference of the
agreement; this package is, if none of them ends. In the race for effective draws they run centred
and not, with the default mass and a dense one. Time without compilation is what more draws
take, by the difference of two runs; a step of the warm-up counts as one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from arviz_stats.base import array_stats

from benchmarks import _machine
from benchmarks.groups import make_rows, response

ROOT = Path(__file__).parents[1]
SNIPPETS = ROOT / "docs" / "guide" / "snippets" / "groups"
RESULTS = Path(__file__).parent / "results" / "group_peers.json"
OURS, REFERENCE = "skbayes_sgld", "numpyro"
_ONE_THREAD = OURS, "gpboost", "pygam"
ROUNDS, ONCE = 3, 40.0  # rounds, and seconds of a run that has one

# NumPyro's programs with other coordinates or another mass matrix; the first is the snippet
_CENTRED = {
    "Normal(0.0, 1.0).expand([2]).to_event(1)": "MultivariateNormal(0.0, scale_tril=factor)",
    'numpyro.sample("z", dist.Normal(0.0, 1.0))': 'numpyro.sample("z", dist.Normal(0.0, sd))',
    "effects = z @ factor.T": "effects = z",
    "effects = sd * z": "effects = z",
}
_DENSE = {"NUTS(program)": "NUTS(program, dense_mass=True)"}
NUTS: dict[str, dict[str, str]] = {
    "numpyro": {},
    "numpyro, dense": _DENSE,
    "numpyro, centred": _CENTRED,
    "numpyro, centred, dense": _CENTRED | _DENSE,
}
_BINARY = {
    "SGLDLinearRegression": "SGLDLogisticRegression",
    'family="gaussian"': 'family="bernoulli"',
    'likelihood="gaussian"': 'likelihood="bernoulli_logit"',
    '    variance = numpyro.sample("variance", dist.InverseGamma(1e-3, 1e-3 * y.var()))\n': "",
    "dist.Normal(mean, variance**0.5)": "dist.Bernoulli(logits=mean)",
    "2.5 * y.std() / X.std": "1.0 / X.std",
    "y.std() * numpyro": "numpyro",
}
_COUNTS = {
    "SGLDLinearRegression": "SGLDPoissonRegressor",
    'likelihood="gaussian"': 'likelihood="poisson"',
}
_CURVES = {
    "binary": {"SGLDLinearRegression": "SGLDLogisticRegression", "LinearGAM": "LogisticGAM"},
    "counts": {"SGLDLinearRegression": "SGLDPoissonRegressor", "LinearGAM": "PoissonGAM"},
}


# a thousand draws of NUTS after a thousand of warm-up take it ten minutes there
_SHORT = {"num_warmup=1000, num_samples=1000": "num_warmup=250, num_samples=250"}


# ---- tasks ---------------------------------------------------------------------------------------


class Task(NamedTuple):
    """Data, the beginning of the snippets' names, changes of them, and the methods."""

    load: Callable[[], pd.DataFrame]
    snippets: str
    changes: dict[str, str]
    methods: tuple[str, ...]


def sleepstudy() -> pd.DataFrame:
    """Reaction times of 18 subjects on ten days without sleep."""
    return pd.read_csv(ROOT / "tests" / "mixed" / "data" / "sleepstudy.csv")


def simulated(family: str, n: int, n_groups: int) -> Callable[[], pd.DataFrame]:
    """Five columns, labels of groups and y."""

    def load() -> pd.DataFrame:
        rows, y = make_rows(family, n, n_groups)
        frame = pd.DataFrame(rows[:, 1:], columns=[f"x{k}" for k in range(5)])
        return frame.assign(group=[f"g{int(label)}" for label in rows[:, 0]], y=y)

    return load


def crossed(family: str, n: int, n_groups: int, n_items: int) -> Callable[[], pd.DataFrame]:
    """Five columns, labels of groups and of items that every group may have, and y."""

    def load() -> pd.DataFrame:
        rng = np.random.default_rng(0)
        groups, items = rng.integers(n_groups, size=n), rng.integers(n_items, size=n)
        X = rng.standard_normal((n, 5))
        predictor = 0.3 * X.sum(axis=1) + rng.standard_normal(n_groups)[groups]
        predictor += 0.5 * rng.standard_normal(n_items)[items]
        frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(5)])
        labels = {"group": [f"g{label}" for label in groups], "item": [f"i{k}" for k in items]}
        return frame.assign(**labels, y=response(family, predictor, rng))

    return load


def with_curves(family: str, n: int) -> Callable[[], pd.DataFrame]:
    """Five columns, the first two of which have curves, and y."""

    def load() -> pd.DataFrame:
        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, (n, 5))
        predictor = np.sin(3.0 * X[:, 0]) + np.square(X[:, 1]) + 0.3 * X.sum(axis=1)
        frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(5)])
        return frame.assign(y=response(family, predictor, rng))

    return load


_ALL = (OURS, "bambi", "statsmodels", "gpboost", *NUTS)
_ESTIMATED = (OURS, "gpboost")
_CURVED = (OURS, "pygam")
TASKS = {
    "slopes": Task(sleepstudy, "slopes", {}, _ALL),
    "binary": Task(simulated("binary", 1_000, 50), "rows", _BINARY, _ALL),
    "normal": Task(simulated("normal", 100_000, 1_000), "rows", _SHORT, _ALL),
    "binary, 100,000 rows": Task(simulated("binary", 100_000, 1_000), "rows", _BINARY, _ESTIMATED),
    "counts, 100,000 rows": Task(simulated("counts", 100_000, 1_000), "rows", _COUNTS, _ESTIMATED),
    "binary, 1,000,000 rows": Task(
        simulated("binary", 1_000_000, 10_000), "rows", _BINARY, _ESTIMATED
    ),
    "counts, 1,000,000 rows": Task(
        simulated("counts", 1_000_000, 10_000), "rows", _COUNTS, _ESTIMATED
    ),
    "crossed, 20,000 rows": Task(crossed("normal", 20_000, 1_000, 300), "crossed", {}, _ESTIMATED),
    "crossed, 70,000 rows": Task(
        crossed("normal", 70_000, 3_000, 1_100), "crossed", {}, _ESTIMATED
    ),
    "curves, normal": Task(with_curves("normal", 100_000), "curves", {}, _CURVED),
    "curves, binary": Task(with_curves("binary", 100_000), "curves", _CURVES["binary"], _CURVED),
    "curves, counts": Task(with_curves("counts", 100_000), "curves", _CURVES["counts"], _CURVED),
}


def library(method: str) -> str:
    """Library of a method."""
    return method.partition(",")[0]


def snippet(task: str, method: str) -> Path:
    """File of a method's code, before the changes of the task and of the variant."""
    name = library(method)
    binary = name == "statsmodels" and task.startswith("binary")  # another class there
    return SNIPPETS / f"{'binary' if binary else TASKS[task].snippets}_{name}.py"


def code(task: str, method: str) -> str:
    """Code of a method as it is measured."""
    text = snippet(task, method).read_text()
    for old, new in (TASKS[task].changes | NUTS.get(method, {})).items():
        text = text.replace(old, new)
    return text


def n_lines(task: str, method: str) -> int:
    """Lines that a user writes, imports among them."""
    return sum(bool(line.strip()) for line in code(task, method).splitlines())


# ---- one run -------------------------------------------------------------------------------------


def environment(cache: Path, method: str) -> dict[str, str]:
    """Threads, no AVX-512, and a place where JAX keeps compiled programs.

    Two threads, but one of methods whose threads wait for each other on a busy machine: that counts
    as processor time.
    """
    names = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"
    threads = dict.fromkeys(names, "1" if library(method) in _ONE_THREAD else "2")
    hidden = _machine.hidden() if _machine.avx512() else {}
    return (
        os.environ
        | hidden
        | threads
        | {
            "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
            "PYTENSOR_FLAGS": "gcc__cxxflags=-mno-avx512f",
            "NUMBA_CPU_NAME": "haswell",
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    )


def run(python: str, task: str, method: str, data: Path, seed: int, limit: float) -> dict[str, Any]:
    """Seconds, version and draws of one process; ``"missing"`` is why there are none."""
    with TemporaryDirectory() as place:
        path, out = Path(place) / "snippet.py", Path(place) / "out"
        path.write_text(code(task, method))
        command = [python, "-m", "benchmarks._group_worker", library(method)]
        command += [str(each) for each in (path, data, seed, out)]
        kept = environment(Path(place) / "jax", method)
        try:
            done = subprocess.run(
                command, env=kept, cwd=ROOT, capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return {"missing": f"not ended after {limit:.0f} s"}
        except OSError as error:
            return {"missing": f"{python}: {error.strerror}"}
        if done.returncode:
            return {"missing": (done.stderr.strip().splitlines() or ["no message"])[-1]}
        found = json.loads(Path(f"{out}.json").read_text())
        with np.load(f"{out}.npz") as draws:
            return found | {"draws": dict(draws)}


# ---- what is kept --------------------------------------------------------------------------------


def worst_ess(draws: dict[str, np.ndarray]) -> float:
    """Smallest bulk effective sample size of the groups' standard deviations."""
    return min(
        float(array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk"))
        for name, values in draws.items()
        if name.startswith("sd ")
    )


def pooled(runs: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Mean and sd of each parameter, over the draws of all rounds, or the estimates."""
    if not runs[0]["draws"]:
        return runs[0]["estimates"]
    together = {k: np.stack([run["draws"][k] for run in runs]) for k in runs[0]["draws"]}
    return {k: [float(v.mean()), float(v.std())] for k, v in together.items()}


def distance(
    found: dict[str, list[float]], reference: dict[str, list[float]]
) -> dict[str, float | None]:
    """Largest distance of a mean, in sds of the reference, and largest relative error of an sd."""
    both = [(found[name], reference[name]) for name in reference if name in found]
    errors = [abs(sd / s - 1.0) for (_, sd), (_, s) in both if np.isfinite(sd)]
    return {
        "means": max(abs(mean - m) / s for (mean, _), (m, s) in both),
        "sds": max(errors) if errors else None,
    }


def summarise(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Best seconds of a method, estimates, and the best effective draws a second."""
    best = np.min([np.min(run["runs"], axis=0) for run in runs], axis=0)
    about = {"version": runs[0]["version"], "rounds": len(runs)}
    about |= {"wall": float(best[0]), "processor": float(best[1]), "estimates": pooled(runs)}
    if runs[0]["draws"]:
        ess = [worst_ess(run["draws"]) for run in runs]
        about["ess"] = float(np.median(ess))
        about["ess a second"] = {"with compilation": [about["ess"] / s for s in best]}
        if "compiled" in runs[0]:
            alone = np.min([run["compiled"] for run in runs], axis=0)
            about["ess a second"]["without"] = [about["ess"] / s for s in alone]
    return about


def rate(found: dict[str, Any]) -> float:
    """Effective draws of the worst scale a second of processor time, without compilation."""
    return worst_ess(found["draws"]) / found["compiled"][1]


def beaten(runs: dict[str, list[dict[str, Any]]], method: str) -> bool:
    """Whether other coordinates or another mass made NUTS twice as fast in the first round."""
    if method == REFERENCE or method not in NUTS:
        return False
    best = max(rate(runs[name][0]) for name in NUTS if runs.get(name))
    return rate(runs[method][0]) < best / 2


def measure(
    task: str, methods: list[str], kept: dict[str, Any], options: argparse.Namespace
) -> dict[str, Any]:
    """All rounds of methods of a task, beside what is kept of others."""
    frame = TASKS[task].load()
    pythons = dict.fromkeys(map(library, (*_ALL, *_CURVED)), sys.executable)
    pythons |= dict(entry.split("=", 1) for entry in options.python)
    runs: dict[str, list[dict[str, Any]]] = {method: [] for method in methods}
    missing = {m: why for m, why in kept.get("missing", {}).items() if m not in runs}
    with TemporaryDirectory() as place:
        data = Path(place) / "data.csv"
        frame.to_csv(data, index=False)
        for k in range(options.rounds):
            for method, before in runs.items():
                if method in missing or (
                    before and (before[0]["runs"][0][0] > ONCE or beaten(runs, method))
                ):
                    continue
                one = run(pythons[library(method)], task, method, data, k, options.limit)
                if "missing" not in one:
                    before.append(one)
                elif not before:  # else the machine is busier than it was
                    missing[method] = one["missing"]
                said = one.get("missing") or f"{one['runs'][-1][0]:.3f} s"
                print(f"{task}, round {k + 1}, {method}: {said}", flush=True)
    found = kept.get("methods", {}) | {m: summarise(made) for m, made in runs.items() if made}
    found = {method: found[method] for method in TASKS[task].methods if method in found}
    for method in found.keys() & runs.keys():
        found[method] |= {"lines": n_lines(task, method), "code": code(task, method)}
    nuts = [method for method in NUTS if method in found]
    rates = {m: found[m].get("ess a second", {}).get("without", [0.0, 0.0])[1] for m in nuts}
    best = max(rates, key=rates.__getitem__) if nuts else OURS
    for about in found.values():
        about["agreement"] = distance(about["estimates"], found[best]["estimates"])
    found[best]["agreement"] = {"means": None, "sds": None}
    return {"n": len(frame), "methods": found, "missing": missing}


def read() -> dict[str, Any]:
    """Results that are kept."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"tasks": {}}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.group_peers", description=__doc__)
    parser.add_argument("tasks", nargs="*", help=f"some of {', '.join(TASKS)}")
    parser.add_argument("--methods", nargs="+", default=[], help=f"these alone: {'; '.join(_ALL)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--python", nargs="+", default=[], metavar="LIBRARY=PATH")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds of a run at most")
    options = parser.parse_args()
    if unknown := set(options.tasks) - set(TASKS):
        parser.error(f"{', '.join(map(repr, unknown))}: choose from {', '.join(TASKS)}")
    for task in options.tasks or TASKS:
        asked = [m for m in TASKS[task].methods if not options.methods or m in options.methods]
        found = measure(task, asked, read()["tasks"].get(task, {}), options)
        kept = read()
        kept["tasks"][task] = found
        kept["machine"] = _machine.describe()
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
