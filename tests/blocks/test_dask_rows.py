"""Passes over Dask's arrays and frames: every row once, in order, whatever their blocks."""

import operator
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from skbayes_sgld.blocks import dask_rows
from skbayes_sgld.blocks.dask_rows import check_columns
from skbayes_sgld.blocks.rows import as_source
from skbayes_sgld.blocks.source import RowSource

dask = pytest.importorskip("dask", reason="the rows need the extra 'dask'")
da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
COLUMNS = ["a", "b", "c"]


@pytest.fixture(autouse=True)
def this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3)).astype(np.float32)
    return X, rng.integers(0, 3, 500), rng.uniform(0, 2, 500)


def read(source):
    """All that a pass sees, block after block."""
    return source.reduce(lambda block: [block], operator.add)


def joined(blocks, name):
    return np.concatenate([getattr(block, name) for block in blocks])


def frame(X, y, weight, npartitions=4):
    table = pd.DataFrame(X, columns=COLUMNS).assign(y=y, w=weight)
    return dd.from_pandas(table, npartitions=npartitions)


def of_frame(make=lambda table: table, weight="w"):
    """Layout of X, y and weights as columns of one frame."""

    def layout(*rows):
        table = make(frame(*rows))
        return table[COLUMNS], table["y"], table[weight]

    return layout


def in_uneven_chunks(X, y, w):
    return (
        da.from_array(X, chunks=((1, 99, 0, 400), (2, 1))),
        da.from_array(y[:, None], chunks=33),
        da.from_array(w, chunks=500),
    )


def in_chunks_of_unknown_sizes(*rows):
    X, y, w = of_frame()(*rows)
    return X.to_dask_array(), y.to_dask_array(), w


def in_unequal_partitions(*rows):
    """Frame of parts that functions make."""
    cuts = [0, 0, 1, 400, 500]
    table = frame(*rows).compute()
    parts = [dask.delayed(table.iloc.__getitem__)(slice(*c)) for c in pairwise(cuts)]
    made = dd.from_delayed(parts, meta=table.iloc[:0], verify_meta=False)
    return made[COLUMNS], made["y"], made["w"]


def with_empty_partitions(table):
    nothing = table[table.a > 100]
    return dd.concat([nothing, table, nothing])


LAYOUTS = {
    "one chunk": lambda X, y, w: (da.from_array(X, chunks=-1), y, w),
    "uneven chunks": in_uneven_chunks,
    "a tree of three levels": lambda X, y, w: (
        da.from_array(X, chunks=(7, 3)),
        da.from_array(y, chunks=9),
        w.tolist(),
    ),
    "unknown sizes": in_chunks_of_unknown_sizes,
    "frame": of_frame(weight=["w"]),
    "unequal partitions": in_unequal_partitions,
    "empty partitions": of_frame(with_empty_partitions),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_pass_reads_every_row_once_in_order(rows, layout):
    source = as_source(*layout(*rows))
    assert isinstance(source, RowSource) and source.n_features == 3
    blocks = read(source)
    for name, wanted in zip(("X", "y", "weight"), rows, strict=True):
        found = joined(blocks, name)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    numbers = [block.number for block in blocks]
    assert numbers == sorted(set(numbers))
    assert source.n_passes == 1
    assert [b.number for b in read(source)] == numbers


def test_names_and_sizes_are_told(rows):
    array, table = (as_source(*make(*rows)) for make in (in_uneven_chunks, of_frame()))
    assert (array.feature_names, array.n_rows) == (None, 500)
    assert (table.feature_names, table.n_rows) == (COLUMNS, 500)  # counted


def test_what_rows_and_target_have_in_common_is_computed_once_a_pass(rows):
    made = []

    def make(block):
        made.append(len(block))
        return block

    base = da.from_array(rows[0], chunks=(100, 3)).map_blocks(make, meta=rows[0][:0])
    source = as_source(base[:, :2], base[:, 2])
    for n_passes in (1, 2):
        read(source)
        assert made == [100] * 5 * n_passes


def tasks_of_a_pass(source, monkeypatch):
    """Keys of the tasks of a pass that read or add up blocks."""
    seen = []

    def compute(value, what):
        seen.append(value.dask)
        return value.compute()

    monkeypatch.setattr(dask_rows, "compute", compute)
    read(source)
    return [key for key in seen[-1] if not str(key).startswith(("work-of", "sum-of"))]


def test_a_block_is_read_in_the_task_that_sums_over_it(rows, monkeypatch, tmp_path):
    """Or workers that read further blocks first would hold several."""
    pytest.importorskip("pyarrow")
    X, y, weight = rows
    frame(X, y, weight, npartitions=8).to_parquet(tmp_path)
    table = dd.read_parquet(tmp_path)
    of_files = as_source(table[COLUMNS], table["y"], table["w"])
    made = da.from_array(X, chunks=(63, 3)).map_blocks(np.copy, meta=X[:0])
    of_chunks = as_source(made[:, :2], made[:, 2])
    assert len(tasks_of_a_pass(of_files, monkeypatch)) == 8 + 1  # and the sum
    assert len(tasks_of_a_pass(of_chunks, monkeypatch)) == 8 + 1


def test_tasks_that_several_blocks_need_are_computed_once(rows):
    made = []

    def whole():
        made.append(1)
        return rows[0]

    X = da.from_delayed(dask.delayed(whole)(), rows[0].shape, rows[0].dtype).rechunk((100, 3))
    blocks = read(as_source(X, X[:, 0]))
    np.testing.assert_array_equal(joined(blocks, "X"), rows[0])
    assert len(blocks) == 5 and made == [1]


def test_text_and_categories_are_labels(rows):
    X, y, _ = rows
    names = np.array(["no", "maybe", "yes"])[y]
    table = frame(X, pd.Categorical(names), 1.0)
    np.testing.assert_array_equal(joined(read(as_source(table[COLUMNS], table["y"])), "y"), names)


def test_numbers_of_any_kind_are_numbers(rows):
    X, y, _ = rows
    table = frame(X, y, 1.0)
    kinds = table.assign(a=table.a > 0, b=table.b.astype("Float64"))
    for block in read(as_source(kinds[COLUMNS], kinds["y"].astype("Int64"))):
        assert block.X.dtype == np.float64
        assert set(block.X[:, 0]) == {0.0, 1.0}
    holes = table.assign(b=table.b.astype("Float64").mask(table.b > 2))
    with pytest.raises(ValueError, match=r"X is nan in row \d+, column 1 of block"):
        read(as_source(holes[COLUMNS], holes["y"]))


def in_chunks(X):
    return da.from_array(X, chunks=50)


def in_other_orders(*rows):
    table = frame(*rows)
    orders = [list(table.columns), ["b", "a", "c", "y", "w"]]
    parts = [dask.delayed(table.compute().__getitem__)(order) for order in orders]
    made = dd.from_delayed(parts, meta=table._meta, verify_meta=False)
    return made, dd.concat([table["y"], table["y"]]).repartition(npartitions=2)


REFUSED = {
    "columns in another order": (
        in_other_orders,
        "X of block 1 has the columns b, a, c, y, w, and",
    ),
    "fewer labels": (
        lambda X, y, w: (frame(X, y, w)[COLUMNS], frame(X[:-1], y[:-1], w[:-1])["y"]),
        r"y of block 3 has shape \(\d+,\), and X has \d+ rows",
    ),
    "a column of text": (
        of_frame(lambda table: table.assign(c="x", a=table.a)),
        "column 'c' of dtype (str|object)",
    ),
    "objects": (lambda X, y, w: (in_chunks(X).astype(object), y), "dtype object"),
    "other blocks": (
        lambda X, y, w: (frame(X, y, w)[COLUMNS], frame(X, y, w, 2)["y"]),
        "y has 2 blocks and X has 4",
    ),
    "an array beside a frame": (
        lambda X, y, w: (frame(X, y, w)[COLUMNS], y),
        "y is a ndarray beside X in blocks of unknown",
    ),
    "more labels": (lambda X, y, w: (in_chunks(X), np.tile(y, 2)), "y has 1000 rows and X has 500"),
    "two columns of labels": (
        lambda X, y, w: (frame(X, y, w)[COLUMNS], frame(X, y, w)[["y", "w"]]),
        "y has 2 columns",
    ),
    "no rows": (lambda X, y, w: (da.from_array(X[:0]), y[:0]), "no rows"),
    "no columns": (lambda X, y, w: (in_chunks(X[:, :0]), y), "X has no columns"),
    "a series": (lambda X, y, w: (frame(X, y, w)["a"], y), "X has 1 dimension"),
}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"g": "a"}, r"the column 'g' of dtype \w+, which is not"),
        ({"g": "a", "h": "b", "k": "c"}, r"the column 'g' of dtype \w+, and 2 more, which is not"),
    ],
    ids=["one", "three"],
)
def test_the_first_column_of_text_is_named_and_the_others_are_counted(wrong, message):
    table = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0]}).assign(**wrong), npartitions=1)
    with pytest.raises(TypeError, match=message):
        check_columns(table)


@pytest.mark.parametrize(("layout", "message"), REFUSED.values(), ids=REFUSED)
def test_rows_that_cannot_be_used_are_named(rows, layout, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read(as_source(*layout(*rows)))


def test_rows_that_are_made_anew_and_differ_are_found_out(rows):
    n_made = 0

    def make(block, block_info=None):
        nonlocal n_made
        n_made += 1
        in_third_pass = n_made > 10
        return block[::-1] if in_third_pass and block_info[0]["chunk-location"][0] == 3 else block

    X, y, weight = (da.from_array(v, chunks=(100, *v.shape[1:])) for v in rows)
    source = as_source(X, y.map_blocks(make, meta=rows[1][:0]), weight)
    read(source), read(source)
    with pytest.raises(ValueError, match=r"block 3 is not .*: y changed; .* call persist\("):
        read(source)


def test_columns_of_files_that_dask_reads_in_larger_blocks_are_aligned(rows, tmp_path):
    pytest.importorskip("pyarrow")
    X, y, weight = rows
    frame(X, y, weight, npartitions=10).to_parquet(tmp_path)
    table = dd.read_parquet(tmp_path)
    assert table["y"].optimize().npartitions < table.npartitions == 10
    blocks = read(as_source(table[COLUMNS], table["y"], table["w"]))
    for name, expected in (("X", X), ("y", y), ("weight", weight)):
        np.testing.assert_array_equal(joined(blocks, name), expected)
