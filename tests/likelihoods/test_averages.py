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


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_family_takes_averages_where_their_distribution_is_known(name):
    family = LIKELIHOODS[name]()
    averages = family.of_averages()
    assert averages.offset_at == (family.spread_at or 0)
    assert (averages is family) == (family.spread_at is None)
    assert averages.of_averages().offset_at == averages.offset_at


def test_noise_that_is_inferred_or_unequal_is_that_of_the_same_averages():
    known = FixedNormalNoise(2.0)
    for family in (known, known.of_averages()):
        inferred = family.with_inferred_noise()
        unequal = inferred.with_unequal_noise()
        assert type(inferred) is NormalNoise and type(unequal) is UnequalNormalNoise
        assert inferred.offset_at == unequal.offset_at == family.offset_at
        u, y = np.array([[[0.5]]]), np.array([[1.5]])
        with_noise = np.concatenate([u, np.full_like(u, np.log(2.0))], axis=1)
        np.testing.assert_allclose(
            inferred.log_density(with_noise, y), family.log_density(u, y), rtol=1e-14
        )
    t = StudentTNoise()
    assert t.with_inferred_noise() is t and t.with_unequal_noise() is t
