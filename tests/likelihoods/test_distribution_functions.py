"""Fast distribution functions, compared with SciPy's."""

import numpy as np
import pytest
from scipy.special import ndtr, stdtr

from skbayes_sgld.likelihoods.distribution_functions import normal_cdf, student_cdf

NEAR = np.linspace(-12.0, 12.0, 401)
FAR = np.array([-1e200, -1e30, -1e8, -40.0, 0.0, 1e-300, 40.0, 1e8, 1e30, 1e200])
DEGREES = np.array([0.1, 0.7, 1.0, 1.3, 2.0, 4.5, 10.0, 1e2, 1e4, 1e10])


@pytest.mark.parametrize("z", [NEAR, FAR], ids=["near", "far"])
@pytest.mark.parametrize("shared", [True, False], ids=["of all rows", "of each row"])
def test_the_distribution_function_of_student_is_that_of_scipy(z, shared):
    rows = z[:, None] + (0.0 if shared else np.zeros(len(DEGREES)))
    nu = np.broadcast_to(DEGREES, (len(z), len(DEGREES))).copy()
    if not shared:
        nu[1:] = nu[:-1, ::-1]
    rows = np.broadcast_to(rows, nu.shape).copy()
    expected = stdtr(nu, rows)
    found = student_cdf(nu, rows)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-7)
    lower = (rows < 0) & (expected > 1e-15)
    np.testing.assert_allclose(found[lower], expected[lower], rtol=1e-6)
    low = np.abs(rows) < 1e30
    single = student_cdf(nu.astype(np.float32), np.where(low, rows, 0.0).astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single[low], expected[low], rtol=0, atol=5e-6)


def test_the_normal_distribution_function_is_that_of_scipy_in_single_precision():
    np.testing.assert_allclose(normal_cdf(NEAR.astype(np.float32)), ndtr(NEAR), rtol=0, atol=3e-6)
    within = np.abs(NEAR) < 5.4
    z = -np.abs(NEAR[within]).astype(np.float32)
    np.testing.assert_allclose(normal_cdf(z), ndtr(z.astype(float)), rtol=2e-5)
    np.testing.assert_array_equal(normal_cdf(NEAR), ndtr(NEAR))
