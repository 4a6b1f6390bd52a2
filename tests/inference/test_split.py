"""Many rows of which a few are steep: two step sizes."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.inference.planning.task import Finding
from skbayes_sgld.inference.strategies import split
from skbayes_sgld.inference.strategies.condensed import Condensed
from skbayes_sgld.inference.strategies.langevin import ShorterSteps
from skbayes_sgld.sampling.samplers.split_hmc import SplitHMC
from tests.marks import slow


def three_classes(seed=0, n=4500):
    """Three classes, one of them rare; two rows are far out in a column with a long tail."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal((n, 2)), rng.lognormal(0.0, 1.0, n)])
    u = np.column_stack([X[:, 0], -X[:, 1], np.full(n, -4.0)]) + rng.gumbel(size=(n, 3))
    y = u.argmax(axis=1)
    X[:2, 2], y[:2] = [300.0, 800.0], [0, 1]
    return X, y


@pytest.fixture
def costly(monkeypatch):
    """All fits count as costly, none has few rows that matter, and steps on batches are biased."""
    monkeypatch.setattr(split, "_EXPENSIVE", 0)
    monkeypatch.setattr(Condensed, "suits", lambda task: False)
    biased = Finding("steps on batches are biased")
    monkeypatch.setattr(ShorterSteps, "plan", lambda task: task.found(finding=biased))


@pytest.mark.parametrize("seed", [slow(0), slow(1), slow(2)])
def test_draws_are_those_of_one_step_size(seed, costly):
    X, y = three_classes(seed)
    settings = {"prior": "normal", "random_state": seed}
    model = SGLDLogisticRegression(n_draws=400, **settings).fit(X, y)
    assert isinstance(model.result_.plan.run.sampler, SplitHMC)
    other = SGLDLogisticRegression(n_draws=400, sampler="hmc", **settings).fit(X, y)
    draws, others = (each.result_.draws.values for each in (model, other))
    mean, sd = others.mean(axis=(0, 1)), others.std(axis=(0, 1))
    for power in (1, 2):
        a, b = ((((each - mean) / sd) ** power) for each in (draws, others))
        error = sum(each.var(axis=(0, 1)) / effective_sample_size(each) for each in (a, b))
        assert np.all(np.abs(a.mean(axis=(0, 1)) - b.mean(axis=(0, 1))) < 4.5 * np.sqrt(error))


@pytest.mark.parametrize("most", [1, 200])
def test_few_rows_are_steep(most, costly, monkeypatch):
    X, y = three_classes()
    settings = {"prior": "normal", "random_state": 0, "n_draws": 40, "n_burnin": 20, "thin": 1}
    monkeypatch.setattr(split, "_MOST", most)
    with pytest.warns(Warning):  # of few draws
        plan = SGLDLogisticRegression(**settings).fit(X, y).result_.plan
    assert isinstance(plan.run.sampler, SplitHMC) == (most == 200)
    assert ("rows are steep" in plan.choices["sampler"].why) == (most == 200)
