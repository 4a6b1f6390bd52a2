"""Priors put together: a matrix of covariances, a prior on the intercept, the classes' shift."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld.likelihoods import Bernoulli, FixedNormalNoise
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.propriety import ImproperPosteriorError, check_proper
from skbayes_sgld.priors import ConjugateNormal, Flat, Laplace, Normal
from skbayes_sgld.sampling.tuning.mode import structured_metric
from tests.posterior.test_glm import PAIRS, D, V, make, some_theta


def density_by_scipy(pair, coef, intercept, gamma):
    """The log prior of one predictor's parameters, from scipy.stats."""
    prior, of_intercept = PAIRS[pair]
    noise = np.exp(gamma) if prior.scaled_by_noise else 1.0
    location = np.broadcast_to(prior.location, D)
    value = stats.multivariate_normal(location, noise * V).logpdf(coef)
    if of_intercept.flat:
        return value
    noise = np.exp(gamma) if of_intercept.scaled_by_noise else 1.0
    sd = of_intercept.scale * np.sqrt(noise)
    return value + stats.norm(of_intercept.location, sd).logpdf(intercept)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(
    "likelihood, pair",
    [
        ("gaussian", "V"),
        ("gaussian", "V, conjugate"),
        ("gaussian", "V, normal"),
        ("gaussian", "covariance, normal"),
        ("three classes", "covariance, normal"),
    ],
)
def test_the_prior_acts_on_the_intercept_at_zero(likelihood, pair, center):
    posterior = make(likelihood, pair, intercept_at_mean=center)
    theta, K = some_theta(posterior, 4), posterior.n_predictors
    linear = theta[:, : K * (D + 1)].reshape(4, K, D + 1)
    shift = linear[..., :D] @ posterior.x_mean if center else np.zeros((4, K))
    expected = [
        sum(
            density_by_scipy(pair, row[:D], row[D] - shift[c, k], theta[c, -1])
            for k, row in enumerate(linear[c])
        )
        for c in range(4)
    ]
    got = posterior.log_prior(theta)
    if posterior.noise_prior is not None:
        got -= posterior.noise_prior.log_density(theta[:, -1])
    np.testing.assert_allclose(got - got[0], np.subtract(expected, expected[0]), rtol=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {"intercept_prior": Normal(0.7), "intercept_at_mean": True},
        {"sample_weight": np.linspace(0.5, 2.0, 5), "intercept_at_mean": True},
        {"sample_weight": np.linspace(0.5, 2.0, 5), "fit_intercept": False},
    ],
    ids=["intercept prior", "weights", "no intercept"],
)
def test_a_prior_of_many_columns_makes_the_structured_metric_exact(options):
    X, y = np.random.default_rng(0).standard_normal((5, 8)) + 2.0, np.arange(5) % 2.0
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(), **options)
    theta = some_theta(posterior, 1)[0]
    diagonal, factor = posterior.curvature_factor(theta)
    H = posterior.curvature(theta)
    close = {"rtol": 1e-6, "atol": 1e-6 * np.abs(H).max()}
    np.testing.assert_allclose(np.diag(diagonal) + factor.T @ factor, H, **close)
    metric, whole = structured_metric(posterior, theta)
    np.testing.assert_allclose(metric.scale(H), np.eye(len(H)), atol=1e-6)
    np.testing.assert_allclose(whole, np.diagonal(H), rtol=1e-7)


@pytest.mark.parametrize("center", [False, True])
def test_a_smoothed_intercept_prior_is_rounded_over_the_width_of_the_intercept_at_zero(center):
    posterior = make("bernoulli", "normal, laplace", intercept_at_mean=center)
    spread = np.array([0.1, 0.1, 0.1, 0.4])
    smooth = posterior.averaged_over(spread)
    theta = some_theta(posterior, 1)
    difference = (smooth.log_prior(theta) - posterior.log_prior(theta))[0]
    x_mean = posterior.x_mean if center else np.zeros(D)
    at, b = theta[0, -1] - theta[0, :D] @ x_mean - 0.1, 0.3
    width = np.sqrt(0.4**2 + np.sum(np.square(0.1 * x_mean)))
    z = np.linspace(-9, 9, 20_001)
    folded = np.average(np.abs(at + width * z), weights=np.exp(-0.5 * z**2))
    assert difference == pytest.approx((np.abs(at) - folded) / b, abs=1e-6)


def test_a_proper_prior_on_the_intercept_lets_a_constant_column_stand():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(20), rng.standard_normal(20)])
    y = rng.standard_normal(20)
    for intercept, proper in ((Flat(), False), (Normal(), True)):
        posterior = GLMPosterior(X, y, FixedNormalNoise(1.0), Flat(), intercept_prior=intercept)
        if proper:
            check_proper(posterior)
            assert np.linalg.eigvalsh(posterior.curvature(np.zeros(3)))[0] > 0
        else:
            with pytest.raises(ImproperPosteriorError, match="constant"):
                check_proper(posterior)


@pytest.mark.parametrize(
    "prior, message",
    [
        (Normal(covariance=np.eye(2)), r"prior\.covariance has shape \(2, 2\).*\(3, 3\)"),
        (Normal(covariance=np.ones(3)), r"prior\.covariance has shape \(3,\).*\(3, 3\)"),
        (Normal(covariance=np.diag([1.0, 1.0, -1.0])), "smallest eigenvalue -1"),
        (Normal(covariance=np.ones((3, 3))), "smallest eigenvalue.*positive definite"),
        (Normal(covariance=np.triu(np.ones((3, 3)))), "not symmetric.*positive definite"),
        (ConjugateNormal(covariance=np.full((3, 3), np.nan)), "finite"),
        (Normal(covariance="V"), "not a matrix of numbers"),
        (Normal(scale=V), r"prior\.scale has shape \(3, 3\).*prior\.covariance"),
        (Normal(scale=2.0, covariance=V), r"scale=2\.0 is not used beside prior\.covariance"),
        (Laplace(scale=np.ones((3, 3))), r"prior\.scale has shape \(3, 3\)"),
    ],
)
def test_matrices_that_cannot_be_used_are_named(prior, message):
    rows = np.ones((5, 3)), np.arange(5.0)
    with pytest.raises((ValueError, TypeError), match=message):
        GLMPosterior(*rows, FixedNormalNoise(1.0), prior)


def test_an_intercept_prior_that_cannot_be_used_is_named():
    rows, intercept_prior = (np.ones((5, 3)), np.arange(5.0)), Normal(scale=-1.0)
    with pytest.raises(ValueError, match=r"intercept_prior\.scale=-1"):
        GLMPosterior(*rows, FixedNormalNoise(1.0), Normal(), intercept_prior=intercept_prior)


def test_changing_the_matrix_changes_the_prior():
    prior = Normal(covariance=np.eye(2))
    coef = np.ones((1, 1, 2))
    assert prior.log_density(coef, None)[0] == pytest.approx(-1.0)
    prior.set_params(covariance=4.0 * np.eye(2))
    assert prior.log_density(coef, None)[0] == pytest.approx(-0.25)


@pytest.mark.parametrize("likelihood", ["bernoulli", "three classes"])
def test_draws_of_the_prior_have_its_intercept_at_zero(likelihood):
    posterior, n = make(likelihood, "covariance, normal", intercept_at_mean=True), 600
    draws = posterior.draw_prior([np.random.default_rng(seed) for seed in range(n)])
    level = draws[:, [name.startswith("intercept") for name in posterior.reported.names]]
    assert level.shape[1] == posterior.n_predictors
    for intercepts in level.T:
        assert stats.kstest(intercepts, stats.norm(0.4, 2.0).cdf).pvalue > 1e-3
