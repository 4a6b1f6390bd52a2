"""Rates of the machine, work of a fit, and growth of its cost: data of the documentation.

A row of this module yields data, not figures: ``docs/performance.md`` is made from them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._tools import Data, interleave, row, seconds
from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression

CORES = os.cpu_count() or 1
_PIECE = 2**15  # numbers: a piece that stays in the first caches
_CHAINS, _DRAWS = 4, 1000  # of a default fit


# ---- what the machine can move -------------------------------------------------------------------


def _rate(work: float, task: Callable[[], Any], rounds: int) -> float:
    """Most work a second in ``rounds`` calls, after one that warms up."""
    task()
    return work / min(seconds(task) for _ in range(rounds))


def _on_all_cores(task: Callable[[int], Any]) -> Callable[[], Any]:
    def run() -> None:
        with threadpool_limits(1), ThreadPoolExecutor(CORES) as pool:
            list(pool.map(task, range(CORES)))

    return run


@row("machine", rounds=5)
def machine(rounds: int, quick: bool) -> Iterator[Data]:
    """Rates of the machine: bytes, operations, exponentials, normal numbers a second."""
    size = 2**22 if quick else 2**25
    stream = [np.ones(size) for _ in range(CORES)]
    pieces = [np.linspace(-3.0, 3.0, _PIECE) for _ in range(CORES)]
    side, repeats = (256 if quick else 1024), 200
    square = np.random.default_rng(0).standard_normal((side, side))
    single = square.astype(np.float32)
    streams = [np.random.default_rng(i) for i in range(CORES)]

    def exp(values: np.ndarray) -> None:
        out = np.empty_like(values)
        for _ in range(repeats):
            np.exp(values, out=out)

    def normals(rng: np.random.Generator) -> None:
        out = np.empty(_PIECE)
        for _ in range(repeats // 10):
            rng.standard_normal(out=out)

    halves = [piece.astype(np.float32) for piece in pieces]
    products, numbers = 2.0 * side**3, float(CORES * _PIECE)
    tasks = {
        "bytes": (8.0 * CORES * size, _on_all_cores(lambda i: stream[i] @ stream[i])),
        "float64 operations": (products, lambda: square @ square),
        "float32 operations": (products, lambda: single @ single),
        "float64 exp": (numbers * repeats, _on_all_cores(lambda i: exp(pieces[i]))),
        "float32 exp": (numbers * repeats, _on_all_cores(lambda i: exp(halves[i]))),
        "normal numbers": (numbers * (repeats // 10), _on_all_cores(lambda i: normals(streams[i]))),
    }
    yield Data("machine", {k: _rate(work, task, rounds) for k, (work, task) in tasks.items()})


# ---- what a fit has to move ----------------------------------------------------------------------


def needs(n: int, d: int, settings: dict[str, Any], passes: int) -> list[dict[str, Any]]:
    """Bytes, operations, exponentials and normal numbers of the parts of a logistic fit.

    Parameters
    ----------
    settings : dict
        Those of the fit: ``n_burnin``, ``thin`` and ``batch_size`` (None for all rows).
    passes : int
        Passes over all rows that the mode and the curvature take at least, each with gradient and
        Hessian.
    """
    params, batch = d + 1, settings["batch_size"]
    steps = settings["n_burnin"] + _DRAWS * settings["thin"]
    rows = float(steps * _CHAINS * (batch or n))
    metric = 2.0 * steps * _CHAINS * params**2
    return [
        {"part": "reading X once, to check it", "bytes": 8.0 * n * d},
        {
            "part": f"mode and curvature, {passes} passes",
            "bytes": 8.0 * n * d * passes,
            "operations": passes * n * (4.0 * params + params**2),
            "exp": float(passes * n),
        },
        {
            "part": f"{steps:,} steps of {_CHAINS} chains, {batch or n:,} rows each",
            "bytes": 8.0 * rows * d if batch else 0.0,  # all rows of a small set stay in cache
            "operations": 4.0 * rows * params + metric,
            "exp": rows,
            "normal": float(steps * _CHAINS * params),
        },
    ]


@row("sizes", rounds=3)
def sizes(rounds: int, quick: bool) -> Iterator[Data]:
    """Default logistic fits of three sizes: their seconds, and what they have to move."""
    found = []
    shapes = {"1e5 x 50": (100_000, 50), "1e6 x 50": (1_000_000, 50)}
    made = {name: (lambda shape=shape: _data.logistic(*shape)) for name, shape in shapes.items()}
    for name, load in ({"NBA, 1,340 x 19": _data.rookies} | ({} if quick else made)).items():
        X, y = load()
        model = SGLDLogisticRegression(random_state=0)
        taken = interleave({"fit": lambda model=model, X=X, y=y: model.fit(X, y)}, rounds)["fit"]
        settings = model.summary().attrs
        kept = {key: settings[key] for key in ("n_burnin", "thin", "batch_size")}
        # from all the rows, or from a subsample's mode: a Newton step and a check of it
        parts = needs(*X.shape, kept, passes=2)
        about = {"sampler": str(settings["sampler"]), "gradient": str(settings["gradient"])}
        found.append(
            {"size": name, "n": len(y), "d": X.shape[1], "seconds": float(np.median(taken))}
            | {"settings": kept | about, "parts": parts}
        )
    yield Data("sizes", found)


# ---- how the cost grows --------------------------------------------------------------------------


def _grow(name: str, values: list[int], tasks: Callable[[int], dict], rounds: int) -> Data:
    """Least seconds of the fits that ``tasks`` makes of each value.

    Other work on the machine lengthens a fit of 20 ms to 40 or more, and the median of a few too.
    """
    columns: dict[str, list[float]] = {}
    for value in values:
        for key, taken in interleave(tasks(value), rounds, warm=False).items():
            columns.setdefault(key, []).append(float(np.min(taken)))
    return Data(f"growth in {name}", {"values": values, "seconds": columns})


def _fits(n: int, d: int, n_chains: int = 4, *, peers: bool = True) -> dict[str, Callable]:
    models = {
        "SGLDLogisticRegression": SGLDLogisticRegression(n_chains=n_chains, random_state=0),
        "SGLDLinearRegression": SGLDLinearRegression(n_chains=n_chains, random_state=0),
    }
    models |= {"LogisticRegression": LogisticRegression(), "Ridge": Ridge()} if peers else {}
    data = {True: _data.linear(n, d), False: _data.logistic(n, d)}
    linear = "SGLDLinearRegression", "Ridge"
    return {
        name: (lambda model=model, sample=data[name in linear]: model.fit(*sample))
        for name, model in models.items()
    }


@row("growth", rounds=5)
def growth(rounds: int, quick: bool) -> Iterator[Data]:
    """Default fits of more rows, columns and chains: LogisticRegression and Ridge."""
    n_rows = [1000, 3000] if quick else [1000, 10_000, 100_000, 1_000_000]
    n_columns = [5, 10] if quick else [5, 10, 20, 40, 80, 160]
    n_chains = [1, 2] if quick else [1, 2, 4, 8, 16]
    yield _grow("n", n_rows, lambda n: _fits(n, 20), rounds)
    yield _grow("d", n_columns, lambda d: _fits(10_000, d), rounds)
    yield _grow("C", n_chains, lambda c: _fits(10_000, 20, c, peers=False), rounds)
