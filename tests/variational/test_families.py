"""Every family: its draws, its entropy and its gradients are those of one distribution."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld.variational import FAMILIES

Q = 3
every_family = pytest.mark.parametrize("name", FAMILIES)


def parameters(family, n_chains=2, seed=0):
    return 0.5 * np.random.default_rng(seed).standard_normal((n_chains, family.n_params(Q)))


def dense(covariance):
    return np.diag(covariance) if covariance.ndim == 1 else covariance


@every_family
def test_the_names_are_one_a_parameter_and_differ(name):
    family = FAMILIES[name]()
    names = family.names(["a", "b", "c"])
    assert len(set(names)) == len(names) == family.n_params(Q) == len(family.log_scales(Q))
    assert names[:Q] == ["mean[a]", "mean[b]", "mean[c]"]


@every_family
def test_at_zero_it_is_the_standard_normal_distribution(name):
    family = FAMILIES[name]()
    phi = np.zeros((1, family.n_params(Q)))
    noise = np.random.default_rng(0).standard_normal((1, 5, Q))
    np.testing.assert_array_equal(family.transform(phi, noise), noise)
    np.testing.assert_array_equal(dense(family.covariance(phi[0])), np.eye(Q))


@every_family
def test_draws_have_the_mean_and_the_covariance(name):
    # exact for noise of exact moments: the axes, both signs
    family = FAMILIES[name]()
    phi = parameters(family)
    axes = np.sqrt(Q) * np.eye(Q)
    noise = np.tile(np.concatenate([axes, -axes]), (2, 1, 1))
    draws = family.transform(phi, noise)
    for c in range(2):
        np.testing.assert_allclose(draws[c].mean(axis=0), phi[c, :Q], atol=1e-12)
        found = np.cov(draws[c].T, ddof=0)
        np.testing.assert_allclose(found, dense(family.covariance(phi[c])), atol=1e-12)


@every_family
def test_the_entropy_is_that_of_the_covariance(name):
    family = FAMILIES[name]()
    phi = parameters(family)
    for c, value in enumerate(family.entropy(phi, Q)):
        expected = stats.multivariate_normal(cov=dense(family.covariance(phi[c]))).entropy()
        assert value == pytest.approx(expected, rel=1e-10)


@every_family
def test_the_gradient_is_the_derivative_of_what_is_drawn(name):
    family = FAMILIES[name]()
    phi = parameters(family)
    rng = np.random.default_rng(1)
    noise, weight = rng.standard_normal((2, 2, 4, Q))
    got = family.pull_back(phi, noise, weight)
    h = 1e-6
    for k in range(phi.shape[1]):
        step = h * np.eye(phi.shape[1])[k]
        change = family.transform(phi + step, noise) - family.transform(phi - step, noise)
        expected = (weight * change).sum(axis=(1, 2)) / (2 * h)
        np.testing.assert_allclose(got[:, k], expected, rtol=1e-6, atol=1e-8)
