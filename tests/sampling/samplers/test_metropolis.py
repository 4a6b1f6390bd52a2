"""The Metropolis-adjusted step and its adaptation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate

from skbayes_sgld._random import probe_generator
from skbayes_sgld.likelihoods import Bernoulli, FixedNormalNoise
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import HMC, MALA, Independence, ParallelTempering, RandomWalk
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.metric import Dense
from skbayes_sgld.sampling.samplers import leapfrog
from skbayes_sgld.sampling.samplers.mala import transition_acceptance
from skbayes_sgld.sampling.schedules import Harmonic
from skbayes_sgld.sampling.tuning.adaptation import adapt
from skbayes_sgld.sampling.tuning.mode import Mode
from tests.references.targets import Density, NormalMean, make_run, run_at_mode

# exp(theta) ~ Gamma(1.5), a skewed distribution, on which cheap integrators err
TARGET = Density(
    lambda x: (1.5 * x - np.exp(x))[:, 0],
    lambda x: 1.5 - np.exp(x),
    1,
)
X = np.array([[0.3], [1.0], [2.0], [3.0], [-1.0], [1.5]])
NARROW = {
    "normal": GLMPosterior(X, X[:, 0], FixedNormalNoise(2.0), Normal(1.0), fit_intercept=False),
    "leaning": GLMPosterior(
        X, (X[:, 0] > 0).astype(float), Bernoulli(), Normal(5.0), fit_intercept=False
    ),
}


def turning_run(posterior, step_size, temperature=1.0):
    """A run of HMC whose trajectories rotate about the mode."""
    settings = {"step_size": step_size, "temperature": temperature}
    run, mode = run_at_mode(posterior, sampler=HMC(), **settings)
    run.dynamics.center = mode.theta
    return run


def moments(posterior, temperature=1.0):
    """Mean and sd of a posterior of one parameter, by quadrature."""
    grid = np.linspace(-60.0, 60.0, 40_001)
    weight = np.exp(posterior.log_density(grid[:, None]) / temperature)
    mean = np.average(grid, weights=weight)
    return mean, np.sqrt(np.average((grid - mean) ** 2, weights=weight))


@pytest.mark.parametrize(
    ("sampler", "step_size", "temperature"),
    [
        (MALA(), 0.9, 2.0),
        (HMC(), 0.3, 1.0),
        (HMC(path_length=3.0), 0.9, 0.3),
        (HMC(path_length=3.0, n_points=3), 0.9, 2.0),
        ("turning", 0.85, 0.3),
        ("turning", 1.7, 1.0),
    ],
)
def test_an_adjusted_chain_is_exact_for_any_step_size(sampler, step_size, temperature):
    if sampler == "turning":
        posterior = NARROW["leaning"]
        run = turning_run(posterior, step_size, temperature)
    else:
        settings = {"step_size": step_size, "temperature": temperature}
        posterior = TARGET
        run, _ = run_at_mode(posterior, sampler=sampler, **settings)
    draws = run_chains(run, np.ones((800, 1)), n_draws=250, n_burnin=100, seed=0).draws[..., 0]
    mean, sd = moments(posterior, temperature)
    for values, expected in [(draws, mean), ((draws - mean) ** 2, sd**2)]:
        by_chain = values.mean(axis=1)
        standard_error = by_chain.std(ddof=1) / np.sqrt(len(by_chain))
        assert abs(by_chain.mean() - expected) < 4 * standard_error


def test_trajectories_that_turn_follow_a_normal_posterior_without_error():
    run = turning_run(NARROW["normal"], 1.7)  # one step each, of more than a quarter of a period
    assert run_chains(run, np.ones((4, 1)), n_draws=200).acceptance == 1.0
    run.dynamics.center = None
    assert run_chains(run, np.ones((4, 1)), n_draws=200).acceptance < 0.8


@pytest.mark.parametrize("n_steps", [1, 2, 7])
def test_kicks_are_between_equal_ones_and_those_of_a_quadrature(n_steps, monkeypatch):
    def integral(share, power):
        monkeypatch.setattr(leapfrog, "_LOBATTO", share)
        kicks, drifts = leapfrog.unequal_kicks.__wrapped__(n_steps) / n_steps
        np.testing.assert_allclose(kicks, kicks[::-1], rtol=1e-9)  # a path back is the same one
        np.testing.assert_allclose(drifts[:-1], drifts[-2::-1], rtol=1e-9)
        assert drifts[-1] == 0.0
        return kicks @ np.append(0.0, np.cumsum(drifts[:-1])) ** power

    powers = np.arange(1, 2 * n_steps)
    exact = [integral(1.0, power) for power in powers]
    np.testing.assert_allclose(exact, 1.0 / (powers + 1.0), rtol=1e-9)
    grid = np.linspace(0, 1, n_steps + 1)
    assert integral(0.0, 2) == pytest.approx(integrate.trapezoid(grid**2, grid), rel=1e-9)
    assert integral(0.4, 0) == pytest.approx(1.0, rel=1e-9)


def test_trajectories_whose_number_of_steps_changes_do_not_depend_on_the_block():
    run = replace(turning_run(NARROW["leaning"], 0.9), schedule=Harmonic())
    assert len({run.sampler.gradients(eta) for eta in run.step_sizes(np.arange(40))}) > 3
    blocks = [run_chains(run, np.ones((3, 1)), n_draws=40, block_size=b) for b in (1, 40)]
    np.testing.assert_array_equal(blocks[0].draws, blocks[1].draws)


@pytest.mark.parametrize("sampler", [MALA(), HMC()])
def test_adaptation_finds_the_spread_and_the_acceptance(sampler):
    narrow = Mode(np.log([1.5]), Dense(np.array([[1.5**-0.5 / 3]])))  # a third of the right width
    adapted = adapt(*run_at_mode(TARGET, narrow, sampler=sampler), seed=0)
    mean, sd = moments(TARGET)
    assert adapted.center.metric.marginal_sd[0] == pytest.approx(sd, rel=0.25)
    assert adapted.center.theta[0] == pytest.approx(mean, abs=0.25 * sd)
    # beyond the target only where the step is the largest
    assert adapted.acceptance > sampler.target_acceptance - 0.15
    if adapted.step_size < 0.9 * sampler.largest_step:
        assert adapted.acceptance < sampler.target_acceptance + 0.15


@pytest.mark.parametrize(
    "sampler", [HMC(), MALA(), RandomWalk(), Independence(), ParallelTempering()]
)
def test_proposals_without_a_density_are_counted(sampler):
    # they were refused, and nothing was said; beyond 1 is the logarithm of what is negative
    from skbayes_sgld.own_models import as_posterior

    cut_off = Density(lambda x: np.where(x[:, 0] < 1, -0.5 * x[:, 0] ** 2, np.nan), lambda x: -x, 1)
    run = make_run(cut_off, sampler=sampler, step_size=0.7)
    chains = run_chains(run, np.zeros((4, 1)), n_draws=150)
    share, at = chains.undefined
    assert 0.05 < share < 0.4
    assert at[0] > 1 > chains.draws.max()
    right = make_run(as_posterior(NormalMean()), sampler=sampler, step_size=0.1)
    assert run_chains(right, np.ones((4, 1)), n_draws=20).undefined == (0.0, None)


def test_a_trajectorys_step_is_jittered_by_a_fifth_at_most():
    found = HMC().step_sizes(np.array([0.5]), np.array([-40.0, 0.0, 40.0])[:, None, None])
    np.testing.assert_allclose(found.ravel(), [0.4, 0.5, 0.6])


def test_one_step_of_euler_is_accepted_as_a_proposal_of_mala_is():
    target, eta = NormalMean(), 0.06
    theta = target.y.mean() + np.linspace(-0.4, 0.4, 9)[:, None]
    noise = probe_generator().standard_normal(theta.shape)

    def log_density(x):
        return -0.5 * target.precision * (x - target.y.mean()) ** 2

    def led_to(x):
        return x - eta * target.precision * (x - target.y.mean())

    end = led_to(theta) + np.sqrt(2.0 * eta) * noise
    back = (theta - led_to(end)) ** 2 - (end - led_to(theta)) ** 2
    ratio = np.exp(log_density(end) - log_density(theta) - back / (4.0 * eta))
    found = transition_acceptance(theta, eta, make_run(target, sampler=MALA()).dynamics)
    assert 0.2 < found < 0.95 and ratio.max() > 1.1
    assert found == pytest.approx(np.minimum(ratio, 1.0).mean(), rel=1e-9)


def test_neighbours_of_the_ladder_swap_in_even_and_odd_pairs_in_turn():
    # on a flat density every swap is accepted; replicas that begin a million apart are told apart
    flat = Density(lambda x: np.zeros(len(x)), np.zeros_like, 1)
    sampler = ParallelTempering(n_temperatures=4)
    dynamics = make_run(flat, sampler=sampler, step_size=0.1).dynamics
    state = sampler.init(np.zeros((2, 1)))
    state["rung_theta"] = np.tile(1e6 * np.arange(4.0)[:, None], (2, 1, 1))
    rng = np.random.default_rng(0)
    orders = [[1, 0, 3, 2], [1, 3, 0, 2], [3, 1, 2, 0], [3, 2, 1, 0], [2, 3, 0, 1], [2, 0, 3, 1]]
    for order in orders:
        normals = rng.standard_normal((1, 2, sampler.n_normals(1)))
        noise = sampler.prepare(normals, normals[0], np.array([0.1]), dynamics)
        sampler.step(state, np.float64(0.1), noise[0], None, dynamics)
        replicas = np.round(state["rung_theta"][..., 0] / 1e6).astype(int)
        assert replicas.tolist() == [order, order]
        np.testing.assert_array_equal(state["theta"], state["rung_theta"][:, 0])


def bent(n_params=2):
    """A density whose gradient is another at every position."""
    return Density(
        lambda x: -np.sum(x**2 / 2 + x**4 / 8, axis=1), lambda x: -x - x**3 / 2, n_params
    )


def test_every_rung_keeps_the_gradient_of_where_it_is():
    from skbayes_sgld.kernels import Kernel

    kernel = Kernel(bent(), ParallelTempering(n_temperatures=3), step_size=0.4)
    state = kernel.init(np.ones((4, 2)))
    for key in range(12):
        state = kernel.step(state, key)
        rungs = state.memory["rung_theta"]
        expected = bent().grad(rungs.reshape(-1, 2)).reshape(rungs.shape)
        np.testing.assert_allclose(state.memory["rung_force"], expected, rtol=1e-12)
        np.testing.assert_array_equal(state.position, rungs[:, 0])


def test_a_trajectory_begins_after_as_many_points_as_were_asked_for():
    from skbayes_sgld.kernels import Kernel

    n_points = 3
    kernel = Kernel(bent(), HMC(n_points=n_points), step_size=0.3)
    state, begins = kernel.init(np.ones((3, 2))), []
    for key in range(4 * n_points):
        origin = state.memory["energy"]
        state = kernel.step(state, key)
        begins.append((state.memory["energy"] != origin).all())
    assert begins == [True, *[False] * (n_points - 1)] * 4
