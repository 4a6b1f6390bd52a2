"""Totals of trials: the posterior of as many rows as there are trials, and their predictions."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.special import expit, gammaln
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import skbayes_sgld
from skbayes_sgld import (
    SGLDBetaBinomialRegressor,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)
from skbayes_sgld.likelihoods import Bernoulli, Binomial, as_totals
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.posterior import GLMPosterior, ImproperPosteriorError
from skbayes_sgld.priors import Normal
from tests.marks import slow

RNG = np.random.default_rng(0)
N = 200
X = RNG.standard_normal((N, 2)) * [1.0, 5.0] + [0.0, 3.0]
TRIALS = RNG.integers(1, 12, N)
Y = RNG.binomial(TRIALS, expit(X @ [0.8, -0.1] - 0.2))
WEIGHT = RNG.integers(1, 3, N).astype(float)
# of the automatic prior: weights count in it, and trials do not
SCALE = 1.0 / np.sqrt(np.cov(X.T, fweights=WEIGHT.astype(int), ddof=0).diagonal())
ROWS = np.repeat(np.arange(N), TRIALS)
LABELS = np.concatenate([np.arange(n) < y for n, y in zip(TRIALS, Y, strict=True)]).astype(int)
FEW = {"n_draws": 50, "n_chains": 2, "random_state": 0}
# 50 draws of two chains are too few, and fit says so
few_draws = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def fitted():
    return SGLDLogisticRegression(random_state=0).fit(X, Y, n_trials=TRIALS)


def test_the_posterior_is_that_of_the_rows_written_out():
    weight = np.linspace(0.5, 2.0, N)
    options = {"intercept_prior": Normal(2.0)}
    prior = Normal(SCALE)
    totals = GLMPosterior(
        X, as_totals(Y, TRIALS), Binomial(), prior, sample_weight=weight, **options
    )
    labels, each = LABELS.astype(float), weight[ROWS]
    rows = GLMPosterior(X[ROWS], labels, Bernoulli(), prior, sample_weight=each, **options)
    assert totals.total_weight == pytest.approx(rows.total_weight)
    theta = RNG.standard_normal((5, 3))
    for a in (totals, totals.rounded(density=True)):
        exact = a is totals
        found, known = a.bind_value_and_grad()(theta), rows.value_and_grad(theta)
        apart = found[0] - known[0]  # the binomial coefficients
        np.testing.assert_allclose(apart, apart[0], rtol=1e-9 if exact else 1e-5)
        np.testing.assert_allclose(found[1], known[1], rtol=1e-9 if exact else 1e-4)
    np.testing.assert_allclose(totals.curvature(theta[0]), rows.curvature(theta[0]), rtol=1e-9)
    likelihood, y = Binomial(), as_totals(Y, TRIALS)
    own, written = (
        likelihood.level_weight(y, weight),
        Bernoulli().level_weight(LABELS, weight[ROWS]),
    )
    assert own == pytest.approx(written)
    per_row = likelihood.pseudo_variance(y, weight) / weight.sum()
    written = Bernoulli().pseudo_variance(LABELS, weight[ROWS]) / weight[ROWS].sum()
    assert per_row == pytest.approx(written)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_log_densities_keep_their_digits(dtype):
    precision = 1e-8 if dtype == np.float64 else 2e-4
    for n, y in [(1, 0), (7, 7), (40, 3), (10**6, 10**6), (10**6, 31), (10**6, 5e5)]:
        share = (y + 0.5) / (n + 1.0) + np.linspace(-3, 3, 41) / np.sqrt(n)
        share = np.clip(share, 1e-9, 1 - 1e-9)
        eta = np.append(np.log(share / (1 - share)), [-90.0, 90.0]).astype(dtype)
        kernel = Binomial().bind(RowValues(np.broadcast_to(as_totals(y, n), eta.shape)), dtype)
        found = kernel.derivatives(eta[None, None].copy(), 0)[0][0]
        ways = gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)
        wide = eta.astype(float)
        known = ways - y * np.logaddexp(0, -wide) - (n - y) * np.logaddexp(0, wide)
        np.testing.assert_allclose(found, known, rtol=precision, atol=precision * (1 + 1e-6 * n))


def in_blocks(model, pool_size=1000):
    from tests.blocks.windows import blocks_of

    return model.fit(blocks_of(X, Y, WEIGHT, TRIALS, size=60, pool_size=pool_size))


def by_batches(model):
    for a in (0, 90):
        part = slice(a, 90 if a == 0 else N)
        model.partial_fit(X[part], Y[part], sample_weight=WEIGHT[part], n_trials=TRIALS[part])
    return model


def from_files(folder):
    arrays = {"X": X, "y": Y, "sample_weight": WEIGHT, "n_trials": TRIALS}
    paths = {}
    for name, values in arrays.items():
        paths[name] = folder / f"{name}.npy"
        np.save(paths[name], np.ascontiguousarray(values, dtype=float))
    return skbayes_sgld.RowBlocks.from_npy(**paths)


def from_parquet(folder):
    pytest.importorskip("pyarrow")
    columns = {"a": X[:, 0], "b": X[:, 1], "y": Y, "w": WEIGHT, "n": TRIALS}
    path = folder / "rows.parquet"
    pd.DataFrame(columns).to_parquet(path)
    return skbayes_sgld.RowBlocks.from_parquet(
        folder / "rows.parquet", "y", weight="w", n_trials="n"
    )


def from_dask(folder):
    da = pytest.importorskip("dask.array")
    return [da.from_array(each, chunks=(70, *each.shape[1:])) for each in (X, Y, WEIGHT, TRIALS)]


def fit_dask(model, folder):
    rows, y, weight, trials = from_dask(folder)
    return model.fit(rows, y, weight, n_trials=trials)


WAYS = {
    "sparse": lambda model, _: model.fit(sparse.csr_array(X), Y, WEIGHT, n_trials=TRIALS),
    "blocks": lambda model, _: in_blocks(model),
    "sample of blocks": lambda model, _: in_blocks(model, 100),
    "npy": lambda model, folder: model.fit(from_files(folder)),
    "parquet": lambda model, folder: model.fit(from_parquet(folder)),
    "dask": fit_dask,
    "partial_fit": lambda model, _: by_batches(model),
}


@pytest.fixture(scope="module")
def written_out():
    """Fit of labels: as many rows as there are trials and weights, under the prior of totals."""
    rows = np.repeat(ROWS, WEIGHT[ROWS].astype(int))
    labels = np.repeat(LABELS, WEIGHT[ROWS].astype(int))
    return SGLDLogisticRegression(prior=Normal(SCALE), random_state=0).fit(X[rows], labels)


@pytest.mark.parametrize("way", WAYS)
def test_all_ways_to_give_rows_have_the_posterior_of_the_rows_written_out(
    way, written_out, tmp_path
):
    found = WAYS[way](SGLDLogisticRegression(random_state=1), tmp_path)
    columns = ["mean", "mcse_mean", "sd"]
    a, b = found.summary()[columns].to_numpy().T, written_out.summary()[columns].to_numpy().T
    assert np.all(np.abs(a[0] - b[0]) < 4.5 * np.hypot(a[1], b[1]))
    np.testing.assert_allclose(a[2], b[2], rtol=0.08)
    assert found.classes_.tolist() == [0, 1]
    if way != "partial_fit":  # its scales are of the first batch
        np.testing.assert_allclose(found.prior_.scale, SCALE, rtol=1e-9)


@few_draws
@pytest.mark.parametrize("cls", [SGLDLogisticRegression, slow(SGLDBetaBinomialRegressor)])
def test_one_row_of_many_trials_does_not_set_the_scale_of_a_column(cls):
    rng = np.random.default_rng(1)
    rows, trials = rng.standard_normal((40, 1)), np.r_[np.full(39, 10), 10**6]
    y = rng.binomial(trials, expit(0.5 * rows[:, 0]))
    model = cls(**FEW).fit(rows, y, n_trials=trials)
    np.testing.assert_allclose(model.prior_.scale, 1.0 / rows.std(), rtol=1e-9)


def test_files_have_exposures_or_trials():
    with pytest.raises(ValueError, match="exposure and n_trials do not go together"):
        skbayes_sgld.RowBlocks.from_parquet("rows.parquet", "y", exposure="a", n_trials="b")


@pytest.mark.parametrize("source", [from_files, from_parquet])
def test_errors_of_files_name_the_trials(source, tmp_path, monkeypatch):
    with pytest.raises(TypeError, match="was made with n_trials=, and this model takes exposure"):
        SGLDPoissonRegressor().fit(source(tmp_path))
    monkeypatch.setitem(globals(), "TRIALS", np.where(np.arange(len(TRIALS)) == 7, 0, TRIALS))
    with pytest.raises(ValueError, match="^the n_trials in row 7 of block 0 is 0; .* be 1 or more"):
        SGLDBetaBinomialRegressor().fit(source(tmp_path))


def test_predictions_are_those_of_the_draws(fitted):
    from skbayes_sgld.metrics import loo

    draws = fitted.sample_posterior()
    p = expit(X @ draws.coef.T + draws.intercept)
    each = stats.binom.logpmf(Y[:, None], TRIALS[:, None], p)
    found = fitted.log_likelihood(X, Y, n_trials=TRIALS)
    # of many rows by polynomials
    np.testing.assert_allclose(found, each, rtol=1e-5, atol=5e-5)
    density = np.log(np.exp(each).mean(axis=1))
    found = fitted.log_predictive_density(X, Y, n_trials=TRIALS)
    np.testing.assert_allclose(found, density, atol=2e-4)
    np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], p.mean(axis=1), rtol=1e-5)
    y = fitted.sample_y(X[:5], 4000, random_state=1, n_trials=9)
    mean = 9 * p[:5].mean(axis=1)
    variance = (9 * p * (1 - p))[:5].mean(axis=1) + 81 * p[:5].var(axis=1)
    assert y.dtype.kind == "i" and y.max() <= 9
    assert np.all(np.abs(y.mean(axis=1) - mean) < 4.5 * np.sqrt(variance / 4000))
    np.testing.assert_allclose(y.var(axis=1), variance, rtol=0.12)
    assert loo(fitted, X, Y, n_trials=TRIALS).elpd < density.sum()


def test_arviz_has_the_trials(fitted):
    data = fitted.to_arviz(X[:30], Y[:30], n_trials=TRIALS[:30])
    np.testing.assert_array_equal(data["constant_data"]["n_trials"], TRIALS[:30])
    known = fitted.log_likelihood(X[:30], Y[:30], n_trials=TRIALS[:30])
    found = data["log_likelihood"]["y"].values.reshape(-1, 30)
    np.testing.assert_allclose(found, known.T)
    drawn = data["posterior_predictive"]["y"].values
    assert np.all(drawn <= TRIALS[:30]) and drawn.max() > 1


@few_draws
def test_prior_draws_of_totals_are_of_their_trials(fitted):
    again = clone(fitted).set_params(intercept_prior="normal", **FEW)
    again.fit(X, Y, n_trials=TRIALS)
    y = again.sample_prior(X[:20], 500, n_trials=TRIALS[:20])
    assert np.all((y >= 0) & (y <= TRIALS[:20, None]))
    assert np.all(y.max(axis=1) == TRIALS[:20])


def test_the_score_is_that_of_the_rows_written_out(fitted):
    from tests.blocks.windows import blocks_of

    known = fitted.predict(X[ROWS]) == LABELS
    found = fitted.score(X, Y, WEIGHT, n_trials=TRIALS)
    assert found == pytest.approx(np.average(known, weights=WEIGHT[ROWS]))
    assert fitted.score(blocks_of(X, Y, WEIGHT, TRIALS, size=60)) == pytest.approx(found)
    one = (TRIALS == 1) & (fitted.predict(X) == 1)
    assert fitted.score(X[one], Y[one], n_trials=1) == pytest.approx(Y[one].mean())


@pytest.mark.parametrize(
    "name", ["neg_brier_score", "neg_calibration_error", "log_predictive_density"]
)
def test_scorers_take_totals_as_the_rows_written_out(name, fitted):
    from skbayes_sgld.metrics import brier_score, calibration_error, get_scorer

    scorer = get_scorer(name)
    found = scorer(fitted, X, Y, WEIGHT, n_trials=TRIALS)
    if name == "log_predictive_density":
        each = fitted.log_predictive_density(X, Y, n_trials=TRIALS)
        assert found == pytest.approx(np.average(each, weights=WEIGHT))
        return
    proba = fitted.predict_proba(X)[ROWS]
    of_rows = {"neg_brier_score": brier_score, "neg_calibration_error": calibration_error}[name]
    assert found == pytest.approx(-of_rows(LABELS, proba, sample_weight=WEIGHT[ROWS]))


def test_sgd_climbs_to_the_mode_of_totals():
    from skbayes_sgld import SGDMAPClassifier

    model = SGDMAPClassifier(prior=Normal(1.0), random_state=0).fit(X, Y, n_trials=TRIALS)
    known = LogisticRegression(C=1.0, tol=1e-10).fit(X[ROWS], LABELS)
    sd = model.summary()["sd"].to_numpy()[:2]
    assert np.all(np.abs(model.coef_ - known.coef_) < 0.15 * sd)


def fit(y=Y, n_trials=TRIALS, **params):
    return SGLDLogisticRegression(**params).fit(X, y, n_trials=n_trials)


REFUSED = {
    "more successes than trials": (lambda _: fit(Y + 12), r"y has the value .* of n_trials="),
    "fractions of successes": (lambda _: fit(Y * 0.5), "y has the value 0?.*whole"),
    "negative successes": (lambda _: fit(-Y), "y has the value -"),
    "text": (lambda _: fit(Y.astype(str)), "y has dtype .*n_trials"),
    "fewer trials than none": (lambda _: fit(n_trials=-TRIALS), "n_trials has the value -.* row"),
    "no trials at all": (lambda _: fit(0 * Y, n_trials=0), "n_trials is 0 in every row"),
    "fractions of trials": (lambda _: fit(n_trials=TRIALS + 0.5), "n_trials has the value .*whole"),
    "few trials": (lambda _: fit(n_trials=[3, 4]), r"n_trials has shape \(2,\)"),
    "class weights": (lambda _: fit(class_weight="balanced"), "class_weight='balanced'.*totals"),
    "one outcome": (lambda _: fit(TRIALS, prior="flat"), "all trials have one outcome"),
    "a mixture of batches": (
        lambda _: by_batches(SGLDLogisticRegression(**FEW)).partial_fit(X, (Y > 0).astype(int)),
        "n_trials is not given, and earlier calls of partial_fit had it",
    ),
    "trials of labels": (
        lambda _: SGLDLogisticRegression(**FEW).fit(X, Y > 2).log_likelihood(X, Y, n_trials=TRIALS),
        "n_trials is given, and the model was fitted to labels",
    ),
    "totals without their trials in ArviZ": (
        lambda fitted: fitted.to_arviz(X, Y),
        "n_trials is None, and the model was fitted to totals",
    ),
    "trials in blocks": (
        lambda _: SGLDLogisticRegression().fit(
            skbayes_sgld.RowBlocks(lambda: [(X, Y, None, TRIALS - 1)])
        ),
        "n_trials or n_averaged, in row .* of block 0 is 0; .*n_trials 1 or more",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@few_draws
def test_totals_that_cannot_be_used_are_refused(case, fitted):
    call, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError, ImproperPosteriorError), match=message):
        call(fitted)


@few_draws
@pytest.mark.parametrize("cls", [SGLDLogisticRegression, slow(SGLDBetaBinomialRegressor)])
def test_rows_without_trials_say_nothing(cls):
    """As of R's glm: the likelihood of such a row is 1."""
    from skbayes_sgld import check_model

    nothing = np.array([[9.0, -40.0], [0.0, 3.0]])
    rows, y = np.vstack([nothing, X]), np.concatenate([[0, 0], Y])
    trials = np.concatenate([[0, 0], TRIALS])
    model = cls(**FEW).fit(rows, y, n_trials=trials)
    known = cls(**FEW).fit(X, Y, n_trials=TRIALS)
    np.testing.assert_array_equal(model.posterior_.values, known.posterior_.values)
    assert np.all(model.log_likelihood(rows, y, n_trials=trials)[:2] == 0.0)
    assert np.all(model.sample_y(rows, 5, n_trials=trials)[:2] == 0)
    score = model.score(X, Y, n_trials=TRIALS)
    assert model.score(rows, y, n_trials=trials) == pytest.approx(score)
    found = check_model(model, rows, y, n_trials=trials, remedies=False)
    assert found.n_data_points == N
    if cls is SGLDBetaBinomialRegressor:
        assert np.all(model.predict_interval(rows, n_trials=trials)[:2] == 0.0)
        np.testing.assert_allclose(model.predict_cdf(rows, y, n_trials=trials)[:2], 1.0, rtol=1e-12)


@few_draws
def test_a_fit_to_labels_follows_one_to_totals():
    model = SGLDLogisticRegression(**FEW).fit(X, Y, n_trials=TRIALS)
    labels = np.where(Y > 2, "many", "few")
    again = clone(model).fit(X, labels)
    np.testing.assert_array_equal(model.fit(X, labels).posterior_.values, again.posterior_.values)
    assert model.predict(X[:3]).dtype.kind == "U"
