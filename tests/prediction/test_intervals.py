"""Intervals of one coverage or several, and quantiles of probabilities."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skbayes_sgld
from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDPoissonRegressor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 2))
Y = X @ [1.0, -1.0] + RNG.standard_normal(60)
COVERAGES = [0.5, 0.9, 0.2]
MODELS = {
    "linear": (SGLDLinearRegression(random_state=0), Y, "predict_interval", {}),
    "mean": (SGLDLinearRegression(random_state=0), Y, "predict_interval", {"kind": "mean"}),
    "counts": (
        SGLDPoissonRegressor(random_state=0),
        RNG.poisson(3.0, 60),
        "predict_interval",
        {"exposure": 4.0},
    ),
    "two": (SGLDLogisticRegression(random_state=0), Y > 0, "predict_proba_interval", {}),
    "three": (
        SGLDLogisticRegression(random_state=0),
        np.digitize(Y, [-1, 1]),
        "predict_proba_interval",
        {},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_several_coverages_are_as_one_after_the_other(name):
    model, y, method, params = MODELS[name]
    model.fit(X, y)
    found = getattr(model, method)(X[:5], coverage=COVERAGES, **params)
    each = [getattr(model, method)(X[:5], coverage=c, **params) for c in COVERAGES]
    np.testing.assert_allclose(found, np.stack(each, axis=-1), rtol=1e-6)
    width = np.diff(found, axis=-2)[..., 0, :]
    assert np.all(width[..., 2] <= width[..., 0])
    assert np.all(width[..., 0] <= width[..., 1])
    assert np.any(width[..., 0] < width[..., 1])
    through = getattr(skbayes_sgld, method)(model, X[:5], COVERAGES, **params)
    np.testing.assert_array_equal(through, found)
    with pytest.raises(ValueError, match=r"coverage=\[0.5, 1.5\] is out of range"):
        getattr(model, method)(X, coverage=[0.5, 1.5])


@pytest.mark.parametrize("cuts", [[0], [-1, 1]])
def test_quantiles_of_probabilities_are_those_of_the_draws(cuts):
    pipe = make_pipeline(StandardScaler(), SGLDLogisticRegression(n_draws=250, random_state=0))
    pipe.fit(X, np.digitize(Y, cuts))
    model, rows = pipe[-1], pipe[:-1].transform(X[:5])
    levels = [0.9, 0.05, 0.5]
    found = model.predict_quantiles(rows, levels)
    exact = np.quantile(model.posterior_mean_draws(rows), levels, axis=0)
    np.testing.assert_allclose(found, np.moveaxis(exact, 0, -1), rtol=1e-5)
    np.testing.assert_array_equal(skbayes_sgld.predict_quantiles(pipe, X[:5], levels), found)
    ends = np.sort(found[..., :2], axis=-1)
    assert np.all(ends[..., 0] < ends[..., 1])
    with pytest.raises(TypeError, match="has no predict_interval"):
        skbayes_sgld.predict_interval(pipe, X[:5])
    with pytest.raises(ValueError, match="q="):
        model.predict_quantiles(rows, [0.0])
