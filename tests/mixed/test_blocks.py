"""Mixed models of rows in blocks against those of the same rows in an array."""

import numpy as np
import pandas as pd
import pytest

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.blocks import RowBlocks
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.mixed.collapsed import CollapsedPosterior
from skbayes_sgld.mixed.pooled import pool_rows
from skbayes_sgld.rows.reading import read_rows
from tests.marks import SHORT, short_chains, slow

GROUPS = {"shop": ["intercept", "price"]}


def make_rows(n=3000, n_shops=8, seed=0):
    """Rows whose later shops have their first rows late, with a column of two values."""
    rng = np.random.default_rng(seed)
    shop = np.sort(rng.integers(0, n_shops, n))
    shop[n // 3 :] = rng.integers(0, n_shops, n - n // 3)
    X = pd.DataFrame(
        {
            "price": rng.normal(3.0, 1.0, n),
            "shop": np.array([f"s{k}" for k in range(n_shops)])[shop],
            "open": (rng.random(n) < 0.2).astype(float),
            "age": rng.integers(20, 60, n).astype(float),
        }
    )
    effect = rng.normal(size=(2, n_shops))
    eta = 0.5 * X["price"] + X["open"] + effect[0][shop] + 0.3 * effect[1][shop] * X["price"]
    return X, (eta + 0.5 * rng.normal(size=n)).to_numpy()


def in_blocks(X, y, *beside, size=250):
    """Blocks of the rows."""

    def read():
        for first in range(0, len(y), size):
            rows = slice(first, first + size)
            yield X.iloc[rows], y[rows], *(each[rows] for each in beside)

    return RowBlocks(read)


def posteriors(model, rows, blocks):
    """Collapsed posteriors of rows in arrays and in blocks."""
    found = []
    for arguments in (rows, (blocks,)):
        X, y, weight = (*arguments, None, None)[:3]
        unread = read_rows(X, y, weight, {}, model)
        settings = model._settings()
        target, read = unread.encode(model._target(unread), model)
        bound, _ = model._bind(settings, model._model(settings, target.likelihood, read), read)
        found.append(bound)
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("curve", [None, {"age": 6}])
def test_normal_rows_in_blocks_have_the_density_of_rows_in_an_array(weighted, curve):
    X, y = make_rows()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else None
    beside = () if weight is None else (weight,)
    model = SGLDLinearRegression(group_effects=GROUPS, smooth_effects=curve)
    array, pooled = posteriors(model, (X, y, weight), in_blocks(X, y, *beside))
    if curve is None:
        assert len(pooled.y) == 8 * 2 * 4  # of 8 shops and 4 columns, y among them
    array, pooled = CollapsedPosterior(array), CollapsedPosterior(pooled)
    theta = array.start() + 0.3 * np.random.default_rng(2).normal(size=(5, array.n_params))
    (a, slope_a), (b, slope_b) = array.value_and_grad(theta), pooled.value_and_grad(theta)
    np.testing.assert_allclose(b, a, rtol=1e-9)
    np.testing.assert_allclose(slope_b, slope_a, rtol=1e-6, atol=1e-7 * np.abs(slope_a).max())
    variance = np.full(5, 0.3)
    normals = np.random.default_rng(3).normal(size=(5, array.model.n_linear))
    h = theta[:, :-1]
    drawn = [each.marginal.draw(h, variance, normals) for each in (array, pooled)]
    np.testing.assert_allclose(*drawn, rtol=1e-7, atol=1e-8)


@pytest.fixture(scope="module")
def of_900():
    """Model of 900 rows in an array."""
    return SGLDLinearRegression(group_effects=GROUPS, random_state=0).fit(*make_rows(900))


def assert_near(summary, array):
    """Raise if means differ by more than ten standard errors of the second."""
    error = 5 * array["mcse_mean"] + 1e-9
    assert (abs(summary["mean"] - array["mean"]) < 2 * error).all()


def test_fits_and_predictions_of_blocks_are_those_of_rows_in_an_array():
    X, y = make_rows()
    blocks = in_blocks(X, y)
    array = SGLDLinearRegression(group_effects=GROUPS, random_state=0).fit(X, y)
    model = SGLDLinearRegression(group_effects=GROUPS, random_state=0).fit(blocks)
    assert blocks.n_passes == 0 and list(model.group_effects_.index) == list(
        array.group_effects_.index
    )
    assert_near(model.summary(), array.summary())
    new = X[:300].assign(shop=["new"] * 300)
    for rows in (X[:700], new):
        parts = list(model.predict(in_blocks(rows, y[: len(rows)])))
        np.testing.assert_allclose(np.concatenate(parts), model.predict(rows))
    population = list(model.predict(blocks, groups="population"))
    np.testing.assert_allclose(np.concatenate(population), model.predict(X, groups="population"))
    np.testing.assert_allclose(model.score(blocks), model.score(X, y))


@short_chains
@pytest.mark.parametrize("model", [SGLDLogisticRegression, slow(SGLDPoissonRegressor)])
def test_other_likelihoods_keep_rows(model):
    X, y = make_rows(600, 5)
    y = np.where(y > 2, "yes", "no") if model is SGLDLogisticRegression else np.rint(abs(y))
    made = model(group_effects={"shop": "intercept"}, random_state=0, **SHORT)
    array = made.fit(X, y).summary()["mean"]
    np.testing.assert_allclose(made.fit(in_blocks(X, y)).summary()["mean"], array, rtol=1e-12)


def test_a_missing_label_names_its_block():
    X, y = make_rows()
    X.loc[600, "shop"] = None
    with pytest.raises(ValueError, match="block 2: X has no label in column 'shop' in 1 rows"):
        SGLDLinearRegression(group_effects=GROUPS).fit(in_blocks(X, y))


def test_pooled_rows_have_the_sums_of_products_of_their_cells():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 3, 500), 1e4 + rng.normal(size=(500, 3)) ** 3])
    y, weight = rng.normal(size=500) * 1e3, rng.gamma(2.0, size=500)
    X[:, 3] = X[:, 2]  # a copy
    few, values = pool_rows(X, RowValues(y, weight), [0])
    assert len(few) == 3 * 2 * 4
    for cell in range(3):
        sums = []
        for Z, t, w in ((X, y, weight), (few, values.y, values.weight)):
            at = Z[:, 0] == cell
            columns = np.column_stack([np.ones(at.sum()), Z[at, 1:] - 1e4, t[at]])
            sums.append((w[at, None] * columns).T @ columns)
        np.testing.assert_allclose(*sums, rtol=1e-8, atol=1e-6)


def test_rows_of_dask_have_the_labels_of_all_partitions(of_900):
    dd = pytest.importorskip("dask.dataframe")
    X, y = make_rows(900)
    X["shop"] = X["shop"].astype("category")
    frame = dd.from_pandas(X.assign(y=y), npartitions=4)
    rows = frame[list(X.columns)]
    model = SGLDLinearRegression(group_effects=GROUPS, random_state=0).fit(rows, frame["y"])
    assert set(model.group_effects_.index) == set(of_900.group_effects_.index)
    assert_near(model.summary(), of_900.summary())
    np.testing.assert_allclose(model.predict(rows).compute(), model.predict(X))
    order = np.argsort(X["shop"].astype(str).to_numpy(), kind="stable")[::-1]
    other = dd.from_pandas(X.assign(y=y).iloc[order].reset_index(drop=True), npartitions=3)
    score = model.score(other[list(X.columns)], other["y"])
    np.testing.assert_allclose(score, model.score(X, y))


# the first batch has three shops, and a posterior of heavy tails
@pytest.mark.filterwarnings("ignore:The standard deviation of coef.price. has a Monte Carlo error")
@pytest.mark.parametrize(
    "effects",
    [
        {"group_effects": GROUPS},
        pytest.param({"smooth_effects": {"age": 6}}, marks=pytest.mark.slow),
    ],
)
def test_batches_whose_labels_come_later_have_the_posterior_of_all_rows(of_900, effects):
    (X, y), array = make_rows(900), of_900
    if "smooth_effects" in effects:
        X = X.drop(columns="shop")
        array = SGLDLinearRegression(**effects, random_state=0).fit(X, y)
    model = SGLDLinearRegression(**effects, random_state=0)
    for some in (slice(0, 300), slice(300, 900)):
        model.partial_fit(X[some], y[some])
    assert_near(model.summary(), array.summary())
    if "group_effects" in effects:
        assert list(model.group_effects_.index) == list(array.group_effects_.index)
        with pytest.raises(ValueError, match="changed since the last batch"):
            model.set_params(group_effects={"shop": "intercept"}).partial_fit(X, y)
        with pytest.raises(ValueError, match="set to None since the last batch"):
            model.set_params(group_effects=None).partial_fit(X[["price"]], y)


@pytest.mark.slow
def test_batches_of_other_likelihoods_have_the_posterior_of_all_rows():
    X, y = make_rows(600, 5)
    y = np.where(y > 2, "yes", "no")
    made = SGLDLogisticRegression(group_effects={"shop": "intercept"}, random_state=0)
    expected = made.fit(X, y).summary()
    model = SGLDLogisticRegression(group_effects={"shop": "intercept"}, random_state=0)
    model.partial_fit(X[:400], y[:400], classes=["no", "yes"]).partial_fit(X[400:], y[400:])
    assert_near(model.summary(), expected)


@pytest.mark.slow
def test_forgotten_batches_have_smaller_weights():
    X, y = make_rows(1000)
    weight = np.repeat([0.25, 0.5, 1.0], [400, 300, 300])
    model = SGLDLinearRegression(group_effects=GROUPS, random_state=0)
    expected = model.fit(X, y, weight).summary()
    model = SGLDLinearRegression(group_effects=GROUPS, forgetting=0.5, random_state=0)
    for rows in (slice(0, 400), slice(400, 700), slice(700, 1000)):
        model.partial_fit(X[rows], y[rows])
    assert_near(model.summary(), expected)


def test_row_groups_of_parquet_may_have_their_own_categories(of_900, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, y = make_rows(900)
    frame = X.assign(y=y)
    schema = pa.schema(
        [(name, pa.float64()) for name in ("price", "open", "age", "y")]
        + [("shop", pa.dictionary(pa.int32(), pa.string()))]
    )
    path = tmp_path / "rows.parquet"
    with parquet.ParquetWriter(path, schema) as writer:
        for first in range(0, 900, 300):
            part = frame[first : first + 300].astype({"shop": "category"})[schema.names]
            writer.write_table(pa.Table.from_pandas(part, schema, preserve_index=False))
    columns = list(X.columns)
    with pytest.raises(TypeError, match="column 'shop' .* labels="):
        RowBlocks.from_parquet(path, "y", columns)
    with pytest.raises(ValueError, match="labels has 'store'"):
        RowBlocks.from_parquet(path, "y", columns, labels=["store"])
    blocks = RowBlocks.from_parquet(path, "y", columns, labels=["shop"])
    model = SGLDLinearRegression(group_effects=GROUPS, random_state=0).fit(blocks)
    assert list(model.group_effects_.index) == list(of_900.group_effects_.index)
    assert_near(model.summary(), of_900.summary())
    np.testing.assert_allclose(np.concatenate(list(model.predict(blocks))), model.predict(X))


def test_rows_that_do_not_fit_into_memory_raise_an_error_that_says_how_many_do(monkeypatch):
    X, y = make_rows(900)
    monkeypatch.setattr("skbayes_sgld._memory._ASKED", 0)
    monkeypatch.setattr("skbayes_sgld._memory.available_memory", lambda: 30_000)
    model = SGLDPoissonRegressor(group_effects=GROUPS)
    with pytest.raises(MemoryError, match="keep rows in memory.* give at most 375 rows"):
        model.fit(in_blocks(X, np.rint(abs(y))))
    assert not hasattr(model, "coef_")


def test_a_batch_that_is_refused_leaves_the_batches_before_it(of_900):
    X, y = make_rows(900)
    model = SGLDLinearRegression(group_effects=GROUPS, random_state=0).partial_fit(X[:600], y[:600])
    expected = model.predict(X)
    wrong = X[600:].copy()
    wrong.loc[700, "shop"] = None
    for rows, message in [(wrong, "no label"), (X.iloc[600:, :3], "features")]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(rows, y[600:])
    np.testing.assert_array_equal(model.predict(X), expected)
    assert_near(model.partial_fit(X[600:], y[600:]).summary(), of_900.summary())
