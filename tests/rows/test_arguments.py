"""Arguments by row: one entry each, from which checks, errors and metadata requests follow."""

import inspect

import numpy as np
import pytest

import skbayes_sgld
from skbayes_sgld import SGLDOrdinalClassifier, SGLDPoissonRegressor
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.rows.arguments import ROW_ARGUMENTS, RowArgument
from skbayes_sgld.rows.checks import one_a_row
from skbayes_sgld.rows.record import Rows
from tests.inputs.good import NAMES
from tests.marks import SHORT

LINEAR = [name for name in NAMES if name.startswith("SGLD") and "MLP" not in name]
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


@pytest.mark.parametrize("name", LINEAR)
def test_scikit_learn_may_route_the_arguments_that_an_estimator_takes_and_no_others(name):
    cls = getattr(skbayes_sgld, name)
    routing = cls().get_metadata_routing()
    for method in ("fit", "partial_fit", "score"):
        requests = getattr(routing, method).requests
        assert set(requests) & set(ROW_ARGUMENTS) == set(cls._row_arguments)
        assert all(requests[name] is None for name in cls._row_arguments)


def test_a_subclass_may_leave_out_an_argument_of_its_bases():
    assert SGLDOrdinalClassifier.__mro__[3]._row_arguments == ("n_trials",)
    assert "n_trials" not in SGLDOrdinalClassifier().get_metadata_routing().fit.requests
    assert "``n_trials``" not in SGLDOrdinalClassifier.__doc__


@pytest.mark.parametrize("name", LINEAR)
def test_the_notes_of_a_class_document_its_arguments(name):
    cls = getattr(skbayes_sgld, name)
    for argument in cls._row_arguments:
        assert f"``{argument}``, an argument by row, is" in cls.__doc__


CLUSTER = RowArgument(
    lambda value, X: one_a_row(value, "cluster", X),
    lambda cluster: RowValues(others={"cluster": cluster}),
    is_size=False,
    fitted_to="rows in clusters",
    elsewhere="no estimator takes clusters",
    documentation="``cluster``, an argument by row, is the number of the row's cluster.",
)
SIZE = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])


@pytest.mark.filterwarnings("ignore")  # of so few draws
def test_an_argument_that_is_no_size_stands_beside_one_that_is(monkeypatch):
    monkeypatch.setitem(ROW_ARGUMENTS, "cluster", CLUSTER)

    class Clustered(SGLDPoissonRegressor):
        _row_arguments = ("exposure", "cluster")

    settings = {**SHORT, "random_state": 0}
    alone = SGLDPoissonRegressor(**settings).fit(X, Y, exposure=SIZE)
    for names in (("cluster", "exposure"), ("exposure", "cluster")):
        values = {"cluster": np.arange(6), "exposure": SIZE}
        by_row = {name: values[name] for name in names}
        both = Clustered(**settings).fit(X, Y, **by_row)
        assert set(both._arguments_of_fit) == set(names)
        np.testing.assert_array_equal(both.posterior_.flat, alone.posterior_.flat)
        assert both.score(X, Y, **by_row) == alone.score(X, Y, exposure=SIZE)
        with pytest.raises(ValueError, match="cluster is None, and the model was fitted to rows "):
            both.score(X, Y, exposure=SIZE)
    only = Clustered(**settings).fit(X, Y, cluster=1)
    plain = SGLDPoissonRegressor(**settings).fit(X, Y)
    np.testing.assert_array_equal(only.posterior_.flat, plain.posterior_.flat)
    assert only.score(X, Y, cluster=1) == plain.score(X, Y)
    with pytest.raises(ValueError, match="exposure is given, and earlier calls of partial_fit had"):
        only.partial_fit(X, Y, cluster=1).partial_fit(X, Y, **by_row)


def test_two_arguments_that_do_not_go_together_are_refused_by_name():
    class Both(SGLDPoissonRegressor):
        _row_arguments = ("exposure", "n_averaged")

    with pytest.raises(ValueError, match="exposure and n_averaged do not go together"):
        Both().fit(X, Y, exposure=SIZE, n_averaged=SIZE)
    with pytest.raises(ValueError, match="n_averaged and exposure do not go together"):
        Both().fit(X, Y, n_averaged=SIZE, exposure=SIZE)


def test_rows_are_sliced_copied_and_joined_with_all_that_they_bring():
    codes = np.arange(12).reshape(6, 2)  # of two groups each
    rows = Rows(X, RowValues(Y, others={"groups": codes}))
    some = rows.having_weight(np.array([0.0, 1.0, 1.0, 0.0, 2.0, 1.0]))
    np.testing.assert_array_equal(some.values.others["groups"], codes[[1, 2, 4, 5]])
    np.testing.assert_array_equal(some.weight, [1.0, 1.0, 2.0, 1.0])
    assert not np.shares_memory(rows.copied().values.others["groups"], codes)
    both = some.followed_by(rows).values
    np.testing.assert_array_equal(both.others["groups"], np.r_[codes[[1, 2, 4, 5]], codes])
    np.testing.assert_array_equal(both.weight, [1.0, 1.0, 2.0, 1.0, *np.ones(6)])
