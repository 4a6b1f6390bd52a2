"""Predictions of many rows against double precision, whatever the weights, units and threads."""

import multiprocessing

import numpy as np
import pytest
from scipy import special, stats

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.likelihoods import (
    Bernoulli,
    Binomial,
    Categorical,
    NormalNoise,
    Poisson,
    StudentTNoise,
)
from skbayes_sgld.likelihoods.normal import UnequalNormalNoise
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.predictors import LinearPredictor
from tests.marks import slow

ROWS, DRAWS, D = 400, 600, 4
LEVELS = np.array([0.001, 0.05, 0.5, 0.9])


def some_draws(spread=0.1, n_predictors=1):
    rng = np.random.default_rng(0)
    coef = 0.5 + spread * rng.standard_normal((DRAWS, n_predictors, D))
    return coef, spread * rng.standard_normal((DRAWS, n_predictors))


def some_rows(n=ROWS):
    return np.random.default_rng(1).standard_normal((n, D))


def some_weights(weighted):
    """Weights of the draws, and their shares."""
    weights = np.random.default_rng(2).uniform(0.0, 3.0, DRAWS) ** 2
    weights = weights if weighted else np.ones(DRAWS)
    return weights if weighted else None, weights / weights.sum()


def some_variances(freedom=100):
    return freedom / np.random.default_rng(3).chisquare(freedom, DRAWS)


def normal_mixtures(coef, intercept, variance, weights=None):
    own = np.log(variance)[:, None]
    return PredictiveDistribution(LinearPredictor(coef, intercept), NormalNoise(), own, weights)


# ---- normal mixtures ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spread", "freedom", "weighted"),
    [
        (0.01, 5000, False),
        (0.1, 300, True),
        (0.5, 40, False),
        slow(3.0, 5, True),
        (0.1, None, False),
    ],
)
def test_normal_mixtures_are_those_of_all_draws(spread, freedom, weighted):
    (coef, intercept), X = some_draws(spread), some_rows()
    weights, share = some_weights(weighted)
    variance = some_variances(freedom) if freedom else np.full(DRAWS, 2.0)
    mixtures = normal_mixtures(coef, intercept, variance, weights)
    eta, sd = X @ coef[:, 0].T + intercept[:, 0], np.sqrt(variance)

    def cdf(t):
        return special.ndtr((t[:, None] - eta) / sd) @ share

    mean = eta @ share
    by_hand = (eta - mean[:, None]) ** 2 @ share + share @ variance
    np.testing.assert_allclose(mixtures.moments(X), np.c_[mean, by_hand], rtol=1e-9, atol=1e-12)
    width = np.sqrt(by_hand)
    found = mixtures.quantiles(X, LEVELS)
    for t, q in zip(found.T, LEVELS, strict=True):
        assert np.all(cdf(t - 3e-5 * width) < q)
        assert np.all(q < cdf(t + 3e-5 * width))
    away = np.array([-1e8, -40.0, -4.0, -1.0, 0.0, 0.3, 2.0, 6.0, np.inf])
    t = mean[:, None] + width[:, None] * away
    exact = np.column_stack([cdf(at) for at in t.T])
    np.testing.assert_allclose(mixtures.cdf(X, t), exact, rtol=0, atol=2e-4)
    offset = RowValues(offset=np.full(ROWS, 2.0))
    np.testing.assert_allclose(mixtures.cdf(X, t + 2.0, offset), exact, rtol=0, atol=2e-4)
    shifted = mixtures.quantiles(X, LEVELS, offset)
    np.testing.assert_allclose(shifted - 2.0, found, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_log_densities_hold_far_out_and_in_any_units(unit):
    (coef, intercept), X, variance = some_draws(), some_rows(), some_variances()
    weights, share = some_weights(True)
    eta = X @ coef[:, 0].T + intercept[:, 0]
    y = eta[:, 0] + np.random.default_rng(4).standard_normal(ROWS)
    y[:20] *= 30.0
    y[20] = 1e30
    each = -0.5 * (np.log(2 * np.pi * variance) + (y[:, None] - eta) ** 2 / variance)
    exact = special.logsumexp(each, axis=1, b=share) - np.log(unit)
    scaled = normal_mixtures(coef * unit, intercept * unit, variance * unit**2, weights)
    found = scaled.log_density(X, (y + 1.0) * unit, RowValues(offset=np.full(ROWS, unit)))
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=3e-4)


@pytest.mark.parametrize("freedom", [None, 0.3, 4.0, 1e6])
@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_log_likelihoods_of_noise_hold_far_out_and_in_any_units(unit, freedom):
    """None: normal noise; else degrees of freedom."""
    (coef, intercept), X, variance = some_draws(), some_rows(), some_variances()
    eta = X @ coef[:, 0].T + intercept[:, 0]
    y = eta[:, 0] + np.random.default_rng(4).standard_normal(ROWS)
    y[:20] *= 30.0
    y[20:22] = 1e6, -1e12
    own, sd = np.log(unit**2 * variance)[:, None], np.sqrt(variance)
    law, likelihood = stats.norm(eta, sd), NormalNoise()
    if freedom is not None:
        nu = freedom * np.exp(0.3 * np.random.default_rng(5).standard_normal(DRAWS))
        own, likelihood = np.column_stack([own, np.log(nu)]), StudentTNoise()
        law = stats.t(nu, eta, sd)
    exact = law.logpdf(y[:, None]) - np.log(unit)
    model = PredictiveDistribution(LinearPredictor(coef * unit, intercept * unit), likelihood, own)
    offset = RowValues(offset=np.full(ROWS, unit))
    found = model.log_likelihood(X, (y + 1.0) * unit, offset)
    np.testing.assert_allclose(found, exact, rtol=2e-6, atol=5e-5)


@pytest.mark.parametrize("slopes", [0.0, 1e-9])
def test_log_likelihoods_of_rows_far_out_hold_near_a_draw(slopes):
    """Those of the noise, too: 0 stands for one noise of all rows."""
    (coef, intercept), X, variance = some_draws(), some_rows(), some_variances()
    X[:4] *= np.array([1e3, 1e5, 1e6, 1e8])[:, None]
    eta = X @ coef[:, 0].T + intercept[:, 0]
    y = eta[:, 7] + 0.3
    if slopes:
        noise = slopes * np.random.default_rng(6).standard_normal((DRAWS, D))
        predictor = LinearPredictor(
            np.stack([coef[:, 0], noise], axis=1), np.column_stack([intercept, np.log(variance)])
        )
        model = PredictiveDistribution(predictor, UnequalNormalNoise())
        sd = np.exp(0.5 * (X @ noise.T + np.log(variance)))
    else:
        own = np.log(variance)[:, None]
        model = PredictiveDistribution(LinearPredictor(coef, intercept), NormalNoise(), own)
        sd = np.sqrt(variance)
    exact = stats.norm(eta, sd).logpdf(y[:, None])
    np.testing.assert_allclose(model.log_likelihood(X, y), exact, rtol=5e-5, atol=5e-5)
    of_mixture = special.logsumexp(exact, axis=1) - np.log(DRAWS)
    np.testing.assert_allclose(model.log_density(X, y), of_mixture, rtol=0, atol=2e-3)


@pytest.mark.parametrize("spread", [0.1, 3.0, 15.0])
@pytest.mark.parametrize("level", [-30.0, 0.0, 5.0])
def test_means_of_counts_and_totals_are_those_of_all_draws(level, spread):
    """Of a few draws far out a mean is beyond the range of single precision."""
    (coef, intercept), X = some_draws(spread), some_rows()
    eta = X @ coef[:, 0].T + intercept[:, 0] + level
    predictor = LinearPredictor(coef, intercept + level)
    found = PredictiveDistribution(predictor, Poisson()).mean(X)
    np.testing.assert_allclose(found, np.exp(eta).mean(axis=1), rtol=2e-5)
    trials = RowValues(others={"trials": np.full(ROWS, 7.0)})
    found = PredictiveDistribution(predictor, Binomial()).mean(X, trials)
    np.testing.assert_allclose(found, 7.0 * special.expit(eta).mean(axis=1), rtol=2e-5)


@pytest.mark.parametrize(
    ("n", "unit", "of_x"), [(20, 1e-45, 1e100), (20, 1e45, 1e-100), (400, 1e45, 1.0), (400, 1, 1)]
)
def test_units_and_columns_far_from_zero_cost_no_digits(n, unit, of_x):
    (coef, intercept), X, variance = some_draws(), some_rows(n), some_variances()
    plain = normal_mixtures(coef, intercept, variance)
    offset = np.array([1e6, -1e6, 1e3, 0.0])
    moved = intercept - coef @ offset  # the same predictors
    raw = normal_mixtures(unit / of_x * coef, unit * moved, unit**2 * variance)
    rows = of_x * (X + offset)
    for kind in ("quantiles", "mean_quantiles"):
        found, expected = getattr(raw, kind)(rows, LEVELS), getattr(plain, kind)(X, LEVELS)
        np.testing.assert_allclose(found / unit, expected, rtol=0, atol=2e-5)
    found = raw.moments(rows) / [unit, float(unit) ** 2]
    np.testing.assert_allclose(found, plain.moments(X), rtol=0, atol=1e-8)


def test_columns_that_cancel_leave_the_intervals_what_they_are():
    (coef, intercept), X, variance = some_draws(), some_rows(20), some_variances()
    mixed = np.eye(D)  # of the columns
    mixed[1] = [1.0, 1e-8, 0.0, 0.0]
    turned = normal_mixtures(coef @ np.linalg.inv(mixed), intercept, variance)
    expected = normal_mixtures(coef, intercept, variance).quantiles(X, LEVELS)
    # single precision knows such coefficients to 1e-7 of 1e8
    found = turned.quantiles(X @ mixed.T, LEVELS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("n", [1, 240])
def test_a_row_out_of_all_bounds_has_a_finite_interval(n):
    (coef, intercept), X = some_draws(), some_rows(n)
    X[-1] = 1e30
    found = normal_mixtures(coef, intercept, some_variances()).quantiles(X, LEVELS)
    expected = np.quantile(coef[:, 0] @ X[-1], LEVELS)
    np.testing.assert_allclose(found[-1, 1:], expected[1:], rtol=0.02)


# ---- probabilities ------------------------------------------------------------------------------


# likelihood, rows, distance of the columns from zero, and whether draws have weights
LABELS = {
    "two, few rows": (Bernoulli(), 11, 0.0, True),
    "two": (Bernoulli(), 240, 0.0, True),
    "two, far from zero": (Bernoulli(), 240, 1e6, False),
    "four, few rows": (Categorical(4), 11, 0.0, False),
    "three": (Categorical(3), 240, 0.0, False),
    "three, far from zero": (Categorical(3), 240, 1e6, True),
}


@pytest.mark.parametrize("name", LABELS)
def test_probabilities_and_their_logs_are_those_of_all_draws(name):
    likelihood, n, offset, weighted = LABELS[name]
    coef, intercept = some_draws(0.05, likelihood.n_predictors)
    X, (weights, share) = 3.0 * some_rows(n), some_weights(weighted)
    X[: n // 8] *= 10.0  # tiny probabilities keep their digits too
    X[-1] *= 1e3  # these underflow, and their logs do not
    moved = intercept - coef.sum(axis=2) * offset
    predictive = PredictiveDistribution(LinearPredictor(coef, moved), likelihood, None, weights)
    eta = np.einsum("skd,nd->nsk", coef, X) + intercept
    if likelihood.n_predictors == 1:
        eta = np.concatenate([np.zeros_like(eta), eta], axis=2)
    each = special.log_softmax(eta, axis=2)
    others = [
        special.logsumexp(np.delete(each, k, axis=2), axis=2) for k in range(likelihood.n_classes)
    ]
    both = np.stack([each, np.stack(others, axis=2)], axis=3)
    logs = special.logsumexp(both, axis=1, b=share[:, None, None])
    tolerance = 1e-9 if n < 200 else 2e-6 + 1e-10 * offset
    p = predictive.probability(X + offset)
    np.testing.assert_allclose(p, np.exp(logs[..., 0]), rtol=10 * tolerance, atol=1e-300)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    found = predictive.log_probability(X + offset)
    np.testing.assert_allclose(found, logs, rtol=tolerance, atol=10 * tolerance)
    found = predictive.probability_quantiles(X + offset, LEVELS)
    given = {"weights": np.broadcast_to(share[:, None], each.shape), "method": "inverted_cdf"}
    expected = np.quantile(np.exp(each), LEVELS, axis=1, **(given if weighted else {}))
    expected = np.moveaxis(expected, 0, -1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=max(10 * tolerance, 3e-6))


# ---- counts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spread", "level", "weighted"),
    [(0.001, 1000.0, False), (0.03, 3.0, True), (0.5, 0.05, False), slow(0.5, 1000.0, True)],
)
def test_counts_of_many_rows_are_those_of_the_mixture_of_all_draws(spread, level, weighted):
    (coef, intercept), X = some_draws(spread), some_rows(200)
    weights, share = some_weights(weighted)
    mixture = PredictiveDistribution(LinearPredictor(coef, intercept), Poisson(), None, weights)
    offset = RowValues(offset=np.full(len(X), np.log(level)))
    rate = level * np.exp(X @ coef[:, 0].T + intercept[:, 0])
    y = np.random.default_rng(4).poisson(rate[:, 0]).astype(float)
    y[::5] += 5 * np.ceil(np.sqrt(rate[::5, 0]))  # far out
    mean = rate @ share
    variance = mean + (rate - mean[:, None]) ** 2 @ share
    moments = mixture.moments(X, offset)
    np.testing.assert_allclose(moments, np.c_[mean, variance], rtol=4e-4)
    each = special.xlogy(y[:, None], rate) - rate - special.gammaln(y + 1)[:, None]
    log_density = special.logsumexp(each, axis=1, b=share)
    np.testing.assert_allclose(mixture.log_density(X, y, offset), log_density, atol=2e-4)
    found, cdf = mixture.quantiles(X, LEVELS, offset), mixture.cdf(X, y[:, None], offset)[:, 0]
    some = slice(None, None, 3)  # of the rows: the exact sums take long
    rate = rate[some]
    np.testing.assert_allclose(cdf[some], special.pdtr(y[some, None], rate) @ share, atol=2e-4)
    for k, q in zip(found[some].T, LEVELS, strict=True):
        assert np.all(special.pdtr(k[:, None], rate) @ share > q - 3e-6)
        below = np.where(k > 0, special.pdtr(np.maximum(k - 1, 0)[:, None], rate) @ share, 0.0)
        assert np.all(below < q + 3e-6)


def test_rows_whose_functions_are_not_smooth_are_averaged_over_all_draws():
    class Steps(Poisson):
        def cdf(self, u, y):
            return (u[:, 0] < y).astype(float)

    (coef, intercept), X = some_draws(1.0), some_rows()
    mixture = PredictiveDistribution(LinearPredictor(coef, intercept), Steps())
    eta = X @ coef[:, 0].T + intercept[:, 0]
    t = eta[:, :1] + 0.01
    np.testing.assert_allclose(mixture.cdf(X, t)[:, 0], (eta < t).mean(axis=1), atol=2e-3)
    assert np.all(np.abs(mixture.cdf(X, t)[:, 0] * DRAWS % 1.0 - 0.5) > 0.49)


@pytest.mark.parametrize("n_draws", [1, 600])
def test_draws_that_agree_have_the_probabilities_of_one(n_draws):
    coef, X = np.full((n_draws, 1, D), 0.2), some_rows()
    mixture = PredictiveDistribution(LinearPredictor(coef, np.zeros((n_draws, 1))), Poisson())
    rate = np.exp(X.sum(axis=1) * 0.2)
    y = np.arange(ROWS) % 4.0
    np.testing.assert_allclose(mixture.cdf(X, y[:, None])[:, 0], special.pdtr(y, rate), atol=3e-6)
    exact = special.xlogy(y, rate) - rate - special.gammaln(y + 1)
    np.testing.assert_allclose(mixture.log_density(X, y), exact, atol=2e-5)


# ---- processes ----------------------------------------------------------------------------------


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
# Python 3.12 warns of a fork of a process with threads
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_predicts():
    X = some_rows(900)
    model = SGLDLinearRegression(random_state=0).fit(X, X @ np.arange(D) + np.arange(900) % 7)
    model.predict_interval(X)  # the parent's threads are running
    context = multiprocessing.get_context("fork")
    process = context.Process(target=model.predict_interval, args=(X,), daemon=True)
    process.start()
    process.join(600)  # only a deadlock takes so long
    alive = process.is_alive()
    process.kill()
    assert not alive
    assert process.exitcode == 0


@pytest.mark.parametrize("where", ["far row", "dates"])
def test_predictors_in_single_precision_are_rounded_by_the_spread_of_their_own_row(where):
    X, predictor = some_rows(1000), LinearPredictor(*some_draws(n_predictors=3))
    if where == "dates":
        X[:, 1] += 1e6
    else:
        X[7] = 1e7
    others = np.arange(len(X)) != 7
    found, exact = predictor.in_single(X)[:, others], predictor(X)[:, others]
    size = np.abs(exact).max() if where == "dates" else 1.0
    np.testing.assert_allclose(found, exact, rtol=0, atol=5e-6 * size)


@pytest.mark.parametrize("likelihood", [NormalNoise(), StudentTNoise()])
def test_log_densities_of_unequal_noise_hold_far_out_and_beyond_single_precision(likelihood):
    (coef, intercept), X = some_draws(n_predictors=2), some_rows()
    own = [np.full(DRAWS, np.log(4.0))] if isinstance(likelihood, StudentTNoise) else []
    own = np.stack(own, axis=1) if own else np.empty((DRAWS, 0))
    predictor = LinearPredictor(coef, intercept)
    predictive = PredictiveDistribution(predictor, likelihood, own, None)
    u = predictor(X).swapaxes(0, 1)
    y = u[:, 0].mean(axis=1)
    y[:5] += np.array([1e1, -1e3, 1e6, 1e10, -1e16])
    if not own.size:  # those of heavy tails end at 1e19 sds
        y[5:8] += np.array([1e20, 1e60, -1e100])
    sd = np.exp(0.5 * u[:, 1])
    each = (stats.t(4.0, u[:, 0], sd) if own.size else stats.norm(u[:, 0], sd)).logpdf(y[:, None])
    exact = special.logsumexp(each, axis=1) - np.log(DRAWS)
    np.testing.assert_allclose(predictive.log_density(X, y), exact, rtol=1e-6, atol=2e-3)
