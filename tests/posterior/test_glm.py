"""The posteriors: densities against scipy.stats, gradients against finite differences."""

import numpy as np
import pytest
from scipy import sparse, stats

from skbayes_sgld.posterior import (
    NOISE_PRIORS,
    PRIORS,
    Bernoulli,
    Categorical,
    FixedGaussian,
    Flat,
    Gaussian,
    GLMPosterior,
    InverseGamma,
    Laplace,
    Normal,
    Posterior,
)
from tests.numeric import derivative_by_chain

N, D = 12, 3
LIKELIHOODS = {
    "gaussian": Gaussian(),
    "fixed_gaussian": FixedGaussian(0.7),
    "bernoulli": Bernoulli(),
    "categorical": Categorical(3),
}


def data(likelihood, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * [1.0, 0.2, 30.0] + [0.0, 5.0, 100.0]
    labels = np.arange(N) % max(likelihood.n_predictors, 2)
    y = rng.standard_normal(N) if likelihood.quadratic else labels.astype(float)
    return X, y, rng.uniform(0.5, 2.0, N)


def make(likelihood, prior, noise_prior="inverse_gamma", weighted=True, **kwargs):
    X, y, weight = data(likelihood)
    noise = NOISE_PRIORS[noise_prior]().for_data(1.3) if likelihood.infers_noise else None
    return GLMPosterior(
        X, y, likelihood, prior, noise, sample_weight=weight if weighted else None, **kwargs
    )


def all_posteriors():
    for name, likelihood in LIKELIHOODS.items():
        for prior_name, prior in PRIORS.items():
            if prior.scaled_by_noise and not likelihood.infers_noise:
                continue
            noises = list(NOISE_PRIORS) if likelihood.infers_noise else ["inverse_gamma"]
            for noise in noises:
                for kwargs in ({}, {"center": True}, {"fit_intercept": False}):
                    label = "-".join([name, prior_name, noise, *kwargs])
                    yield pytest.param(likelihood, prior(), noise, kwargs, id=label)


every_posterior = pytest.mark.parametrize(
    "likelihood, prior, noise, kwargs", list(all_posteriors())
)


def some_theta(posterior, n_chains=3):
    rng = np.random.default_rng(1)
    return rng.standard_normal((n_chains, posterior.n_params)) * 0.05 + 0.02


@every_posterior
def test_gradients_curvatures_and_expansions_are_those_of_the_densities(
    likelihood, prior, noise, kwargs
):
    posterior = make(likelihood, prior, noise, **kwargs)
    theta, idx = some_theta(posterior), np.tile(np.arange(N), (3, 1))
    assert isinstance(posterior, Posterior)
    for density, grad in [
        (lambda t: posterior.log_likelihood(t).sum(axis=1), posterior.grad_log_likelihood),
        (lambda t: posterior.log_likelihood(t, idx[:, ::-1]), posterior.grad_log_likelihood),
        (posterior.log_prior, posterior.grad_log_prior),
        (posterior.log_density, posterior.grad),
    ]:
        expected = derivative_by_chain(lambda t, f=density: f(t).reshape(3, -1).sum(axis=1), theta)
        near_zero = 1e-6 * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(grad(theta), expected, rtol=1e-6, atol=near_zero)
    batch = posterior.grad_log_likelihood(theta, idx)
    np.testing.assert_allclose(batch, posterior.grad_log_likelihood(theta), rtol=1e-9)
    hessian = derivative_by_chain(posterior.grad, theta[:1])[0]
    H, close = posterior.curvature(theta[0]), 1e-5 * np.abs(hessian).max()
    np.testing.assert_allclose(H, -hessian, rtol=1e-5, atol=close)
    of_prior = np.zeros_like(H)
    posterior.add_prior_curvature(of_prior, theta[0])
    found = posterior.expand_likelihood(theta[0])
    grad = posterior.grad_log_likelihood(theta[:1])[0]
    np.testing.assert_allclose(found.grad, grad, rtol=1e-9)
    np.testing.assert_allclose(
        found.curvature, H - of_prior, rtol=1e-9, atol=1e-9 * np.abs(H).max()
    )
    known = posterior.expand_likelihood(theta[0], found.curvature)
    np.testing.assert_allclose(known.grad, grad, rtol=1e-9, atol=1e-9 * np.abs(grad).max())
    assert known.curvature is found.curvature
    if found.by_row:
        level, slope = found.by_row
        batches = posterior.bind_batches(1, N)
        rows = batches.gather(idx[None, :1])[0]
        expanded = level - slope * batches.local(theta[1:2], rows)[0, 0]
        by_row = batches.pullback(expanded[None, None], rows)[0]
        expected = grad - found.curvature @ (theta[1] - theta[0])
        np.testing.assert_allclose(by_row, expected, rtol=1e-8, atol=1e-9 * np.abs(grad).max())


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_sufficient_statistics_lose_nothing(center, offset):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 2)) + offset
    y = X @ [1.0, -2.0] + 1e-4 * rng.standard_normal(200)  # R^2 = 1 - 1e-8
    posterior = GLMPosterior(X, y, Gaussian(), Flat(), InverseGamma(1, 1), center=center)
    theta = np.r_[1.0 + 1e-5, -2.0, 0.0, np.log(1e-8)]
    if center:
        theta[2] = posterior.origin @ theta[:2]
    residual = y - X @ theta[:2]
    by_rows = np.sum(stats.norm(0, 1e-4).logpdf(residual))
    rounding = 1e-15 * max(offset, 1.0) ** 2 / 1e-8 if not center else 1e-6
    got = posterior.log_density(theta[None]) - posterior.log_prior(theta[None])
    assert got[0] == pytest.approx(by_rows, rel=1e-6, abs=max(1e-4, rounding))


def test_natural_parameters_come_back():
    for likelihood in LIKELIHOODS.values():
        posterior = make(likelihood, Normal(), center=True)
        theta = some_theta(posterior)
        if likelihood.n_predictors > 1:  # the common shift is taken out
            linear = theta.reshape(3, likelihood.n_predictors, -1)
            theta = (linear - linear.mean(1, keepdims=True)).reshape(3, -1)
        values = posterior.reported.values(theta)
        np.testing.assert_allclose(posterior.reported.theta(values), theta, atol=1e-10)
    X, _, _ = data(Bernoulli())
    posterior = make(Bernoulli(), Normal(), center=True)
    theta = some_theta(posterior)
    values = posterior.reported.values(theta)
    batches = posterior.bind_batches(3, N)
    u = batches.local(theta, batches.gather(np.tile(np.arange(N), (1, 3, 1)))[0])
    np.testing.assert_allclose(values[:, :D] @ X.T + values[:, D:], u[:, 0], atol=1e-10)


def test_the_pin_of_the_softmax_shift_moves_no_difference_between_classes():
    # adding to all classes alike changes no probability, so the pin must not push differences
    posterior = make(Categorical(3), Flat())
    theta = some_theta(posterior, 1)
    pull = posterior.grad_log_prior(theta).reshape(3, -1)
    np.testing.assert_allclose(pull, np.broadcast_to(pull[0], pull.shape), rtol=1e-12)
    shifted = theta + np.tile([0.1, -0.2, 0.05, 1.0], 3)
    np.testing.assert_allclose(
        posterior.log_likelihood(shifted), posterior.log_likelihood(theta), rtol=1e-9
    )
    assert posterior.log_prior(shifted) != pytest.approx(posterior.log_prior(theta))


@pytest.mark.parametrize(
    "likelihood, prior, rows, light, shares",
    [
        (Bernoulli(), Normal(), np.asarray, True, True),
        (Bernoulli(), Normal(), sparse.csr_array, True, False),
        (Bernoulli(), Laplace(), np.asarray, False, True),
        (Bernoulli(), Flat(), np.asarray, False, True),
        (Gaussian(), Normal(), np.asarray, False, False),  # the noise has a heavy tail
    ],
)
def test_tails_are_light_under_normal_priors_and_dense_rows_share_batches(
    likelihood, prior, rows, light, shares
):
    X, y, _ = data(likelihood)
    noise = InverseGamma(1.0, 1.0) if likelihood.infers_noise else None
    facts = GLMPosterior(rows(X), y, likelihood, prior, noise).facts
    assert (facts.light_tailed, facts.shares_batches) == (light, shares)
