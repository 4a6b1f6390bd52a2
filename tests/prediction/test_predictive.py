"""Predictions in any units, under unequal weights, and at a cost that grows with the classes."""

import time

import numpy as np
import pytest
from scipy.special import logsumexp

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.posterior import Bernoulli, Categorical, Gaussian, Poisson
from skbayes_sgld.prediction.predictive import Predictive
from skbayes_sgld.prediction.predictors import LinearPredictor, Spread

LEVELS = np.array([1e-4, 0.05, 0.5, 0.95])


def line(n=60, noise=0.5, offset=0.0, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 3))
    return z + offset, z @ [1.0, -2.0, 0.3] + noise * rng.standard_normal(n)


def some_draws(n_draws=500, n_predictors=1, d=3, seed=0):
    rng = np.random.default_rng(seed)
    coef = 0.3 * rng.standard_normal((n_draws, n_predictors, d)) + np.arange(d)
    return coef, rng.standard_normal((n_draws, n_predictors)), rng.gamma(0.5, size=n_draws)


# ---- units ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-45, 1e-22, 1e20, 1e45])
def test_intervals_scale_with_y(scale):
    X, y = line()
    plain = SGLDLinearRegression(random_state=0).fit(X, y)
    scaled = SGLDLinearRegression(random_state=0).fit(X, y * scale)
    width = np.diff(plain.predict_interval(X)).min()
    for method, more in [("predict_interval", ()), ("predict_quantiles", ([1e-4, 0.3],))]:
        expected = getattr(plain, method)(X, *more)
        found = getattr(scaled, method)(X, *more) / scale
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * width)
    std = scaled.predict(X, return_std=True)[1] / scale
    np.testing.assert_allclose(std, plain.predict(X, return_std=True)[1], rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-100, 1e-40, 1e40, 1e100])
def test_intervals_do_not_depend_on_the_units_of_x(scale):
    coef, intercept, variance = some_draws()
    X, _ = line(20)
    plain = Predictive(LinearPredictor(coef, intercept), Gaussian(), np.log(variance)[:, None])
    scaled = Predictive(
        LinearPredictor(coef / scale, intercept), Gaussian(), np.log(variance)[:, None]
    )
    expected, found = plain.quantiles(X, LEVELS), scaled.quantiles(X * scale, LEVELS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)
    np.testing.assert_allclose(scaled.moments(X * scale), plain.moments(X), rtol=1e-9)


@pytest.mark.parametrize("n_predictors", [1, 3])
@pytest.mark.parametrize("offset", [0.0, 1e10])
def test_factored_draws_have_the_predictors_of_all_draws(offset, n_predictors):
    coef, intercept, variance = some_draws(n_predictors=n_predictors)
    X = line(400)[0] + [offset, 0.0, 0.0]
    predictor, share = LinearPredictor(coef, intercept - coef[..., 0] * offset), variance
    share, unit = share / share.sum(), np.sqrt(variance.mean())
    plain, factored = Spread(predictor, share), predictor.spread(share, 400)
    assert type(factored) is not Spread
    ours, expected = factored.coordinates(X), plain.coordinates(X)
    for found, by_draw in (
        (ours[..., -1], expected[..., -1]),
        (factored.variance(ours), plain.variance(expected)),
        (factored.predictors(ours), plain.predictors(expected)),
        *zip(factored.deviations(X, unit), plain.deviations(X, unit), strict=True),
    ):
        np.testing.assert_allclose(found, by_draw, rtol=0, atol=3e-5 * np.abs(by_draw).max())


def test_columns_that_cancel_leave_the_intervals_what_they_are():
    coef, intercept, variance = some_draws()
    X, _ = line(20)
    mixed = np.array([[1.0, 0.0, 0.0], [1.0, 1e-8, 0.0], [0.0, 0.0, 1.0]])  # of the columns
    unmixed = np.linalg.inv(mixed)
    plain = Predictive(LinearPredictor(coef, intercept), Gaussian(), np.log(variance)[:, None])
    turned = Predictive(
        LinearPredictor(coef @ unmixed, intercept), Gaussian(), np.log(variance)[:, None]
    )
    # single precision knows such coefficients to 1e-7 of 1e8
    np.testing.assert_allclose(
        turned.quantiles(X @ mixed.T, LEVELS), plain.quantiles(X, LEVELS), rtol=0, atol=1e-3
    )


def test_a_row_out_of_all_bounds_has_a_finite_interval():
    coef, intercept, variance = some_draws()
    predictive = Predictive(LinearPredictor(coef, intercept), Gaussian(), np.log(variance)[:, None])
    far = predictive.quantiles(np.full((1, 3), 1e30), LEVELS)
    eta = coef[:, 0] @ np.full(3, 1e30)
    expected = np.quantile(eta, LEVELS)
    np.testing.assert_allclose(far[0, 1:], expected[1:], rtol=0.02)


# ---- weights ----------------------------------------------------------------------------------


def test_moments_under_weights_are_those_of_the_mixture():
    coef, intercept, variance = some_draws()
    weights = np.random.default_rng(1).uniform(0.0, 3.0, len(coef))
    share, (X, _) = weights / weights.sum(), line(10)
    eta = X @ coef[:, 0].T + intercept[:, 0]
    mean = eta @ share
    predictor = LinearPredictor(coef, intercept)
    found = Predictive(predictor, Gaussian(), np.log(variance)[:, None], weights).moments(X)
    np.testing.assert_allclose(found[:, 0], mean, rtol=1e-10)
    by_hand = (eta - mean[:, None]) ** 2 @ share + share @ variance
    np.testing.assert_allclose(found[:, 1], by_hand, rtol=1e-10)
    rate = np.exp(0.1 * eta)
    small = LinearPredictor(0.1 * coef, 0.1 * intercept)
    found = Predictive(small, Poisson(), None, weights).moments(X)
    mean = rate @ share
    np.testing.assert_allclose(found[:, 0], mean, rtol=1e-10)
    by_hand = mean + (rate - mean[:, None]) ** 2 @ share
    np.testing.assert_allclose(found[:, 1], by_hand, rtol=1e-10)


@pytest.mark.parametrize("likelihood", [Bernoulli(), Categorical(4)], ids=["binary", "softmax"])
@pytest.mark.parametrize("weighted", [False, True])
def test_log_probabilities_are_the_logs_of_the_weighted_mean(likelihood, weighted):
    coef, intercept, _ = some_draws(n_predictors=likelihood.n_predictors)
    weights = np.random.default_rng(1).uniform(0.0, 3.0, len(coef)) if weighted else None
    X = np.vstack([line(10)[0], np.full((1, 3), 500.0)])  # the last underflows
    predictive = Predictive(LinearPredictor(coef, intercept), likelihood, None, weights)
    p, log_p = predictive.probability(X), predictive.log_probability(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(log_p[:10, :, 0], np.log(p[:10]), rtol=1e-10)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=2), 1.0, rtol=1e-10)
    # by hand, in logs throughout
    eta = np.einsum("skd,nd->nsk", coef, X) + intercept
    if likelihood.n_predictors == 1:
        eta = np.concatenate([np.zeros_like(eta), eta], axis=2)
    log_each = eta - logsumexp(eta, axis=2, keepdims=True)
    log_share = np.log(predictive.share)[:, None]
    expected = logsumexp(log_each + log_share, axis=1)
    np.testing.assert_allclose(log_p[..., 0], expected, rtol=1e-9, atol=1e-14)
    for k in range(likelihood.n_classes):
        others = logsumexp(np.delete(log_each, k, axis=2), axis=2)
        expected = logsumexp(others + log_share[:, 0], axis=1)
        np.testing.assert_allclose(log_p[:, k, 1], expected, rtol=1e-8, atol=1e-14)


# ---- cost -------------------------------------------------------------------------------------


def test_log_probabilities_of_many_classes_cost_about_what_probabilities_do():
    coef, intercept, _ = some_draws(400, 60)
    predictive = Predictive(LinearPredictor(coef, intercept), Categorical(60))
    X, _ = line(100)

    def seconds(function):
        start = time.process_time()
        function(X)
        return time.process_time() - start

    predictive.probability(X)  # the slopes are laid out once
    once = min(seconds(predictive.probability) for _ in range(3))
    logs = min(seconds(predictive.log_probability) for _ in range(3))
    assert logs < 8.0 * once  # it was 50 times, and grew with the square of the classes
