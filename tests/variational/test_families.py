"""Every family: its draws, its entropy and its gradients are those of one distribution."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld.variational import FAMILIES
from tests.numeric import derivative_by_chain

Q = 3
every_family = pytest.mark.parametrize("name", FAMILIES)
every_normal_family = pytest.mark.parametrize(
    "name", [name for name in FAMILIES if name != "gamma"]
)


def parameters(family, n_chains=2, seed=0):
    return 0.5 * np.random.default_rng(seed).standard_normal((n_chains, family.n_params(Q)))


def dense(covariance):
    return np.diag(covariance) if covariance.ndim == 1 else covariance


@every_family
def test_the_names_are_one_a_parameter_and_differ(name):
    family = FAMILIES[name]()
    names = family.names(["a", "b", "c"])
    assert len(set(names)) == len(names) == family.n_params(Q) == len(family.log_scales(Q))
    assert all(name.endswith(f"[{v}]") for name, v in zip(names, "abc", strict=False))


@every_normal_family
def test_draws_and_entropy_are_those_of_the_mean_and_the_covariance(name):
    # exact for noise of exact moments: the axes, both signs
    family = FAMILIES[name]()
    phi = parameters(family)
    axes = np.sqrt(Q) * np.eye(Q)
    noise = np.tile(np.concatenate([axes, -axes]), (2, 1, 1))
    np.testing.assert_array_equal(family.transform(np.zeros_like(phi), noise), noise)
    draws, entropy = family.transform(phi, noise), family.entropy(phi, Q)
    for c in range(2):
        covariance = dense(family.covariance(phi[c]))
        np.testing.assert_allclose(draws[c].mean(axis=0), phi[c, :Q], atol=1e-12)
        np.testing.assert_allclose(np.cov(draws[c].T, ddof=0), covariance, atol=1e-12)
        expected = stats.multivariate_normal(cov=covariance).entropy()
        assert entropy[c] == pytest.approx(expected, rel=1e-10)


@every_family
def test_gradients_are_derivatives_of_what_is_drawn_and_of_the_entropy(name):
    family = FAMILIES[name]()
    phi = parameters(family)
    noise, weight = np.random.default_rng(1).standard_normal((2, 2, 4, Q))
    slope = derivative_by_chain(
        lambda phi: (weight * family.transform(phi, noise)).sum(axis=(1, 2)), phi, h=1e-6
    )
    np.testing.assert_allclose(family.pull_back(phi, noise, weight), slope, rtol=1e-6, atol=1e-8)
    slope = derivative_by_chain(lambda phi: family.entropy(phi, Q), phi)
    np.testing.assert_allclose(family.grad_entropy(phi, Q), slope, rtol=1e-6, atol=1e-8)


# ---- gamma ---------------------------------------------------------------------------------------

MEANS, CVS = np.array([0.3, 2.0, 50.0]), np.array([0.05, 1.0, 3.0])
PHI = np.concatenate([np.log(MEANS), np.log(CVS)])[None]
GAMMAS = [stats.gamma(cv**-2.0, scale=m * cv**2) for m, cv in zip(MEANS, CVS, strict=True)]


def test_exponentials_of_its_variables_are_gamma_distributed():
    noise = np.linspace(-5.0, 5.0, 101)
    theta = FAMILIES["gamma"]().transform(PHI, np.repeat(noise[None, :, None], Q, axis=2))
    for j, gamma in enumerate(GAMMAS):
        for tail, sign in ((gamma.logcdf, 1.0), (gamma.logsf, -1.0)):
            found, expected = tail(np.exp(theta[0, :, j])), stats.norm.logcdf(sign * noise)
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


def test_its_moments_and_entropy_are_those_of_logarithms_of_gamma_variables():
    family = FAMILIES["gamma"]()
    mean, variance, entropy = family.mean(PHI[0], Q), family.covariance(PHI[0]), 0.0
    for j, gamma in enumerate(GAMMAS):
        at = np.log(gamma.ppf((np.arange(20_000) + 0.5) / 20_000))
        assert mean[j] == pytest.approx(at.mean(), abs=1e-3)
        assert variance[j] == pytest.approx(at.var(), rel=1e-2)
        entropy += gamma.entropy() - mean[j]  # of x, less the mean log Jacobian
    assert family.entropy(PHI, Q)[0] == pytest.approx(entropy, rel=1e-8)


def test_of_a_large_coefficient_of_variation_the_smallest_draws_are_finite():
    noise = np.array([-6.0, 0.0, 6.0])[None, :, None]
    theta = FAMILIES["gamma"]().transform(np.array([[0.0, np.log(50.0)]]), noise)
    assert np.isfinite(theta).all() and np.all(np.diff(theta[0, :, 0]) > 0)
