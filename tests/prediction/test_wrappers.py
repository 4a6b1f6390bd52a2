"""Uncertainty through wrappers is that of the model within, in the user's units."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
    predict_interval,
    predict_proba_interval,
    predict_proba_quantiles,
    predict_quantiles,
    sample_y,
    summary,
)
from skbayes_sgld.prediction.wrappers import unwrap

N = 60
MODEL = SGLDLinearRegression(n_draws=250, random_state=0)
LABELS = SGLDLogisticRegression(n_draws=250, random_state=0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = 5.0 + 3.0 * rng.standard_normal((N, 2))
    z = 0.2 * X @ [1.0, -0.5] + 0.3 * rng.standard_normal(N)
    return X, z


def around(model, transformer=None, **functions):
    return TransformedTargetRegressor(clone(model), transformer=transformer, **functions)


def in_pipeline(model):
    return make_pipeline(StandardScaler(), model)


WRAPPED = {
    "no step before": lambda model: Pipeline([("model", model)]),
    "search": lambda model: GridSearchCV(
        in_pipeline(model), {"standardscaler__with_mean": [True]}, cv=2
    ),
    "pipeline of a search": lambda model: in_pipeline(
        RandomizedSearchCV(model, {"prior__scale": [1.0, 2.0]}, n_iter=1, cv=2, random_state=0)
    ),
    "frozen": in_pipeline,
}


@pytest.mark.parametrize("name", WRAPPED)
def test_wrappers_give_what_the_model_within_gives_for_the_rows_that_it_sees(name, data):
    X, y = data
    outer = WRAPPED[name](clone(MODEL)).fit(X, y)
    if name == "frozen":
        outer = FrozenEstimator(outer)
    model = unwrap(outer).model
    assert isinstance(model, SGLDLinearRegression)
    seen = X if name == "no step before" else StandardScaler().fit_transform(X)
    for given in ({}, {"kind": "mean"}):
        expected = model.predict_interval(seen, coverage=[0.8, 0.5], **given)
        assert_array_equal(predict_interval(outer, X, [0.8, 0.5], **given), expected)
    assert_array_equal(predict_quantiles(outer, X, [0.2]), model.predict_quantiles(seen, [0.2]))
    assert_array_equal(sample_y(outer, X, 3, 5), model.sample_y(seen, 3, 5))


@pytest.mark.parametrize(
    "wrap",
    [
        in_pipeline,
        lambda model: FixedThresholdClassifier(model, threshold=0.3),
        lambda model: TunedThresholdClassifierCV(model, cv=2),
    ],
    ids=["pipeline", "fixed threshold", "tuned threshold"],
)
def test_uncertainty_of_probabilities_passes_wrappers_of_classifiers(wrap, data):
    X, z = data
    outer = wrap(clone(LABELS)).fit(X, z > 0.5)
    core = unwrap(outer, X)
    expected = core.model.predict_proba_interval(core.X, coverage=0.7)
    assert_array_equal(predict_proba_interval(outer, X, 0.7), expected)
    expected = core.model.predict_proba_quantiles(core.X, [0.2])
    assert_array_equal(predict_proba_quantiles(outer, X, [0.2]), expected)
    with pytest.raises(TypeError, match="Of probabilities of classes use predict_proba_quantiles"):
        predict_quantiles(outer, X, [0.2])
    assert_array_equal(sample_y(outer, X, 2), core.model.sample_y(core.X, 2))
    with pytest.raises(TypeError, match="has no predict_interval"):
        predict_interval(outer, X)


# ---- transformed targets ------------------------------------------------------------------------

LEVELS = np.array([0.1, 0.3, 0.95])


@pytest.fixture(scope="module")
def logs(data):
    X, z = data
    return around(MODEL, func=np.log, inverse_func=np.exp).fit(X, np.exp(z))


def test_a_decreasing_inverse_swaps_the_levels(data):
    X, z = data
    outer = around(MODEL, func=reversed_log, inverse_func=reversed_exp).fit(X, np.exp(z))
    inner = outer.regressor_
    found = predict_quantiles(outer, X, LEVELS)
    assert_allclose(found, np.exp(-inner.predict_quantiles(X, 1.0 - LEVELS)), rtol=1e-6)
    assert np.all(np.diff(found, axis=1) > 0)
    low, high = predict_interval(outer, X).T
    assert np.all(low < high)
    assert_allclose(sample_y(outer, X, 4), np.exp(-inner.sample_y(X, 4)))


def reversed_log(y):
    return -np.log(y)


def reversed_exp(z):
    return np.exp(-z)


def test_transformers_and_nested_ones_are_undone_in_their_order(data):
    X, z = data
    inner = around(MODEL, StandardScaler())
    outer = around(in_pipeline(inner), func=np.log, inverse_func=np.exp)
    outer.fit(X, np.exp(z))
    core = unwrap(outer, X)
    assert len(core.transformers) == 2
    y = np.exp(z)
    assert_allclose(core.to_model(y), (z - z.mean()) / z.std())
    assert_allclose(core.from_model(core.to_model(y)), y)
    expected = np.exp(core.model.predict_interval(core.X) * z.std() + z.mean())
    assert_allclose(predict_interval(outer, X), expected, rtol=1e-6)


def test_an_inverse_that_is_not_monotone_is_refused_for_intervals_only(data):
    X, z = data
    outer = around(MODEL, func=np.sqrt, inverse_func=np.square, check_inverse=False)
    outer.fit(X, 0.05 * np.abs(z))
    with pytest.raises(ValueError, match=r"not monotone.*sample_y"):
        predict_interval(outer, X, 0.99)
    assert_allclose(sample_y(outer, X), np.square(outer.regressor_.sample_y(X)))


def test_the_mean_of_a_transformed_target_is_mapped_by_linear_inverses_alone(data, logs):
    X, z = data
    scaled = around(MODEL, StandardScaler()).fit(X, z)
    expected = scaled.regressor_.predict_interval(X, kind="mean") * z.std() + z.mean()
    assert_allclose(predict_interval(scaled, X, kind="mean"), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="not linear"):
        predict_interval(logs, X, kind="mean")


def test_an_inverse_that_is_not_finite_at_an_end_is_refused(data):
    X, z = data
    # the inverse of a Box-Cox transformation of negative power ends at a finite number
    y = np.random.default_rng(0).pareto(1.0, N) + 1.0
    outer = around(MODEL, PowerTransformer("box-cox")).fit(X, y)
    with pytest.raises(ValueError, match="not finite"):
        predict_interval(outer, X, 0.9999)


# ---- errors -------------------------------------------------------------------------------------


def test_what_cannot_be_unwrapped_is_said(data):
    from skbayes_sgld import SGDMAPRegressor

    X, y = data
    with pytest.raises(NotFittedError):
        predict_interval(in_pipeline(MODEL), X)
    with pytest.raises(TypeError, match="Ridge has no predict_interval"):
        predict_interval(Ridge().fit(X, y), X)
    search = GridSearchCV(SGDMAPRegressor(), {"prior__scale": [1.0]}, refit=False, cv=2).fit(X, y)
    with pytest.raises(ValueError, match="refit=False"):
        predict_interval(search, X)


def test_a_summary_has_the_columns_names_with_and_without_frames_between_the_steps(data):
    X = pd.DataFrame(data[0], columns=["age", "bmi"])
    steps = make_pipeline(
        StandardScaler(), ColumnTransformer([("mine", "passthrough", [1, 0])]), clone(MODEL)
    )
    numbered = steps.fit(X, data[1])
    framed = clone(steps).set_output(transform="pandas").fit(X, data[1])
    names = ["coef[mine__bmi]", "coef[mine__age]", "intercept", "noise_variance"]
    assert list(numbered[-1].summary().index[:2]) == ["coef[x0]", "coef[x1]"]
    for model in (numbered, framed):
        table = summary(model, coverage=0.5)
        assert list(table.index) == names
        assert_array_equal(table, model[-1].summary(coverage=0.5))
        assert table.attrs.keys() == model[-1].summary().attrs.keys() != set()
    of_array = clone(steps).fit(data[0], data[1])
    assert list(summary(of_array).index[:2]) == ["coef[mine__x1]", "coef[mine__x0]"]
    with pytest.raises(TypeError, match="Ridge has no summary"):
        summary(in_pipeline(Ridge()).fit(*data))


def test_the_error_of_a_model_of_several_outputs_names_what_takes_one():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.poisson(2.0, (60, 2))
    model = MultiOutputRegressor(SGLDPoissonRegressor(random_state=0)).fit(X, y)
    with pytest.raises(TypeError, match="no predict_interval. Call it for each of .* estimators_"):
        predict_interval(model, X)
    assert predict_interval(model.estimators_[1], X).shape == (60, 2)
    with pytest.raises(ValueError, match="MultiOutputRegressor does; its estimators_ have the int"):
        SGLDPoissonRegressor().fit(X, y)
