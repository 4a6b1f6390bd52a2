"""Sums of Student's t log densities, by logarithms of products."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld.likelihoods import StudentTNoise
from skbayes_sgld.likelihoods.row_values import RowValues

ROWS = np.random.default_rng(0).standard_t(3.0, 43)


def own(gamma, t):
    """Local parameters ``(C, 3, B)`` of a location of 0 and these own parameters ``(C,)``."""
    columns = np.stack([np.zeros(len(gamma)), gamma, t], axis=1)
    return np.repeat(columns[:, :, None], len(ROWS), axis=2)


def exact(u, y):
    """Sums of SciPy's log densities."""
    return stats.t.logpdf(y, np.exp(u[:, 2]), u[:, 0], np.exp(0.5 * u[:, 1])).sum(axis=1)


@pytest.mark.parametrize(
    "case", ["usual", "nearly normal", "a row far out", "rows far out", "unequal scales"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_those_of_the_log_densities(case, dtype):
    y, u = ROWS.copy(), own(np.array([-1.0, 0.5, 2.0]), np.array([0.0, 1.0, 4.0]))
    if case == "nearly normal":  # 1 + z^2 / nu has few digits of z
        u[:, 2] += 9.0
    if case == "a row far out":
        y[5] = 1e9
    if case == "rows far out":  # whose product overflows in single precision
        y[:] = 1e15
    if case == "unequal scales":
        u[:, 1] += np.linspace(-1.0, 1.0, len(y))
    kernel = StudentTNoise().bind(RowValues(y), dtype)
    found = kernel.total(u.astype(dtype))
    assert found.dtype == float
    rtol = 3e-6 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, exact(u, y), rtol=rtol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_sum_of_a_position_depends_on_no_other(dtype):
    """Neither on one whose product overflows nor on one that is nearly normal."""
    kernel = StudentTNoise().bind(RowValues(ROWS), dtype)
    u = own(np.array([0.5, -80.0, 0.5]), np.array([1.0, 1.0, 7.0])).astype(dtype)
    together = kernel.total(u.copy())
    alone = np.concatenate([kernel.total(u[k : k + 1].copy()) for k in range(3)])
    np.testing.assert_array_equal(together, alone)
    usual = kernel.total(u[:1].repeat(3, axis=0))
    np.testing.assert_array_equal(usual, together[:1].repeat(3))


def test_sums_have_offsets_and_weights():
    u = own(np.zeros(2), np.ones(2))
    offset, weight = np.linspace(-1.0, 1.0, len(ROWS)), np.linspace(0.0, 2.0, len(ROWS))
    moved = StudentTNoise().bind(RowValues(ROWS, offset=offset)).total(u.copy())
    np.testing.assert_allclose(moved, exact(u, ROWS - offset), rtol=1e-12)
    weighted = StudentTNoise().bind(RowValues(ROWS, weight=weight)).total(u.copy())
    each = stats.t.logpdf(ROWS, np.exp(1.0))
    np.testing.assert_allclose(weighted, np.repeat(each @ weight, 2), rtol=1e-12)
