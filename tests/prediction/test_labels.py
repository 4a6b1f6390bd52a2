"""The most probable class of a row, which moments of the predictors nearly always decide."""

import numpy as np
import pytest
from scipy.special import softmax

from skbayes_sgld.likelihoods import Bernoulli, Categorical, Ordinal
from skbayes_sgld.likelihoods.categorical import STEEPEST_DIFFERENCE
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.predictors import LinearPredictor

LIKELIHOODS = {"two": Bernoulli(), "three": Categorical(3), "ordered": Ordinal(4)}


def some_predictive(likelihood, spread):
    """Skewed draws with heavy tails, some far from the others."""
    rng = np.random.default_rng(0)
    shape = 400, likelihood.n_predictors, 3
    coef = spread * (rng.standard_exponential(shape) - 1.0) * rng.standard_t(3, (400, 1, 1))
    intercept = spread * (rng.gamma(0.3, 1.0, shape[:2]) - 0.3) + 1.0
    own = None
    if likelihood.own:
        own = spread * rng.standard_normal((400, len(likelihood.own)))
    center = 0.5 + np.arange(likelihood.n_predictors)[:, None]
    return PredictiveDistribution(LinearPredictor(coef + center, intercept), likelihood, own)


@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_labels_have_the_largest_mean_probability(name, spread):
    likelihood, X = LIKELIHOODS[name], np.random.default_rng(1).standard_normal((2000, 3))
    X[:20] *= 100.0
    predictive = some_predictive(likelihood, spread)
    labels = predictive.labels(X)
    p = likelihood.probabilities(predictive.local(X))[0] @ predictive.share
    chosen = np.take_along_axis(p, labels[:, None], axis=1)[:, 0]
    assert np.all(chosen >= p.max(axis=1) * (1.0 - 1e-6))
    np.testing.assert_array_equal(labels[:50], predictive.labels(X[:50]))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_moments_decide_most_rows_and_leave_the_others_open(name):
    likelihood, X = LIKELIHOODS[name], np.random.default_rng(1).standard_normal((2000, 3))
    for spread, least, most in ((0.1, 0.8, 0.9999), (3.0, 0.0, 0.7)):
        predictive = some_predictive(likelihood, spread)
        own = np.empty((400, 0)) if predictive.own is None else predictive.own
        predictor = predictive.predictor
        eta = (predictor.centered() if likelihood.shift_invariant else predictor)(X)
        decided = likelihood.decided(eta.mean(axis=2), eta.var(axis=2), own, predictive.share)
        assert least <= np.mean(decided >= 0) <= most


def test_classes_are_decided_where_a_prior_alone_determines_a_level():
    """A number added to all predictors changes no probability, and has a wide distribution."""
    rng = np.random.default_rng(2)
    coef = rng.standard_normal((400, 3, 2)) * 0.01 + rng.standard_normal((3, 2))
    coef += 50.0 * rng.standard_normal((400, 1, 2))
    likelihood, X = Categorical(3), rng.standard_normal((500, 2))
    predictor = LinearPredictor(coef, np.zeros((400, 3)))
    predictive = PredictiveDistribution(predictor, likelihood)
    p = likelihood.probabilities(predictive.local(X))[0].mean(axis=2)
    np.testing.assert_array_equal(predictive.labels(X), p.argmax(axis=1))
    spread = predictor.centered().spread(predictive.share, np.empty((500, 1)))
    coordinates = spread.coordinates(X)
    moments = coordinates[..., -1], spread.variance(coordinates)
    decided = likelihood.decided(*moments, np.empty((400, 0)), predictive.share)
    assert np.mean(decided >= 0) > 0.95


@pytest.mark.parametrize("n_classes", [2, 3, 5, 9])
def test_no_difference_of_probabilities_bends_more_than_that_of_two_classes(n_classes):
    rng = np.random.default_rng(0)
    at = rng.standard_normal((20000, n_classes)) * rng.choice([0.3, 1.0, 3.0], (20000, 1))
    p, unit = softmax(at, axis=1), np.eye(n_classes)
    spread = np.einsum("ij,jk->ijk", p, unit) - np.einsum("ij,ik->ijk", p, p)

    def bend(a):
        away = unit[a] - p
        return p[:, a, None, None] * (np.einsum("ij,ik->ijk", away, away) - spread)

    largest = np.abs(np.linalg.eigvalsh(bend(0) - bend(1))).max()
    assert 0.9 * STEEPEST_DIFFERENCE < largest < (1.0 + 1e-9) * STEEPEST_DIFFERENCE
