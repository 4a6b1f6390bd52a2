"""Cubic polynomials in place of rows, for curves of likelihoods that are not normal."""

import numpy as np
import pytest
from scipy.special import expit

from skbayes_sgld import (
    SGLDGammaRegressor,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDOrdinalClassifier,
)
from tests.marks import SHORT, short_chains, slow


def make_rows(kind, n=1500):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    eta = np.sin(3.0 * X[:, 0]) + 0.3 * X[:, 1]
    if kind is SGLDLogisticRegression:
        return X, (rng.random(n) < expit(eta)).astype(int)
    if kind is SGLDOrdinalClassifier:
        return X, np.digitize(eta + rng.logistic(size=n), [-1.0, 1.0])
    mean = np.exp(eta) * rng.gamma(2.0, 0.5, n)
    return X, mean if kind is SGLDGammaRegressor else rng.poisson(mean)


def fitted(kind, n=1500, **options):
    X, y = make_rows(kind, n)
    model = kind(smooth_effects={0: 8, 1: 8}, random_state=0, **options).fit(X, y)
    return model, model.result_.plan.posterior.inner


@short_chains
@pytest.mark.parametrize(
    "kind",
    [
        slow(SGLDLogisticRegression),
        slow(SGLDOrdinalClassifier),
        SGLDGammaRegressor,
        slow(SGLDNegativeBinomialRegressor),
    ],
)
def test_draws_have_the_density_of_the_rows(kind):
    """Importance weights of the rows' likelihood are nearly equal."""
    model, posterior = fitted(kind, n_draws=70)
    cubic = posterior.model.cubic
    theta = posterior.split(posterior.reported.theta(model.posterior_.flat))[0]
    value, grad = cubic.value_and_grad(theta)
    log_weight = posterior.model.row_sum().value(theta) - value
    weight = np.exp(log_weight - log_weight.max())
    assert weight.sum() ** 2 / np.square(weight).sum() > 0.98 * len(theta)
    root = cubic._whitening.root
    within = np.linalg.norm(cubic._whitening.z(theta), axis=1) < cubic._radius - 0.1
    theta, grad = theta[within][:5], grad[within][:5]
    for k in range(theta.shape[1]):
        step = 1e-3 * root[:, k]
        ends = cubic.value(theta + step) - cubic.value(theta - step)
        np.testing.assert_allclose(ends / 2e-3, grad @ root[:, k], rtol=1e-4, atol=1e-4)
    # far away the density falls
    way = np.random.default_rng(0).standard_normal((20, len(root)))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    values = [cubic.value(cubic._whitening.theta(r * way)) for r in (10.0, 30.0, 100.0)]
    assert np.all(values[0] > values[1]) and np.all(values[1] > values[2])


@short_chains
def test_rows_are_read_where_they_are_few():
    _, posterior = fitted(SGLDLogisticRegression, 200, **SHORT)
    assert posterior.model.cubic is None


@short_chains
def test_copied_columns_and_raw_units_are_no_error():
    X, y = make_rows(SGLDLogisticRegression, 1500)
    raw = 1e6 * np.random.default_rng(1).standard_normal(len(X))
    raw[0] = 1e9
    X = np.column_stack([X, X[:, 1], raw])
    model = SGLDLogisticRegression(smooth_effects={0: 8}, random_state=0, **SHORT)
    posterior = model.fit(X, y).posterior_
    assert np.isfinite(posterior.flat).all()
    assert 0.4 < posterior["sd"].mean() < 1.6
