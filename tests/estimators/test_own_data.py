"""A fit does not depend on what becomes of the caller's arrays, and holds no more than it needs."""

import gc
import weakref

import numpy as np
import pytest

import skbayes_sgld
from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
)
from skbayes_sgld.estimators import sampled
from skbayes_sgld.rows import record
from tests.inputs.good import LABELS, WEIGHT, X, Y, make

# 50 draws are too few for the summaries to be relied on, and the estimators say so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

FITS = {
    "laplace": lambda: (make(SGLDLinearRegression, prior="laplace"), Y),
    "softmax": lambda: (make(SGLDLogisticRegression), np.digitize(Y, [-1.0, 1.0])),
    "batches": lambda: (
        make(SGLDLogisticRegression, gradient="control_variate", batch_size=5),
        LABELS,
    ),
    "mode": lambda: (make(skbayes_sgld.SGDMAPRegressor), Y),
    "network": lambda: (make(skbayes_sgld.SGLDMLPRegressor), Y),
    "approximation": lambda: (make(skbayes_sgld.BayesByBackpropRegressor), Y),
}
every_fit = pytest.mark.parametrize("name", FITS)


def told(model):
    """Numbers of all that a fit says."""
    found = [model.predict(X[:20]).astype(float), model.summary().to_numpy(dtype=float)]
    if hasattr(model, "diagnose"):
        report = model.diagnose()
        names = ("bias", "halved_bias", "acceptance", "noise_ratio", "r_hat")
        figures = [getattr(report, name) for name in names if hasattr(report, name)]
        found += [np.array(figures), report.table.to_numpy(dtype=float)]
    return found


@every_fit
def test_what_becomes_of_the_data_changes_nothing(name):
    model, y = FITS[name]()
    rows, target, weight = X.copy(), y.copy(), WEIGHT.copy()
    before = told(model.fit(rows, target, sample_weight=weight))
    for array in (rows, target, weight):
        array *= 0
    for then, now in zip(before, told(model), strict=True):
        np.testing.assert_array_equal(now, then)


@every_fit
def test_a_fit_that_keeps_no_copy_keeps_nothing_of_the_data_alive(name, monkeypatch):
    for module in (record, sampled):  # as of an X of more than four million numbers
        monkeypatch.setattr(module, "MOST_KEPT", 0)
    model, y = FITS[name]()
    rows = X.copy()
    alive = weakref.ref(rows)
    model.fit(rows, y)
    del rows
    gc.collect()
    assert alive() is None
    told(model)
    if hasattr(model, "result_"):
        report = str(model.diagnose())
        assert "not measured" in report or model.result_.predictions is not None
        assert "nan" not in report
        assert "step_size" in str(model.result_.plan)
