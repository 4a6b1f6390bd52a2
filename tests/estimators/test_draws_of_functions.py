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
pytestmark = pytest.mark.filterwarnings("ignore:The draws are not to be relied on")


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


@pytest.mark.parametrize("n_samples", [None, 7])
def test_draws_are_those_of_the_parameters(linear, n_samples):
    draws = linear.sample_posterior(n_samples, random_state=3)
    functions = linear.posterior_mean_draws(NEW, n_samples, random_state=3)
    expected = draws.coef @ NEW.T + draws.intercept[:, None]
    np.testing.assert_allclose(functions, expected)


def test_draws_follow_the_weights_of_a_decaying_schedule():
    model = SGLDLinearRegression(schedule="polynomial", n_draws=200, random_state=3).fit(X, Y)
    assert model.posterior_.weights is not None
    draws = model.sample_posterior()
    expected = draws.coef @ NEW.T + draws.intercept[:, None]
    np.testing.assert_allclose(model.posterior_mean_draws(NEW), expected)


def test_rates_are_multiplied_by_exposures():
    model = SGLDPoissonRegressor(n_draws=100, random_state=0).fit(X, COUNTS)
    draws, exposure = model.sample_posterior(20), np.arange(1.0, 6.0)
    rate = np.exp(draws.coef @ NEW.T + draws.intercept[:, None])
    np.testing.assert_allclose(model.posterior_mean_draws(NEW, 20), rate)
    found = model.posterior_mean_draws(NEW, 20, exposure=exposure)
    np.testing.assert_allclose(found, rate * exposure)


@pytest.mark.parametrize("estimator", [SGLDLogisticRegression(n_draws=200), SGDMAPClassifier()])
def test_two_classes_have_the_logistic_function_of_each_draw(estimator):
    model = estimator.set_params(random_state=0).fit(X, np.where(Y > 0, "up", "down"))
    draws = model.sample_posterior(9)
    p = expit(draws.coef @ NEW.T + draws.intercept[:, None])
    np.testing.assert_allclose(model.posterior_mean_draws(NEW, 9), np.stack([1 - p, p], axis=2))


def test_three_classes_have_the_softmax_of_each_draw_whose_mean_is_predict_proba():
    model = SGLDLogisticRegression(n_draws=200, random_state=0).fit(X, np.digitize(Y, [-1, 1.5]))
    draws = model.sample_posterior()
    eta = np.einsum("skd,nd->snk", draws.coef, NEW) + draws.intercept[:, None]
    found = model.posterior_mean_draws(NEW)
    np.testing.assert_allclose(found, softmax(eta, axis=2))
    np.testing.assert_allclose(found.mean(axis=0), model.predict_proba(NEW), rtol=1e-5)


def test_a_class_of_no_weight_has_probability_zero():
    labels = np.digitize(Y, [-1, 1.5])
    model = SGLDLogisticRegression(n_draws=100, random_state=0)
    found = model.fit(X, labels, sample_weight=labels != 1).posterior_mean_draws(NEW, 10)
    assert found.shape == (10, 5, 3)
    assert np.all(found[..., 1] == 0.0)
    np.testing.assert_allclose(found.sum(axis=2), 1.0)


def test_networks_average_to_their_prediction():
    model = SGLDMLPRegressor(hidden_layer_sizes=3, n_burnin=50, n_draws=20, thin=1, random_state=0)
    model.fit(X, Y)
    np.testing.assert_allclose(model.posterior_mean_draws(NEW).mean(axis=0), model.predict(NEW))
