"""The estimators as scikit-learn sees them: its own checks, and the tools that users combine."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbayes_sgld import (
    SGDMAPClassifier,
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
)

ESTIMATORS = [
    SGLDLinearRegression(n_draws=250),
    SGLDLogisticRegression(n_draws=250),
    SGDMAPRegressor(),
    SGDMAPClassifier(),
]


def granted(estimator):
    """Return what scikit-learn grants its own SGD estimators."""
    if isinstance(estimator, (SGDMAPRegressor, SGDMAPClassifier)):
        reason = "a minibatch picks rows, not weights: as for SGDRegressor and SGDClassifier"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    return {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=granted)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
