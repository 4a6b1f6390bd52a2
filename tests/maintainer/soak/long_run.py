"""Thousands of fits in one process: ``python -m tests.maintainer.soak.long_run``.

Every fit has a configuration of its own: estimator, prior, data (rows, columns, units, type,
sparse, weights), sampler, gradient, metric, parameterization, temperature, start, chains. After
the first hundred the memory in use must not grow, and no file, thread or process be left; results
are finite. Where the settings are the automatic ones on a proper problem, R-hat must be sane, and
at most one fit in two hundred may warn.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.stats import t as student_t
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import (
    BayesByBackpropRegressor,
    ModelMisfitWarning,
    SGDMAPClassifier,
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPClassifier,
    SGLDPoissonRegressor,
)
from skbayes_sgld.diagnostics import potential_scale_reduction

from .report import Report, options

PROBE = 50  # fits from one look at the memory to the next
SETTLED = 100  # fits until caches and pools are as large as they will be
SLOPE = 512.0  # bytes a fit by which the memory may grow, beside its standard errors
BLOCKS = 1.0  # blocks of Python's a fit, of which an object takes one at least
SANE = 1.2  # R-hat
TOLD = 0.005  # share of fits that may warn
STRAY = 8  # handles and threads of pools, which come once

SAMPLED = {
    "linear": SGLDLinearRegression,
    "logistic": SGLDLogisticRegression,
    "counts": SGLDPoissonRegressor,
}
CLIMBED = {"map regression": SGDMAPRegressor, "map classification": SGDMAPClassifier}
NETWORKS = {"network": SGLDMLPClassifier, "backprop": BayesByBackpropRegressor}
COLUMNS = [
    *(("kind", "U20"), ("automatic", bool), ("warned", bool), ("refused", bool)),
    ("r_hat", float),
]
SHOWN = 8  # warnings
ARENA_MAX = -8  # of malloc.h
CACHED = 1024  # bytes below which NumPy keeps the memory of arrays, up to seven of a size


def pick(rng: np.random.Generator, values: Any) -> Any:
    """One of the values."""
    return values[int(rng.integers(len(values)))]


def data(rng: np.random.Generator, kind: str) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Rows, target and weights of a proper problem: several rows a column, none separable."""
    d = int(rng.integers(1, 7))
    n = int(rng.integers(15 * (d + 2), 180))
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    eta = X @ rng.normal(0.0, 0.5 / np.sqrt(d), d)
    if kind in ("logistic", "map classification", "network"):
        n_classes = pick(rng, (2, 2, 3))
        y = np.argmax(np.outer(eta, np.arange(n_classes)) + rng.gumbel(size=(n, n_classes)), axis=1)
        y[:n_classes] = np.arange(n_classes)
    elif kind == "counts":
        y = rng.poisson(np.exp(0.5 * eta + 0.5))
        y[0] = 1
    else:
        y = (eta + rng.standard_normal(n)) * pick(rng, (1.0, 1.0, 1e3, 1e-3))
    X = X * pick(rng, (1.0, 1.0, 10.0 ** rng.integers(-3, 4, d))) + pick(rng, (0.0, 0.0, 5.0))
    if rng.random() < 0.15:
        X = X.astype(np.float32)
    if rng.random() < 0.1 and kind not in NETWORKS:
        X = sparse.csr_array(X)
    weight = rng.uniform(0.5, 1.5, n) if rng.random() < 0.15 else None
    return X, y, weight


def automatic(rng: np.random.Generator, kind: str) -> dict[str, Any]:
    """Settings that leave the sampler to the package."""
    priors = ["normal"] * 10 + ["laplace", "student_t"]
    if kind == "linear":
        priors += ["conjugate_normal"] * 4 + ["hierarchical_normal"]
    given = {"prior": pick(rng, priors), "n_draws": int(pick(rng, (250, 250, 250, 500)))}
    if kind == "linear" and rng.random() < 0.2:
        given["noise_variance"] = 1.0 if rng.random() < 0.5 else "infer"
    if rng.random() < 0.1:
        given["fit_intercept"] = False
    if rng.random() < 0.1:
        given["n_jobs"] = 1
    return given


def chosen(rng: np.random.Generator, kind: str) -> dict[str, Any]:
    """Settings of which some are given, well or badly."""
    given = {"n_draws": int(pick(rng, (20, 100))), "n_chains": int(rng.integers(1, 6))}
    options = {
        "sampler": ("sgld", "hmc", "mala", "sghmc", "psgld", "random_walk", "parallel_tempering"),
        "gradient": ("full", "minibatch", "control_variate"),
        "parameterization": ("auto", "centered"),
        "temperature": (0.5, 2.0, "cooling"),
        "init": ("mode", "prior", "zeros"),
        "schedule": ("constant", "polynomial", "cyclical"),
        "clip": (None, "norm", "value"),
        "preconditioner": ("auto", "curvature"),
    }
    for name, values in options.items():
        if rng.random() < 0.3:
            given[name] = pick(rng, values)
    if given.get("init") == "prior":
        given |= {"prior": "normal", "intercept_prior": "normal"}
    adjusted = given.get("sampler") in ("hmc", "mala", "random_walk", "parallel_tempering")
    if adjusted:
        given.pop("gradient", None)
        given.pop("schedule", None)
    return given


def make(rng: np.random.Generator) -> tuple[str, Any, bool]:
    """Kind of estimator, the estimator, and whether its settings are the automatic ones."""
    seed, where = int(rng.integers(2**31)), rng.random()
    if where < 0.9:
        kind = pick(rng, list(SAMPLED))
        by_itself = bool(rng.random() < 0.85)
        given = (automatic if by_itself else chosen)(rng, kind)
        return kind, SAMPLED[kind](random_state=seed, **given), by_itself
    if where < 0.98:
        kind = pick(rng, list(CLIMBED))
        given = {"optimizer": pick(rng, ("sgd", "adam")), "max_iter": int(pick(rng, (20, 200)))}
        return kind, CLIMBED[kind](random_state=seed, **given), False
    kind = pick(rng, list(NETWORKS))
    few = {"max_iter": 5} if kind == "backprop" else {"n_draws": 4, "n_burnin": 4, "thin": 1}
    return kind, NETWORKS[kind](hidden_layer_sizes=(2,), random_state=seed, **few), False


def one_fit(seed: list[int]) -> dict[str, Any]:
    """Outcome of one fit: its kind, R-hat, and what is wrong with it, if anything."""
    rng = np.random.default_rng(seed)
    kind, model, by_itself = make(rng)
    X, y, weight = data(rng, kind)
    row = {"kind": kind, "automatic": by_itself, "warned": "", "wrong": "", "r_hat": np.nan}
    row["refused"] = False
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        # a known noise may be in other units than y
        warnings.simplefilter("ignore", ModelMisfitWarning)
        try:
            model.fit(X, y, sample_weight=weight)
            predicted = [model.predict(X), getattr(model, "predict_proba", model.predict)(X)]
        except ValueError as error:  # of settings that do not go together
            row["refused"] = True
            if by_itself or kind not in SAMPLED:
                row["wrong"] = f"{type(error).__name__}: {error}"
            return row
        except Exception as error:
            row["wrong"] = f"{type(error).__name__}: {error}"
            return row
    others = [each for each in told if not issubclass(each.category, ConvergenceWarning)]
    if others:
        row["wrong"] = f"{others[0].category.__name__}: {others[0].message}"
    row["warned"] = "; ".join(str(each.message) for each in told)
    values = [model.posterior_.values, *predicted]
    if not all(np.isfinite(each).all() for each in values):
        row["wrong"] = "a result is not finite"
    if by_itself:
        row["r_hat"] = float(np.max(potential_scale_reduction(model.posterior_.values)))
        if row["r_hat"] > SANE and not told:
            row["wrong"] = f"R-hat is {row['r_hat']:.2f}, and nothing was said"
    return row


def settle() -> None:
    """Leave the allocators nothing to keep of sizes that they have not seen before.

    Threads have arenas of their own, whose upper ends ``malloc_trim`` leaves at the size of the
    largest fit there was; and NumPy's cache of small arrays fills over thousands of fits.
    """
    ctypes.CDLL(None).mallopt(ARENA_MAX, 1)
    for size in range(1, CACHED):
        [np.empty(size, np.uint8) for _ in range(8)]


class Mallinfo2(ctypes.Structure):
    """Memory of glibc (malloc.h)."""

    _fields_ = [
        *((f"other{k}", ctypes.c_size_t) for k in range(4)),
        ("hblkhd", ctypes.c_size_t),  # in maps of their own
        *((f"other{k}", ctypes.c_size_t) for k in range(4, 6)),
        ("uordblks", ctypes.c_size_t),  # in arenas
        *((f"other{k}", ctypes.c_size_t) for k in range(6, 8)),
    ]


MEASURES = ("resident bytes", "bytes that malloc has handed out", "Python's blocks")


def in_use() -> tuple[int, int, int]:
    """Memory in use, without what is garbage or free, which glibc keeps for later.

    What it keeps depends on the order of sizes and rises with the largest so far: the resident
    memory may rise where not a byte more is handed out.
    """
    gc.collect()
    libc = ctypes.CDLL(None)
    libc.malloc_trim(0)
    libc.mallinfo2.restype = Mallinfo2
    malloc = libc.mallinfo2()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return (
        pages * resource.getpagesize(),
        malloc.uordblks + malloc.hblkhd,
        sys.getallocatedblocks(),
    )


def held() -> dict[str, int]:
    """Handles, threads and children of the process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {
        "handles": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "children": len(children),
    }


def slope(memory: np.ndarray) -> tuple[float, float]:
    """Growth of the memory in bytes a fit, and its standard error by blocks of the looks."""
    fits, y = PROBE * np.arange(len(memory)), memory.astype(float)
    if len(y) < 8:
        return 0.0, 0.0
    x = fits - fits.mean()
    beta = float(x @ y / (x @ x))
    residual = y - y.mean() - beta * x
    lag = float(residual[1:] @ residual[:-1] / max(residual @ residual, 1e-9))
    longer = np.sqrt((1.0 + max(lag, 0.0)) / (1.0 - min(max(lag, 0.0), 0.99)))  # they follow
    return beta, float(longer * residual.std(ddof=2) / np.sqrt(x @ x))


def run(report: Report, n_fits: int, seed: int) -> tuple[pd.DataFrame, list[str]]:
    """Fit so often, and judge."""
    settle()
    # made, and touched, before the first fit, so that what is noted takes no more with every fit
    rows = np.ones(n_fits, COLUMNS)
    memory = np.ones((n_fits // PROBE + 1, len(MEASURES)), dtype=int)
    looks, before, shown, made = 0, held(), [], 0
    for number in report.each(range(n_fits)):
        row = one_fit([seed, number])
        report.check(not row["wrong"], f"fit {number}, {row['kind']}: {row['wrong']}")
        if row["warned"] and row["automatic"] and len(shown) < SHOWN:
            shown.append(f"  fit {number}, {row['kind']}: {row['warned'][:150]}")
        noted = row | {"warned": bool(row["warned"])}
        rows[number] = tuple(noted[name] for name in rows.dtype.names)
        made = number + 1
        if made == SETTLED:
            before = held()
        if number >= SETTLED and number % PROBE == 0:
            memory[looks] = in_use()
            looks += 1
    found, notes = pd.DataFrame(rows[:made]), []
    for what, values in zip(MEASURES, memory[:looks].T, strict=True):
        if not looks:
            break
        beta, error = slope(values)
        later, its_error = slope(values[len(values) // 2 :])
        tenths = values[:: max(len(values) // 10, 1)]
        notes.append(
            f"{what}: {values[0]:,} after {SETTLED} fits, then {beta:+.2f} +- {error:.2f} a fit, "
            f"in the second half {later:+.2f} +- {its_error:.2f}\n    "
            f"{' '.join(f'{value - values[0]:+,}' for value in tenths)}"
        )
        if "resident" in what:  # which rises with the largest fit so far, and then levels off
            beta, error = later, its_error
        doubt = student_t.isf(1e-3, max(len(values) // 2 - 2, 1)) * error
        limit = BLOCKS if "blocks" in what else SLOPE
        report.check(beta - doubt < limit, f"{what} grow by {beta:.2f} +- {error:.2f} a fit")
    after = held()
    notes.append(f"after {min(SETTLED, made)} fits {before}, at the end {after}")
    for name in before:
        more = after[name] - before[name]
        report.check(more <= (0 if name == "children" else STRAY), f"{name}: {more} more")
    proper = found[found["automatic"]]
    n_warned = int(proper["warned"].sum())
    notes.append(
        f"automatic settings on proper problems: {n_warned} of {len(proper)} warned "
        f"({n_warned / max(len(proper), 1):.2%}); largest R-hat {proper['r_hat'].max():.3f}, "
        f"99 % are below {proper['r_hat'].quantile(0.99):.3f}"
    )
    # by chance a few more, of few
    limit = TOLD * len(proper) + 3.0 * np.sqrt(TOLD * len(proper))
    report.check(n_warned <= limit, f"{n_warned} of {len(proper)} warned")
    return found, notes + shown


def main() -> None:
    """Fit as often as was asked for, or as fits into the time."""
    given = options("tests.maintainer.soak.long_run", 10_000, 1750.0)
    report = Report("Fits in one process", given.seconds, given.keep)
    found, notes = run(report, given.cases, given.seed)
    by_kind = found.assign(fits=1).groupby(["kind", "automatic"], as_index=False)
    table = by_kind[["fits", "warned", "refused"]].sum()
    automatic = found[found["automatic"]]
    counts = {
        "fits": len(found),
        "automatic": len(automatic),
        "automatic, warned": int(automatic["warned"].sum()),
        "largest R-hat": float(automatic["r_hat"].max()),
    }
    report.end(table, [f"{len(found)} fits", *notes], counts)


if __name__ == "__main__":
    main()
