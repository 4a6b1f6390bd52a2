"""Arguments by row: one entry each, from which checks, errors and metadata requests follow."""

import inspect

import numpy as np
import pytest

import skbayes_sgld
from skbayes_sgld import SGLDOrdinalClassifier, SGLDPoissonRegressor
from skbayes_sgld.rows.arguments import ROW_ARGUMENTS

LINEAR = [
    getattr(skbayes_sgld, name)
    for name in skbayes_sgld.__all__
    if hasattr(getattr(skbayes_sgld, name), "partial_fit")
]
X, Y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 2, 0, 1, 3])
METHODS = [
    name
    for name, method in inspect.getmembers(SGLDPoissonRegressor, inspect.isfunction)
    if "by_row" in inspect.signature(method).parameters and not name.startswith("_")
]


@pytest.fixture(scope="module")
def fitted():
    with pytest.warns():  # of so few draws
        return SGLDPoissonRegressor(n_draws=20, n_chains=2, random_state=0).fit(X, Y)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_refuses_an_argument_that_the_estimator_does_not_take(method, fitted):
    arguments = {"X": X} | (
        {"y": Y} if "y" in inspect.signature(getattr(fitted, method)).parameters else {}
    )
    expected = rf"SGLDPoissonRegressor\.{method}\(\).*'n_trials'; it takes .*exposure; totals of"
    with pytest.raises(TypeError, match=expected):
        getattr(fitted, method)(**arguments, n_trials=3)


@pytest.mark.parametrize("cls", LINEAR)
def test_scikit_learn_may_route_the_arguments_that_an_estimator_takes_and_no_others(cls):
    routing = cls().get_metadata_routing()
    for method in ("fit", "partial_fit", "score"):
        requests = getattr(routing, method).requests
        assert set(requests) & set(ROW_ARGUMENTS) == set(cls._row_arguments)
        assert all(requests[name] is None for name in cls._row_arguments)


def test_a_subclass_may_leave_out_an_argument_of_its_bases():
    assert SGLDOrdinalClassifier.__mro__[3]._row_arguments == ("n_trials",)
    assert "n_trials" not in SGLDOrdinalClassifier().get_metadata_routing().fit.requests
    assert "``n_trials``" not in SGLDOrdinalClassifier.__doc__


@pytest.mark.parametrize("cls", LINEAR)
def test_the_notes_of_a_class_document_its_arguments(cls):
    for name in cls._row_arguments:
        assert f"``{name}``, an argument by row, is" in cls.__doc__
