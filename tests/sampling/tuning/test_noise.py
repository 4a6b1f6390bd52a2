"""The noise of minibatches, and the cheaper of a batch and all rows."""

import numpy as np
import pytest
from scipy.special import expit

from skbayes_sgld._random import start_normals
from skbayes_sgld.likelihoods import Bernoulli, Categorical
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.sampling import ControlVariate, Full, Minibatch
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning import noise
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.leverage import Split
from skbayes_sgld.sampling.tuning.mode import Mode
from tests.references.targets import logistic_posterior, mode_of, posterior_of

N, D = 400, 3


def test_shared_batches_are_so_large_that_a_chains_mean_varies_by_8_percent_more():
    level = noise.NoiseLevel(variance=5.0, common=8.0)
    assert level.batch_size(1.0, 1.0) == 500  # 5 is a hundredth of it
    assert level.batch_size(1.0, 1.0, n_walkers=4) == 500
    assert level.batch_size(1.0, 1.0, n_walkers=16) == 800  # 16 * 8 / 2 is 8 % of it


@pytest.mark.parametrize("n_walkers, pays", [(1, True), (1, False), (16, True), (16, False)])
def test_all_rows_are_taken_where_a_batch_costs_as_much(n_walkers, pays, monkeypatch):
    # of 5,200 rows of 3 columns batches of 400 and 1,400 cost 0.4 and 1.3 times what all rows do
    # where walkers share them, and 0.3 and 1.1 times where each chain has its own
    posterior, batch_size = logistic_posterior(5200, D), 400 if pays else 1400
    level = noise.NoiseLevel(0.01 * batch_size - 1e-3)
    monkeypatch.setattr(noise, "measure_noise", lambda *args, **kwargs: level)
    mode = Mode(np.zeros(D + 1), Diagonal(np.ones(D + 1)))
    found, chosen, why, *_ = noise.cheapest_gradient(posterior, mode, 1.0, 0, n_walkers)
    assert isinstance(found, ControlVariate if pays else Full)
    assert chosen == (batch_size if pays else None)
    assert ("16 walkers share each" in why) == (pays and n_walkers == 16)


@pytest.mark.parametrize("n_columns, n_rows", [(3, 2000), (249, 2500)])
def test_a_choice_of_rows_measures_ten_a_parameter_or_2000(n_columns, n_rows, monkeypatch):
    posterior, counts = logistic_posterior(2600, n_columns), []
    bind_batches = GLMPosterior.bind_batches

    def count(self, n_chains, batch_size, *args):
        counts.append(batch_size)
        return bind_batches(self, n_chains, batch_size, *args)

    monkeypatch.setattr(GLMPosterior, "bind_batches", count)
    # without rows of high leverage, which are measured besides
    monkeypatch.setattr(noise, "read_always", lambda *args: Split(posterior, args[1]))
    mode = Mode(np.zeros(n_columns + 1), Diagonal(np.full(n_columns + 1, 1e-3)))
    noise.cheapest_gradient(posterior, mode, 1.0, 0, 1)
    assert set(counts) == {n_rows}


@pytest.mark.parametrize(
    "n_classes, n_columns, of_all, of_batch",
    [(2, 5, 1.48, 6.1), (2, 150, 8.36, 9.9), (3, 20, 4.28, 18.9), (10, 150, 60.0, 101.0)],
)
def test_a_row_costs_what_is_measured(n_classes, n_columns, of_all, of_batch):
    # nanoseconds a row and a position, by `python -m benchmarks.rates`
    likelihood = Bernoulli() if n_classes == 2 else Categorical(n_classes)
    posterior = posterior_of(likelihood, 1000, n_columns)
    small, all_rows = noise.step_costs(posterior, 32)
    large, _ = noise.step_costs(posterior, 128)
    assert all_rows / 1000 == pytest.approx(of_all, rel=0.6)
    assert (large - small) / 96 == pytest.approx(of_batch, rel=0.6)


def test_a_batch_has_to_be_much_cheaper_where_all_rows_cost_little():
    # all rows take 2,492 and 2,505 nanoseconds
    few, many = logistic_posterior(2010, 3), logistic_posterior(2020, 3)
    of_batch, of_all = noise.step_costs(few, 300)
    assert 0.4 * of_all < of_batch < of_all < 2500.0 < noise.step_costs(many, 300)[1]
    assert not noise.batch_pays(few, 300, 16)
    assert noise.batch_pays(many, 300, 16)
    assert noise.batch_pays(few, 50, 16)
    ten_classes = posterior_of(Categorical(10), 1000, 5)
    assert noise.batch_pays(ten_classes, 69, 16)  # 0.49 of 13 microseconds
    assert not noise.batch_pays(logistic_posterior(2000, 3), 8, 1)
    assert noise.batch_pays(logistic_posterior(2001, 3), 8, 1)


def test_the_noise_of_wide_rows_is_measured_with_enough_of_them():
    # 1,000 rows of 158 parameters give a largest eigenvalue that is far too large
    posterior = logistic_posterior(9000, 157)
    mode = mode_of(posterior, posterior.start())
    default, enough, few = (
        noise.measure_noise(posterior, ControlVariate(), mode, 1.0, 0, most_rows=rows).variance
        for rows in (None, 8011, 1000)
    )
    assert default == enough
    assert few > 1.2 * enough


@pytest.mark.parametrize(
    "gradient, dense",  # the covariance as a matrix, and as products
    [
        (Minibatch(), True),
        (ControlVariate(1), True),
        (ControlVariate(), True),
        (ControlVariate(), False),
    ],
    ids=str,
)
def test_the_noise_is_the_mean_over_the_draws_of_a_rows_covariance(gradient, dense, monkeypatch):
    # of ten rows the gradient at a draw is as large as its noise: its square, which is taken off,
    # counts
    posterior = logistic_posterior(10, D)
    mode = mode_of(posterior, posterior.start())
    if not dense:
        monkeypatch.setattr(noise, "MAX_DENSE", 1)
    level = noise.measure_noise(posterior, gradient, mode, 2.0, seed=5)
    chains = range(FIRST_CHAIN, FIRST_CHAIN + 16)
    draws = mode.theta + np.sqrt(2.0) * start_normals(5, chains, D + 1) @ mode.metric.root.T
    design = np.column_stack([posterior.X, np.ones(10)])
    p, at_mode = expit(draws @ design.T), expit(design @ mode.theta)
    score = posterior.y - p
    if isinstance(gradient, ControlVariate):
        moved = (draws - mode.theta) @ design.T * (gradient.order == 2)
        score = at_mode + at_mode * (1.0 - at_mode) * moved - p
    rows = 10 * np.einsum("sn,np->snp", score, design) @ mode.metric.root
    if dense:  # of the products of two different draws, less that of their means
        total, mean = rows.sum(axis=0), rows.mean(axis=(0, 1))
        pairs = total.T @ total - np.einsum("snp,snq->pq", rows, rows)
        of_two = pairs / (16 * 15 * 10) - np.outer(mean, mean)
        assert level.common == pytest.approx(np.linalg.eigvalsh(of_two)[-1], rel=1e-6)
    rows -= rows.mean(axis=1, keepdims=True)
    covariance = np.einsum("snp,snq->pq", rows, rows) / (16 * 10)
    assert level.variance == pytest.approx(np.linalg.eigvalsh(covariance)[-1], rel=1e-3)
    assert level.inflation(0.5, 2, 3.0) == pytest.approx(0.5 * level.variance / (1.5 * 3.0 * 2))


@pytest.mark.parametrize("step_size", [1.0, 0.5, 0.1])
def test_noise_of_batches_widens_the_variance_of_steps_as_foretold(step_size):
    # z <- (1 - eta) z + sqrt(2 eta) (mean of two normals) + eta e, var(e) = S / B = 0.3
    rng = np.random.default_rng(0)
    C, T = 2000, 200
    z, normal, total = np.zeros(C), rng.standard_normal(C), []
    for t in range(T):
        new = rng.standard_normal(C)
        z = (1.0 - step_size) * z + np.sqrt(0.5 * step_size) * (normal + new)
        z = z + step_size * np.sqrt(0.3) * rng.standard_normal(C)
        normal = new
        if t >= T // 2:
            total.append(np.mean(z**2))
    found = np.mean(total) - 1.0
    # the draws are worth those of C chains at each autocorrelation time
    error = np.sqrt(2.0 / (C * T / 2 / (4.0 / step_size)))
    foretold = noise.NoiseLevel(0.3 * 7).inflation(step_size, 7, 1.0)
    assert found == pytest.approx(foretold, abs=4.0 * error)
