"""Likelihoods of means of several observations, and of normal noise of other kinds."""

import numpy as np
import pytest

from skbayes_sgld.likelihoods import (
    LIKELIHOODS,
    FixedNormalNoise,
    NormalNoise,
    StudentTNoise,
    UnequalNormalNoise,
)
from skbayes_sgld.likelihoods.row_values import RowValues

FAMILIES = [
    name for name, family in LIKELIHOODS.items() if (family.spread_at or 9) < family().n_local
]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_spread_of_averages_falls_with_their_size(name):
    family, sizes = LIKELIHOODS[name](), np.array([2.0, 7.0])
    u, y = np.full((1, family.n_local, 2), 0.3), np.array([0.5, 2.0])
    smaller = u.copy()
    smaller[:, family.spread_at] -= np.log(sizes)
    kernel = family.bind(RowValues(y, n_averaged=sizes))
    np.testing.assert_allclose(kernel.derivatives(u, 0)[0], family.log_density(smaller, y))


def test_noise_that_is_inferred_or_unequal_is_of_the_same_family():
    family = FixedNormalNoise(2.0)
    inferred = family.with_inferred_noise()
    assert type(inferred) is NormalNoise
    assert type(inferred.with_unequal_noise()) is UnequalNormalNoise
    u, y = np.array([[[0.5]]]), np.array([[1.5]])
    with_noise = np.concatenate([u, np.full_like(u, np.log(2.0))], axis=1)
    np.testing.assert_allclose(
        inferred.log_density(with_noise, y), family.log_density(u, y), rtol=1e-14
    )
    t = StudentTNoise()
    assert t.with_inferred_noise() is t and t.with_unequal_noise() is t
