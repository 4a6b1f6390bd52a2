"""Predictions as frames: the index of X, names of columns, and the numbers of the arrays."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    predict_interval,
    predict_proba_interval,
    predict_proba_quantiles,
    predict_quantiles,
    sample_y,
)

RNG = np.random.default_rng(0)
N = 40
X = pd.DataFrame(RNG.standard_normal((N, 2)), [f"row {i}" for i in range(N)], ["age", "size"])
Y = X["age"] + RNG.standard_normal(N)
FEW = {"n_draws": 250, "random_state": 0}
LINEAR = make_pipeline(StandardScaler(), SGLDLinearRegression(**FEW)).fit(X, Y)
BOTH = SGLDLinearRegression(**FEW).fit(X, pd.DataFrame({"cost": Y, "time": -Y}))
LABELS = SGLDLogisticRegression(**FEW).fit(X, np.where(Y > 0, "yes", "no"))
LEVELS = [0.1, 0.9]
ENDS = ["lower", "upper"]
CASES = {
    "an interval": (predict_interval, LINEAR, {}, ENDS),
    "several coverages": (
        predict_interval,
        LINEAR,
        {"coverage": [0.5, 0.9]},
        [(end, coverage) for end in ENDS for coverage in (0.5, 0.9)],
    ),
    "of several outputs": (
        predict_interval,
        BOTH,
        {"coverage": 0.5, "kind": "mean"},
        [(output, end) for output in ("cost", "time") for end in ENDS],
    ),
    "quantiles": (predict_quantiles, LINEAR, {"q": LEVELS}, LEVELS),
    "quantiles of outputs": (
        predict_quantiles,
        BOTH,
        {"q": LEVELS},
        [(output, q) for output in ("cost", "time") for q in LEVELS],
    ),
    "probabilities": (
        predict_proba_interval,
        LABELS,
        {},
        [(label, end) for label in ("no", "yes") for end in ENDS],
    ),
    "quantiles of probabilities": (
        predict_proba_quantiles,
        LABELS,
        {"q": LEVELS},
        [(label, q) for label in ("no", "yes") for q in LEVELS],
    ),
    "draws": (sample_y, LINEAR, {"n_samples": 3}, [0, 1, 2]),
    "draws of labels": (sample_y, LABELS, {"n_samples": 2}, [0, 1]),
    "draws of outputs": (
        sample_y,
        BOTH,
        {"n_samples": 2},
        [(output, draw) for output in ("cost", "time") for draw in (0, 1)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_frame_has_the_index_of_X_and_the_numbers_of_the_array(case):
    function, model, given, columns = CASES[case]
    array = function(model, X, **given)
    frame = function(model, X, as_frame=True, **given)
    assert frame.index.equals(X.index) and list(frame.columns) == columns
    assert_array_equal(frame.to_numpy().reshape(array.shape), array)
    first = frame[columns[0]]  # the first of each axis after the rows
    assert_array_equal(first, array.reshape(N, -1)[:, 0])


def test_the_columns_of_several_axes_have_names():
    frame = predict_proba_interval(LABELS, X, [0.5, 0.9], as_frame=True)
    assert frame.columns.names == ["class", "end", "coverage"]
    assert (frame["yes"]["lower"] <= frame["yes"]["upper"]).all().all()


# X had names in fit
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_rows_without_an_index_are_counted():
    frame = predict_interval(BOTH, X.to_numpy(), as_frame=True)
    assert frame.index.equals(pd.RangeIndex(N))


def test_rows_of_polars_give_a_frame_of_pandas_unless_scikit_learn_is_told_otherwise():
    polars = pytest.importorskip("polars")
    rows = polars.from_pandas(X.reset_index(drop=True))
    frame = predict_interval(LINEAR, rows, as_frame=True)
    assert isinstance(frame, pd.DataFrame) and frame.index.equals(pd.RangeIndex(N))
    with sklearn.config_context(transform_output="polars"):
        own = predict_interval(BOTH, X, [0.5, 0.9], as_frame=True)
        assert isinstance(own, polars.DataFrame)
        assert own.columns[:3] == ["cost_lower_0.5", "cost_lower_0.9", "cost_upper_0.5"]
        assert predict_quantiles(BOTH, X, as_frame=True).columns[0] == "cost_0.05"
        one = predict_interval(SGLDLinearRegression(**FEW).fit(X, Y), X, as_frame=True)
        assert one.columns == ENDS
    assert_array_equal(frame.to_numpy(), predict_interval(LINEAR, X))


def test_as_frame_is_true_or_false():
    with pytest.raises(TypeError, match="as_frame='pandas'"):
        predict_interval(LINEAR, X, as_frame="pandas")


# X had names in fit
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_rows_in_blocks_have_no_frame():
    from skbayes_sgld import RowBlocks

    blocks = RowBlocks(lambda: iter([(X.to_numpy(), Y.to_numpy())]))
    (ends,) = predict_interval(BOTH, blocks)
    assert_array_equal(ends, BOTH.predict_interval(X))
    with pytest.raises(TypeError, match="as_frame=True is for rows in memory, and X is RowBlocks"):
        predict_interval(BOTH, blocks, as_frame=True)


def test_a_method_names_the_function_that_gives_a_frame():
    with pytest.raises(
        TypeError, match=r"'as_frame'; .*predict_interval\(model, X, as_frame=True\)"
    ):
        BOTH.predict_interval(X, as_frame=True)
