"""The thresholds, each by a figure just below it and one just above."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.inference import problems
from skbayes_sgld.inference.planning import rows_read
from skbayes_sgld.inference.planning.pilot_runs import time_of
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies import accept_reject as adapting
from skbayes_sgld.likelihoods import NormalNoise
from skbayes_sgld.sampling import HMC, SGLD
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning import noise
from skbayes_sgld.sampling.tuning.adaptation import Adaptation, affordable
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.pilots import Bias
from tests.references.targets import NormalMean, logistic_posterior, make_run, posterior_of

MODE = Mode(np.zeros(1), Diagonal(np.ones(1)))


def test_up_to_2000_rows_every_step_takes_all_of_them_unless_walkers_share_a_batch():
    assert rows_read.reason_for_all_rows(logistic_posterior(2000)).startswith("2,000 rows")
    assert rows_read.reason_for_all_rows(logistic_posterior(2001)) == ""
    # a batch of 8 rows takes 0.08 microseconds, and 165 rows 2.5 times as much
    assert rows_read.reason_for_all_rows(logistic_posterior(150), 16).startswith("150 rows")
    assert rows_read.reason_for_all_rows(logistic_posterior(180), 16) == ""


def test_all_rows_are_taken_where_no_batch_could_have_a_control_variate(monkeypatch):
    from skbayes_sgld.own_models import as_posterior

    assert "local parameters" in rows_read.reason_for_all_rows(as_posterior(NormalMean(5000)))
    monkeypatch.setattr(rows_read, "MAX_DENSE", 2)
    assert "3 parameters: the curvature" in rows_read.reason_for_all_rows(logistic_posterior(5000))


@pytest.mark.parametrize("wanted, taken", [(1, 8), (4, 10), (8, 20), (13, 32), (40, 40)])
def test_small_batches_have_two_fifths_of_the_noise_and_8_to_32_rows(wanted, taken):
    level = noise.NoiseLevel(0.01 * wanted - 0.0005)
    assert level.batch_size(1.0, 1.0) == wanted
    assert noise.choose_batch_size(level, 1.0) == taken


@pytest.mark.parametrize("width, wider", [(1.99, 1.0), (2.01, 1.01), (5.0, 4.0)])
@pytest.mark.parametrize("times, trusted", [(1.99, True), (2.01, False)])
def test_a_declared_time_is_trusted_up_to_twice_itself(times, trusted, width, wider):
    declared = SGLD().step_and_time(np.ones(3), 0.5)[1]
    pilot = Bias(0.0, 0.0, width, times * declared, 0.0, 1.0)
    expected = wider * declared * (1.0 if trusted else times)
    assert time_of(SGLD(), 0.5, 3, pilot) == pytest.approx(expected, abs=0.5)


@pytest.mark.parametrize("measured, spaced", [(5.0, 4.0), (390.0, 389.0), (1e6, 400.0)])
def test_draws_are_spaced_by_all_but_one_step_of_their_time_up_to_400_gradients(
    measured, spaced, monkeypatch
):
    from skbayes_sgld.own_models import as_posterior

    run = make_run(NormalMean(), sampler=HMC(), mode=MODE)
    adapted = Adaptation(MODE, 1.0, 0.8, measured, np.empty((0, 3)), 0)
    monkeypatch.setattr(adapting, "adapt", lambda *args: adapted)
    monkeypatch.setattr(HMC, "gradients", lambda self, step: 1.0)
    settings = Settings.of(SGLDLogisticRegression(sampler="hmc"))
    task = Task.of(as_posterior(NormalMean()), settings, seed=0).found(mode=MODE)
    assert adapting.adapt_run(task, run, MODE, "").spacing == pytest.approx(spaced)


def test_fifty_million_multiplications_from_draw_to_draw_are_afforded():
    run = make_run(logistic_posterior(5000), sampler=SGLD())
    work = 2 * 5000 * 3 + 3 * 3  # two products with the rows, one with the metric
    assert affordable(run) == round(5e7 / work)
    on_batches = make_run(logistic_posterior(5000), sampler=SGLD(), batch_size=100)
    assert affordable(on_batches) == round(5e7 / (2 * 100 * 3 + 3 * 3))
    by_statistics = make_run(posterior_of(NormalNoise(), 5000), sampler=SGLD())
    assert affordable(by_statistics) > 1e6


def test_draws_of_expensive_steps_are_two_fifths_of_their_time_apart():
    run = make_run(logistic_posterior(5000), sampler=SGLD(), batch_size=300_000)
    assert [affordable(run, time) for time in (2.0, 3.0, 10.0)] == [1, 2, 4]


def test_five_percent_of_an_sd_one_of_the_steps_and_one_proposal_in_1000_are_told():
    wider = 1.05**2 - 1.0  # of a variance
    assert problems.noise_problem(wider - 1e-6, True) == []
    assert "5% too wide" in problems.noise_problem(wider + 1e-6, True)[0]
    assert problems.bias_problem(0.07, 0.021, 1.0, "set x") == []
    assert "by 7%" in problems.bias_problem(0.07, 0.019, 1.0, "set x")[0]
    assert "by 9900%" in problems.bias_problem(99.0, 0.0, 1.0, "set x")[0]
    assert "by any amount" in problems.bias_problem(101.0, 0.0, 1.0, "set x")[0]
    assert problems.undefined_problem(0.00099, "x=0", False) == []
    assert "at 0.1% of the proposals" in problems.undefined_problem(0.00101, "x=0", False)[0]
    assert problems.clip_problem(0.00999, "norm") == []
    assert "on 1.0% of the steps" in problems.clip_problem(0.01001, "norm")[0]


@pytest.mark.parametrize("sds, told", [(9.9, []), (10.1, [1])])
def test_a_chain_ten_sds_from_the_mode_is_told(sds, told):
    X = np.random.default_rng(0).standard_normal((80, 1))
    y = X[:, 0] + np.random.default_rng(1).logistic(size=80) > 0
    still = {"sampler": "sgld", "step_size": 1e-300, "n_draws": 4, "n_burnin": 0, "thin": 1}
    still |= {"preconditioner": "curvature", "n_chains": 2, "random_state": 0}
    model = SGLDLogisticRegression(**still)
    with pytest.warns(UserWarning, match="^All draws of .* are the same"):
        mode = model.fit(X, y).result_.mode
        begin = mode.theta + np.array([[0.0], [sds]]) * mode.metric.marginal_sd * [1.0, 0.0]
        model.set_params(init=begin).fit(X, y)
    assert model.diagnose().divergent == told
