"""The list of strategies is the decision, and a finding leads to the next one."""

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import skbayes_sgld
from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.inference import strategies
from skbayes_sgld.inference.planning.rows_read import cheapest_rows
from skbayes_sgld.inference.planning.task import Finding, Task
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies import STRATEGIES, langevin, make_plan
from skbayes_sgld.inference.strategies.accept_reject import AcceptReject
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.inference.strategies.given import Given
from skbayes_sgld.inference.strategies.independent import Independent
from skbayes_sgld.inference.strategies.langevin import Langevin
from skbayes_sgld.inference.strategies.published import Published
from skbayes_sgld.inference.strategies.shortened import Shortened
from skbayes_sgld.sampling import HMC, SGLD
from tests.references.targets import Density, logistic_posterior

PACKAGE = Path(skbayes_sgld.__file__).parent
NORMAL = Density(lambda x: -0.5 * np.square(x).sum(axis=1), lambda x: -x, n_params=2)
PUBLISHED = {"preconditioner": None, "step_size": 0.1}


def settings(**given):
    return Settings.of(SGLDLinearRegression(**given))


class Refusing(Strategy):
    """A strategy that finds that it does not suit."""

    @classmethod
    def plan(cls, task):
        return task.found(finding=Finding("Refusing(): nothing suits"))


@pytest.mark.parametrize(
    ("given", "finding", "expected"),
    [
        ({}, None, Langevin),
        ({"gradient": "full"}, None, Langevin),
        ({}, Finding("SGLD(): a chain overflowed"), AcceptReject),
        ({"sampler": "hmc"}, None, AcceptReject),
        ({"sampler": "independence"}, None, Independent),
        ({"sampler": "independence", "step_size": 0.9}, None, Given),
        ({"sampler": "mala", "clip": "norm"}, None, AcceptReject),
        (PUBLISHED, None, Published),
        (PUBLISHED | {"sampler": "hmc"}, None, Published),
        (PUBLISHED | {"init": "mode"}, None, Given),
        ({"sampler": "sgld"}, None, Given),
        ({"sampler": "hmc", "step_size": 0.1}, None, Given),
        ({"clip": "norm"}, None, Given),
        ({"batch_size": 5}, None, Given),
        ({"preconditioner": None}, None, Given),
        ({"clip": "norm"}, Finding("a chain overflowed", 0.1), Shortened),
    ],
    ids=str,
)
def test_the_first_strategy_that_suits_plans(given, finding, expected):
    task = Task.of(NORMAL, settings(**given), seed=0, finding=finding)
    suited = [each for each in STRATEGIES if not each.only and each.suits(task)]
    assert suited[0] is expected
    # only the last strategy relies on its place: whatever the others leave is its task
    assert suited[1:] == [Given] * (expected is not Given)


def test_strategies_of_a_kind_of_models_are_asked_of_no_others(monkeypatch):
    class Rare(Refusing):
        only = ("steep", "hierarchical")

        @classmethod
        def suits(cls, task):
            raise AssertionError("asked of a model of another kind")

    monkeypatch.setattr(strategies, "STRATEGIES", [Rare, *STRATEGIES])
    assert isinstance(make_plan(NORMAL, settings(), 0).run.sampler, SGLD)


def test_a_finding_leads_to_the_next_strategy_and_stands_in_its_plan(monkeypatch):
    monkeypatch.setattr(strategies, "STRATEGIES", [Refusing, *STRATEGIES])
    plan = make_plan(NORMAL, settings(), 0)
    assert isinstance(plan.run.sampler, HMC)
    assert plan.choices["sampler"].why == "Refusing(): nothing suits"
    monkeypatch.setattr(strategies, "STRATEGIES", [Refusing])
    with pytest.raises(RuntimeError, match="no strategy suits"):
        make_plan(NORMAL, settings(), 0)


def test_an_ordinary_fit_enters_no_file_of_a_rare_strategy():
    entered = set()

    def enter(frame, event, arg):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            entered.add(path.relative_to(PACKAGE).as_posix())

    model = SGLDLogisticRegression(random_state=0)
    fit, before = inspect.unwrap(type(model).fit), sys.getprofile()
    sys.setprofile(enter)
    try:
        fit(model, *load_breast_cancer(return_X_y=True))
    finally:
        sys.setprofile(before)
    ways = {path for path in entered if path.startswith(("inference/strat", "inference/planning"))}
    used = {"strategies": "__init__ independent langevin accept_reject"}
    used["planning"] = "task lengths rows_read pilot_runs plans starts"
    expected = {f"inference/{folder}/{name}" for folder in used for name in used[folder].split()}
    assert ways == {f"{path}.py" for path in expected}
    rare = "checkpoints", "own_models", "neural_network", "inference/in_parts", "inference/overflow"
    assert [path for path in entered if path.startswith(rare)] == []


@pytest.mark.parametrize(
    ("finding", "least", "tried"),
    [(None, 0.5, True), (Finding("long steps are biased"), 0.1, True)]
    + [(Finding("long steps are biased"), 0.5, False)],
)
def test_long_steps_on_batches_that_are_biased_are_not_tried_again(
    monkeypatch, finding, least, tried
):
    task = Task.of(logistic_posterior(20_000, 3), settings(), seed=0)
    task = task.found(finding=finding, rows_read=cheapest_rows(task))
    pilots = []

    def biased(run, mode, seed, least):
        pilots.append(run.batch_size)

    monkeypatch.setattr(langevin.pilots, "choose_step_size", biased)
    monkeypatch.setattr(langevin, "_least_step", lambda run: least)
    monkeypatch.setattr(langevin, "plan_steps", lambda task, run, rows_read, before: run)
    assert langevin.ShorterSteps.plan(task).batch_size is None
    assert (len(pilots) == 1 and pilots[0] < 20_000) if tried else not pilots
