"""Many rows of which few matter: the posterior of these and an expansion of the others."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import (
    SGLDGammaRegressor,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDPoissonRegressor,
)
from skbayes_sgld.inference.planning import few_rows
from skbayes_sgld.inference.strategies import condensed
from skbayes_sgld.inference.strategies.behind_wall import BehindWall
from skbayes_sgld.likelihoods import Bernoulli, UnequalNormalNoise
from skbayes_sgld.own_models import check_gradient
from skbayes_sgld.posterior import glm
from skbayes_sgld.posterior.condensed import CondensedPosterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.noise_models import LogLinearNoisePosterior
from skbayes_sgld.priors import InverseGamma, Normal
from skbayes_sgld.sampling import HMC, SGLD
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning import pilots
from skbayes_sgld.sampling.tuning.mode import Center, newton_mode
from tests.marks import slow
from tests.references.targets import logistic_posterior, mode_of

SHORT = {"n_draws": 40, "n_burnin": 20, "thin": 1}


def outlying(n=5000, d=6, seed=0, n_far=2):
    """Normal columns, in some of which a row lies at 1,000 sds."""
    rng = np.random.default_rng(seed)
    X, coef = rng.standard_normal((n, d)), 0.5 * rng.standard_normal(d)
    for row, column in zip(range(n // 2, n), range(1, 1 + n_far), strict=False):
        X[row, column], coef[column] = 1e3, 1e-3
    return X, X @ coef, rng


def binary(seed=0, n_far=2):
    X, eta, rng = outlying(seed=seed, n_far=n_far)
    return X, (rng.random(len(X)) < expit(eta)).astype(int)


def log_density(X, y, theta):
    """Log likelihood, without any code of the package."""
    u = theta[:, :-1] @ X.T + theta[:, -1:]
    return -np.logaddexp(0.0, np.where(y == 1, -u, u)).sum(axis=1)


@pytest.mark.parametrize("seed", [0, slow(1), slow(2)])
def test_draws_of_few_rows_have_the_moments_of_all_rows(seed):
    X, y = binary(seed)
    model = SGLDLogisticRegression(prior="normal", random_state=seed).fit(X, y)
    plan, draws = model.result_.plan, model.posterior_.flat
    few = plan.run.dynamics.posterior
    assert isinstance(few, CondensedPosterior) and few.n_samples <= len(y) / 5
    assert isinstance(plan.run.sampler, HMC)
    assert "of 5,000 rows matter" in plan.choices["batch_size"].why
    # weights of the draws by the density of all rows: what the few leave out
    theta = model.result_.theta.reshape(draws.shape)
    error = log_density(X, y, draws) - few.log_density(theta) + plan.posterior.log_prior(theta)
    weight = np.exp(error - error.mean())
    mean, sd = draws.mean(axis=0), draws.std(axis=0)
    exact = np.average(draws, axis=0, weights=weight)
    exact_sd = np.sqrt(np.average(np.square(draws - exact), axis=0, weights=weight))
    assert np.abs((exact - mean) / sd).max() < 0.03
    assert np.abs(exact_sd / sd - 1.0).max() < 0.02
    assert model.result_.bias[0] < 0.04


def counts_of_levels(n, seed=0):
    """Six normal columns, and forty levels, most of which have a handful of rows."""
    rng, ranks = np.random.default_rng(seed), np.arange(1.0, 41.0)
    level = rng.choice(40, n, p=ranks**-2 / np.sum(ranks**-2))
    X = np.column_stack([rng.standard_normal((n, 6)), level[:, None] == np.arange(1, 40)])
    X = X[:, X.any(axis=0)]
    eta = 1.0 + X @ (0.3 * rng.standard_normal(X.shape[1]))
    return X, rng.poisson(np.exp(eta))


def test_few_of_two_thousand_rows_of_rare_levels_have_the_moments_of_all():
    X, y = counts_of_levels(2000)
    model = SGLDPoissonRegressor(prior="normal", random_state=0).fit(X, y)
    plan, draws = model.result_.plan, model.posterior_.flat
    few = plan.run.dynamics.posterior
    assert isinstance(few, CondensedPosterior) and few.n_samples <= len(y) / 4
    u = draws[:, :-1] @ X.T + draws[:, -1:]
    theta = model.result_.theta.reshape(draws.shape)
    error = (y * u - np.exp(u)).sum(axis=1)
    error += plan.posterior.log_prior(theta) - few.log_density(theta)
    weight = np.exp(error - error.mean())
    mean, sd = draws.mean(axis=0), draws.std(axis=0)
    exact = np.average(draws, axis=0, weights=weight)
    exact_sd = np.sqrt(np.average(np.square(draws - exact), axis=0, weights=weight))
    assert np.abs((exact - mean) / sd).max() < 0.03
    assert np.abs(exact_sd / sd - 1.0).max() < 0.03


def test_few_rows_are_tried_where_the_density_is_far_from_a_normal_one():
    # two step sizes on all rows took 2.8 times as long
    X, eta, rng = outlying(2000, n_far=4)  # up to three rows are walls
    y = (np.outer(eta, [-1.0, 0.0, 1.0]) + rng.gumbel(size=(2000, 3))).argmax(axis=1)
    with pytest.warns(ConvergenceWarning):  # of few draws
        model = SGLDLogisticRegression(prior="normal", random_state=0, **SHORT).fit(X, y)
    plan = model.result_.plan
    assert condensed._FAR in plan.choices["sampler"].why
    assert isinstance(plan.run.sampler, HMC)
    assert "of 2,000 rows matter" in plan.choices["batch_size"].why


@pytest.mark.parametrize(
    ("n", "n_columns", "expected"),
    [(1400, 5, False), (1600, 5, True), (2000, 150, False), (2400, 150, True), (4100, 400, True)],
)
def test_rows_are_condensed_if_they_are_many_for_the_parameters(n, n_columns, expected):
    posterior = logistic_posterior(n_rows=n, n_columns=n_columns)
    assert posterior.facts.condensable == expected


@pytest.mark.parametrize("family", ["logistic", "classes", "counts", "gamma"])
def test_the_condensed_density_has_its_gradient_and_at_all_rows_is_the_whole(family, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    eta = X @ [0.5, -0.5, 1.0]
    mean = np.exp(np.clip(0.3 * eta, -2, 2))
    estimator, y = {
        "logistic": (SGLDLogisticRegression, eta > rng.logistic(size=400)),
        "classes": (SGLDLogisticRegression, np.digitize(eta + rng.logistic(size=400), [-1, 1])),
        "counts": (SGLDNegativeBinomialRegressor, rng.poisson(mean)),
        "gamma": (SGLDGammaRegressor, mean * rng.gamma(2.0, 0.5, 400)),
    }[family]
    model = estimator(prior="normal", random_state=0, **SHORT)
    with pytest.warns(Warning):  # of few draws
        whole = model.fit(X, y).result_.plan.posterior
    assert isinstance(whole, GLMPosterior)
    at = model.result_.theta[0, -1]
    theta = at + 1e-2 * rng.standard_normal((3, at.size))
    of_all = whole.expand_likelihood(at)
    every = CondensedPosterior(whole, np.arange(400), np.ones(400), of_all)
    np.testing.assert_allclose(every.log_density(theta), whole.log_density(theta), rtol=1e-10)
    np.testing.assert_allclose(every.grad(theta), whole.grad(theta), rtol=1e-7, atol=1e-7)
    # near the point of the expansion any rows have its value, up to a constant, and its gradient
    rows = rng.choice(400, 50, replace=False)
    few = CondensedPosterior(whole, rows, np.full(50, 3.0), of_all)
    near = at + 1e-5 * rng.standard_normal((3, at.size))
    np.testing.assert_allclose(few.grad(near), whole.grad(near), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(few.curvature(at), whole.curvature(at), rtol=1e-8, atol=1e-6)
    # and it is the gradient of its density elsewhere
    step = 1e-5 * np.eye(at.size)
    slope = (few.log_density(theta[0] + step) - few.log_density(theta[0] - step)) / 2e-5
    np.testing.assert_allclose(few.grad(theta[:1])[0], slope, rtol=1e-4, atol=1e-3)
    # together they are the same, also in single precision and under another prior
    value, grad = few.bind_value_and_grad()(theta)
    np.testing.assert_allclose(value, few.log_density(theta), rtol=1e-12)
    np.testing.assert_allclose(grad, few.grad(theta), rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(glm, "ROUNDED_NUMBERS", (0, 2**30))
    rounded = few.rounded(density=True)
    assert rounded._rest.curvature.dtype == np.float32
    followed = rounded.with_prior(replace(few.linear_prior, coef=Normal(0.1)))
    value, grad = rounded.bind_value_and_grad(followed)(theta)
    np.testing.assert_allclose(value, few.log_density(theta), rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(grad, followed.grad(theta), rtol=1e-5, atol=1e-3)
    assert np.abs(grad - few.grad(theta)).max() > 0.1


def test_remainders_of_short_moves_are_the_third_and_fourth_terms_of_taylor():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), (np.arange(50) % 2).astype(float)
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(), fit_intercept=False)
    center = Center(np.array([1.0, -0.5, 0.3]), Diagonal(np.full(3, 0.02**2)))
    found = condensed._remainders(posterior, center, 1.0, seed=0)
    moved = condensed.normal_moves(center, 1.0, 0, 0, len(found) // 2) @ X.T
    p = expit(X @ center.theta)
    third, fourth = -p * (1 - p) * (1 - 2 * p), -p * (1 - p) * (1 - 6 * p * (1 - p))
    for terms, expected in (
        (found[::2], third * moved**3 / 6.0),
        (found[1::2], fourth * moved**4 / 24.0),
    ):
        np.testing.assert_allclose(terms, expected, rtol=0, atol=0.01 * np.abs(expected).max())


def test_rows_are_drawn_in_proportion_to_their_remainders_at_equal_distances():
    rng = np.random.default_rng(0)
    size = np.append(rng.uniform(0.5, 1.5, 10_000), [1e4, 1e5])
    chance = few_rows.chances(size, 500)
    assert chance.sum() == pytest.approx(500, rel=1e-6)
    assert np.all(chance[-2:] == 1.0)
    np.testing.assert_allclose(chance[:-2] / size[:-2], chance[0] / size[0])
    order = rng.permutation(len(size))
    drawn = [few_rows.at_equal_distances(chance, order, u) for u in np.arange(0.05, 1.0, 0.1)]
    assert {len(rows) for rows in drawn} <= {500, 501}
    assert all(np.isin([10_000, 10_001], rows).all() for rows in drawn)
    # any fixed function along the order is estimated with an error far below that of random rows
    values = np.empty(len(size))
    values[order] = size[order] * np.linspace(0.0, 1.0, len(size))
    values[-2:] = 0.0
    found = [np.sum(values[rows] / chance[rows]) for rows in drawn]
    assert np.std(found) < 0.01 * values.sum()
    assert np.mean(found) == pytest.approx(values.sum(), rel=0.002)


def test_rows_are_not_tried_if_too_many_matter(monkeypatch):
    rng = np.random.default_rng(0)
    size = rng.exponential(0.05, 2000)
    chance = few_rows.chances(size, 500)
    drawn = rng.random((4000, len(size))) < chance
    sd = (drawn @ (size / chance)).std()
    assert few_rows.chance_error(size, 500) == pytest.approx(sd, rel=4.0 / np.sqrt(2 * 4000))
    assert sd > condensed._HOPELESS
    assert few_rows.chance_error(np.append(size, np.zeros(9)), 2000) == pytest.approx(0.0)

    posterior = logistic_posterior(2000, 2)
    center = mode_of(posterior)
    remainders, none = condensed._remainders(posterior, center, 1.0, 0), np.empty(0, int)
    assert condensed.condensed(posterior, center, 1.0, 0, remainders, none) is not None
    some = condensed.condensed(posterior, center, 1.0, 0, remainders, np.arange(9))
    np.testing.assert_array_equal(some.X[:9], posterior.X[:9])
    assert np.all(some.weight[:9] == 1.0)
    monkeypatch.setattr(condensed, "CondensedPosterior", None)  # is not made
    assert condensed.condensed(posterior, center, 1.0, 0, size[None], none) is None


def test_a_density_far_from_a_normal_one_is_told_from_one_that_is_near():
    far, n = {}, 5000
    for level in (0.0, -30.0):  # at -30 a class has no row, and the prior bounds the coefficients
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, 3))
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(-X[:, 0] - level))).astype(float)
        prior = Normal(scale=10.0)
        posterior = GLMPosterior(X, y, Bernoulli(), prior, intercept_prior=prior)
        remainders = condensed._remainders(posterior, mode_of(posterior), 1.0, 0)
        far[level] = condensed._is_far_from_normal(remainders, posterior.n_params)
    assert far == {0.0: False, -30.0: True}


def test_the_next_strategy_plans_if_most_rows_matter(monkeypatch):
    X, y = binary()
    for module in (few_rows, condensed):
        monkeypatch.setattr(module, "MOST_SHARE", 0.0)
    model = SGLDLogisticRegression(prior="normal", random_state=0, **SHORT)
    with pytest.warns(Warning):  # of few draws
        plan = model.fit(X, y).result_.plan
    assert plan.run.dynamics.posterior.n_samples == len(y)
    assert "matter" not in plan.choices["batch_size"].why


def test_rows_that_are_asked_for_are_kept():
    X, y = binary()
    model = SGLDLogisticRegression(prior="normal", gradient="full", random_state=0, **SHORT)
    with pytest.warns(Warning):  # of few draws
        plan = model.fit(X, y).result_.plan
    assert plan.run.dynamics.posterior.n_samples == len(y)


def test_draws_where_the_few_rows_are_wrong_are_warned_of(monkeypatch):
    X, y = binary(0, n_far=1)
    monkeypatch.setattr(BehindWall, "suits", lambda task: False)
    monkeypatch.setattr(condensed, "error_of", lambda *args: 0.0)

    def without_the_outlier(size, order, always, n_rows, seed):
        rows, weights = few_rows.drawn_rows(size, order, always, n_rows, seed)
        others = rows != len(y) // 2
        return rows[others], weights[others]

    monkeypatch.setattr(condensed, "drawn_rows", without_the_outlier)
    model = SGLDLogisticRegression(prior="normal", random_state=0)
    with pytest.warns(ConvergenceWarning, match="bias means or standard deviations"):
        model.fit(X, y)


def test_steps_follow_the_rows_that_matter_if_batches_have_many_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 3))
    y = rng.poisson(np.exp(0.5 + X @ [0.2, -0.2, 0.1]))
    model = SGLDNegativeBinomialRegressor(prior="normal", random_state=0).fit(X, y)
    plan = model.result_.plan
    assert isinstance(plan.run.sampler, SGLD)
    assert isinstance(plan.run.dynamics.posterior, CondensedPosterior)
    assert "of 6,000 rows matter" in plan.choices["gradient"].why
    # weights of some draws by the density of all rows: what the few leave out
    theta = model.result_.theta.reshape(-1, 5)[::8]
    off = plan.posterior.log_density(theta) - plan.run.dynamics.posterior.log_density(theta)
    weight = np.exp(off - off.mean())
    for values in model.posterior_.flat[::8].T:
        exact = np.average(values, weights=weight)
        sd = np.sqrt(np.average(np.square(values - exact), weights=weight))
        assert abs(exact - values.mean()) < 0.03 * sd
        assert values.std() == pytest.approx(sd, rel=0.03)


@pytest.mark.parametrize("family", ["times", slow("counts")])
def test_steps_follow_the_rows_that_matter_if_those_of_rare_levels_are_many(family):
    rng = np.random.default_rng(0)
    n, ranks = 8000, np.arange(1, 61)
    level = rng.choice(60, n, p=1.0 / (ranks**2 * np.sum(1.0 / ranks**2)))
    X = (level[:, None] == np.arange(1, 60)).astype(float)
    X = np.column_stack([rng.standard_normal((n, 6)), X[:, X.any(axis=0)]])
    eta = 0.4 * X[:, :20] @ rng.standard_normal(20)
    if family == "times":
        model, y = SGLDGammaRegressor(random_state=0), np.exp(eta) * rng.gamma(3.0, 1.0 / 3.0, n)
    else:
        model, y = SGLDPoissonRegressor(random_state=0), rng.poisson(np.exp(1.0 + eta))
    plan = model.fit(X, y).result_.plan
    few = plan.run.dynamics.posterior
    assert isinstance(few, CondensedPosterior) and few.n_samples <= 1000
    # weights of some draws by the density of all rows: what the few leave out
    theta = model.result_.theta.reshape(-1, plan.posterior.n_params)[::4]
    off = plan.posterior.log_density(theta) - few.log_density(theta)
    weight = np.exp(off - off.mean())
    weight /= weight.sum()
    exact, mean = weight @ theta, theta.mean(axis=0)
    sd = np.sqrt(weight @ np.square(theta - exact))
    # Monte Carlo errors of the two differ by those of the weights alone
    error = np.sqrt(np.square(weight - 1.0 / len(weight)) @ np.square(theta - mean)) / sd
    assert np.all(np.abs(exact - mean) / sd < 0.025 + 4.0 * error)
    assert np.all(np.abs(theta.std(axis=0) / sd - 1.0) < 0.025 + 4.0 * error)


def test_all_rows_are_read_if_most_matter_and_nothing_is_wrong_with_steps(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 3))
    y = rng.poisson(np.exp(0.5 + X @ [0.2, -0.2, 0.1]))
    monkeypatch.setattr(few_rows, "MOST_SHARE", 0.0)
    model = SGLDNegativeBinomialRegressor(prior="normal", random_state=0, **SHORT)
    with pytest.warns(Warning):  # of few draws
        plan = model.fit(X, y).result_.plan
    assert isinstance(plan.run.sampler, SGLD)
    assert plan.run.dynamics.posterior.n_samples == len(y)


def test_no_pilot_of_steps_runs_on_all_rows_if_the_density_is_far_from_a_normal_one(monkeypatch):
    X = np.random.default_rng(0).standard_normal((4500, 3))
    y = np.arange(4500) == 0  # one event
    monkeypatch.setattr(few_rows, "MOST_SHARE", 0.0)
    monkeypatch.setattr(pilots, "choose_step_size", None)  # is not called
    model = SGLDLogisticRegression(prior=Normal(scale=10.0), random_state=0, **SHORT)
    with pytest.warns(Warning):  # of few draws
        plan = model.fit(X, y).result_.plan
    assert isinstance(plan.run.sampler, HMC)
    assert "far from a normal one" in plan.choices["sampler"].why


def test_rows_stand_for_all_in_the_density_of_log_linear_noise():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 3))
    y = X[:, 0] + np.exp(0.3 * X[:, 1]) * rng.standard_normal(5000)
    whole = LogLinearNoisePosterior(
        X, y, UnequalNormalNoise(), Normal(1.0), InverseGamma(scale=1.0), np.arange(3)
    )
    assert whole.facts.condensable
    mode = newton_mode(whole, whole.start())
    of_all = whole.expand_likelihood(mode.theta)
    few = CondensedPosterior(whole, np.arange(0, 5000, 10), np.full(500, 10.0), of_all)
    theta = mode.theta + mode.metric.sqrt(np.random.default_rng(1).standard_normal((50, 8)))
    off = few.log_density(theta) - whole.log_density(theta)
    assert off.std() < 0.1
    check_gradient(few, theta[:4])
