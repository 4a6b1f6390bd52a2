"""Predictions of Dask's arrays and frames: lazy, in their blocks, and those of arrays in memory."""

import numpy as np
import pandas as pd
import pytest

from skbayes_sgld import (
    SGDMAPClassifier,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)

dask = pytest.importorskip("dask", reason="the rows need the extra 'dask'")
da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
COLUMNS = ["a", "b", "c"]
FEW = {"n_draws": 250, "n_chains": 2, "random_state": 0}
SIZES = (30, 0, 7, 163)


@pytest.fixture(autouse=True, scope="module")
def this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((200, 3)), columns=COLUMNS)
    return X, X.to_numpy() @ [1.0, -2.0, 0.5] + rng.standard_normal(200)


@pytest.fixture(scope="module")
def models(rows):
    X, y = rows
    return {
        "linear": SGLDLinearRegression(**FEW).fit(X, y),
        "outputs": SGLDLinearRegression(**FEW).fit(X, np.column_stack([y, -y])),
        "binary": SGLDLogisticRegression(**FEW).fit(X, np.where(y > 0, "yes", "no")),
        "classes": SGDMAPClassifier(random_state=0, tol=1e9).fit(X, np.digitize(y, [-1, 1])),
        "counts": SGLDPoissonRegressor(**FEW).fit(X, np.clip(y, 0, 3).astype(int)),
    }


def frame_of(X):
    return dd.from_pandas(X, npartitions=3)


def array_of(X):
    return da.from_array(X.to_numpy(), chunks=(SIZES, (2, 1))).astype(X.to_numpy().dtype)


CALLS = [
    (frame_of, "linear", "predict", {"return_std": True}),
    (array_of, "linear", "predict_interval", {"kind": "mean"}),
    (array_of, "outputs", "predict", {"return_std": True}),
    (frame_of, "outputs", "predict_interval", {"coverage": [0.5, 0.9]}),
    (array_of, "binary", "predict", {}),
    (frame_of, "binary", "predict_proba", {}),
    (array_of, "binary", "decision_function", {}),
    (frame_of, "classes", "predict", {}),
    (array_of, "classes", "predict_proba_interval", {"coverage": 0.8}),
    (array_of, "counts", "predict_quantiles", {"q": [0.1, 0.9]}),
]


# scikit-learn warns of blocks, which are arrays without names
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize(("make", "name", "method", "given"), CALLS)
def test_predictions_of_dask_are_those_of_arrays(models, rows, make, name, method, given):
    X, model = rows[0], models[name]
    expected = getattr(model, method)(X, **given)
    lazy = getattr(model, method)(make(X), **given)
    pairs = zip(lazy, expected, strict=True) if isinstance(lazy, tuple) else [(lazy, expected)]
    for got, wanted in pairs:
        assert isinstance(got, da.Array)
        assert (got.dtype, got.shape[1:]) == (wanted.dtype, wanted.shape[1:])
        assert got._meta.dtype == wanted.dtype
        if make is array_of:
            assert got.chunks[0] == SIZES
        values = got.compute()
        if wanted.dtype.kind == "f":  # many rows are computed in single precision
            np.testing.assert_allclose(values, wanted, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(values, wanted)


def test_nothing_is_computed_before_it_is_asked_for(models):
    seen = []

    def make(block):
        seen.append(len(block))
        return block

    X = da.zeros((40, 3), chunks=(10, 3)).map_blocks(make, dtype=float, meta=np.empty((0, 0)))
    with pytest.warns(UserWarning, match="feature names"):
        lazy = models["linear"].predict(X)
        assert seen == []
        lazy[:10].compute()
    assert seen == [10]  # and of the rest nothing


def test_exposures_go_with_their_rows(models, rows):
    X, model = frame_of(rows[0]), models["counts"]
    values = np.linspace(0.5, 4.0, len(rows[0]))
    frame = X.assign(exposure=dd.from_pandas(pd.Series(values), npartitions=3))
    got = model.predict(X, exposure=frame.exposure).compute()
    np.testing.assert_allclose(got, model.predict(rows[0], exposure=values), rtol=1e-6)


def test_rows_that_held_the_fit_do_not_travel_with_the_model(rows):
    X, y = rows
    model = SGLDLinearRegression(**FEW).fit(X, y)
    lazy = model.predict(frame_of(X))
    sent = [task for task in dict(lazy.dask).values() if "SGLDLinear" in repr(task)]
    assert sent and "result_" in vars(model)
    assert all("result_" not in vars(value) for value in map(_model_of, sent))


def _model_of(task):
    return getattr(task, "value", task)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X: X[["b", "a", "c"]], ValueError, "same order"),
        (lambda X: X[["a", "b"]], ValueError, "missing"),
        (lambda X: X.assign(c="x"), TypeError, "column 'c' of dtype (str|object)"),
        (lambda X: X["a"], ValueError, "1 dimension"),
        (lambda X: da.zeros((9, 3), chunks=3).astype(str), TypeError, "dtype <U"),
        (lambda X: da.zeros(9, chunks=3), ValueError, "1 dimension"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_anything_runs(
    models, rows, change, error, message
):
    with pytest.raises(error, match=message):
        models["linear"].predict_interval(change(frame_of(rows[0])))
