"""Rows of the fit are known again, whatever their form; other rows raise, or are held out."""

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder

from skbayes_sgld import (
    RowBlocks,
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
    check_model,
    compare_models,
)
from skbayes_sgld.criticism.leave_one_out import rows_of_fit
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.metrics import get_scorer, loo
from skbayes_sgld.priors import Normal
from skbayes_sgld.rows.fingerprint import Fingerprint

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

N = 60
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3)) + [0.0, 5.0, 2000.0]
Y = X @ [1.0, -0.5, 0.01] + RNG.standard_normal(N)
LABELS = np.greater(Y, np.median(Y)).astype(int)
LINEAR = SGLDLinearRegression(n_draws=250, random_state=0)
CLASSES = SGLDLogisticRegression(n_draws=250, random_state=0)
OTHER = "are not the rows of the fit"


def knows(model, X, y, sample_weight=None):
    return rows_of_fit("loo", model, X, y, sample_weight, {})


def forms():
    names = ["a", "b", "c"]
    order = RNG.permutation(N)
    yield "another order", X[order], Y[order]
    yield "single precision", X.astype(np.float32), Y.astype(np.float32)
    yield "columns in memory", np.asfortranarray(X), Y
    yield "sparse", sparse.csc_array(X), Y
    yield "lists", X.tolist(), Y.tolist()
    yield "pandas", pd.DataFrame(X, columns=names), pd.Series(Y)
    yield "polars", pl.DataFrame(X, schema=names), pl.Series(Y)
    yield "arrow", pa.table(dict(zip(names, X.T, strict=True))), Y


@pytest.mark.filterwarnings("ignore:X has feature names")  # the fit was to an array
def test_the_rows_of_a_fit_are_known_in_every_form():
    model = clone(LINEAR).fit(X, Y)
    for name, rows, y in forms():
        assert len(knows(model, rows, y).counted) == N, name
    weight = np.repeat([1.0, 0.0], N // 2)
    half = clone(LINEAR).fit(X[: N // 2], Y[: N // 2])
    assert len(knows(half, X, Y, weight).counted) == N // 2
    assert knows(pickle.loads(pickle.dumps(model)), X, Y)
    warm = clone(LINEAR).set_params(warm_start=True).fit(X, Y).fit(X[:30], Y[:30])
    assert knows(warm, X[:30], Y[:30])
    by_name = make_pipeline(make_column_transformer(("passthrough", ["b", "a"])), clone(LINEAR))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert knows(by_name.fit(frame, Y), frame[["c", "b", "a"]], Y)


@pytest.mark.parametrize("as_x", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("model", [LINEAR, SGDMAPRegressor(random_state=0)], ids=["draws", "mode"])
def test_rows_stay_known_when_the_caller_changes_the_arrays_of_the_fit(model, as_x):
    rows, y, weight = as_x(X), Y.copy(), np.linspace(0.5, 2.0, N)
    asked_later, saved = (clone(model).fit(rows, y, sample_weight=weight) for _ in range(2))
    copied, saved = deepcopy(saved), pickle.dumps(saved)
    if sparse.issparse(rows):
        rows.data[:] += 1.0
    else:
        rows += 1.0
    y += 1.0
    weight += 1.0
    for same in (asked_later, copied, pickle.loads(saved)):
        assert knows(same, X, Y, np.linspace(0.5, 2.0, N))
        with pytest.raises(ValueError, match=OTHER):
            knows(same, rows, y, weight)


def test_a_pickled_fit_has_sums_instead_of_rows():
    model = clone(LINEAR).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))._fitted
    assert isinstance(again.rows, Fingerprint)
    assert again.rows.difference(model._fitted.fingerprint) == ""
    assert pickle.dumps(model) == pickle.dumps(model)


def test_other_rows_raise_and_the_message_has_the_call_for_new_rows():
    model, more = clone(LINEAR).fit(X, Y), clone(LINEAR).fit(X[:40], Y[:40])
    shuffled = RNG.permutation(Y)
    cases = [(X[:40], Y[:40]), (X + [0.5, 0, 0], Y), (X, Y + 0.1), (X, shuffled), (X[:, :3] * 2, Y)]
    for rows, y in cases:
        with pytest.raises(ValueError, match=r"check_model\(model, X, y, held_out=True\)"):
            check_model(model, rows, y)
    with pytest.raises(ValueError, match="they are 40, and the fit had 60"):
        loo(model, X[:40], Y[:40])
    with pytest.raises(ValueError, match=r"estimators\['part'\]: .* rows of the fit: they are 60"):
        compare_models({"all": model, "part": more}, X, Y)
    with pytest.raises(ValueError, match="sample_weight is None, and that of the fit has"):
        check_model(clone(LINEAR).fit(X, Y, sample_weight=np.full(N, 2.0)), X, Y)
    labels = clone(CLASSES).fit(X[:40], LABELS[:40])
    opposite = np.r_[1 - LABELS[:2], LABELS[2:40]]
    with pytest.raises(ValueError, match=OTHER):
        check_model(labels, X[:40], opposite)
    first = cross_validate(clone(LINEAR), X, Y, cv=3, return_estimator=True, return_indices=True)
    train, test = (first["indices"][part][0] for part in ("train", "test"))
    fold = first["estimator"][0]
    assert knows(fold, X[train], Y[train])
    for rows in (test, np.arange(N)):
        with pytest.raises(ValueError, match=OTHER):
            check_model(fold, X[rows], Y[rows])


def test_sums_are_those_that_reached_the_last_step():
    frame = pd.DataFrame({"city": RNG.choice(list("uvw"), N), "size": X[:, 2]})
    y = np.exp(0.2 * Y)
    encode = make_column_transformer((OneHotEncoder(), ["city"]), (StandardScaler(), ["size"]))
    logs = TransformedTargetRegressor(clone(LINEAR), func=np.log, inverse_func=np.exp)
    search = GridSearchCV(
        make_pipeline(encode, logs),
        {"transformedtargetregressor__regressor__temperature": [1.0]},
        cv=2,
        scoring="r2",
    ).fit(frame, y)
    assert knows(search, frame.iloc[::-1], y[::-1])
    assert knows(search, frame.astype({"size": np.float32}), y)
    for rows, values in ((frame, 1.01 * y), (frame.assign(city="u"), y), (frame[:30], y[:30])):
        with pytest.raises(ValueError, match=OTHER):
            knows(search, rows, values)


def test_a_step_that_gives_other_columns_in_fit_does_not_hide_its_rows():
    """``fit_transform`` of TargetEncoder is a cross-fit, and ``transform`` is not."""
    frame = pd.DataFrame({"city": RNG.choice(list("uvwxyz"), N), "size": X[:, 0]})
    encode = make_column_transformer((TargetEncoder(cv=2), ["city"]), remainder="passthrough")
    model = make_pipeline(encode, clone(LINEAR)).fit(frame, Y)
    assert knows(model, frame, Y)
    with pytest.raises(ValueError, match=OTHER):
        knows(model, frame, Y + 0.1)
    gaps = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    draws = IterativeImputer(sample_posterior=True, random_state=0)
    assert knows(make_pipeline(draws, clone(LINEAR)).fit(gaps, Y), gaps, Y)


def test_blocks_and_batches_are_remembered():
    parts = [(X[:25], Y[:25]), (X[25:], Y[25:])]
    blocks = clone(LINEAR).fit(RowBlocks(lambda: iter(parts)), None)
    batches = clone(LINEAR).partial_fit(*parts[0]).partial_fit(*parts[1])
    for model in (blocks, batches):
        assert knows(model, X, Y)
        for rows, y in ((*parts[0],), (X, Y + 0.1), (X, RNG.permutation(Y))):
            with pytest.raises(ValueError, match=OTHER):
                knows(model, rows, y)
    batches.fit(*parts[0])
    assert knows(batches, *parts[0])
    text = np.where(LABELS, "yes", "no")
    model = clone(CLASSES).fit(RowBlocks(lambda: iter([(X[:25], text[:25]), (X[25:], text[25:])])))
    assert knows(model, X, text)
    with pytest.raises(ValueError, match=OTHER):
        knows(model, X + 0.1, text)
    weight = RNG.uniform(0.0, 2.0, N) * (np.arange(N) > 3)
    model = clone(LINEAR).fit(RowBlocks(lambda: iter([(X, Y, weight)])), None)
    assert knows(model, X, Y, weight)
    years, counts = RNG.uniform(0.5, 2.0, N), RNG.poisson(2.0, N)
    model = SGLDPoissonRegressor(n_draws=250, random_state=0)
    model.fit(RowBlocks(lambda: iter([(X, counts, None, years)])))
    assert rows_of_fit("loo", model, X, counts, None, {"exposure": years})


def test_classes_without_weight_and_class_weights_leave_the_rows_known():
    weight = np.where(np.arange(N) < 5, 0.0, 1.0)
    three = np.where(np.arange(N) < 5, 1, 2 * LABELS)
    model = clone(CLASSES).fit(X, three, sample_weight=weight)
    assert knows(model, X, three, weight)
    assert knows(clone(CLASSES).set_params(class_weight="balanced").fit(X, LABELS), X, LABELS)
    trials = RNG.integers(0, 5, N)
    y = RNG.binomial(trials, 0.4)
    model = clone(CLASSES).fit(X, y, n_trials=trials)
    assert rows_of_fit("loo", model, X, y, None, {"n_trials": trials})
    with pytest.raises(ValueError, match="n_trials differs"):
        rows_of_fit("loo", model, X, y, None, {"n_trials": trials + (trials > 0)})


@pytest.mark.parametrize("scale", [1e-50, 1e50])
def test_sums_of_extreme_sizes_are_compared_without_a_warning(scale):
    first = Fingerprint.of(scale * X, RowValues(scale * Y))
    assert first.difference(Fingerprint.of(scale * X[::-1], RowValues(scale * Y[::-1]))) == ""
    assert first.difference(Fingerprint.of(scale * X, RowValues(scale * (Y + 1.0)))) == "y"


def test_many_rows_are_summed_up_in_some_columns_always_with_the_first():
    rows, y = RNG.standard_normal((70_000, 12)), RNG.standard_normal(70_000)
    found = Fingerprint.of(rows, RowValues(y))
    known = np.isfinite(found.sums[0, :12])
    assert known[0] and known.sum() < 12
    expected = np.stack([rows.sum(axis=0), y @ rows])[:, known]
    np.testing.assert_allclose(found.sums[:, :12][:, known], expected, atol=1e-8)


@pytest.mark.slow
def test_a_table_of_new_rows_has_the_figures_of_the_predictive_distribution():
    model = clone(LINEAR).fit(X, Y)
    new = RNG.standard_normal((500, 3)) + [0.0, 5.0, 2000.0]
    y = new @ [1.0, -0.5, 0.01] + RNG.standard_normal(500)
    found = check_model(model, new, y, held_out=True)
    inside = (np.abs(model.predict_cdf(new, y) - 0.5) <= 0.45).mean()
    table = found.table.set_index("check")
    # of some draws, whose error is far below that of the rows
    assert table.loc["90 % intervals", "measured"] == pytest.approx(inside, abs=0.01)
    assert "500 of 500 new rows" in str(found) and found.held_out
    assert not table.index.str.startswith("influential").any()
    wrong = check_model(model, new, y + 3.0, held_out=True)
    assert not wrong.fits and wrong.suggestion is None
    assert wrong.reason.startswith("No remedy was tried on new rows; check_model with the rows of")
    models = {"a": model, "half": clone(LINEAR).fit(X[:30], Y[:30])}
    table = compare_models(models, new, y, held_out=True)
    score = get_scorer("log_predictive_density")(model, new, y)
    assert table.loc["a", "elpd"] == pytest.approx(500 * score, abs=0.5)
    score = get_scorer("log_predictive_density")(models["half"], new, y)
    assert table.loc["half", "elpd"] == pytest.approx(500 * score, abs=0.5)


def test_new_rows_of_a_class_without_weight_have_no_log_density():
    labels = np.where(np.arange(N) < 5, 2, LABELS)
    model = clone(CLASSES).fit(X, labels, sample_weight=1.0 * (labels < 2))
    with pytest.raises(
        ValueError, match=r"estimators\['a'\] gives some row of X and y no finite log"
    ):
        compare_models({"a": model}, X, labels, held_out=True)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["linear", "poisson", "logistic"])
def test_verdicts_on_new_rows_keep_the_level_where_parameters_are_uncertain(family):
    """40 rows of a fit, 6 columns and 400 new rows, whose figures move together."""
    wrong, n_fits = 0, 30
    for seed in range(n_fits):
        rng = np.random.default_rng([7, seed])
        rows = rng.standard_normal((440, 6))
        eta = rows @ (0.5 * rng.standard_normal(6))
        if family == "linear":
            model, y = clone(LINEAR), eta + rng.standard_normal(440)
        elif family == "poisson":
            model, y = SGLDPoissonRegressor(n_draws=250, random_state=0), rng.poisson(np.exp(eta))
        else:
            model, y = clone(CLASSES), (rng.random(440) < stats.logistic.cdf(eta)).astype(int)
        # the prior that the coefficients are from: another one is a misfit in so few rows
        model.set_params(prior=Normal(scale=0.5), fit_intercept=False).fit(rows[:40], y[:40])
        wrong += not check_model(model, rows[40:], y[40:], held_out=True).fits
    assert wrong <= stats.binom.isf(1e-3, n_fits, 0.05)


def test_new_rows_whose_prediction_is_infinite_are_named_and_the_others_judged():
    rng = np.random.default_rng(1)
    y = rng.poisson(np.exp(X[:, 0]))
    model = SGLDPoissonRegressor(n_draws=250, random_state=0).fit(X[:, :1], y)
    new = rng.standard_normal((200, 1))
    counts = rng.poisson(np.exp(new[:, 0]))
    near = check_model(model, new, counts, held_out=True)
    beyond = np.vstack([new, [[1e3]]])
    found = check_model(model, beyond, np.r_[counts, 3], held_out=True)
    assert near.fits and not found.fits
    assert str(found).startswith("Does the model fit? unknown")
    assert "1 rows have no finite prediction" in found.reason
    row = found.table.set_index("check").loc["rows without a finite prediction"]
    assert (row["about"], row["measured"], row["verdict"]) == ("200", 1.0, "unknown")
    name = "90 % intervals"
    each = (one.table.set_index("check").loc[name, "measured"] for one in (near, found))
    assert next(each) == next(each)
    with pytest.raises(ValueError, match="X has 0 rows whose prediction is finite"):
        check_model(model, np.full((5, 1), 1e3), counts[:5], held_out=True)
