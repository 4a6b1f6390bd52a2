"""Draws of regression functions and of probabilities, against closed forms."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from skbayes_sgld import (
    SGDMAPClassifier,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
    SGLDPoissonRegressor,
)
from skbayes_sgld.posterior import Normal

RNG = np.random.default_rng(0)
N, D = 50, 2
X = RNG.standard_normal((N, D))
Y = X @ [1.0, -2.0] + 0.5 + RNG.standard_normal(N)
COUNTS = RNG.poisson(np.exp(0.4 * X[:, 0]))
NEW = 2.0 * RNG.standard_normal((5, D))
# the runs are too short for usable draws, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def linear():
    prior = Normal(scale=2.0)
    return SGLDLinearRegression(prior=prior, noise_variance=1.0, random_state=0).fit(X, Y)


def test_the_regression_function_has_its_exact_distribution(linear):
    design = np.column_stack([X, np.ones(N)])
    precision = design.T @ design + np.diag([0.25, 0.25, 0.0])
    rows = np.column_stack([NEW, np.ones(5)])
    mean = rows @ np.linalg.solve(precision, design.T @ Y)
    covariance = rows @ np.linalg.solve(precision, rows.T)
    draws = linear.posterior_mean_draws(NEW)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(draws.mean(axis=0), mean, rtol=0, atol=0.08 * sd.min())
    # of all rows together: the draws are of functions, not of one row at a time
    whitened = np.linalg.solve(np.linalg.cholesky(covariance[:3, :3]), (draws - mean)[:, :3].T)
    np.testing.assert_allclose(np.cov(whitened), np.eye(3), atol=0.12)


def test_its_quantiles_are_the_intervals_of_the_mean(linear):
    interval = np.quantile(linear.posterior_mean_draws(NEW), [0.05, 0.95], axis=0).T
    found = linear.predict_interval(NEW, kind="mean")
    np.testing.assert_allclose(interval, found, rtol=1e-5)


def softmaxed(eta):
    return softmax(eta, axis=2)


def of_two(eta):
    return np.stack([1.0 - expit(eta), expit(eta)], axis=2)


SHORT = {"n_draws": 100, "random_state": 0}
THREE = np.digitize(Y, [-1, 1.5])
FUNCTIONS = {
    "linear": (SGLDLinearRegression(**SHORT), Y, np.asarray),
    "weighted draws": (SGLDLinearRegression(schedule="polynomial", **SHORT), Y, np.asarray),
    "rates": (SGLDPoissonRegressor(**SHORT), COUNTS, np.exp),
    "two classes": (SGLDLogisticRegression(**SHORT), np.where(Y > 0, "up", "down"), of_two),
    "mode": (SGDMAPClassifier(random_state=0), np.where(Y > 0, "up", "down"), of_two),
    "three classes": (SGLDLogisticRegression(**SHORT), THREE, softmaxed),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n_samples", [None, 7])
def test_draws_are_functions_of_the_draws_of_the_parameters(name, n_samples):
    model, y, link = FUNCTIONS[name]
    draws = model.fit(X, y).sample_posterior(n_samples, random_state=3)
    assert (model.posterior_.weights is not None) == (name == "weighted draws")
    eta = np.einsum("s...d,nd->sn...", draws.coef, NEW) + draws.intercept[:, None]
    found = model.posterior_mean_draws(NEW, n_samples, random_state=3)
    np.testing.assert_allclose(found, link(eta))
    if name == "rates":
        exposure = np.arange(1.0, 6.0)
        over = model.posterior_mean_draws(NEW, n_samples, random_state=3, exposure=exposure)
        np.testing.assert_allclose(over, found * exposure)
    if name == "three classes" and n_samples is None:
        np.testing.assert_allclose(found.mean(axis=0), model.predict_proba(NEW), rtol=1e-5)


def test_a_class_of_no_weight_has_probability_zero():
    model = SGLDLogisticRegression(**SHORT)
    found = model.fit(X, THREE, sample_weight=THREE != 1).posterior_mean_draws(NEW, 10)
    assert found.shape == (10, 5, 3)
    assert np.all(found[..., 1] == 0.0)
    np.testing.assert_allclose(found.sum(axis=2), 1.0)


def test_networks_average_to_their_prediction():
    model = SGLDMLPRegressor(hidden_layer_sizes=3, n_burnin=50, n_draws=20, thin=1, random_state=0)
    model.fit(X, Y)
    np.testing.assert_allclose(model.posterior_mean_draws(NEW).mean(axis=0), model.predict(NEW))
