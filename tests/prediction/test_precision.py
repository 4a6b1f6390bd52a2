"""Predictions of many rows against the same in double precision, whatever the units and threads."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import special

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, _linalg
from skbayes_sgld.posterior import Bernoulli, Categorical, Gaussian, Poisson
from skbayes_sgld.prediction.normal_mixture import Moments, expand, search
from skbayes_sgld.prediction.order_statistics import draw_quantiles
from skbayes_sgld.prediction.predictive import Predictive
from skbayes_sgld.prediction.predictors import LinearPredictor

ROWS, DRAWS, D = 400, 600, 4
LEVELS = np.array([0.001, 0.05, 0.5, 0.9])


def some_draws(spread=0.1, n_predictors=1, center=0.5, seed=0):
    rng = np.random.default_rng(seed)
    coef = center + spread * rng.standard_normal((DRAWS, n_predictors, D))
    return coef, spread * rng.standard_normal((DRAWS, n_predictors))


def some_rows(n=ROWS, seed=1):
    return np.random.default_rng(seed).standard_normal((n, D))


def some_weights(weighted):
    return np.random.default_rng(2).uniform(0.0, 3.0, DRAWS) ** 2 if weighted else None


def mixture_cdf(t, eta, sd, share):
    """Distribution function of each row's mixture."""
    return special.ndtr((t[:, None] - eta) / sd) @ share


def bisected(eta, sd, share, q):
    """Quantile of each row's mixture by bisection in double precision."""
    reach = np.abs(eta).max() + 12.0 * sd.max()
    low, high = np.full(len(eta), -reach), np.full(len(eta), reach)
    for _ in range(50):
        middle = 0.5 * (low + high)
        is_low = mixture_cdf(middle, eta, sd, share) < q
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return low


# ---- normal mixtures ----------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("spread", "freedom"), [(0.01, 5000), (0.1, 300), (0.5, 40), (3.0, 5), (0.1, None)]
)
def test_quantiles_of_normal_mixtures_are_those_of_a_bisection(spread, freedom, weighted):
    (coef, intercept), X = some_draws(spread), some_rows()
    chi2 = np.random.default_rng(3).chisquare(freedom or 1, DRAWS)
    variance = np.full(DRAWS, 2.0) if freedom is None else freedom / chi2
    weights = some_weights(weighted)
    predictive = Predictive(
        LinearPredictor(coef, intercept), Gaussian(), np.log(variance)[:, None], weights
    )
    eta, share = X @ coef[:, 0].T + intercept[:, 0], predictive.share
    mean = eta @ share
    sd = np.sqrt((eta - mean[:, None]) ** 2 @ share + share @ variance)
    found = predictive.quantiles(X, LEVELS)
    for k, q in enumerate(LEVELS):
        expected = bisected(eta[::10], np.sqrt(variance), share, q)
        assert np.abs((found[::10, k] - expected) / sd[::10]).max() < 3e-5


def test_the_expansion_knows_where_it_does_not_hold():
    rng = np.random.default_rng(0)
    near, far = 0.02 * rng.standard_normal(DRAWS), rng.choice([-2.0, 2.0], DRAWS)
    deviation = np.stack([near - near.mean(), far - far.mean()])
    scale, share = np.ones(DRAWS), np.full(DRAWS, 1.0 / DRAWS)
    moments = Moments(scale, share)
    known = moments.by_power(moments(deviation.copy()).T)
    quantile, _, error = expand(known, np.array([0.05]))
    expected = bisected(deviation, scale, share, 0.05)
    assert error[0, 0] < 1e-5 < error[1, 0]
    assert abs(quantile[0, 0] - expected[0]) < 1e-6
    for said in (np.nan, 1e308):  # whatever it is
        start = np.full((3, 2), said)
        found = search(deviation.astype(np.float32), scale, share, 0.05, start)
        np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", ["quantiles", "mean_quantiles"])
def test_raw_units_cost_no_digits(kind, scale):
    (coef, intercept), X = some_draws(), some_rows()
    offset, variance = (
        np.array([1e6, -1e6, 1e3, 0.0]),
        np.random.default_rng(3).gamma(50, size=DRAWS),
    )
    plain = Predictive(LinearPredictor(coef, intercept), Gaussian(), np.log(variance)[:, None])
    moved = intercept - coef @ offset  # the same predictors of columns far from zero
    raw = Predictive(
        LinearPredictor(scale * coef, scale * moved),
        Gaussian(),
        np.log(scale**2 * variance)[:, None],
    )
    found = getattr(raw, kind)(X + offset, LEVELS) / scale
    np.testing.assert_allclose(found, getattr(plain, kind)(X, LEVELS), rtol=0, atol=2e-5)


# ---- quantiles of draws -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("q", [[0.05, 0.95], [0.5], [0.001, 0.2, 0.3, 0.7, 0.999]])
def test_order_statistics_are_numpys_quantiles(q, dtype):
    values = np.random.default_rng(0).standard_normal((7, DRAWS)).astype(dtype)
    values[3] = np.round(values[3])  # with ties
    expected = np.quantile(values.astype(float), q, axis=1).T
    found = draw_quantiles(values.copy(), np.array(q))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    weights = some_weights(True)
    share = np.broadcast_to(weights, values.shape)
    expected = np.quantile(values.astype(float), q, axis=1, weights=share, method="inverted_cdf").T
    found = draw_quantiles(values.copy(), np.array(q), weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# ---- probabilities ------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("likelihood", [Bernoulli(), Categorical(3)], ids=["binary", "softmax"])
def test_probabilities_of_many_rows_have_six_digits(likelihood, offset, weighted):
    (coef, intercept), X = some_draws(0.3, likelihood.n_predictors), 3.0 * some_rows()
    X[:50] *= 10.0  # tiny probabilities keep their digits too
    moved, weights = intercept - coef.sum(axis=2) * offset, some_weights(weighted)
    predictive = Predictive(LinearPredictor(coef, moved), likelihood, None, weights)
    eta = np.einsum("skd,nd->nks", coef, X) + intercept.T
    share = predictive.share
    p, rest = (each @ share for each in likelihood.probabilities(eta))
    tolerance = 2e-6 + 1e-13 * offset * 1e3
    np.testing.assert_allclose(predictive.probability(X + offset), p, rtol=10 * tolerance)
    logs = predictive.log_probability(X + offset)
    np.testing.assert_allclose(logs[..., 0], np.log(p), rtol=tolerance, atol=10 * tolerance)
    np.testing.assert_allclose(logs[..., 1], np.log(rest), rtol=tolerance, atol=10 * tolerance)
    expected = [
        draw_quantiles(each, LEVELS, weights)
        for each in likelihood.probabilities(eta)[0].swapaxes(0, 1).copy()
    ]
    found = predictive.probability_quantiles(X + offset, LEVELS)
    np.testing.assert_allclose(found, np.stack(expected, 1), rtol=0, atol=10 * tolerance)


# ---- threads ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fits():
    X = some_rows(900)
    y = X @ np.arange(D) + np.random.default_rng(4).standard_normal(len(X))
    return (
        SGLDLinearRegression(random_state=0).fit(X, y),
        SGLDLogisticRegression(random_state=0).fit(X, y > 0),
        X,
    )


def every_prediction(fits):
    linear, logistic, X = fits
    return [
        linear.predict(X, return_std=True)[1],
        linear.predict_interval(X),
        linear.predict_interval(X, kind="mean"),
        logistic.predict_proba(X),
        logistic.predict_proba_interval(X),
        logistic.decision_function(X),
    ]


def test_threads_change_no_bit_and_no_state(fits, monkeypatch):
    serial, state = every_prediction(fits), [vars(model).copy() for model in fits[:2]]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(every_prediction, [fits] * 8):
            for one, other in zip(found, serial, strict=True):
                np.testing.assert_array_equal(one, other)
    monkeypatch.setattr(_linalg, "cpu_count", lambda: 1)
    for one, other in zip(every_prediction(fits), serial, strict=True):
        np.testing.assert_array_equal(one, other)
    for model, before in zip(fits[:2], state, strict=True):
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
# Python 3.12 warns of a fork of a process with threads
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_predicts(fits):
    every_prediction(fits)  # the parent's threads are running
    context = multiprocessing.get_context("fork")
    process = context.Process(target=every_prediction, args=(fits,), daemon=True)
    process.start()
    process.join(60)
    alive = process.is_alive()
    process.kill()
    assert not alive
    assert process.exitcode == 0


# ---- densities and counts -----------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("spread", [0.001, 0.1, 1.0])
def test_log_densities_of_many_rows_are_those_of_the_normal_mixture(spread, weighted):
    (coef, intercept), X, weights = some_draws(spread), some_rows(), some_weights(weighted)
    gamma = np.log(np.random.default_rng(3).chisquare(40, DRAWS) / 40)
    y = X @ np.full(D, 0.5) + np.random.default_rng(4).standard_normal(ROWS)
    y[:20] *= 30.0  # far out
    y[20] = 1e30
    found = Predictive(LinearPredictor(coef, intercept), Gaussian(), gamma[:, None], weights)
    eta = X @ coef[:, 0].T + intercept[:, 0]
    each = -0.5 * (np.log(2 * np.pi) + gamma + (y[:, None] - eta) ** 2 / np.exp(gamma))
    share = np.full(DRAWS, 1 / DRAWS) if weights is None else weights / weights.sum()
    exact = special.logsumexp(each, axis=1, b=share)
    np.testing.assert_allclose(found.log_density(X, y), exact, rtol=1e-12, atol=2e-5)
    # units do not matter, however large or small
    for unit in (1e-30, 1e30):
        scaled = Predictive(
            LinearPredictor(coef * unit, intercept * unit),
            Gaussian(),
            gamma[:, None] + 2 * np.log(unit),
            weights,
        )
        shifted = scaled.log_density(X, y * unit, np.full(ROWS, unit)) + np.log(unit)
        expected = found.log_density(X, y - 1.0)
        np.testing.assert_allclose(shifted, expected, rtol=1e-12, atol=4e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("spread", "freedom"), [(0.001, 5000), (0.1, 300), (0.5, 40), (3.0, 5), (0.1, None)]
)
def test_distribution_functions_of_many_rows_are_those_of_the_normal_mixture(
    spread, freedom, weighted
):
    (coef, intercept), X, weights = some_draws(spread), some_rows(), some_weights(weighted)
    chi2 = np.random.default_rng(3).chisquare(freedom or 1, DRAWS)
    sd = np.sqrt(chi2 / freedom) if freedom else np.ones(DRAWS)
    found = Predictive(
        LinearPredictor(coef, intercept), Gaussian(), 2 * np.log(sd)[:, None], weights
    )
    share = np.full(DRAWS, 1 / DRAWS) if weights is None else weights / weights.sum()
    eta = X @ coef[:, 0].T + intercept[:, 0]
    width = np.sqrt(eta.var(axis=1) + (sd**2).mean())
    away = np.array([-1e8, -40.0, -4.0, -1.0, 0.0, 0.3, 2.0, 6.0, np.inf])
    t = eta.mean(axis=1)[:, None] + width[:, None] * away
    exact = np.column_stack([mixture_cdf(at, eta, sd, share) for at in t.T])
    np.testing.assert_allclose(found.cdf(X, t), exact, rtol=0, atol=3e-6)
    shifted = found.cdf(X, t + 2.0, np.full(ROWS, 2.0))
    np.testing.assert_allclose(shifted, exact, rtol=0, atol=3e-6)
    shifted = found.quantiles(X, LEVELS, np.full(ROWS, 2.0))
    np.testing.assert_allclose(shifted - 2.0, found.quantiles(X, LEVELS), rtol=1e-12, atol=1e-12)


def counts(spread, level, weighted):
    """A mixture of Poisson counts, its rows, an offset, rates under every draw and their shares."""
    (coef, intercept), X, weights = some_draws(spread), some_rows(), some_weights(weighted)
    offset = np.full(ROWS, np.log(level))
    mixture = Predictive(LinearPredictor(coef, intercept), Poisson(), None, weights)
    rate = level * np.exp(X @ coef[:, 0].T + intercept[:, 0])
    share = np.full(DRAWS, 1 / DRAWS) if weights is None else weights / weights.sum()
    return mixture, X, offset, rate, share


@pytest.mark.parametrize(
    ("spread", "level", "weighted"),
    [
        (0.001, 1000.0, False),
        (0.03, 3.0, True),
        (0.03, 1000.0, False),
        (0.5, 0.05, False),
        (0.5, 3.0, False),
        (0.5, 1000.0, True),
    ],
)
def test_counts_of_many_rows_are_those_of_the_mixture_of_all_draws(spread, level, weighted):
    mixture, X, offset, rate, share = counts(spread, level, weighted)
    y = np.random.default_rng(4).poisson(rate[:, 0]).astype(float)
    y[:20] += 5 * np.ceil(np.sqrt(rate[:20, 0]))  # far out
    exact = special.pdtr(y[:, None], rate) @ share
    np.testing.assert_allclose(mixture.cdf(X, y[:, None], offset)[:, 0], exact, atol=3e-6)
    each = special.xlogy(y[:, None], rate) - rate - special.gammaln(y + 1)[:, None]
    log_density = special.logsumexp(each, axis=1, b=share)
    np.testing.assert_allclose(mixture.log_density(X, y, offset), log_density, atol=2e-5)
    found = mixture.quantiles(X, LEVELS, offset)
    for k, q in zip(found.T, LEVELS, strict=True):
        assert np.all(special.pdtr(k[:, None], rate) @ share > q - 3e-6)
        below = np.where(k > 0, special.pdtr(np.maximum(k - 1, 0)[:, None], rate) @ share, 0.0)
        assert np.all(below < q + 3e-6)


def test_rows_whose_functions_are_not_smooth_are_averaged_over_all_draws():
    class Steps(Poisson):
        def cdf(self, u, y):
            return (u[:, 0] < y).astype(float)

    (coef, intercept), X = some_draws(1.0), some_rows()
    mixture = Predictive(LinearPredictor(coef, intercept), Steps())
    eta = X @ coef[:, 0].T + intercept[:, 0]
    t = eta[:, :1] + 0.01
    np.testing.assert_allclose(mixture.cdf(X, t)[:, 0], (eta < t).mean(axis=1), atol=2e-3)
    assert np.all(np.abs(mixture.cdf(X, t)[:, 0] * DRAWS % 1.0 - 0.5) > 0.49)


@pytest.mark.parametrize("n_draws", [1, 2, 600])
def test_draws_that_agree_have_the_probabilities_of_one(n_draws):
    coef, X = np.full((n_draws, 1, D), 0.2), some_rows()
    mixture = Predictive(LinearPredictor(coef, np.zeros((n_draws, 1))), Poisson())
    rate = np.exp(X.sum(axis=1) * 0.2)
    y = np.arange(ROWS) % 4.0
    np.testing.assert_allclose(mixture.cdf(X, y[:, None])[:, 0], special.pdtr(y, rate), atol=3e-6)
    exact = special.xlogy(y, rate) - rate - special.gammaln(y + 1)
    np.testing.assert_allclose(mixture.log_density(X, y), exact, atol=2e-5)
