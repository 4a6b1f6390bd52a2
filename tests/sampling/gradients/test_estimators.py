"""Gradient estimators: quiet where they must be, and rounded where nobody sees it."""

from dataclasses import replace

import numpy as np
import pytest

from skbayes_sgld.likelihoods import Bernoulli, Categorical, NegativeBinomial
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import SAGA, ControlVariate, Minibatch
from tests.references.targets import mode_of, posterior_of


def of_classes(K, *size):
    posterior = posterior_of(Bernoulli() if K == 2 else Categorical(K), *size)
    return posterior, mode_of(posterior, posterior.start())


def spread(posterior, mode, gradient, theta, memory=None):
    """Sds of the estimates from one row ``(P,)``."""
    bound, estimates = gradient.bind(posterior, mode.theta), []
    for row in range(posterior.n_samples):
        kept = {name: array.copy() for name, array in (memory or {}).items()}
        batch = bound.prepare(np.array([[[row]]]))[0]
        estimates.append(bound(theta[None], batch, kept or None)[0])
    return np.std(estimates, axis=0)


@pytest.mark.parametrize("K", [2, 3])
def test_saga_remembers_every_row_where_it_was_last_seen_and_is_quieter(K):
    (posterior, mode), rng = of_classes(K, 400, 4), np.random.default_rng(2)
    bound, n = SAGA().bind(posterior, mode.theta), posterior.n_samples
    theta = mode.theta + mode.metric.marginal_sd
    memory = bound.begin(theta[None])
    for _ in range(20):
        rows = rng.choice(n, (1, 1, 50), replace=False)
        bound(theta[None], bound.prepare(rows)[0], memory)
        theta = theta + 0.3 * mode.metric.marginal_sd * rng.standard_normal(theta.size)
    batches = posterior.bind_batches(1, n)
    total = batches.pullback(memory["table"], batches.gather(np.arange(n)[None, None])[0])
    np.testing.assert_allclose(memory["table_grad"], total, rtol=1e-7, atol=1e-7)
    plain = spread(posterior, mode, Minibatch(), theta)
    assert np.all(spread(posterior, mode, SAGA(), theta, memory) < 0.8 * plain)


@pytest.mark.parametrize("K", [2, 3, 4])  # of four classes no row's curvature is kept
def test_a_number_of_a_rows_curvature_lies_beside_that_of_the_next_row(K):
    # a product of three classes along rows that lie apart takes 17 times as long
    (posterior, mode), B = of_classes(K, 300, 12), 20
    bound = ControlVariate(2).bind(posterior, mode.theta, mode.expansion)
    bound = replace(bound, group=8, n_sharing=4)
    assert bool(bound.rows) == (K < 4)
    rows = np.random.default_rng(0).integers(0, 300, (2, 2, B))
    (_, _, score, curvature), _ = bound.prepare(rows)
    assert (score.size, curvature.size) == (2 * (K - 1) * B, 2 * (K - 1) ** 2 * B)
    assert score.strides[-1] == curvature.strides[-1] == score.itemsize


@pytest.mark.parametrize("likelihood", [Bernoulli(), Categorical(3), NegativeBinomial()])
def test_expansions_of_rows_are_the_same_made_once_or_in_each_step(likelihood):
    posterior = posterior_of(likelihood, 300, 5)
    mode = mode_of(posterior, posterior.start())
    once = ControlVariate(2).bind(posterior, mode.theta)
    assert once.rows
    rng = np.random.default_rng(0)
    theta = mode.theta + mode.metric.sqrt(rng.standard_normal((8, posterior.n_params)))
    rows = rng.integers(0, 300, (3, 2, 40))
    found, expected = (
        [bound(theta, batch) for batch in bound.prepare(rows)]
        for bound in (replace(each, n_sharing=4) for each in (once, replace(once, rows=[])))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("unit", [1.0, 1e16])
def test_large_shared_batches_are_rounded(unit):
    rng, n, d, B = np.random.default_rng(0), 3000, 70, 600
    X = 5.0 + rng.standard_normal((n, d))
    y = (X[:, 0] + rng.logistic(size=n) > 5.0).astype(float)
    posterior = GLMPosterior(unit * X, y, Bernoulli(), Normal(1.0 / unit), intercept_at_mean=True)
    mode = mode_of(posterior, posterior.start())
    bound = replace(ControlVariate(2).bind(posterior, mode.theta), group=8, n_sharing=4)
    idx = rng.integers(0, n, (1, 2, B))
    theta = mode.theta + mode.metric.sqrt(rng.standard_normal((8, d + 1)))
    plain = ControlVariate(2).bind(posterior, mode.theta)
    exact = plain(theta, plain.prepare(np.repeat(idx, 4, axis=1))[0])
    error = mode.metric.sqrt_t(bound(theta, bound.prepare(idx)[0]) - exact)
    assert 1e-9 < np.abs(error).max() < 1e-4  # sds of the posterior a step
