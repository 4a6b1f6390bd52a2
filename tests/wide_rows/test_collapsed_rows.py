"""Sparse rows whose own noise is integrated out: algebra, trajectories, and whole posteriors."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebval
from scipy import sparse

from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.gradients import Full
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.schedules import Constant
from skbayes_sgld.sampling.tuning.adaptation import recentred
from skbayes_sgld.sampling.tuning.mode import Center, Mode
from skbayes_sgld.wide_rows.collapsed_hmc import CollapsedHMC
from skbayes_sgld.wide_rows.collapsed_rows import CollapsedRows, _terms, collapsed_rows
from skbayes_sgld.wide_rows.pilot import PilotAlongRows
from tests.posterior.test_sparse_rows import make_rows

SCALE = 12.0


def make_posterior(n=50, d=250, **options):
    X, y = make_rows(n, d, 0.1, seed=7)
    return GLMPosterior(X, y, Bernoulli(), Normal(scale=SCALE), intercept_at_mean=True, **options)


POSTERIOR = make_posterior()
ROWS = CollapsedRows(POSTERIOR, np.zeros(POSTERIOR.n_params))


def test_polynomials_are_the_functions_of_the_kernel():
    K = ROWS._gram(np.eye(POSTERIOR.n_samples, dtype=np.float32)).astype(float)
    np.testing.assert_allclose(np.diagonal(K), 1.0, rtol=1e-5)  # rows of length 1
    values, vectors = np.linalg.eigh(K)
    assert ROWS._bounds == pytest.approx((0.9 * values[0], 1.05 * values[-1]), rel=1e-3)
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


@pytest.fixture(scope="module")
def run():
    mode, sampler = Mode.from_whitened(ROWS), CollapsedHMC()
    dynamics = recentred(Dynamics(Full().bind(POSTERIOR), mode.metric), mode)
    return Run(sampler, dynamics, Constant(), sampler.whole_steps(0.2), POSTERIOR.n_samples)


def start(n_chains):
    return np.tile(ROWS.center, (n_chains, 1))


def test_a_pilot_starts_a_tenth_of_the_way_from_the_centre(run):
    middle, *position = np.random.default_rng(0).standard_normal((4, POSTERIOR.n_params))
    center = Center.from_whitened(CollapsedRows(POSTERIOR, middle))
    start = PilotAlongRows().start(run, np.array(position), center, seed=0)
    assert np.abs(center.theta).max() > 0.1
    expected = 0.9 * center.theta + 0.1 * np.array(position)
    np.testing.assert_allclose(start, expected, atol=1e-12)


def test_draws_of_collapsed_chains_obey_the_identities_of_their_density(run):
    chains = run_chains(run, start(32), n_draws=70, n_burnin=8, seed=0)
    assert 0.85 < chains.acceptance < 0.99  # 0.93
    # integration by parts: E[d log p] = 0 and E[-(theta - c) d log p] = 1
    theta = chains.draws.reshape(-1, POSTERIOR.n_params)
    slopes = POSTERIOR.grad(theta)
    error = slopes.mean(axis=0) / (slopes.std(axis=0) / np.sqrt(len(theta)))
    virial = -((theta - theta.mean(axis=0)) * slopes).mean(axis=0)
    assert np.sqrt(np.square(error).mean()) < 1.6
    assert virial.mean() == pytest.approx(1.0, abs=0.01)
    assert virial[-1] == pytest.approx(1.0, abs=0.25)  # of the intercept


def test_long_steps_are_rejected(run):
    longer = replace(run, step_size=run.sampler.whole_steps(0.6))
    far = run_chains(longer, start(8), n_draws=12, n_burnin=8, seed=0)
    assert far.acceptance < 0.2  # 0.03


def test_chains_do_not_depend_on_each_other_and_go_on_where_they_stopped(run):
    whole = run_chains(run, start(2), n_draws=4, seed=3)
    alone = run_chains(run, start(1), n_draws=2, seed=3)
    np.testing.assert_array_equal(alone.draws[0], whole.draws[0, :2])
    rest = run_chains(run, alone.state, n_draws=2)
    np.testing.assert_array_equal(rest.draws[0], whole.draws[0, 2:])


def test_rows_that_depend_on_each_other_and_other_models_are_not_collapsed():
    theta = np.zeros(POSTERIOR.n_params)
    assert collapsed_rows(POSTERIOR, theta) is not None
    assert collapsed_rows(make_posterior(sample_weight=np.full(50, 2.0)), theta) is None
    assert collapsed_rows(make_posterior(intercept_prior=Normal(2.0)), theta) is None
    X = sparse.vstack([POSTERIOR.X, POSTERIOR.X[:5]]).tocsr()
    y = np.append(POSTERIOR.y, POSTERIOR.y[:5])
    twice = GLMPosterior(X, y, Bernoulli(), Normal(scale=SCALE), intercept_at_mean=True)
    assert collapsed_rows(twice, theta) is None
