"""The normal distribution that matches a posterior's moments, with few rows per parameter."""

import numpy as np
import pytest
from scipy import sparse

from skbayes_sgld.likelihoods import Bernoulli, Binomial, Poisson
from skbayes_sgld.likelihoods.binomial import as_totals
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Flat, Normal
from skbayes_sgld.wide_rows import matching

Y = {
    "labels": (Bernoulli(), np.array([0.0, 1.0, 1.0, 0.0]), 0.0),
    "totals": (Binomial(), as_totals(np.array([0, 3, 40, 7.0]), np.array([5, 4, 40, 90])), -1.0),
    "counts": (Poisson(), np.array([0.0, 1.0, 30.0, 200.0]), np.array([-2.0, 0.0, 3.4, 5.3])),
}


def wide_data(n, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) / np.sqrt(d) + rng.logistic(size=n) > 0
    return X, y.astype(float)


@pytest.mark.parametrize("kind", Y)
def test_moments_of_rows_in_their_cavities_are_those_of_a_fine_grid(kind):
    (likelihood, y, near), temperature = Y[kind], 0.7
    weight, offset = np.array([1.0, 0.3, 2.0, 1.0]), np.array([0.0, 0.5, -0.5, 0.2])
    kernel = likelihood.bind(RowValues(y, weight=weight, offset=offset))
    for sd in (0.05, 1.0, 30.0):
        cavity = near + np.array([3.0, -2.0, 0.5, 1.0]) * min(sd, 4.0)
        precision = np.full(4, sd**-2.0)
        mean, variance = matching.site_moments(kernel, temperature, cavity, precision)
        u = cavity + sd * np.linspace(-12.0, 12.0, 60_001)[:, None]
        with np.errstate(over="ignore"):
            value = kernel.derivatives(u[:, None].copy(), 0)[0] / temperature
        value -= 0.5 * precision * np.square(u - cavity)
        density = np.exp(value - value.max(axis=0))
        density /= density.sum(axis=0)
        expected = (density * u).sum(axis=0)
        spread = (density * np.square(u - expected)).sum(axis=0)
        np.testing.assert_allclose(mean / np.sqrt(spread), expected / np.sqrt(spread), atol=1e-3)
        np.testing.assert_allclose(variance, spread, rtol=2e-3)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_moments_of_two_coefficients_are_those_of_a_grid(form, temperature):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((8, 2)) * [3.0, 1.0]
    y, weight = np.array([1.0, 1, 0, 1, 0, 1, 1, 0]), rng.uniform(0.5, 2.0, 8)
    columns = sparse.csr_array(X) if form == "sparse" else X
    posterior = GLMPosterior(
        columns, y, Bernoulli(), Normal(scale=4.0), sample_weight=weight, fit_intercept=False
    )
    found = matching.matched_normal(posterior, None, temperature)
    axis = np.linspace(-25.0, 25.0, 401)
    theta = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    u = (theta @ X.T) * (1.0 - 2.0 * y)
    value = -np.logaddexp(0.0, u) @ weight - np.square(theta).sum(axis=1) / 32.0
    density = np.exp((value - value.max()) / temperature)
    density /= density.sum()
    mean = density @ theta
    covariance = (theta - mean).T @ ((theta - mean) * density[:, None])
    sds = np.sqrt(np.diag(covariance))
    # eight rows are few for a central limit; the mode is 0.3 to 0.5 sds away
    np.testing.assert_allclose(found.mean / sds, mean / sds, atol=0.12)
    matched = temperature * np.linalg.inv(found.precision)
    np.testing.assert_allclose(np.sqrt(np.diag(matched)) / sds, 1.0, atol=0.1)


def test_with_many_columns_mean_and_variances_are_those_of_trajectories():
    X, y = wide_data(400, 200)
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(scale=1.0), intercept_at_mean=True)
    found = matching.matched_normal(posterior, None, 1.0)
    # leapfrog steps in double precision, in the metric of the curvature with all rows at 1 / 4
    root = np.linalg.cholesky(np.linalg.inv(0.05 * X.T @ X + np.eye(200)))
    A, rng = np.column_stack([X - X.mean(axis=0), np.ones(400)]), np.random.default_rng(1)
    full = np.zeros((201, 201))
    full[:200, :200], full[200, 200] = root, 0.3
    center = found.mean + (found.mean[:200] @ X.mean(axis=0)) * (np.arange(201) == 200)

    def grad(z):
        theta = center + z @ full.T
        score = y - 1.0 / (1.0 + np.exp(-theta @ A.T))
        return (score @ A - theta * (np.arange(201) < 200)) @ full

    def value(z):
        theta = center + z @ full.T
        rows = np.logaddexp(0.0, (1.0 - 2.0 * y) * (theta @ A.T)).sum(axis=1)
        return -rows - 0.5 * np.square(theta[:, :200]).sum(axis=1)

    z, kept = np.zeros((64, 201)), []
    for number in range(40):
        p = rng.standard_normal(z.shape)
        end, q = z, p + 0.1 * grad(z)
        for _ in range(8):
            end = end + 0.2 * q
            q = q + 0.2 * grad(end)
        q = q - 0.1 * grad(end)
        gain = value(end) - value(z) + 0.5 * (np.square(p) - np.square(q)).sum(axis=1)
        z = np.where((np.log(rng.random(64)) < gain)[:, None], end, z)
        kept += [center + z @ full.T] if number >= 10 else []
    draws = np.stack(kept)[..., :200]
    apart = draws.mean(axis=(0, 1)) - found.mean[:200]
    sds = np.sqrt(np.diag(np.linalg.inv(found.precision)))[:200]
    assert np.sqrt(np.square(apart / sds).mean()) < 0.1
    ratio = draws.reshape(-1, 200).var(axis=0) / np.square(sds)
    assert ratio.mean() == pytest.approx(1.0, abs=0.05)


def test_it_is_left_where_the_mode_tells_enough():
    for n, d, far in ((40, 20, False), (1700, 310, False), (1400, 310, True)):
        posterior = GLMPosterior(*wide_data(n, d), Bernoulli(), Flat(), intercept_at_mean=True)
        assert posterior.facts.far_from_mode == far
    assert matching.matched_normal(posterior, None, 1.0) is not None
