"""The normal distribution nearest in expectation, where a classifier has few rows a parameter."""

import numpy as np
import pytest
from scipy import sparse

from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.optimizers import find_mode
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Flat, Normal
from skbayes_sgld.wide_rows import averaging


def wide_data(n, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) / np.sqrt(d) + rng.logistic(size=n) > 0
    return X, y.astype(float)


def test_the_averaged_gradient_vanishes_at_the_mean_and_the_precision_is_averaged():
    (X, y), temperature = wide_data(200, 140), 0.5
    posterior = GLMPosterior(sparse.csr_array(X), y, Bernoulli(), Normal(), intercept_at_mean=True)
    mode = find_mode(posterior, posterior.start())
    found = averaging.averaged_normal(posterior, mode.theta, temperature)
    assert found is not None
    mean, precision, _ = found
    root = np.linalg.inv(np.linalg.cholesky(precision))
    normals = np.random.default_rng(1).standard_normal((2000, len(mean)))
    draws, covariance = mean + np.sqrt(temperature) * normals @ root, root.T @ root
    slopes = posterior.grad(draws)
    # in units of the sds; the mode is more than an sd from the mean in the worst direction
    shift = covariance @ slopes.mean(axis=0) / np.sqrt(temperature * np.diag(covariance))
    assert np.abs(shift).max() < 0.5
    assert np.abs((mode.theta - mean) / np.sqrt(temperature * np.diag(covariance))).max() > 1.0
    # integration by parts: -E[slope (theta - mean)'] is the averaged curvature times the covariance
    moved = -(slopes - slopes.mean(axis=0)).T @ (draws - mean) / len(draws) / temperature
    assert np.trace(moved) / len(mean) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    "form, dtype, error", [("dense", np.float64, 1e-12), ("sparse", np.float32, 1e-6)]
)
def test_averages_are_sums_of_the_weighted_rows(form, dtype, error):
    X, y = wide_data(90, 7)
    weight = np.random.default_rng(3).uniform(0.0, 2.0, 90)
    columns = sparse.csr_array(X) if form == "sparse" else X
    posterior = GLMPosterior(columns, y, Bernoulli(), Normal(scale=0.7), sample_weight=weight)
    theta, variances = 0.3 * np.arange(8.0) - 1.0, np.linspace(0.1, 9.0, 90)
    grad, H, bends = averaging._error_averaged(posterior, theta, variances, dtype)
    A = np.column_stack([X, np.ones(90)])
    score, bend = Bernoulli().error_averaged(A @ theta, variances, y)
    precision = np.append(np.full(7, 1 / 0.7**2), 0.0)
    np.testing.assert_allclose(grad, (weight * score) @ A - precision * theta, rtol=error)
    expected = (A.T * (weight * bend)) @ A + np.diag(precision)
    np.testing.assert_allclose(H, expected, atol=error * np.abs(expected).max())
    np.testing.assert_allclose(bends, weight * bend, rtol=10 * error)


def test_it_is_left_where_the_mode_tells_enough():
    for n, d, far in ((40, 20, False), (1700, 310, False), (1400, 310, True)):
        posterior = GLMPosterior(*wide_data(n, d), Bernoulli(), Flat(), intercept_at_mean=True)
        assert posterior.facts.far_from_mode == far
    assert averaging.averaged_normal(posterior, np.zeros(posterior.n_params), 1.0) is not None
