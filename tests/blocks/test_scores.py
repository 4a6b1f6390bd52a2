"""Scores of rows in blocks are those of the rows in one array, and so are fits over exposures."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import (
    RowBlocks,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)
from skbayes_sgld.blocks import files
from tests.blocks.windows import blocks_of

da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask", reason="some rows need the extra 'dask'")
RNG = np.random.default_rng(0)
N = 1200
X = RNG.standard_normal((N, 2))
ETA = X @ [1.0, -0.5]
WEIGHT = RNG.gamma(1.0, size=N) * (RNG.random(N) < 0.9)
EXPOSURE = RNG.uniform(0.2, 5.0, N)
FEW = {"n_draws": 250, "n_chains": 2, "random_state": 0}
TARGETS = {
    SGLDLinearRegression: ETA + RNG.standard_normal(N) + 1e6,  # of a mean a million sds from 0
    SGLDLogisticRegression: np.where(ETA + RNG.logistic(size=N) > 0, "yes", "no"),
    SGLDPoissonRegressor: RNG.poisson(np.exp(0.5 * ETA) * EXPOSURE),
}


@pytest.fixture(scope="module")
def models():
    return {kind: kind(**FEW).fit(X, y) for kind, y in TARGETS.items()}


@pytest.fixture(autouse=True)
def this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


in_blocks = partial(blocks_of, size=500)


@pytest.mark.parametrize("kind", TARGETS)
def test_a_score_of_blocks_is_that_of_the_array(models, kind):
    model, y = models[kind], TARGETS[kind]
    # means of many rows are in single precision
    assert model.score(in_blocks(X, y)) == pytest.approx(model.score(X, y), rel=1e-7)
    expected = pytest.approx(model.score(X, y, WEIGHT), rel=1e-7)
    assert model.score(in_blocks(X, y, WEIGHT)) == expected
    chunked = (da.from_array(values, chunks=500) for values in (y, WEIGHT))
    assert model.score(da.from_array(X, chunks=(500, 1)), *chunked) == expected


def test_a_score_knows_the_names_of_columns():
    table = pd.DataFrame(X, columns=["a", "b"])
    y = TARGETS[SGLDLogisticRegression]
    model = SGLDLogisticRegression(**FEW).fit(table, y)
    frame = dd.from_pandas(table.assign(y=y), npartitions=3)
    assert model.score(frame[["a", "b"]], frame["y"]) == model.score(table, y)
    with pytest.raises(ValueError, match="feature names"):
        model.score(frame[["b", "a"]], frame["y"])


def test_what_cannot_be_scored_is_named(models):
    linear, logistic = models[SGLDLinearRegression], models[SGLDLogisticRegression]
    with pytest.raises(ValueError, match="the weights of all rows are zero"):
        linear.score(in_blocks(X, ETA, np.zeros(N)))
    with pytest.raises(ValueError, match="y of block 0 has dtype <U3"):
        linear.score(in_blocks(X, TARGETS[SGLDLogisticRegression]))
    with pytest.raises(TypeError, match="y is given beside RowBlocks"):
        logistic.score(in_blocks(X, ETA), ETA)
    with pytest.raises(TypeError, match="the blocks have exposures"):
        SGLDOrdinalClassifier().fit(in_blocks(X, ETA > 0, None, EXPOSURE))
    with pytest.raises(TypeError, match="transform each block where it is read"):
        make_pipeline(StandardScaler(), SGLDLogisticRegression()).fit(in_blocks(X, ETA > 0))


def test_fits_and_scores_over_exposures(tmp_path, monkeypatch):
    y, weight = TARGETS[SGLDPoissonRegressor], WEIGHT
    expected = SGLDPoissonRegressor(**FEW).fit(X, y, weight, exposure=EXPOSURE)
    score = expected.score(X, y, weight, exposure=EXPOSURE)
    monkeypatch.setattr(files, "LARGE", 1)
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", float, X.shape)
    mapped[:] = X
    chunked = [da.from_array(v, chunks=400) for v in (y, weight, EXPOSURE)]
    for rows, (beside, by_row) in (
        (in_blocks(X, y, weight, EXPOSURE), ((), {})),
        (mapped, ((y, weight), {"exposure": EXPOSURE})),
        (da.from_array(X, chunks=(400, 2)), (chunked[:2], {"exposure": chunked[2]})),
    ):
        found = SGLDPoissonRegressor(**FEW).fit(rows, *beside, **by_row)
        # the scales of the columns are added up in another order
        draws, same = found.posterior_.values, expected.posterior_.values
        np.testing.assert_allclose(draws, same, rtol=1e-8, atol=1e-10)
        assert found.score(rows, *beside, **by_row) == pytest.approx(score, rel=1e-7)
    one, each = (
        SGLDPoissonRegressor(**FEW).fit(mapped, y, weight, exposure=e)
        for e in (2.0, 2.0 + 0 * X[:, 0])
    )
    np.testing.assert_array_equal(one.posterior_.values, each.posterior_.values)


def test_a_score_of_blocks_needs_the_exposures_that_fit_had():
    y = TARGETS[SGLDPoissonRegressor]
    model = SGLDPoissonRegressor(**FEW).fit(X, y, exposure=EXPOSURE)
    lazy = da.from_array(X, chunks=(400, 2))
    for rows, beside in ((in_blocks(X, y), ()), (X, (y,)), (lazy, (y,))):
        with pytest.raises(ValueError, match="exposure is None.*with exposures"):
            model.score(rows, *beside)
    model.score(in_blocks(X, y / EXPOSURE, EXPOSURE))  # rates


def test_wrong_exposures_name_the_row():
    y, wrong = TARGETS[SGLDPoissonRegressor], EXPOSURE.copy()
    wrong[707] = -1.0
    with pytest.raises(
        ValueError,
        match="exposure, n_trials or n_averaged, in row 207 of block 1 is -1; .*positive",
    ):
        SGLDPoissonRegressor().fit(in_blocks(X, y, None, wrong))
    with pytest.raises(TypeError, match="exposure is given beside RowBlocks"):
        SGLDPoissonRegressor().fit(in_blocks(X, y), exposure=EXPOSURE)


def test_blocks_say_what_they_are(tmp_path):
    of_function = in_blocks(X.astype(np.float32), ETA)
    assert "2 columns in float32; rows are counted in the first pass" in repr(of_function)
    SGLDLinearRegression(**FEW).fit(of_function)
    assert repr(of_function).endswith("1,200 rows of 2 columns in float32, 9.6 kB)")
    for name, values in (("X", X), ("y", ETA)):
        np.save(tmp_path / f"{name}.npy", values)
    of_files = RowBlocks.from_npy(tmp_path / "X.npy", tmp_path / "y.npy")
    assert "X.npy: 1,200 rows of 2 columns in float64, 19.2 kB" in repr(of_files)


@pytest.mark.parametrize(("value", "what"), [(1e300, "values of size 1e.300"), (-1.0, "value -1;")])
def test_counts_that_no_score_takes_are_refused_by_their_block(value, what, models):
    model, y = models[SGLDPoissonRegressor], TARGETS[SGLDPoissonRegressor].astype(float)
    wrong = np.append(y[30:-1], value)
    with pytest.raises(ValueError, match=f"^block 1: y has .*{what}"):
        model.score(RowBlocks(lambda: [(X[:30], y[:30]), (X[30:], wrong)]))
