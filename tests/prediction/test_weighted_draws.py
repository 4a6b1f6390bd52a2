"""Predictions under the unequal weights that draws of a decaying schedule have."""

import numpy as np
import pytest
from scipy import special, stats
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.prediction.predictors import LinearPredictor


# decaying steps leave the chains apart, and predict says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_decaying_schedule_weights_every_prediction():
    from skbayes_sgld.datasets import make_correlated_pair

    X, y = make_correlated_pair(200, random_state=0)
    model = SGLDLinearRegression(
        schedule="harmonic", step_size=0.4, n_draws=400, thin=1, random_state=0
    )
    with pytest.warns(UserWarning, match="effective sample size"):
        model.fit(X, y)
    flat, weights = model.posterior_.flat, np.tile(model.posterior_.weights, 4)
    assert np.ptp(weights) > 0
    np.testing.assert_allclose(model.coef_, np.average(flat[:, :1], axis=0, weights=weights))
    eta = X[:5] @ flat[:, :1].T + flat[:, 1]
    mean = np.average(eta, axis=1, weights=weights)
    spread = np.average((eta - mean[:, None]) ** 2 + flat[:, 2], axis=1, weights=weights)
    with pytest.warns(ConvergenceWarning, match="random walks"):  # the steps have decayed
        found = model.predict(X[:5], return_std=True)
    np.testing.assert_allclose(found, [mean, np.sqrt(spread)])
    t = model.predict_quantiles(X[:5], [0.25])[:, 0]
    cdf = stats.norm.cdf(t[:, None], X[:5] * flat[:, 0] + flat[:, 1], np.sqrt(flat[:, 2]))
    np.testing.assert_allclose(np.average(cdf, axis=1, weights=weights), 0.25, rtol=1e-4)
    chosen = model.sample_posterior(20_000, random_state=0)
    standard_error = model.summary()["sd"].iloc[0] / np.sqrt(20_000)
    assert abs(chosen.coef.mean() - model.coef_[0]) < 4 * standard_error
    functions = model.posterior_mean_draws(X[:5], 20_000, random_state=0)
    np.testing.assert_allclose(functions.T, chosen.coef @ X[:5].T + chosen.intercept[:, None])


# decaying steps leave the chains apart, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_weighted_probability_its_log_and_its_log_odds_agree(n_classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.standard_normal(60), [0.0, 0.7][: n_classes - 1])
    model = SGLDLogisticRegression(
        schedule="harmonic", step_size=0.4, n_draws=100, thin=1, random_state=0
    ).fit(X, y)
    flat, weights = model.posterior_.flat, model.posterior_.flat_weights
    assert np.ptp(weights) > 0
    linear = flat.reshape(len(flat), -1, 3)
    eta = np.einsum("skd,nd->snk", linear[..., :2], X) + linear[:, None, :, 2]
    eta = eta if n_classes == 3 else np.dstack([0.0 * eta, eta])
    each = special.softmax(eta, axis=2)
    p = np.average(each, axis=0, weights=weights)
    np.testing.assert_allclose(model.predict_proba(X), p, rtol=1e-9)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p), rtol=1e-9, atol=1e-12)
    log_odds = np.log(p / (1.0 - p))
    expected = log_odds[:, 1] if n_classes == 2 else log_odds
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)
    assert np.isfinite(model.decision_function(1000.0 * X)).all()  # probabilities are 0 and 1


@pytest.mark.parametrize("weight", [0.0, 1e-17, 1e-12])
def test_draws_of_nearly_no_weight_have_their_own_predictors(weight):
    rng = np.random.default_rng(0)
    X, coef, intercept = (rng.standard_normal(s) for s in [(300, 3), (60, 2, 3), (60, 2)])
    share = np.ones(60)
    share[::3] = weight
    predictor = LinearPredictor(coef, intercept)
    spread = predictor.spread(share / share.sum(), X)
    np.testing.assert_allclose(spread.predictors(spread.coordinates(X)), predictor(X), atol=1e-4)
