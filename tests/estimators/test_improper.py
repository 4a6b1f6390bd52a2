"""Posteriors that are none are refused, and what makes them proper is named."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.posterior import ConjugateNormal, Laplace, Normal, propriety
from tests.estimators.test_bad_input import (
    CLASSIFIERS,
    REGRESSORS,
    N,
    X,
    Y,
    case,
    refuse,
    small,
    target,
)

# 100 draws are too few for the summaries to be relied on, and the estimators say so
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings(r"ignore:\d+ rows for \d+ columns"),
]

FLAT = {"prior": "flat"}
CONSTANT = X * [1.0, 0.0, 1.0] + [0.0, 0.1, 0.0]
DEPENDENT = np.column_stack([X, X[:, 0] - 2.0 * X[:, 1]])
SIDE = (X[:, 0] > 0).astype(int)
TOUCHING = X * np.where(np.arange(N)[:, None] < 6, [0.0, 1.0, 1.0], 1.0)  # six on the plane
THREE, THREE_TOUCHING = np.digitize(X[:, 0], [-0.5, 0.5]), SIDE + SIDE * (Y > 0)
PROPER, NOISE = r".*improper.*prior='normal'", r"noise_prior='flat'.* rows.*'inverse_gamma'"
IMPROPER = [
    *case("constant column", rf"column 1.*x1.*constant{PROPER}", X=CONSTANT, **FLAT),
    *case("float32", rf"column 1.*x1.*constant{PROPER}", X=CONSTANT.astype("f4"), **FLAT),
    *case("dependent", rf"x0.*x1.*x3.*linearly dependent{PROPER}", X=DEPENDENT, **FLAT),
    *case("n < d", rf"3 rows.*4 coefficients{PROPER}", REGRESSORS, X[:3], Y[:3], **FLAT),
    *case("n < d", rf"3 rows.*4 coefficients{PROPER}", CLASSIFIERS, X[:3], [0, 1, 1], **FLAT),
    *case("n = d", NOISE, REGRESSORS, X[:4], Y[:4], noise_prior="flat"),
    # what is left is sigma^-(n - d), which must fall faster than 1 / sigma
    *case("n = d + 1", NOISE, REGRESSORS, X[:5], Y[:5], noise_prior="flat", **FLAT),
    *case("separable", r"separates.*prior='normal'", CLASSIFIERS, X, SIDE, **FLAT),
    *case("touching", r"separates.*prior='normal'", CLASSIFIERS, TOUCHING, SIDE, **FLAT),
    *case("three", r"separates.*prior='normal'", CLASSIFIERS, X, THREE, **FLAT),
    *case("three touching", r"separates.*'normal'", CLASSIFIERS, TOUCHING, THREE_TOUCHING, **FLAT),
]


@pytest.mark.parametrize(("cls", "match", "params", "data"), IMPROPER)
def test_improper_posteriors_are_refused(cls, match, params, data):
    refuse(cls, match, params, **data)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_separation_is_found_where_the_linear_programme_would_be_too_large(cls, monkeypatch):
    monkeypatch.setattr(propriety, "_MAX_LP", 0)
    refuse(cls, r"prior='normal'", FLAT, X, SIDE)


@pytest.mark.parametrize(
    ("cls", "prior", "sd"),
    [
        (SGLDLinearRegression, Normal(scale=2.0), 2.0),
        (SGLDLinearRegression, ConjugateNormal(scale=3.0), None),
        (SGLDLogisticRegression, Normal(scale=0.5), 0.5),
        (SGLDLogisticRegression, Laplace(scale=0.5), np.sqrt(2.0) * 0.5),
    ],
)
def test_the_coefficient_of_a_constant_column_keeps_its_proper_prior(cls, prior, sd):
    model = small(cls, prior=prior, n_draws=1000, n_chains=4).fit(CONSTANT, target(cls))
    values, table = model.posterior_["coef[x1]"].ravel(), model.summary().loc["coef[x1]"]
    if sd is None:  # given the noise variance it is normal of sd 3 sigma
        sd = 3.0 * np.sqrt(model.posterior_["noise_variance"].mean())
    ess = min(table["ess_bulk"], table["ess_tail"])
    assert ess > 1000
    assert abs(values.mean()) < 4.5 * sd / np.sqrt(ess)
    error_of_sd = np.sqrt((stats.kurtosis(values, fisher=False) - 1.0) / 4.0 / ess)
    assert abs(values.std() / sd - 1.0) < 4.5 * error_of_sd
