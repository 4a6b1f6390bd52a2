"""Whole fits, beside the point estimates of scikit-learn and beside bare loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge, SGDClassifier

from benchmarks import _data, rare
from benchmarks._tools import Figure, compare, interleave, row
from skbayes_sgld import SGDMAPClassifier, SGLDLinearRegression, SGLDLogisticRegression


def _beside(
    work: str, ours: Any, peers: dict[Any, float], X: np.ndarray, y: np.ndarray, rounds: int
) -> Iterator[Figure]:
    """Figures of the seconds of one fit beside those of its peers, each with its bound."""
    tasks = {"ours": lambda: ours.fit(X, y)}
    tasks |= {repr(peer): lambda peer=peer: peer.fit(X, y) for peer in peers}
    taken = interleave(tasks, rounds)
    for peer, bound in peers.items():
        yield compare(work, f"{peer!r}.fit", taken["ours"], taken[repr(peer)], at_most=bound)


def _size(n: int, quick: bool) -> int:
    return n // 10 if quick else n


@row("logistic-1e6", rounds=3)
def logistic_million(rounds: int, quick: bool) -> Iterator[Figure]:
    """Logistic, a million rows of 50 columns: LogisticRegression."""
    n = _size(1_000_000, quick)
    ours, peers = SGLDLogisticRegression(random_state=0), {LogisticRegression(): 1.0}
    return _beside(f"logistic n={n:,} d=50", ours, peers, *_data.logistic(n, 50), rounds)


@row("logistic-1e5", rounds=5)
def logistic(rounds: int, quick: bool) -> Iterator[Figure]:
    """Logistic, 100,000 rows of 50 columns: LogisticRegression."""
    n = _size(100_000, quick)
    ours, peers = SGLDLogisticRegression(random_state=0), {LogisticRegression(): 3.0}
    return _beside(f"logistic n={n:,} d=50", ours, peers, *_data.logistic(n, 50), rounds)


@row("multinomial-1e5", rounds=5)
def multinomial(rounds: int, quick: bool) -> Iterator[Figure]:
    """Multinomial, 100,000 rows of 20 columns, 5 classes: LogisticRegression."""
    n = _size(100_000, quick)
    ours, peers = SGLDLogisticRegression(random_state=0), {LogisticRegression(): 2.0}
    work = f"multinomial n={n:,} d=20 K=5"
    return _beside(work, ours, peers, *_data.classes(n, 20, 5), rounds)


@row("logistic-1e4", rounds=15)
def logistic_ten_thousand(rounds: int, quick: bool) -> Iterator[Figure]:
    """Logistic, 10,000 rows of 20 columns: LogisticRegression."""
    ours, peers = SGLDLogisticRegression(random_state=0), {LogisticRegression(): 2.5}
    return _beside("logistic n=10,000 d=20", ours, peers, *_data.logistic(10_000, 20), rounds)


@row("linear-1e3", rounds=15)
def linear_thousand(rounds: int, quick: bool) -> Iterator[Figure]:
    """Linear, 1,000 rows of 10 columns: BayesianRidge."""
    ours, peers = SGLDLinearRegression(random_state=0), {BayesianRidge(): 5.0}
    return _beside("linear n=1,000 d=10", ours, peers, *_data.linear(1000, 10), rounds)


@row("linear-1e6", rounds=5)
def linear_million(rounds: int, quick: bool) -> Iterator[Figure]:
    """Linear, a million rows of 50 columns: BayesianRidge and Ridge."""
    n = _size(1_000_000, quick)
    ours, peers = SGLDLinearRegression(random_state=0), {BayesianRidge(): 0.25, Ridge(): 2.0}
    return _beside(f"linear n={n:,} d=50", ours, peers, *_data.linear(n, 50), rounds)


@row("rare", rounds=3)
def rare_categories(rounds: int, quick: bool) -> Iterator[Figure]:
    """Categories of 1, 3 and 10 of 40,000 rows: the same fit without them."""
    n = _size(40_000, quick)
    data = rare.dummies(np.random.default_rng(0), n)
    for name in ("Poisson", "negative binomial", "gamma"):
        estimator, draw = rare.MODELS[name]
        y, _ = draw(np.random.default_rng(1), data.eta)
        ours = estimator(random_state=0)
        tasks = {
            "with": lambda ours=ours, y=y: ours.fit(data.X, y),
            "without": lambda ours=ours, y=y: ours.fit(data.X[:, data.columns], y),
        }
        taken = interleave(tasks, rounds)
        work = f"{name} n={n:,} d=33, three rare categories"
        yield compare(work, "the same without", taken["with"], taken["without"], at_most=3.0)


@row("diabetes", rounds=15)
def diabetes(rounds: int, quick: bool) -> Iterator[Figure]:
    """Diabetes, linear default fit: 2,000 bare products of d x d and their noise."""
    X, y = _data.diabetes()
    n_params = X.shape[1] + 2
    matrix, theta = np.eye(n_params) * 0.5, np.ones((4, n_params))

    def bare() -> None:
        rng, state = np.random.default_rng(0), theta
        for _ in range(2000):
            state = state @ matrix + rng.standard_normal(state.shape)

    ours = SGLDLinearRegression(random_state=0)
    taken = interleave({"ours": lambda: ours.fit(X, y), "bare": bare}, rounds)
    peer = "2,000 bare d x d products with noise, 4 chains"
    yield compare("linear n=442 d=10, seconds", peer, taken["ours"], taken["bare"], at_most=2)


@row("map", rounds=5)
def map_classifier(rounds: int, quick: bool) -> Iterator[Figure]:
    """Stochastic gradient descent, 200,000 rows of 30 columns: SGDClassifier."""
    n = _size(200_000, quick)
    ours = SGDMAPClassifier(random_state=0)
    peers = {SGDClassifier(loss="log_loss", random_state=0): 1.5}
    return _beside(f"SGDMAPClassifier n={n:,} d=30", ours, peers, *_data.logistic(n, 30), rounds)
