"""Sources of blocks: passes over them, and the errors that name the block and the row."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from skbayes_sgld.blocks import RowBlocks
from skbayes_sgld.blocks.rows import as_source
from tests.blocks.windows import blocks_of

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 3))
Y = X @ [1.0, -1.0, 0.5] + RNG.standard_normal(90)


def gather(source):
    """All rows of a source, by a pass."""
    blocks = source.reduce(lambda block: [block], lambda a, b: a + b)
    return np.concatenate([b.X for b in blocks]), np.concatenate([b.y for b in blocks]), blocks


@pytest.mark.parametrize("dtype", [np.float32, np.float64, int])
def test_a_pass_reads_every_row_once_in_order(dtype):
    rows = (10 * X).astype(dtype)
    source = blocks_of(rows, Y, size=25)
    for n_passes in (1, 2):
        found, y, blocks = gather(source)
        assert source.n_passes == n_passes
        assert np.array_equal(found, rows) and np.array_equal(y, Y)
        assert found.dtype == (np.float32 if dtype is np.float32 else np.float64)
        assert [b.number for b in blocks] == [0, 1, 2, 3]
    assert source.n_rows == 90 and source.n_features == 3


def test_names_of_columns_are_those_of_the_frames():
    frame = pd.DataFrame(X, columns=list("abc"))
    assert blocks_of(frame, Y, size=25).feature_names == ["a", "b", "c"]
    assert blocks_of(X, Y, size=25).feature_names is None


def test_columns_in_another_order_are_found_out():
    frames = [pd.DataFrame(X, columns=list("abc")), pd.DataFrame(X, columns=list("bac"))]
    with pytest.raises(ValueError, match="X of block 1 has the columns b, a, c"):
        gather(RowBlocks(lambda: [(frame, Y) for frame in frames]))


@pytest.mark.parametrize("size", [0, 2.5, "all"])
def test_the_size_of_the_pool_is_a_number_of_rows(size):
    with pytest.raises((TypeError, ValueError), match="pool_size"):
        blocks_of(X, Y, size=25, pool_size=size)


def test_blocks_without_rows_are_passed_over():
    source = RowBlocks(lambda: [(X[:0], Y[:0]), (X, Y), (X[:0], Y[:0])])
    assert [len(b.y) for b in gather(source)[2]] == [90]


def test_arrays_are_no_sources_and_sources_hold_their_y():
    source = blocks_of(X, Y, size=25)
    assert as_source(X, Y) is None
    assert as_source(source) is source
    with pytest.raises(TypeError, match="y is given beside RowBlocks"):
        as_source(source, Y)


MIXED = np.array([1 if y > 0 else "no" for y in Y], dtype=object)
TEXTS = np.array(["yes" if y > 0 else "no" for y in Y], dtype=object)


def _with(values, at, value):
    changed = np.array(values, copy=True)
    changed[at] = value
    return changed


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        (
            [(X, Y), (_with(X, (7, 2), np.nan), Y)],
            ValueError,
            "X is nan in row 7, column 2 of block 1",
        ),
        ([(X, _with(Y, 5, np.inf))], ValueError, "y is inf in row 5 of block 0"),
        ([(X, Y), (X[:, :2], Y)], ValueError, "X of block 1 has 2 columns"),
        ([(X, Y), (X.astype(np.float32), Y)], TypeError, "X of block 1 has dtype float32"),
        ([(X.astype(str), Y)], TypeError, "X of block 0 has dtype <U"),
        ([(X, Y), (X, Y[:-1])], ValueError, r"y of block 1 has shape \(89,\)"),
        ([(X, Y), (csr_array(X), Y)], TypeError, "X of block 1 is sparse"),
        ([(X, Y), X], TypeError, "block 1 is a ndarray"),
        ([(X, Y, _with(np.ones(90), 4, -1.0))], ValueError, "weight in row 4 of block 0 is -1"),
        ([(X, Y, np.ones(89))], ValueError, r"weight of block 0 has shape \(89,\)"),
        ([(X[:0], Y[:0])], ValueError, "the blocks have no rows"),
        ([(X, MIXED)], TypeError, "y of block 0 has values of type int and str; give all"),
        ([(X, MIXED == 1), (X, TEXTS)], TypeError, "y of block 1 is text, .* block 0 is numbers"),
        ([(X, MIXED.astype(str)), (X, Y)], TypeError, "y of block 1 is numbers, .* 0 is text"),
        ([(X, TEXTS), (X, TEXTS.astype("S"))], TypeError, "y of block 1 is bytes, .* 0 is text"),
        ([(X, _with(TEXTS, 3, None))], ValueError, "y is None in row 3 of block 0; give every"),
        ([(X, _with(TEXTS, 3, np.nan))], ValueError, "y is nan in row 3 of block 0; give every"),
    ],
)
def test_errors_name_the_block_and_the_row(blocks, error, message):
    with pytest.raises(error, match=message):
        gather(RowBlocks(lambda: blocks))


@pytest.mark.parametrize(
    ("read", "error", "message"),
    [
        (lambda: [], ValueError, "the source of blocks is empty"),
        ([(X, Y)], TypeError, "read is a list"),
        (lambda: [(Y, Y)], ValueError, r"X of block 0 has shape \(90,\)"),
        (lambda: [(X[:, :0], Y)], ValueError, r"X of block 0 has shape \(90, 0\): give it at"),
    ],
)
def test_a_source_that_cannot_be_read_is_refused_at_once(read, error, message):
    with pytest.raises(error, match=message):
        RowBlocks(read)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ([(X, Y)], "block 1 has 0 rows, and had 90"),
        ([(X, Y), (X, Y), (X[:5], Y[:5])], "block 2 has 5 rows, and had 0"),
        ([(X, Y), (X[:80], Y[:80])], "block 1 has 80 rows, and had 90"),
        ([(X, Y), (_with(X, (7, 2), np.inf), Y)], "X is inf in row 7, column 2 of block 1"),
    ],
)
def test_blocks_of_other_sizes_or_infinities_than_in_the_pass_before_are_found_out(second, message):
    now = [(X, Y), (X, Y)]
    source = RowBlocks(lambda: now)
    gather(source)
    now = second
    with pytest.raises(ValueError, match=message):
        gather(source)


LARGE = RNG.standard_normal((6000, 3))
LABEL, TEXT = RNG.integers(0, 2, 6000), np.where(RNG.random(6000) < 0.5, "no", "yes")


def _swapped(values, i, j):
    changed = np.array(values, copy=True)
    changed[[i, j]] = changed[[j, i]]
    return changed


def _by_one_bit(X):
    return _with(X, (5999, 2), np.nextafter(X[5999, 2], X.dtype.type(9)))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda X, y, w: (_by_one_bit(X), y, w), "X"),
        (lambda X, y, w: (_by_one_bit(X.astype(np.float32)), y, w), "X"),
        (lambda X, y, w: (_swapped(X, 17, 5000), y, w), "X"),
        (lambda X, y, w: (X, 1 - y, w), "y"),
        (lambda X, y, w: (X, _swapped(y, *np.flatnonzero(np.diff(y))[0] + [0, 1]), w), "y"),
        (lambda X, y, w: (X, TEXT[::-1], w), "y"),
        (lambda X, y, w: (X, y.astype(object), w), "y"),
        (lambda X, y, w: (X, y, _swapped(w, 0, 1)), "the weights"),
        (lambda X, y, w: (X, y), "the weights"),
        (lambda X, y, w: (2 * X, 1 - y, 2 * w), "X and y and the weights"),
    ],
)
def test_a_block_with_other_values_than_in_the_pass_before_is_found_out(change, what):
    w, n_read = RNG.random(6000), 0
    changed = change(LARGE, LABEL, w)
    X = LARGE.astype(changed[0].dtype)

    def read():
        nonlocal n_read
        n_read += 1
        for number in range(3):
            yield changed if number == 2 and n_read > 3 else (X, LABEL, w)

    source = RowBlocks(read)
    gather(source), gather(source)
    with pytest.raises(ValueError, match=f"block 2 is not what it was .*: {what} changed; "):
        gather(source)


@pytest.mark.parametrize("text", [TEXT, TEXT.astype(object)])
def test_labels_that_are_text_are_known_again_by_what_they_say(text):
    def read():
        yield LARGE, np.array(["".join(label) for label in text], dtype=text.dtype)  # new objects

    source = RowBlocks(read)
    gather(source), gather(source)
    text = _with(text, 3, "maybe"[: 3 if text.dtype.kind == "U" else 5])
    with pytest.raises(ValueError, match="block 0 is not what it was .*: y changed"):
        gather(source)


def test_frames_of_numbers_of_any_kind_are_numbers():
    table = pd.DataFrame({"a": [1.5, 2.5], "b": [True, False]}).astype({"a": "Float64"})
    source = RowBlocks(lambda: [(table, [0, 1])] * 2)
    total = source.reduce(lambda block: block.X, np.add)
    np.testing.assert_array_equal(total, [[3.0, 2.0], [5.0, 0.0]])
