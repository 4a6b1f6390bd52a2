"""The data of the cases: real data that come with packages, and made ones of a stated kind."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn import datasets

from skbayes_sgld.datasets import load_nba_rookies


def standardised(X):
    X = np.asarray(X, dtype=float)
    return (X - X.mean(0)) / X.std(0)


# ---- real ------------------------------------------------------------------------------------


@cache
def diabetes(scaled=False):
    X, y = datasets.load_diabetes(return_X_y=True)
    return (standardised(X) if scaled else X), y


@cache
def rookies():
    X, y = load_nba_rookies(return_X_y=True, as_frame=False)
    return standardised(np.nan_to_num(X)), y


@cache
def breast_cancer():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return standardised(X), y


@cache
def wine():
    X, y = datasets.load_wine(return_X_y=True)
    return standardised(X), y


@cache
def iris():
    return datasets.load_iris(return_X_y=True)


@cache
def digits(*pair):
    X, y = datasets.load_digits(return_X_y=True)
    rows = np.isin(y, pair) if pair else slice(None)
    return X[rows] / 16, y[rows]


def _statsmodels(name):
    api = pytest.importorskip("statsmodels.api", reason="the data, of the extra 'test'")
    loaded = getattr(api.datasets, name).load()
    return np.asarray(loaded.exog, dtype=float), np.asarray(loaded.endog, dtype=float)


@cache
def longley():
    return _statsmodels("longley")


@cache
def stackloss():
    return _statsmodels("stackloss")


@cache
def engel():
    X, y = _statsmodels("engel")
    return X.reshape(-1, 1), y


@cache
def ccard():
    return _statsmodels("ccard")


@cache
def spector():
    return _statsmodels("spector")


@cache
def affairs():
    X, y = _statsmodels("fair")
    return X, (y > 0).astype(int)


@cache
def star98():
    """Pupils above and below the median, by district: two rows each, with counts."""
    X, counts = _statsmodels("star98")
    X = standardised(X)
    y = np.repeat([1, 0], len(X))
    return np.vstack([X, X]), y, np.concatenate([counts[:, 0], counts[:, 1]])


# ---- made ------------------------------------------------------------------------------------


def columns(n, d, kind="normal", seed=0):
    """A design of a kind."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if kind == "collinear":  # a correlation matrix of condition number 1e8
        U, _, Vt = np.linalg.svd(X - X.mean(0), full_matrices=False)
        X = U * np.geomspace(1, 1e-4, d) @ Vt * np.sqrt(n)
        X /= X.std(0)
    elif kind == "copies":
        X[:, 1::2] = X[:, 0::2]
    elif kind == "units":
        X *= np.geomspace(1e-6, 1e6, d)
    elif kind == "offset":
        X += 1000.0
    elif kind == "leverage":
        X[:: max(1, n // 5)] *= 100.0
    elif kind == "heavy":
        X = rng.standard_t(1.5, (n, d))
    elif kind == "binary":
        X = (X > 0.3).astype(float)
    elif kind == "correlated":
        X = X + 2.0 * rng.standard_normal((n, 1))
    return X


def linear(n, d, kind="normal", noise=1.0, seed=0, unit=None, y_unit=1.0):
    """A linear model's data; ``unit`` are the sizes of the coefficients."""
    X = columns(n, d, kind, seed)
    rng = np.random.default_rng(seed + 1000)
    beta = rng.standard_normal(d) * (1.0 if unit is None else unit)
    return X, y_unit * (X @ beta + noise * rng.standard_normal(n))


def logistic(n, d, kind="normal", signal=1.0, intercept=0.0, seed=0, unit=None):
    X = columns(n, d, kind, seed)
    rng = np.random.default_rng(seed + 1000)
    beta = signal * rng.standard_normal(d) / np.sqrt(d) * (1.0 if unit is None else unit)
    eta = intercept + (X - X.mean(0)) @ beta
    return X, (rng.random(n) < expit(eta)).astype(int)


def classes(n, d, K, kind="normal", signal=1.0, seed=0, rare=0.0):
    """A softmax model's data; ``rare`` is taken from the last class's intercept."""
    X = columns(n, d, kind, seed)
    rng = np.random.default_rng(seed + 1000)
    level = np.zeros(K)
    level[-1] = -rare
    p = softmax(X @ (signal * rng.standard_normal((d, K))) + level, axis=1)
    return X, (rng.random((n, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(1)


def weighted(data, kind, seed=0):
    rng = np.random.default_rng(seed)
    n = len(data[1])
    weight = rng.integers(0, 5, n) if kind == "integer" else rng.gamma(2.0, 0.5, n)
    return (*data, weight.astype(float))


def single(data):
    return (data[0].astype(np.float32), *data[1:])
