"""Columns of numbers that the pipeline takes for codes are compared by level."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import (
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, effects
from skbayes_sgld.prediction import factors
from skbayes_sgld.prediction.factors import Columns
from skbayes_sgld.prediction.tables import Table
from tests.marks import quick

# the runs are short
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 150
RNG = np.random.default_rng(0)
MODEL = SGLDLinearRegression(n_draws=50, n_chains=2, random_state=0)
FRAME = pd.DataFrame(
    {
        "zone": RNG.integers(1, 4, N),
        "x": RNG.normal(10.0, 3.0, N),
        "old": RNG.integers(0, 2, N),
    }
)
Y = FRAME["zone"].map({1: 0.0, 2: 3.0, 3: -2.0}) + 0.5 * FRAME["x"] + RNG.normal(size=N)
IGNORE = OneHotEncoder(handle_unknown="ignore")
SCALED = (StandardScaler(), ["x"])


class Lookup(TransformerMixin, BaseEstimator):
    """A user's own encoder, which takes whole numbers alone."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        codes = X["zone"].to_numpy()
        return np.column_stack([np.array([9.0, 0.0, 3.0, -2.0])[codes], X["x"]])


def columns(*parts, **how):
    return make_column_transformer(*parts, **how)


STEPS = {
    "one-hot": [columns((IGNORE, ["zone"]), SCALED)],
    "one-hot that refuses": [columns((OneHotEncoder(drop="first"), ["zone"]), SCALED)],
    "ordinal": [columns((OrdinalEncoder(), ["zone"]), remainder="passthrough")],
    "ordinal with a code for others": [
        columns(
            (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["zone"]), SCALED
        )
    ],
    "target": [columns((TargetEncoder(), ["zone"]), SCALED), StandardScaler()],
    "encoded and passed on": [columns((IGNORE, ["zone"]), ("passthrough", ["zone", "x"]))],
    "a union": [
        columns((FeatureUnion([("a", IGNORE), ("b", StandardScaler())]), ["zone"]), SCALED)
    ],
    "text in between": [
        columns(
            (
                make_pipeline(FunctionTransformer(lambda Z: Z.astype(str)), OneHotEncoder()),
                ["zone"],
            ),
            SCALED,
        )
    ],
    "a selector": [columns((IGNORE, make_column_selector("zone")), SCALED)],
    "interactions": [columns((IGNORE, ["zone"]), SCALED), PolynomialFeatures(2)],
    "a dictionary": [
        FunctionTransformer(lambda D: D.assign(zone=D["zone"].map({1: 0.0, 2: 3.0, 3: -2.0})))
    ],
    "a transformer of one's own": [Lookup()],
}


def predict_draws(model, X):
    for _, step in model.steps[:-1]:
        X = step.transform(X)
    return model[-1].posterior_mean_draws(X).mean(axis=0).T


def estimates(table):
    return table[["estimate", "sd"]].to_numpy()


def compared(model, X, column, levels):
    """Mean and sd of differences from the first level, by predictions of the pipeline."""
    draws = [predict_draws(model, X.assign(**{column: level})) for level in levels]
    return [((d - draws[0]).mean(), (d - draws[0]).std()) for d in draws[1:]]


@pytest.mark.parametrize("name", quick(STEPS, "one-hot", "target"))
def test_codes_are_compared_by_level_whatever_encodes_them(name):
    model = make_pipeline(*map(clone, STEPS[name]), clone(MODEL)).fit(FRAME, Y)
    for more in ({}, {"step": 1.0}):
        table = effects(model, FRAME, "zone", **more)
        assert table["contrast"].tolist() == ["2 - 1", "3 - 1"]
        assert_allclose(estimates(table), compared(model, FRAME, "zone", [1, 2, 3]), rtol=1e-8)
    typical = pd.DataFrame({"zone": FRAME["zone"].mode(), "x": FRAME["x"].mean(), "old": 0.0})
    table = effects(model, FRAME, "zone", "at_mean")
    assert_allclose(estimates(table), compared(model, typical, "zone", [1, 2, 3]), rtol=1e-8)
    if name != "interactions":  # of which this is no linear effect
        ends = [predict_draws(model, typical.assign(x=FRAME["x"].mean() + h)) for h in (-0.1, 0.1)]
        slope = (ends[1] - ends[0]) / 0.2
        found = effects(model, FRAME, "x", "at_mean")
        assert found["contrast"].tolist() == ["dy/dx"]
        assert_allclose(estimates(found), [(slope.mean(), slope.std())], rtol=1e-5)


def test_codes_are_found_inside_searches_and_transformed_targets():
    inner = make_pipeline(clone(STEPS["one-hot"][0]), clone(MODEL))
    model = TransformedTargetRegressor(inner, transformer=StandardScaler())
    search = GridSearchCV(model, {}, cv=2).fit(FRAME, Y)
    model = search.best_estimator_.regressor_
    table = effects(search, FRAME, "zone")
    expected = np.array(compared(model, FRAME, "zone", [1, 2, 3])) * Y.std(ddof=0)
    assert_allclose(estimates(table), expected, rtol=1e-8)


def test_codes_of_classes_and_of_arrays_by_position():
    X = FRAME.to_numpy()
    steps = columns((OneHotEncoder(), [0]), remainder="passthrough")
    model = make_pipeline(steps, SGLDLogisticRegression(n_draws=50, random_state=0))
    model.fit(X, np.digitize(Y, [4.0, 7.0]))
    table = effects(model, X)
    assert table["column"].tolist() == ["x0"] * 6 + ["x1"] * 3 + ["x2"] * 3
    assert table["contrast"].unique().tolist() == ["2 - 1", "3 - 1", "dy/dx", "1 - 0"]

    def of(level):
        rows = X.copy()
        rows[:, 0] = level
        return model[-1].posterior_mean_draws(model[0].transform(rows)).mean(axis=0).T

    difference = of(3.0) - of(1.0)
    assert_allclose(table["estimate"][3:6], difference.mean(axis=0), rtol=1e-8)


def test_values_that_the_steps_do_not_tell_apart_are_one_level():
    steps = columns((KBinsDiscretizer(3, strategy="uniform"), ["x"]), ("passthrough", ["old"]))
    model = make_pipeline(steps, clone(MODEL)).fit(FRAME, Y)
    table = effects(model, FRAME, "x")
    edges = model[0].named_transformers_["kbinsdiscretizer"].bin_edges_[0]
    x = FRAME["x"].to_numpy()
    bins = [x[(x >= low) & (x <= high)] for low, high in zip(edges, edges[1:], strict=False)]
    names = [f"[{one.min():.3g}, {one.max():.3g}]" for one in bins]
    assert table["contrast"].tolist() == [f"{name} - {names[0]}" for name in names[1:]]
    middles = (edges[1:] + edges[:-1]) / 2.0
    assert_allclose(estimates(table), compared(model, FRAME, "x", middles), rtol=1e-8)
    # the other columns are measured in the bin that most rows are in
    fullest = middles[np.argmax([len(one) for one in bins])]
    typical = pd.DataFrame({"zone": 1, "x": [fullest], "old": [FRAME["old"].mean()]})
    found = effects(model, FRAME, "old", "at_mean")
    assert_allclose(estimates(found), compared(model, typical, "old", [0, 1]), rtol=1e-8)


def test_bins_are_named_by_as_many_digits_as_tell_their_ends_apart():
    bins = [[1.0, 1.5, 2.0001], [2.0002, 3.0, 4.0], [5.0]]
    assert factors._ranges(bins) == ["[1, 2.0001]", "[2.0002, 4]", "5"]


def test_columns_with_a_smooth_part_keep_their_slope():
    rows = FRAME.assign(x=np.round(FRAME["x"]))  # many at the edges of bins
    smooth = [
        [SplineTransformer()],
        [QuantileTransformer(n_quantiles=20)],
        [FunctionTransformer(lambda x: np.maximum(x - 12.0, 0.0))],
        [FeatureUnion([("bins", KBinsDiscretizer(4)), ("x", StandardScaler())])],
    ]
    for steps in smooth:
        model = make_pipeline(columns((make_pipeline(*steps), ["x"])), clone(MODEL)).fit(rows, Y)
        assert effects(model, rows, "x")["contrast"].tolist() == ["dy/dx"]
    # without the jumps at edges, the slope is the coefficient
    table = effects(model, rows, "x")
    slope = model[-1].posterior_["coef"].reshape(-1, 5)[:, -1] / rows["x"].std(ddof=0)
    assert_allclose(estimates(table), [(slope.mean(), slope.std())], rtol=1e-6)


def test_named_factors_are_compared_by_level():
    from skbayes_sgld.plotting import PartialDependenceDisplay

    model = clone(MODEL).fit(FRAME, Y)
    coef = model.posterior_["coef[zone]"].ravel()
    for name in ("zone", ["zone"], 0):
        table = effects(model, FRAME, "zone", factors=name, step=0.5)
        assert table["contrast"].tolist() == ["2 - 1", "3 - 1"]
        expected = [(k * coef.mean(), k * coef.std()) for k in (1, 2)]
        assert_allclose(estimates(table), expected, rtol=1e-9)
    assert effects(model, FRAME)["contrast"].tolist() == ["dy/dx", "dy/dx", "1 - 0"]
    with pytest.raises(ValueError, match="factors='town' is not a column of X"):
        effects(model, FRAME, factors="town")
    display = PartialDependenceDisplay.from_estimator(model, FRAME, "zone", factors=["zone"])
    assert display.values.tolist() == [1, 2, 3]


@pytest.mark.slow
def test_a_column_that_changes_no_prediction_is_said():
    rows = FRAME.assign(id=np.arange(N), town=RNG.choice(["Oslo", "Rome"], N), one=1.0)
    model = make_pipeline(columns(SCALED, (IGNORE, ["zone"])), clone(MODEL)).fit(rows, Y)
    with pytest.warns(UserWarning, match="columns 'old', 'id', 'town', whose values differ"):
        table = effects(model, rows)
    assert table["column"].unique().tolist() == ["zone", "x", "one"]
    with pytest.warns(UserWarning, match="columns 'old', 'town', .* the effect is exactly 0"):
        assert not estimates(effects(model, rows, ["old", "town", "one"])).any()
    effects(model, rows, ["x", "zone", "one"])  # a warning would be an error
    hinge = FunctionTransformer(lambda x: np.maximum(x - 14.0, 0.0))  # flat at the mean
    hinge = make_pipeline(columns((hinge, ["x"])), clone(MODEL)).fit(rows, Y)
    assert not estimates(effects(hinge, rows, "x", "at_mean")).any()
    rare = OneHotEncoder(min_frequency=N, handle_unknown="infrequent_if_exist", sparse_output=False)
    model = make_pipeline(columns((rare, ["zone"]), SCALED), clone(MODEL)).fit(rows, Y)
    with pytest.warns(UserWarning, match="column 'zone', whose values differ"):
        assert not estimates(effects(model, rows, "zone")).any()
    model = make_pipeline(columns((rare, ["zone"])), clone(MODEL)).fit(rows[["zone", "old"]], Y)
    with pytest.raises(ValueError, match="the predictions change with no column of X"):
        effects(model, rows[["zone", "old"]])


DROPPED = pd.DataFrame(
    {
        "name": [f"p{k}" for k in range(N)],
        "time": pd.date_range("2020-01-01", periods=N),
        "mixed": ["a", 1, None] * (N // 3),
        "category": pd.Categorical(["u", "v", "w"] * (N // 3)),
        "truth": [True, False, True] * (N // 3),
        "code": np.arange(N),
        "gaps": [0.5, 1.5, np.nan] * (N // 3),
    }
)


@pytest.mark.parametrize("n", [49, 51])
def test_columns_that_the_pipeline_drops_have_no_row(n):
    rows = DROPPED.assign(x=FRAME["x"])[:n]
    model = make_pipeline(columns(SCALED), clone(MODEL)).fit(rows, Y[:n])
    listed = ", ".join(map(repr, DROPPED.columns))
    with pytest.warns(UserWarning, match=f"columns {listed}, whose values differ"):
        assert effects(model, rows)["column"].tolist() == ["x"]


def test_a_column_is_not_left_out_where_one_of_many_values_counts():
    rows = Table.of(pd.DataFrame({"code": np.arange(5000) % 1000}))
    assert not Columns(rows, lambda table: table.X == 703).is_left_out(0)
    assert Columns(rows, lambda table: table.X == -1).is_left_out(0)
    assert not Columns(rows, lambda table: sparse.csr_array(table.X == 703)).is_left_out(0)
    assert Columns(rows, lambda table: sparse.csr_array(table.X == -1)).is_left_out(0)


@pytest.mark.slow
def test_more_than_fifty_codes_are_compared_on_request():
    rows = FRAME[["zone", "x"]].assign(zone=np.arange(N) % 60)
    model = make_pipeline(columns((TargetEncoder(), ["zone"]), SCALED), MODEL)
    model.fit(rows, Y)
    with pytest.raises(ValueError, match="60 different values in the column 'zone'.*columns="):
        effects(model, rows)
    assert len(effects(model, rows, "zone")) == len(effects(model, rows, factors="zone")) - 1 == 59


def test_types_of_numbers_and_of_rows_do_not_matter():
    steps = columns((OneHotEncoder(), ["zone"]), SCALED)
    model = make_pipeline(steps, clone(MODEL)).fit(FRAME, Y)
    expected = effects(model, FRAME, "zone")
    types = ["Int64", "int8", "uint16", "float32", "Float64", "category", "object", "str"]
    for dtype in types:
        rows = FRAME.assign(zone=FRAME["zone"].astype(dtype))
        table = effects(make_pipeline(clone(steps), clone(MODEL)).fit(rows, Y), rows, "zone")
        assert table["contrast"].tolist() == ["2 - 1", "3 - 1"], dtype
        assert_allclose(estimates(table), estimates(expected), rtol=1e-6)
    gaps = FRAME.assign(zone=FRAME["zone"].astype("Int64").where(FRAME.index > 20))
    model = make_pipeline(clone(steps), clone(MODEL)).fit(gaps, Y)
    assert len(effects(model, gaps, "zone")) == 2


def test_sparse_rows_before_and_after_a_step_are_numbers():
    X = sparse.csr_array(FRAME.to_numpy(dtype=float))
    model = make_pipeline(MaxAbsScaler(), clone(MODEL)).fit(X, Y)
    table = effects(model, X)
    assert table["contrast"].tolist() == ["dy/dx", "dy/dx", "1 - 0"]
    dense = effects(model, X.toarray())
    assert_allclose(estimates(table), estimates(dense), rtol=1e-7)
    made = make_pipeline(columns((IGNORE, ["zone"]), SCALED, sparse_threshold=1.0), clone(MODEL))
    assert sparse.issparse(made[:-1].fit_transform(FRAME))
    assert len(effects(made.fit(FRAME, Y), FRAME, ["zone", "x"])) == 3


# ---- order --------------------------------------------------------------------------------------

ORDERS = {
    "numbers in text": (["10", "1", "2", "11"], ["1", "2", "10", "11"]),
    "fractions in text": (["1.5", "-2", "1.25", "10"], ["-2", "1.25", "1.5", "10"]),
    "numbers after letters": (["g10", "g1", "g2", "h1"], ["g1", "g2", "g10", "h1"]),
    "ranges": (["10-20", "5-10", "100+"], ["5-10", "10-20", "100+"]),
    "categories by letters": (
        pd.Categorical(["10", "1", "2", "1"]),
        ["1", "2", "10"],
    ),
    "ordered categories": (
        pd.Categorical(["1", "10", "2", "1"], ["1", "10", "2"], ordered=True),
        ["1", "10", "2"],
    ),
    "categories in an order of one's own": (
        pd.Categorical(["low", "high", "mid"], ["low", "mid", "high"]),
        ["low", "mid", "high"],
    ),
    "objects that are numbers": (np.array([10, 1, 2], dtype=object), [1, 2, 10]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_levels_are_in_the_order_that_a_reader_expects(name):
    values, expected = ORDERS[name]
    levels = pd.Series(values).repeat(12).reset_index(drop=True)
    rows = pd.DataFrame({"g": levels, "x": RNG.normal(size=len(levels))})
    steps = columns((OneHotEncoder(), ["g"]), ("passthrough", ["x"]))
    model = make_pipeline(steps, clone(MODEL)).fit(rows, RNG.normal(size=len(rows)))
    table = effects(model, rows, "g")
    assert table["contrast"].tolist() == [f"{b} - {expected[0]}" for b in expected[1:]]


def test_the_points_of_a_display_are_the_levels():
    from skbayes_sgld.plotting import PartialDependenceDisplay

    model = make_pipeline(clone(STEPS["one-hot"][0]), clone(MODEL)).fit(FRAME, Y)
    display = PartialDependenceDisplay.from_estimator(model, FRAME, "zone")
    assert display.values.tolist() == [1, 2, 3] and display.bands_ == []
    expected = [predict_draws(model, FRAME.assign(zone=k)).mean() for k in (1, 2, 3)]
    assert_allclose(display.mean[:, 0], expected, rtol=1e-8)
    bins = make_pipeline(columns((KBinsDiscretizer(2), ["x"])), clone(MODEL)).fit(FRAME, Y)
    values = PartialDependenceDisplay.from_estimator(bins, FRAME, "x").values
    assert_array_equal([value[0] for value in values], ["[", "["])
