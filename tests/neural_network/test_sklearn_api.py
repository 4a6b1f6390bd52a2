"""scikit-learn's checks of the estimators of networks."""

import pytest

from skbayes_sgld import (
    BayesByBackpropClassifier,
    BayesByBackpropRegressor,
    SGLDMLPClassifier,
    SGLDMLPRegressor,
)
from tests.estimators.test_sklearn_api import FEW, OF_PARAMETERS, OWN, UNITS, with_slow_ones

# 20 draws are too few for the summaries to be relied on, and the estimators say so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

OTHERS = [
    SGLDMLPClassifier(**FEW),
    BayesByBackpropClassifier(max_iter=100, **UNITS),
]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """Training and burn-in of networks cut to a part."""
    monkeypatch.setattr("skbayes_sgld.neural_network.estimators._TRAINING_STEPS", 100)
    monkeypatch.setattr("skbayes_sgld.neural_network.ensemble._ROUNDS", 3)


@with_slow_ones([SGLDMLPRegressor(**FEW)], lambda name: name == "check_estimator_sparse_matrix")
def test_a_network_passes_scikit_learns_checks(estimator, check):
    check(estimator)


# a check that is slow runs code of the bases alone, which the test above enters
@with_slow_ones(OTHERS, lambda name: name not in OWN)
def test_the_other_networks_pass_scikit_learns_checks(estimator, check):
    check(estimator)


# the target of the first network and the inference of the last
@with_slow_ones(
    [BayesByBackpropRegressor(max_iter=100, **UNITS)], lambda name: name not in OF_PARAMETERS
)
def test_a_variational_regression_passes_scikit_learns_checks(estimator, check):
    check(estimator)
