"""Batches bound to a run: the gradients of the rows they name, whatever X and the model are."""

import numpy as np
import pytest

from skbayes_sgld.posterior.design import HELD_NUMBERS
from tests.posterior.test_row_sum import D, draw_theta, make_posterior

C, B = 3, 7
MODELS = {
    "centred": ("bernoulli", {"intercept_at_mean": True}),
    "no intercept": ("bernoulli", {"fit_intercept": False}),
    "three classes": ("three classes", {}),
    "float32": ("bernoulli", {"dtype": np.float32}),
}
SIZES = {"few rows": 50, "many rows": HELD_NUMBERS // D + 1}


def gradient_of(posterior, theta, idx):
    """Gradient of the rows' log likelihood ``(C, P)``, by a sum over a chain's rows each."""
    by_chain = []
    for at, rows in zip(theta, idx, strict=True):
        chosen = posterior.take(rows)
        by_chain.append(chosen.grad_log_likelihood(at[None])[0])
    return np.array(by_chain)


def close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_batches_are_those_of_their_rows(name, size):
    (likelihood, options), n = MODELS[name], SIZES[size]
    weight = np.random.default_rng(2).uniform(0.5, 2.0, n)
    posterior = make_posterior(likelihood, n=n, sample_weight=weight, **options)
    rng = np.random.default_rng(1)
    for n_chains, n_walkers in ((1, 1), (C, 1), (C, 4), (1, 4)):
        theta, since = np.split(draw_theta(posterior, 2 * n_chains * n_walkers), 2)
        batches = posterior.bind_batches(n_chains, B, n_walkers)
        for n_steps in (2, 5, 1):  # more and fewer than the arrays hold
            idx = rng.integers(0, n, (n_steps, n_chains, B))
            at = np.repeat(idx, n_walkers, axis=1)
            for t, rows in enumerate(batches.gather(idx)):
                expected = gradient_of(posterior, theta, at[t])
                close(batches.gradient(theta, rows), expected)
                before = gradient_of(posterior, since, at[t])
                close(batches.change(theta, since, rows), expected - before)


def test_a_gradient_stays_when_the_next_is_computed():
    posterior = make_posterior()
    batches, theta = posterior.bind_batches(C, B), draw_theta(posterior, C)
    rows = batches.gather(np.zeros((2, C, B), int))
    for gradient in (posterior.bind_grad(), lambda at: batches.gradient(at, rows[0])):
        first = gradient(theta)
        kept = first.copy()
        gradient(theta + 1.0)
        np.testing.assert_array_equal(first, kept)
