"""Averages of the iterates: what they are, and which are refused."""

import numpy as np
import pytest

from skbayes_sgld import SGDMAPClassifier, SGDMAPRegressor
from tests.references.modes import task

# the last iterate is not to be within tol: the runs go on to their end
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize(("average", "first"), [(True, 1), (5, 5), (np.int64(30), 30)])
def test_the_estimators_report_the_averages(average, first):
    X, y = task(SGDMAPRegressor, "diabetes")
    settings = {"optimizer": "gd", "max_iter": 60, "tol": 0.0}  # one step a pass
    settings |= {"preconditioner": "curvature", "step_size": 0.02, "schedule": "constant"}
    path = SGDMAPRegressor(**settings).fit(X, y).coef_path_[1:]
    averaged = SGDMAPRegressor(average=average, **settings).fit(X, y)
    for t in range(60):
        expected = path[first - 1 : t + 1].mean(axis=0) if t + 1 >= first else path[t]
        np.testing.assert_allclose(averaged.coef_path_[t + 1], expected, rtol=1e-9)
    np.testing.assert_array_equal(averaged.coef_, averaged.coef_path_[-1])
    assert not np.allclose(averaged.coef_, path[-1], rtol=1e-3)


@pytest.mark.parametrize(
    ("average", "error"), [(0, ValueError), (61, ValueError), (2.5, TypeError), (None, TypeError)]
)
def test_what_is_no_pass_of_the_run_is_refused(average, error):
    model = SGDMAPClassifier(average=average, max_iter=60)
    with pytest.raises(error, match=rf"average={average!r} .*False, True .* in \[1, 60\]"):
        model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
