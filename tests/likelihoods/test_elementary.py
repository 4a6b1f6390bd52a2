"""Elementary functions of kernels, beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from skbayes_sgld.likelihoods.elementary import expm1, log1p


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log1p_is_as_exact_as_numpys(dtype):
    x = np.concatenate([[0.0], np.geomspace(1e-30, 1e30, 20_001)]).astype(dtype)
    error = np.abs(log1p(x).astype(float) - np.log1p(x.astype(float)))
    assert np.all(error <= 4.0 * np.finfo(dtype).eps * np.log1p(x.astype(float)))
    assert log1p(x).dtype == dtype


def test_log1p_of_infinity_is_finite_and_of_nan_is_nan():
    value = log1p(np.array([np.inf, np.nan], dtype=np.float32))
    assert 87.0 < value[0] < np.inf
    assert np.isnan(value[1])


def test_expm1_is_numpys_in_double_precision():
    x = np.linspace(-50.0, 50.0, 1001)
    np.testing.assert_array_equal(expm1(x), np.expm1(x))


def test_expm1_in_single_precision_errs_by_the_rounding_of_one():
    x = np.linspace(-20.0, 20.0, 10_001).astype(np.float32)
    exact = np.expm1(x.astype(float))
    error = np.abs(expm1(x).astype(float) - exact)
    assert np.all(error <= 2.0 * np.finfo(np.float32).eps * np.maximum(1.0, np.abs(exact)))
    assert expm1(x).dtype == np.float32
