"""Data of mixed models whose posteriors are known: simulated rows, and two published sets."""

from pathlib import Path

import numpy as np
import pandas as pd

_DATA = Path(__file__).parents[1] / "mixed" / "data"
_SLOPES = np.array([[0.64, 0.16], [0.16, 0.16]])  # covariance of intercepts and slopes


def _simulated(seed, family, terms, n, beta):
    """X with a column of ones first, labels ``(n,)`` of each term with its number of effects, y."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, len(beta) - 1))])
    eta, labels = np.zeros(n), []
    for codes, cov in terms(rng):
        cov = np.atleast_2d(cov)
        effects = rng.multivariate_normal(np.zeros(len(cov)), cov, size=int(codes.max()) + 1)
        eta += np.sum(X[:, : len(cov)] * effects[codes], axis=1)
        labels.append((codes, len(cov)))
    eta += X @ np.asarray(beta, dtype=float)
    if family == "normal":
        y = eta + rng.standard_normal(n)
    elif family == "binary":
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    elif family == "counts":
        y = rng.poisson(np.exp(eta))
    else:
        y = np.searchsorted([-1.0, 0.3, 1.5], eta + rng.logistic(size=n))
    return X, labels, y


def _geometric(rng, n_labels, n):
    """Labels of very different sizes."""
    weights = np.geomspace(1, 100, n_labels)
    sizes = np.maximum(1, np.round(weights / weights.sum() * (n - n_labels))).astype(int)
    codes = np.repeat(np.arange(n_labels), sizes)
    codes = np.concatenate([codes, np.full(max(n - len(codes), 0), n_labels - 1)])[:n]
    return rng.permutation(codes)


def _nested(rng):
    inner = np.arange(432) % 72
    return [(inner, 0.25), (inner // 6, 0.49)]


def _crossed(n, first, second):
    return lambda rng: [(rng.integers(0, 80, n), first), (rng.integers(0, 50, n), second)]


_ONE_ROW = np.r_[np.arange(40), np.repeat(np.arange(40, 50), 5)]
_FEW_ROWS = np.r_[np.arange(100), np.arange(50), np.arange(30)]
# seed, family, terms, rows, coefficients with the intercept first
_SIMULATED = {
    "normal_balanced": (1, "normal", lambda r: [(np.arange(300) % 20, 0.64)], 300, [1, 0.5, -0.3]),
    "normal_unbalanced": (
        *(2, "normal", lambda r: [(_geometric(r, 15, 400), _SLOPES)], 400),
        [1, 0.5, -0.3],
    ),
    "normal_near_zero": (3, "normal", lambda r: [(np.arange(150) % 30, 0.0)], 150, [1, 0.5]),
    "normal_one_row": (4, "normal", lambda r: [(_ONE_ROW, 0.64)], 90, [1, 0.5]),
    "normal_every_row": (5, "normal", lambda r: [(np.arange(60), 0.64)], 60, [1, 0.5]),
    "normal_two_groups": (6, "normal", lambda r: [(np.arange(60) % 2, 0.64)], 60, [1, 0.5]),
    "normal_crossed": (7, "normal", _crossed(800, 0.49, 0.16), 800, [1, 0.5]),
    "normal_nested": (8, "normal", _nested, 432, [1, 0.5]),
    "binary": (11, "binary", lambda r: [(np.arange(300) % 20, 0.64)], 300, [0.3, 0.8, -0.5]),
    "binary_unbalanced": (12, "binary", lambda r: [(_geometric(r, 25, 500), 1.0)], 500, [0.3, 0.8]),
    "binary_near_zero": (13, "binary", lambda r: [(np.arange(300) % 30, 0.0)], 300, [0.3, 0.8]),
    "binary_one_row": (14, "binary", lambda r: [(_FEW_ROWS, 1.0)], 180, [0.3, 0.8]),
    "binary_slopes": (15, "binary", lambda r: [(np.arange(900) % 30, _SLOPES)], 900, [0.3, 0.8]),
    "counts": (16, "counts", lambda r: [(np.arange(300) % 20, 0.36)], 300, [0.5, 0.3, -0.2]),
    "counts_slopes": (
        *(17, "counts", lambda r: [(_geometric(r, 20, 400), 0.5 * _SLOPES)], 400),
        [0.5, 0.3],
    ),
    "ordered": (18, "ordered", lambda r: [(np.arange(400) % 25, 0.64)], 400, [0.0, 0.8, -0.5]),
    "binary_crossed": (19, "binary", _crossed(1600, 0.64, 0.36), 1600, [0.3, 0.8]),
    "counts_nested": (20, "counts", _nested, 432, [0.5, 0.3]),
}
_PUBLISHED = {
    "sleepstudy": ("Reaction", {"Subject": ["intercept", "Days"]}, 125.0),
    "penicillin": ("diameter", {"plate": "intercept", "sample": "intercept"}, 5.0),
}
NAMES = [*_SIMULATED, *_PUBLISHED]


def mixed_case(name):
    """Frame, y, ``group_effects``, family, scale of coefficients and scale of the group prior."""
    if name in _PUBLISHED:
        target, terms, scale = _PUBLISHED[name]
        frame = pd.read_csv(_DATA / f"{name}.csv")
        return frame.drop(columns=target), frame[target], terms, "normal", 1000.0, scale
    family = _SIMULATED[name][1]
    X, labels, y = _simulated(*_SIMULATED[name])
    columns = [f"x{k}" for k in range(X.shape[1] - 1)]
    frame, terms = pd.DataFrame(X[:, 1:], columns=columns), {}
    for t, (codes, n_effects) in enumerate(labels):
        frame[f"g{t}"] = codes.astype(str)
        terms[f"g{t}"] = ["intercept", *columns[: n_effects - 1]]
    return frame, y, terms, family, 10.0 if family == "normal" else 2.5, 2.5
