"""Effects of rows of any kind are those of a pandas frame, and steps see the user's own kind."""

import datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skbayes_sgld import SGLDLinearRegression, effects
from skbayes_sgld.prediction.tables import Table
from tests.marks import slow

# the runs are short
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 120
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "zone": RNG.integers(1, 4, N),
        "x": RNG.normal(10.0, 3.0, N),
        "size": RNG.choice(["small", "large"], N),
        "old": RNG.integers(0, 2, N) > 0,
    }
)
Y = FRAME["zone"].map({1: 0.0, 2: 3.0, 3: -2.0}) + 0.5 * FRAME["x"] + RNG.normal(size=N)
STEPS = make_column_transformer(
    (OneHotEncoder(), ["zone", "size", "old"]),
    (StandardScaler(), ["x"]),
)
MODEL = SGLDLinearRegression(n_draws=50, n_chains=2, random_state=0)
FIGURES = ["estimate", "sd", "lower", "upper"]


def of_polars(frame):
    polars = pytest.importorskip("polars")
    sizes = polars.Enum(["small", "large"])
    return polars.DataFrame(frame.to_dict("list"), schema_overrides={"size": sizes})


def of_arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


def expected(frame):
    sizes = pd.CategoricalDtype(["small", "large"], ordered=True)
    return frame.assign(size=frame["size"].astype(sizes))


@pytest.mark.parametrize("kind", [of_polars, slow(of_arrow)])
def test_effects_of_frames_of_other_libraries_are_those_of_pandas(kind):
    from skbayes_sgld.plotting import PartialDependenceDisplay

    rows = kind(FRAME)
    frame = expected(FRAME) if kind is of_polars else FRAME
    model = make_pipeline(clone(STEPS), clone(MODEL)).fit(rows, Y)
    theirs = make_pipeline(clone(STEPS), clone(MODEL)).fit(frame, Y)
    for how in ("average", "at_mean"):
        found, table = effects(model, rows, kind=how), effects(theirs, frame, kind=how)
        assert found["contrast"].tolist() == table["contrast"].tolist()
        assert_allclose(found[FIGURES], table[FIGURES], rtol=1e-8, atol=1e-12)
    display = PartialDependenceDisplay.from_estimator(model, rows, "size")
    assert sorted(display.values) == ["large", "small"]
    numbers = kind(FRAME[["x", "zone"]])
    model = clone(MODEL).fit(numbers, Y)
    assert_allclose(effects(model, numbers, 0)["estimate"], model.coef_[:1], rtol=1e-9)


def polars_only(rows):
    import polars

    return rows.with_columns(polars.col("x").log().alias("log")).to_pandas()


def arrow_only(rows):
    import pyarrow.compute

    return rows.append_column("log", pyarrow.compute.ln(rows.column("x"))).to_pandas()


@pytest.mark.parametrize(("kind", "step"), [(of_polars, polars_only), (of_arrow, arrow_only)])
def test_steps_see_the_kind_of_rows_that_the_user_gave(kind, step):
    rows = kind(FRAME[["zone", "x"]].assign(x=np.abs(FRAME["x"]) + 1.0))
    encode = make_column_transformer((OneHotEncoder(), ["zone"]), ("passthrough", ["log"]))
    model = make_pipeline(FunctionTransformer(step), encode, clone(MODEL)).fit(rows, Y)
    table = effects(model, rows, n_rows=50)
    assert table["contrast"].tolist() == ["2 - 1", "3 - 1", "dy/dx"]
    x = np.abs(FRAME["x"].to_numpy()) + 1.0
    assert_allclose(effects(model, rows)["estimate"][2], model[-1].coef_[-1] * np.mean(1 / x), 1e-4)
    assert len(effects(model, rows, kind="at_mean")) == 3


def test_polars_columns_of_every_type_can_be_read_and_replaced():
    polars = pytest.importorskip("polars")
    day = datetime.date(2024, 1, 1)
    rows = polars.DataFrame(
        {
            "whole": polars.Series([1, 2, None], dtype=polars.Int16),
            "truth": [True, None, False],
            "word": ["b", "a", None],
            "kind": polars.Series(["b", "a", "b"], dtype=polars.Categorical),
            "day": [day, day, None],
        }
    )
    table = Table.of(rows)
    assert table.names == rows.columns and table.n_rows == 3
    for j, values in enumerate(([2, 1, 1], [False] * 3, ["a", "b", "b"], ["a"] * 3, [day] * 3)):
        column = table.column(j)
        assert isinstance(column, pd.Series) and len(column) == 3
        new = table.replaced(j, np.array(values) if j == 0 else values).X
        assert new.schema == rows.schema and new.to_series(j).to_list() == values
    assert table.moved(0, np.array([0.5, 1.5, 2.5])).X["whole"].to_list() == [0.5, 1.5, 2.5]
    assert table.take(np.array([2, 0, 0])).X["word"].to_list() == [None, "b", "b"]
    assert rows["whole"].to_list() == [1, 2, None]


def test_arrays_of_objects_keep_their_text():
    rows = FRAME[["size", "x", "zone"]].to_numpy(dtype=object)
    steps = make_column_transformer((OneHotEncoder(), [0, 2]), ("passthrough", [1]))
    model = make_pipeline(steps, clone(MODEL)).fit(rows, Y)
    table = effects(model, rows)
    assert table["contrast"].tolist() == ["small - large", "dy/dx", "2 - 1", "3 - 1"]
    assert len(effects(model, rows, kind="at_mean")) == 4
    assert effects(model.fit(rows.tolist(), Y), rows.tolist()).equals(table)
    alike = FRAME.assign(old=0)
    theirs = effects(make_pipeline(clone(STEPS), clone(MODEL)).fit(alike, Y), alike, "zone")
    assert_allclose(table["estimate"][2:], theirs["estimate"], atol=0.3)
