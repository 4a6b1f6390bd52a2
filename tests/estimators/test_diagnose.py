"""The diagnosis through wrappers is that of the model within, with the table's own names."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
    diagnose,
)

# the runs are short
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 80
RNG = np.random.default_rng(0)
X = pd.DataFrame({"age": RNG.normal(40.0, 9.0, N), "town": RNG.choice(["Oslo", "Rome"], N)})
Z = 0.02 * X["age"] + (X["town"] == "Rome") + 0.3 * RNG.normal(size=N)
NAMES = ["coef[standardscaler__age]", "coef[onehotencoder__town_Rome]", "intercept"]
MODEL = SGLDLinearRegression(n_draws=100, random_state=0)
STEPS = make_column_transformer(
    (StandardScaler(), ["age"]), (OneHotEncoder(drop="first"), ["town"])
)


def prepared(model):
    return make_pipeline(clone(STEPS), clone(model))


def test_a_transformed_target_in_a_search_is_diagnosed():
    from skbayes_sgld import check_model

    inner = TransformedTargetRegressor(prepared(MODEL), func=np.log, inverse_func=np.exp)
    model = GridSearchCV(inner, {}, cv=2).fit(X, np.exp(Z))
    diagnosis = diagnose(model, X, np.exp(Z), remedies=False)
    printed = repr(diagnosis)
    assert printed.startswith("Did the sampler work? ") and "Does the model fit?" in printed
    assert "x0" not in printed and "x1" not in printed
    assert diagnosis.table.index.tolist() == [*NAMES, "noise_variance"]
    assert diagnosis.conflict.names == NAMES[:2]
    own = model.best_estimator_.regressor_[-1].diagnose()
    assert_array_equal(diagnosis.table, own.table)
    check = check_model(model, X, np.exp(Z), remedies=False)
    pd.testing.assert_frame_equal(diagnosis.model_check.table, check.table)


def test_problems_and_notes_have_the_names_of_columns():
    few = SGLDLogisticRegression(prior="flat", n_draws=40, random_state=0)
    model = make_pipeline(StandardScaler(), few).fit(X[["age"]], Z.median() < Z)
    [problem] = diagnose(model).problems
    assert "effective sample size of" in problem
    with_names = prepared(SGLDPoissonRegressor(n_draws=100, random_state=0))
    alike = X.assign(town=np.where(X["age"] > 40.0, "Rome", "Oslo")).iloc[:12]
    counts = np.where(alike["town"] == "Rome", 9, 0)
    diagnosis = diagnose(with_names.fit(alike, counts))
    notes = " ".join(diagnosis.notes)
    assert "coef[" in notes and "coef[x" not in notes
    assert "coef[x" not in repr(diagnosis)


MULTI = {
    "a model of several outputs": lambda: prepared(MODEL),
    "scikit-learn's around the model": lambda: prepared(MultiOutputRegressor(clone(MODEL))),
    "scikit-learn's around a pipeline": lambda: MultiOutputRegressor(prepared(MODEL)),
}


@pytest.mark.parametrize("name", MULTI)
def test_several_outputs_have_a_diagnosis_each(name):
    Y = pd.DataFrame({"cost": Z, "time": -Z + RNG.normal(size=N)})
    model = MULTI[name]().fit(X, Y)
    reports = diagnose(model, X, Y, remedies=False)
    assert list(reports) == ["cost", "time"]
    printed = repr(reports)
    assert printed.startswith("cost:\n") and "\ntime:\n" in printed and "x0" not in printed
    for report in reports.values():
        assert report.table.index.tolist() == [*NAMES, "noise_variance"]
        assert len(report.model_check.mean) == N
    assert list(diagnose(model)) in (["cost", "time"], ["y0", "y1"])


def test_outputs_that_are_transformed_together_have_diagnoses_of_the_draws():
    Y = np.column_stack([Z, -Z])
    model = TransformedTargetRegressor(
        prepared(MultiOutputRegressor(clone(MODEL))), transformer=StandardScaler()
    )
    model.fit(X, Y)
    assert [report.table.index.tolist() for report in diagnose(model).values()] == [
        [*NAMES, "noise_variance"]
    ] * 2
    with pytest.raises(ValueError, match="transformed together .* without X and y"):
        diagnose(model, X, Y)


@pytest.mark.slow
def test_classifiers_of_several_outputs_and_networks_are_diagnosed():
    from skbayes_sgld import SGLDMLPRegressor

    labels = SGLDLogisticRegression(n_draws=100, random_state=0)
    Y = np.column_stack([Z > 1.0, Z > 0.5])
    reports = diagnose(prepared(MultiOutputClassifier(labels)).fit(X, Y))
    assert [report.table.index.tolist() for report in reports.values()] == [NAMES, NAMES]
    network = SGLDMLPRegressor(n_draws=20, n_chains=2, n_burnin=20, random_state=0)
    network = prepared(network).fit(X, Z)
    assert diagnose(network, X[:3]).table.shape[0] == 3
    assert diagnose(network, X, Z, remedies=False).model_check.n_data_points == N
    rows = network[0].transform(X[:3])
    assert_array_equal(diagnose(network, X[:3]).table, network[-1].diagnose(rows).table)


def test_what_cannot_be_diagnosed_is_said():
    from skbayes_sgld import SGDMAPRegressor

    with pytest.raises(TypeError, match="diagnose needs draws of a sampled .*: Ridge has no diag"):
        diagnose(prepared(Ridge()).fit(X, Z))
    with pytest.raises(TypeError, match="SGDMAPRegressor has no diagnose"):
        diagnose(prepared(SGDMAPRegressor(random_state=0)).fit(X, Z))
    with pytest.raises(NotFittedError):
        diagnose(prepared(MODEL))
    model = prepared(MODEL).fit(X, Z)
    for given in ({"X": X}, {"y": Z}):
        with pytest.raises(ValueError, match="X and y must be given together"):
            diagnose(model, **given)
    with pytest.raises(TypeError, match="estimator is of type DataFrame"):
        diagnose(X, Z)
