"""The data of the benchmarks: real ones, prepared as in the reference suite, and made ones."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax
from sklearn import datasets

from skbayes_sgld.datasets import load_nba_rookies

Sample = tuple[np.ndarray, np.ndarray]

# Families whose predictions are measured: their estimator and its settings.
_T = {"noise_distribution": "student_t"}
_LOG_LINEAR = {"noise_model": "log_linear"}
FAMILIES = {
    "normal noise": ("SGLDLinearRegression", {}),
    "log-linear noise": ("SGLDLinearRegression", _LOG_LINEAR),
    "Student-t noise": ("SGLDLinearRegression", _T),
    "Student-t, log-linear noise": ("SGLDLinearRegression", _T | _LOG_LINEAR),
    "Poisson": ("SGLDPoissonRegressor", {}),
    "negative binomial": ("SGLDNegativeBinomialRegressor", {}),
    "gamma": ("SGLDGammaRegressor", {}),
    "beta-binomial": ("SGLDBetaBinomialRegressor", {}),
    "two classes": ("SGLDLogisticRegression", {}),
    "three classes": ("SGLDLogisticRegression", {}),
    "four ordered classes": ("SGLDOrdinalClassifier", {}),
}


def standardised(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def rookies() -> Sample:
    """19 standardised columns, no attempt being 0 per cent, and the labels."""
    X, y = load_nba_rookies(return_X_y=True, as_frame=False)
    return standardised(np.nan_to_num(X)), y


def breast_cancer() -> Sample:
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return standardised(X), y


def wine() -> Sample:
    X, y = datasets.load_wine(return_X_y=True)
    return standardised(X), y


def iris() -> Sample:
    X, y = datasets.load_iris(return_X_y=True)
    return X, y


def diabetes() -> Sample:
    X, y = datasets.load_diabetes(return_X_y=True)
    return standardised(X), y


def digits() -> Sample:
    """The images of 0 to 4: 64 columns from 0 to 1, some of them constant."""
    X, y = datasets.load_digits(return_X_y=True)
    return X[y < 5] / 16, y[y < 5]


def linear(n: int, d: int, seed: int = 0) -> Sample:
    """Standard normal columns, and a target of which they explain half."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(n)


def of_family(name: str, n: int, d: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Standard normal columns, a target of a family, and its arguments by row."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    eta = 0.7 * X @ rng.standard_normal(d) / np.sqrt(d)
    noise = rng.standard_t(4, n) if "Student" in name else rng.standard_normal(n)
    latent = eta + rng.logistic(size=n)
    made = {
        "Poisson": lambda: rng.poisson(np.exp(eta)),
        "negative binomial": lambda: rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, n)),
        "gamma": lambda: rng.gamma(2.0, np.exp(eta) / 2.0),
        "beta-binomial": lambda: rng.binomial(20, rng.beta(6.0 * expit(eta), 6.0 * expit(-eta))),
        "two classes": lambda: latent > 0.0,
        "three classes": lambda: np.digitize(latent, [-1.0, 1.0]),
        "four ordered classes": lambda: np.digitize(latent, [-1.0, 0.0, 1.0]),
    }
    scale = np.exp(0.3 * X[:, 0]) if "log-linear" in name else 1.0
    y = made[name]() if name in made else eta + scale * noise
    return X, y, {"n_trials": np.full(n, 20)} if name == "beta-binomial" else {}


def logistic(n: int, d: int, seed: int = 0) -> Sample:
    """Standard normal columns, and labels that they explain in part."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (rng.random(n) < expit(X @ rng.standard_normal(d) / np.sqrt(d))).astype(int)


def classes(n: int, d: int, n_classes: int, seed: int = 0) -> Sample:
    """Data of several classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    p = softmax(X @ rng.standard_normal((d, n_classes)) / np.sqrt(d), axis=1)
    return X, (rng.random((n, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)


def wide(n: int, d: int, seed: int = 0) -> Sample:
    """Standard normal columns, whose effects add up to a variance of 4, as in `benchmarks.wide`."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    effects = X @ rng.standard_normal(d) * 2 / np.sqrt(d)
    return X, (effects + rng.logistic(size=n) > 0).astype(int)


def autoregressive(n: int, d: int, seed: int = 0) -> Sample:
    """The synthetic rows of Coullon, South and Nemeth (2023): no intercept, strong effects.

    Coefficients are normal with variance 10; the rows are standard normal ones times the Cholesky
    factor of the matrix ``u ** |i - j|``, where ``u`` is uniform between -0.4 and 0.4.
    """
    rng = np.random.default_rng(seed)
    effects = rng.normal(0.0, np.sqrt(10.0), d)
    lag = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    X = rng.standard_normal((n, d)) @ np.linalg.cholesky(rng.uniform(-0.4, 0.4) ** lag)
    return X, (rng.random(n) < expit(X @ effects)).astype(int)
