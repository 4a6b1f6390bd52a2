"""Posterior modes of twelve problems by other code, and how far a fit is from them."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import softmax
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_classification,
    make_regression,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGDMAPClassifier, SGDMAPRegressor
from skbayes_sgld.datasets import load_nba_rookies, make_correlated_pair
from tests.references.cases import automatic_scale

DATA = ("nba", "diabetes", "lecture")
TASKS = [(model, data) for model in (SGDMAPRegressor, SGDMAPClassifier) for data in DATA]
TWELVE = [
    *TASKS,
    (SGDMAPRegressor, "little noise"),
    (SGDMAPRegressor, "raw units"),
    (SGDMAPClassifier, "breast cancer"),
    (SGDMAPClassifier, "iris"),
    (SGDMAPClassifier, "wine"),
    (SGDMAPClassifier, "200,000 rows"),
]


@cache
def task(model, data):
    """X and y: a data set, its target in two halves for the classifier."""
    if data == "nba":
        X, y = load_nba_rookies(return_X_y=True, as_frame=False)
        return StandardScaler().fit_transform(np.nan_to_num(X)), y.astype(float)
    if data in LOADERS:
        return LOADERS[data]()
    X, y = HALVED[data]()
    return X, (y > np.median(y)).astype(float) if model is SGDMAPClassifier else y


def raw_units():
    """Columns and target of units that are many orders apart, with offsets."""
    X, y = make_regression(2000, 8, n_informative=8, noise=20.0, random_state=0)
    return (X + 3.0) * 10.0 ** np.linspace(-6, 6, 8), 1e4 * y


def many_rows():
    """As many rows as a stochastic gradient is for."""
    X, y = make_classification(200_000, 30, n_informative=15, n_redundant=0, random_state=0)
    return X, y.astype(float)


HALVED = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "lecture": lambda: make_correlated_pair(random_state=0),
    "short lecture": lambda: make_correlated_pair(2000, random_state=0),
}
LOADERS = {
    "little noise": lambda: make_regression(300, 10, noise=1e-4, random_state=0),
    "raw units": raw_units,
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "200,000 rows": many_rows,
}


@cache
def newton_mode(model, data):
    """Mode of a task under the default priors, and the precision of the posterior there."""
    return mode_of(model, *task(model, data))


def mode_of(model, X, y):
    """Mode under the default priors, and the precision of the posterior there."""
    n, d = X.shape
    spread = 1.0 / automatic_scale("normal", X, y, np.ones(n), linear=False)
    A = np.column_stack([X, np.ones(n)])
    if len(np.unique(y)) in (3, 4, 5):
        return softmax_mode(A, y, spread)
    shrink = np.r_[spread**2 * (1.0 if model is SGDMAPClassifier else 0.01), 0.0]
    if model is SGDMAPClassifier:  # beta_j ~ N(0, 1 / spread_j^2)
        newton = LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000)
        found = newton.fit(X / spread, y)
        mode = np.r_[found.coef_[0] / spread, found.intercept_]
        p = 1.0 / (1.0 + np.exp(-A @ mode))
        return mode, (A.T * (p * (1.0 - p))) @ A + np.diag(shrink)
    # beta_j | sigma^2 ~ N(0, 100 sigma^2 / spread_j^2): the mode of beta is the ridge solution;
    # d/dgamma of the log posterior is zero at sigma^2 = (rss + 2 psi) / (n + d + 2 phi)
    found = Ridge(alpha=0.01, solver="svd").fit(X / spread, y)
    phi, psi = 1e-3, 1e-3 * y.var()
    beta = np.r_[found.coef_ / spread, found.intercept_]
    total = np.sum((y - A @ beta) ** 2) + shrink @ beta**2 + 2.0 * psi
    variance = total / (n + d + 2.0 * phi)
    precision = np.zeros((d + 2, d + 2))  # without cross terms: the slope in beta is zero
    precision[:-1, :-1] = (A.T @ A + np.diag(shrink)) / variance
    precision[-1, -1] = 0.5 * total / variance
    return np.r_[beta, np.log(variance)], precision


def softmax_mode(A, y, spread):
    """Mode of several classes, and the precision there, intercepts after coefficients.

    A common shift of the classes is not told by the data: it is left out of the precision.
    """
    found = LogisticRegression(solver="newton-cg", tol=1e-12, max_iter=10_000).fit(
        A[:, :-1] / spread, y
    )
    theta = np.column_stack([found.coef_ / spread, found.intercept_])
    theta = theta - theta.mean(axis=0)
    p = softmax(A @ theta.T, axis=1)
    K, width = theta.shape
    weights = -p[:, :, None] * p[:, None]
    weights[:, np.arange(K), np.arange(K)] += p
    shrink = np.diag(np.r_[spread**2, 0.0])
    blocks = np.einsum("nkl,ni,nj->kilj", weights, A, A)
    blocks += np.einsum("kl,ij->kilj", np.eye(K), shrink)
    order = np.arange(K * width).reshape(K, width)
    order = np.r_[order[:, :-1].ravel(), order[:, -1]]
    precision = blocks.reshape(K * width, K * width)[np.ix_(order, order)]
    return np.r_[theta[:, :-1].ravel(), theta[:, -1]], precision


def point(fit):
    """Parameters of a fit in one vector."""
    noise = [np.log(fit.noise_variance_)] if hasattr(fit, "noise_variance_") else []
    return np.r_[np.ravel(fit.coef_), np.ravel(fit.intercept_), noise]


def distance(fit, mode, precision):
    """Distance to a mode in the coordinate that is the furthest, in its posterior sds."""
    return float(np.max(np.abs(point(fit) - mode) / marginal_sds(precision)))


def marginal_sds(precision):
    """Sds under a normal distribution, from a precision in any units that may lack a direction."""
    unit = np.sqrt(np.diagonal(precision))
    covariance = np.linalg.pinv(precision / np.outer(unit, unit), rcond=1e-13, hermitian=True)
    return np.sqrt(np.diagonal(covariance)) / unit
