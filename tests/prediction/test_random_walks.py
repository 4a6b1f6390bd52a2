"""Warnings of predictions from chains that never left their starts."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDPoissonRegressor


def test_predictions_of_random_walks_warn_once_a_fit():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.poisson(3.0, 60)
    few = {"n_draws": 50, "n_burnin": 10, "thin": 2}  # 100 steps a draw otherwise
    model = SGLDPoissonRegressor(sampler="sgld", step_size=1e-6, **few, random_state=0)
    for _ in range(2):
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        kept = pickle.dumps(model)
        with pytest.warns(ConvergenceWarning, match="SGLDPoissonRegressor: the chains are no bett"):
            model.predict(X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict_interval(X)
    with pytest.warns(ConvergenceWarning, match="these predictions are not those of a posterior"):
        pickle.loads(kept).predict(X)
