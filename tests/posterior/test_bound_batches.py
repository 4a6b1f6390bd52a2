"""Batches bound to a run: the gradients of the rows they name, whatever X and the model are."""

import numpy as np
import pytest

from skbayes_sgld._linalg import BLOCK_NUMBERS
from skbayes_sgld.posterior import (
    Bernoulli,
    Categorical,
    Gaussian,
    GLMPosterior,
    InverseGamma,
    Normal,
    Poisson,
)
from skbayes_sgld.posterior.base import BoundBatches

C, B, D = 3, 7, 4
LAYOUTS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}
MODELS = {
    "bernoulli": (Bernoulli(), {"center": True}),
    "without intercept": (Bernoulli(), {"fit_intercept": False}),
    "three classes": (Categorical(3), {}),
    "noise inferred": (Gaussian(), {"center": True}),
    "poisson": (Poisson(), {}),
}


def make_posterior(name, n, layout="float64", weighted=False):
    likelihood, options = MODELS[name]
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((n, D)) + 2.0).astype(np.float32).astype(np.float64)
    y = rng.integers(0, max(likelihood.n_predictors, 2), n).astype(float)
    noise = InverseGamma(1.0, 1.0) if likelihood.infers_noise else None
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    return GLMPosterior(
        LAYOUTS[layout](X), y, likelihood, Normal(), noise, sample_weight=weight, **options
    )


def scores_and_gradients(batches, idx, theta):
    """At every step: the rows' local parameters, their scores and the gradient."""
    out = []
    for rows in batches.gather(idx):
        u = batches.local(theta, rows)
        seen = u.copy()
        score = batches.score(u, rows)
        out.append((seen, score.copy(), batches.pullback(score, rows)))
    return [np.stack(part) for part in zip(*out, strict=True)]


@pytest.mark.parametrize("n", [50, BLOCK_NUMBERS // D + 1], ids=["few rows", "many rows"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_chains", [1, C])
@pytest.mark.parametrize("name", MODELS)
def test_bound_batches_are_the_rows_that_are_taken(name, n_chains, n, weighted):
    posterior = make_posterior(name, n, weighted=weighted)
    rng = np.random.default_rng(1)
    theta = 0.3 * rng.standard_normal((n_chains, posterior.n_params))
    bound, plain = posterior.bind_batches(n_chains, B), BoundBatches(posterior, B)
    for n_steps in (2, 5, 1):  # more and fewer than the arrays hold
        idx = rng.integers(0, n, (n_steps, n_chains, B))
        for got, expected in zip(
            scores_and_gradients(bound, idx, theta),
            scores_and_gradients(plain, idx, theta),
            strict=True,
        ):
            np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("n", [50, BLOCK_NUMBERS // D + 1], ids=["few rows", "many rows"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "noise inferred"])
def test_walkers_that_share_a_batch_have_the_gradients_of_its_rows(name, weighted, n):
    posterior, n_walkers = make_posterior(name, n, weighted=weighted), 4
    assert posterior.facts.shares_batches
    rng = np.random.default_rng(1)
    theta = 0.3 * rng.standard_normal((C * n_walkers, posterior.n_params))
    bound = posterior.bind_batches(C, B, n_walkers)
    idx = rng.integers(0, n, (2, C, B))
    plain = scores_and_gradients(
        BoundBatches(posterior, B), np.repeat(idx, n_walkers, axis=1), theta
    )
    shared = scores_and_gradients(bound, idx, theta)
    for got, expected in zip(shared, plain, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)
    rows, room = bound.gather(idx)[0], np.full((len(theta), 2 * posterior.n_params), np.nan)
    part = room[:, posterior.n_params :]  # of an array whose other part stays as it is
    bound.pullback(bound.score(bound.local(theta, rows), rows), rows, out=part)
    np.testing.assert_allclose(part, plain[2][0], rtol=1e-11, atol=1e-11)
    assert np.isnan(room[:, : posterior.n_params]).all()


@pytest.mark.parametrize("n", [50, BLOCK_NUMBERS // D + 1], ids=["few rows", "many rows"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bound_batches_depend_neither_on_the_dtype_nor_on_the_order_of_X(layout, n):
    rng = np.random.default_rng(1)
    idx, theta = rng.integers(0, n, (2, C, B)), rng.standard_normal((C, D + 1))
    results = [
        scores_and_gradients(make_posterior("bernoulli", n, x).bind_batches(C, B), idx, theta)
        for x in ("float64", layout)
    ]
    for got, expected in zip(results[1], results[0], strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_gradient_stays_when_the_next_is_computed():
    posterior = make_posterior("bernoulli", 50)
    bound = posterior.bind_batches(C, B)
    rows = bound.gather(np.zeros((2, C, B), int))
    theta = np.ones((C, posterior.n_params))
    first = bound.pullback(bound.score(bound.local(theta, rows[0]), rows[0]), rows[0])
    kept = first.copy()
    bound.pullback(bound.score(bound.local(-theta, rows[1]), rows[1]), rows[1])
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("name", MODELS)
def test_the_bound_gradient_of_the_prior_is_the_priors(name):
    posterior = make_posterior(name, 50)
    theta = np.random.default_rng(1).standard_normal((C, posterior.n_params))
    expected = posterior.grad_log_prior(theta)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(posterior.bind_grad_log_prior()(theta), expected, rtol=1e-13)
