"""Settling: where the chains of an adjusted sampler begin, once they have lost their start."""

from dataclasses import replace

import numpy as np
import pytest

from skbayes_sgld.posterior import FunctionPosterior
from skbayes_sgld.sampling import HMC
from skbayes_sgld.sampling.preconditioners.metric import Metric
from skbayes_sgld.sampling.tuning import adaptation
from skbayes_sgld.sampling.tuning.mode import Mode
from tests.references.targets import make_run

P = 2
MODE = Mode(np.zeros(P), Metric(P))
START = np.array([[3.0, -3.0], [0.5, 0.0], [-2.0, 2.0]])


def run_of(log_density, grad):
    return make_run(FunctionPosterior(log_density, grad, P), sampler=HMC(), mode=MODE)


def normal(scale=1.0):
    return run_of(lambda x: -0.5 * (x**2).sum(axis=1) / scale**2, lambda x: -x / scale**2)


def test_free_chains_of_a_normal_distribution_lose_their_start():
    start = np.tile([30.0, -20.0], (400, 1))
    settled = adaptation.settle(normal(), start, MODE, seed=0)
    left = (1.0 - 0.1) ** 40  # of the start, after four units of time
    assert np.all(np.abs(settled.mean(axis=0) - left * start[0]) < 4.5 / np.sqrt(400))
    # the variance of the chain that started at a point
    assert np.all(np.abs(settled.var(axis=0) - 1.0) < 4.5 * np.sqrt(2 / 400))


def test_a_chain_that_is_led_to_a_lower_density_starts_nearer_to_the_mode(monkeypatch):
    run = normal()
    ends = np.array([[0.0, 0.1], [5.0, 5.0], [-2.0, 2.5]])  # the second lies 25 nats below
    chains = adaptation.run_chains(run, START, n_draws=1)

    def led(*args, **kwargs):
        return replace(chains, draws=ends[:, None])

    monkeypatch.setattr(adaptation, "run_chains", led)
    settled = adaptation.settle(run, START, MODE, seed=0)
    np.testing.assert_allclose(settled, [ends[0], 0.1 * START[1], ends[2]])


@pytest.mark.parametrize("nats, kept", [(6.5, True), (7.5, False)])
def test_a_chain_may_go_down_by_five_nats_and_one_a_parameter(nats, kept, monkeypatch):
    run, start = normal(), np.zeros((1, P))
    end = np.array([[np.sqrt(2.0 * nats), 0.0]])
    chains = adaptation.run_chains(run, start, n_draws=1)
    monkeypatch.setattr(
        adaptation, "run_chains", lambda *a, **k: replace(chains, draws=end[:, None])
    )
    settled = adaptation.settle(run, start, MODE, seed=0)
    np.testing.assert_allclose(settled, end if kept else start)


@pytest.mark.parametrize("nats, kept", [(13.0, True), (15.0, False)])
def test_a_hot_chain_may_go_down_by_as_much_more_as_it_is_hot(nats, kept, monkeypatch):
    run = normal()
    run.dynamics.temperature = 2.0
    start, end = np.zeros((1, P)), np.array([[np.sqrt(2.0 * nats), 0.0]])
    chains = adaptation.run_chains(run, start, n_draws=1)
    monkeypatch.setattr(
        adaptation, "run_chains", lambda *a, **k: replace(chains, draws=end[:, None])
    )
    settled = adaptation.settle(run, start, MODE, seed=0)
    np.testing.assert_allclose(settled, end if kept else start)


def test_a_chain_that_leaves_for_thirty_sds_starts_nearer_though_the_density_is_no_lower(
    monkeypatch,
):
    run = run_of(lambda x: np.zeros(len(x)), np.zeros_like)
    ends = np.array([[29.0, 0.0], [0.0, -31.0], [1.0, 1.0]])
    chains = adaptation.run_chains(run, START, n_draws=1)
    monkeypatch.setattr(
        adaptation, "run_chains", lambda *a, **k: replace(chains, draws=ends[:, None])
    )
    settled = adaptation.settle(run, START, MODE, seed=0)
    np.testing.assert_allclose(settled, [ends[0], 0.1 * START[1], ends[2]])


def test_chains_that_overflow_stay_unless_no_trajectory_would_be_accepted_there():
    run = run_of(lambda x: -(x**4).sum(axis=1), lambda x: -4 * x**3)
    start = np.array([[1.0, -1.5], [1e3, 1e3]])  # 6 and 2e12 nats below the mode
    settled = adaptation.settle(run, start, MODE, seed=0)
    np.testing.assert_array_equal(settled, [start[0], start[1] / 2**10])
