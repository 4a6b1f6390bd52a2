"""Few rows that stand for all."""

import numpy as np

from skbayes_sgld.inference.planning.few_rows import alike, at_equal_distances, chances


def test_rows_with_like_remainders_are_neighbours():
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 8, 4096)
    shapes = rng.standard_normal((16, 8))[:, kinds] + 0.01 * rng.standard_normal((16, 4096))
    order = alike(shapes)
    np.testing.assert_array_equal(np.sort(order), np.arange(4096))
    # a part of 64 rows has rows of two kinds at most where a kind ends
    assert np.count_nonzero(np.diff(kinds[order])) < 8 * 64


def test_rows_along_an_order_are_drawn_in_proportion_to_their_chances():
    size = np.r_[np.full(900, 1.0), np.full(90, 10.0), np.full(10, 1e4)]
    chance = chances(size, 100)
    assert chance.sum() == np.clip(chance, 0.0, 1.0).sum()
    order = np.random.default_rng(0).permutation(len(size))
    drawn = [at_equal_distances(chance, order, u) for u in (np.arange(200) + 0.5) / 200]
    share = np.bincount(np.concatenate(drawn), minlength=len(size)) / 200
    np.testing.assert_allclose(share, chance, atol=0.011)
