"""Many columns and many rows a column: a nearly normal posterior, and steps on small batches."""

import numpy as np
import pytest
from scipy.special import expit

from skbayes_sgld import SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies import make_plan
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.posterior.averaged import averaged_rows, predictor_variances, squared_rests
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.priors import Flat, Normal
from skbayes_sgld.sampling import SGLD
from skbayes_sgld.sampling.compensated import Compensated
from skbayes_sgld.sampling.metric import Dense
from tests.marks import slow


def columns(rng, kind, n, d):
    if kind == "normal":
        return rng.standard_normal((n, d))
    if kind == "skewed":  # a few rows with large values in many columns
        return rng.lognormal(size=(n, d))
    X = rng.standard_normal((n, d))  # raw units, copies, and a column that is nearly a copy
    X[:, 1] = X[:, 0]
    X[:, 3] = X[:, 2] + 1e-3 * X[:, 3]
    return X * np.geomspace(1e-3, 1e4, d) + np.geomspace(1e4, 1e-3, d)


def binary(kind="normal", n=4200, d=65, level=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = columns(rng, kind, n, d)
    eta = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.standard_normal(d) / np.sqrt(d)
    return X, (rng.random(n) < expit(eta + level)).astype(int)


def counts(seed=0):
    X, _ = binary(seed=seed)
    rng = np.random.default_rng(seed)
    return X, rng.poisson(np.exp(X @ rng.standard_normal(X.shape[1]) / 12.0))


def standardised(model, X):
    """Columns of mean 0 and sd 1 with one of ones, and draws and prior precision for these."""
    mean, sd = X.mean(axis=0), X.std(axis=0)
    draws = model.posterior_.flat
    level = draws[:, -1:] + draws[:, :-1] @ mean[:, None]
    precision = np.append((model.prior_.scale * sd) ** -2.0, 0.0)
    rows = np.column_stack([(X - mean) / sd, np.ones(len(X))])
    return rows, np.concatenate([draws[:, :-1] * sd, level], axis=1), precision


def exact_moments(binary, rows, y, draws, precision, n_draws=2000):
    """Means and variances by importance sampling, without any code of the package."""
    some = np.arange(0, len(draws), len(draws) // 20)
    u = draws[some] @ rows.T
    curvature = (expit(u) * expit(-u) if binary else np.exp(u)).mean(axis=0)
    root = np.linalg.inv(np.linalg.cholesky((rows.T * curvature) @ rows + np.diag(precision))).T
    z = np.random.default_rng(0).standard_normal((n_draws // 2, rows.shape[1]))
    z = np.concatenate([z, -z])
    move, center = z @ root.T, draws.mean(axis=0)
    theta = center + move
    u = theta @ rows.T
    value = (y * u).sum(axis=1) - (np.logaddexp(0.0, u) if binary else np.exp(u)).sum(axis=1)
    value += 0.5 * np.square(z).sum(axis=1) - 0.5 * np.square(theta) @ precision
    weight = np.exp(value - value.max())
    weight /= weight.mean()
    # the moments of the proposals are known
    shift = ((weight - 1.0)[:, None] * move).mean(axis=0)
    square = ((weight - 1.0)[:, None] * np.square(move)).mean(axis=0)
    error = np.sqrt(np.square(weight - 1.0).mean() / n_draws)  # of a mean, in sds
    variance = np.square(root).sum(axis=1) + square - np.square(shift)
    return center + shift, variance, error


CASES = {
    "logistic": (SGLDLogisticRegression, binary),
    "skewed columns": (SGLDLogisticRegression, lambda seed=0: binary("skewed", seed=seed)),
    "raw units and copies": (SGLDLogisticRegression, lambda seed=0: binary("raw", seed=seed)),
    "Poisson": (SGLDPoissonRegressor, counts),
}


@pytest.mark.parametrize("seed", [0, slow(1), slow(2)])
@pytest.mark.parametrize("case", CASES)
def test_draws_have_the_moments_of_the_posterior(case, seed):
    estimator, make = CASES[case]
    X, y = make(seed=seed)
    model = estimator(random_state=seed).fit(X, y)
    plan = model.result_.plan
    assert isinstance(plan.run.sampler, SGLD) and plan.run.batch_size < len(y) / 8
    assert "left out of that of the steps" in plan.choices["batch_size"].why
    binary = isinstance(model, SGLDLogisticRegression)
    rows, draws, precision = standardised(model, X)
    exact, variance, error = exact_moments(binary, rows, y, draws, precision)
    assert error < 0.01
    n_effective = len(draws) / 2.5  # autocorrelation time of steps of size 1
    z = (draws.mean(axis=0) - exact) / np.sqrt(variance)
    assert np.abs(z).max() < 4.5 * np.hypot(1.0 / np.sqrt(n_effective), error)
    off = np.sqrt(draws.var(axis=0) / variance) - 1.0
    assert np.abs(off).max() < 4.5 * np.hypot(1.0 / np.sqrt(2.0 * n_effective), error)
    assert abs(off.mean()) < 0.01
    # no row throws a chain far out: the kurtosis is nearly that of a normal distribution
    z = (draws - draws.mean(axis=0)) / draws.std(axis=0)
    assert (z**4).mean(axis=0).max() < 4.5


def plan_of(X, y, prior=None, **settings):
    posterior = GLMPosterior(X, y, Bernoulli(), prior or Normal(scale=1.0))
    return make_plan(posterior, Settings.of(SGLDLogisticRegression(**settings)), 0)


def is_compensated(plan):
    return isinstance(plan.run.dynamics.metric, Compensated)


@pytest.mark.parametrize("n, thin", [(4200, 1), (9000, 2)])
def test_draws_are_as_far_apart_as_usual_where_steps_are_cheap(n, thin):
    plan = plan_of(*binary(n=n))
    assert is_compensated(plan) and plan.thin == thin


def test_a_rare_class_is_left_to_the_other_strategies():
    assert not is_compensated(plan_of(*binary("skewed", level=-5.5)))


@pytest.mark.parametrize("given", [{"temperature": 0.5}, {"batch_size": 50}])
def test_settings_that_are_given_are_left_to_the_other_strategies(given):
    assert not is_compensated(plan_of(*binary(), **given))


@pytest.mark.parametrize("shape", [(1000, 65), (4200, 20)])
def test_only_many_rows_a_column_and_many_columns_are_likely_normal(shape):
    facts = [
        GLMPosterior(*binary(n=n, d=d), Bernoulli(), Flat()).facts for n, d in (shape, (4200, 65))
    ]
    assert [each.likely_normal for each in facts] == [False, True]


def test_batches_estimate_the_gradient_without_bias():
    X, y = binary("skewed")
    plan = plan_of(X, y)
    gradient = plan.run.dynamics.in_groups_of(None).gradient
    assert len(gradient.always) > 0  # rows of large steps are read in every batch
    theta = plan.mode.theta + plan.mode.metric.sqrt(np.random.default_rng(0).normal(size=(1, 66)))
    every = np.arange(len(gradient.drawn))[None, None]
    estimate = gradient(theta, gradient.prepare(every)[0])
    error = plan.mode.metric.sqrt_t(estimate - plan.posterior.grad(theta))
    assert np.abs(error).max() < 1e-3  # the curvature was added up in single precision


@pytest.mark.parametrize("eta", [0.3, 1.0])
def test_moves_are_those_of_the_gradient_and_the_metric(eta):
    plan = plan_of(*binary("skewed"))
    dynamics = plan.run.dynamics.in_groups_of(None)
    gradient, metric, rng = dynamics.gradient, plan.mode.metric, np.random.default_rng(0)
    theta = plan.mode.theta + metric.sqrt(rng.normal(size=(3, 66)))
    batch = gradient.prepare(rng.integers(len(gradient.drawn), size=(1, 3, 40)))[0]
    expected = theta + eta * (gradient(theta, batch) @ metric.root) @ metric.root.T
    moved = dynamics.move({"theta": theta}, batch, eta)
    np.testing.assert_allclose(metric.whiten(moved - expected), 0.0, atol=1e-5)


def test_injected_and_batch_noise_add_up():
    rng = np.random.default_rng(0)
    root, noise = rng.standard_normal((5, 5)), rng.standard_normal((5, 5))
    noise = 0.1 * noise @ noise.T / np.linalg.norm(noise @ noise.T, 2)
    metric = Compensated(Dense(root), noise)
    injected = metric.sqrt(np.eye(5)).T
    total = injected @ injected.T + root @ noise @ root.T
    np.testing.assert_allclose(total, root @ root.T, atol=1e-12)
    np.testing.assert_allclose(metric.scale(np.eye(5)), root @ root.T, atol=1e-12)


def test_the_noise_of_batches_is_known():
    X, y = binary()
    plan = plan_of(X, y)
    gradient, metric = plan.run.dynamics.in_groups_of(None).gradient, plan.mode.metric
    rng, size = np.random.default_rng(0), plan.run.batch_size
    normals, rows = (
        rng.standard_normal((400, 66)),
        rng.integers(len(gradient.drawn), size=(1, 400, size)),
    )
    theta = plan.mode.theta + metric.sqrt(normals)
    noise = gradient(theta, gradient.prepare(rows)[0]) - plan.posterior.grad(theta)
    total = np.square(metric.sqrt_t(noise)).sum(axis=1)
    injected = plan.run.dynamics.metric.sqrt(np.eye(66))
    known = 66 - np.square(metric.whiten(injected)).sum()
    assert abs(total.mean() - known) < 4.0 * total.std() / np.sqrt(400) + 0.05 * known


def test_averages_of_rows_are_integrals_over_their_predictors():
    X, y = binary(n=300, d=4)
    rows = GLMPosterior(X, y, Bernoulli(), Flat()).row_sum()
    rng = np.random.default_rng(0)
    theta, moves = 0.3 * rng.standard_normal(5), 0.05 * rng.standard_normal((8, 5))
    variance = predictor_variances(rows, moves)
    averages = averaged_rows(rows, theta, variance)
    square = squared_rests(rows, theta, variance, averages.expansion)
    design = np.column_stack([X, np.ones(300)])
    sd = np.sqrt(np.square(design @ moves.T).sum(axis=1))
    z = np.linspace(-8.0, 8.0, 2001)[:, None]
    density = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    u = design @ theta + sd * z
    score, curvature = y - expit(u), expit(u) * expit(-u)
    at_zero, slope = averages.expansion
    for found, values in (
        (averages.score, score),
        (averages.curvature, curvature),
        (averages.third, -curvature * (1.0 - 2.0 * expit(u))),
        (square, np.square(score - at_zero + slope * u)),
    ):
        exact = (density * values).sum(axis=0)
        np.testing.assert_allclose(found, exact, atol=1e-2 * np.abs(exact).max())
