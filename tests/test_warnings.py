"""Every warning points at the line of the caller, whatever stands between it and the package."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skbayes_sgld
from skbayes_sgld import SGDMAPRegressor, SGLDLinearRegression, SGLDMLPRegressor, sample
from skbayes_sgld.posterior import FunctionPosterior
from skbayes_sgld.sampling import find_mode

X = np.random.default_rng(0).standard_normal((40, 2))
Y = X[:, 0] + np.random.default_rng(1).standard_normal(40)
NORMAL = FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=2)
FEW = SGLDLinearRegression(n_draws=20, random_state=0)
PIPE = make_pipeline(StandardScaler(), FEW)
NETWORK = SGLDMLPRegressor(hidden_layer_sizes=(2,), n_draws=3, n_burnin=20, thin=1, random_state=0)


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
    light = [each for each in found if "sample_weight sums to" in str(each.message)]
    assert [(each.filename, each.lineno in lines) for each in light] == [(__file__, True)]
    pickled = pickle.dumps(FEW)
    monkeypatch.setattr(skbayes_sgld.estimators.fitted, "version", lambda name: "99.0")
    found, _ = told(lambda: pickle.loads(pickled))
    assert [each.filename for each in found] == [__file__]
