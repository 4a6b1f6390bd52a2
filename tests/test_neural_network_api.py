import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbayes_sgld import *

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"n_draws": 50, "n_burnin": 300, "thin": 2, "n_chains": 2}
ESTIMATORS = [
    SGLDMLPRegressor(**SHORT),
    SGLDMLPClassifier(**SHORT),
    BayesByBackpropRegressor(max_iter=500),
    BayesByBackpropClassifier(max_iter=500),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
