"""A new argument by row that is no offset: one entry, and a likelihood that takes its values."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn import clone, config_context
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_validate

from skbayes_sgld import (
    RowBlocks,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDOrdinalClassifier,
    predict_interval,
    predict_proba_interval,
)
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import InverseGamma, Normal
from skbayes_sgld.rows.arguments import ROW_ARGUMENTS
from skbayes_sgld.rows.checks import one_a_row
from tests.marks import SHORT, short_chains
from tests.pieces import load

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 2))
SCALE = np.exp(RNG.uniform(-1.5, 1.5, 120))
Y = X @ [1.0, -0.5] + 0.7 * SCALE * RNG.standard_normal(120)
# a noise sd times s is that of a mean of 1 / s^2 observations, which is an offset
AVERAGED = SCALE**-2.0
PIECE = load("row_argument")  # of the page on arguments by row
Scaled = PIECE.ScaledRegression
SETTINGS = {"prior": Normal(2.0), "noise_prior": InverseGamma(2.0, 1.0), "random_state": 0}
FIT = {"noise_scale": SCALE}


@pytest.fixture(autouse=True)
def entry(monkeypatch):
    monkeypatch.setitem(ROW_ARGUMENTS, "noise_scale", PIECE.NOISE_SCALE)


def assert_same_posterior(model, expected):
    """Means and sds agree within four Monte Carlo standard errors."""
    found, known = model.summary(), expected.summary()
    for name in ("mean", "sd"):
        error = np.hypot(found[f"mcse_{name}"], known[f"mcse_{name}"])
        assert (np.abs(found[name] - known[name]) < 4.0 * error).all(), (found, known)


def test_it_reaches_the_likelihood_of_fits_batches_and_blocks(monkeypatch):
    from skbayes_sgld.blocks import RowBlocks, passes

    expected = SGLDLinearRegression(**SETTINGS).fit(X, Y, n_averaged=AVERAGED)
    assert_same_posterior(Scaled(**SETTINGS).fit(X, Y, **FIT), expected)
    minibatches = Scaled(**SETTINGS, gradient="control_variate", batch_size=30)
    assert_same_posterior(minibatches.fit(X, Y, **FIT), expected)
    streamed = Scaled(**SETTINGS)
    for rows in (slice(0, 50), slice(50, 120)):
        streamed.partial_fit(X[rows], Y[rows], noise_scale=SCALE[rows])
    assert_same_posterior(streamed, expected)

    def read():
        for start in range(0, 120, 40):
            rows = slice(start, start + 40)
            yield X[rows], Y[rows], None, {"noise_scale": SCALE[rows]}

    assert_same_posterior(Scaled(**SETTINGS).fit(RowBlocks(read)), expected)
    monkeypatch.setattr(passes, "_GROUP_ROWS", 30)
    sampled = Scaled(**SETTINGS).fit(RowBlocks(read, pool_size=80))  # and passes over all
    assert_same_posterior(sampled, expected)
    with pytest.raises(ValueError, match="noise_scale is not given, and earlier calls of partial_"):
        streamed.partial_fit(X, Y)


def test_it_reaches_predictions_and_scores():
    model = Scaled(**SETTINGS).fit(X, Y, **FIT)
    draws = model.sample_posterior()
    mean = X @ draws.coef.T + draws.intercept
    sd = SCALE[:, None] * np.sqrt(draws.noise_variance)
    log_density = norm.logpdf(Y[:, None], mean, sd)
    np.testing.assert_allclose(model.log_likelihood(X, Y, **FIT), log_density, rtol=1e-9)
    np.testing.assert_allclose(
        model.log_predictive_density(X, Y, **FIT),
        logsumexp(log_density, axis=1) - np.log(log_density.shape[1]),
        atol=1e-4,
    )
    _, std = model.predict(X, return_std=True, **FIT)
    exact = np.sqrt((sd**2).mean(axis=1) + mean.var(axis=1))
    np.testing.assert_allclose(std, exact, rtol=1e-4)
    ends = model.predict_interval(X, 0.9, **FIT)
    inside = [norm.cdf(end[:, None], mean, sd).mean(axis=1) for end in ends.T]
    np.testing.assert_allclose(inside, np.tile([[0.05], [0.95]], 120), atol=1e-3)
    np.testing.assert_allclose(
        model.predict_cdf(X, Y, **FIT), norm.cdf(Y[:, None], mean, sd).mean(axis=1), atol=1e-3
    )
    sample = model.sample_y(X, 2000, random_state=1, **FIT)
    z = (sample.std(axis=1) / exact - 1.0) / np.sqrt(0.5 / 2000)
    assert np.abs(z).max() < 5.0
    assert model.score(X, Y, **FIT) == pytest.approx(
        SGLDLinearRegression._score.score_arrays(Y, model.predict(X), None)
    )
    with pytest.raises(ValueError, match="noise_scale is None, and the model was fitted to rows"):
        model.score(X, Y)
    # left out, a value is 1
    plain = norm.logpdf(Y[:, None], mean, np.sqrt(draws.noise_variance))
    np.testing.assert_allclose(model.log_likelihood(X, Y, noise_scale=1), plain, rtol=1e-9)


def test_it_reaches_leave_one_out_checks():
    from skbayes_sgld import check_model
    from skbayes_sgld.metrics import loo

    model = Scaled(**SETTINGS).fit(X, Y, **FIT)
    averages = SGLDLinearRegression(**SETTINGS).fit(X, Y, n_averaged=AVERAGED)
    found = loo(model, X, Y, **FIT)
    known = loo(averages, X, Y, n_averaged=AVERAGED)
    assert found.elpd == pytest.approx(known.elpd, abs=0.3)
    assert check_model(model, X, Y, remedies=False, **FIT).fits
    with pytest.raises(ValueError, match="noise_scale differs"):
        loo(model, X, Y, noise_scale=SCALE[::-1])


def test_it_reaches_every_fold_of_cross_validation():
    from skbayes_sgld.metrics import get_scorer

    folds = KFold(3)
    with config_context(enable_metadata_routing=True):
        model = Scaled(**SETTINGS).set_fit_request(noise_scale=True)
        scorer = get_scorer("log_predictive_density").set_score_request(noise_scale=True)
        found = cross_validate(model, X, Y, cv=folds, scoring=scorer, params={"noise_scale": SCALE})
    for (train, test), score in zip(folds.split(X), found["test_score"], strict=True):
        model = Scaled(**SETTINGS).fit(X[train], Y[train], noise_scale=SCALE[train])
        own = model.log_predictive_density(X[test], Y[test], noise_scale=SCALE[test])
        assert score == pytest.approx(own.mean(), rel=1e-9)


def test_it_reaches_batches_of_rows():
    posterior = GLMPosterior(
        X,
        Y,
        PIECE.ScaledNoise(),
        Normal(2.0),
        InverseGamma(2.0, 1.0),
        others={"noise_scale": SCALE},
    )
    theta, idx = RNG.standard_normal((3, 4)), RNG.integers(0, 120, (3, 7))
    mean = np.einsum("cbd,cd->cb", X[idx], theta[:, :2]) + theta[:, 2:3]
    sd = SCALE[idx] * np.exp(0.5 * theta[:, 3:])
    expected = norm.logpdf(Y[idx], mean, sd)
    np.testing.assert_allclose(posterior.log_likelihood(theta, idx), expected, rtol=1e-9)


def test_a_table_of_values_goes_with_the_rows_of_a_posterior():
    codes = np.arange(240).reshape(120, 2)  # of two groups each
    labels = (Y > 0).astype(float)
    posterior = GLMPosterior(X, labels, Bernoulli(), Normal(1.0), others={"groups": codes})
    rows = np.array([3, 70, 5])
    np.testing.assert_array_equal(posterior.take(rows).values.others["groups"], codes[rows])
    half = posterior.subset(slice(None, None, 2))
    np.testing.assert_array_equal(half.values.others["groups"], codes[::2])
    apart = posterior.always_reading(rows)._exact
    np.testing.assert_array_equal(apart.values.others["groups"], codes[np.sort(rows)])


def test_scores_of_arrays_and_blocks_are_of_its_predictions(monkeypatch):
    from skbayes_sgld.blocks import RowBlocks

    model = Scaled(**SETTINGS).fit(X, Y, **FIT)
    # an argument that moved the mean would too
    mean = type(model).predict

    def moved(self, X, **by_row):
        return mean(self, X, **by_row) + by_row["noise_scale"]

    monkeypatch.setattr(Scaled, "predict", moved)
    expected = r2_score(Y, model.predict(X, **FIT))
    assert model.score(X, Y, **FIT) == pytest.approx(expected)
    rows = RowBlocks(lambda: iter([(X, Y, None, FIT)]))
    assert model.score(rows) == pytest.approx(expected)


def brings_offset(monkeypatch, cls):
    """Class that takes ``head_start``, a known part of the first predictor."""
    entry = replace(
        PIECE.NOISE_SCALE,
        check=lambda known, rows: one_a_row(known, "head_start", rows),
        brings=lambda known: RowValues(offset=known),
    )
    monkeypatch.setitem(ROW_ARGUMENTS, "head_start", entry)
    return type(
        f"{cls.__name__}WithStart",
        (cls,),
        {"_row_arguments": (*cls._row_arguments, "head_start")},
    )


HEAD_START = RNG.normal(0.0, 2.0, 120)


@short_chains
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"noise_distribution": "student_t", **SHORT},
        {"prior": "hierarchical_normal", **SHORT},
    ],
    ids=lambda settings: next(iter(settings), "default"),
)
def test_an_offset_of_a_linear_model_is_taken_from_y(monkeypatch, settings):
    # scales of automatic priors too: the known part may be far larger than the rest
    y, known = X @ [1.0, -0.5] + 0.7 * RNG.standard_normal(120), 100.0 * HEAD_START
    expected = SGLDLinearRegression(random_state=0, **settings).fit(X, y)
    model = brings_offset(monkeypatch, SGLDLinearRegression)(random_state=0, **settings)
    model.fit(X, y + known, head_start=known)
    draws = expected.posterior_.values
    np.testing.assert_allclose(model.posterior_.values, draws, rtol=1e-5, atol=1e-6)
    moved = predict_interval(expected, X) + known[:, None]
    np.testing.assert_allclose(predict_interval(model, X, head_start=known), moved, atol=1e-4)
    if settings:
        return
    rows = RowBlocks(lambda: iter([(X, y + known, None, {"head_start": known})]))
    assert_same_posterior(clone(model).fit(rows), expected)
    assert_same_posterior(clone(model).partial_fit(X, y + known, head_start=known), expected)


@pytest.mark.parametrize("cls", [SGLDLogisticRegression, SGLDOrdinalClassifier])
def test_an_offset_reaches_every_prediction_of_labels(monkeypatch, cls):
    grade = np.digitize(X[:, 0] + HEAD_START + RNG.logistic(size=120), [-1.0, 1.0])
    y = grade if cls is SGLDOrdinalClassifier else np.minimum(grade, 1)
    model = brings_offset(monkeypatch, cls)(n_draws=200, random_state=0)
    beside = {"head_start": HEAD_START}
    model.fit(X, y, **beside)
    of_class = [model.log_likelihood(X, np.full(120, k), **beside) for k in model.classes_]
    draws = np.exp(np.stack(of_class, axis=1))
    p = draws.mean(axis=2)
    np.testing.assert_allclose(model.posterior_mean_draws(X, **beside), draws, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X, **beside), p, atol=1e-5)
    np.testing.assert_allclose(model.predict_log_proba(X, **beside), np.log(p), atol=1e-4)
    np.testing.assert_array_equal(model.predict(X, **beside), model.classes_[p.argmax(axis=1)])
    ends = predict_proba_interval(model, X, 0.5, **beside)
    expected = np.quantile(draws, [0.25, 0.75], axis=2, method="inverted_cdf").transpose(1, 2, 0)
    np.testing.assert_allclose(ends, expected, atol=0.02)
    density = np.log(np.take_along_axis(p, y[:, None], axis=1)[:, 0])
    np.testing.assert_allclose(model.log_predictive_density(X, y, **beside), density, atol=1e-4)
    assert model.score(X, y, **beside) == np.mean(p.argmax(axis=1) == y)


def test_values_of_a_likelihood_with_sums_reach_its_predictions(monkeypatch):
    monkeypatch.setattr(PIECE.ScaledNoise, "quadratic", True)
    model = Scaled(**SETTINGS).fit(X, Y, **FIT)
    draws = model.sample_posterior()
    mean = X @ draws.coef.T + draws.intercept
    sd = SCALE[:, None] * np.sqrt(draws.noise_variance)
    for end, level in zip(predict_interval(model, X, 0.9, **FIT).T, (0.05, 0.95), strict=True):
        below = norm.cdf(end[:, None], mean, sd).mean(axis=1)
        np.testing.assert_allclose(below, level, atol=1e-3)
    _, std = model.predict(X, return_std=True, **FIT)
    np.testing.assert_allclose(std, np.sqrt((sd**2).mean(axis=1) + mean.var(axis=1)), rtol=1e-4)
