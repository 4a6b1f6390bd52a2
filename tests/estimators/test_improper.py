"""Posteriors that are none are refused, and what makes them proper is named."""

import numpy as np
import pytest

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)
from skbayes_sgld.posterior import propriety
from skbayes_sgld.posterior.propriety import ImproperPosteriorError
from skbayes_sgld.priors import Normal
from tests.inputs.good import make
from tests.inputs.refusals import CLASSIFIERS, REGRESSORS, cases, refuse

# 100 draws are too few for the summaries to be relied on, and the estimators say so
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # the conjugate prior warns of few rows a column
    pytest.mark.filterwarnings(r"ignore:\d+ rows for \d+ columns"),
]

FLAT = {"prior": "flat"}
N, D = 60, 3
X = np.random.default_rng(0).standard_normal((N, D))
Y = X @ [1.0, -2.0, 0.5] + np.random.default_rng(1).standard_normal(N)
OF_BOTH = ((REGRESSORS, Y), (CLASSIFIERS, (Y > 0).astype(float)))
CONSTANT = X * [1.0, 0.0, 1.0] + [0.0, 0.1, 0.0]
DEPENDENT = np.column_stack([X, X[:, 0] - 2.0 * X[:, 1]])
SIDE = (X[:, 0] > 0).astype(int)
TOUCHING = X * np.where(np.arange(N)[:, None] < 6, [0.0, 1.0, 1.0], 1.0)  # six on the plane
THREE, THREE_TOUCHING = np.digitize(X[:, 0], [-0.5, 0.5]), SIDE + SIDE * (Y > 0)
PROPER, NOISE = r".*improper.*prior='normal'", r"noise_prior='flat'.* rows.*'inverse_gamma'"
IMPROPER = [
    *(
        each
        for classes, y in OF_BOTH
        for label, match, rows in (
            ("constant column", rf"column 1.*x1.*constant{PROPER}", CONSTANT),
            ("float32", rf"column 1.*x1.*constant{PROPER}", CONSTANT.astype("f4")),
            ("dependent", rf"x0.*x1.*x3.*linearly dependent{PROPER}", DEPENDENT),
        )
        for each in cases(label, match, classes, rows, y, **FLAT)
    ),
    *cases("n < d", rf"3 rows.*4 coefficients{PROPER}", REGRESSORS, X[:3], Y[:3], **FLAT),
    *cases("n < d", rf"3 rows.*4 coefficients{PROPER}", CLASSIFIERS, X[:3], [0, 1, 1], **FLAT),
    *cases("n = d", NOISE, REGRESSORS, X[:4], Y[:4], noise_prior="flat"),
    # what is left is sigma^-(n - d), which must fall faster than 1 / sigma
    *cases("n = d + 1", NOISE, REGRESSORS, X[:5], Y[:5], noise_prior="flat", **FLAT),
    *cases("separable", r"separates.*prior='normal'", CLASSIFIERS, X, SIDE, **FLAT),
    *cases("touching", r"separates.*prior='normal'", CLASSIFIERS, TOUCHING, SIDE, **FLAT),
    *cases("three", r"separates.*prior='normal'", CLASSIFIERS, X, THREE, **FLAT),
    *cases("three touching", r"separates.*'normal'", CLASSIFIERS, TOUCHING, THREE_TOUCHING, **FLAT),
]


@pytest.mark.parametrize(("model", "match", "data"), IMPROPER)
def test_improper_posteriors_are_refused(model, match, data):
    refuse(model, match, **data)


LIGHT = np.full(N, 1e-15)
ONE, HEAVY = np.eye(N)[5], np.where(np.arange(N) == 5, 1.0, 1e-18)
COUNTS = np.random.default_rng(2).poisson(2.0, N)
FEW_EVENTS = np.where(np.arange(N) == 5, 3, 0)
HELD = "the rows that keep the intercept from infinity count as {} in all.*improper, or nearly"
BESIDE = "the rows beside that of the largest weight count as 5.9e-17 in all.*improper, or nearly"
SINGLE = r"one row has a weight \(n_samples=1\): neither.*improper, or nearly"
PROPER_LEVEL = {"intercept_prior": "normal"}


# weights of next to nothing are the subject
@pytest.mark.filterwarnings("ignore:sample_weight sums to")
@pytest.mark.parametrize(
    ("cls", "y", "weight", "params", "match"),
    [
        (SGLDPoissonRegressor, COUNTS, LIGHT, {}, HELD.format(r"1.\de-13")),
        (SGLDPoissonRegressor, FEW_EVENTS, 1.0 - (1 - 1e-9) * ONE, {}, HELD.format("3e-09")),
        (SGLDPoissonRegressor, COUNTS, ONE, {}, SINGLE),
        (SGLDPoissonRegressor, COUNTS, HEAVY, {}, BESIDE),
        (SGLDPoissonRegressor, COUNTS, LIGHT, PROPER_LEVEL | FLAT, "the rows beside .* count as"),
        (SGLDLogisticRegression, SIDE, LIGHT, {}, HELD.format("2.*e-14")),
        (SGLDLogisticRegression, THREE, LIGHT, {}, HELD.format("1.*e-14")),
        (SGLDLogisticRegression, SIDE, np.where(SIDE, 1.0, 1e-6), {}, HELD.format(".*e-05")),
        (SGLDLogisticRegression, SIDE, HEAVY, PROPER_LEVEL, BESIDE),
    ],
)
def test_weights_that_leave_next_to_nothing_are_refused(cls, y, weight, params, match):
    from tests.blocks.windows import blocks_of

    model = cls(**params, random_state=0)
    with pytest.raises(ImproperPosteriorError, match=match):
        model.fit(X, y, weight)
    assert vars(model).keys() == model.get_params(deep=False).keys()
    with pytest.raises(ImproperPosteriorError, match=match):
        model.fit(blocks_of(X, y, weight, size=35, pool_size=30))


# weights of next to nothing are the subject
@pytest.mark.filterwarnings("ignore:sample_weight sums to")
def test_small_weights_under_proper_priors_leave_the_prior():
    priors = {"prior": Normal(scale=0.5), "intercept_prior": Normal(scale=2.0)}
    for cls, y in ((SGLDPoissonRegressor, COUNTS), (SGLDLogisticRegression, SIDE)):
        model = cls(random_state=0, **priors).fit(X, y, LIGHT)
        table = model.summary()
        for name, sd in (("coef[x0]", 0.5), ("intercept", 2.0)):
            values, row = model.posterior_[name].ravel(), table.loc[name]
            assert abs(values.mean()) < 4.5 * sd / np.sqrt(row["ess_bulk"])
            assert abs(values.std() / sd - 1.0) < 4.5 / np.sqrt(2.0 * row["ess_tail"])


def test_an_anchor_of_large_weight_beside_rows_that_tell_is_accepted():
    weight = 1.0 + 1e6 * ONE
    model = SGLDPoissonRegressor(random_state=0).fit(X, COUNTS, weight)
    rate = model.predict(X[5:6])
    assert abs(rate[0] - COUNTS[5]) < 0.05 * COUNTS[5]


def test_separation_is_found_where_the_linear_programme_would_be_too_large(monkeypatch):
    monkeypatch.setattr(propriety, "_MAX_LP", 0)
    refuse(SGLDLogisticRegression(**FLAT), r"prior='normal'", X, SIDE)


@pytest.mark.parametrize("cls, y", [(SGLDLinearRegression, Y), (SGLDLogisticRegression, Y > 0)])
def test_the_coefficient_of_a_constant_column_keeps_its_proper_prior(cls, y):
    model = make(cls, prior=Normal(scale=2.0), n_draws=1000, n_chains=4).fit(CONSTANT, y)
    values, table = model.posterior_["coef[x1]"].ravel(), model.summary().loc["coef[x1]"]
    ess = min(table["ess_bulk"], table["ess_tail"])
    assert ess > 1000
    assert abs(values.mean()) < 4.5 * 2.0 / np.sqrt(ess)
    assert abs(values.std() / 2.0 - 1.0) < 4.5 / np.sqrt(2.0 * ess)
