"""The streams of a chain: batches without replacement are every subset, equally often."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld._random import ChainStreams, _floyd, start_normals
from skbayes_sgld.sampling import SGLD
from skbayes_sgld.sampling.block import draw_normals


def assert_even(batches, n_samples):
    """Every subset of its size is drawn equally often, by a chi-square at one in 10,000."""
    size = batches.shape[1]
    assert all(len(set(batch)) == size for batch in batches.tolist())
    code = {subset: i for i, subset in enumerate(combinations(range(n_samples), size))}
    drawn = [code[tuple(sorted(batch))] for batch in batches.tolist()]
    counts = np.bincount(drawn, minlength=len(code))
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("n_samples, size", [(5, 2), (6, 3), (7, 1)])
def test_floyds_subsets_are_all_equally_likely(n_samples, size):
    uniforms = np.random.default_rng(0).random((20_000, size))
    assert_even(_floyd(uniforms, n_samples), n_samples)


@pytest.mark.parametrize("n_samples, size", [(12, 10), (10, 9), (5, 3)])
def test_batches_of_a_large_part_of_the_rows_are_all_equally_likely(n_samples, size):
    assert_even(ChainStreams(0, 0).rows(20_000, n_samples, size, False), n_samples)


def test_batches_with_replacement_are_independent_rows():
    rows = ChainStreams(1, 0).rows(20_000, 4, 2, True)
    counts = np.bincount(4 * rows[:, 0] + rows[:, 1], minlength=16)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_a_chains_numbers_depend_on_its_own_number_alone():
    first = start_normals(3, range(2, 5), 6)
    np.testing.assert_array_equal(start_normals(3, range(3, 4), 6), first[1:2])
    assert np.abs(np.corrcoef(start_normals(3, range(3), 4000))[np.triu_indices(3, 1)]).max() < 0.07


def test_no_replacement_means_that_no_batch_holds_a_row_twice():
    for n, size in [(1000, 10), (50, 40), (20, 20)]:
        rows = ChainStreams(0, 0).rows(300, n, size, replacement=False)
        assert all(len(set(batch)) == size for batch in rows.tolist())
        counts = np.bincount(rows.ravel(), minlength=n)
        expected = 300 * size / n
        spread = np.sqrt(expected * (1 - size / n)) + 1e-9
        # a chi-square of n - 1 degrees of freedom, within five of its standard deviations
        assert np.sum(((counts - expected) / spread) ** 2) < n + 5 * np.sqrt(2 * n)


def test_a_chains_starts_noise_and_batches_are_of_different_streams():
    streams = ChainStreams(3, 1)
    starts = stats.norm.cdf(start_normals(3, range(1, 2), 4000))
    noise = stats.norm.cdf(streams.normals(1, 4000))
    rows = streams.rows(1, 10_000, 4000, True) / 10_000
    drawn = np.concatenate([starts, noise, rows])
    assert np.abs(np.corrcoef(drawn)[np.triu_indices(3, 1)]).max() < 0.07
    assert not np.any(starts == noise)


def test_chains_that_share_a_stream_draw_at_once_what_they_would_draw_in_turn():
    run, shared, same = SimpleNamespace(sampler=SGLD()), ChainStreams(3, 0), ChainStreams(3, 0)
    at_once = draw_normals(run, [shared] * 4, 5, 2)
    in_turn = np.stack([same.normals(5, 2) for _ in range(4)], axis=1)
    np.testing.assert_array_equal(at_once, in_turn)
