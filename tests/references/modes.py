"""Posterior modes of the package's data sets by other code, and how far a fit is from them."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGDMAPClassifier, SGDMAPRegressor
from skbayes_sgld.datasets import load_nba_rookies, make_correlated_pair

DATA = ("nba", "diabetes", "lecture")
TASKS = [(model, data) for model in (SGDMAPRegressor, SGDMAPClassifier) for data in DATA]


@cache
def task(model, data):
    """Return X and y: a data set, its target in two halves for the classifier."""
    if data == "nba":
        X, y = load_nba_rookies(return_X_y=True, as_frame=False)
        return StandardScaler().fit_transform(np.nan_to_num(X)), y.astype(float)
    X, y = (
        load_diabetes(return_X_y=True)
        if data == "diabetes"
        else make_correlated_pair(random_state=0)
    )
    return X, (y > np.median(y)).astype(float) if model is SGDMAPClassifier else y


@cache
def newton_mode(model, data):
    """Return the mode under the default priors, and the precision of the posterior there."""
    X, y = task(model, data)
    n, d = X.shape
    A = np.column_stack([X, np.ones(n)])
    shrink = np.r_[np.full(d, 1.0 if model is SGDMAPClassifier else 0.01), 0.0]
    if model is SGDMAPClassifier:  # beta ~ N(0, 1)
        found = LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X, y)
        mode = np.r_[found.coef_[0], found.intercept_]
        p = 1.0 / (1.0 + np.exp(-A @ mode))
        return mode, (A.T * (p * (1.0 - p))) @ A + np.diag(shrink)
    # beta | sigma^2 ~ N(0, 100 sigma^2): the mode of beta is the ridge solution; d/dgamma of the
    # log posterior is zero at sigma^2 = (rss + 2 psi) / (n + d + 2 phi)
    found = Ridge(alpha=0.01, tol=1e-12, solver="cholesky").fit(X, y)
    phi, psi = 1e-3, 1e-3 * y.var()
    beta = np.r_[found.coef_, found.intercept_]
    total = np.sum((y - A @ beta) ** 2) + shrink @ beta**2 + 2.0 * psi
    variance = total / (n + d + 2.0 * phi)
    precision = np.zeros((d + 2, d + 2))  # without cross terms: the slope in beta is zero
    precision[:-1, :-1] = (A.T @ A + np.diag(shrink)) / variance
    precision[-1, -1] = 0.5 * total / variance
    return np.r_[beta, np.log(variance)], precision


def point(fit):
    """Return the parameters of a fit in one vector."""
    noise = [np.log(fit.noise_variance_)] if hasattr(fit, "noise_variance_") else []
    return np.r_[np.ravel(fit.coef_), np.ravel(fit.intercept_), noise]


def distance(fit, mode, precision):
    """Return the root mean square distance to a mode, in posterior sds."""
    error = point(fit) - mode
    return float(np.sqrt(error @ precision @ error / len(mode)))
