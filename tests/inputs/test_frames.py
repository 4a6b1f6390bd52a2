"""Data frames with a column that is not of numbers: the error names the column and a value."""

import numpy as np
import pandas as pd
import pytest

from skbayes_sgld import SGDMAPClassifier, SGLDLinearRegression, SGLDMLPRegressor

# 20 draws of two chains are too few, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
GOOD = pd.DataFrame(RNG.standard_normal((30, 2)), columns=["age", "weight"])
Y = GOOD["age"].to_numpy() + RNG.standard_normal(30)
COLUMNS = {
    "words": (["Rome", "Oslo"] * 15, "'Rome'"),
    "words among numbers": ([1.5] * 29 + ["Oslo"], "'Oslo'"),
    "categories": (pd.Categorical(["Rome", "Oslo"] * 15), "'Rome'"),
    "text with a gap": (pd.array([None, "Rome", "Oslo"] * 10, "string"), "'Rome'"),
    "dates": (pd.to_datetime(["2020-01-02"] * 30), "'2020-01-02"),
    "durations": (pd.to_timedelta(["3 days"] * 30), "'"),
    "complex numbers": (np.full(30, 1j), "'1j'"),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("cls", [SGLDLinearRegression, SGDMAPClassifier, SGLDMLPRegressor])
def test_the_column_is_named_with_a_value_of_it(cls, kind):
    values, shown = COLUMNS[kind]
    wrong = GOOD.assign(gap=pd.array([1.0, None] * 15, "Float64"), city=values)
    model = cls()
    with pytest.raises(ValueError, match=f"X has the column 'city' with the value {shown}"):
        model.fit(wrong, Y > 0 if cls is SGDMAPClassifier else Y)
    assert vars(model) == vars(cls())


def test_the_column_is_named_of_new_rows_and_of_a_table_of_arrow():
    model = SGLDLinearRegression(n_draws=20, n_chains=2, random_state=0).fit(GOOD, Y)
    with pytest.raises(ValueError, match="X has the column 'weight' with the value 'heavy'"):
        model.predict(GOOD.assign(weight="heavy"))
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"age": GOOD["age"].to_numpy(), "city": ["Rome"] * 30})
    with pytest.raises(ValueError, match="X has the column 'city' with the value 'Rome'"):
        model.fit(table, Y)


DAYS = np.datetime64("2020-01-01") + np.arange(60).reshape(30, 2)
HOURS = np.arange(60).reshape(30, 2).astype("m8[h]")


def _among_numbers(value):
    values = GOOD.to_numpy().astype(object)
    values[7, 1] = value
    return values


TIMES = {
    "dates": (DAYS, "X has the value '2020-01-01'"),
    "durations": (HOURS, "X has the value '0 hours'"),
    "lists of dates": ([list(row) for row in DAYS], "X has the value '2020-01-01'"),
    "a date among objects": (_among_numbers(DAYS[0, 1]), "X has the value '2020-01-02'"),
    "a duration among objects": (_among_numbers(HOURS[1, 1]), "X has the value '3 hours'"),
    "a frame of dates": (pd.DataFrame(DAYS), "X has the column 0 with the value '2020-01-01"),
    "a frame of durations": (pd.DataFrame(HOURS, columns=["a", "b"]), "X has the column 'a' with"),
    "a frame of objects": (
        pd.DataFrame(_among_numbers(HOURS[1, 1]), columns=["a", "b"]),
        "X has the column 'b' with the value '3 hours'",
    ),
}


@pytest.fixture(scope="module")
def fitted():
    return {
        SGLDLinearRegression: SGLDLinearRegression(n_draws=20, n_chains=2, random_state=0),
        SGDMAPClassifier: SGDMAPClassifier(random_state=0),
        SGLDMLPRegressor: SGLDMLPRegressor(n_draws=5, n_burnin=5, n_chains=2, random_state=0),
    }


# scikit-learn warns of arrays where frames were fitted
@pytest.mark.filterwarnings("ignore:.*feature names")
@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("cls", [SGLDLinearRegression, SGDMAPClassifier, SGLDMLPRegressor])
def test_dates_and_durations_are_no_numbers_in_arrays_and_frames(cls, kind, fitted):
    (times, message), model, bare = TIMES[kind], fitted[cls], cls()
    y = Y > 0 if cls is SGDMAPClassifier else Y
    with pytest.raises(ValueError, match=message):
        bare.fit(times, y)
    assert vars(bare) == vars(cls())
    if cls is SGLDLinearRegression:
        with pytest.raises(ValueError, match=message):
            cls(prior="normal", intercept_prior="normal").sample_prior(times)
    if not hasattr(model, "n_features_in_"):
        model.fit(GOOD.to_numpy(), y)
    with pytest.raises(ValueError, match=message):
        model.predict(times)


def test_tables_of_arrow_of_dates_alone_and_weights_that_are_durations_are_refused():
    model = SGLDLinearRegression(n_draws=20, n_chains=2, random_state=0)
    weight = np.array([1.0] * 29 + [np.timedelta64(2, "h")], dtype=object)
    with pytest.raises(TypeError, match="sample_weight has dtype object; weights must be numbers"):
        model.fit(GOOD, Y, weight)
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"day": DAYS[:, 0].astype("M8[s]"), "other": DAYS[:, 1].astype("M8[s]")})
    with pytest.raises(ValueError, match="X has the column 'day' with the value '2020-01-01T00"):
        model.fit(table, Y)
