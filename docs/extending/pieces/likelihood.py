"""Waiting times with a log link, and an estimator for them."""

from dataclasses import dataclass

import numpy as np

from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.regression import RegressionModel
from skbayes_sgld.estimators.sampled import SampledEstimator
from skbayes_sgld.likelihoods import Likelihood


@dataclass(eq=False, repr=False)
class Waiting(Likelihood):
    """Waiting times, of density ``exp(-y / mu) / mu`` and mean ``mu = exp(eta)``."""

    bounded_curvature = False  # y exp(-eta) has no bound as eta falls
    log_link = "mean", "the units of its columns"  # for errors where predictions overflow

    def check_target(self, y):
        if np.any(y < 0):
            raise ValueError(f"y has the value {y.min():g}; waiting times must be 0 or more.")
        return np.asarray(y, dtype=float)

    def start(self, y, weight, has_level):
        return np.array([np.log(np.average(y, weights=weight)) if has_level else 0.0])

    def level_weight(self, y, weight=None):
        return float(len(y) if weight is None else weight.sum())

    def log_density(self, u, y):
        return -u[:, 0] - y * np.exp(-u[:, 0])

    def score(self, u, y):
        return y[..., None, :] * np.exp(-u) - 1.0

    def curvature(self, u, y):
        return (y[..., None, :] * np.exp(-u))[:, None]

    def mean(self, u):
        return np.exp(u[:, 0])

    def variance(self, u):
        return np.exp(2.0 * u[:, 0])

    def cdf(self, u, y):
        return -np.expm1(-np.maximum(y, 0.0) * np.exp(-u[:, 0]))

    def sample(self, u, rng):
        return rng.exponential(np.exp(u[:, 0]))


@parameters
class WaitingRegressor(RegressionModel, SampledEstimator):
    """Bayesian regression of waiting times.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2))
    >>> y = rng.exponential(np.exp(1.0 + X @ [0.5, -0.5]))
    >>> model = WaitingRegressor(random_state=0).fit(X, y)
    >>> print(model.summary()["mean"].round(1).to_dict())
    {'coef[x0]': 0.5, 'coef[x1]': -0.5, 'intercept': 1.0}
    >>> print(model.predict_interval(X[:1], coverage=0.9).round(1))
    [[0.2 8.9]]
    """

    _positive = True  # for scikit-learn: y is 0 or more

    def _likelihood(self):
        return Waiting()
