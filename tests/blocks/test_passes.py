"""Passes over rows in blocks, block by block."""

import numpy as np

from skbayes_sgld.blocks.passes import Encoding
from skbayes_sgld.blocks.source import Block
from skbayes_sgld.likelihoods import NormalNoise
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.rows.targets import Numbers


def test_weights_of_one_are_none_once_rows_of_no_weight_are_left_out():
    X, y = np.arange(8.0).reshape(4, 2), np.array([3, 1, 4, 1])
    values = RowValues(y, np.array([1.0, 0.0, 1.0, 1.0]))
    rows, found = Encoding(Numbers(likelihood=NormalNoise())).rows(Block(X, values, 0))
    np.testing.assert_array_equal(rows, X[[0, 2, 3]])
    np.testing.assert_array_equal(found.y, [3.0, 4.0, 1.0])
    assert found.weight is None and found.y.dtype == float
