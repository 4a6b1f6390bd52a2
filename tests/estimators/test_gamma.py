"""Gamma regression, beyond the tests of all families."""

import numpy as np
import pytest
from sklearn.linear_model import GammaRegressor

from skbayes_sgld import SGLDGammaRegressor
from skbayes_sgld.posterior import Gamma, GLMPosterior, InverseGamma, Normal
from skbayes_sgld.sampling.tuning.mode import find_mode
from tests.estimators.families import positive


def test_the_mode_is_that_of_scikit_learn_at_its_dispersion():
    X, y, _ = positive(300)
    flat = InverseGamma(1e-9, 1e-9)  # in the log dispersion
    posterior = GLMPosterior(X, y, Gamma(), Normal(0.5), flat)
    found = find_mode(posterior, posterior.start()).theta
    alpha = np.exp(found[3]) / (0.5**2 * len(y))
    theirs = GammaRegressor(alpha=alpha, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(found[:2], theirs.coef_, atol=1e-6)
    assert found[2] == pytest.approx(theirs.intercept_, abs=1e-6)


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


def test_observations_of_zero_are_refused():
    X, y, _ = positive(50)
    y[3] = 0.0
    with pytest.raises(ValueError, match="value 0; observations must be above 0"):
        SGLDGammaRegressor().fit(X, y)
