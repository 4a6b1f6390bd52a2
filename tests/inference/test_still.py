"""Plans whose pilot hardly moves are passed over; the last one warns, with remedies that work."""

import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.inference import strategies
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies.accept_reject import (
    AcceptReject,
    adapt_run,
    draft_adjusted,
    finish_adapted,
)
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.sampling.samplers import HMC
from skbayes_sgld.sampling.tuning.mode import NoModeError
from tests.references.targets import Density

OWN = "determine a noise of their own"
NORMAL = Density(lambda x: -0.5 * np.square(x).sum(axis=1), lambda x: -x, n_params=2)


def heavy(kind, n=3000, noise="normal"):
    """Observations of which some are far out, and count as hundreds."""
    rng = np.random.default_rng([1, n])
    X, weight = rng.standard_normal((n, 4)), np.ones(n)
    X[0, 1] = 300.0
    if kind == "related":
        X[1, 1] = 250.0
    if kind == "unrelated":
        X[1, 2] = 300.0
    weight[:2] = 300.0
    of_row = rng.standard_normal(n) if noise == "normal" else rng.standard_t(4.0, n)
    return X, 0.3 * X[:, 0] + of_row, weight


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["related", "unrelated"])
def test_heavy_rows_far_out_end_soon_with_a_warning_whose_remedies_work(kind):
    X, y, weight = heavy(kind)
    model = SGLDLinearRegression(noise_model="log_linear", random_state=0)
    begin = time.process_time()
    with pytest.warns(ConvergenceWarning, match=f"hardly move.*would take.*{OWN}"):
        model.fit(X, y, sample_weight=weight)
    assert time.process_time() - begin < 60.0  # minutes, before
    assert len(model.result_.problems) == 1
    model.fit(X[2:], y[2:], sample_weight=weight[2:])
    assert not model.result_.problems
    model.set_params(noise_model="constant").fit(X, y, sample_weight=weight)
    assert not model.result_.problems


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["related", "unrelated", "far"])
def test_a_mode_that_heavy_t_noise_hides_has_an_error_whose_remedies_work(kind):
    X, y, weight = heavy(kind, noise="t")
    if kind == "far":
        X[0, 1], weight = 1e5, np.ones(len(y))
    settings = {"noise_distribution": "student_t", "n_draws": 200, "random_state": 0}
    model = SGLDLinearRegression(noise_model="log_linear", **settings)
    with pytest.raises(NoModeError, match=OWN):
        model.fit(X, y, sample_weight=weight)
    model.set_params(noise_model="constant").fit(X, y, sample_weight=weight)


class Cramped(Strategy):
    """Trajectories of steps far too short, or that are not accepted."""

    step_size, acceptance = 1e-3, 0.8

    @classmethod
    def plan(cls, task):
        run, rows = draft_adjusted(task, HMC())
        tuned = adapt_run(task, run, task.mode, "cramped")
        found = replace(tuned.found, acceptance=cls.acceptance)
        run = replace(tuned.run, step_size=cls.step_size)
        return finish_adapted(task, rows, replace(tuned, run=run, found=found))


class Rejecting(Cramped):
    """Trajectories of which hardly any is accepted."""

    step_size, acceptance = 0.5, 1e-3


@pytest.mark.parametrize("cramped", [Cramped, Rejecting])
def test_a_plan_that_stands_still_is_passed_over_for_the_next(monkeypatch, cramped):
    monkeypatch.setattr(strategies, "STRATEGIES", [cramped, AcceptReject])
    settings = Settings.of(SGLDLinearRegression())
    plan = strategies.make_plan(NORMAL, settings, 0)
    assert not plan.still and plan.run.step_size > 0.1 and plan.n_draws == settings.n_draws
    assert "an independent draw would take" in plan.choices["sampler"].why


def test_the_last_plan_that_stands_still_is_short_and_says_so():
    plan = Cramped.plan(Task.of(NORMAL, Settings.of(SGLDLinearRegression()), 0))
    assert "accepts 80% of the trajectories, by steps of 0.001 sds" in plan.still
    assert plan.n_draws == 100 and plan.thin == 1
    given = Settings.of(SGLDLinearRegression(sampler="hmc"))
    assert not Cramped.plan(Task.of(NORMAL, given, 0)).still  # the user has chosen
