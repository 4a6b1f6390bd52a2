"""Predictions are functions of the draws: each is compared with what it stands for."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import BayesianRidge

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.datasets import make_correlated_pair, make_two_clusters
from skbayes_sgld.posterior import ConjugateNormal
from skbayes_sgld.prediction import predictors

ROWS = 40


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def linear(diabetes):
    return SGLDLinearRegression(random_state=0).fit(*diabetes)


@pytest.fixture(scope="module")
def few():
    """A fit whose predictive mixture is far from normal: seven rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((7, 2))
    y = X[:, 0] + rng.standard_normal(7)
    return SGLDLinearRegression(random_state=0, step_size=0.1, thin=10).fit(X, y), X


@pytest.fixture(scope="module")
def binary():
    X, y = make_two_clusters(300, std=3.0, random_state=0)
    return SGLDLogisticRegression(random_state=0).fit(X, y), X


@pytest.fixture(scope="module")
def softmax():
    X, y = load_iris(return_X_y=True)
    return SGLDLogisticRegression(random_state=0).fit(X, y), X


@pytest.mark.parametrize("q", [1e-4, 0.05, 0.5, 0.9, 0.9999])
def test_predictive_quantiles_solve_the_mixture_of_the_draws(few, q):
    model, X = few
    t = model.predict_quantiles(X, [q])[:, 0]
    draws = model.sample_posterior()
    mean = X @ draws.coef.T + draws.intercept
    cdf = stats.norm.cdf(t[:, None], mean, np.sqrt(draws.noise_variance)).mean(axis=1)
    density = stats.norm.pdf(t[:, None], mean, np.sqrt(draws.noise_variance)).mean(axis=1)
    sd = model.predict(X, return_std=True)[1]
    assert np.all(np.abs(cdf - q) / density < 1e-3 * sd)  # a thousandth of a sd


def test_intervals_are_equal_tailed_quantiles(linear, diabetes):
    X = diabetes[0][:ROWS]
    for kind in ("predictive", "mean"):
        interval = linear.predict_interval(X, coverage=0.8, kind=kind)
        quantiles = linear.predict_quantiles(X, [0.1, 0.9], kind)
        np.testing.assert_allclose(interval, quantiles, rtol=1e-9)
    wide, narrow = linear.predict_interval(X, 0.9), linear.predict_interval(X, 0.9, kind="mean")
    assert np.all(np.diff(wide) > 3 * np.diff(narrow))


def test_predictions_do_not_depend_on_the_other_rows(linear, binary, diabetes):
    X = diabetes[0]
    part = [3, 200, 77]
    for function in (
        lambda rows: linear.predict(rows),
        lambda rows: linear.predict(rows, return_std=True)[1],
    ):
        np.testing.assert_allclose(function(X)[part], function(X[part]), rtol=1e-9)
    interval = linear.predict_interval(X)[part]  # to 1e-5 of a standard deviation
    np.testing.assert_allclose(interval, linear.predict_interval(X[part]), atol=2e-5 * 55)
    model, X = binary
    for function in (model.predict_proba, model.predict_proba_interval, model.decision_function):
        # many rows are predicted in single precision
        np.testing.assert_allclose(function(X)[part], function(X[part]), rtol=2e-6)


def test_std_is_that_of_bayesian_ridge_where_the_priors_match(diabetes):
    X, y = diabetes
    ridge = BayesianRidge(lambda_1=1e-6, alpha_1=1e-6, tol=1e-8, max_iter=1000).fit(X, y)
    scale = np.sqrt(ridge.alpha_ / ridge.lambda_)  # BayesianRidge's own, in units of the noise
    model = SGLDLinearRegression(prior=ConjugateNormal(scale), random_state=0).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    expected_mean, expected_std = ridge.predict(X, return_std=True)
    np.testing.assert_allclose(std, expected_std, rtol=0.03)
    np.testing.assert_allclose(mean, expected_mean, atol=0.05 * expected_std.min())


def test_sampled_y_follows_the_predictive_distribution(linear, diabetes):
    X = diabetes[0][:5]
    y = linear.sample_y(X, n_samples=4000, random_state=1)
    for row, t in zip(y, linear.predict_quantiles(X, [0.1, 0.5, 0.9]), strict=True):
        share = (row[:, None] < t).mean(axis=0)
        assert np.all(np.abs(share - [0.1, 0.5, 0.9]) < 4 * np.sqrt(0.25 / 4000))
    np.testing.assert_array_equal(y, linear.sample_y(X, n_samples=4000, random_state=1))


def test_decision_function_is_the_log_odds_of_the_mean_probability(binary, softmax):
    model, X = binary
    p = model.predict_proba(X)
    np.testing.assert_allclose(model.decision_function(X), np.log(p[:, 1] / p[:, 0]), atol=1e-9)
    model, X = softmax
    p = model.predict_proba(X)
    np.testing.assert_allclose(model.decision_function(X), np.log(p / (1 - p)), rtol=1e-6)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p), rtol=1e-6, atol=1e-12)


def test_decision_function_stays_finite_where_the_probability_is_one(binary):
    model, _ = binary
    far = model.decision_function([[500.0, -500.0], [-500.0, 500.0]])
    assert np.all(np.isfinite(far))
    assert far[0] * far[1] < 0


def test_a_decaying_schedule_weights_every_prediction():
    X, y = make_correlated_pair(200, random_state=0)
    model = SGLDLinearRegression(
        schedule="harmonic", step_size=0.4, n_draws=400, thin=1, random_state=0
    )
    with pytest.warns(UserWarning, match="not to be relied on"):
        model.fit(X, y)
    weights = np.tile(model.posterior_.weights, 4)
    assert np.ptp(weights) > 0
    np.testing.assert_allclose(
        model.coef_, np.average(model.posterior_.flat[:, :1], axis=0, weights=weights)
    )
    flat = model.posterior_.flat
    eta = X[:5] @ flat[:, :1].T + flat[:, 1]
    np.testing.assert_allclose(model.predict(X[:5]), np.average(eta, axis=1, weights=weights))
    t = model.predict_quantiles(X[:5], [0.25])[:, 0]
    cdf = stats.norm.cdf(t[:, None], X[:5] * flat[:, 0] + flat[:, 1], np.sqrt(flat[:, 2]))
    np.testing.assert_allclose(np.average(cdf, axis=1, weights=weights), 0.25, rtol=1e-4)
    chosen = model.sample_posterior(20_000, random_state=0)
    standard_error = model.summary()["sd"].iloc[0] / np.sqrt(20_000)
    assert abs(chosen.coef.mean() - model.coef_[0]) < 4 * standard_error


@pytest.mark.parametrize("n_rows", [4, 4000])
def test_weights_enter_every_moment_of_a_prediction(n_rows):
    rng = np.random.default_rng(0)
    coef, intercept = rng.standard_normal((50, 1, 2)), rng.standard_normal((50, 1))
    weights, X = rng.uniform(0.0, 3.0, 50) ** 2, rng.standard_normal((n_rows, 2))
    predictor, share = predictors.LinearPredictor(coef, intercept), weights / weights.sum()
    values = X @ coef[:, 0].T + intercept[:, 0]
    mean = values @ share
    spread = predictor.spread(share, n_rows)
    coordinates = spread.coordinates(X)[0]
    np.testing.assert_allclose(coordinates[:, -1], mean)
    variance = (values - mean[:, None]) ** 2 @ share
    np.testing.assert_allclose(spread.variance(coordinates), variance)


# decaying steps leave the chains apart, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_weighted_probability_its_log_and_its_log_odds_agree(n_classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.standard_normal(60), [0.0, 0.7][: n_classes - 1])
    model = SGLDLogisticRegression(
        schedule="harmonic", step_size=0.4, n_draws=100, thin=1, random_state=0
    ).fit(X, y)
    flat, weights = model.posterior_.flat, model.posterior_.flat_weights
    assert np.ptp(weights) > 0
    linear = flat.reshape(len(flat), -1, 3)
    eta = np.einsum("skd,nd->snk", linear[..., :2], X) + linear[:, None, :, 2]
    eta = eta if n_classes == 3 else np.dstack([0.0 * eta, eta])
    each = special.softmax(eta, axis=2)
    p = np.average(each, axis=0, weights=weights)
    np.testing.assert_allclose(model.predict_proba(X), p, rtol=1e-9)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p), rtol=1e-9, atol=1e-12)
    log_odds = np.log(p / (1.0 - p))
    expected = log_odds[:, 1] if n_classes == 2 else log_odds
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)


# decaying steps leave the chains apart, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_predictive_variance_of_weighted_draws_is_that_of_their_mixture():
    X, y = make_correlated_pair(80, random_state=0)
    model = SGLDLinearRegression(
        schedule="harmonic", step_size=0.4, n_draws=100, thin=1, random_state=0
    ).fit(X, y)
    flat, weights = model.posterior_.flat, model.posterior_.flat_weights
    values = X[:5] @ flat[:, :-2].T + flat[:, -2]
    mean = np.average(values, axis=1, weights=weights)
    spread = np.average((values - mean[:, None]) ** 2, axis=1, weights=weights)
    expected = np.sqrt(spread + np.average(flat[:, -1], weights=weights))
    np.testing.assert_allclose(model.predict(X[:5], return_std=True)[1], expected)
    unweighted = np.sqrt(values.var(axis=1) + flat[:, -1].mean())
    assert np.all(np.abs(unweighted / expected - 1) > 1e-3)  # the weights matter here
    center = np.average(flat, axis=0, weights=weights)
    sd = np.sqrt(np.average((flat - center) ** 2, axis=0, weights=weights))
    np.testing.assert_allclose(model.summary()["sd"], sd)


# ---- densities of what was observed --------------------------------------------------------------


def test_the_distribution_function_is_the_inverse_of_the_quantiles(linear, diabetes):
    X, _ = diabetes
    levels = np.array([0.05, 0.5, 0.95])
    t = linear.predict_quantiles(X, levels)
    np.testing.assert_allclose(linear.predict_cdf(X, t), np.tile(levels, (len(X), 1)), atol=1e-5)
    np.testing.assert_allclose(linear.predict_cdf(X, t[:, 1]), 0.5, atol=1e-5)


def test_unequal_weights_of_draws_are_those_of_the_mixture(few):
    model, X = few
    weights = np.random.default_rng(0).uniform(size=4)
    y = np.zeros(len(X))
    predictive = replace(model._predictive(slice(0, 4)), weights=weights)
    each = model.log_likelihood(X, y)[:4]
    np.testing.assert_allclose(
        predictive.log_density(X, y), np.log(weights / weights.sum() @ np.exp(each))
    )
