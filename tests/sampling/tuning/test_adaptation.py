"""Settling: where the chains of an adjusted sampler begin, once they have lost their start."""

from dataclasses import replace

import numpy as np
import pytest

from skbayes_sgld._random import ChainStreams
from skbayes_sgld.sampling import HMC, MALA
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning import adaptation
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.pilots import StandardNormal
from tests.references.targets import Density, make_run

P = 2
MODE = Mode(np.zeros(P), Diagonal(np.ones(P)))


def run_of(log_density, grad):
    return make_run(Density(log_density, grad, P), sampler=HMC(), mode=MODE)


def normal(scale=1.0):
    return run_of(lambda x: -0.5 * (x**2).sum(axis=1) / scale**2, lambda x: -x / scale**2)


def test_chains_stay_where_the_density_is_that_of_the_posterior():
    # the fall of normal draws of two parameters is 1 on average, and its sd 1: three more are 4
    start = np.sqrt([[7.8, 0.0], [8.2, 0.0]])
    moved = adaptation.move_into_posterior(normal(), start, MODE, seed=0)
    np.testing.assert_array_equal(moved[0], start[0])
    assert moved[1, 0] != start[1, 0]
    hot = normal()
    hot.dynamics.temperature = 2.0
    np.testing.assert_array_equal(adaptation.move_into_posterior(hot, start, MODE, seed=0), start)


def test_free_chains_of_a_normal_distribution_lose_their_start():
    start = np.tile([30.0, -20.0], (400, 1))
    moved = adaptation.move_into_posterior(normal(), start, MODE, seed=0)
    left = (1.0 - 0.1) ** 40  # of the start, after four units of time
    assert np.all(np.abs(moved.mean(axis=0) - left * start[0]) < 4.5 / np.sqrt(400))
    # the variance of the chain that started at a point
    assert np.all(np.abs(moved.var(axis=0) - 1.0) < 4.5 * np.sqrt(2 / 400))


FLAT = run_of(lambda x: np.zeros(len(x)), np.zeros_like)


@pytest.mark.parametrize(
    ("run", "temperature", "center", "end", "kept"),
    [
        # of two parameters, seven nats below the start in all
        *((normal(), 1.0, 0.0, [np.sqrt(2.0 * nats), 0.0], nats < 7.0) for nats in (6.5, 7.5)),
        *((normal(), 2.0, 0.0, [np.sqrt(2.0 * nats), 0.0], nats < 14.0) for nats in (13.0, 15.0)),
        # thirty sds from the mode, where the density is no lower
        *(
            (FLAT, 1.0, center, end, max(np.abs(end)) < 30.0)
            for center in (0.0, 40.0)
            for end in ([29.0, 0.0], [0.0, -31.0])
        ),
    ],
)
def test_a_chain_that_is_led_far_off_or_down_starts_nearer_to_the_mode(
    run, temperature, center, end, kept, monkeypatch
):
    monkeypatch.setattr(adaptation, "_TYPICAL", -np.inf)  # no start is within the posterior
    run = replace(run, dynamics=replace(run.dynamics, temperature=temperature))
    start = center + np.array([[0.0, 0.0], [0.3, -0.2]])
    chains = adaptation.run_chains(run, start, n_draws=1)
    ends = center + np.array([[0.1, 0.1], end])
    chains.state.sampler_state["theta"] = ends
    monkeypatch.setattr(adaptation, "run_chains", lambda *args, **how: chains)
    mode = MODE._replace(theta=np.full(P, center))
    moved = adaptation.move_into_posterior(run, start, mode, seed=0)
    nearer = center + 0.1 * (start[1] - center)
    np.testing.assert_allclose(moved, [ends[0], ends[1] if kept else nearer])


def test_chains_that_overflow_stay_unless_no_trajectory_would_be_accepted_there(monkeypatch):
    monkeypatch.setattr(adaptation, "_TYPICAL", -np.inf)
    run = run_of(lambda x: -(x**4).sum(axis=1), lambda x: -4 * x**3)
    start = np.array([[1.0, -1.5], [1e3, 1e3]])  # 6 and 2e12 nats below the mode
    moved = adaptation.move_into_posterior(run, start, MODE, seed=0)
    np.testing.assert_array_equal(moved, [start[0], start[1] / 2**10])


def walled(n_params):
    """A normal distribution before a wall at 2, across its first coordinate."""

    def log_density(x):
        return -0.5 * (x**2).sum(axis=1) - np.exp(30.0 * (x[:, 0] - 2.0))

    def grad(x):
        return -x - 30.0 * np.exp(30.0 * (x[:, :1] - 2.0)) * (np.arange(n_params) == 0)

    mode = Mode(np.zeros(n_params), Diagonal(np.ones(n_params)))
    posterior = Density(log_density, grad, n_params)
    return make_run(posterior, sampler=HMC(), mode=mode), mode


def test_a_start_from_which_no_trajectory_is_accepted_is_halved_and_others_stay():
    start = np.array([[0.5, 1.0], [3.0, 1.0]])
    left = adaptation.leave_dead_ends(walled(2)[0], start, MODE, seed=0)
    np.testing.assert_array_equal(left, [start[0], 0.5 * start[1]])


def test_chains_of_a_run_do_not_begin_where_one_of_the_pilot_has_stood_still(monkeypatch):
    run, mode = walled(1)
    starts = np.linspace(-1.0, 1.0, 32)[:, None]
    starts[5] = 4.0  # from where no trajectory is accepted
    monkeypatch.setattr(adaptation, "move_into_posterior", lambda *args: starts)
    ends = adaptation.adapt(run, mode, seed=0).ends
    assert len(ends) == 4 * 31
    assert ends.max() < 2.5


def test_the_metric_of_draws_is_their_covariance_about_their_mean():
    rng = np.random.default_rng(0)
    covariance = np.array([[4.0, 1.5], [1.5, 1.0]])
    draws = [50.0, -20.0] + rng.standard_normal((40, 100, P)) @ np.linalg.cholesky(covariance).T
    found = adaptation._metric(draws, MODE, 1.0, normal().dynamics.gradient.posterior)
    np.testing.assert_allclose(found.theta, draws.mean(axis=(0, 1)))
    # 4,000 draws, and a prior share of ten of the curvature's metric
    np.testing.assert_allclose(found.metric.root @ found.metric.root.T, covariance, atol=0.4)
    hot = adaptation._metric(2.0 * draws, MODE, 4.0, normal().dynamics.gradient.posterior)
    np.testing.assert_allclose(hot.metric.root, found.metric.root, rtol=1e-9)


def test_few_draws_know_the_width_of_each_coordinate():
    P = 60
    sds, origin = np.where(np.arange(P), 1.0, 3.0), Mode(np.zeros(P), Diagonal(np.ones(P)))
    draws = sds * np.random.default_rng(0).standard_normal((32, 6, P))
    found = adaptation._metric(draws, origin, 1.0, StandardNormal(P))
    # 192 draws: four standard errors of an sd; the mean variance would give 2.2 for 3
    np.testing.assert_allclose(found.metric.marginal_sd, sds, rtol=4.0 / np.sqrt(2 * 192))


def test_few_draws_of_many_standardised_coordinates_leave_these_independent():
    P, rng = 400, np.random.default_rng(0)
    origin, true = Mode(np.zeros(P), Diagonal(np.ones(P))), 0.3 * rng.standard_normal(P)
    draws = true + 1.5 * rng.standard_normal((16, 4, P))
    found = adaptation._metric(draws, origin, 1.0, StandardNormal(P))
    np.testing.assert_allclose(found.metric.marginal_sd, 1.5, rtol=0.05)
    error = [np.linalg.norm(c - true) for c in (found.theta, origin.theta, draws.mean((0, 1)))]
    # James and Stein's mean has the error of the best multiple of the draws' mean
    noise, signal = 1.5**2 / 64, 0.3**2
    assert error[0] < 1.1 * np.sqrt(P * noise * signal / (noise + signal)) < min(error[1:])


@pytest.mark.parametrize("kept", [0.5, 0.8])
def test_the_time_of_autoregressive_draws_is_known_from_short_chains(kept):
    rng, n_chains, n_steps = np.random.default_rng(0), 400, 12
    draws = np.empty((n_chains, n_steps, P))
    draws[:, 0] = rng.standard_normal((n_chains, P))
    for t in range(1, n_steps):
        noise = rng.standard_normal((n_chains, P))
        draws[:, t] = kept * draws[:, t - 1] + np.sqrt(1.0 - kept**2) * noise
    found = adaptation._autocorrelation([2.0, 0.1] * draws, MODE)  # in any units
    assert found == pytest.approx((1.0 + kept) / (1.0 - kept), rel=0.2)


def test_a_pilot_comes_to_the_acceptance_that_is_aimed_at():
    start = np.random.default_rng(0).standard_normal((40, 20))
    run = make_run(StandardNormal(20), sampler=MALA())
    streams = [ChainStreams(0, c) for c in range(40)]
    step = adaptation._run_pilot(run, start, streams, 0.05, 150, learns=True)[1]
    fixed = replace(run, step_size=step)
    accepted = adaptation.run_chains(fixed, start, n_draws=50, seed=1).acceptance
    assert float(np.mean(accepted)) == pytest.approx(0.574, abs=0.06)


@pytest.mark.parametrize(("n_params", "is_diagonal"), [(50, False), (400, True)])
def test_few_draws_of_many_standardised_coordinates_make_no_matrix(n_params, is_diagonal):
    draws = np.random.default_rng(0).standard_normal((16, 6, n_params))
    origin = Mode(np.zeros(n_params), Diagonal(np.ones(n_params)))
    metric = adaptation._metric(2.0 * draws, origin, 1.0, StandardNormal(n_params)).metric
    assert isinstance(metric, Diagonal) is is_diagonal
    assert np.median(metric.marginal_sd) == pytest.approx(2.0, rel=0.1)
