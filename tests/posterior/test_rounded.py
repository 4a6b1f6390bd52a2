"""Gradients in single precision: trajectories may follow them, and no more."""

from dataclasses import replace

import numpy as np
import pytest

from skbayes_sgld.inference import decisions
from skbayes_sgld.posterior import Bernoulli, GLMPosterior, Normal
from skbayes_sgld.sampling import HMC, Curvature
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.tuning.mode import find_mode
from tests.references.targets import make_run

WIDE = 2**19 // 20 + 1  # rows from which 20 columns are copied to single precision


def logistic_posterior(X, seed=0):
    rng = np.random.default_rng(seed)
    y = (X[:, 0] + rng.logistic(size=len(X)) > 0).astype(float)
    return GLMPosterior(X, y, Bernoulli(), Normal(), center=True)


def rounded_dynamics(posterior):
    mode = find_mode(posterior, posterior.start())
    run = make_run(posterior, sampler=HMC(), preconditioner=Curvature(), mode=mode)
    return run, mode, decisions.round_gradient(run.dynamics, mode, 0.01)


@pytest.fixture(scope="module")
def posterior():
    return logistic_posterior(3.0 + np.random.default_rng(1).standard_normal((WIDE, 20)))


def test_only_the_gradient_is_rounded(posterior):
    theta = 0.1 * np.random.default_rng(2).standard_normal((3, posterior.n_params))
    rounded = posterior.rounded()
    np.testing.assert_array_equal(rounded.log_density(theta), posterior.log_density(theta))
    exact, near = posterior.grad(theta), rounded.grad(theta)
    assert not np.array_equal(near, exact)  # it is computed from the copy
    np.testing.assert_allclose(near, exact, rtol=0, atol=1e-4 * np.abs(exact).max())


def test_the_exact_density_accepts_what_rounded_trajectories_propose(posterior):
    run, _, dynamics = rounded_dynamics(posterior)
    assert dynamics.target is run.dynamics.gradient.posterior
    assert dynamics.gradient.posterior is not dynamics.target


def test_a_chain_on_rounded_trajectories_does_not_depend_on_the_others(posterior):
    run, mode, dynamics = rounded_dynamics(posterior)
    run.dynamics = dynamics
    start = mode.theta + mode.metric.sqrt(np.random.default_rng(3).standard_normal((5, 21)))
    all_five = run_chains(run, start, n_draws=3, seed=0).draws
    np.testing.assert_array_equal(run_chains(run, start[:2], n_draws=3, seed=0).draws, all_five[:2])


def test_columns_whose_coefficients_cancel_keep_their_precision():
    # sum and difference differ by 1e7 in size: single precision does not see the difference
    X = np.random.default_rng(4).standard_normal((WIDE, 20))
    X[:, 1] = X[:, 0] + 1e-7 * X[:, 1]
    posterior = logistic_posterior(X)
    posterior.linear_prior = replace(posterior.linear_prior, coef=Normal(1e7))
    run, _, dynamics = rounded_dynamics(posterior)
    assert dynamics is run.dynamics


def test_few_rows_and_columns_are_not_copied():
    posterior = logistic_posterior(np.random.default_rng(5).standard_normal((50, 20)))
    assert posterior.rounded() is posterior


def test_densities_are_rounded_where_they_agree(posterior):
    run, mode, dynamics = rounded_dynamics(posterior)
    rounded = decisions.round_density(dynamics, mode)
    theta = mode.theta + mode.metric.sqrt(np.random.default_rng(6).standard_normal((32, 21)))
    exact, near = (d.for_thread().value_and_gradient_at(theta)[0] for d in (dynamics, rounded))
    assert not np.array_equal(exact, near)
    assert np.ptp(near - exact) < 1e-3


def test_densities_of_large_weights_stay_exact():
    rng = np.random.default_rng(7)
    X, weight = rng.standard_normal((WIDE, 20)), np.full(WIDE, 1e6)
    y = (rng.random(WIDE) < 0.5).astype(float)
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(), center=True, sample_weight=weight)
    run, mode, _ = rounded_dynamics(posterior)
    dynamics = decisions.round_gradient(run.dynamics, mode, np.inf)
    assert dynamics.rounded
    assert decisions.round_density(dynamics, mode) is dynamics


@pytest.mark.parametrize("size", [4, 16])
def test_walkers_in_one_product_do_not_depend_on_how_many_chains_there_are(posterior, size):
    run, mode, dynamics = rounded_dynamics(posterior)
    run.dynamics = decisions.round_density(dynamics, mode).of_walkers(size)
    start = mode.theta + mode.metric.sqrt(np.random.default_rng(8).standard_normal((3 * size, 21)))
    alone = run_chains(run, start[:size], n_draws=3, seed=0).in_a_row(size, 3 * size)
    both = run_chains(run, start, n_draws=3, seed=0).in_a_row(size, 3 * size)
    np.testing.assert_array_equal(both.draws[:1], alone.draws)
