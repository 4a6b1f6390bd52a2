"""scikit-learn's checks of the estimators of the mode."""

import pytest

from skbayes_sgld import SGDMAPClassifier, SGDMAPRegressor
from tests.estimators.test_sklearn_api import OWN, with_slow_ones

pytestmark = [
    # some checks give few passes
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # the conjugate prior warns of few rows a column
    pytest.mark.filterwarnings(r"ignore:\d+ rows for \d+ columns"),
]


@with_slow_ones([SGDMAPClassifier()], lambda name: name == "check_estimator_sparse_matrix")
def test_an_estimator_of_labels_passes_scikit_learns_checks(estimator, check):
    check(estimator)


# a check that is slow runs code of the bases alone, which the test above enters
@with_slow_ones([SGDMAPRegressor()], lambda name: name not in OWN)
def test_an_estimator_of_numbers_passes_scikit_learns_checks(estimator, check):
    check(estimator)
