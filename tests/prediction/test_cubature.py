"""Probabilities of classes from a few nodes of each row."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.special import expit, softmax

from skbayes_sgld.likelihoods import Categorical, Ordinal
from skbayes_sgld.prediction.cubature import Cubature, are_unlike_others, rule
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
@pytest.mark.parametrize("odd", [1, 30])
def test_rows_that_are_unlike_all_others_have_all_draws(likelihood, odd):
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
    np.testing.assert_allclose(found[:odd], exact[:odd], rtol=1e-5)
    np.testing.assert_allclose(found, exact, rtol=2e-3)


def test_ordinary_rows_are_not_unlike_others():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 12))
    X[:, 3:9] = np.eye(6)[rng.integers(0, 6, 1000)]
    X[:, 9] = X[:, 10]
    X[:, 11] = np.arange(1000) < 5
    np.testing.assert_array_equal(are_unlike_others(X), X[:, 11] > 0)
