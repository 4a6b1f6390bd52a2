"""Searches, predictions, the import, a network, a mixture of modes, and published work."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import _data, _laplace
from benchmarks._tools import Figure, compare, interleave, row, seconds, smallest_ess
from benchmarks._worker import ROOT, START, checkout, import_seconds, workers
from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDMLPRegressor, sample
from skbayes_sgld.datasets import make_tied_means_mixture
from skbayes_sgld.own_models import TiedGaussianMixture
from skbayes_sgld.priors import Normal

_REFERENCE = Path(__file__).parents[1] / "cached" / "autoregressive.json"
_BLOCK = 256  # rows of a bare prediction: four megabytes of float32, which stay in cache


@row("search", rounds=3)
def search(rounds: int, quick: bool) -> Iterator[Figure]:
    """Search of 60 NBA fits in 2 processes: the same at the commit BENCH_BASE."""
    base = os.environ.get("BENCH_BASE", START)
    tasks = ["search: 60 fits, 2 processes", "search: 60 fits, 2 processes that run already"]
    if quick:
        tasks = ["search: 4 fits"]
    try:
        with checkout(base) as folder, workers(ROOT, folder) as both:
            taken = [[[each.run(t) for each in both] for t in tasks] for _ in range(rounds)]
    except LookupError as error:
        sys.exit(f"{error}; name a commit or a folder that is there: --base")
    name = base if len(base) <= 12 and not Path(base).is_dir() else "another checkout"
    for task, each, bound in zip(tasks, np.swapaxes(taken, 0, 1), (0.2, None), strict=False):
        work = f"GridSearchCV, NBA, {task.removeprefix('search: ')}"
        yield compare(work, f"at {name}", *each.T, at_most=bound)


@row("predict", rounds=3)
def predict(rounds: int, quick: bool) -> Iterator[Figure]:
    """Predictions of 100,000 rows from 4,000 draws: one float32 product and exp, on all cores."""
    n, d = (10_000 if quick else 100_000), 20
    X, y = _data.logistic(n, d)
    model = SGLDLogisticRegression(random_state=0).fit(X[:2000], y[:2000])
    line = SGLDLinearRegression(random_state=0).fit(X[:2000], _data.linear(2000, d)[1])
    design = X.astype(np.float32)
    draws = np.ascontiguousarray(model.posterior_.flat[:, :d].T, dtype=np.float32)

    def block(start: int) -> None:
        product = design[start : start + _BLOCK] @ draws
        np.exp(product, out=product)

    def bare() -> None:
        # a thread a core over blocks of rows: neither the product nor exp is then bound by memory
        with threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(block, range(0, n, _BLOCK)))

    predictions = {
        "predict_proba": (model, 2.0),
        "predict_interval": (line, 4.0),
        "predict_proba_interval": (model, 6.0),
    }
    tasks = {
        name: lambda name=name, fitted=fitted: getattr(fitted, name)(X)
        for name, (fitted, _) in predictions.items()
    }
    taken = interleave(tasks | {"bare": bare}, rounds)
    work = f"{n:,} x {d}, {draws.shape[1]:,} draws"
    for name, (_, bound) in predictions.items():
        peer = "one float32 product and exp"
        yield compare(f"{name}, {work}", peer, taken[name], taken["bare"], at_most=bound)


@row("import", rounds=7)
def import_time(rounds: int, quick: bool) -> Iterator[Figure]:
    """Import of the package in a fresh process: sklearn.linear_model."""
    pairs = [
        (import_seconds("skbayes_sgld"), import_seconds("sklearn.linear_model"))
        for _ in range(rounds + 1)
    ]
    yield compare(
        "import skbayes_sgld", "import sklearn.linear_model", *np.transpose(pairs[1:]), at_most=1.2
    )


@row("coullon", rounds=3)
def coullon(rounds: int, quick: bool) -> Iterator[Figure]:
    """Synthetic logistic of Coullon et al., 800,000 rows of 10 columns: published errors.

    The error is that of their code: the norm of the difference of the posterior sds from the
    reference's, over the norm of those. Their reference are 20,000 draws of NUTS (ESS 6,759), ours
    the Laplace approximation corrected by importance sampling, which is the more precise one.
    """
    n = 80_000 if quick else 800_000
    X, y = _data.autoregressive(n, 10)
    kept = json.loads(_REFERENCE.read_text()) if _REFERENCE.exists() and not quick else None
    if kept is None or not np.isclose(kept["fingerprint"], _laplace.fingerprint(X, y)):
        kept = _laplace.reference(X, y, prior_sd=np.sqrt(10.0))
        if not quick:
            _REFERENCE.parent.mkdir(exist_ok=True)
            _REFERENCE.write_text(json.dumps(kept, indent=1) + "\n")
    sd = np.array(kept["sd"])
    errors, times = [], []
    for seed in range(rounds):
        model = SGLDLogisticRegression(
            prior=Normal(scale=np.sqrt(10.0)),
            fit_intercept=False,
            n_draws=12_000,
            random_state=seed,
        )
        start = perf_counter()
        model.fit(X, y)
        times.append(perf_counter() - start)
        found = model.posterior_.flat[:, :10].std(axis=0)
        errors.append(float(np.linalg.norm(found - sd) / np.linalg.norm(sd)))
    work = f"Coullon et al., n={n:,} d=10"
    note = (
        f"48,000 draws; the reference's own error is {kept['error']:.1e}; published in 10 s, "
        "tuning apart: SGLD-CV 0.0515, SGNHT-CV 0.0082"
    )
    error, spread = float(np.median(errors)), (min(errors), max(errors))
    yield Figure(
        f"{work}, error of the sds", "SGNHT-CV, published", "", error, 0.0082, error, spread,
        rounds, at_most=0.005, what="error", note=note,
    )  # fmt: skip
    taken, spread = float(np.median(times)), (min(times), max(times))
    yield Figure(
        f"{work}, seconds all told", "10 s, published", "s", taken, 10.0, taken, spread,
        rounds, at_most=10.0, what="s",
    )  # fmt: skip


def _within(work: str, unit: str, values: list[float], **bound: float) -> Figure:
    """A figure with a bound of its own, beside nothing."""
    middle, spread = float(np.median(values)), (min(values), max(values))
    return Figure(work, "", unit, middle, None, middle, spread, len(values), what=unit, **bound)


@row("network", rounds=3)
def network(rounds: int, quick: bool) -> Iterator[Figure]:
    """Network, diabetes, default fit: its seconds, and the smallest ESS of a prediction."""
    X, y = _data.diabetes()
    taken, ess = [], []
    for seed in range(rounds):
        start = perf_counter()
        model = SGLDMLPRegressor(random_state=seed).fit(X, y)
        taken.append(perf_counter() - start)
        draws = model.posterior_mean_draws(X).T.reshape(model.n_chains, -1, len(X))
        ess.append(smallest_ess(draws))
    yield _within("network, diabetes, default fit, seconds", "s", taken, at_most=2.0)
    yield _within("network, diabetes, smallest ESS of a prediction", "ESS", ess, at_least=100.0)


@row("tied-mixture", rounds=3)
def tied_mixture(rounds: int, quick: bool) -> Iterator[Figure]:
    """Mixture of two modes, default settings: seconds."""
    posterior = TiedGaussianMixture(make_tied_means_mixture(random_state=0)[0])
    taken = [seconds(partial(sample, posterior, random_state=seed)) for seed in range(rounds)]
    yield _within("tied mixture, 1,000 rows, default, seconds", "s", taken, at_most=5.0)
