"""Predictions of float32 rows are float32, as scikit-learn's are."""

import warnings
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import skbayes_sgld
from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
    predict_interval,
)
from tests.annexes import later, made

ROWS = np.random.default_rng(0).standard_normal((60, 2)).astype(np.float32)
NUMBERS = ROWS @ [1.0, -1.0] + 0.1 * np.arange(60) % 1.0
LABELS = 2.0**24 + np.digitize(NUMBERS, [-0.5, 0.8])  # float32 has no 2^24 + 1
COUNTS = np.random.default_rng(1).poisson(np.exp(ROWS[:, 0]))
SETTINGS = {"n_draws": 250, "random_state": 0}

INTERVALS = ["predict", "predict_quantiles", "predict_interval"]
CLASSES = [
    *("predict_proba", "predict_log_proba", "decision_function"),
    *("predict_proba_quantiles", "predict_proba_interval"),
]


@pytest.fixture(
    scope="module",
    params=[
        (SGLDLinearRegression(**SETTINGS), NUMBERS, INTERVALS),
        (SGLDLinearRegression(**SETTINGS), np.column_stack([NUMBERS, ROWS[:, 1]]), INTERVALS),
        (SGLDPoissonRegressor(**SETTINGS), COUNTS, INTERVALS),
        (SGLDLogisticRegression(**SETTINGS), LABELS, CLASSES),
        (
            later("SGLDMLPClassifier", hidden_layer_sizes=(2,), n_draws=20, n_burnin=5, thin=1),
            LABELS,
            CLASSES,
        ),
    ],
    ids=["linear", "two outputs", "Poisson", "logistic", "network"],
)
def fitted(request):
    """A model, and the names of its methods that predict numbers."""
    model, y, methods = request.param
    model = made(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so short a run of the network
        return model.fit(ROWS, y), methods


def test_the_type_is_that_of_the_rows_and_the_numbers_are_the_same(fitted):
    model, methods = fitted
    for method in methods:
        found = getattr(model, method)(ROWS)
        precise = getattr(model, method)(ROWS.astype(float))
        assert (found.dtype, precise.dtype) == (np.float32, np.float64), method
        assert_allclose(found, precise, rtol=2e-6, atol=1e-6)


def test_rows_of_every_kind_keep_their_type(fitted):
    from skbayes_sgld import RowBlocks

    model, methods = fitted
    method = getattr(model, methods[0])
    expected = method(ROWS)
    blocks = RowBlocks(lambda: ((ROWS[k : k + 25], NUMBERS[k : k + 25]) for k in (0, 25, 50)))
    found = np.concatenate(list(method(blocks)))
    assert found.dtype == np.float32
    assert_allclose(found, expected, rtol=1e-6)
    frame = pd.DataFrame(ROWS, columns=["a", "b"])
    with pytest.warns(UserWarning, match="feature names"):  # the fit had none
        assert method(frame).dtype == np.float32
    with pytest.warns(UserWarning, match="feature names"):
        assert method(frame.astype({"a": float})).dtype == np.float64
    assert method(ROWS.tolist()).dtype == np.float64
    if model._takes_sparse:
        assert method(csr_array(ROWS)).dtype == np.float32
    out = np.empty(expected.shape)  # which keeps its own
    assert method(ROWS, out=out) is out


def test_wrappers_keep_the_type_and_numbers_beyond_single_precision_stay_double():
    model = SGLDLinearRegression(**SETTINGS).fit(ROWS, NUMBERS)
    assert [each.dtype for each in model.predict(ROWS, return_std=True)] == [np.float32] * 2
    assert predict_interval(model, ROWS).dtype == np.float32
    interval = model.fit(ROWS, 1e49 * NUMBERS).predict_interval(ROWS)
    assert interval.dtype == np.float64 and np.isfinite(interval).all()


def test_labels_keep_the_type_of_the_classes():
    model = SGLDLogisticRegression(**SETTINGS).fit(ROWS, LABELS)
    assert model.predict(ROWS).dtype == np.float64
    assert set(model.predict(ROWS)) <= set(LABELS)


@pytest.mark.parametrize(
    "name", [name for name in skbayes_sgld.__all__ if name.startswith(("SG", "BayesBy"))]
)
def test_every_prediction_goes_through_the_one_place(name):
    """The decorator that keeps the type also adds ``out``; a probability of y keeps y's type."""
    estimator = getattr(skbayes_sgld, name)
    methods = {method for method in dir(estimator) if method.startswith("predict")}
    for method in methods - {"predict_cdf"}:
        assert "out" in signature(getattr(estimator, method)).parameters
