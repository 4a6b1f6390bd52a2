"""Offsets and numbers of trials of rows, in predictive distributions."""

import numpy as np
import pytest

from skbayes_sgld.likelihoods import Binomial, NormalNoise, Poisson
from skbayes_sgld.likelihoods.row_values import NO_VALUES, RowValues
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.predictors import LinearPredictor

RNG = np.random.default_rng(0)
COEF, LEVEL = 0.3 * RNG.standard_normal((50, 1, 2)), 0.2 * RNG.standard_normal((50, 1))
X = RNG.standard_normal((6, 2))
OFFSET, TRIALS = np.log(np.arange(1.0, 7.0)), np.arange(6.0)
ETA = COEF[:, 0] @ X.T + LEVEL


@pytest.mark.parametrize("n", [1, 50])
def test_trials_multiply_the_mean_of_one_and_offsets_are_added(n):
    rows = np.tile(np.arange(6), n)
    counts = PredictiveDistribution(LinearPredictor(COEF, LEVEL), Poisson())
    totals = PredictiveDistribution(LinearPredictor(COEF, LEVEL), Binomial())
    near = {"rtol": 1e-5}
    rate, share = np.exp(ETA).mean(axis=0), (1.0 / (1.0 + np.exp(-ETA))).mean(axis=0)
    offset, trials = RowValues(offset=OFFSET)[rows], RowValues(others={"trials": TRIALS})[rows]
    np.testing.assert_allclose(counts.mean(X[rows], offset), (np.exp(OFFSET) * rate)[rows], **near)
    np.testing.assert_allclose(totals.mean(X[rows], trials), (TRIALS * share)[rows], **near)
    np.testing.assert_allclose(totals.mean(X[rows]), share[rows], **near)
    assert (totals.quantiles(X[rows], np.array([1.0 - 1e-9]), trials)[:, 0] <= TRIALS[rows]).all()
    np.testing.assert_allclose(totals.cdf(X[rows], TRIALS[rows, None], trials), 1.0, rtol=1e-12)


def test_the_noise_of_averages_falls_with_their_size():
    own = np.full((50, 1), np.log(4.0))
    law = PredictiveDistribution(LinearPredictor(COEF, LEVEL), NormalNoise(), own)
    mean, variance = law.moments(X, RowValues(n_averaged=2.0 ** np.arange(6))).T
    np.testing.assert_allclose(mean, ETA.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(variance - ETA.var(axis=0), 4.0 / 2.0 ** np.arange(6), rtol=1e-5)
    np.testing.assert_allclose(law.moments(X, NO_VALUES)[:, 1] - ETA.var(axis=0), 4.0, rtol=1e-5)
