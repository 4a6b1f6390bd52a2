"""Priors put together: a matrix of covariances, a prior on the intercept, the classes' shift."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld.posterior import (
    PRIORS,
    Bernoulli,
    Categorical,
    Cauchy,
    ConjugateNormal,
    FixedGaussian,
    Flat,
    Gaussian,
    GLMPosterior,
    InverseGamma,
    Laplace,
    Normal,
    Poisson,
)
from skbayes_sgld.posterior.further_rows import under_priors
from skbayes_sgld.posterior.parameterizations.row_space import RowSpacePosterior
from skbayes_sgld.posterior.propriety import ImproperPosteriorError, check_proper
from skbayes_sgld.posterior.tilt import Tilt
from tests.numeric import assert_derivative, derivative

N, D = 30, 3
V = np.array([[4.0, 1.2, -0.5], [1.2, 1.0, 0.1], [-0.5, 0.1, 0.25]])
MU = np.array([0.3, -0.2, 0.1])
LIKELIHOODS = {
    "gaussian": Gaussian(),
    "known noise": FixedGaussian(0.7),
    "bernoulli": Bernoulli(),
    "categorical": Categorical(3),
    "poisson": Poisson(),
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


def make(likelihood, pair, center=True, weighted=True):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) + [0.0, 3.0, -1.0]
    y = rng.standard_normal(N)
    if not likelihood.quadratic:
        y = (np.arange(N) % max(likelihood.n_predictors, 2)).astype(float)
    prior, intercept = PAIRS[pair]
    return GLMPosterior(
        X,
        y,
        likelihood,
        prior,
        InverseGamma(2.0, 1.0) if likelihood.infers_noise else None,
        intercept_prior=intercept,
        sample_weight=rng.uniform(0.5, 2.0, N) if weighted else None,
        center=center,
    )


def cases():
    for name, likelihood in LIKELIHOODS.items():
        for pair, priors in PAIRS.items():
            if likelihood.infers_noise or not any(p.scaled_by_noise for p in priors):
                yield pytest.param(likelihood, pair, id=f"{name}: {pair}")


every = pytest.mark.parametrize("likelihood, pair", list(cases()))
centered = pytest.mark.parametrize("center", [False, True])


def points(posterior, n=3):
    return np.random.default_rng(1).standard_normal((n, posterior.n_params)) * 0.3 + 0.05


@every
@centered
def test_gradient_and_curvature_are_those_of_the_density(likelihood, pair, center):
    posterior = make(likelihood, pair, center)
    theta = points(posterior)
    chains = np.arange(len(theta))
    for value, grad in (
        (posterior.log_prior, posterior.grad_log_prior),
        (posterior.log_density, posterior.grad),
    ):
        assert_derivative(grad(theta), derivative(value, theta)[chains, chains], pair)
    hessian = -derivative(lambda t: posterior.grad(t[None])[0], theta[0])
    H = posterior.curvature(theta[0])
    assert_derivative(H, hessian, pair)
    np.testing.assert_allclose(
        posterior.prior_diagonal(theta[0]),
        np.diag(H - posterior.likelihood_curvature(theta[0])),
        rtol=1e-9,
        atol=1e-9 * np.abs(H).max(),
    )


def density_by_scipy(posterior, pair, coef, intercept, gamma):
    """The log prior of one predictor's parameters, from scipy.stats."""
    prior, of_intercept = PAIRS[pair]
    noise = np.exp(gamma) if prior.scaled_by_noise else 1.0
    covariance = noise * (V if prior.covariance is not None else np.square(prior.scale) * np.eye(D))
    value = stats.multivariate_normal(np.broadcast_to(prior.location, D), covariance).logpdf(coef)
    if not of_intercept.flat:
        noise = np.exp(gamma) if of_intercept.scaled_by_noise else 1.0
        sd = of_intercept.scale * np.sqrt(noise)
        value += stats.norm(of_intercept.location, sd).logpdf(intercept)
    return value


@pytest.mark.parametrize(
    "pair", ["V", "V, conjugate", "V, normal", "covariance", "covariance, normal"]
)
@centered
def test_the_prior_acts_on_the_intercept_at_zero(pair, center):
    posterior = make(Gaussian(), pair, center)
    theta = points(posterior, 4)
    users = posterior.reported.values(theta)
    expected = [
        density_by_scipy(posterior, pair, row[:D], row[D], np.log(row[-1])) for row in users
    ]
    got = posterior.log_prior(theta) - posterior.noise_prior.log_density(theta[:, -1])
    np.testing.assert_allclose(got - got[0], np.subtract(expected, expected[0]), rtol=1e-10)


@every
def test_centering_changes_the_coordinates_and_not_the_posterior(likelihood, pair):
    one, other = make(likelihood, pair, True), make(likelihood, pair, False)
    theta = points(one)
    moved = theta.copy()
    K, width = likelihood.n_predictors, D + 1
    linear = moved[:, : K * width].reshape(len(theta), K, width)
    linear[..., -1] -= linear[..., :-1] @ one.origin
    moved[:, : K * width] = linear.reshape(len(theta), -1)
    for posterior in (one, other):  # what holds the classes' shift is of the coordinates
        posterior.linear_prior = replace(posterior.linear_prior, pin=None)
    got, expected = one.log_density(theta), other.log_density(moved)
    np.testing.assert_allclose(got - got[0], expected - expected[0], rtol=1e-8)


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli()], ids=["gaussian", "bernoulli"])
def test_the_space_of_the_rows_holds_the_same_posterior_under_a_matrix(likelihood):
    rng = np.random.default_rng(0)
    n, d = 6, 9
    X, A = rng.standard_normal((n, d)) + 1.0, rng.standard_normal((d, d))
    covariance, location = A @ A.T + np.eye(d), rng.standard_normal(d)
    infers = likelihood.infers_noise
    prior = (ConjugateNormal if infers else Normal)(covariance=covariance, location=location)
    y = rng.standard_normal(n) if infers else (np.arange(n) % 2).astype(float)
    noise = InverseGamma(2.0, 1.0) if infers else None
    full = GLMPosterior(X, y, likelihood, prior, noise, intercept_prior=Normal(2.0), center=True)
    rows = RowSpacePosterior(full)
    theta = rng.standard_normal((20_000, rows.n_params)) * 0.1
    theta[:] = theta[0]
    values = rows.reported.values(theta)
    # the rows see the same predictors, and the way back is the way there
    predictors = values[:, :d] @ X.T + values[:, d : d + 1]
    local = rows._linear(theta[:1])[0, 0]
    np.testing.assert_allclose(predictors - predictors[:1], 0.0, atol=1e-9)
    np.testing.assert_allclose(
        predictors[0], (rows.X - rows.origin) @ local[:-1] + local[-1], atol=1e-9
    )
    np.testing.assert_allclose(rows.reported.theta(values[:3]), theta[:3], atol=1e-8)
    # given what the rows see, the coefficients are what the prior says: normal, by conditioning
    variance = values[0, -1] if infers else 1.0
    seen = X @ covariance @ X.T
    gain = covariance @ X.T @ np.linalg.inv(seen)
    mean = location + gain @ (predictors[0] - values[0, d] - X @ location)
    rest = variance * (covariance - gain @ X @ covariance)
    error = np.sqrt(np.diag(rest) / len(values))
    assert np.all(np.abs(values[:, :d].mean(0) - mean) < 4.5 * error + 1e-9)
    spread = np.sqrt(np.outer(np.diag(rest), np.diag(rest)))
    assert np.max(np.abs(np.cov(values[:, :d].T) - rest) / spread) < 0.05


def test_a_prior_of_many_columns_makes_the_structured_metric_exact():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 8)) + 2.0
    posterior = GLMPosterior(
        X,
        (np.arange(5) % 2).astype(float),
        Bernoulli(),
        Normal(),
        intercept_prior=Normal(0.7),
        center=True,
    )
    theta = points(posterior, 1)[0]
    diagonal, factor = posterior.curvature_factor(theta)
    H = np.diag(diagonal) + factor.T @ factor
    np.testing.assert_allclose(H, posterior.curvature(theta), atol=1e-6 * np.abs(H).max())


def test_a_smoothed_intercept_prior_is_rounded_over_the_intercept_s_own_width():
    posterior = make(Bernoulli(), "normal, laplace", center=False)
    spread = np.array([0.1, 0.1, 0.1, 0.4])
    smooth = posterior.smoothed(spread)
    theta = points(posterior, 1)
    difference = (smooth.log_prior(theta) - posterior.log_prior(theta))[0]
    at, b = theta[0, -1] - 0.1, 0.3
    z = np.linspace(-9, 9, 20_001)
    folded = np.average(np.abs(at + 0.4 * z), weights=np.exp(-0.5 * z**2))
    assert difference == pytest.approx((np.abs(at) - folded) / b, abs=1e-6)


def test_a_proper_prior_on_the_intercept_lets_a_constant_column_stand():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(20), rng.standard_normal(20)])
    y = rng.standard_normal(20)
    for intercept, proper in ((Flat(), False), (Normal(), True)):
        posterior = GLMPosterior(X, y, FixedGaussian(1.0), Flat(), intercept_prior=intercept)
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
    with pytest.raises((ValueError, TypeError), match=message):
        GLMPosterior(np.ones((5, 3)), np.arange(5.0), FixedGaussian(1.0), prior)


def test_an_intercept_prior_that_cannot_be_used_is_named():
    with pytest.raises(ValueError, match=r"intercept_prior\.scale=-1"):
        GLMPosterior(
            np.ones((5, 3)),
            np.arange(5.0),
            FixedGaussian(1.0),
            Normal(),
            intercept_prior=Normal(scale=-1.0),
        )


def test_changing_the_matrix_changes_the_prior():
    prior = Normal(covariance=np.eye(2))
    coef = np.ones((1, 1, 2))
    assert prior.log_density(coef, None)[0] == pytest.approx(-1.0)
    prior.set_params(covariance=4.0 * np.eye(2))
    assert prior.log_density(coef, None)[0] == pytest.approx(-0.25)


def beside_a_site(likelihood):
    """Posterior of rows, and of a normal site of others, beside its coefficients' prior."""
    posterior = make(LIKELIHOODS[likelihood], "normal, laplace", center=True)
    rng, P = np.random.default_rng(3), posterior.n_params
    root = rng.standard_normal((P, P))
    site = Tilt(*rng.standard_normal((2, P)), root @ root.T)
    return under_priors(posterior, Normal(1.0), Normal(2.0, 0.4), site)


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical", "poisson"])
def test_beside_a_site_gradient_and_curvature_are_those_of_the_density(likelihood):
    posterior = beside_a_site(likelihood)
    theta = points(posterior, 2)
    expected = derivative(posterior.log_prior, theta)[[0, 1], [0, 1]]
    assert_derivative(posterior.grad_log_prior(theta), expected, "grad_log_prior")
    H = np.zeros((posterior.n_params, posterior.n_params))
    posterior.add_prior_curvature(H, theta[0])
    slope = derivative(lambda t: posterior.grad_log_prior(t[None])[0], theta[0])
    np.testing.assert_allclose(-H, np.reshape(slope, H.shape), atol=1e-5)
    np.testing.assert_allclose(posterior.prior_diagonal(theta[0]), np.diag(H), rtol=1e-12)


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical"])
def test_draws_of_the_prior_have_its_intercept_at_zero(likelihood):
    posterior, n = make(LIKELIHOODS[likelihood], "covariance, normal", center=True), 600
    draws = posterior.draw_prior([np.random.default_rng(seed) for seed in range(n)])
    level = draws[:, [name.startswith("intercept") for name in posterior.reported.names]]
    assert level.shape[1] == posterior.n_predictors
    for intercepts in level.T:
        assert stats.kstest(intercepts, stats.norm(0.4, 2.0).cdf).pvalue > 1e-3
