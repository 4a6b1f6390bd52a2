"""Scikit-learn's checks of estimators with groups: the first column of X has labels."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbayes_sgld import (
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)
from tests.estimators.test_sklearn_api import OfAnyTarget

pytestmark = [
    # 40 draws are too few to be relied on
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # a column of numbers of the checks has a label for every row
    pytest.mark.filterwarnings(r"ignore:group_effects\['?x?0"),
    # targets of the checks are drawn from no model
    pytest.mark.filterwarnings("ignore::skbayes_sgld.ModelMisfitWarning"),
    pytest.mark.filterwarnings("ignore:y has the value .*, and the model is of whole counts"),
    pytest.mark.filterwarnings("ignore:y has classes"),
]

GROUPS = {"group_effects": {0: "intercept"}, "n_draws": 40}
LINEAR = SGLDLinearRegression(**GROUPS)
OTHERS = [
    SGLDLogisticRegression(**GROUPS),
    SGLDPoissonRegressor(**GROUPS),
    SGLDLinearRegression(noise_distribution="student_t", **GROUPS),
    SGLDOrdinalClassifier(**GROUPS),
    SGLDGammaRegressor(**GROUPS),
    OfAnyTarget(**GROUPS),
    SGLDNegativeBinomialRegressor(**GROUPS),
]
QUICK = {
    "check_classifier_not_supporting_multiclass",
    "check_complex_data",
    "check_estimators_empty_data_messages",
    "check_sample_weights_not_an_array",
}
# the posterior is the same, but not its draws
WHY = "a label whose rows weigh 0 is a label, and labels have the order of the rows"
EXPECTED = dict.fromkeys(
    [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")], WHY
)


def checks_of(estimators, quick):
    checks = parametrize_with_checks(estimators, expected_failed_checks=lambda _: EXPECTED)
    arguments, cases = checks.args
    marked = []
    for case in cases:
        values = case.values if hasattr(case, "values") else case
        marks = list(getattr(case, "marks", ()))
        if values[1].func.__name__ not in quick:
            marks.append(pytest.mark.slow)
        marked.append(pytest.param(*values, marks=marks))
    return pytest.mark.parametrize(arguments, marked, **checks.kwargs)


@checks_of([LINEAR], QUICK)
def test_the_linear_model_with_groups_passes_scikit_learns_checks(estimator, check):
    check(estimator)


@checks_of(OTHERS, {"check_classifier_not_supporting_multiclass"})
def test_the_other_estimators_with_groups_pass_scikit_learns_checks(estimator, check):
    check(estimator)
