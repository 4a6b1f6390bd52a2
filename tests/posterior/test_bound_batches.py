"""Batches bound to a run: the gradients of the rows they name, whatever X and the model are."""

import numpy as np
import pytest

from skbayes_sgld.posterior import (
    Bernoulli,
    Categorical,
    Gaussian,
    GLMPosterior,
    InverseGamma,
    Normal,
    Poisson,
)
from skbayes_sgld.posterior.design import HELD_NUMBERS

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


def gradient_of(posterior, theta, idx):
    """Gradient of the rows' log likelihood ``(C, P)``, from the likelihood's own scores."""
    likelihood, K, rows = posterior.likelihood, posterior.likelihood.n_predictors, posterior.X[idx]
    rows = rows if posterior.origin is None else rows - posterior.origin
    if posterior.fit_intercept:
        rows = np.concatenate([rows, np.ones((*idx.shape, 1))], axis=2)
    linear = theta[:, : K * rows.shape[2]].reshape(len(theta), K, -1)
    u = linear @ rows.swapaxes(1, 2)
    if likelihood.infers_noise:
        gamma = np.broadcast_to(theta[:, -1:, None], (len(theta), 1, idx.shape[1]))
        u = np.concatenate([u, gamma], axis=1)
    score = likelihood.score(u, posterior.y[idx])
    if posterior.weight is not None:
        score = score * posterior.weight[idx][:, None]
    noise = score[:, K:].sum(axis=2)
    return np.hstack([(score[:, :K] @ rows).reshape(len(theta), -1), noise])


def close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)


MANY = pytest.mark.parametrize("n", [50, HELD_NUMBERS // D + 1], ids=["few rows", "many rows"])


@MANY
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_batches_are_those_of_their_rows(name, weighted, n):
    posterior = make_posterior(name, n, weighted=weighted)
    rng = np.random.default_rng(1)
    for n_chains, n_walkers in ((1, 1), (C, 1), (C, 4), (1, 4)):
        if n_walkers > 1 and not posterior.facts.shares_batches:
            assert name == "noise inferred"
            continue
        theta, since = 0.3 * rng.standard_normal((2, n_chains * n_walkers, posterior.n_params))
        batches = posterior.bind_batches(n_chains, B, n_walkers)
        for n_steps in (2, 5, 1):  # more and fewer than the arrays hold
            idx = rng.integers(0, n, (n_steps, n_chains, B))
            at = np.repeat(idx, n_walkers, axis=1)
            for t, rows in enumerate(batches.gather(idx)):
                expected = gradient_of(posterior, theta, at[t])
                close(batches.gradient(theta, rows), expected)
                before = gradient_of(posterior, since, at[t])
                close(batches.change(theta, since, rows), expected - before)
        room = np.full((len(theta), 2 * posterior.n_params), np.nan)
        part = room[:, posterior.n_params :]  # of an array whose other part stays as it is
        batches.pullback(batches.score(batches.local(theta, rows), rows), rows, out=part)
        close(part, expected)
        assert np.isnan(room[:, : posterior.n_params]).all()


@MANY
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bound_batches_depend_neither_on_the_dtype_nor_on_the_order_of_X(layout, n):
    rng = np.random.default_rng(1)
    idx, theta = rng.integers(0, n, (2, C, B)), rng.standard_normal((C, D + 1))
    expected, got = (
        [batches.gradient(theta, rows) for rows in batches.gather(idx)]
        for batches in (
            make_posterior("bernoulli", n, x).bind_batches(C, B) for x in ("float64", layout)
        )
    )
    np.testing.assert_array_equal(got, expected)


def test_a_gradient_stays_when_the_next_is_computed():
    posterior = make_posterior("bernoulli", 50)
    bound = posterior.bind_batches(C, B)
    rows = bound.gather(np.zeros((2, C, B), int))
    theta = np.ones((C, posterior.n_params))
    first = bound.gradient(theta, rows[0])
    kept = first.copy()
    bound.gradient(-theta, rows[1])
    np.testing.assert_array_equal(first, kept)
