"""Threads of the user's: predictions and fits side by side are those of one after the other."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from sklearn.base import clone

from skbayes_sgld import (
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPClassifier,
    SGLDPoissonRegressor,
)

# the runs are too short for usable draws, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.standard_normal(60)
ROWS = RNG.standard_normal((250, 3))  # as many as are predicted in single precision, in blocks
N_THREADS = 16
SHORT = {"n_draws": 60, "random_state": 0}
MODELS = [
    (SGLDLinearRegression(**SHORT), Y),
    (SGLDLinearRegression(prior="laplace", **SHORT), Y),
    (SGLDLogisticRegression(**SHORT), (Y > 0).astype(int)),
    (SGLDPoissonRegressor(**SHORT), np.rint(np.abs(Y))),
    (SGDMAPRegressor(random_state=0), Y),
    (
        SGLDMLPClassifier(hidden_layer_sizes=(3,), n_burnin=50, thin=1, n_draws=20, random_state=0),
        (Y > 0).astype(int),
    ),
]
METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "predict_interval",
    "predict_quantiles",
    "predict_proba_interval",
    "sample_y",
)


def at_once(calls):
    """Results of calls that all begin together, in their order."""
    barrier = Barrier(len(calls))

    def begin(call):
        barrier.wait(30.0)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(begin, calls, timeout=120.0))


def predictions(model):
    return [getattr(model, name)(ROWS) for name in METHODS if hasattr(model, name)]


@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda value: type(value).__name__)
def test_predictions_of_sixteen_threads_are_those_of_one(model, y):
    fitted = clone(model).fit(X, y)
    expected = predictions(fitted)
    for found in at_once([lambda: predictions(fitted)] * N_THREADS):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_fits_side_by_side_are_those_of_one_after_the_other():
    each = [
        (clone(model).set_params(random_state=seed), y)
        for model, y in MODELS[:3]
        for seed in (1, 2)
    ]
    expected = [clone(model).fit(X, y).posterior_.values for model, y in each]
    found = at_once([lambda m=model, y=y: m.fit(X, y).posterior_.values for model, y in each])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    errors = {tuple(np.geterr().items()) for _ in at_once([np.geterr] * 4)}
    assert errors == {tuple(np.geterr().items())}
