"""The default posterior against references that share no code with the package."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.datasets import make_correlated_pair, make_cubic
from skbayes_sgld.posterior import ConjugateNormal, InverseGamma
from tests.references.closed_forms import (
    importance_sampling,
    laplace_fit,
    logistic_log_density,
    normal_inverse_gamma,
)


def agrees(model, reference, mean_tolerance=0.1, sd_tolerance=0.05):
    """Check the bounds that every default fit must keep, and the effective sample size."""
    table = model.summary()
    mean_error = np.abs(table["mean"].to_numpy() - reference.mean) / reference.sd
    sd_error = np.abs(table["sd"].to_numpy() / reference.sd - 1.0)
    assert mean_error.max() < mean_tolerance, table.index[mean_error.argmax()]
    assert sd_error.max() < sd_tolerance, table.index[sd_error.argmax()]
    assert table["ess_bulk"].min() >= 1000
    assert table["r_hat"].max() < 1.01


@pytest.fixture(scope="module")
def rookies_target(rookies):
    log_density = logistic_log_density(*rookies, scale=1.0)
    return log_density, *laplace_fit(log_density, 20)


def test_rookies_agree_with_importance_sampling(rookies, rookies_target):
    reference = importance_sampling(*rookies_target, n_draws=10_000)
    assert reference.ess > 5000  # the reference is worth more than what it judges
    agrees(SGLDLogisticRegression(random_state=0).fit(*rookies), reference)


@pytest.mark.parametrize("data", ["diabetes", "lecture", "cubic", "no intercept", "handout"])
def test_the_linear_model_agrees_with_the_closed_form(data):
    shape, scale, with_intercept = 1e-3, 10.0, data != "no intercept"
    if data == "lecture":
        X, y = make_correlated_pair(random_state=0)
    elif data == "cubic":
        X, y = make_cubic(random_state=0)
    elif data == "handout":
        X, y = make_correlated_pair(200, random_state=2)
        shape, scale = 3.0, 0.5
    else:
        X, y = load_diabetes(return_X_y=True)
    settings = {"prior": ConjugateNormal(scale=scale), "fit_intercept": with_intercept}
    rate = shape * y.var()
    if data == "handout":
        settings["noise_prior"], rate = InverseGamma(shape, 1.0), 1.0
    model = SGLDLinearRegression(**settings, random_state=0).fit(X, y)
    exact = {"scale": scale, "shape": shape, "rate": rate, "fit_intercept": with_intercept}
    agrees(model, normal_inverse_gamma(X, y, **exact))


@pytest.mark.parametrize("unit", [1e-3, 1e5])
def test_the_default_does_not_depend_on_the_units_of_y(unit):
    X, y = load_diabetes(return_X_y=True)
    one = SGLDLinearRegression(random_state=0).fit(X, y)
    other = SGLDLinearRegression(random_state=0).fit(X, unit * y)
    np.testing.assert_allclose(other.coef_, unit * one.coef_, rtol=1e-6)
    assert other.noise_variance_ == pytest.approx(unit**2 * one.noise_variance_, rel=1e-6)


def test_temperature_scales_the_variance_of_a_normal_posterior():
    X, y = make_correlated_pair(2000, random_state=0)
    cold, hot = (
        SGLDLinearRegression(noise_variance=0.2, temperature=tau, random_state=0).fit(X, y)
        for tau in (1.0, 9.0)
    )
    # the same noise drives both chains: the deviations are three times as large, draw by draw
    near = cold.posterior_.flat - cold.posterior_.flat.mean(0)
    far = hot.posterior_.flat - hot.posterior_.flat.mean(0)
    np.testing.assert_allclose(far, 3.0 * near, rtol=1e-6, atol=1e-9)


def softmax_log_density(X, codes, scale):
    K = codes.max() + 1

    def log_density(theta):
        # the intercept of the last class is the reference: intercepts sum to what they like
        coef = theta[:, : K * X.shape[1]].reshape(len(theta), K, -1)
        level = np.column_stack([theta[:, K * X.shape[1] :], np.zeros(len(theta))])
        eta = np.einsum("skd,nd->snk", coef, X) + level[:, None]
        own = np.take_along_axis(eta, codes[None, :, None], 2)[..., 0]
        norm = np.log(np.exp(eta - eta.max(2, keepdims=True)).sum(2)) + eta.max(2)
        return (own - norm).sum(1) - 0.5 * (coef**2).sum((1, 2)) / scale**2

    return log_density


def test_three_classes_agree_with_importance_sampling():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :2]
    log_density = softmax_log_density(X, y, 1.0)
    mode, covariance = laplace_fit(log_density, 8)
    # moments of the coefficients and intercepts with the classes' mean taken out
    K, d = 3, 2
    center = np.eye(K) - 1.0 / K
    to_natural = np.zeros((K * (d + 1), 8))
    for k in range(K):
        for m in range(K):
            for j in range(d):
                to_natural[k * (d + 1) + j, m * d + j] = center[k, m]
            if m < K - 1:
                to_natural[k * (d + 1) + d, K * d + m] = center[k, m]
    reference = importance_sampling(
        log_density, mode, covariance, n_draws=12_000, transform=lambda t: t @ to_natural.T
    )
    assert reference.ess > 4000
    agrees(SGLDLogisticRegression(random_state=0).fit(X, y), reference)
