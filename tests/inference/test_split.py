"""Many rows of which a few are steep: two step sizes."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.inference.planning.stand_in import error_of_slope
from skbayes_sgld.inference.planning.task import Finding
from skbayes_sgld.inference.strategies import split
from skbayes_sgld.inference.strategies.condensed import Condensed
from skbayes_sgld.inference.strategies.langevin import ShorterSteps
from skbayes_sgld.likelihoods import Bernoulli, Categorical
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.condensed import CondensedPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling.metric import Dense
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


@pytest.mark.parametrize("seed", [slow(0), slow(1)])
def test_draws_of_few_rows_are_those_of_all(seed, costly, monkeypatch):
    monkeypatch.setattr(split, "_ROUGH", 400)
    monkeypatch.setattr(split, "_FEWEST", 400)
    X, y = three_classes(seed)
    settings = {"prior": "normal", "random_state": seed, "n_draws": 2000}
    model = SGLDLogisticRegression(**settings).fit(X, y)
    assert "of 4,500 rows matter" in model.result_.choices["gradient"].why
    other = SGLDLogisticRegression(sampler="hmc", **settings).fit(X, y)
    draws, others = (each.result_.draws.values for each in (model, other))
    mean, sd = others.mean(axis=(0, 1)), others.std(axis=(0, 1))
    for power in (1, 2):
        a, b = ((((each - mean) / sd) ** power) for each in (draws, others))
        error = sum(each.var(axis=(0, 1)) / effective_sample_size(each) for each in (a, b))
        bound = 4.0 * np.sqrt(error) + power * split._LIMIT
        assert np.all(np.abs(a.mean(axis=(0, 1)) - b.mean(axis=(0, 1))) < bound)


@pytest.mark.slow
def test_few_events_in_columns_with_long_tails_have_the_moments_of_trajectories_on_all_rows():
    """Steps that never reject heat up where these rows bend: sds were half as large again."""
    rng = np.random.default_rng(1)
    X, coef = rng.standard_normal((8000, 10)), 0.5 * rng.standard_normal(10) / np.sqrt(10.0)
    tails = rng.standard_t(2.0, (8000, 4))
    X, coef = np.hstack([X, tails]), np.append(coef, 1.5 / np.abs(tails).max(axis=0))
    y = (rng.random(8000) < 1.0 / (1.0 + np.exp(6.3 - X @ coef))).astype(int)
    settings = {"random_state": 1, "n_draws": 4000}
    model = SGLDLogisticRegression(**settings).fit(X, y)
    assert "steep" in model.result_.choices["sampler"].why
    other = SGLDLogisticRegression(sampler="hmc", **settings).fit(X, y)
    draws, others = (each.result_.draws.values for each in (model, other))
    sd, other_sd = draws.std(axis=(0, 1)), others.std(axis=(0, 1))
    off = (draws.mean(axis=(0, 1)) - others.mean(axis=(0, 1))) / other_sd
    assert np.abs(off).max() < 0.1
    assert np.abs(np.log(sd / other_sd)).max() < 0.1


def of_labels(classes, seed=0):
    """Posterior of labels, and draws far from its mode."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((60, 3)) + 1.0, rng.integers(0, classes, 60).astype(float)
    likelihood = Bernoulli() if classes == 2 else Categorical(classes)
    posterior = GLMPosterior(X, y, likelihood, Normal(1.0))
    return posterior, 1.5 * rng.standard_normal((9, posterior.n_params))


@pytest.mark.parametrize("classes", [2, 4])
def test_expansions_with_averages_move_no_mean_gradient_and_no_mean_curvature(classes):
    posterior, draws = of_labels(classes)
    rows, weights = np.array([1, 4, 30]), np.array([2.0, 30.0, 7.0])
    averages = posterior.expand_likelihood(draws)
    few = CondensedPosterior(posterior, rows, weights, averages, draws)
    found, exact = few.grad(draws), posterior.grad(draws)
    assert np.abs(found - exact).max() > 1.0
    np.testing.assert_allclose(found.mean(axis=0), exact.mean(axis=0), atol=1e-9)
    curvatures = [sum(each.curvature(theta) for theta in draws) for each in (few, posterior)]
    np.testing.assert_allclose(*curvatures, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 4])
def test_remainders_of_rows_add_up_to_that_of_all(classes):
    posterior, draws = of_labels(classes)
    rest = posterior.row_sum().remainders(draws).sum(axis=1)
    averages = posterior.expand_likelihood(draws)
    off = posterior.log_likelihood(draws).sum(axis=1) - averages.log_density(draws)
    np.testing.assert_allclose(rest, off - off.mean(), atol=1e-9)


def test_errors_of_moments_are_those_of_a_tilted_normal_distribution():
    """A slope of the log density moves a mean, and a curvature the sd."""
    rng = np.random.default_rng(0)
    root = np.array([[2.0, 0.0], [1.0, 0.5]])
    theta, metric = rng.standard_normal((200_000, 2)) @ root.T, Dense(root)
    slope = np.tile([0.0, 0.1], (len(theta), 1))  # mean: covariance times the slope
    covariance = root @ root.T
    moved = covariance @ [0.0, 0.1] / np.sqrt(np.diagonal(covariance))
    assert error_of_slope(theta, slope, metric) == pytest.approx(moved.max(), rel=0.02)
    wider = error_of_slope(theta, 0.1 * theta @ np.linalg.inv(covariance), metric)
    assert wider == pytest.approx(0.05, rel=0.02)  # sds of 1 / sqrt(0.9) to first order


@pytest.mark.parametrize("most", [1, 200])
def test_few_rows_are_steep(most, costly, monkeypatch):
    X, y = three_classes()
    settings = {"prior": "normal", "random_state": 0, "n_draws": 40, "n_burnin": 20, "thin": 1}
    monkeypatch.setattr(split, "_MOST", most)
    with pytest.warns(Warning):  # of few draws
        plan = SGLDLogisticRegression(**settings).fit(X, y).result_.plan
    assert isinstance(plan.run.sampler, SplitHMC) == (most == 200)
    assert ("rows are steep" in plan.choices["sampler"].why) == (most == 200)
