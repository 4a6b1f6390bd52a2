"""Langevin dynamics over variational parameters, where everything is known in closed form."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld import sample
from skbayes_sgld.datasets import make_stochastic_volatility
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.own_models import CustomPosterior, StochasticVolatility, check_gradient
from skbayes_sgld.sampling import Minibatch
from skbayes_sgld.variational import FAMILIES, VariationalPosterior
from tests.references.targets import CorrelatedNormal

MEAN = np.array([1.0, -2.0, 0.5])
PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, -0.3], [0.0, -0.3, 0.5]])
NORMAL = CorrelatedNormal(MEAN, PRECISION)
NORMAL_FAMILIES = [name for name in FAMILIES if name != "gamma"]


class Quartic:
    """``-sum x^4 / 4``: not a quadratic, so the bank of noise is an approximation."""

    n_samples, n_params, param_names = 0, 2, ["a", "b"]

    def log_likelihood(self, theta, idx=None):
        return np.zeros((len(theta), 0))

    def grad_log_likelihood(self, theta, idx=None):
        return np.zeros_like(theta)

    def log_prior(self, theta):
        return -0.25 * (theta**4).sum(axis=1)

    def grad_log_prior(self, theta):
        return -(theta**3)


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_are_those_of_the_bound(name):
    check_gradient(VariationalPosterior(Quartic(), name, n_pairs=16))
    check_gradient(VariationalPosterior(NORMAL, name, over=["x0", "x2"], n_pairs=8))
    if name == "isotropic":
        check_gradient(VariationalPosterior(NORMAL, name, over=["x1", "x2"], tied="x0", n_pairs=8))


@pytest.mark.parametrize("name", NORMAL_FAMILIES)
def test_on_a_normal_posterior_the_bound_is_exact(name):
    elbo = VariationalPosterior(NORMAL, name)
    phi = 0.3 * np.random.default_rng(0).standard_normal((4, elbo.n_params))
    for one, value in zip(phi, elbo.log_density(phi), strict=True):
        covariance = elbo.family.covariance(one)
        covariance = np.diag(covariance) if covariance.ndim == 1 else covariance
        z = one[:3] - MEAN
        entropy = stats.multivariate_normal(cov=covariance).entropy()
        expected = -0.5 * (z @ PRECISION @ z + np.trace(PRECISION @ covariance)) + entropy
        assert value == pytest.approx(expected, rel=1e-10)


def test_minibatches_of_the_bank_are_unbiased():
    elbo = VariationalPosterior(Quartic(), n_pairs=32)
    rng = np.random.default_rng(0)
    phi = np.tile(rng.standard_normal(4), (3000, 1))
    gradient = Minibatch().bind(elbo, None)
    batches = gradient(phi, gradient.prepare(rng.integers(0, 32, (1, 3000, 2)))[0])
    error = batches.std(axis=0) / np.sqrt(3000)
    assert np.all(np.abs(batches.mean(axis=0) - elbo.grad(phi[:1])[0]) < 4.5 * error + 1e-12)


def test_sampled_means_are_the_posterior_scales_half_normal_and_draws_from_q_count_twice():
    elbo = VariationalPosterior(NORMAL, n_pairs=8)
    phi = sample(elbo, "hmc", n_draws=400, random_state=0).values
    np.testing.assert_array_equal(elbo.at_means(phi[0]), phi[0, :, :3])
    sd, conditional = np.sqrt(np.diag(np.linalg.inv(PRECISION))), np.diag(PRECISION) ** -0.5
    ess = effective_sample_size(phi)[:3]
    assert np.all(ess > 300)
    means = phi[..., :3]
    assert np.all(np.abs(means.mean((0, 1)) - MEAN) < 4.5 * sd / np.sqrt(ess))
    assert np.all(np.abs(np.log(means.std((0, 1)) / sd)) < 4.5 / np.sqrt(2 * ess))
    expected = conditional * np.sqrt(2.0 / np.pi)
    error = conditional * np.sqrt((1.0 - 2.0 / np.pi) / effective_sample_size(phi, "mean")[3:])
    assert np.all(np.abs(np.exp(phi[..., 3:]).mean((0, 1)) - expected) < 4.5 * error)
    theta = elbo.draw(phi.reshape(-1, 6), random_state=0)
    twice = sd**2 + conditional**2
    assert np.all(np.abs(theta.var(axis=0) / twice - 1.0) < 4.5 * np.sqrt(3.0 / ess))


def test_in_the_posts_model_the_entropy_undoes_the_normaliser_of_the_walk():
    # at equal means nothing of the walk is left in sigma's derivative but sigma's own prior
    returns = make_stochastic_volatility(30, random_state=0).returns
    walk = CustomPosterior(
        StochasticVolatility(returns).model, transforms={"sigma": "positive", "nu": "positive"}
    )
    over = ["log_volatility"]
    elbo = VariationalPosterior(walk, "isotropic", over=over, tied="log_sigma", n_pairs=64)
    assert elbo.param_names[:3] == ["log_sigma", "log_nu", "mean[log_volatility[0]]"]
    assert elbo.n_params == walk.n_params
    phi = np.full((1, elbo.n_params), -4.0)
    sigma = 1e-4
    phi[0, 0] = np.log(sigma)
    own_prior = 1.0 - 50.0 * sigma  # of the exponential density of sigma, and the Jacobian
    # the first step, from 0, has an sd of its own, so one entropy of 30 is not undone
    slope = elbo.grad(phi)[0, 0]
    assert slope == pytest.approx(own_prior + 1.0, abs=0.05)
    # the true density's: -log sigma a step
    assert walk.grad(phi)[0, 0] == pytest.approx(own_prior - 29.0, abs=0.05)


def test_draws_start_where_they_are_told():
    elbo = VariationalPosterior(NORMAL, over=["x2", "x0"], start=[1.0, 2.0, 3.0], scale=0.1)
    assert elbo.param_names == ["x1", "mean[x0]", "mean[x2]", "log_sd[x0]", "log_sd[x2]"]
    np.testing.assert_allclose(elbo.start(), [2.0, 1.0, 3.0, np.log(0.1), np.log(0.1)])
    np.testing.assert_allclose(elbo.at_means(elbo.start()[None]), [[1.0, 2.0, 3.0]])


@pytest.mark.parametrize(
    "params, match",
    [
        ({"family": "normal"}, r"family='normal' is not known.*'full_rank'"),
        ({"over": ["y"]}, r"over=\['y'\]: 'y' is not a parameter; there are x0"),
        ({"tied": "x0"}, r"tied='x0'.*isotropic"),
        ({"family": "isotropic", "tied": "x0"}, r"tied='x0'.*there are none"),
        ({"start": [0.0]}, "start has .* must be 3"),
        ({"scale": 0.0}, r"scale=0\.0"),
        ({"n_pairs": 0}, r"n_pairs=0"),
    ],
)
def test_what_cannot_be_used_is_refused(params, match):
    with pytest.raises((ValueError, TypeError), match=match):
        VariationalPosterior(NORMAL, **params)
