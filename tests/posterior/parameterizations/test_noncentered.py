"""The non-centered coordinates: the same distribution, in which the noise is independent of z."""

import numpy as np
import pytest
from scipy import special

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.inference.parameterizations.noncentered import noncenter
from skbayes_sgld.likelihoods import NormalNoise
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.parameterizations.noncentered import noncentered
from skbayes_sgld.priors import ConjugateNormal, InverseGamma, Laplace, Normal, StudentT
from tests.numeric import assert_derivative, derivative
from tests.references.targets import mode_of

TALL, WIDE = (30, 4), (12, 20)
MATRIX = ConjugateNormal(covariance=[[4.0, 1.2], [1.2, 1.0]])
CASES = {  # rows and columns, temperature, prior of the coefficients and of the intercept
    "normal": (TALL, 1.3, Normal(0.7, 0.3), None),
    "conjugate, wide": (WIDE, 1.3, ConjugateNormal(2.0, 0.3), None),
    "laplace": (TALL, 1.0, Laplace(0.4), None),
    "student, wide": (WIDE, 1.3, StudentT(3.0, 0.5), None),
    "matrix": ((30, 2), 1.0, MATRIX, Normal(0.5, -1.0)),
    "both conjugate": (TALL, 1.3, ConjugateNormal(2.0), ConjugateNormal(2.0, 0.4)),
    "normal, conjugate": (TALL, 1.3, Normal(0.7), ConjugateNormal(2.0)),
    "normal, laplace": (TALL, 1.3, Normal(0.7), Laplace(0.3, 0.1)),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def case(request):
    """A posterior, the same in non-centered coordinates, and the temperature."""
    (n, d), temperature, prior, intercept = request.param
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) + 3.0
    y = X[:, 0] + rng.standard_normal(n)
    posterior = GLMPosterior(
        X,
        y,
        NormalNoise(),
        prior,
        InverseGamma(0.5, 0.5),
        intercept_prior=intercept,
        intercept_at_mean=True,
    )
    return posterior, noncenter(posterior, temperature)[0], temperature


def test_densities_and_gradients_are_those_of_theta_with_the_jacobian(case):
    posterior, found, temperature = case
    forward = found.coordinates.forward
    phi = 0.5 * np.random.default_rng(2).standard_normal((5, found.n_params))
    theta = forward(phi)
    np.testing.assert_allclose(found.coordinates.inverse(theta), phi, atol=1e-8)
    jacobian = [np.linalg.slogdet(derivative(lambda p: forward(p[None])[0], p))[1] for p in phi]
    # up to a constant; tempering must leave the Jacobian whole
    expected = posterior.log_density(theta) + temperature * np.array(jacobian)
    # by rows and prior, through theta, and bound for a run of any number of chains
    by_parts = found.log_likelihood(phi).sum(axis=1) + found.log_prior(phi)
    for value in (found.log_density(phi), found.value_and_grad(phi)[0], by_parts):
        np.testing.assert_allclose(value - value[0], expected - expected[0], atol=1e-6)
    slope = derivative(found.log_density, phi)[np.arange(5), np.arange(5)]
    grad = found.grad_log_likelihood(phi) + found.grad_log_prior(phi)
    for got in (grad, found.grad(phi), found.value_and_grad(phi)[1]):
        assert_derivative(got, slope, "gradient")
    in_rows = derivative(lambda p: found.log_likelihood(p[None])[0].sum(), phi[0])
    assert_derivative(found.grad_log_likelihood(phi[:1])[0], in_rows, "of the rows")


def test_bound_density_and_gradient_are_those_through_theta(case):
    posterior = case[1]
    soft = posterior.with_rounded_kinks(np.ones(posterior.n_params))
    priors = case[0].linear_prior.coef, case[0].linear_prior.intercept
    assert (soft is posterior) == (not any(isinstance(prior, Laplace) for prior in priors))
    phi = np.random.default_rng(5).standard_normal((6, posterior.n_params))
    value, grad = posterior.bind_value_and_grad(soft)(phi)
    expected = posterior.log_density(phi)
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-9)
    scale = np.abs(soft.grad(phi)).max()
    np.testing.assert_allclose(grad, soft.grad(phi), rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(soft.bind_grad()(phi), grad, rtol=0, atol=1e-12 * scale)
    for n_chains in (1, 4):
        some_value, some_grad = posterior.bind_value_and_grad(soft)(phi[:n_chains])
        np.testing.assert_array_equal(some_value, value[:n_chains])
        np.testing.assert_array_equal(some_grad, grad[:n_chains])


@pytest.mark.parametrize("noise", [1.0, 0.2, 0.01, 1e-4])
def test_densities_keep_their_digits_however_close_the_fit_is(noise):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((50, 3))
    X = np.column_stack([X, X[:, 0] + 1e-3 * rng.standard_normal(50)])
    y = X[:, 0] + noise * rng.standard_normal(50)  # the search begins at the variance of y
    posterior = GLMPosterior(
        X, y, NormalNoise(), Normal(2.0), InverseGamma(0.5, 0.1 * noise**2), intercept_at_mean=True
    )
    found = noncenter(posterior, 1.0)[0]
    phi = rng.standard_normal((200, found.n_params))
    at = found.coordinates.expand(phi)
    expected = posterior.log_density(at.theta) + at.log_jacobian
    apart = found.log_density(phi) - expected
    np.testing.assert_allclose(apart, apart[0], rtol=0, atol=1e-6)
    # z is standard normal given the noise
    moved = found.log_density(phi) + 0.5 * np.square(phi[:, :-1]).sum(axis=1)
    same = found.log_density(np.hstack([0.0 * phi[:, :-1], phi[:, -1:]]))
    np.testing.assert_allclose(moved, same, rtol=0, atol=1e-8)


def test_widths_keep_their_digits_if_the_noise_is_far_above_the_variance_of_y():
    rng, scale = np.random.default_rng(6), 2.0
    X = rng.standard_normal((300, 4))
    X = np.column_stack([X, X[:, 0] + 1e-4 * rng.standard_normal(300)])
    y = 4e-6 * rng.standard_normal(300)  # the search begins at its variance
    posterior = GLMPosterior(
        X, y, NormalNoise(), Normal(scale), InverseGamma(0.5, 0.1), intercept_at_mean=True
    )
    found = noncenter(posterior, 1.0)[0]
    theta = found.coordinates.forward(np.vstack([np.eye(7)[:6], np.zeros(7)]))
    assert theta[-1, -1] - np.log(y.var()) > 15.0
    # a root of the precision given the noise, by rows of the prior below those of X
    rows = np.column_stack([X - X.mean(axis=0), np.ones(300)]) / np.exp(0.5 * theta[-1, -1])
    root = np.linalg.qr(np.vstack([rows, np.eye(5, 6) / scale]))[1]
    widths = (theta[:-1, :-1] - theta[-1, :-1]) @ root.T
    np.testing.assert_allclose(widths @ widths.T, np.eye(6), atol=1e-6)


@pytest.mark.parametrize("n, d, temperature", [(8, 2, 0.2), (8, 2, 1.0), (40, 3, 3.0)])
def test_few_rows_agree_with_the_closed_form_at_every_temperature(n, d, temperature):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, d)) + 10.0
    y = X[:, 0] + rng.standard_normal(n)
    model = SGLDLinearRegression(
        prior=ConjugateNormal(3.0),
        noise_prior=InverseGamma(3.0, 2.0),
        temperature=temperature,
        random_state=0,
    ).fit(X, y)
    # p^(1/tau) of a normal-inverse-gamma distribution in (beta, gamma) is another: given gamma the
    # precision falls by tau, and gamma's exponents with it, but for the d + 1 coefficients
    A = np.column_stack([X, np.ones(n)])
    precision = A.T @ A + np.diag(np.r_[np.full(d, 1 / 9.0), 0.0])
    mean = np.linalg.solve(precision, A.T @ y)
    rss = np.sum((y - A @ mean) ** 2) + mean[:d] @ mean[:d] / 9.0
    a = (3.0 + (n + d) / 2) / temperature - (d + 1) / 2
    b = (2.0 + rss / 2) / temperature
    sd = np.sqrt(temperature * np.diag(np.linalg.inv(precision)) * b / (a - 1))
    noise_mean, noise_sd = b / (a - 1), b / (a - 1) / np.sqrt(a - 2)
    table = model.summary()
    assert np.all(np.abs(table["mean"][:-1] - mean) < 0.1 * sd)
    assert np.all(np.abs(table["sd"][:-1] / sd - 1) < 0.06)
    if a > 6:  # heavier tails have no stable sample sd
        assert abs(table["mean"].iloc[-1] - noise_mean) < 0.1 * noise_sd
        assert abs(table["sd"].iloc[-1] / noise_sd - 1) < 0.08


@pytest.mark.parametrize("n", [30, 10**8])
def test_the_level_and_the_width_of_the_noise_are_those_of_its_marginal(n):
    # rows that count as many: the noise variance is inverse gamma in closed form
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    prior, weight = ConjugateNormal(2.0), np.full(30, n / 30)
    posterior = GLMPosterior(
        X, y, NormalNoise(), prior, InverseGamma(0.5, 0.5), sample_weight=weight
    )
    center = mode_of(posterior.given_own(np.zeros(1)), posterior.start()[:-1])
    _, line = noncentered(posterior, center.theta, center.metric.root, 0.0)
    design = np.column_stack([X, np.ones(30)])
    precision = np.diag([0.25, 0.25, 0.0])
    rest = y - design @ np.linalg.solve(
        n / 30 * design.T @ design + precision, n / 30 * design.T @ y
    )
    scale = 0.5 + 0.5 * n / 30 * y @ rest
    shape = 0.5 + 0.5 * (n - 1)  # the flat intercept takes one
    sd = np.sqrt(special.polygamma(1, shape))
    mean = np.log(scale) - special.digamma(shape)
    # of a grid
    assert line.level[0] == pytest.approx(mean, abs=0.02 * sd)
    assert line.root[0, 0] == pytest.approx(sd, rel=0.02)
