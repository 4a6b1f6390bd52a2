"""Gamma regression, beyond the tests of all families."""

import numpy as np
import pytest

from skbayes_sgld import SGLDGammaRegressor
from tests.estimators.families import positive


def test_a_change_of_units_changes_the_intercept_alone():
    X, y, _ = positive(100)
    one = SGLDGammaRegressor(random_state=0).fit(X, y)
    other = SGLDGammaRegressor(random_state=0).fit(X, 1000.0 * y)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-6)
    assert other.intercept_ == pytest.approx(one.intercept_ + np.log(1000.0))
    assert other.dispersion_ == pytest.approx(one.dispersion_, rel=1e-6)
    np.testing.assert_allclose(
        other.predict_interval(X[:5]), 1000.0 * one.predict_interval(X[:5]), rtol=1e-4
    )
