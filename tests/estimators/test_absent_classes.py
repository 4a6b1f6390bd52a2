"""A class whose rows all weigh nothing stays a class: with probability 0, or by its prior."""

import numpy as np
import pytest
from scipy.special import expit, log_expit

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.priors import Normal

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 2))
CODES = (X[:, 0] + RNG.standard_normal(90) > 0).astype(int)
NAMES = np.array(["b", "c", "a"])
Y = np.append(NAMES[CODES[:80]], np.full(10, "a"))  # "a" is the first class
WEIGHT = np.where(Y == "a", 0.0, RNG.uniform(0.5, 1.5, 90))
SCALE = 0.7


@pytest.fixture(scope="module")
def absent():
    model = SGLDLogisticRegression(prior=Normal(scale=SCALE), random_state=0)
    return model.fit(X, Y, sample_weight=WEIGHT)


def test_the_others_are_as_if_the_class_were_not_there(absent):
    """Two softmax predictors of prior variance v differ as one logistic predictor of 2 v does."""
    two = SGLDLogisticRegression(prior=Normal(scale=np.sqrt(2) * SCALE), random_state=1)
    kept = WEIGHT > 0
    two.fit(X[kept], Y[kept], sample_weight=WEIGHT[kept])
    draws = absent.sample_posterior()
    difference = draws.coef[:, 2] - draws.coef[:, 1]
    expected = two.sample_posterior().coef
    error = expected.std(axis=0) / np.sqrt(1000)
    assert np.all(np.abs(difference.mean(axis=0) - expected.mean(axis=0)) < 4 * error)
    np.testing.assert_allclose(difference.std(axis=0), expected.std(axis=0), rtol=0.1)
    level = draws.intercept[:, 2] - draws.intercept[:, 1]
    spread = two.sample_posterior().intercept.std() / np.sqrt(1000)
    assert abs(level.mean() - two.intercept_.item()) < 4 * spread


def test_the_class_has_probability_zero_in_every_prediction(absent):
    assert absent.classes_.tolist() == ["a", "b", "c"]
    assert absent.coef_.shape == (3, 2)
    assert absent.intercept_[0] == -np.inf
    probability = absent.predict_proba(X)
    np.testing.assert_array_equal(probability[:, 0], 0.0)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_array_equal(absent.predict_log_proba(X)[:, 0], -np.inf)
    np.testing.assert_array_equal(absent.decision_function(X)[:, 0], -np.inf)
    np.testing.assert_array_equal(absent.predict_proba_interval(X)[:, 0], 0.0)
    np.testing.assert_array_equal(absent.posterior_mean_draws(X, 10)[:, 0], 0.0)
    assert set(absent.predict(X)) == {"b", "c"} == set(absent.sample_y(X, 20).ravel())
    by_draw = absent.log_likelihood(X, Y)
    assert np.all((by_draw == -np.inf) == (Y == "a")[:, None])
    proba = np.exp(by_draw[:3]).mean(axis=1)
    np.testing.assert_allclose(proba, np.exp(absent.log_predictive_density(X, Y)[:3]), rtol=1e-5)
    assert "coef[a, x0]" not in absent.posterior_


def test_a_class_weight_of_zero_is_a_weight_of_zero(absent):
    by_class = SGLDLogisticRegression(
        prior=Normal(scale=SCALE), class_weight={"a": 0.0}, random_state=0
    ).fit(X, Y, sample_weight=np.where(Y == "a", 3.0, WEIGHT))
    np.testing.assert_array_equal(by_class.posterior_.values, absent.posterior_.values)
    for wrong in (-1.0, np.inf):
        with pytest.raises(ValueError, match=r"class_weight=.* is out of range.*not negative"):
            by_class.set_params(class_weight={"a": wrong}).fit(X, Y)
    with pytest.raises(ValueError, match="leaves no row a weight above zero"):
        by_class.set_params(class_weight=dict.fromkeys("abc", 0.0)).fit(X, Y)


def test_balanced_weights_balance_the_classes_that_have_any():
    from skbayes_sgld import SGDMAPClassifier

    kept, exact = WEIGHT > 0, {"optimizer": "newton", "class_weight": "balanced"}
    model = SGDMAPClassifier(prior=Normal(scale=SCALE), **exact)
    model.fit(X, Y, sample_weight=WEIGHT)
    without = SGDMAPClassifier(prior=Normal(scale=np.sqrt(2) * SCALE), **exact)
    without.fit(X[kept], Y[kept], sample_weight=WEIGHT[kept])
    np.testing.assert_allclose(
        model.predict_proba(X)[:, 1:], without.predict_proba(X), rtol=0, atol=1e-6
    )


def test_under_a_proper_prior_of_the_intercept_it_has_the_posterior_of_the_model():
    """Binary, all labels the same: against a grid over coefficient and intercept."""
    x, weight = X[:30, :1], np.where(CODES[:30] == 0, 0.5, 0.0)
    model = SGLDLogisticRegression(
        prior=Normal(scale=1.0), intercept_prior=Normal(scale=2.0), random_state=0
    ).fit(x, CODES[:30], sample_weight=weight)
    b, a = np.meshgrid(np.linspace(-6, 6, 241), np.linspace(-14, 4, 361), indexing="ij")
    value = -0.5 * b**2 - 0.125 * a**2
    for xi, w in zip(x[:, 0], weight, strict=True):
        value += w * log_expit(-(b * xi + a))
    mass = np.exp(value - value.max())
    mass /= mass.sum()
    rows = x[:4]
    exact = [float((mass * expit(b * xi + a)).sum()) for xi in rows[:, 0]]
    draws = expit(np.outer(model.posterior_["coef[x0]"], rows) + model.posterior_.flat[:, 1:])
    error = draws.std(axis=0) / np.sqrt(800)
    assert np.all(np.abs(model.predict_proba(rows)[:, 1] - exact) < 4 * error)
    assert np.all(model.predict_proba(rows)[:, 1] > 0.005)


def test_one_class_alone_is_refused_under_a_flat_intercept_with_the_remedy():
    weight = np.where(Y == "b", 1.0, 0.0)
    model = SGLDLogisticRegression(n_draws=50, random_state=0)
    with pytest.raises(ValueError, match=r"zero for every class but 'b'.*intercept_prior='normal'"):
        model.fit(X, Y, sample_weight=weight)
    assert not hasattr(model, "classes_")
