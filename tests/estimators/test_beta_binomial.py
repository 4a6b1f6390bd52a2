"""Beta-binomial regression, beyond the tests of all families."""

import numpy as np
import pytest
from scipy import special, stats

from skbayes_sgld import SGLDBetaBinomialRegressor
from skbayes_sgld.likelihoods import BetaBinomial, as_totals
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Exponential, Normal
from tests.estimators.families import scattered_totals as scattered
from tests.numeric import derivative


@pytest.fixture(scope="module")
def fitted():
    X, y, trials = scattered(200)
    return SGLDBetaBinomialRegressor(random_state=0).fit(X, y, n_trials=trials)


# ---- the likelihood ------------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [2, 10**5])
def test_derivatives_are_those_of_the_density(trials):
    rng, likelihood = np.random.default_rng(trials), BetaBinomial()
    u = np.stack([rng.uniform(-6.0, 6.0, (1, 60)), rng.uniform(-9.0, 4.0, (1, 60))], axis=1)
    y = np.round(trials * rng.beta(0.6, 0.6, 60))
    y[:6], y[6:12] = 0.0, trials
    totals, scale = as_totals(y, trials), 1.0 + trials
    for k in range(2):
        way = np.zeros((1, 2, 1))
        way[:, k] = 1.0
        slope = derivative(
            lambda x, way=way: likelihood.log_density(u + x[0] * way, totals)[0], [0.0]
        )
        found = likelihood.score(u, totals)[0, k]
        np.testing.assert_allclose(found / scale, slope.ravel() / scale, atol=1e-8)
        bend = derivative(lambda x, way=way: likelihood.score(u + x[0] * way, totals)[0], [0.0])
        found = likelihood.curvature(u, totals)[0, :, k]
        np.testing.assert_allclose(found / scale, -bend.reshape(found.shape) / scale, atol=1e-8)


def test_far_out_nothing_overflows():
    likelihood, y = BetaBinomial(), as_totals(np.array([0.0, 3.0, 9.0]), 9.0)
    for eta in (-2000.0, 2000.0):
        for log_odds in (-500.0, 0.0, 500.0):
            u = np.broadcast_to(np.array([eta, log_odds])[None, :, None], (1, 2, 3))
            assert np.isfinite(likelihood.log_density(u, y)).all()
            assert np.isfinite(likelihood.score(u, y)).all()
            assert np.isfinite(likelihood.curvature(u, y)).all()


def test_the_start_is_near_the_truth():
    X, y, trials = scattered(4000, correlation=0.3)
    level, log_odds = BetaBinomial().start(as_totals(y, trials), None, True)
    assert special.expit(level) == pytest.approx(y.sum() / trials.sum())
    # what the columns explain is in it too
    assert 0.25 < special.expit(log_odds) < 0.6


# ---- predictions ---------------------------------------------------------------------------------


def test_the_score_is_the_binomial_deviance_explained(fitted):
    X, y, trials = scattered(300, seed=5)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 300)

    def left(p):
        log_density = stats.binom.logpmf(y, trials, p) - stats.binom.logpmf(y, trials, y / trials)
        return -2.0 * weight @ log_density

    alone = np.full(300, weight @ y / (weight @ trials))
    known = 1.0 - left(fitted.predict(X)) / left(alone)
    assert fitted.score(X, y, weight, n_trials=trials) == pytest.approx(known, rel=1e-9)
    with pytest.raises(ValueError, match=r"n_trials is None.*score\(..., n_trials="):
        fitted.score(X, y)


def test_the_prior_is_drawn_from():
    model = SGLDBetaBinomialRegressor(
        prior=Normal(0.001), intercept_prior=Normal(0.001), correlation_prior=Exponential(0.5)
    )
    X = np.zeros((1, 1))
    y = model.sample_prior(X + np.arange(2)[:, None], 20_000, n_trials=2)[0]
    # two trials of probability 1 / 2 agree with probability (1 + rho) / 2
    square = np.square(np.random.default_rng(0).exponential(0.5, 100_000))
    agree = np.mean(y != 1)
    assert agree == pytest.approx(0.5 + 0.5 * np.mean(square / (1.0 + square)), abs=0.015)


def test_known_correlation_keeps_the_rows():
    X, y, trials = scattered(30)
    posterior = GLMPosterior(X, as_totals(y, trials), BetaBinomial(), Normal(1.0))
    given = posterior.given_own(np.array([-1.5]))
    theta = np.random.default_rng(0).standard_normal((3, given.n_params))
    whole = np.column_stack([theta, np.full(3, -1.5)])
    found, known = given.grad_log_likelihood(theta), posterior.grad_log_likelihood(whole)
    np.testing.assert_allclose(found, known[:, :-1], rtol=1e-10)
    assert given.likelihood.totals
