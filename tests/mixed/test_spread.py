"""Predictors of many rows with effects, as linear predictors of columns."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLinearRegression


# the draws are few: how rows are multiplied by them is the subject
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("q", ["intercept", "intercept and slope", "curve"])
def test_predictors_are_those_of_the_effects(q):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    X[:, 2] = rng.integers(6, size=600)
    y = X[:, 0] + X[:, 2] + rng.standard_normal(600)
    effects = {2: ["intercept", 0] if "slope" in q else "intercept"}
    terms = {"smooth_effects": {1: 5}} if q == "curve" else {"group_effects": effects}
    model = SGLDLinearRegression(random_state=0, n_draws=100, **terms).fit(X, y)
    if q != "curve":
        X[:2, 2] = 17.0, 23.0  # labels that the fit did not see
    found = model._predictions(X, {})
    law, rows = found.predictive, found.X
    spread = law._spread(rows)
    coordinates = spread.coordinates(rows)
    exact = law.predictor(rows)
    assert spread.directions is not None
    np.testing.assert_allclose(spread.predictors(coordinates), exact, rtol=0, atol=1e-5)
    np.testing.assert_allclose(coordinates[0, :, -1], exact[0].mean(axis=1), rtol=0, atol=1e-12)
    np.testing.assert_allclose(spread.variance(coordinates), exact.var(axis=2), rtol=1e-9)
