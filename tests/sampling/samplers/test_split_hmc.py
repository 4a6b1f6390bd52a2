"""Trajectories that follow steep rows in shorter steps than the others."""

from dataclasses import replace

import numpy as np
import pytest

from skbayes_sgld.likelihoods import Bernoulli, Categorical
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.steep_rows import SteepRows
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import HMC
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.metric import Dense
from skbayes_sgld.sampling.samplers.split_hmc import SplitGradient, SplitHMC
from tests.marks import slow
from tests.references.targets import mode_of, run_at_mode


def outlying():
    """A coefficient of which one row at 30 sds says that it is not negative."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(40), rng.integers(0, 2, 40).astype(float)
    x[0], y[0] = -30.0, 0.0
    return GLMPosterior(x[:, None], y, Bernoulli(), Normal(2.0), fit_intercept=False)


def split_run(posterior, rows, sampler, step_size, **settings):
    """A run about the mode, in the metric of the other rows."""
    run, mode = run_at_mode(posterior, sampler=sampler, step_size=step_size, **settings)
    others = posterior.take(np.setdiff1d(np.arange(posterior.n_samples), rows))
    gradient = SplitGradient(posterior, steep=SteepRows(posterior, rows))
    metric = Dense.from_curvature(others.curvature(mode.theta))
    dynamics = replace(run.dynamics, gradient=gradient, metric=metric, center=mode.theta)
    return replace(run, dynamics=dynamics)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("group", [4, None])
def test_the_force_of_steep_rows_is_theirs_in_the_coordinates_of_the_metric(classes, group):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)) + 1.0, rng.integers(0, classes, 30).astype(float)
    likelihood = Bernoulli() if classes == 2 else Categorical(classes)
    posterior, rows = GLMPosterior(X, y, likelihood, Normal(1.0)), np.array([2, 5, 11])
    mode, z = mode_of(posterior), rng.standard_normal((6, posterior.n_params))
    theta = mode.theta + mode.metric.sqrt(z)
    others = np.setdiff1d(np.arange(30), rows)
    own = posterior.grad(theta) - posterior.take(others).grad(theta)
    force = SteepRows(posterior, rows).bound(mode.metric.root, mode.theta, group)(z)
    np.testing.assert_allclose(force, mode.metric.sqrt_t(own), rtol=1e-4, atol=1e-5)


def test_short_steps_are_rotations_and_kicks_by_the_steep_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)) + 1.0, rng.integers(0, 3, 30).astype(float)
    posterior = GLMPosterior(X, y, Categorical(3), Normal(1.0))
    mode, (z, momentum) = mode_of(posterior), rng.standard_normal((2, 6, posterior.n_params))
    force = SteepRows(posterior, np.array([2, 5])).bound(mode.metric.root, mode.theta, None)
    short = rng.uniform(0.05, 0.15, (6, 1))
    found = force.follow(z, momentum, short, 7)
    cos, sin = np.cos(0.5 * short), np.sin(0.5 * short)
    for _ in range(7):
        z, momentum = cos * z + sin * momentum, cos * momentum - sin * z
        momentum = momentum + short * force(z)
        z, momentum = cos * z + sin * momentum, cos * momentum - sin * z
    np.testing.assert_allclose(found, (z, momentum), atol=2e-6)


@pytest.mark.parametrize(
    ("step_size", "n_points", "temperature"), [slow(0.3, 1, 1.0), (0.9, 1, 0.5), (0.6, 3, 1.0)]
)
def test_draws_are_exact_for_any_step_size(step_size, n_points, temperature):
    posterior = outlying()
    sampler = SplitHMC(n_points=n_points, short_step=0.1)
    run = split_run(posterior, np.array([0]), sampler, step_size, temperature=temperature)
    draws = run_chains(run, np.full((400, 1), 0.3), n_draws=100, n_burnin=50, seed=0).draws[..., 0]
    grid = np.linspace(-3.0, 6.0, 20_001)
    weight = np.exp(posterior.log_density(grid[:, None]) / temperature)
    mean = np.average(grid, weights=weight)
    variance = np.average((grid - mean) ** 2, weights=weight)
    for values, expected in [(draws, mean), ((draws - mean) ** 2, variance)]:
        by_chain = values.mean(axis=1)
        assert abs(by_chain.mean() - expected) < 4 * by_chain.std(ddof=1) / np.sqrt(len(by_chain))


def test_short_steps_by_a_steep_row_accept_long_ones_by_the_others():
    posterior, start = outlying(), np.full((100, 1), 0.3)
    run = split_run(posterior, np.array([0]), SplitHMC(), 0.9)
    plain = replace(run, sampler=HMC())
    accepted = [run_chains(each, start, n_draws=60).acceptance for each in (run, plain)]
    assert accepted[0] > 0.95 > 0.9 > accepted[1]


def test_a_chain_does_not_depend_on_the_others():
    posterior = outlying()
    run = split_run(posterior, np.array([0]), SplitHMC(n_points=2), 0.45)
    start = np.linspace(0.5, 1.5, 9)[:, None]
    draws = run_chains(run, start, n_draws=20, seed=0).draws
    np.testing.assert_array_equal(draws[:2], run_chains(run, start[:2], n_draws=20, seed=0).draws)
