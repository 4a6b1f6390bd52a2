"""Samples of rows gathered in one pass: uniform, by weight and size, and of every label."""

from functools import reduce

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld.blocks.sample import Sample, Sampling
from skbayes_sgld.blocks.source import Block
from skbayes_sgld.likelihoods.row_values import RowValues

EVEN = np.zeros(1), np.zeros(1)  # sds of 0: rows of one size


def sample_of(how, y, weight=None, sizes=(70, 1, 300, 29, 600), columns=EVEN):
    """Sample of rows whose X is their number."""
    edges = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.arange(edges[-1], dtype=float)[:, None]
    blocks = [
        Block(rows[a:b], RowValues(y, weight)[a:b], number)
        for number, (a, b) in enumerate(zip(edges[:-1], edges[1:], strict=True))
    ]
    return reduce(Sample.plus, [Sample.from_block(block, how, *columns) for block in blocks])


@pytest.mark.parametrize("n_rows", [None, 1000])
def test_all_rows_are_equally_likely_and_each_stands_for_as_many(n_rows):
    counts = np.zeros(1000)
    for seed in range(400):
        drawn = sample_of(Sampling(50, seed, n_rows=n_rows), np.zeros(1000)).rows()
        X, weight = drawn.X, drawn.weight
        assert len(X) == 50 and np.ptp(weight) == 0 and np.all(np.diff(X[:, 0]) > 0)
        counts[X[:, 0].astype(int)] += 1
    # binomial counts of mean 20: those of the rows of each block, and their variance
    for part in np.split(counts, [71, 371, 400]):
        assert abs(part.mean() - 20.0) < 4 * np.sqrt(20 / len(part))
    assert 0.8 < counts.var() / (20 * 0.95) < 1.2


@pytest.mark.parametrize("size", [10, 50, 1000, 100_000])
def test_enough_rows_are_below_the_limit_that_blocks_pass_on(size):
    # keys u / 0.5 of rows of the even size alone: a binomial number of them is below the limit
    how = Sampling(size, 0, n_rows=1_000_000)
    expected = 0.5 * how.limit * how.n_rows
    assert stats.binom.cdf(size - 1, how.n_rows, expected / how.n_rows) < 1e-15
    assert expected < size + 8.5 * np.sqrt(size) + 65


@pytest.mark.parametrize(
    ("columns", "least"), [(EVEN, 0), ((np.array([300.0]), np.array([200.0])), 30)]
)
def test_weighted_sums_are_estimated_without_bias(least, columns):
    rng = np.random.default_rng(0)
    weight = rng.gamma(0.3, size=1000)
    weight[::7] = 0.0
    y = (rng.random(1000) < 0.1).astype(int)
    values = rng.standard_normal(1000) + 1.0
    found = []
    for seed in range(400):
        drawn = sample_of(Sampling(60, seed, least, labels=True), y, weight, columns=columns).rows()
        found.append(drawn.weight @ values[drawn.X[:, 0].astype(int)])
    error = np.mean(found) - weight @ values
    assert abs(error) < 4 * np.std(found) / 20
    assert np.std(found) < 0.3 * abs(weight @ values)


def test_a_sample_does_not_depend_on_how_blocks_are_added_up():
    y, how = np.zeros(1000), Sampling(50, 3)
    edges = [0, 100, 350, 351, 1000]
    rows = np.random.default_rng(1).standard_normal((1000, 2))
    parts = [
        Sample.from_block(Block(rows[a:b], RowValues(y[a:b]), k), how, np.zeros(2), np.ones(2))
        for k, (a, b) in enumerate(zip(edges[:-1], edges[1:], strict=True))
    ]
    left = reduce(Sample.plus, parts).rows()
    right = parts[0].plus(parts[1]).plus(parts[2].plus(parts[3])).rows()
    for name in ("X", "y", "weight"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
