"""Sparse rows whose own noise is integrated out: algebra, trajectories, and whole posteriors."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebval
from scipy import sparse
from scipy.special import log_ndtr
from scipy.stats import norm

from skbayes_sgld.posterior import Bernoulli, GLMPosterior, Normal
from skbayes_sgld.posterior.collapsed_rows import CollapsedRows, _terms, collapsed_rows
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.gradients import Full
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers.collapsed import CollapsedHMC
from skbayes_sgld.sampling.schedules import Constant
from skbayes_sgld.sampling.tuning.adaptation import around
from skbayes_sgld.sampling.tuning.mode import Mode
from tests.posterior.test_sparse_rows import make_rows, reference_moments

SCALE = 12.0


def make_posterior(n=50, d=250, **options):
    X, y = make_rows(n, d, 0.1, seed=7)
    return GLMPosterior(X, y, Bernoulli(), Normal(scale=SCALE), center=True, **options)


POSTERIOR = make_posterior()
ROWS = CollapsedRows(POSTERIOR, np.zeros(POSTERIOR.n_params))


def some_duals(rows, n_chains=3, seed=0):
    generators = [np.random.default_rng(seed + c) for c in range(n_chains)]
    dual = np.zeros((n_chains, rows.n_rows + 1))
    for _ in range(3):
        dual, _ = rows.move(dual, np.full(n_chains, 0.1), 12, generators)
    return dual, generators


def kernel_of(rows):
    return rows._gram(np.eye(POSTERIOR.n_samples, dtype=np.float32)).astype(float)


def test_polynomials_are_the_functions_of_the_kernel():
    K = kernel_of(ROWS)
    np.testing.assert_allclose(np.diagonal(K).mean(), 1.0, atol=0.2)
    values, vectors = np.linalg.eigh(K)
    low, high = ROWS._bounds
    assert low == pytest.approx(0.9 * values[0], rel=1e-3)
    assert high == pytest.approx(1.05 * values[-1], rel=1e-3)
    x = np.random.default_rng(1).standard_normal((2, len(K))).astype(np.float32)
    for terms, powers in [
        (ROWS._inverse_terms, 1.0 / values),
        (ROWS._root_terms, (values - ROWS._own) ** -0.5),
    ]:
        expected = x @ (vectors * powers) @ vectors.T
        np.testing.assert_allclose(ROWS._polynomial(terms, x), expected, atol=0.01)


def test_polynomials_have_no_more_terms_than_their_error_takes():
    terms = _terms(np.reciprocal, 0.5, 2.0, 1e-3)
    x = np.linspace(0.5, 2.0, 500)
    error = chebval((x - 1.25) / 0.75, terms) * x - 1.0
    assert 2e-4 < np.abs(error).max() < 1e-3


def test_positions_have_the_predictors_of_their_duals_and_the_noise_that_labels_cut():
    dual, _ = some_duals(ROWS, 1)
    generators = [np.random.default_rng(c) for c in range(4000)]
    z = ROWS.leave(np.tile(dual, (4000, 1)), generators)
    value, signs = ROWS._pair(dual)[1, 0].astype(float), 2.0 * POSTERIOR.y - 1.0
    eta = signs * (ROWS.locate(z) @ POSTERIOR.design(slice(0, 50)).toarray().T)
    u = (eta - signs * ROWS._level * value[-1] - ROWS._offset) / ROWS._norms
    # of a sum of two normal variables that is above a limit, the mean of one
    x = ROWS._logits(ROWS._pair(dual)[1])[0].astype(float)
    mills = norm.pdf(x) / norm.cdf(x)
    noise = np.square(ROWS._noise) / ROWS._total * mills / ROWS._norms
    error = u.std(axis=0) / np.sqrt(4000)
    assert np.abs((u.mean(axis=0) - value[:-1] - noise) / error).max() < 4.5


def log_likelihood(value):
    return log_ndtr(ROWS._logits(value).astype(float)).sum(axis=1)


def test_the_force_is_the_gradient_of_the_log_likelihood():
    value = ROWS._pair(some_duals(ROWS)[0])[1]
    force = ROWS._force(value)
    move = 1e-2 * np.random.default_rng(3).standard_normal(value.shape).astype(np.float32)
    move[:, -1] = 0.0
    level = np.where(np.arange(value.shape[1]) == ROWS.n_rows, np.float32(0.02), np.float32(0.0))
    ends = [log_likelihood(value + s * move) for s in (1, -1)]
    np.testing.assert_allclose((ends[0] - ends[1]) / 2, (force * move).sum(axis=1), rtol=0.01)
    ends = [log_likelihood(value + s * level) for s in (1, -1)]
    np.testing.assert_allclose((ends[0] - ends[1]) / 0.04, force[:, -1], rtol=0.01, atol=1e-3)


def test_the_error_of_the_energy_falls_with_the_square_of_the_step():
    (dual, _), errors = some_duals(ROWS), []
    for n_steps in (20, 40):
        generators = [np.random.default_rng(c) for c in range(3)]
        errors.append(np.abs(ROWS.move(dual, np.full(3, 1.0 / n_steps), n_steps, generators)[1]))
    assert 2.5 < errors[0].max() / errors[1].max() < 6.0


def test_a_collapsed_chain_has_the_moments_of_hamiltonian_monte_carlo():
    mode, d = Mode.from_whitened(ROWS), POSTERIOR.n_features
    dynamics = around(Dynamics(Full().bind(POSTERIOR), mode.metric), mode)
    sampler = CollapsedHMC()
    run = Run(sampler, dynamics, Constant(), sampler.whole_steps(0.2), POSTERIOR.n_samples)
    chains = run_chains(run, np.tile(ROWS.center, (32, 1)), n_draws=70, n_burnin=8, seed=0)
    assert 0.85 < chains.acceptance < 0.99  # 0.93
    longer = replace(run, step_size=sampler.whole_steps(0.6))
    far = run_chains(longer, np.tile(ROWS.center, (32, 1)), n_draws=20, n_burnin=8, seed=0)
    assert far.acceptance < 0.2  # 0.03
    X, y = make_rows(50, 250, 0.1, seed=7)
    mean, sd = reference_moments(X.toarray(), y, SCALE, n_trajectories=80)
    flat = chains.draws[..., :d].reshape(-1, d)
    shift, width = (flat.mean(axis=0) - mean) / sd, flat.std(axis=0) / sd
    assert np.sqrt(np.mean(np.square(shift))) < 0.05
    assert width.mean() == pytest.approx(1.0, abs=0.01)
    alone = run_chains(run, ROWS.center[None], n_draws=3, seed=0)
    np.testing.assert_array_equal(
        alone.draws[0], run_chains(run, np.tile(ROWS.center, (3, 1)), n_draws=3, seed=0).draws[0]
    )


def test_rows_that_depend_on_each_other_and_other_models_are_not_collapsed():
    theta = np.zeros(POSTERIOR.n_params)
    assert collapsed_rows(POSTERIOR, theta) is not None
    assert collapsed_rows(make_posterior(sample_weight=np.full(50, 2.0)), theta) is None
    assert collapsed_rows(make_posterior(intercept_prior=Normal(2.0)), theta) is None
    X = sparse.vstack([POSTERIOR.X, POSTERIOR.X[:5]]).tocsr()
    y = np.append(POSTERIOR.y, POSTERIOR.y[:5])
    twice = GLMPosterior(X, y, Bernoulli(), Normal(scale=SCALE), center=True)
    assert collapsed_rows(twice, theta) is None


def test_a_run_that_goes_on_is_the_same_as_one_that_was_never_stopped():
    mode = Mode.from_whitened(ROWS)
    sampler = CollapsedHMC()
    dynamics = around(Dynamics(Full().bind(POSTERIOR), mode.metric), mode)
    run = Run(sampler, dynamics, Constant(), sampler.whole_steps(0.2), POSTERIOR.n_samples)
    start = np.tile(ROWS.center, (2, 1))
    whole = run_chains(run, start, n_draws=4, seed=3)
    first = run_chains(run, start, n_draws=2, seed=3)
    rest = run_chains(run, first.state, n_draws=2)
    np.testing.assert_array_equal(np.concatenate([first.draws, rest.draws], axis=1), whole.draws)
