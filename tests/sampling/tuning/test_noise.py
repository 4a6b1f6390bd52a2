"""The noise of minibatches, and the cheaper of a batch and all rows."""

import numpy as np
import pytest
from scipy.special import expit

from skbayes_sgld._components import start_normals
from skbayes_sgld.posterior import Bernoulli, Categorical, GLMPosterior, Normal
from skbayes_sgld.sampling import ControlVariate, Full, Minibatch, find_mode
from skbayes_sgld.sampling.dynamics import Metric
from skbayes_sgld.sampling.tuning import noise
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.mode import Mode

N, D = 400, 3


def model(n=N):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D))
    y = (rng.random(n) < expit(2.0 * X[:, 0])).astype(float)
    return GLMPosterior(X, y, Bernoulli(), Normal(scale=1.0))


def rests(posterior, mode, theta):
    """Rows' gradients at draws ``(S, P)`` less their second-order expansion, whitened, centred."""
    design = np.column_stack([posterior.X, np.ones(N)])
    at_mode, at = expit(design @ mode.theta), expit(theta @ design.T)
    linear = at_mode + at_mode * (1.0 - at_mode) * ((theta - mode.theta) @ design.T)
    of_rows = np.einsum("sn,np->snp", linear - at, design) @ mode.root
    return N * (of_rows - of_rows.mean(axis=1, keepdims=True))


def test_the_noise_of_two_draws_in_common_is_the_covariance_of_their_rests():
    posterior = model()
    mode = find_mode(posterior, posterior.start())
    draws = mode.theta + np.random.default_rng(1).standard_normal((4000, D + 1)) @ mode.root.T
    found = rests(posterior, mode, draws)
    own = np.einsum("snp,snq->pq", found, found) / (len(found) * N)
    mean = found.mean(axis=0)  # of so many draws nearly the product of two
    common = mean.T @ mean / N
    expected = [np.linalg.eigvalsh(of)[-1] for of in (own, common)]
    levels = [
        noise.measure_noise(posterior, ControlVariate(), mode, 1.0, seed) for seed in range(40)
    ]
    measured = np.array([(level.variance, level.common) for level in levels])
    error = measured.std(axis=0) / np.sqrt(len(levels))
    # the largest eigenvalue of few draws leans to the larger side, by less than they scatter
    assert np.all(np.abs(measured.mean(axis=0) - expected) < 4 * error + 0.1 * np.array(expected))
    assert 0.1 < expected[1] / expected[0] < 0.6


def test_shared_batches_are_so_large_that_a_chains_mean_varies_by_8_percent_more():
    level = noise.NoiseLevel(variance=10.0, common=8.0)
    assert level.batch_size(1.0, 1.0) == 500  # 10 / 2 is a hundredth of it
    assert level.batch_size(1.0, 1.0, n_walkers=4) == 500
    assert level.batch_size(1.0, 1.0, n_walkers=16) == 800  # 16 * 8 / 2 is 8 % of it


def at_mode(posterior):
    return Mode(np.zeros(posterior.n_params), Metric(posterior.n_params))


@pytest.mark.parametrize("n_walkers", [1, 16])
@pytest.mark.parametrize("more, gradient", [(-2, Full), (2, ControlVariate)])
def test_all_rows_are_taken_where_a_batch_costs_as_much(n_walkers, more, gradient, monkeypatch):
    level = noise.NoiseLevel(10.2)  # batches of 510
    monkeypatch.setattr(noise, "measure_noise", lambda *args, **kwargs: level)
    relative = noise.cost_of_a_row(model(10), n_walkers)
    posterior = model(round(510 * relative) + more)
    found, batch_size, why, _ = noise.cheapest_gradient(
        posterior, at_mode(posterior), 1.0, 0, n_walkers
    )
    assert isinstance(found, gradient)
    assert batch_size == (None if gradient is Full else 510)
    assert ("16 walkers share each" in why) == (gradient is ControlVariate and n_walkers == 16)


def test_a_row_of_a_shared_batch_costs_more_where_predictors_are_more_than_numbers():
    rng = np.random.default_rng(0)
    wide = GLMPosterior(
        rng.standard_normal((30, 200)), np.arange(30) % 2, Bernoulli(), Normal(scale=1.0)
    )
    narrow = GLMPosterior(
        rng.standard_normal((30, 2)), np.arange(30) % 3, Categorical(3), Normal(scale=1.0)
    )
    assert 1.0 < noise.cost_of_a_row(wide, 16) < 2.0 < noise.cost_of_a_row(narrow, 16)


def test_a_row_of_a_shared_batch_costs_seven_of_all_rows_where_classes_are_ten():
    # measured: 9.0 times with 30 columns, 6.0 times with 100; batches of 438 of 3,000 rows took
    # 1.4 times what all of them do
    rng = np.random.default_rng(0)
    ten = GLMPosterior(
        rng.standard_normal((40, 30)), np.arange(40) % 10, Categorical(10), Normal(scale=1.0)
    )
    assert 7.0 < noise.cost_of_a_row(ten, 16) < 9.0


@pytest.mark.parametrize("gradient", [Minibatch(), ControlVariate()], ids=repr)
@pytest.mark.parametrize("dense", [True, False])  # the covariance as a matrix, and as products
def test_the_noise_is_the_mean_over_the_draws_of_a_rows_covariance(gradient, dense, monkeypatch):
    # of ten rows the gradient at a draw is as large as its noise: its square, which is taken off,
    # counts
    rng = np.random.default_rng(3)
    X = rng.standard_normal((10, D))
    posterior = GLMPosterior(X, (X[:, 0] > 0.3).astype(float), Bernoulli(), Normal(scale=1.0))
    mode = find_mode(posterior, posterior.start())
    if not dense:
        monkeypatch.setattr(noise, "MAX_DENSE", 1)
    level = noise.measure_noise(posterior, gradient, mode, 2.0, seed=5)
    chains = range(FIRST_CHAIN, FIRST_CHAIN + 16)
    draws = mode.theta + np.sqrt(2.0) * start_normals(5, chains, D + 1) @ mode.root.T
    design = np.column_stack([X, np.ones(10)])
    p, at_mode = expit(draws @ design.T), expit(design @ mode.theta)
    score = posterior.y - p
    if isinstance(gradient, ControlVariate):
        moved = (draws - mode.theta) @ design.T
        score = at_mode + at_mode * (1.0 - at_mode) * moved - p
    rows = 10 * np.einsum("sn,np->snp", score, design) @ mode.root
    rows -= rows.mean(axis=1, keepdims=True)
    covariance = np.einsum("snp,snq->pq", rows, rows) / (16 * 10)
    assert level.variance == pytest.approx(np.linalg.eigvalsh(covariance)[-1], rel=1e-3)
    assert level.inflation(0.5, 2, 3.0) == pytest.approx(0.5 * level.variance / (2.0 * 3.0 * 2))
