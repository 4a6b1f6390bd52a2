"""Rows in memory maps, files of NumPy and Parquet; predictions of them."""

import os
import warnings

import numpy as np
import pandas as pd
import pytest

from skbayes_sgld import RowBlocks, SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.blocks import files
from skbayes_sgld.blocks.rows import as_source

pa = pytest.importorskip("pyarrow", reason="files of Parquet need the extra 'parquet'")
parquet = pytest.importorskip("pyarrow.parquet")
RNG = np.random.default_rng(0)
N = 4000
X = RNG.standard_normal((N, 3)).astype(np.float32)
Y = (RNG.random(N) < 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.5]))).astype(int)
WEIGHT = RNG.integers(0, 3, N).astype(float)


def fit(*data):
    return SGLDLogisticRegression(n_draws=300, n_chains=2, random_state=0).fit(*data)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(files, "_BLOCK_NUMBERS", 3000)
    monkeypatch.setattr(files, "LARGE", 3000)


@pytest.fixture
def mapped(tmp_path):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


@pytest.fixture
def table(tmp_path):
    columns = {name: X[:, j] for j, name in enumerate("abc")}
    labels = np.array(["no", "yes"])[Y]
    folder = tmp_path / "parts"
    folder.mkdir()
    whole = pa.table({**columns, "label": labels, "weight": WEIGHT})
    parquet.write_table(whole.slice(0, 2500), folder / "0.parquet", row_group_size=700)
    parquet.write_table(whole.slice(2500), folder / "1.parquet")
    return folder


@pytest.fixture(scope="module")
def expected():
    return fit(X, Y).posterior_.values


def test_a_large_memory_map_is_read_in_blocks(mapped, expected):
    source = as_source(mapped, Y)
    assert isinstance(source, RowBlocks) and source.n_rows == N
    assert as_source(np.asarray(mapped), Y) is None
    assert as_source(np.asfortranarray(mapped), Y) is None
    assert as_source(mapped[:900], Y[:900]) is None  # not large
    assert np.array_equal(fit(mapped, Y).posterior_.values, expected)


def test_memory_maps_files_and_parquet_are_the_same_blocks(mapped, table, tmp_path):
    np.save(tmp_path / "y.npy", Y)
    np.save(tmp_path / "w.npy", WEIGHT)
    of_files = RowBlocks.from_npy(
        tmp_path / "X.npy", tmp_path / "y.npy", tmp_path / "w.npy", pool_size=900
    )
    of_map = as_source(mapped, Y, WEIGHT)
    of_map.pool_size = 900
    draws = [fit(source).posterior_.values for source in (of_files, of_map)]
    assert np.array_equal(*draws)
    of_parquet = RowBlocks.from_parquet(table, target="label", weight="weight", pool_size=900)
    assert of_parquet.n_rows == N and of_parquet.feature_names == ["a", "b", "c"]
    model = fit(of_parquet)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that blocks of a file with names were without them
        predicted = np.concatenate(list(model.predict_proba(of_parquet)))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    np.testing.assert_allclose(predicted, model.predict_proba(frame), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="feature names should match"):
        next(model.predict(RowBlocks.from_parquet(table, "label", columns=["c", "b", "a"])))
    sd = draws[0].std(axis=(0, 1))
    means = [values.mean(axis=(0, 1)) for values in (draws[0], model.posterior_.values)]
    assert np.abs((means[0] - means[1]) / sd).max() < 0.15


def test_chosen_columns_of_parquet(table, expected):
    source = RowBlocks.from_parquet(table / "0.parquet", target="label", columns=["c", "a"])
    assert [np.shape(block[0])[1] for block in source] == [2] * len(list(source))
    rows = np.concatenate([block[0] for block in source])
    assert rows.dtype == np.float32 and np.array_equal(rows, X[:2500, [2, 0]])
    with pytest.raises(ValueError, match="has no column 'd'; it has a, b, c, label, weight"):
        RowBlocks.from_parquet(table, target="d")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0, None, 3.0], "y": [0.0, 1.0, 2.0]}, "X is nan in row 1, column 0 of block 0"),
        ({"a": [True, None, True], "y": [0.0, 1.0, 2.0]}, "X is nan in row 1, column 0 of block"),
        ({"a": [1.0, 2.0, 3.0], "y": [0.0, None, 2.0]}, "y is nan in row 1 of block 0"),
        ({"a": [1.0, 2.0, 3.0], "y": ["no", None, "yes"]}, "y is None in row 1 of block 0; give"),
        ({"a": [1.0, 2.0, 3.0], "y": [True, False, None]}, "y is None in row 2 of block 0; give"),
    ],
)
def test_a_missing_value_of_parquet_is_named(columns, message, tmp_path):
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=message):
        fit(RowBlocks.from_parquet(tmp_path / "t.parquet", target="y"))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.array(["2026-01-01", "2026-01-02"], "M8[us]"), "timestamp"),
        (np.array([1, 2], "m8[s]"), "duration"),
        (["red", "green"], "string"),
        (pa.array(["red", "green"]).dictionary_encode(), "string"),
        ([[1.0], [2.0]], "list"),
    ],
)
def test_a_column_of_parquet_that_has_no_numbers_is_named(values, kind, tmp_path):
    table = pa.table({"a": [1.0, 2.0], "when": values, "y": [0, 1]})
    parquet.write_table(table, tmp_path / "t.parquet")
    for weight in (None, "when"):
        with pytest.raises(
            TypeError, match=f"column 'when' of .*t.parquet is of type {kind}.*columns="
        ):
            RowBlocks.from_parquet(tmp_path / "t.parquet", target="y", weight=weight)
    assert RowBlocks.from_parquet(tmp_path / "t.parquet", "y", columns=["a"]).n_features == 1


def test_parquet_whose_columns_changed_between_passes_is_named(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": [1.0, 2.0], "y": [0, 1]}), path)
    source = RowBlocks.from_parquet(path, target="y")
    parquet.write_table(pa.table({"a": ["one", "two"], "y": [0, 1]}), path)
    with pytest.raises(TypeError, match="column 'a' of .*t.parquet is of type string"):
        fit(source)


def test_names_of_columns_in_an_error_have_no_control_characters(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"\x1b[2Ja": [1.0, 2.0], "y": [0, 1]}), path)
    with pytest.raises(ValueError, match="has no column 'b'; it has .*, y") as caught:
        RowBlocks.from_parquet(path, target="b")
    assert str(caught.value).isprintable()


def test_truncated_files_are_found_out(mapped, tmp_path):
    np.save(tmp_path / "y.npy", Y)
    source = RowBlocks.from_npy(tmp_path / "X.npy", tmp_path / "y.npy")
    os.truncate(tmp_path / "X.npy", 20_000)
    with pytest.raises(ValueError, match=r"X.npy ends before row 1999 of 4000: it was truncated"):
        fit(source)
    with pytest.raises(ValueError, match="X.npy, has 20000 bytes, and the memory map needs"):
        fit(mapped, Y)


def test_truncated_and_broken_parquet_is_named(table):
    source, part = RowBlocks.from_parquet(table, target="label"), table / "1.parquet"
    whole = part.read_bytes()
    for content in (whole[:-2000], whole[:4] + bytes(40) + whole[44:]):
        part.write_bytes(content)
        with pytest.raises(ValueError, match="1.parquet is not a file of Parquet, or not a whole"):
            fit(source)
    part.write_bytes(whole[:-2000])
    with pytest.raises(ValueError, match="1.parquet is not a file of Parquet, or not a whole one"):
        RowBlocks.from_parquet(table, target="label")


def test_what_is_no_path_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"X='X\\x00.npy' has a null character"):
        RowBlocks.from_npy("X\0.npy", tmp_path / "y.npy")
    with pytest.raises(ValueError, match=r"path='X\\x00' has a null character"):
        RowBlocks.from_parquet("X\0", target="y")
    np.save(tmp_path / "X.npy", np.ones((2, 1)))
    np.save(tmp_path / "y.npy", np.ones(2))
    with pytest.raises(TypeError, match=r"n_trials=3 is not a path; give a string or a pathlib"):
        RowBlocks.from_npy(tmp_path / "X.npy", tmp_path / "y.npy", n_trials=3)


@pytest.mark.parametrize("shape", [(10, 0), (0, 3)])
def test_files_of_no_numbers_are_refused(shape, tmp_path):
    np.save(tmp_path / "X.npy", np.empty(shape))
    np.save(tmp_path / "y.npy", np.empty(shape[0]))
    message = rf"X.npy has an array of shape \({shape[0]}, {shape[1]}\): it holds no numbers"
    with pytest.raises(ValueError, match=message):
        RowBlocks.from_npy(tmp_path / "X.npy", tmp_path / "y.npy")


def test_files_that_are_written_anew_between_passes_are_found_out(tmp_path):
    paths = [tmp_path / "X.npy", tmp_path / "y.npy"]
    for path, values in zip(paths, (X, Y), strict=True):
        np.save(path, values)
    source = RowBlocks.from_npy(*paths, pool_size=900)
    fit(source)
    np.save(paths[1], Y ^ (np.arange(N) >= 3000))
    with pytest.raises(ValueError, match=f"block 3 is not .*: y changed; file {paths[0]} must"):
        fit(source)


def test_files_that_do_not_go_together_are_refused(mapped, tmp_path):
    np.save(tmp_path / "y.npy", Y[:-1])
    np.save(tmp_path / "F.npy", np.asfortranarray(X))
    with pytest.raises(ValueError, match=r"y.npy has shape \(3999,\); X has 4000 rows"):
        RowBlocks.from_npy(tmp_path / "X.npy", tmp_path / "y.npy")
    with pytest.raises(ValueError, match="Fortran order"):
        RowBlocks.from_npy(tmp_path / "F.npy", tmp_path / "y.npy")
    with pytest.raises(ValueError, match=r"y has shape \(3999,\); X has 4000 rows"):
        fit(mapped, Y[:-1])


# ---- predictions --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return SGLDLogisticRegression(n_draws=250, n_chains=1, random_state=0).fit(X[:500], Y[:500])


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("predict", (N,)),
        ("predict_proba", (N, 2)),
        ("predict_log_proba", (N, 2)),
        ("decision_function", (N,)),
        ("predict_proba_interval", (N, 2, 2)),
    ],
)
def test_predictions_of_blocks_are_blocks_and_go_into_an_array(
    name, shape, model, mapped, tmp_path
):
    predict = getattr(model, name)
    expected = predict(X[:900])
    for block in ((X, Y), X):
        rows = RowBlocks(lambda block=block: [block])
        first = next(predict(rows))
        assert first.shape == shape and np.allclose(first[:900], expected, atol=1e-5)
    out = np.lib.format.open_memmap(tmp_path / "out.npy", "w+", expected.dtype, shape=shape)
    assert predict(mapped, out=out) is out
    assert np.allclose(out, np.concatenate(list(predict(rows))), atol=1e-5)
    with pytest.raises(ValueError, match="out has shape|out is memmap of shape"):
        predict(mapped, out=np.empty((N, 7)))
    with pytest.raises(ValueError, match="give an array of 4000 rows"):
        predict(mapped, out=np.empty(5))
    with pytest.raises(TypeError, match="out is for arrays and memory maps"):
        predict(rows, out=out)


def test_predictions_of_a_regression_by_block():
    y = X @ [1.0, 2.0, 3.0] + RNG.standard_normal(N)
    model = SGLDLinearRegression(n_draws=250, random_state=0).fit(X[:200], y[:200])
    rows = RowBlocks(lambda: [(X[:1000], y[:1000]), (X[1000:], y[1000:])])
    mean, std = (
        np.concatenate(parts) for parts in zip(*model.predict(rows, return_std=True), strict=True)
    )
    expected = model.predict(X, return_std=True)
    assert np.allclose(mean, expected[0], atol=1e-5) and np.allclose(std, expected[1], atol=1e-5)
    intervals = list(model.predict_interval(rows, coverage=0.5))
    assert [len(part) for part in intervals] == [1000, 3000]
    with pytest.raises(ValueError, match="predict returns several arrays"):
        model.predict(X, return_std=True, out=np.empty(N))


@pytest.mark.parametrize("path", ["s3://bucket/rows.parquet", "gs://b", ["http://host/a", "b"]])
def test_addresses_are_refused_without_a_filesystem(path):
    with pytest.raises(ValueError, match="is an address, and from_parquet opens no connection"):
        RowBlocks.from_parquet(path, target="y")


def test_files_are_opened_by_the_filesystem_that_is_given(tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    pd.DataFrame({"a": [1.0, 2.0, 4.0], "y": [1.0, 3.0, 2.0]}).to_parquet(tmp_path / "t.parquet")
    there = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    source = RowBlocks.from_parquet("t.parquet", target="y", filesystem=there)
    assert source.n_rows == 3


@pytest.mark.parametrize("path", [0, None, [0], b"x"])
def test_what_is_no_path_is_refused_by_name(path):
    with pytest.raises(TypeError, match="path=.* is not a path"):
        RowBlocks.from_parquet(path, target="y")
