"""Posteriors of linear models: derivatives of every kind of prior, likelihood and coordinates."""

import numpy as np
import pytest
from scipy import sparse, stats

from skbayes_sgld.likelihoods import Bernoulli, Categorical, FixedNormalNoise, NormalNoise
from skbayes_sgld.posterior import GLMPosterior, Posterior
from skbayes_sgld.posterior.further_rows import under_priors
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.priors import (
    PRIORS,
    Cauchy,
    ConjugateNormal,
    Flat,
    InverseGamma,
    Laplace,
    Normal,
)
from tests.numeric import assert_derivative, derivative

N, D = 30, 3
V = np.array([[4.0, 1.2, -0.5], [1.2, 1.0, 0.1], [-0.5, 0.1, 0.25]])
MU = np.array([0.3, -0.2, 0.1])
LIKELIHOODS = {
    "gaussian": NormalNoise(),
    "known noise": FixedNormalNoise(0.7),
    "bernoulli": Bernoulli(),
    "three classes": Categorical(3),
}
PAIRS = {  # of the coefficients, of the intercept
    "V": (ConjugateNormal(covariance=V, location=MU), Flat()),
    "V, conjugate": (ConjugateNormal(covariance=V), ConjugateNormal(scale=2.0, location=0.4)),
    "V, normal": (ConjugateNormal(covariance=V), Normal(scale=0.5, location=-1.0)),
    "covariance": (Normal(covariance=V, location=MU), Flat()),
    "covariance, normal": (Normal(covariance=V, location=MU), Normal(scale=2.0, location=0.4)),
    "normal, conjugate": (Normal(), ConjugateNormal(scale=2.0)),
    "normal, laplace": (Normal(), Laplace(scale=0.3, location=0.1)),
    "flat, student_t": (Flat(), PRIORS["student_t"](scale=0.7)),
    "laplace, cauchy": (Laplace(), Cauchy(location=0.5)),
}
FORMS = {
    "plain": {},
    "centred": {"intercept_at_mean": True},
    "no intercept": {"fit_intercept": False},
    "beside a site": {"intercept_at_mean": True, "beside_a_site": True},
}
CASES = [("gaussian", pair, form) for pair in PAIRS for form in ("plain", "centred")]
CASES += [("three classes", "covariance, normal", form) for form in FORMS]
CASES += [
    ("three classes", "flat, student_t", "centred"),
    ("bernoulli", "laplace, cauchy", "plain"),
    ("bernoulli", "normal, laplace", "no intercept"),
    ("bernoulli", "normal, laplace", "beside a site"),
    ("known noise", "normal, laplace", "centred"),
]


def make(likelihood, pair, beside_a_site=False, **options):
    """Posterior of weighted rows, on request beside a quadratic that stands for further ones."""
    rng, family = np.random.default_rng(0), LIKELIHOODS[likelihood]
    X = rng.standard_normal((N, D)) + [0.0, 3.0, -1.0]
    y = rng.standard_normal(N)
    if not family.quadratic:
        y = (np.arange(N) % max(family.n_predictors, 2)).astype(float)
    prior, intercept = PAIRS[pair]
    noise = InverseGamma(2.0, 1.0) if family.infers_noise else None
    weight = rng.uniform(0.5, 2.0, N)
    options = {"intercept_prior": intercept, "sample_weight": weight} | options
    posterior = GLMPosterior(X, y, family, prior, noise, **options)
    if beside_a_site:
        P = posterior.n_params
        at, slope, *root = np.random.default_rng(3).standard_normal((P + 2, P))
        site = Expansion(at, slope, np.array(root) @ np.array(root).T)
        posterior = under_priors(posterior, Normal(1.0), Normal(2.0, 0.4), site)
    return posterior


def some_theta(posterior, n_chains=3):
    rng = np.random.default_rng(1)
    return rng.standard_normal((n_chains, posterior.n_params)) * 0.3 + 0.05


@pytest.mark.parametrize("likelihood, pair, form", CASES, ids=map(": ".join, CASES))
def test_gradients_curvatures_and_expansions_are_those_of_the_densities(likelihood, pair, form):
    posterior = make(likelihood, pair, **FORMS[form])
    theta, idx = some_theta(posterior), np.tile(np.arange(N), (3, 1))
    assert isinstance(posterior, Posterior)
    for density, grad in [
        (lambda t: posterior.log_likelihood(t).sum(axis=1), posterior.grad_log_likelihood),
        (posterior.log_prior, posterior.grad_log_prior),
        (posterior.log_density, posterior.grad),
    ]:
        expected = derivative(density, theta)[[0, 1, 2], [0, 1, 2]]
        assert_derivative(grad(theta), expected, "gradient")
    by_row = posterior.log_likelihood(theta)
    batch = posterior.log_likelihood(theta, idx[:, ::-1])
    np.testing.assert_allclose(batch[:, ::-1], by_row, rtol=1e-9)
    half = posterior.subset(slice(N // 2)).log_likelihood(theta)
    np.testing.assert_allclose(half, 2.0 * by_row[:, : N // 2], rtol=1e-9)
    batch = posterior.grad_log_likelihood(theta, idx)
    np.testing.assert_allclose(batch, posterior.grad_log_likelihood(theta), rtol=1e-9)
    hessian = -derivative(lambda t: posterior.grad(t[None])[0], theta[0])
    H, of_prior = posterior.curvature(theta[0]), np.zeros_like(hessian)
    assert_derivative(H, hessian, "curvature")
    posterior.add_prior_curvature(of_prior, theta[0])
    close = {"rtol": 1e-9, "atol": 1e-9 * np.abs(H).max()}
    np.testing.assert_allclose(
        posterior.prior_diagonal(theta[0]), np.diagonal(of_prior), rtol=1e-12
    )
    found = posterior.expand_likelihood(theta[0])
    grad = posterior.grad_log_likelihood(theta[:1])[0]
    np.testing.assert_allclose(found.grad, grad, **close)
    np.testing.assert_allclose(found.curvature, H - of_prior, **close)
    value = posterior.log_likelihood(theta[:1]).sum()
    np.testing.assert_allclose(found.value, value, rtol=1e-9)
    whole = posterior.expand(theta[0])
    np.testing.assert_allclose(whole.value, posterior.log_density(theta[:1])[0], rtol=1e-9)
    np.testing.assert_allclose(whole.grad, posterior.grad(theta[:1])[0], **close)
    known = posterior.expand_likelihood(theta[0], found.curvature)
    np.testing.assert_allclose(known.grad, grad, **close)
    assert known.curvature is found.curvature
    if found.of_rows:
        level, slope = found.of_rows
        batches = posterior.bind_batches(1, N)
        rows = batches.gather(idx[None, :1])[0]
        expanded = level - slope * batches.local(theta[1:2], rows)[0, 0]
        by_row = batches.pullback(expanded[None, None], rows)[0]
        expected = grad - found.curvature @ (theta[1] - theta[0])
        np.testing.assert_allclose(by_row, expected, **close)
    by_rows = posterior.row_sum().expand(theta[0])  # of normal models, not by their statistics
    np.testing.assert_allclose(by_rows.curvature, found.curvature, **close)
    mean = np.mean([posterior.expand_likelihood(each).curvature for each in theta], axis=0)
    close = {"rtol": 1e-9, "atol": 1e-9 * np.abs(mean).max()}
    np.testing.assert_allclose(posterior.expand_likelihood(theta).curvature, mean, **close)
    if posterior.linear_prior.normal and not posterior.n_own:
        np.testing.assert_allclose(posterior.mean_curvature(theta), mean + of_prior, **close)


@pytest.mark.parametrize("center, offset", [(True, 1e6), (False, 0.0)])
def test_sufficient_statistics_lose_nothing(center, offset):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 2)) + offset
    y = X @ [1.0, -2.0] + 1e-4 * rng.standard_normal(200)  # R^2 = 1 - 1e-8
    posterior = GLMPosterior(
        X, y, NormalNoise(), Flat(), InverseGamma(1, 1), intercept_at_mean=center
    )
    theta = np.r_[1.0 + 1e-5, -2.0, 0.0, np.log(1e-8)]
    if center:
        theta[2] = posterior.x_mean @ theta[:2]
    by_rows = np.sum(stats.norm(0, 1e-4).logpdf(y - X @ theta[:2]))
    got = posterior.log_density(theta[None]) - posterior.log_prior(theta[None])
    assert got[0] == pytest.approx(by_rows, rel=1e-6, abs=1e-4)


def test_the_pin_of_the_softmax_shift_moves_no_difference_between_classes():
    # adding to all classes alike changes no probability, so the pin must not push differences
    posterior = make("three classes", "flat, student_t", intercept_prior=Flat())
    theta = some_theta(posterior, 1)
    pull = posterior.grad_log_prior(theta).reshape(3, -1)
    np.testing.assert_allclose(pull, np.broadcast_to(pull[0], pull.shape), rtol=1e-12)
    for shift in np.eye(D + 1):  # of each coefficient and the intercept, in all classes
        shifted = theta + np.tile(shift, 3)
        by_row = posterior.log_likelihood(shifted)
        np.testing.assert_allclose(by_row, posterior.log_likelihood(theta), rtol=1e-9)
        assert posterior.log_prior(shifted) != pytest.approx(posterior.log_prior(theta))


@pytest.mark.parametrize(
    "likelihood, prior, rows, light, shares",
    [
        (Bernoulli(), Normal(), np.asarray, True, True),
        (Bernoulli(), Normal(), sparse.csr_array, True, False),
        (Bernoulli(), Laplace(), np.asarray, False, True),
        (Bernoulli(), Flat(), np.asarray, False, True),
        (NormalNoise(), Normal(), np.asarray, False, False),  # the noise has a heavy tail
    ],
    ids=["normal prior", "sparse rows", "laplace prior", "flat prior", "noise"],
)
def test_tails_are_light_under_normal_priors_and_dense_rows_share_batches(
    likelihood, prior, rows, light, shares
):
    X, y = np.random.default_rng(0).standard_normal((12, D)), np.arange(12) % 2.0
    noise = InverseGamma(1.0, 1.0) if likelihood.infers_noise else None
    facts = GLMPosterior(rows(X), y, likelihood, prior, noise).facts
    assert (facts.light_tailed, facts.shares_batches) == (light, shares)
