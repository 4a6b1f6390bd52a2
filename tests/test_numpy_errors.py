"""A caller's ``np.errstate`` changes nothing in any public call."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import skbayes_sgld
from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPClassifier,
    diagnostics,
    metrics,
    plotting,
    variational,
)
from skbayes_sgld._numpy_errors import numpy_defaults
from tests.inputs.good import make
from tests.inputs.oracle import numbers_of
from tests.inputs.surface import functions

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3)) * [1.0, 1e-3, 1e4]
Y = X @ [30.0, 0.0, 0.0] + RNG.standard_normal(60)
FAR = np.concatenate([X[:5], 1e4 * X[:5]])  # densities and probabilities there underflow
WRAPPED = numpy_defaults(lambda: None).__code__
# what computes nothing with floats, or is scikit-learn's or a user's base
PLAIN = {"get_metadata_routing", "get_params", "set_params", "set_callbacks", "check_as"}
PLAIN |= {"Plan", "RowBlocks", "summary", "get_scorer", "get_scorer_names"}


def quantiles(model):
    """Method with quantiles of y, or of probabilities."""
    return getattr(model, "predict_proba_quantiles", None) or model.predict_quantiles


def public_functions():
    """Functions of the modules, and methods of their classes, by name."""
    for module in (skbayes_sgld, diagnostics, metrics, plotting):
        for name in set(module.__all__) - PLAIN:
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield name, value
            elif inspect.isclass(value) and not issubclass(value, (Warning, Exception)):
                yield from methods(value)
    yield from methods(variational.BayesByBackprop)


def methods(cls):
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        method = getattr(method, "__func__", method)  # of a class method
        if inspect.isfunction(method) and name[0] != "_" and name not in PLAIN:
            yield f"{cls.__name__}.{name}", method


def is_wrapped(function):
    while function.__code__ is not WRAPPED and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function.__code__ is WRAPPED


def test_every_public_call_has_numpys_defaults_inside():
    found = dict(public_functions())
    assert len(found) > 200
    assert [name for name, function in found.items() if not is_wrapped(function)] == []


# 50 draws of two chains are too few, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", [SGLDLinearRegression, SGLDLogisticRegression, SGLDMLPClassifier])
def test_the_callers_errstate_changes_no_fit_and_no_prediction(cls):
    y = Y if cls is SGLDLinearRegression else Y > 0
    model = make(cls, n_draws=50)
    expected = clone(model).fit(X, y)
    with np.errstate(all="raise"):
        before = np.geterr()
        model.fit(X, y)
        draws, predicted = model.posterior_.values, quantiles(model)(FAR)
        density = model.log_predictive_density(FAR, y[:10])
        assert np.geterr() == before
    np.testing.assert_array_equal(draws, expected.posterior_.values)
    np.testing.assert_array_equal(predicted, quantiles(expected)(FAR))
    np.testing.assert_array_equal(density, expected.log_predictive_density(FAR, y[:10]))


def test_the_callers_errstate_changes_no_function():
    for call in functions():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few draws
            outside = [array for _, array in numbers_of(call.function(**call.good))]
            with np.errstate(all="raise"):
                inside = [array for _, array in numbers_of(call.function(**call.good))]
        for a, b in zip(inside, outside, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=call.name)
