"""Gradient estimators: unbiased, and quiet where they must be."""

from dataclasses import replace

import numpy as np
import pytest

from skbayes_sgld.posterior import (
    Bernoulli,
    Categorical,
    Gaussian,
    GLMPosterior,
    InverseGamma,
    Normal,
)
from skbayes_sgld.sampling import (
    SAGA,
    ControlVariate,
    Full,
    Minibatch,
    find_mode,
)

ESTIMATORS = {
    "minibatch": Minibatch(),
    "control variate of order 1": ControlVariate(1),
    "control variate of order 2": ControlVariate(2),
}


@pytest.fixture(params=[Bernoulli(), Categorical(3), Gaussian()], scope="module")
def posterior(request):
    likelihood, rng = request.param, np.random.default_rng(0)
    X = rng.standard_normal((400, 4)) + 1.0
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(400)
    if not likelihood.quadratic:
        y = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3])[: likelihood.n_local]).astype(float)
        y = np.minimum(y, max(likelihood.n_predictors, 2) - 1)
    noise = InverseGamma(1.0, 1.0) if likelihood.infers_noise else None
    weight = rng.uniform(0.5, 2.0, 400)
    return GLMPosterior(X, y, likelihood, Normal(), noise, sample_weight=weight, center=True)


@pytest.fixture(scope="module")
def mode(posterior):
    return find_mode(posterior, posterior.start())


def one_row_estimates(posterior, mode, gradient, theta):
    """Estimates of all one-row minibatches ``(n, P)``."""
    n = posterior.n_samples
    bound = gradient.bind(posterior, mode.theta)
    batch = bound.prepare(np.arange(n)[None, :, None])[0]
    return bound(np.tile(theta, (n, 1)), batch)


def test_one_row_estimates_have_the_gradient_as_mean_and_each_order_is_quieter(posterior, mode):
    spread = {}
    for name, gradient in ESTIMATORS.items():
        theta = mode.theta + 0.5 * mode.metric.marginal_sd
        estimates = one_row_estimates(posterior, mode, gradient, theta)
        spread[name] = estimates.std(axis=0).max()
        full = Full().bind(posterior, None)(theta[None], None)[0]
        assert np.abs(full).max() > 1.0
        np.testing.assert_allclose(estimates.mean(axis=0), full, rtol=1e-8, atol=1e-8)
        rows = np.array([3, 70, 3, 41])
        bound = gradient.bind(posterior, mode.theta)
        batch = bound.prepare(rows[None, None])[0]
        np.testing.assert_allclose(bound(theta[None], batch)[0], estimates[rows].mean(axis=0))
    plain, first, second = spread.values()
    assert second < 0.5 * first < 0.25 * plain


@pytest.mark.parametrize("order", [1, 2])
def test_control_variates_have_no_variance_at_their_centre(posterior, mode, order):
    estimates = one_row_estimates(posterior, mode, ControlVariate(order), mode.theta)
    plain = one_row_estimates(posterior, mode, Minibatch(), mode.theta)
    assert plain.std(axis=0).max() > 1.0
    assert estimates.std(axis=0).max() < 1e-9 * plain.std(axis=0).max()


def test_saga_remembers_every_row_where_it_was_last_seen_and_is_quieter(posterior, mode):
    bound, rng, n = SAGA().bind(posterior, mode.theta), np.random.default_rng(2), 400
    theta = mode.theta + mode.metric.marginal_sd
    memory = bound.begin(theta[None])
    for _ in range(20):
        rows = rng.choice(n, (1, 1, 50), replace=False)
        bound(theta[None], bound.prepare(rows)[0], memory)
        theta = theta + 0.3 * mode.metric.marginal_sd * rng.standard_normal(theta.size)
    batches = posterior.bind_batches(1, n)
    total = batches.pullback(memory["table"], batches.gather(np.arange(n)[None, None])[0])
    np.testing.assert_allclose(memory["table_grad"], total, rtol=1e-7, atol=1e-7)
    estimates = []
    for row in range(n):
        kept = {name: array.copy() for name, array in memory.items()}
        estimates.append(bound(theta[None], bound.prepare(np.array([[[row]]]))[0], kept)[0])
    plain = one_row_estimates(posterior, mode, Minibatch(), theta)
    assert np.all(np.std(estimates, axis=0) < 0.8 * plain.std(axis=0))


@pytest.mark.parametrize("K", [2, 3])  # the curvature of rows is kept of two classes alone
def test_a_number_of_a_rows_curvature_lies_beside_that_of_the_next_row(K):
    # a product of three classes along rows that lie apart takes 17 times as long
    rng, n, B = np.random.default_rng(0), 300, 20
    likelihood = Bernoulli() if K == 2 else Categorical(K)
    posterior = GLMPosterior(
        rng.standard_normal((n, 12)), np.arange(n) % K, likelihood, Normal(1.0)
    )
    mode = find_mode(posterior, posterior.start())
    bound = ControlVariate(2).bind(posterior, mode.theta, mode.expansion)
    bound = replace(bound, group=8, n_sharing=4)
    assert bool(bound.rows) == (K == 2)
    (_, _, score, curvature), _ = bound.prepare(rng.integers(0, n, (2, 2, B)))
    assert (score.size, curvature.size) == (2 * (K - 1) * B, 2 * (K - 1) ** 2 * B)
    assert score.flags.c_contiguous
    assert curvature.flags.c_contiguous


@pytest.mark.parametrize("unit", [1.0, 1e16])
def test_large_shared_batches_are_rounded(unit):
    rng, n, d, B = np.random.default_rng(0), 3000, 70, 600
    X = 5.0 + rng.standard_normal((n, d))
    y = (X[:, 0] + rng.logistic(size=n) > 5.0).astype(float)
    posterior = GLMPosterior(unit * X, y, Bernoulli(), Normal(1.0 / unit), center=True)
    mode = find_mode(posterior, posterior.start())
    bound = replace(ControlVariate(2).bind(posterior, mode.theta), group=8, n_sharing=4)
    idx = rng.integers(0, n, (1, 2, B))
    theta = mode.theta + mode.metric.sqrt(rng.standard_normal((8, d + 1)))
    plain = ControlVariate(2).bind(posterior, mode.theta)
    exact = plain(theta, plain.prepare(np.repeat(idx, 4, axis=1))[0])
    error = mode.metric.sqrt_t(bound(theta, bound.prepare(idx)[0]) - exact)
    assert 1e-9 < np.abs(error).max() < 1e-4  # sds of the posterior a step
