"""Processor time of default fits over a grid of rows, columns and classes.

``python -m benchmarks.grid`` fits linear, logistic (two, three and ten classes), Poisson and
log-linear models to simulated data of 1,000 to a million rows and 5 to 1,000 columns, beside
scikit-learn's ``LogisticRegression`` and ``PoissonRegressor``. It saves what it measures in
``benchmarks/results/grid.json`` after every fit, and draws ``docs/figures/benchmark_grid.png`` from
that; names of models measure these anew, ``--cells 1000x5`` some of their cells, ``--draw`` draws
alone. AVX-512 is hidden, and BLAS has
one thread; fits share some passes between two threads of their own, whose processor time counts.

A cell is the least of two fits or more: of so many as take a second, ten at most, and of one where
it takes more than five seconds. All times are of the processor, which other work on the machine
lengthens little. Left out are cells of more than 30 million numbers, fits of more than 90 seconds,
larger ones beside these, and log-linear models of fewer than three rows a parameter.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from benchmarks import _data, _machine
from benchmarks.page import jumps
from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDPoissonRegressor

ROWS = 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000
COLUMNS = 5, 30, 100, 300, 1_000
RESULTS = Path(__file__).parent / "results" / "grid.json"
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "benchmark_grid.png"
_MOST_NUMBERS, _SECONDS, _SHORT = 30_000_000, 90.0, 5.0
_FITS, _TOGETHER = (2, 10), 1.0  # at least and at most, and seconds that end them between
_ROWS_EACH = 3
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "GRID_INSIDE": "1"}
Sample = tuple[np.ndarray, np.ndarray]


def _counts(n: int, d: int) -> Sample:
    """Standard normal columns, and counts of a mean about 2."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, rng.poisson(np.exp(0.5 + 0.5 * X @ rng.standard_normal(d) / np.sqrt(d)))


def _unequal(n: int, d: int) -> Sample:
    """Standard normal columns, on which the mean and, less, the log noise depend."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    mean = X @ rng.standard_normal(d) / np.sqrt(d)
    log_sd = 0.25 * X @ rng.standard_normal(d) / np.sqrt(d)
    return X, mean + np.exp(log_sd) * rng.standard_normal(n)


def _log_linear() -> SGLDLinearRegression:
    return SGLDLinearRegression(noise_model="log_linear", random_state=0)


def _logistic() -> SGLDLogisticRegression:
    return SGLDLogisticRegression(random_state=0)


MODELS: dict[str, tuple[Callable[[int, int], Sample], Callable[[], Any], Any]] = {
    "linear": (_data.linear, lambda: SGLDLinearRegression(random_state=0), None),
    "logistic": (_data.logistic, _logistic, LogisticRegression),
    "three classes": (lambda n, d: _data.classes(n, d, 3), _logistic, LogisticRegression),
    "ten classes": (lambda n, d: _data.classes(n, d, 10), _logistic, LogisticRegression),
    "Poisson": (_counts, lambda: SGLDPoissonRegressor(random_state=0), PoissonRegressor),
    "log-linear noise": (_unequal, _log_linear, None),
}
TITLES = {
    "linear": "SGLDLinearRegression",
    "logistic": "SGLDLogisticRegression, two classes",
    "three classes": "SGLDLogisticRegression, three classes",
    "ten classes": "SGLDLogisticRegression, ten classes",
    "Poisson": "SGLDPoissonRegressor",
    "log-linear noise": 'SGLDLinearRegression, "log_linear"',
}


class _TooLong(Exception):
    """More time than a cell may take."""


def seconds(fit: Callable[[], object]) -> float | None:
    """Least processor seconds of a fit, all threads together; None: too long."""
    best, first = np.inf, process_time()

    def stop(*_: object) -> None:
        if process_time() - first > _SECONDS:
            raise _TooLong

    # ITIMER_PROF would make process_time count whole ticks of the kernel
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
    try:
        for k in range(_FITS[1]):
            begin = process_time()
            fit()
            best = min(best, process_time() - begin)
            if best > _SHORT or (k + 1 >= _FITS[0] and process_time() - first > _TOGETHER):
                break
    except _TooLong:
        return None if best == np.inf else best
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    return best


def cells(name: str) -> Iterator[tuple[int, int]]:
    """Columns and rows of the grid that fit into memory, and have a posterior."""
    for d in COLUMNS:
        for n in ROWS:
            few = name == "log-linear noise" and n < _ROWS_EACH * 2 * (d + 1)
            if n * d <= _MOST_NUMBERS and not few:
                yield d, n


def measure(name: str, chosen: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Measure the chosen cells of a model, ``"1000x5"``, or all; one too long ends its columns."""
    make, model, peer = MODELS[name]
    known = json.loads(RESULTS.read_text())["models"][name] if chosen else []
    found = [cell for cell in known if f"{cell['n']}x{cell['d']}" not in chosen]
    for d, n in cells(name):
        if chosen and f"{n}x{d}" not in chosen:
            continue
        beside = [c for c in found if c["ours"] is None and c["n"] <= n and c["d"] <= d]
        if beside:
            continue
        X, y = make(n, d)
        fitted: list[Any] = []
        taken = seconds(lambda: fitted.append(model().fit(X, y)))  # noqa: B023
        cell = {"n": n, "d": d, "ours": taken, "theirs": None, "used": ""}
        if taken is not None:
            choices = fitted[-1].result_.choices
            parts = ("sampler", "step_size", "gradient", "batch_size")
            cell["used"] = ", ".join(str(choices[part].value) for part in parts)
        if peer is not None:
            cell["theirs"] = seconds(lambda: peer().fit(X, y))  # noqa: B023
        found.append(cell)
        print(name, cell, flush=True)
        save(name, sorted(found, key=lambda cell: (cell["d"], cell["n"])))
    return found


def save(name: str, found: list[dict[str, Any]]) -> None:
    """Save a model's cells so far beside the others'."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"models": {}}
    kept["machine"] = _machine.describe()
    kept["models"][name] = found
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def draw() -> None:
    """Draw processor time by rows, a line for each number of columns and a panel for each model."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    from benchmarks._figures import save as save_figure  # noqa: PLC0415

    models = json.loads(RESULTS.read_text())["models"]
    figure, panels = plt.subplots(
        2, 3, figsize=(11, 7.2), sharex=True, sharey=True, layout="constrained"
    )
    colours = dict(
        zip(COLUMNS, plt.get_cmap("viridis")(np.linspace(0, 0.9, len(COLUMNS))), strict=True)
    )
    for axes, name in zip(panels.flat, MODELS, strict=True):
        for d in COLUMNS:
            of_d = [c for c in models.get(name, []) if c["d"] == d]
            for who, style in (("theirs", "x:"), ("ours", "o-")):
                points = [(c["n"], c[who]) for c in of_d if c[who] is not None]
                if points:
                    label = f"{d:,} columns" if who == "ours" else None
                    axes.plot(*zip(*points, strict=True), style, color=colours[d], label=label)
        axes.set_title(TITLES[name])
        axes.grid(alpha=0.3)
        axes.set(xscale="log", yscale="log")
    panels[0, 0].yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    for axes in panels[1]:
        axes.set_xlabel("rows")
    for axes in panels[:, 0]:
        axes.set_ylabel("processor time of fit, seconds")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    handles.append(plt.Line2D([], [], color="black", marker="x", linestyle=":"))
    labels.append("LogisticRegression, PoissonRegressor")
    figure.legend(handles, labels, loc="outside lower center", ncols=6)
    figure.suptitle("Processor time of default fits: our estimators, and scikit-learn's")
    save_figure(figure, FIGURE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grid", description=__doc__)
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(MODELS)}")
    parser.add_argument("--cells", nargs="*", default=[], help="ROWSxCOLUMNS; all by default")
    parser.add_argument("--draw", action="store_true", help="draw what was measured, and stop")
    options = parser.parse_args()
    unknown = set(options.models) - set(MODELS)
    if unknown:
        parser.error(
            f"no model is {', '.join(map(repr, unknown))}; choose from {', '.join(MODELS)}"
        )
    if not options.draw:
        if "GRID_INSIDE" not in os.environ:
            hidden = _machine.hidden() if _machine.avx512() else {}
            command = [sys.executable, "-m", "benchmarks.grid", *sys.argv[1:]]
            sys.exit(subprocess.run(command, env=os.environ | hidden | _ENVIRONMENT).returncode)
        warnings.simplefilter("ignore")  # fits are timed, whatever they say of their draws
        for name in options.models or MODELS:
            measure(name, options.cells)
    for name, found in json.loads(RESULTS.read_text())["models"].items():
        made = [cell for cell in found if cell["ours"] is not None]
        for times, d, n, more in jumps(made)[:3]:
            print(f"{name}: {n:,} rows of {d:,} columns take {times:.2f} times {more:,} rows")
    draw()


if __name__ == "__main__":
    main()
