"""Rows that are not numbers: the error names the column and a value."""

import numpy as np
import pandas as pd
import pytest

from skbayes_sgld import (
    SGDMAPClassifier,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
    SGLDPoissonRegressor,
    effects,
)

# 20 draws of two chains are too few, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
GOOD = pd.DataFrame(RNG.standard_normal((30, 2)), columns=["age", "weight"])
Y = GOOD["age"].to_numpy() + RNG.standard_normal(30)
DAYS = np.datetime64("2020-01-01") + np.arange(60).reshape(30, 2)
HOURS = np.arange(60).reshape(30, 2).astype("m8[h]")


def among_numbers(value):
    values = GOOD.to_numpy().astype(object)
    values[7, 1] = value
    return values


def with_city(values):
    return GOOD.assign(gap=pd.array([1.0, None] * 15, "Float64"), city=values)


ROWS = {
    "words": (with_city(["Rome", "Oslo"] * 15), "column 'city' with the value 'Rome'"),
    "words among numbers": (with_city([1.5] * 29 + ["Oslo"]), "'city' .* 'Oslo'"),
    "categories": (with_city(pd.Categorical(["Rome", "Oslo"] * 15)), "'city' .* 'Rome'"),
    "text with a gap": (with_city(pd.array([None, "Rome"] * 15, "string")), "'city' .* 'Rome'"),
    "complex numbers": (with_city(np.full(30, 1j)), "'city' with the value '1j'"),
    "dates": (DAYS, "value '2020-01-01'"),
    "durations": (HOURS, "value '0 hours'"),
    "lists of dates": ([list(row) for row in DAYS], "value '2020-01-01'"),
    "a date among objects": (among_numbers(DAYS[0, 1]), "value '2020-01-02'"),
    "a duration among objects": (among_numbers(HOURS[1, 1]), "value '3 hours'"),
    "a frame of dates": (pd.DataFrame(DAYS), "column 0 with the value '2020-01-01"),
    "a frame of durations": (pd.DataFrame(HOURS, columns=["a", "b"]), "column 'a' with"),
    "a frame of objects": (pd.DataFrame(among_numbers(HOURS[1, 1])), "column 1 .* '3 hours'"),
}


@pytest.fixture(scope="module")
def fitted():
    return SGLDLinearRegression(n_draws=20, n_chains=2, random_state=0).fit(GOOD.to_numpy(), Y)


# scikit-learn warns of frames where arrays were fitted
@pytest.mark.filterwarnings("ignore:.*feature names")
@pytest.mark.parametrize("kind", ROWS)
def test_rows_that_are_not_numbers_are_refused_with_a_value_of_them(kind, fitted):
    rows, message = ROWS[kind]
    model = SGLDLinearRegression(prior="normal", intercept_prior="normal")
    for call in (lambda: model.fit(rows, Y), lambda: model.sample_prior(rows)):
        with pytest.raises(ValueError, match=f"X has the .*{message}"):
            call()
    assert vars(model) == vars(SGLDLinearRegression(prior="normal", intercept_prior="normal"))
    if np.shape(rows) == (30, 2):
        with pytest.raises(ValueError, match=f"X has the .*{message}"):
            fitted.predict(rows)


@pytest.mark.parametrize("cls", [SGDMAPClassifier, SGLDMLPRegressor])
@pytest.mark.parametrize("kind", ["words", "a date among objects"])
def test_other_estimators_refuse_them_too(cls, kind):
    rows, message = ROWS[kind]
    with pytest.raises(ValueError, match=f"X has the .*{message}"):
        cls().fit(rows, Y > 0 if cls is SGDMAPClassifier else Y)


def test_weights_that_are_durations_are_refused():
    weight = np.array([1.0] * 29 + [np.timedelta64(2, "h")], dtype=object)
    with pytest.raises(TypeError, match="sample_weight has dtype object; weights must be numbers"):
        SGLDLinearRegression().fit(GOOD, Y, weight)


def test_a_table_of_arrow_names_the_column_too():
    pa = pytest.importorskip("pyarrow", reason="an extra")
    table = pa.table({"age": GOOD["age"].to_numpy(), "city": ["Rome"] * 30})
    with pytest.raises(ValueError, match="X has the column 'city' with the value 'Rome'"):
        SGLDLinearRegression().fit(table, Y)
    table = pa.table({"day": DAYS[:, 0].astype("M8[s]"), "other": DAYS[:, 1].astype("M8[s]")})
    with pytest.raises(ValueError, match="X has the column 'day' with the value '2020-01-01T00"):
        SGLDLinearRegression().fit(table, Y)


def test_all_columns_of_text_are_named():
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "city": list("abc"), "job": list("xyz")})
    frame["day"] = pd.to_datetime(["2020-01-01"] * 3)
    with pytest.raises(ValueError, match="'city' with the value 'a'.*same goes for 'job', 'day'"):
        SGLDLinearRegression().fit(frame, [1.0, 2.0, 4.0])
    with pytest.raises(ValueError, match="OneHotEncoder does.$"):
        SGLDLinearRegression().fit(frame[["age", "city"]], [1.0, 2.0, 4.0])


def test_frames_without_rows_yet_are_to_be_collected():
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame({name: GOOD[name].to_numpy() for name in GOOD}).lazy()
    y = polars.DataFrame({"y": Y}).lazy()
    model = SGLDLinearRegression(n_draws=20, n_chains=2, random_state=0).fit(GOOD, Y)
    for call in (
        lambda: SGLDLinearRegression().fit(lazy, Y),
        lambda: SGLDMLPRegressor().fit(lazy, Y),
        lambda: model.predict(lazy),
        lambda: effects(model, lazy),
    ):
        with pytest.raises(TypeError, match=r"^X is a LazyFrame.*; give X\.collect\(\)"):
            call()
    for cls in (SGLDLinearRegression, SGLDLogisticRegression):
        with pytest.raises(TypeError, match=r"^y is a LazyFrame.*; give y\.collect\(\)"):
            cls().fit(GOOD, y)


def test_masked_values_are_refused_by_the_name_of_their_argument():
    """NumPy would read the numbers under the mask."""

    def masked(values):
        mask = np.zeros(values.shape, dtype=bool)
        mask[3] = True
        return np.ma.masked_array(values, mask=mask)

    X, counts, ones = GOOD.to_numpy(), np.arange(30), np.ones(30)
    model = SGLDPoissonRegressor(n_draws=20, n_chains=2, random_state=0)
    model.fit(np.ma.masked_array(X), np.ma.masked_array(counts), exposure=ones)
    calls = {
        "X": lambda: model.predict(masked(X)),
        "y": lambda: model.log_likelihood(X, masked(counts), exposure=ones),
        "sample_weight": lambda: model.fit(X, counts, masked(ones)),
        "exposure": lambda: model.predict(X, exposure=masked(ones)),
    }
    with pytest.raises(ValueError, match="^exposure has masked values"):
        model.predict(X, exposure=np.ma.masked)
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"^{name} has masked values, first in row 3"):
            call()
    for cls in (SGLDLinearRegression, SGLDLogisticRegression, SGLDMLPRegressor):
        with pytest.raises(ValueError, match="^X has masked values"):
            cls().fit(masked(X), counts % 2)
        with pytest.raises(ValueError, match="^y has masked values"):
            cls().fit(X, masked(counts % 2))
    with pytest.raises(ValueError, match="^y has masked values"):
        SGLDLinearRegression().fit(X, masked(np.column_stack([counts, ones])))


def test_a_column_that_comes_twice_is_refused_by_name_in_predictions():
    model = SGLDLinearRegression(n_draws=20, n_chains=2, random_state=0).fit(GOOD, Y)
    twice = pd.concat([GOOD, GOOD[["age"]]], axis=1)
    for method in (model.predict, model.predict_interval, model.sample_y):
        with pytest.raises(ValueError, match=r"^X: (.|\n)*'age' 2 times"):
            method(twice)


def test_labels_that_are_numbers_as_objects_are_refused_with_what_to_give():
    labels = (Y > 0).astype(int).astype(object)
    with pytest.raises(ValueError, match=r"dtype object and the label [01]; give y.astype\(int\)"):
        SGLDLogisticRegression().fit(GOOD, labels)
