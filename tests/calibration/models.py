"""The models of the proofs: parameters drawn from the prior, data from the model, a fit to them.

Nothing here takes a density or a random number from the package.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.posterior import ConjugateNormal, InverseGamma, Laplace, Normal

N_DRAWS = 250  # of each of the four chains; every other setting is the default
N_NEW = 5  # rows to predict
SHAPE, SCALE = 3.0, 2.0  # of the inverse gamma distribution of the noise variance
# A flat prior cannot be drawn from. Under a normal likelihood the level of y carries no
# information on the other parameters: a fixed intercept leaves every rank and every coverage as
# exact as a drawn one would, its own included (the flat prior is the invariant one), so the
# linear models keep the default fit_intercept=True. A logistic model has no such invariance; it
# goes without an intercept.
INTERCEPT = 3.0
DESIGNS = ((15, 4), (25, 3), (100, 5))  # rows and columns; replications take turns


@dataclass(frozen=True)
class Model:
    """A prior as the package has it, and the same prior to draw from."""

    prior: Any
    draw: Callable[[np.random.Generator, int, float], np.ndarray]
    linear: bool

    def estimator(self, seed: int) -> Any:
        """Estimator with all its default settings."""
        # a copy: set_params(prior__scale=...) must not reach the next replication
        settings = {"prior": clone(self.prior), "n_draws": N_DRAWS, "random_state": seed}
        if self.linear:
            return SGLDLinearRegression(noise_prior=InverseGamma(SHAPE, SCALE), **settings)
        return SGLDLogisticRegression(fit_intercept=False, **settings)


MODELS = {
    "linear, conjugate normal": Model(
        ConjugateNormal(1.0), lambda rng, d, variance: rng.normal(0, np.sqrt(variance), d), True
    ),
    "linear, Laplace": Model(Laplace(1.0), lambda rng, d, _: rng.laplace(0, 1, d), True),
    "logistic, normal": Model(Normal(2.0), lambda rng, d, _: rng.normal(0, 2, d), False),
    "logistic, Laplace": Model(Laplace(1.0), lambda rng, d, _: rng.laplace(0, 1, d), False),
}


@dataclass
class Sample:
    """One data set and what it was drawn with.

    Attributes
    ----------
    X, y : ndarray
        What the model is fitted to.
    truth : ndarray
        The parameters, in the order of ``posterior_.names``.
    X_new : ndarray of shape (N_NEW, d)
    mean_new : ndarray of shape (N_NEW,)
        The regression function there; the probability of class 1 in a logistic model.
    y_new : ndarray of shape (N_NEW,) or None
        New observations there.
    """

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    X_new: np.ndarray
    mean_new: np.ndarray
    y_new: np.ndarray | None = None


def simulate(model: Model, rng: np.random.Generator, n: int, d: int) -> Sample:
    """Draw parameters from the prior and data from the model."""
    while True:
        # correlated columns, off centre
        X = 0.5 + 0.8 * rng.standard_normal((n + N_NEW, d)) + rng.normal(0, 0.6, (n + N_NEW, 1))
        variance = SCALE / rng.gamma(SHAPE)
        coef = model.draw(rng, d, variance)
        if model.linear:
            mean = X @ coef + INTERCEPT
            y = mean + rng.normal(0, np.sqrt(variance), n + N_NEW)
            truth = np.r_[coef, INTERCEPT, variance]
            return Sample(X[:n], y[:n], truth, X[n:], mean[n:], y[n:])
        probability = expit(X @ coef)
        y = (rng.random(n) < probability[:n]).astype(int)
        # A classifier needs two classes. Whether a sample is dropped depends on y alone, so given
        # any y that is kept the parameters still follow their posterior.
        if y.min() < y.max():
            return Sample(X[:n], y, coef, X[n:], probability[n:])


def fitted(name: str, number: int, changes: dict[str, Any]) -> tuple[Sample, Any, bool]:
    """Replication ``number`` of a model, its fit, and whether the fit warned.

    Parameters
    ----------
    name : str
        One of ``MODELS``.
    number : int
    changes : dict
        Parameters of the estimator, to make it wrong on purpose.
    """
    model = MODELS[name]
    rng = np.random.default_rng([list(MODELS).index(name), number])
    sample = simulate(model, rng, *DESIGNS[number % len(DESIGNS)])
    estimator = model.estimator(number).set_params(**changes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        estimator.fit(sample.X, sample.y)
    return sample, estimator, bool(caught)


def log_likelihood(model: Model, sample: Sample, values: np.ndarray) -> np.ndarray:
    """Log likelihood of the data under each row of parameters, up to a constant."""
    d = sample.X.shape[1]
    eta = values[:, :d] @ sample.X.T
    if not model.linear:
        return -np.logaddexp(0, np.where(sample.y == 1, -eta, eta)).sum(axis=1)
    residual = sample.y - eta - values[:, d : d + 1]
    variance = values[:, -1]
    return -0.5 * (len(sample.y) * np.log(variance) + (residual**2).sum(axis=1) / variance)
