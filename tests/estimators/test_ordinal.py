"""Ordinal regression against a grid, logistic regression, and itself in parts."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.model_selection import KFold, cross_val_score

from skbayes_sgld import SGLDLogisticRegression, SGLDOrdinalClassifier
from skbayes_sgld.likelihoods import Ordinal
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import LogNormal, Normal
from skbayes_sgld.rows import stream as streams
from skbayes_sgld.sampling.tuning.mode import newton_mode
from tests.marks import SHORT, quick

# the runs are short
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, NAMES = 240, np.array(["poor", "fair", "good", "best"])
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 2)) * [1.0, 2.0] + [3.0, 0.0]
CODES = np.digitize(X @ [1.0, -0.3] - 3.0 + RNG.logistic(size=N), [-1.0, 0.2, 1.5])
GRADES = pd.Series(pd.Categorical.from_codes(CODES, NAMES, ordered=True))
DRAWS = {"n_draws": 250, "random_state": 0}


def fit(*data, **settings):
    return SGLDOrdinalClassifier(**DRAWS | settings).fit(*data)


@pytest.fixture(scope="module")
def model():
    return fit(X, GRADES)


def agree(found, expected, most=0.2):
    """Whether means and sds are those of another fit, up to Monte Carlo errors."""
    assert found.index.tolist() == expected.index.tolist()
    assert np.all(np.abs(found["mean"] - expected["mean"]) < most * expected["sd"])
    assert_allclose(found["sd"], expected["sd"], rtol=most)


# ---- truth --------------------------------------------------------------------------------------


def test_the_posterior_of_few_rows_is_that_of_a_grid():
    x = np.array([-1.5, -1.0, -0.6, -0.2, 0.1, 0.5, 0.8, 1.2, 1.9, 2.5])
    y = np.array([0, 0, 1, 0, 1, 1, 2, 1, 2, 2])
    beta, level, log_gap = np.meshgrid(
        np.linspace(-3, 8, 45), np.linspace(-9, 9, 46), np.linspace(-4, 5, 46), indexing="ij"
    )
    log_density = stats.norm.logpdf(beta, 0, 2) + stats.norm.logpdf(level, 0, 3)
    log_density += stats.norm.logpdf(log_gap, 0, 1.5)
    first, last = -level, -level + np.exp(log_gap)
    for at, code in zip(x, y, strict=True):
        below = [0.0, stats.logistic.cdf(first - beta * at), stats.logistic.cdf(last - beta * at)]
        log_density += np.log([*below, 1.0][code + 1] - below[code] + 1e-300)
    weight = np.exp(log_density - log_density.max())
    known = np.array([beta, first, last])
    mean = (known * weight).sum(axis=(1, 2, 3)) / weight.sum()
    square = (known - mean[:, None, None, None]) ** 2
    sd = np.sqrt((square * weight).sum(axis=(1, 2, 3)) / weight.sum())
    prior, intercept_prior = Normal(scale=2.0), Normal(scale=3.0)
    found = fit(x[:, None], y, prior=prior, intercept_prior=intercept_prior, n_draws=2000)
    table = found.summary()
    assert table.index.tolist() == ["coef[x0]", "cut_point[0|1]", "cut_point[1|2]"]
    assert np.all(np.abs(table["mean"] - mean) < 5 * table["mcse_mean"] + 0.01 * sd)
    assert np.all(np.abs(table["sd"] - sd) < 5 * table["mcse_sd"] + 0.01 * sd)


def test_two_classes_are_logistic_regression():
    ours, theirs = fit(X, CODES > 1), SGLDLogisticRegression(**DRAWS).fit(X, CODES > 1)
    assert ours.summary().index.tolist()[-1] == "cut_point[False|True]"
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    assert_allclose(ours.cut_points_, -theirs.intercept_, rtol=1e-6)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-5)


def test_the_gaps_of_many_classes_do_not_pull_the_coefficient():
    """Many gaps share one range: with a median of 1 their prior widens it, and the coefficient."""
    rng = np.random.default_rng(0)
    x, n_classes = rng.standard_normal(250), 40
    u = 1.2 * x + rng.logistic(size=250)
    y = np.searchsorted(np.quantile(u, np.arange(1, n_classes) / n_classes), u)
    data = x[:, None], y.astype(float), Ordinal(n_classes), Normal(scale=5.0)

    def at_mode(own_priors=None):
        posterior = GLMPosterior(*data, own_priors)
        return newton_mode(posterior, posterior.start()).theta[0]

    flat = at_mode([LogNormal(width=100.0, median=1.0)] * (n_classes - 2))
    assert abs(at_mode() - flat) < 0.03  # a fifth of its sd; with a median of 1 it is 0.1


# ---- classes and predictions --------------------------------------------------------------------


def test_classes_are_in_the_order_of_their_categories(model):
    assert_array_equal(model.classes_, NAMES)
    assert list(model.summary().index[2:]) == [
        "cut_point[poor|fair]",
        "cut_point[fair|good]",
        "cut_point[good|best]",
    ]
    by_code = fit(X, CODES)
    assert_array_equal(by_code.posterior_.values, model.posterior_.values)
    assert_array_equal(model.predict_proba(X), by_code.predict_proba(X))
    assert_array_equal(model.predict(X), NAMES[by_code.predict(X)])
    assert_array_equal(model.sample_y(X[:5], 9), NAMES[by_code.sample_y(X[:5], 9)])
    given = model.log_likelihood(X, GRADES), by_code.log_likelihood(X, CODES)
    assert_array_equal(*given)
    assert model.score(X, GRADES) == by_code.score(X, CODES)
    cut_points = model.posterior_["cut_point"].reshape(-1, 3)
    assert_allclose(model.cut_points_, cut_points.mean(axis=0), rtol=1e-9)
    assert_allclose(model.intercept_, -model.cut_points_[:1])


def test_no_digit_of_a_small_probability_is_lost():
    likelihood, u = Ordinal(4), np.zeros((2, 3, 1))
    u[:, 0, 0] = 40.0, 1000.0
    log_p, log_rest = likelihood.log_probabilities(u)
    assert_allclose(log_p[:, 0, 0], [-40.0, -1000.0], rtol=1e-12)
    assert_allclose(log_rest[:, -1, 0], [-38.0, -998.0], rtol=1e-12)  # two gaps of 1
    assert_allclose(likelihood.log_density(u, np.zeros(1))[:, 0], [-40.0, -1000.0], rtol=1e-12)


# ---- rows in other forms ------------------------------------------------------------------------


@pytest.mark.slow
def test_weights_sparse_rows_and_blocks_are_the_same_rows(model):
    from tests.blocks.windows import blocks_of

    expected = model.posterior_.values
    assert_allclose(fit(sparse.csr_array(X), GRADES).posterior_.values, expected, rtol=1e-6)
    assert_allclose(fit(blocks_of(X, CODES, size=80)).posterior_.values, expected, rtol=1e-6)
    weight = np.arange(N) % 3
    often = fit(np.repeat(X, weight, axis=0), np.repeat(CODES, weight))
    assert_allclose(fit(X, CODES, weight).posterior_.values, often.posterior_.values, rtol=1e-6)


def test_batches_are_one_fit_and_keep_the_order_of_the_classes(model, monkeypatch):
    monkeypatch.setattr(streams, "_KEPT", 100)
    stream = SGLDOrdinalClassifier(prior=Normal(scale=1.0), n_draws=1000, random_state=0)
    classes = pd.Categorical(NAMES, NAMES, ordered=True)
    for start in range(0, N, 80):
        rows = slice(start, start + 80)
        stream.partial_fit(X[rows], GRADES[rows], classes=classes)
    assert_array_equal(stream.classes_, NAMES)
    agree(stream.summary(), fit(X, GRADES, prior=Normal(scale=1.0), n_draws=1000).summary())


@pytest.mark.slow
def test_fewer_rows_than_columns_are_sampled_in_the_space_of_the_rows():
    wide = RNG.standard_normal((30, 40))
    tables = [
        fit(wide, CODES[:30], prior="normal", parameterization=name, n_draws=1000).summary()
        for name in ("row_space", "centered")
    ]
    agree(*(table.filter(like="cut_point", axis=0) for table in tables))


def test_a_class_without_weight_has_probability_0_or_what_its_prior_says():
    weight = (CODES != 1) * 1.0
    absent = fit(X, GRADES, weight, **SHORT)
    assert absent.summary().index.tolist()[2:] == ["cut_point[poor|good]", "cut_point[good|best]"]
    assert_array_equal(absent.predict_proba(X)[:, 1], 0.0)
    assert_array_equal(absent.classes_, NAMES)
    present = fit(X, GRADES, weight, intercept_prior="normal", **SHORT)
    assert len(present.cut_points_) == 3
    assert np.all(present.predict_proba(X)[:, 1] > 0.0)


def test_draws_of_the_prior_are_in_the_order_of_the_gaps():
    model = SGLDOrdinalClassifier(intercept_prior="normal", gap_prior=LogNormal(width=0.1))
    y = model.sample_prior(np.eye(3, 2), 4000, y=[0, 1, 2])[2]  # the row of zeros
    # the middle class is one gap of 1 about a first cut point of sd 1 at least
    assert {0, 1, 2} == set(y.tolist())
    assert 0.1 < np.mean(y == 1) < 0.25


OTHERS = {
    "numbers": pd.Categorical.from_codes(CODES, [0.5, 1.0, 1.5, 7.0], ordered=True),
    "numbers downwards": pd.Categorical.from_codes(CODES, [4, 3, 2, 1], ordered=True),
    "intervals": pd.cut(CODES, [-np.inf, 0.0, 1.0, 2.0, np.inf]),
}


@pytest.fixture(scope="module")
def scores_of_text():
    return cross_val_score(SGLDOrdinalClassifier(**DRAWS | SHORT), X, GRADES, cv=KFold(2))


@pytest.mark.parametrize("kind", quick(OTHERS, "numbers downwards"))
def test_ordered_categories_need_not_be_text(kind, model, scores_of_text):
    y = OTHERS[kind]
    found = fit(X, y)
    names = [str(c) for c in y.categories] if found.classes_.dtype == object else y.categories
    assert_array_equal(found.classes_, names)
    assert_array_equal(found.posterior_.values, model.posterior_.values)
    assert_array_equal(found.predict(X), np.asarray(names)[codes_of(model.predict(X))])
    assert found.score(X, y) == model.score(X, GRADES)
    assert found.score(X, np.asarray(names)[CODES]) == model.score(X, GRADES)
    assert_array_equal(found.log_predictive_density(X, y), model.log_predictive_density(X, GRADES))
    scores = cross_val_score(SGLDOrdinalClassifier(**DRAWS | SHORT), X, y, cv=KFold(2))
    assert_allclose(scores, scores_of_text)
    batches = SGLDOrdinalClassifier(**DRAWS | SHORT).partial_fit(X[:120], y[:120], classes=y)
    batches.partial_fit(X[120:], y[120:], classes=y)
    assert_array_equal(batches.classes_, names)


def codes_of(labels):
    return np.argmax(np.asarray(labels)[:, None] == NAMES, axis=1)


def test_draws_of_the_prior_are_labels_in_the_order_of_the_categories():
    model = SGLDOrdinalClassifier(intercept_prior="normal", gap_prior=LogNormal(width=0.1))
    by_code = model.sample_prior(np.eye(3, 2), 50, y=[0, 1, 2])
    y = pd.Categorical(NAMES[:3], NAMES[:3], ordered=True)
    assert_array_equal(model.sample_prior(np.eye(3, 2), 50, y=y), NAMES[by_code])


def test_a_refit_on_blocks_forgets_the_order_of_the_categories():
    from tests.blocks.windows import blocks_of

    downwards = pd.Categorical.from_codes(3 - CODES, [3, 2, 1, 0], ordered=True)
    model = fit(X, downwards, **SHORT)
    assert_array_equal(model.classes_, [3, 2, 1, 0])
    model.fit(blocks_of(X, CODES, size=80))
    assert_array_equal(model.classes_, [0, 1, 2, 3])
    fresh = fit(blocks_of(X, CODES, size=80), **SHORT)
    assert_array_equal(model.posterior_.values, fresh.posterior_.values)
    assert model.score(X, CODES) == fresh.score(X, CODES)


def test_text_without_an_order_is_sorted_and_the_order_is_told():
    text = NAMES[CODES]
    said = "alphabetical order: best < fair < good < poor. If.*its codes where .* VotingClassifier"
    with pytest.warns(UserWarning, match=said):
        model = fit(X, text, **SHORT)
    with pytest.warns(UserWarning, match="alphabetical order"):
        SGLDOrdinalClassifier(**DRAWS | SHORT).partial_fit(X, text, classes=NAMES)
    assert_array_equal(model.classes_, np.sort(NAMES))
    fit(X, GRADES, **SHORT)  # a warning would be an error
    fit(X, CODES, **SHORT)
    # two classes have the same model in either order
    fit(X, np.where(CODES > 1, "yes", "no"), **SHORT)
