"""Gradient estimators: unbiased, quiet where they must be, and as noisy as is measured."""

import numpy as np
import pytest

from skbayes_sgld.posterior import (
    Bernoulli,
    Categorical,
    Gaussian,
    GLMPosterior,
    InverseGamma,
    Normal,
)
from skbayes_sgld.sampling import ControlVariate, Full, Minibatch, find_mode
from skbayes_sgld.sampling.tuning import measure_noise

ESTIMATORS = {
    "minibatch": Minibatch(),
    "control variate of order 1": ControlVariate(1),
    "control variate of order 2": ControlVariate(2),
}


@pytest.fixture(params=[Bernoulli(), Categorical(3), Gaussian()], scope="module")
def posterior(request):
    likelihood, rng = request.param, np.random.default_rng(0)
    X = rng.standard_normal((400, 4)) + 1.0
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(400)
    if not likelihood.quadratic:
        y = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3])[: likelihood.n_local]).astype(float)
        y = np.minimum(y, max(likelihood.n_predictors, 2) - 1)
    noise = InverseGamma(1.0, 1.0) if likelihood.infers_noise else None
    weight = rng.uniform(0.5, 2.0, 400)
    return GLMPosterior(X, y, likelihood, Normal(), noise, sample_weight=weight, center=True)


@pytest.fixture(scope="module")
def mode(posterior):
    return find_mode(posterior, posterior.start())


def one_row_estimates(posterior, mode, gradient, theta):
    """Return the estimates of all one-row minibatches ``(n, P)``."""
    n = posterior.n_samples
    bound = gradient.bind(posterior, mode.theta)
    batch = bound.at(bound.prepare(np.arange(n)[None, :, None]), 0)
    return bound(np.tile(theta, (n, 1)), batch)


@pytest.mark.parametrize("gradient", ESTIMATORS.values(), ids=ESTIMATORS)
def test_the_mean_of_all_one_row_estimates_is_the_full_gradient(posterior, mode, gradient):
    theta = mode.theta + 3.0 * mode.spread
    estimates = one_row_estimates(posterior, mode, gradient, theta)
    full = Full().bind(posterior, None)(theta[None], None)[0]
    assert np.abs(full).max() > 1.0
    np.testing.assert_allclose(estimates.mean(axis=0), full, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("order", [1, 2])
def test_control_variates_have_no_variance_at_their_centre(posterior, mode, order):
    estimates = one_row_estimates(posterior, mode, ControlVariate(order), mode.theta)
    plain = one_row_estimates(posterior, mode, Minibatch(), mode.theta)
    assert plain.std(axis=0).max() > 1.0
    assert estimates.std(axis=0).max() < 1e-9 * plain.std(axis=0).max()


def test_each_order_is_quieter_near_the_centre(posterior, mode):
    theta = mode.theta + 0.5 * mode.spread
    plain, first, second = (
        one_row_estimates(posterior, mode, gradient, theta).std(axis=0).max()
        for gradient in ESTIMATORS.values()
    )
    assert second < 0.5 * first < 0.25 * plain


@pytest.mark.parametrize("gradient", ESTIMATORS.values(), ids=ESTIMATORS)
def test_a_batch_is_the_mean_of_its_rows(posterior, mode, gradient):
    theta = mode.theta + mode.spread
    estimates = one_row_estimates(posterior, mode, gradient, theta)
    rows = np.array([3, 70, 3, 41])
    bound = gradient.bind(posterior, mode.theta)
    batch = bound.at(bound.prepare(rows[None, None]), 0)
    np.testing.assert_allclose(bound(theta[None], batch)[0], estimates[rows].mean(axis=0))


@pytest.mark.parametrize("gradient", ESTIMATORS.values(), ids=ESTIMATORS)
def test_the_noise_level_is_the_variance_of_one_row_estimates(posterior, mode, gradient):
    level = measure_noise(posterior, gradient, mode, 1.0, entropy=4)
    draws = mode.theta + np.random.default_rng(1).standard_normal((400, mode.theta.size)) @ (
        mode.root.T
    )
    covariance = sum(
        np.cov(one_row_estimates(posterior, mode, gradient, theta).T, ddof=0) for theta in draws
    )
    expected = np.linalg.eigvalsh(mode.root.T @ covariance @ mode.root / len(draws))[-1]
    # 32 draws stand for four hundred: within a factor of two and a half
    assert expected / 2.5 < level.variance < 2.5 * expected
