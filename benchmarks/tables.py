"""Default fits of wide tables, of text, and of tables with the troubles of real ones.

    python -m benchmarks.tables                measure all of them, ten minutes
    python -m benchmarks.tables text leagues   measure those whose names begin so
    python -m benchmarks.tables --dry          print, and keep nothing

A fit is measured on one core in a process of its own, which stops it after three minutes of
processor time. The peer is fitted before, in the same process. Fits of a few seconds have three
processes, and the least seconds of each side are kept: the speed of a machine that others use
varies. The package's modules are compiled first, as those of an installed package are: a fit else
compiles what it imports, for 50 to 100 ms. A bound is in times of the peer or in seconds; it is met
if the largest R-hat of the draws is below 1.05 too. All tables are made: those after "text" have
the shapes of tables that people have, and what made fits of those slow.

What is measured is kept in ``benchmarks/results/tables.json``, and shown in ``docs/benchmarks.md``.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor

import skbayes_sgld
from benchmarks import _machine
from benchmarks._data import wide
from benchmarks._tools import number
from benchmarks.text import make_documents
from skbayes_sgld import (
    SGLDGammaRegressor,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDPoissonRegressor,
)
from skbayes_sgld.diagnostics import effective_sample_size, potential_scale_reduction

RESULTS = Path(__file__).parent / "results" / "tables.json"
LIMIT = 180  # seconds of processor time
R_HAT = 1.05
_FEW = 5.0  # seconds; shorter fits are measured three times
_LOOKED_AT = 500  # parameters whose draws are judged

Sample = tuple[Any, np.ndarray]
Rng = np.random.Generator


# ---- tables --------------------------------------------------------------------------------------


def one_hot(rng: Rng, n: int, n_levels: int, power: float = 1.0) -> np.ndarray:
    """Levels but the first, whose frequencies are one over a power of their rank."""
    p = np.arange(1.0, n_levels + 1.0) ** -power
    level = rng.choice(n_levels, n, p=p / p.sum())
    return (level[:, None] == np.arange(1, n_levels)).astype(float)


def _text(n: int, d: int, counts: bool) -> Sample:
    X, y = make_documents(n, d)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    if not counts:
        return X, y
    rng = np.random.default_rng(1)
    effects = X @ (rng.standard_normal(d) * (rng.random(d) < 0.1))
    return X, rng.poisson(np.exp(0.7 * effects / effects.std()))


def wages(rng: Rng) -> Sample:
    """Counts that vary no more than Poisson ones, by four factors and three numbers."""
    n = 4360
    X = np.hstack([rng.standard_normal((n, 3)), *(one_hot(rng, n, k) for k in (12, 9, 7, 5))])
    return X, rng.poisson(np.exp(1.5 + 0.1 * X @ rng.standard_normal(X.shape[1])))


def visits(rng: Rng) -> Sample:
    """Counts, most of them 0, by numbers of which three have long tails."""
    n = 27_765
    X = np.hstack([rng.standard_normal((n, 8)), rng.lognormal(0.0, 1.0, (n, 3))])
    coef = rng.standard_normal(11) * np.repeat([0.2, 0.03], [8, 3])
    return X, rng.poisson(np.exp(-1.0 + X @ coef))


def prices(rng: Rng) -> Sample:
    """Positive numbers by four nearly collinear sizes with outlying rows, and three factors."""
    n = 53_940
    size = np.exp(0.6 * rng.standard_normal(n))
    sizes = size[:, None] ** [1.0, 0.34, 0.34, 0.33] * np.exp(0.01 * rng.standard_normal((n, 4)))
    sizes[rng.choice(n, 8, replace=False), 1:] *= 6.0
    factors = [one_hot(rng, n, k, 0.5) for k in (5, 7, 8)]
    X = np.hstack([sizes, rng.standard_normal((n, 2)), *factors])
    mean = np.exp(7.0 + 1.7 * np.log(size) + 0.1 * X[:, 4:] @ rng.standard_normal(X.shape[1] - 4))
    return X, mean * rng.gamma(8.0, 1.0 / 8.0, n)


def films(rng: Rng) -> Sample:
    """A class that one column nearly separates; two have long tails in the other class alone."""
    n = 58_788
    length = np.exp(rng.normal(4.3, 0.7, n))
    y = (0.25 * (45.0 - length) + rng.logistic(size=n) > 0).astype(int)
    votes = np.exp(np.where(y == 1, rng.normal(2.5, 1.0, n), rng.normal(4.0, 2.3, n)))
    shares = rng.dirichlet(np.full(11, 0.5), n)[:, :10] * 100.0
    flags = (rng.random((n, 10)) < rng.uniform(0.03, 0.4, 10)).astype(float)
    budget = np.where(y == 1, 0.0, rng.random(n) < 0.002) * rng.lognormal(3.0, 1.0, n)
    X = np.column_stack([length, votes, rng.uniform(1893, 2005, n), rng.normal(6, 1.5, n)])
    return np.hstack([X, shares, flags, budget[:, None]]), y


def jobs(rng: Rng) -> Sample:
    """Nearly separated classes, by numbers and flags."""
    n = 19_609
    flags = (rng.random((n, 10)) < rng.uniform(0.05, 0.5, 10)).astype(float)
    X = np.hstack([rng.standard_normal((n, 4)), rng.lognormal(0.0, 1.0, (n, 2)), flags])
    coef = rng.standard_normal(16) * np.r_[np.full(4, 4.0), 1.0, 1.0, np.full(10, 3.0)]
    eta = X @ coef
    return X, (eta - np.median(eta) + 0.5 * rng.logistic(size=n) > 0).astype(int)


def leagues(rng: Rng) -> Sample:
    """Seven classes of very unequal sizes, which one of sixty teams nearly decides."""
    n, n_teams = 21_634, 61
    teams = one_hot(rng, n, n_teams, 0.7)
    counts = rng.lognormal(2.5, 1.2, (n, 1)) * rng.gamma(2.0, 0.5, (n, 16))
    year = rng.uniform(1871, 2007, (n, 1))
    of_team = rng.choice(7, n_teams, p=[0.4, 0.4, 0.08, 0.05, 0.03, 0.02, 0.02])
    level = np.where(teams.any(axis=1), teams.argmax(axis=1) + 1, 0)
    moved = rng.random(n) < 0.03
    y = np.where(moved, rng.choice(7, n, p=np.full(7, 1 / 7)), of_team[level])
    return np.hstack([year, counts, teams]), y


def cars(rng: Rng) -> Sample:
    """Few rows of seven classes, by a factor of 38 levels and others."""
    n = 234
    factors = [one_hot(rng, n, k, 0.5) for k in (39, 15, 8, 5)]
    X = np.hstack([rng.standard_normal((n, 3)), *factors])[:, :64]
    u = X @ rng.standard_normal((X.shape[1], 7)) * 1.5 + rng.gumbel(size=(n, 7))
    return X[:, np.ptp(X, axis=0) > 0], u.argmax(axis=1)


def survey(rng: Rng) -> Sample:
    """Few rows of two classes, by four factors of many levels."""
    n = 304
    factors = [one_hot(rng, n, k, 0.3) for k in (110, 68, 36, 20)]
    X = np.hstack([rng.standard_normal((n, 8)), *factors])
    X = X[:, np.ptp(X, axis=0) > 0]
    return X, (X @ rng.standard_normal(X.shape[1]) + rng.logistic(size=n) > 0).astype(int)


# ---- cells ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A table, our estimator and its peer, and the bound.

    Attributes
    ----------
    most : float
        In times of the peer if ``relative``, else in seconds.
    """

    make: Callable[[], Sample]
    ours: type
    peer: Any
    most: float
    relative: bool = False

    @property
    def bound(self) -> str:
        """Bound as it is printed."""
        return f"{self.most:g} {'times' if self.relative else 's'}"


_LOGISTIC = LogisticRegression(max_iter=1000)


def _of_rows(n: int, d: int, most: float, relative: bool = False) -> Cell:
    return Cell(lambda: wide(n, d), SGLDLogisticRegression, _LOGISTIC, most, relative)


def _of_words(n: int, d: int, counts: bool) -> Cell:
    ours = SGLDPoissonRegressor if counts else SGLDLogisticRegression
    peer = PoissonRegressor(alpha=1.0 / n) if counts else LogisticRegression(solver="liblinear")
    return Cell(lambda: _text(n, d, counts), ours, peer, 20.0)


def _of_table(make: Callable[[Rng], Sample], ours: type, peer: Any, most: float) -> Cell:
    return Cell(lambda: make(np.random.default_rng(0)), ours, peer, most)


CELLS = {
    "wide 20,000 x 200": _of_rows(20_000, 200, 5.0, relative=True),
    "wide 20,000 x 600": _of_rows(20_000, 600, 1.5),
    "wide 5,000 x 1,000": _of_rows(5_000, 1_000, 2.5),
    "wide 1,000 x 2,000": _of_rows(1_000, 2_000, 3.0),
    "wide 5,000 x 3,000": _of_rows(5_000, 3_000, 20.0),
    "text 2,000 x 5,000": _of_words(2_000, 5_000, counts=False),
    "text 5,000 x 12,500": _of_words(5_000, 12_500, counts=False),
    "text counts 2,000 x 5,000": _of_words(2_000, 5_000, counts=True),
    "text counts 5,000 x 12,500": _of_words(5_000, 12_500, counts=True),
    "wages": _of_table(wages, SGLDNegativeBinomialRegressor, PoissonRegressor(), 1.0),
    "visits": _of_table(visits, SGLDNegativeBinomialRegressor, PoissonRegressor(), 1.0),
    "prices": _of_table(prices, SGLDGammaRegressor, GammaRegressor(max_iter=1000), 1.0),
    "films": _of_table(films, SGLDLogisticRegression, _LOGISTIC, 1.0),
    "jobs": _of_table(jobs, SGLDLogisticRegression, _LOGISTIC, 1.0),
    "leagues": _of_table(leagues, SGLDLogisticRegression, _LOGISTIC, 3.0),
    "cars": _of_table(cars, SGLDLogisticRegression, _LOGISTIC, 3.0),
    "survey": _of_table(survey, SGLDLogisticRegression, _LOGISTIC, 3.0),
}


class _Stopped(Exception):  # noqa: N818  (a fit that takes too long is no error)
    """The limit of processor time was reached."""


def _stop(*_: Any) -> None:
    raise _Stopped


def measure(name: str) -> dict[str, Any]:
    """Seconds of both sides, and the draws' figures; the fit may be stopped."""
    cell = CELLS[name]
    X, y = cell.make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the peer is timed, converged or not
        begin = process_time()
        cell.peer.fit(X, y)
        theirs = process_time() - begin
    about = {"n": X.shape[0], "d": X.shape[1], "peer": type(cell.peer).__name__, "theirs": theirs}
    about["classes"] = len(np.unique(y)) if cell.ours is SGLDLogisticRegression else 0
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    begin = process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = cell.ours(random_state=0).fit(X, y)
        except _Stopped:
            return about | {"stopped": True}
    ours = process_time() - begin
    signal.setitimer(signal.ITIMER_PROF, 0)
    draws = model.result_.draws.values
    last = draws.shape[2] - 1
    some = draws[..., np.unique(np.linspace(0, last, _LOOKED_AT).astype(int))]
    r_hat = float(potential_scale_reduction(some).max())
    return about | {
        "ours": ours,
        "ess": float(effective_sample_size(some).min()),
        "r_hat": r_hat,
        "sampler": str(model.result_.choices["sampler"].value),
        "said": [str(each.message)[:200] for each in caught],
    }


def lines(kept: dict[str, Any]) -> list[list[str]]:
    """Cells of the table, a line for each fit."""
    rows = []
    for name, found in kept.items():
        classes = f", {found['classes']} classes" if found["classes"] > 2 else ""
        rows.append([name, f"{found['n']:,} x {found['d']:,}{classes}"])
        peer = f"{found['peer']}, {number(found['theirs'])} s"
        if found.get("stopped"):
            rows[-1] += [f"over {LIMIT} s", peer, "", "", "", CELLS[name].bound, "**no**"]
            continue
        times = number(found["ours"] / found["theirs"])
        quality = [f"{found['ess']:,.0f}", f"{found['r_hat']:.3f}"]
        met = "yes" if _met(name, found) else "**no**"
        rows[-1] += [f"{number(found['ours'])} s", peer, times, *quality, CELLS[name].bound, met]
    return rows


def _on_one() -> None:
    if hasattr(os, "sched_setaffinity"):  # on Linux
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _alone(name: str) -> dict[str, Any]:
    """What a process of its own measures."""
    command = [sys.executable, "-m", "benchmarks.tables", "--alone", name]
    # on one core: two threads of BLAS wait for each other, which counts as processor time
    done = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=_on_one)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _measured(name: str) -> dict[str, Any]:
    """Cell with the least seconds of both sides: of three processes where they are few."""
    runs = [_alone(name)]
    if not runs[0].get("stopped") and runs[0]["ours"] < _FEW:
        runs += [_alone(name), _alone(name)]
        for side in ("ours", "theirs"):
            runs[0][side] = min(each[side] for each in runs)
    return runs[0]


def _met(name: str, found: dict[str, Any]) -> bool:
    """Whether a fit ended within its bound, with draws that are mixed."""
    if found.get("stopped"):
        return False
    cell = CELLS[name]
    value = found["ours"] / (found["theirs"] if cell.relative else 1.0)
    return bool(value <= cell.most and found["r_hat"] < R_HAT)


HEAD = "fit", "rows x columns", "ours", "beside", "times", "least ESS", "R-hat", "bound", "met"


def main() -> None:
    """Measure the chosen cells, each in its own process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"beginnings of {', '.join(CELLS)}")
    parser.add_argument("--dry", action="store_true", help="print, and keep nothing")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        print(json.dumps(measure(options.alone)))
        return
    compileall.compile_dir(str(Path(skbayes_sgld.__file__).parent), quiet=2)
    for name in CELLS:
        if options.names and not name.startswith(tuple(options.names)):
            continue
        found = _measured(name)
        print(" | ".join(lines({name: found})[0]), *found.get("said", ()), sep="\n    ", flush=True)
        if not options.dry:
            kept = json.loads(RESULTS.read_text())["cells"] if RESULTS.exists() else {}
            kept[name] = found
            ordered = {each: kept[each] for each in CELLS if each in kept}
            both = {"machine": _machine.describe(), "cells": ordered}
            RESULTS.write_text(json.dumps(both, indent=1) + "\n")


if __name__ == "__main__":
    main()
