"""Every warning points at the line of the caller, whatever stands between it and the package."""

import inspect
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skbayes_sgld
from skbayes_sgld import (
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDMLPRegressor,
    gather_warnings,
    sample,
)
from skbayes_sgld.optimizers import find_mode
from skbayes_sgld.own_models import FunctionPosterior

pytestmark = pytest.mark.usefixtures("by_steps")

X = np.random.default_rng(0).standard_normal((40, 2))
Y = X[:, 0] + np.random.default_rng(1).standard_normal(40)
NORMAL = FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=2)
FEW = SGLDLinearRegression(n_draws=20, random_state=0)
PIPE = make_pipeline(StandardScaler(), FEW)
NETWORK = SGLDMLPRegressor(hidden_layer_sizes=(2,), n_draws=3, n_burnin=20, thin=1, random_state=0)


def cube(z):
    return z**3


def told(call):
    """Warnings of a call, and the lines of its source."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    source, first = inspect.getsourcelines(call)
    return found, range(first, first + len(source))


@pytest.mark.parametrize(
    "call",
    [
        lambda: FEW.fit(X, Y),
        lambda: PIPE.fit(X, Y),
        lambda: GridSearchCV(PIPE, {"sgldlinearregression__thin": [1]}, cv=2).fit(X, Y),
        lambda: cross_val_predict(FEW, X, Y, cv=2),
        lambda: BaggingRegressor(FEW, n_estimators=1).fit(X, Y),
        lambda: NETWORK.fit(X, Y),
        lambda: SGDMAPRegressor(max_iter=1, random_state=0).fit(1e3 * X, Y),
        lambda: sample(NORMAL, n_draws=20, random_state=0),
        lambda: find_mode(NORMAL, np.ones(2), optimizer="gd", step_size=1e-3, max_iter=1),
    ],
    ids=["fit", "pipeline", "search", "folds", "bag", "network", "map", "sample", "find_mode"],
)
def test_a_convergence_warning_points_at_the_callers_line(call):
    found, lines = told(call)
    ours = [each for each in found if issubclass(each.category, ConvergenceWarning)]
    assert ours
    assert {each.filename for each in ours} == {__file__}
    assert all(each.lineno in lines for each in ours)


def test_other_warnings_point_there_too(monkeypatch):
    known = clone(FEW).set_params(noise_variance=1.0)
    found, lines = told(lambda: known.fit(X, Y, sample_weight=np.full(40, 1.0 / 40)))
    light = [w for w in found if "sample_weight sums to 1 over 40 rows" in str(w.message)]
    assert [(each.filename, each.lineno in lines) for each in light] == [(__file__, True)]
    pickled = pickle.dumps(FEW)
    monkeypatch.setattr(skbayes_sgld.estimators.base, "version", lambda name: "99.0")
    found, _ = told(lambda: pickle.loads(pickled))
    assert [each.filename for each in found] == [__file__]


# ---- searches -----------------------------------------------------------------------------------

FRAME = pd.DataFrame(X, columns=["age", "bmi"])
COUNTLESS = {"temperature": [1.0, 2.0], "thin": [1]}


def search(n_jobs=1, model=FEW, grid=COUNTLESS):
    return GridSearchCV(model, grid, cv=2, n_jobs=n_jobs)


def messages(call):
    return [str(each.message) for each in told(call)[0]]


def test_a_warning_of_a_search_names_its_candidate_its_split_and_its_column():
    found = messages(lambda: search().fit(FRAME, Y))
    assert len(found) == 5
    for number, (message, temperature) in enumerate(zip(found, [1.0, 1.0, 2.0, 2.0], strict=False)):
        assert message.endswith(
            f" This is of candidate {1 + number // 2} of 2 (temperature={temperature}, thin=1), "
            f"split {1 + number % 2} of 2; the context gather_warnings() makes one warning of all."
        )
        assert "[x" not in message
    assert "This is of" not in found[-1]  # of the best candidate, fitted to all rows


@pytest.mark.slow
def test_the_warnings_of_a_search_are_gathered_into_one_whatever_process_makes_them():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with gather_warnings() as gathered:
            search(n_jobs=2).fit(FRAME, Y)
        (one,) = found
        # and the same workers send to the next context
        with gather_warnings() as again:
            search(n_jobs=2).fit(FRAME, Y)
    assert one.category is ConvergenceWarning
    assert one.filename == __file__
    said = str(one.message).splitlines()
    assert said[0] == "5 warnings were gathered. 4 of the 4 fits of a search have some."
    assert said[1].startswith("* candidate 1 (temperature=1.0, thin=1), splits 1, 2; ")
    assert said[2].startswith("* candidate 2 (temperature=2.0, thin=1), splits 1, 2; ")
    assert said[3].startswith("* fits outside a search; ")
    assert len(said) == 4
    for line in said[1:]:
        assert "[x" not in line
        assert "coef[age]" in line or "coef[bmi]" in line or "intercept" in line
        assert "effective sample size of " in line
    table = gathered.table.sort_values(["candidate", "split"])
    assert table["candidate"].tolist() == [0, 1, 1, 2, 2]
    assert table["split"].tolist() == [0, 1, 2, 1, 2]
    assert table["convergence"].all()
    assert len(again.table) == 5


def test_a_context_without_warnings_is_silent_and_one_that_fails_hides_nothing():
    with gather_warnings() as gathered:
        SGLDLinearRegression(random_state=0).fit(X, Y)
    assert gathered.table.empty
    with pytest.raises(ValueError, match="n_draws"), gather_warnings():
        FEW.fit(X, Y)
        SGLDLinearRegression(n_draws=-1).fit(X, Y)


def test_an_estimator_pickled_while_warnings_are_gathered_is_read_at_any_time():
    with pytest.warns(ConvergenceWarning, match="1 warnings"), gather_warnings():
        written = pickle.dumps(clone(FEW).fit(X, Y))
    read = pickle.loads(written)
    assert "_skbayes_sgld_gathers" not in vars(read)
    with pytest.warns(ConvergenceWarning, match="effective sample size of "):
        read.fit(X, Y)


NAMELESS = make_pipeline(FunctionTransformer(np.asarray), FEW)  # no get_feature_names_out


def test_a_pipeline_that_loses_the_columns_names_says_how_to_keep_them():
    lost = messages(lambda: NAMELESS.fit(FRAME, Y))
    assert "[x" in lost[0]
    assert lost[0].endswith("to see names call set_output(transform='pandas') on the pipeline.")
    with pytest.warns(ConvergenceWarning) as found, gather_warnings():
        grid = {"sgldlinearregression__temperature": [1.0, 2.0]}
        search(model=NAMELESS, grid=grid).fit(FRAME, Y)
    assert str(found[0].message).count("set_output") == 1


NAMED = ColumnTransformer([("scaled", StandardScaler(), ["bmi", "age"])])  # in another order


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(NAMED, FEW),
        make_pipeline(NAMED, FEW).set_output(transform="pandas"),
        make_pipeline(NAMED, make_pipeline(StandardScaler(), FEW)),
        make_pipeline(NAMED, TransformedTargetRegressor(FEW, func=np.cbrt, inverse_func=cube)),
        TransformedTargetRegressor(make_pipeline(NAMED, FEW), func=np.cbrt, inverse_func=cube),
        GridSearchCV(make_pipeline(NAMED, FEW), {"sgldlinearregression__thin": [1]}, cv=2),
    ],
    ids=["arrays", "frames", "nested", "target inside", "target outside", "search"],
)
def test_a_warning_has_the_columns_names_behind_the_steps_of_a_pipeline(model):
    noise = pd.DataFrame({"age": X[:, 0], "bmi": 1e-3 * X[:, 0] + 1e-9 * X[:, 1]})
    found = messages(lambda: clone(model).fit(noise, Y))
    for message in found:
        assert re.search(r"coef\[scaled__(age|bmi)\]|intercept|noise_variance", message)
        assert "[x" not in message
        assert "set_output" not in message
    assert "coef[scaled__" in " ".join(found)


def test_a_column_whose_own_name_is_a_number_keeps_it():
    swapped = FRAME.set_axis(["x1", "x0"], axis=1)
    steps = make_pipeline(StandardScaler(), FEW)
    by_number = messages(lambda: steps.fit(swapped, Y))
    by_name = messages(lambda: clone(steps).set_output(transform="pandas").fit(swapped, Y))
    assert "coef[x" in by_name[0]
    assert by_number == by_name


def test_columns_that_an_ensemble_chooses_get_no_names():
    bag = BaggingRegressor(FEW, n_estimators=1, bootstrap_features=True, random_state=0)
    found = messages(lambda: make_pipeline(NAMED, bag).fit(FRAME, Y))
    assert "scaled__" not in found[0]
    assert "set_output" in found[0]
