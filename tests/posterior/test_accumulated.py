"""Sums of weighted rows: exact far from zero, added up, tempered, and as rows again."""

import numpy as np
import pytest
from scipy import sparse

from skbayes_sgld.posterior.accumulated import Sums

STEPS = np.random.default_rng(0).integers(0, 8, (400, 3)).astype(float)  # exact at any offset below
WEIGHT = np.random.default_rng(1).integers(1, 4, 400).astype(float)


def exact(rows, weight):
    """Total weight, mean and products about it."""
    mean = weight @ rows / weight.sum()
    return weight.sum(), mean, (rows - mean).T @ ((rows - mean) * weight[:, None])


def assert_sums(found, total, mean, products):
    assert found.total == pytest.approx(total, rel=1e-14)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.products, products, rtol=1e-9, atol=1e-9 * products.max())


def test_products_about_a_mean_that_is_rounded_are_exact():
    offset = 2.0**44  # numbers there are 1/256 apart, and so is what the mean is rounded to
    found = Sums.of_rows(offset + STEPS[:, :2], offset + STEPS[:, 2], WEIGHT)
    total, mean, products = exact(STEPS, WEIGHT)
    assert_sums(found, total, offset + mean, products)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_sums_of_parts_are_those_of_the_whole(kind):
    parts = [
        Sums.of_rows(kind(STEPS[rows, :2]), STEPS[rows, 2], WEIGHT[rows])
        for rows in (slice(0, 90), slice(90, 400))
    ]
    assert_sums(parts[0].plus(parts[1]), *exact(STEPS, WEIGHT))
    assert_sums(parts[0].plus(parts[1]).tempered(0.25), *exact(STEPS, 0.25 * WEIGHT))


def test_six_rows_stand_for_all_of_them():
    X, y, weight = Sums.of_rows(STEPS[:, :2], STEPS[:, 2], WEIGHT).as_rows()
    assert X.shape == (6, 2)
    assert_sums(Sums.of_rows(X, y, weight), *exact(STEPS, WEIGHT))
