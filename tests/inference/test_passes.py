"""Passes over rows in blocks, block by block."""

import numpy as np

from skbayes_sgld.blocks.source import Block
from skbayes_sgld.inference.passes import Encoding

X = np.arange(8.0).reshape(4, 2)


def test_rows_of_no_weight_are_left_out_and_weights_of_one_are_none():
    numbers = Encoding(None, np.empty(0), np.empty(0))
    y, weight = np.array([3, 1, 4, 1]), np.array([0.0, 2.0, 0.5, 0.0])
    rows, y, weight, _ = numbers.rows(Block(X, y, weight, 0))
    np.testing.assert_array_equal(rows, X[1:3])
    np.testing.assert_array_equal(y, [1.0, 4.0])
    np.testing.assert_array_equal(weight, [2.0, 0.5])
    y, weight = np.array([3, 1, 4, 1]), np.array([1.0, 0.0, 1.0, 1.0])
    rows, y, weight, _ = numbers.rows(Block(X, y, weight, 0))
    np.testing.assert_array_equal(rows, X[[0, 2, 3]])
    assert weight is None and y.dtype == float


def test_labels_have_their_codes_and_their_classes_weights():
    labels = Encoding(
        np.array(["a", "b", "c"]), np.array([2.0, 0.0, 1.0]), np.array([1.0, 0.0, 3.0])
    )
    y, weight = np.array(["c", "b", "a", "c"]), np.array([1.0, 5.0, 2.0, 0.5])
    rows, y, weight, _ = labels.rows(Block(X, y, weight, 0))
    np.testing.assert_array_equal(rows, X[[0, 2, 3]])
    np.testing.assert_array_equal(y, [1.0, 2.0, 1.0])
    np.testing.assert_array_equal(weight, [3.0, 2.0, 1.5])
