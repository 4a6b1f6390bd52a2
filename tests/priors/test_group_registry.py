"""Every prior of effects of groups: gradients of its density, and draws that follow it."""

import numpy as np
import pytest

from skbayes_sgld.priors import GROUP_PRIORS


def check_group_prior(name):
    """Check the prior of this name for two correlated effects."""
    covariance = GROUP_PRIORS[name]().for_term(np.array([2.0, 0.5]), np.array([0.3, 0.1]))
    rng, m = np.random.default_rng(0), covariance.n_hyper
    h = 0.7 * rng.normal(size=(5, m))
    value, grad = covariance.value_and_grad(h)
    weights = rng.normal(size=(5, 2, 2))
    slope = covariance.pull_back(h, weights)
    for k in range(m):
        up, down = h.copy(), h.copy()
        up[:, k], down[:, k] = h[:, k] + 1e-6, h[:, k] - 1e-6
        change = (covariance.value_and_grad(up)[0] - covariance.value_and_grad(down)[0]) / 2e-6
        np.testing.assert_allclose(change, grad[:, k], atol=1e-6, err_msg="gradient of the density")
        roots = covariance.root(up) - covariance.root(down)
        np.testing.assert_allclose(
            (np.tril(weights) * roots).sum((1, 2)) / 2e-6,
            slope[:, k],
            atol=1e-6,
            err_msg="gradient of the factor",
        )
    # the quantiles of draws of each hyperparameter, of which scales are folded to positive ones
    draws, grid = (
        np.abs([covariance.sample(rng) for _ in range(20000)]),
        np.linspace(0.0, 30.0, 6001),
    )
    for k in range(m):
        points = np.zeros((len(grid), m))
        points[:, k] = grid
        density = np.exp(covariance.value_and_grad(points)[0])
        cdf = np.cumsum(density) - 0.5 * density
        expected = np.interp([0.1, 0.5, 0.9], cdf / cdf[-1], grid)
        found = np.mean(draws[:, k, None] < expected, axis=0)
        np.testing.assert_allclose(
            found, [0.1, 0.5, 0.9], atol=0.015, err_msg="draws of the density"
        )
    reported = covariance.to_reported(h)
    again = covariance.root(covariance.from_reported(reported))
    for roots in (covariance.root(h), again):
        cov = roots @ roots.swapaxes(1, 2)
        sds = np.sqrt(np.einsum("cii->ci", cov))
        np.testing.assert_allclose(sds, reported[:, :2], rtol=1e-9, err_msg="reported sds")
        np.testing.assert_allclose(cov[:, 0, 1] / sds.prod(axis=1), reported[:, 2], atol=1e-9)
    assert np.isfinite(value).all()


@pytest.mark.parametrize("name", GROUP_PRIORS)
def test_a_prior_of_groups_has_its_density(name):
    check_group_prior(name)
