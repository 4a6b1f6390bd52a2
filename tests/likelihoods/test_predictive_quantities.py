"""Quantities of likelihoods that few fits need: far tails, large counts, worth of a row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit

from skbayes_sgld.likelihoods import (
    BetaBinomial,
    Categorical,
    Gamma,
    NegativeBinomial,
    Ordinal,
    StudentTNoise,
    as_totals,
)
from skbayes_sgld.likelihoods.mixture import Mixture


@pytest.mark.parametrize("count", [0, 57, 99, 100, 101, 350, 4_000])
@pytest.mark.parametrize("mean, dispersion", [(3.0, 2.0), (120.0, 0.4), (900.0, 0.01)])
def test_the_cdf_of_a_count_is_that_of_the_negative_binomial(count, mean, dispersion):
    u = np.log([[[mean], [dispersion]]])
    r = 1.0 / dispersion
    expected = stats.nbinom.cdf(count, r, r / (r + mean))
    assert_allclose(
        NegativeBinomial().cdf(u, np.full((1, 1), float(count)))[0, 0],
        expected,
        rtol=1e-9,
        atol=1e-14,
    )


@pytest.mark.parametrize("k", [0, 100, 149, 150, 151, 500, 700, 1_500, 1_999])
@pytest.mark.parametrize("p, rho", [(0.3, 0.01), (0.45, 0.2), (0.6, 1e-4), (0.3, 7e-4)])
def test_the_cdf_of_a_total_is_that_of_the_beta_binomial(k, p, rho):
    trials = 2_000
    size = 1.0 / rho - 1.0
    t = np.log(rho / (1.0 - rho))
    u = np.array([[[np.log(p / (1.0 - p))], [t], [float(trials)]]])
    expected = np.exp(
        stats.betabinom.logpmf(np.arange(k + 1), trials, size * p, size * (1.0 - p))
    ).sum()
    found = BetaBinomial().cdf(u, np.full((1, 1), float(k)))[0, 0]
    assert found == pytest.approx(expected, rel=1e-5, abs=5e-8)


@pytest.mark.parametrize("q", [0.05, 0.95])
def test_quantiles_of_large_totals_over_many_draws_take_few_of_their_distribution_functions(q):
    """They are searched from those of a sixteenth of the draws."""
    rng, trials, evaluated = np.random.default_rng(0), 40_000.0, 0

    class Counted(BetaBinomial):
        def cdf(self, u, y):
            nonlocal evaluated
            evaluated += u.shape[0] * u.shape[2]
            return super().cdf(u, y)

    draws = rng.normal([-1.0, -4.0], [1.0, 0.3], (4_000, 2)).T
    u, likelihood = np.vstack([draws, np.full(4_000, trials)])[None], Counted()
    mixture = Mixture(u, np.full(4_000, 1.0 / 4_000))
    (found,) = likelihood.averaged_quantile(mixture, q)
    assert evaluated < 6 * 4_000
    at = np.array([found - 1.0, found])
    below, most = BetaBinomial().cdf(np.repeat(u, 2, axis=0), at[:, None]).mean(axis=1)
    assert below < q <= most


def test_the_worth_of_a_total_is_that_of_its_mean_and_variance():
    """Information about the log odds of n trials with the variance n p q (1 + (n - 1) rho)."""
    rng = np.random.default_rng(0)
    trials = rng.integers(5, 200, 400).astype(float)
    y = as_totals(rng.binomial(trials.astype(int), rng.beta(2.0, 3.0, 400)).astype(float), trials)
    likelihood = BetaBinomial()
    p, rho = expit(likelihood.start(y, None, True))
    slope = trials * p * (1.0 - p)  # of the mean in the log odds
    information = slope**2 / (trials * p * (1.0 - p) * (1.0 + (trials - 1.0) * rho))
    assert rho > 0.05
    assert likelihood.pseudo_variance(y, None) == pytest.approx(1.0 / information.mean())


def test_a_weight_counts_rows_in_the_worth_of_a_total():
    rng = np.random.default_rng(1)
    trials = rng.integers(2, 200, 300).astype(float)
    y = as_totals(rng.binomial(trials.astype(int), rng.beta(2.0, 3.0, 300)).astype(float), trials)
    times = np.where(trials < 50.0, 5, 1)
    weighted = BetaBinomial().pseudo_variance(y, times.astype(float))
    assert weighted == pytest.approx(
        BetaBinomial().pseudo_variance(np.repeat(y, times, axis=0), None)
    )
    assert weighted != pytest.approx(BetaBinomial().pseudo_variance(y, None), rel=0.05)


def test_the_worth_of_an_observation_with_heavy_tails_is_its_information():
    y = stats.t.rvs(3.0, size=4000, random_state=0) * 2.0
    likelihood = StudentTNoise()
    *_, log_variance, t = likelihood.start(y, None, True)
    nu, scale = float(likelihood._degrees(np.array([[0.0, 0.0, t]]))[0]), np.exp(0.5 * log_variance)
    z = np.linspace(-400.0, 400.0, 400_001)
    score = (nu + 1.0) * z / (nu + z**2) / scale
    information = np.trapezoid(score**2 * stats.t.pdf(z, nu), z)
    assert likelihood.pseudo_variance(y, None) == pytest.approx(1.0 / information, rel=1e-3)


@pytest.mark.parametrize("degrees", [1.5, 2.0, 2.2, 2.5, 4.0])
def test_the_variance_of_heavy_tails_is_infinite_up_to_two_degrees_alone(degrees):
    likelihood = StudentTNoise()
    t = np.log(degrees)
    u = np.array([[[0.0], [np.log(9.0)], [t]]])
    found = float(likelihood.variance(u)[0, 0])
    assert found == pytest.approx(9.0 * stats.t.var(degrees)) if degrees > 2 else found == np.inf


def test_draws_of_a_huge_dispersion_are_above_zero():
    """Gamma variables of a shape of 1/500 underflow; observations are above 0."""
    u = np.repeat(np.array([[[0.0], [np.log(500.0)]]]), 2000, axis=2)
    y = Gamma().sample(u, np.random.RandomState(0))
    assert (y > 0.0).all()
    # an observation is below 1e-250 as often as the distribution says
    expected = stats.gamma.cdf(1e-250 / 500.0, 1.0 / 500.0)
    assert abs(np.mean(y < 1e-250) - expected) < 4.0 * np.sqrt(expected * (1 - expected) / 2000)


@pytest.mark.parametrize("q", [0.01, 0.5, 0.8])
def test_the_search_for_a_quantile_of_student_begins_at_that_of_scipy(q):
    center, sd, nu = 1.5, 3.0, 4.0
    u = np.array([[[center], [2.0 * np.log(sd)], [np.log(nu)]]])
    start, unit = StudentTNoise().quantile_start(u, q)
    noise = stats.t(nu, center, sd)
    assert_allclose(start, noise.ppf(q), rtol=1e-10)
    near = start + 1e-4 * sd * np.array([-1.0, 1.0])
    slope = np.diff(stats.norm.ppf(noise.cdf(near))) / np.diff(near)
    assert_allclose(unit, 1.0 / slope, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("largest", [60.0, 800.0])  # odds overflow beyond 700
@pytest.mark.parametrize("n_classes", [2, 5])
def test_ordered_probabilities_are_differences_of_logistic_functions(
    dtype, shared, largest, n_classes
):
    rng = np.random.default_rng(0)
    u = np.empty((200, n_classes - 1, 20), dtype)
    u[:, 0] = np.linspace(-largest, largest, 200)[:, None]
    u[:, 1:] = rng.normal(0.0, 1.0, (1 if shared else len(u), n_classes - 2, 20))
    cuts = np.cumsum(np.exp(u[:, 1:].astype(float)), axis=1)
    at = u[:, :1] - np.concatenate([np.zeros((200, 1, 20)), cuts], axis=1)
    exact = np.diff(expit(-at), axis=1, prepend=0.0, append=1.0)
    found = Ordinal(n_classes).mean(u)
    assert found.dtype == dtype
    assert_allclose(found, exact, rtol=0, atol=50 * np.finfo(dtype).eps)
    # tiny ones are as exact
    assert_allclose(found, Ordinal(n_classes).probabilities(u)[0], rtol=200 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype, error", [(np.float32, 1e-5), (np.float64, 1e-10)])
@pytest.mark.parametrize("spread", [1.0, 30.0, 200.0])
@pytest.mark.parametrize("likelihood", [Ordinal(2), Ordinal(3), Ordinal(7), Categorical(4)])
def test_log_probabilities_of_codes_are_those_of_all_classes(likelihood, spread, dtype, error):
    rng = np.random.default_rng(0)
    C, B, K = 40, 50, likelihood.n_classes
    own = 2.0 * rng.standard_normal((B, len(likelihood.own)))
    eta = spread * rng.standard_normal((C, likelihood.n_predictors, 1))
    eta = eta + rng.standard_normal((C, likelihood.n_predictors, B))
    codes = rng.integers(0, K, C)
    u = np.concatenate([eta, np.broadcast_to(own.T, (C, *own.T.shape))], axis=1)
    expected = likelihood.log_probabilities(u)[0][np.arange(C), codes]
    if likelihood.shift_invariant:
        eta = eta[:, :-1] - eta[:, -1:]
    found = likelihood.log_probability_draws(eta.astype(dtype), own, codes.astype(float))
    assert_allclose(found, expected, rtol=error, atol=error)
