"""Moments of columns in one pass, against those of the array in memory."""

from functools import reduce

import numpy as np
import pytest

from skbayes_sgld._linalg import column_moments
from skbayes_sgld.blocks.moments import Extent, Moments
from skbayes_sgld.blocks.source import Block
from skbayes_sgld.likelihoods.row_values import RowValues

RNG = np.random.default_rng(0)
X = np.column_stack(
    [
        1e6 + RNG.standard_normal(500),  # a mean far from its spread
        RNG.random(500) < 0.3,  # two values
        np.where(np.arange(500) < 400, 0.0, RNG.random(500)),  # two in the first blocks alone
        np.full(500, -4.0),
        1e-9 * RNG.standard_normal(500),
        np.where(np.arange(500) < 250, 1.0, 3.0),  # one value a block, and two in all
        np.arange(500) // 125 % 3,  # one value a block, and three in all
        (1 + (np.arange(500) >= 250)) * (np.arange(500) % 2),  # two a block: 0 and 1, 0 and 2
        np.arange(500) % 2 + (np.arange(500) >= 250),  # two a block: 0 and 1, 1 and 2
        np.where(np.arange(500) < 125, 0.5, np.arange(500) % 2),  # one between two of the next
        np.where(np.arange(500) < 375, np.arange(500) % 2, 0.5),  # and after them
        np.where(np.arange(500) < 125, 1.0, np.arange(500) % 2),  # one of the two of the next
    ]
)
TWO = [False, True, False, True, False, True, False, False, False, False, False, True]
LABELS = np.where(np.arange(500) < 100, 0, RNG.integers(1, 4, 500))  # 0 in one block alone


def moments_of(X, labels, weight):
    parts = []
    for start in range(0, 500, 125):
        rows = slice(start, start + 125)
        own, codes = np.unique(labels[rows], return_inverse=True)
        w = None if weight is None else weight[rows]
        parts.append(Moments.from_block(Block(X[rows], RowValues(labels[rows], w), 0), own, codes))
    return reduce(Moments.plus, parts)


@pytest.mark.parametrize(("dtype", "weighted"), [(np.float32, False), (np.float64, True)])
def test_moments_and_spread_are_those_of_the_array(dtype, weighted):
    weight = RNG.gamma(1.0, size=500) * (RNG.random(500) < 0.9) if weighted else None
    rows, factor = X.astype(dtype), np.array([0.5, 1.0, 2.0, 0.0])
    found = moments_of(rows, LABELS, weight)
    w = np.ones(500) if weight is None else weight
    assert np.array_equal(found.labels, [0, 1, 2, 3])
    assert np.allclose(found.total, np.bincount(LABELS, w))
    counted = w * factor[LABELS]
    mean, spread = column_moments(rows, counted)
    extent = reduce(Extent.plus, [Extent.from_rows(rows[a : a + 125]) for a in range(0, 500, 125)])
    assert extent.two.tolist() == TWO
    own_mean, sd = found.together(factor)
    assert np.allclose(own_mean, mean, rtol=1e-12, atol=1e-20)
    assert np.allclose(extent.spread(sd), spread, rtol=1e-6 if dtype == np.float64 else 1e-5)
