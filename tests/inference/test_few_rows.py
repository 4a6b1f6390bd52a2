"""Few rows that stand for all."""

import numpy as np

from skbayes_sgld.inference.planning.few_rows import alike


def test_rows_with_like_remainders_are_neighbours():
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 8, 4096)
    shapes = rng.standard_normal((16, 8))[:, kinds] + 0.01 * rng.standard_normal((16, 4096))
    order = alike(shapes)
    np.testing.assert_array_equal(np.sort(order), np.arange(4096))
    # a part of 64 rows has rows of two kinds at most where a kind ends
    assert np.count_nonzero(np.diff(kinds[order])) < 8 * 64
