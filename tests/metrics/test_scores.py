"""Scores against another library, closed forms and integrals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, mean_pinball_loss

from skbayes_sgld.metrics import (
    brier_score,
    calibration_error,
    crps,
    interval_coverage,
    interval_score,
    interval_width,
    log_predictive_density,
    pinball_loss,
    quantile_calibration_error,
)
from skbayes_sgld.metrics.distributions import integrated_crps, summed_crps

scoringrules = pytest.importorskip("scoringrules", reason="the reference, of the extra 'test'")

N, S = 40, 30


@pytest.fixture
def forecast():
    rng = np.random.default_rng(0)
    y, mean, sd = rng.standard_normal((3, N))
    sd = np.exp(0.3 * sd)
    return y, mean[:, None] + sd[:, None] * rng.standard_normal((N, S)), mean, sd


def weights(n):
    return np.random.default_rng(1).uniform(0.0, 2.0, n)


# ---- distributions ------------------------------------------------------------------------------


def test_the_crps_of_draws_is_that_of_scoringrules(forecast):
    y, draws, _, _ = forecast
    expected = scoringrules.crps_ensemble(y, draws)
    assert crps(y, draws) == pytest.approx(expected.mean(), rel=1e-12)
    assert crps(y, draws, sample_weight=weights(N)) == pytest.approx(
        np.average(expected, weights=weights(N)), rel=1e-12
    )
    share = weights(S)
    expected = scoringrules.crps_ensemble(y, draws, ens_w=np.tile(share, (N, 1)))
    assert crps(y, draws, draw_weights=share) == pytest.approx(expected.mean(), rel=1e-12)


def test_the_log_predictive_density_is_that_of_the_mixture(forecast):
    y, means, _, sd = forecast
    each = stats.norm.logpdf(y[:, None], means, sd[:, None])
    scales = np.broadcast_to(sd[:, None], means.shape)
    expected = -scoringrules.logs_mixnorm(y, means, scales).mean()
    assert log_predictive_density(each) == pytest.approx(expected, rel=1e-10)
    share = weights(S)
    shares = np.tile(share / share.sum(), (N, 1))
    expected = -scoringrules.logs_mixnorm(y, means, scales, shares)
    found = log_predictive_density(each, draw_weights=share, sample_weight=weights(N))
    assert found == pytest.approx(np.average(expected, weights=weights(N)), rel=1e-10)


@pytest.mark.parametrize("at", [0.0, -5.9, 8.0, -40.0])
def test_the_integral_of_a_normal_distribution_function_is_its_crps(at):
    mean, sd = np.array([0.0, 2.0, -1e6]), np.array([1.0, 0.1, 1e3])
    y = mean + at * sd
    found = integrated_crps(
        lambda t: stats.norm.cdf(t, mean[:, None], sd[:, None]), y, mean, sd, np.ones_like
    )
    assert_allclose(found / sd, scoringrules.crps_normal(y, mean, sd) / sd, rtol=0, atol=3e-5)


def test_the_integral_in_other_units_is_the_crps_of_the_transformed_distribution():
    y, mean, sd = np.array([0.3, 2.0, 4.0]), np.array([0.0, 1.0, 0.5]), np.array([0.5, 0.7, 0.3])
    found = integrated_crps(
        lambda t: stats.norm.cdf(t, mean[:, None], sd[:, None]), np.log(y), mean, sd, np.exp
    )
    assert_allclose(found, scoringrules.crps_lognormal(y, mean, sd), rtol=1e-4)


@pytest.mark.parametrize(
    ("law", "lowest"),
    [(stats.t(3), -np.inf), (stats.t(2.3), -np.inf), (stats.gamma(0.5), 0.0), (stats.expon(), 0.0)],
)
def test_the_integral_is_right_with_heavy_tails_and_densities_that_are_infinite(law, lowest):
    y = law.ppf([0.001, 0.1, 0.4, 0.6, 0.9, 0.999])
    mean, sd = np.full(len(y), law.mean()), np.full(len(y), law.std())
    found = integrated_crps(law.cdf, y, mean, sd, np.ones_like, lowest)
    low, high = np.maximum(mean - 6.0 * sd, lowest), mean + 6.0 * sd
    for each, at, a, b in zip(found, y, low, high, strict=True):
        at_most = integrate.quad(lambda t: law.cdf(t) ** 2, a, max(min(at, b), a), limit=500)[0]
        above = integrate.quad(lambda t: law.sf(t) ** 2, max(min(at, b), a), b, limit=500)[0]
        beyond = max(at - b, a - at, 0.0)
        assert abs(each - at_most - above - beyond) < 5e-4 * sd[0]


@pytest.mark.parametrize("mu", [0.1, 12.0, 300.0, 1e5])
def test_the_sum_over_whole_numbers_is_the_crps_of_counts(mu):
    y = np.concatenate([stats.poisson.ppf([0.01, 0.3, 0.9, 0.999], mu), [0.0, np.ceil(2 * mu)]])
    mean, sd = np.full(len(y), mu), np.full(len(y), np.sqrt(mu))
    found = summed_crps(lambda t: stats.poisson.cdf(t, mu), y, mean, sd)
    k = np.arange(np.ceil(2 * mu + 60 * mu**0.5))
    below = stats.poisson.cdf(k, mu)
    expected = [np.square(below - (k >= value)).sum() for value in y]
    assert_allclose(found, expected, rtol=1e-9 if mu < 13 else 0, atol=1e-3 * np.sqrt(mu))


@pytest.mark.parametrize(
    ("law", "top"),
    [
        (stats.nbinom(0.05, 0.05 / 40.05), np.inf),
        (stats.nbinom(0.5, 0.5 / 1000.5), np.inf),
        (stats.betabinom(12, 0.2, 0.3), 12.0),
        (stats.betabinom(1000, 0.2, 0.3), 1000.0),
    ],
)
def test_counts_that_pile_up_at_an_end_have_their_crps(law, top):
    last = int(min(top, 40_000))
    y = np.array([0.0, 1.0, 5.0, last // 3, last])
    y = np.minimum(y, np.floor(law.mean() + 5.0 * law.std()))
    mean, sd = (np.full(len(y), float(each)) for each in (law.mean(), law.std()))
    found = summed_crps(law.cdf, y, mean, sd, top)
    k = np.arange(last)
    expected = [np.square(law.cdf(k) - (k >= value)).sum() for value in y]
    assert_allclose(found, expected, rtol=0, atol=1e-4 * sd[0])


def test_summed_crps_ends_where_neighbouring_floats_are_further_apart_than_sds():
    """Panels of one number would not move the sum on from 1e17."""
    mean, sd = np.array([1e17]), np.array([1.0])
    found = summed_crps(lambda t: stats.norm.cdf(t, mean, sd), mean, mean, sd)
    assert 0.0 <= found[0] <= np.spacing(1e17)


# ---- intervals and quantiles --------------------------------------------------------------------


@pytest.fixture
def intervals(forecast):
    y, _, mean, sd = forecast
    z = stats.norm.ppf([[0.25, 0.05], [0.75, 0.95]])
    return y, mean[:, None, None] + sd[:, None, None] * z


def test_the_interval_score_is_that_of_scoringrules(intervals):
    y, ends = intervals
    found = interval_score(y, ends, coverage=[0.5, 0.9], sample_weight=weights(N))
    for k, alpha in enumerate([0.5, 0.1]):
        each = scoringrules.interval_score(y, ends[:, 0, k], ends[:, 1, k], alpha)
        assert found[k] == pytest.approx(np.average(each, weights=weights(N)))
        one = interval_score(y, ends[..., k], coverage=1 - alpha)
        assert one == pytest.approx(each.mean())


def test_coverage_and_width_are_those_of_the_definition(intervals):
    y, ends = intervals
    inside = (ends[:, 0] <= y[:, None]) & (y[:, None] <= ends[:, 1])
    found = interval_coverage(y, ends, sample_weight=weights(N))
    assert_allclose(found, np.average(inside, axis=0, weights=weights(N)))
    assert interval_coverage(y, ends[..., 0]) == pytest.approx(inside[:, 0].mean())
    width = (ends[:, 1] - ends[:, 0]).mean(axis=0)
    assert_allclose(interval_width(ends), width)
    assert interval_width(ends[..., 0]) == pytest.approx(width[0])
    assert interval_coverage([1.0, 2.0], [[1.0, 2.0], [1.0, 2.0]]) == 1.0


def test_the_pinball_loss_is_that_of_scoringrules_and_of_scikit_learn(forecast):
    y, draws, _, _ = forecast
    q = np.array([0.1, 0.5, 0.8])
    quantiles = np.quantile(draws, q, axis=1).T
    expected = scoringrules.quantile_score(y[:, None], quantiles, q)
    assert pinball_loss(y, quantiles, q) == pytest.approx(expected.mean())
    w = weights(N)
    each = [mean_pinball_loss(y, quantiles[:, k], alpha=q[k], sample_weight=w) for k in range(3)]
    assert pinball_loss(y, quantiles, q, sample_weight=w) == pytest.approx(np.mean(each))


def test_the_calibration_error_of_quantiles_counts_what_is_below_them():
    y = np.array([1.0, 2.0, 3.0, 4.0])
    quantiles = np.tile([1.5, 3.5], (4, 1))  # a quarter and three quarters are below
    found = quantile_calibration_error(y, quantiles, [0.2, 0.9])
    assert found == pytest.approx((0.05 + 0.15) / 2)
    assert quantile_calibration_error(y, quantiles, [0.2, 0.9], norm="max") == pytest.approx(0.15)
    first = quantile_calibration_error(y, quantiles, [0.2, 0.9], sample_weight=[1, 0, 0, 0])
    assert first == pytest.approx((0.8 + 0.1) / 2)


# ---- probabilities ------------------------------------------------------------------------------


@pytest.fixture
def labelled():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1.0, 2.0, 0.5], 300)
    y = np.array(["a", "b", "c"])[(proba.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)]
    return y, proba


def test_the_brier_score_is_that_of_scoringrules_and_of_scikit_learn(labelled):
    y, proba = labelled
    event, p = y == "b", proba[:, 1]
    expected = scoringrules.brier_score(event.astype(float), p)
    assert brier_score(event, p) == pytest.approx(expected.mean())
    assert brier_score(event, np.column_stack([1 - p, p])) == pytest.approx(expected.mean())
    w = weights(300)
    assert brier_score(event, p, sample_weight=w) == pytest.approx(
        brier_score_loss(event, p, sample_weight=w)
    )
    squares = sum(np.square((y == c) - proba[:, k]) for k, c in enumerate("abc"))
    assert brier_score(y, proba) == pytest.approx(squares.mean())
    some = y != "a"
    found = brier_score(y[some], proba[some], labels=["a", "b", "c"])
    assert found == pytest.approx(squares[some].mean())


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_calibration_error_is_that_of_scikit_learns_bins(strategy, labelled):
    y, proba = labelled
    event, p = (y == "b").astype(float), proba[:, 1]
    observed, predicted = calibration_curve(event, p, n_bins=8, strategy=strategy)
    levels = np.linspace(0, 1, 9)
    edges = levels if strategy == "uniform" else np.quantile(p, levels)
    counts = np.histogram(p, edges)[0]
    found = calibration_error(event, p, n_bins=8, strategy=strategy)
    gaps = np.abs(observed - predicted)
    assert found == pytest.approx(np.average(gaps, weights=counts[counts > 0]))
    largest = calibration_error(event, p, n_bins=8, strategy=strategy, norm="max")
    assert largest == pytest.approx(gaps.max())
    # of several classes the likeliest is judged
    right = np.array(["a", "b", "c"])[proba.argmax(axis=1)] == y
    assert calibration_error(y, proba) == pytest.approx(calibration_error(right, proba.max(axis=1)))


def test_a_row_of_weight_two_counts_twice(labelled):
    y, proba = labelled
    w = np.arange(300) % 3
    for score in (brier_score, calibration_error):
        expected = score(np.repeat(y, w), np.repeat(proba, w, axis=0))
        assert score(y, proba, sample_weight=w) == pytest.approx(expected)


# ---- errors -------------------------------------------------------------------------------------
