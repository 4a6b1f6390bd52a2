"""Sums over all rows: densities and gradients, beside sums over the rows written here."""

from copy import copy

import numpy as np
import pytest
from scipy.special import expit, log_expit, log_softmax, softmax

from skbayes_sgld._linalg import GROUP
from skbayes_sgld.likelihoods import Bernoulli, Categorical
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Flat, Laplace, Normal

N, D = 150, 4
LIKELIHOODS = {"bernoulli": Bernoulli(), "three classes": Categorical(3)}
WEIGHTS = {
    "zeros": np.arange(N) % 3 * 1.0,
    "fractions": np.random.default_rng(7).gamma(0.5, size=N),
}
CHAINS = 5
every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS)


def make_posterior(likelihood="bernoulli", prior=None, n=N, dtype=float, **kwargs):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D)).astype(np.float32)
    edges = [0.0] if likelihood == "bernoulli" else [-1.0, 1.0]
    y = np.digitize(X[:, 0] + rng.logistic(size=n), edges).astype(float)
    prior = prior or Normal(2.5)
    return GLMPosterior(X.astype(dtype), y, LIKELIHOODS[likelihood], prior, **kwargs)


def draw_theta(posterior, n_chains=CHAINS, scale=0.5):
    rng = np.random.default_rng(1)
    return scale * rng.standard_normal((n_chains, posterior.n_params))


def reference(posterior, theta):
    """Log posterior and gradient, from scipy's densities and residuals of all rows at once."""
    design, y = posterior.X.astype(float), posterior.y
    if posterior.x_mean is not None:
        design = design - posterior.x_mean
    if posterior.fit_intercept:
        design = np.column_stack([design, np.ones(len(y))])
    u = theta.reshape(len(theta), posterior.n_predictors, -1) @ design.T
    if isinstance(posterior.likelihood, Categorical):
        own = y == np.arange(3)[:, None]
        value, score = (log_softmax(u, axis=1) * own).sum(axis=1), own - softmax(u, axis=1)
    else:
        value, score = log_expit((2.0 * y - 1.0) * u)[:, 0], y - expit(u)
    weight = np.ones(len(y)) if posterior.weight is None else posterior.weight
    grad = ((score * weight) @ design).reshape(len(theta), -1)
    return value @ weight + posterior.log_prior(theta), grad + posterior.grad_log_prior(theta)


def single(posterior):
    """The posterior in single precision, whatever its size."""
    other = copy(posterior)
    other._dtype = other._density_dtype = np.float32
    return other


def single_precision_error(posterior, theta):
    """Bound of a gradient's rounding errors: 3e-7 of its terms, as if none cancelled."""
    design = np.abs(posterior.design_rows(slice(0, posterior.n_samples)))
    u = np.abs(posterior.parameters.linear(theta)) @ design.T  # (C, K, n)
    weight = 1.0 if posterior.weight is None else posterior.weight
    per_row = (1.0 + u.sum(axis=1)) * (1.0 + posterior.y) * weight
    return 3e-7 * np.tile(per_row @ design, posterior.n_predictors)


FORMS = {
    "plain": {},
    "centred": {"intercept_at_mean": True, "sample_weight": WEIGHTS["fractions"]},
    "no intercept": {"fit_intercept": False, "sample_weight": WEIGHTS["zeros"]},
    "float32": {"dtype": np.float32, "intercept_at_mean": True},
}


@pytest.mark.parametrize("form", FORMS)
@every_likelihood
def test_densities_and_gradients_are_sums_over_the_rows(likelihood, form):
    posterior = make_posterior(likelihood, **FORMS[form])
    theta = draw_theta(posterior, 20)
    expected, slope = reference(posterior, theta)
    close = {"rtol": 0, "atol": 1e-12 * np.abs(slope).max()}
    found = posterior.log_density(theta)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * N)
    for group in (GROUP, 16, None):  # positions in a product
        value, grad = posterior.bind_value_and_grad(group=group)(theta)
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12 * N)
        np.testing.assert_allclose(grad, slope, **close)
        np.testing.assert_allclose(posterior.bind_grad(group)(theta), slope, **close)
        near = single(posterior).bind_grad(group)(theta)
        assert near.dtype == np.float64
        error = np.abs(near - slope)
        assert np.all(error < single_precision_error(posterior, theta) + close["atol"])
        assert not np.array_equal(near, slope)


@every_likelihood
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_a_chain_does_not_depend_on_how_many_run_beside_it(likelihood, precision):
    posterior = make_posterior(likelihood, n=701, intercept_at_mean=True)
    followed = single(posterior) if precision is np.float32 else posterior
    theta = draw_theta(posterior, 48)
    theta[20] *= 100.0  # whose exponentials overflow
    parts = {GROUP: [slice(n) for n in (1, 2, 4, 5)], 16: [slice(32, None), slice(16, None)]}
    for group, places in parts.items():
        bound = followed.bind_grad(group), posterior.bind_value_and_grad(followed, group)
        with np.errstate(over="ignore", invalid="ignore"):
            alone, (value, grad) = (function(theta) for function in bound)
            for at in places:
                np.testing.assert_array_equal(bound[0](theta[at]), alone[at])
                np.testing.assert_array_equal(bound[1](theta[at])[0], value[at])
                np.testing.assert_array_equal(bound[1](theta[at])[1], grad[at])


# several blocks of rows in one part and, beyond 2^20 numbers, in two that threads share
@pytest.mark.parametrize(
    "likelihood, n", [*((name, 20_000) for name in LIKELIHOODS), ("bernoulli", 2**20 // D + 1)]
)
def test_blocks_and_threads_add_up(likelihood, n):
    weight = np.random.default_rng(2).uniform(0.5, 2.0, n)
    posterior = make_posterior(likelihood, n=n, intercept_at_mean=True, sample_weight=weight)
    theta = draw_theta(posterior, 2, scale=0.2)
    expected, slope = reference(posterior, theta)
    value, grad = posterior.value_and_grad(theta)
    np.testing.assert_allclose(value, expected, rtol=1e-11)
    np.testing.assert_allclose(grad, slope, rtol=0, atol=1e-10 * np.abs(slope).max())
    near = posterior.rounded().bind_grad()(theta)
    assert np.all(np.abs(near - slope) < single_precision_error(posterior, theta))
    np.testing.assert_allclose(near, slope, rtol=0, atol=1e-5 * np.abs(slope).max())


def test_sums_in_single_precision_are_of_short_blocks():
    # sorted by class, a running sum over all rows is a hundred times the gradient at the mode
    rng = np.random.default_rng(3)
    X = np.sort(rng.standard_normal((200_000, 2)), axis=0)
    y = (X[:, 0] > 0).astype(float)
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(), intercept_at_mean=True)
    theta = np.array([[1.0, 0.5, 0.1]])
    error = posterior.rounded().grad(theta) - posterior.grad(theta)
    assert np.abs(error).max() < 1e-5 * np.sqrt(len(X))  # in units of a gradient's sd


@every_likelihood
def test_predictors_beyond_the_range_of_exp_keep_value_and_gradient(likelihood):
    posterior = make_posterior(likelihood, Flat(), sample_weight=WEIGHTS["zeros"])
    theta = draw_theta(posterior, 4)
    theta[1:3] *= [[300.0], [3000.0]]  # exp overflows in single, and in double precision
    near = single(posterior)
    with np.errstate(all="ignore"):
        expected, slope = reference(posterior, theta)
        value, grad = posterior.bind_value_and_grad()(theta)
        rounded_value, rounded = near.bind_value_and_grad()(theta)
        gradient_alone = near.bind_grad()(theta)
    assert np.isfinite(slope).all() and np.isfinite(expected).all()
    np.testing.assert_allclose(value, expected, rtol=1e-11)
    np.testing.assert_allclose(grad, slope, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(rounded_value, expected, rtol=1e-5)
    for found in (rounded, gradient_alone):
        assert np.all(np.abs(found - slope) < single_precision_error(posterior, theta) + 1e-9)


def test_the_exact_value_and_the_softened_gradient_come_from_one_pass():
    posterior = make_posterior(prior=Laplace(0.5), intercept_at_mean=True)
    soft = posterior.with_rounded_kinks(np.full(posterior.n_params, 2.0))
    theta = draw_theta(posterior, scale=0.1)
    value, grad = posterior.bind_value_and_grad(soft)(theta)
    np.testing.assert_allclose(value, posterior.log_density(theta), rtol=1e-12)
    np.testing.assert_allclose(grad, soft.grad(theta), rtol=0, atol=1e-11)
    assert np.abs(grad - posterior.grad(theta)).max() > 0.1  # the prior's kinks are not followed


@pytest.mark.parametrize("n_moves", [1, 40])
@every_likelihood
def test_variances_are_those_of_predictors_moved_by_the_moves(likelihood, n_moves):
    posterior = make_posterior(likelihood, n=5000, intercept_at_mean=True)
    moves, rows = draw_theta(posterior, n_moves), posterior.row_sum()
    of_moves = rows.predictors(moves) - rows.predictors(np.zeros_like(moves[:1]))
    expected = np.square(of_moves).sum(axis=0)
    np.testing.assert_allclose(rows.variances(moves), expected, rtol=1e-9, atol=1e-12)
