"""Probabilities of classes from a few nodes of each row."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.special import expit, softmax

from skbayes_sgld.likelihoods import Categorical, Ordinal
from skbayes_sgld.prediction.cubature import Cubature, rule
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.predictors import LinearPredictor

MOMENTS = {0: 1.0, 2: 1.0, 4: 3.0}  # of a standard normal variable; those of odd order are 0


@pytest.mark.parametrize("m", [1, 2, 3, 7])
def test_the_rule_is_exact_for_polynomials_of_degree_five(m):
    nodes, weights = rule(m)
    assert len(nodes) == 2 * m * m + 1
    for order in range(6):
        for which in combinations_with_replacement(range(m), order):
            powers = np.bincount(which, minlength=m) if which else np.zeros(m, int)
            exact = np.prod([MOMENTS.get(int(k), 0.0) for k in powers])
            np.testing.assert_allclose(
                weights @ np.prod(nodes**powers, axis=1), exact, rtol=0, atol=1e-12
            )


def test_nodes_have_the_moments_of_the_draws():
    rng = np.random.default_rng(0)
    coef, share = rng.standard_normal((1000, 2, 3)), rng.dirichlet(np.ones(1000))
    coef[:, 1] += 0.5 * coef[:, 0]
    level = rng.standard_normal((1000, 2))
    own = level @ rng.standard_normal((2, 2)) + rng.standard_normal((1000, 2))
    predictor, X = LinearPredictor(coef, level), rng.standard_normal((300, 3))
    spread = predictor.spread(share, X)
    cubature = Cubature(spread.directions, own, share)
    at = cubature(spread.coordinates(X)).astype(float)
    both = np.concatenate([at, np.broadcast_to(cubature.own.T, (300, *cubature.own.T.shape))], 1)
    exact = np.concatenate(
        [predictor(X).swapaxes(0, 1), np.broadcast_to(own.T, (300, *own.T.shape))], 1
    )
    mean = exact @ share

    def covariance(values, weight):
        away = values - mean[..., None]
        return np.einsum("nis,njs,s->nij", away, away, weight)

    np.testing.assert_allclose(both @ cubature.weights, mean, atol=1e-5)
    found, expected = covariance(both, cubature.weights), covariance(exact, share)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-4)


def predictive_of(likelihood, sd, rng):
    """Distribution, rows of which some are far out, and the predictors under every draw."""
    S, d, K = 2000, 4, likelihood.n_predictors
    coef = rng.standard_normal((K, d)) + sd * rng.standard_normal((S, K, d))
    level = rng.standard_normal(K) - 2.0 * np.arange(K) + sd * rng.standard_normal((S, K))
    own = None
    if isinstance(likelihood, Ordinal):
        own = np.array([0.3, -4.0]) + 0.3 * sd * rng.standard_normal((S, 2))
    X = rng.standard_normal((800, d))
    X[:20] *= np.array([3.0, 10.0, 30.0, 1e3, 1e12])[np.arange(20) % 5, None]
    return PredictiveDistribution(LinearPredictor(coef, level), likelihood, own), X


def exact_probabilities(predictive, X):
    eta = predictive.predictors(X)
    if predictive.own is None:
        return softmax(eta, axis=0).mean(axis=2).T
    cuts = np.cumsum(np.column_stack([np.zeros(len(predictive.own)), np.exp(predictive.own)]), 1)
    above = [expit(eta[0] - cut) for cut in cuts.T]
    levels = [np.ones_like(eta[0]), *above, np.zeros_like(eta[0])]
    return np.column_stack([(a - b).mean(axis=1) for a, b in zip(levels, levels[1:], strict=False)])


@pytest.mark.parametrize("sd", [0.02, 0.2, 1.0])
@pytest.mark.parametrize("likelihood", [Categorical(3), Categorical(6), Ordinal(4)])
def test_probabilities_are_those_of_all_draws(likelihood, sd, monkeypatch):
    """Rows far out, rare classes, and wide posteriors, which need all draws."""
    predictive, X = predictive_of(likelihood, sd, np.random.default_rng(1))
    summed, of_draws = [], type(likelihood).mean_probabilities

    def noted(self, eta, own, share):
        summed.append(len(eta) * (eta.shape[2] == 2000))
        return of_draws(self, eta, own, share)

    monkeypatch.setattr(type(likelihood), "mean_probabilities", noted)
    found, exact = predictive.probability(X), exact_probabilities(predictive, X)
    np.testing.assert_allclose(found, exact, rtol=1.5e-3, atol=1e-6)
    assert sum(summed) < 200 or sd > 0.1  # of 800 rows


@pytest.mark.parametrize("likelihood", [Categorical(4), Ordinal(4)])
@pytest.mark.parametrize("odd", [1, 30, 150])
def test_rows_that_are_unlike_all_others_are_right(likelihood, odd):
    """A few rows have a category whose coefficient is skewed, beside ordinary rows."""
    rng = np.random.default_rng(3)
    S, n, d, K = 2000, 2000, 5, likelihood.n_predictors
    coef = rng.standard_normal((K, d)) + 0.1 * rng.standard_normal((S, K, d))
    coef[..., -1] = 0.2 * (1.0 - rng.exponential(1.0, (S, K)))
    level = 0.1 * rng.standard_normal((S, K))
    own = np.zeros((S, 2)) + 0.03 * rng.standard_normal((S, 2)) if K == 1 else None
    X = rng.standard_normal((n, d))
    X[:, -1] = 0.0
    X[:odd] *= 0.1
    X[:odd, -1] = 1.0
    predictive = PredictiveDistribution(LinearPredictor(coef, level), likelihood, own)
    found, exact = predictive.probability(X), exact_probabilities(predictive, X)
    np.testing.assert_allclose(found, exact, rtol=2e-3)


def skewed(rng, shape):
    return rng.exponential(1.0, shape) - 1.0


def with_rare_mode(rng, shape):
    return np.where(rng.random(shape) < 0.1, -3.0, 0.3) + 0.1 * rng.standard_normal(shape)


def with_spike(rng, shape):
    return np.where(rng.random((shape[0], 1)) < 0.05, 4.0, 0.3) * rng.standard_normal(shape)


@pytest.mark.parametrize("of_category", [skewed, with_rare_mode, with_spike])
@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("share", [0.04, 0.1])
def test_rows_of_a_category_whose_draws_are_not_normal_are_right(of_category, n_classes, share):
    """Errors are up to 1.6e-2 if rows are judged by others alone."""
    rng = np.random.default_rng(0)
    S, n, d, K = 4000, 2000, 6, n_classes
    coef = 0.7 * rng.standard_normal((K, d)) + 0.05 * rng.standard_normal((S, K, d))
    coef[..., -1] = 1.0 + 0.3 * of_category(rng, (S, K))
    level = rng.standard_normal(K) - 1.5 * np.arange(K) + 0.05 * rng.standard_normal((S, K))
    X = rng.standard_normal((n, d))
    X[:, -1] = rng.random(n) < share
    predictive = PredictiveDistribution(LinearPredictor(coef, level), Categorical(K))
    some = np.argsort(-X[:, -1])[:300]
    found, exact = predictive.probability(X)[some], exact_probabilities(predictive, X[some])
    np.testing.assert_allclose(found, exact, rtol=2e-3)


def test_moved_draws_have_the_moments_of_all_draws():
    rng = np.random.default_rng(0)
    coef, share = rng.standard_normal((2000, 2, 3)), rng.dirichlet(np.ones(2000))
    coef[:, 1] += 0.5 * coef[:, 0] ** 2
    own = coef[:, 0, :2] + 1.0 + rng.standard_normal((2000, 2))
    spread = LinearPredictor(coef, np.zeros((2000, 2))).spread(share, np.ones((300, 3)))
    directions, moved, weight = Cubature(spread.directions, own, share).moved_draws(100)
    every = np.concatenate([spread.directions.reshape(-1, 2000), (own - share @ own).T])
    some = np.concatenate([directions.reshape(-1, 100), (moved - share @ own).T])
    np.testing.assert_allclose(weight.sum(), 1.0)
    np.testing.assert_allclose(some @ weight, 0.0, atol=1e-10)
    expected = (every * share) @ every.T
    np.testing.assert_allclose((some * weight) @ some.T, expected, atol=1e-6)


def test_draws_that_are_too_few_are_not_moved():
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((2, 40, 400))
    cubature = Cubature(directions, np.empty((400, 0)), np.full(400, 1.0 / 400))
    assert cubature.moved_draws(100) is None
