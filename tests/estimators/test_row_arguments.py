"""Arguments by row: where a fit had one, nothing compares y with predictions without it."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

import skbayes_sgld
from skbayes_sgld import (
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDPoissonRegressor,
    effects,
    predict_interval,
    predict_proba_interval,
)
from tests.annexes import of_annex
from tests.marks import quick

RNG = np.random.default_rng(0)
N = 80
X = RNG.standard_normal((N, 2))
SIZE = RNG.integers(1, 30, N)
COUNTS = RNG.poisson(SIZE * np.exp(0.3 * X[:, 0] - 0.5))
SUCCESSES = RNG.binomial(SIZE, expit(X[:, 0]))
AVERAGES = 1.0 + 0.3 * X[:, 0] + RNG.standard_normal(N) / np.sqrt(SIZE)
FEW = {"n_draws": 20, "n_chains": 2, "random_state": 0}
# 20 draws of two chains are too few, and fit says so
few_draws = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MODELS = {
    "Poisson": (SGLDPoissonRegressor(**FEW), COUNTS, "exposure"),
    "negative binomial": (SGLDNegativeBinomialRegressor(**FEW), COUNTS, "exposure"),
    "logistic": (SGLDLogisticRegression(**FEW), SUCCESSES, "n_trials"),
    "beta-binomial": (SGLDBetaBinomialRegressor(**FEW), SUCCESSES, "n_trials"),
    "normal averages": (SGLDLinearRegression(**FEW), AVERAGES, "n_averaged"),
    "gamma averages": (SGLDGammaRegressor(**FEW), np.exp(AVERAGES), "n_averaged"),
}


def display(name):
    return of_annex("plotting", name)


def blocks(*parts):
    return skbayes_sgld.RowBlocks(lambda: iter(parts))


JUDGES = {
    "score": lambda model, y: model.score(X, y),
    "score, weights": lambda model, y: model.score(X, y, sample_weight=np.ones(N)),
    "score, blocks": lambda model, y: model.score(blocks((X, y))),
    "score, weighted blocks": lambda model, y: model.score(blocks((X, y, np.ones(N)))),
    "log_likelihood": lambda model, y: model.log_likelihood(X, y),
    "log_predictive_density": lambda model, y: model.log_predictive_density(X, y),
    "predict_cdf": lambda model, y: model.predict_cdf(X, y),
    "to_arviz": lambda model, y: model.to_arviz(X, y),
    "check_model": lambda model, y: skbayes_sgld.check_model(model, X, y),
    "compare_models": lambda model, y: skbayes_sgld.compare_models({"a": model}, X, y),
    "loo": lambda model, y: of_annex("metrics", "loo")(model, X, y),
    "coverage": lambda model, y: display("CoverageDisplay").from_estimator(model, X, y),
    "intervals": lambda model, y: display("PredictiveIntervalDisplay").from_estimator(model, X, y),
    "checks": lambda model, y: display("ModelCheckDisplay").from_estimator(model, X, y),
    "comparison": lambda model, y: display("ModelComparisonDisplay").from_estimators(
        {"a": model}, X, y
    ),
}
FOR_NUMBERS = "cdf", "crps", "pinball", "coverage", "interval", "checks"  # no method of classifiers


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return fit(request.param)


def fit(name):
    """A model that was fitted to rows with their argument, its y and the argument's name."""
    model, y, argument = MODELS[name]
    with pytest.warns():
        return clone(model).fit(X, y, **{argument: SIZE}), y, argument


@pytest.mark.parametrize("judge", JUDGES)
def test_rows_are_not_judged_without_the_argument_of_the_fit(judge, fitted):
    refuse_without_argument(judge, JUDGES[judge], *fitted)


def refuse_without_argument(judge, call, model, y, argument):
    """Expect the error of a judge, by its name, that is given rows without their argument."""
    others = FOR_NUMBERS if hasattr(model, "classes_") else ("brier",)
    if any(word in judge for word in others):
        pytest.skip("the model has no such method")
    with pytest.raises(ValueError, match=f"{argument} is None, and the model was fitted to"):
        call(model, np.minimum(y, 1))  # each could be of one trial


@few_draws
@pytest.mark.parametrize("name", quick(MODELS, "Poisson", "logistic", "normal averages"))
def test_batches_and_blocks_are_judged_as_arrays_are(name):
    model, y, argument = MODELS[name]
    if name == "logistic":
        by_batch = clone(model).partial_fit(X[:40], y[:40], n_trials=SIZE[:40])
        by_batch.partial_fit(X[40:], y[40:], n_trials=SIZE[40:])
    else:
        by_batch = clone(model).partial_fit(X[:40], y[:40], **{argument: SIZE[:40]})
        by_batch.partial_fit(X[40:], y[40:], **{argument: SIZE[40:]})
    in_blocks = clone(model).fit(blocks((X, y, None, SIZE)))
    for each in (by_batch, in_blocks):
        with pytest.raises(ValueError, match=f"{argument} is None"):
            each.score(X, np.minimum(y, 1))
        assert np.isfinite(each.score(X, y, **{argument: SIZE}))
    if argument == "exposure":  # a later fit to counts of one unit
        assert np.isfinite(in_blocks.fit(X, y).score(X, y))


@few_draws
@pytest.mark.parametrize("name", MODELS)
def test_all_batches_and_blocks_have_the_argument_or_none(name):
    model, y, argument = MODELS[name]
    y, first, later = np.minimum(y, 1), slice(0, 40), slice(40, N)  # each could be of one trial
    with_it, without = {argument: SIZE[first]}, {"classes": [0, 1]} if name == "logistic" else {}
    orders = [(with_it, {}), (without, with_it)]
    for given, other in orders[: 1 if name == "beta-binomial" else 2]:  # whose fit needs it
        model = clone(model).partial_fit(X[first], y[first], **given)
        draws, known = model.posterior_, model._arguments_of_fit
        with pytest.raises(ValueError, match=f"{argument} is (None; give|(not )?given, and ear)"):
            model.partial_fit(X[first], y[first], **other)
        assert model.posterior_ is draws and model._arguments_of_fit == known
        model.partial_fit(X[first], y[first], **given)
    parts = [(X[first], y[first], None, SIZE[first]), (X[later], y[later])]
    with pytest.raises(ValueError, match=r"block 1 has no exposure.*has it; .*in all blocks, or"):
        clone(model).fit(blocks(*parts))
    if name != "beta-binomial":
        with pytest.raises(ValueError, match=r"block 1 has exposure.* the first block has none"):
            clone(model).fit(blocks(*parts[::-1]))


@few_draws
def test_arguments_by_row_are_split_where_results_are_written_block_by_block(monkeypatch):
    from skbayes_sgld.blocks import files

    monkeypatch.setattr(files, "_BLOCK_NUMBERS", 50)
    model, out = SGLDPoissonRegressor(**FEW).fit(X, COUNTS, exposure=SIZE), np.empty(N)
    assert model.predict(X, exposure=SIZE, out=out) is out
    np.testing.assert_allclose(out, model.predict(X, exposure=SIZE))
    with pytest.raises(ValueError, match="X has 80, exposure has 3"):
        model.predict(X, exposure=SIZE[:3], out=out)
    with pytest.raises(TypeError, match="out has dtype int64; predict returns float64"):
        model.predict(X, out=np.empty(N, np.int64))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        model.predict(X, out=out)


SHARES, GAPS = SUCCESSES / SIZE, np.where(COUNTS > 2, "many", None)
INSTEAD = {
    "shares as labels": (
        lambda: SGLDLogisticRegression().fit(X, SHARES),
        r"Unknown label type.*fit\(X, successes, n_trials=n\)",
    ),
    "shares as labels of batches": (
        lambda: SGLDLogisticRegression().partial_fit(X, SHARES, classes=[0, 1]),
        r"y has the label .*fit\(X, successes, n_trials=n\)",
    ),
    "shares as totals": (
        lambda: SGLDBetaBinomialRegressor().fit(X, SHARES, n_trials=SIZE),
        "y has the value .*Shares of successes times n_trials are numbers of successes",
    ),
    "labels with gaps": (
        lambda: SGLDLogisticRegression().partial_fit(X, GAPS, classes=["few", "many"]),
        f"y contains NaN, first in row {int(np.argmax(COUNTS <= 2))}; leave such rows out",
    ),
    "a list with gaps": (
        lambda: SGLDLogisticRegression().fit(X[:3], ["few", np.nan, "many"]),
        "y contains NaN, first in row 1",
    ),
    "classes with gaps": (
        lambda: SGLDLogisticRegression().partial_fit(X, COUNTS > 2, classes=["few", np.nan]),
        "classes has no label at position 1",
    ),
    "no y": (
        lambda: SGLDLinearRegression().fit(X, None),
        "^SGLDLinear.*the target y is None; give",
    ),
    "blocks of five": (
        lambda: SGLDLinearRegression().fit(blocks((X, COUNTS, None, SIZE, SIZE))),
        "block 0 is a tuple of 5; .*the n_averaged of averages",
    ),
    "the other argument": (
        lambda: SGLDPoissonRegressor().fit(X, COUNTS, n_trials=SIZE),
        "'n_trials'; it takes .*exposure; totals of trials are of SGLDLogisticRegression",
    ),
}


@pytest.mark.parametrize("case", INSTEAD)
def test_errors_name_what_to_give_instead(case):
    call, message = INSTEAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@few_draws
def test_probabilities_and_effects_take_the_totals_and_do_not_depend_on_them():
    model = SGLDLogisticRegression(**FEW).fit(X, SUCCESSES, n_trials=SIZE)
    with pytest.raises(TypeError, match=r"sample_y\(..., n_trials=n_trials\), or fit SGLDBetaB"):
        predict_interval(make_pipeline(model), X)
    for predict in (
        model.predict,
        model.predict_proba,
        model.decision_function,
        model.posterior_mean_draws,
        partial(predict_proba_interval, make_pipeline(model)),
        partial(effects, make_pipeline(model), kind="at_mean"),
    ):
        np.testing.assert_array_equal(predict(X, n_trials=SIZE), predict(X))
        with pytest.raises(ValueError, match="n_trials has the value -"):
            predict(X, n_trials=-SIZE)
    labels = SGLDLogisticRegression(**FEW).fit(X, SUCCESSES > 2)
    with pytest.raises(TypeError, match="no predict_interval. Of prob.* use predict_proba_interv"):
        predict_interval(labels, X)
    with pytest.raises(ValueError, match="n_trials is given, and the model was fitted to labels"):
        labels.predict_proba(X, n_trials=SIZE)


@few_draws
def test_effects_take_every_argument_by_row():
    model = SGLDBetaBinomialRegressor(**FEW).fit(X, SUCCESSES, n_trials=SIZE)
    shares, counts = effects(model, X), effects(model, X, n_trials=7)
    np.testing.assert_allclose(counts["estimate"], 7.0 * shares["estimate"], rtol=1e-6)
    one = SGLDLinearRegression(**FEW).fit(X, AVERAGES, n_averaged=SIZE)
    pd.testing.assert_frame_equal(effects(one, X, n_averaged=SIZE), effects(one, X))


@few_draws
def test_the_display_of_labels_counts_each_trial_of_a_total():
    from skbayes_sgld.plotting import ReliabilityDisplay

    model = SGLDLogisticRegression(**FEW).fit(X, SUCCESSES, n_trials=SIZE)
    display = ReliabilityDisplay.from_estimator(model, X, SUCCESSES, n_bins=5, n_trials=SIZE)
    rows = np.repeat(np.arange(len(SIZE)), SIZE)
    labels = np.concatenate([np.arange(n) < k for n, k in zip(SIZE, SUCCESSES, strict=True)])
    p = model.predict_proba(X)[rows, 1]
    other = ReliabilityDisplay.from_predictions(labels, p, n_bins=5)
    for found, expected in zip(display.bins, other.bins, strict=True):
        np.testing.assert_allclose(found, expected)
    with pytest.raises(ValueError, match="n_trials is None, and the model was fitted to totals"):
        ReliabilityDisplay.from_estimator(model, X, SUCCESSES)


@few_draws
def test_fractions_are_rates_where_weights_are_their_exposures():
    rates = COUNTS / SIZE
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SGLDPoissonRegressor(**FEW).fit(X, rates, sample_weight=SIZE)
    assert not any("whole counts" in str(each.message) for each in caught)
    for cls, given in (
        (SGLDNegativeBinomialRegressor, {"sample_weight": SIZE}),
        (SGLDPoissonRegressor, {"sample_weight": SIZE, "exposure": SIZE}),
        (SGLDPoissonRegressor, {}),
    ):
        with pytest.warns(UserWarning, match="the model is of whole counts"):
            cls(**FEW).fit(X, rates, **given)
    with pytest.warns(UserWarning, match="the model is of whole counts"):
        SGLDNegativeBinomialRegressor(**FEW).fit(blocks((X, rates, SIZE)))


@few_draws
@pytest.mark.parametrize(
    ("cls", "scoring"),
    [
        (SGLDBetaBinomialRegressor, None),
        (SGLDBetaBinomialRegressor, "neg_crps"),
        (SGLDLogisticRegression, None),
    ],
)
def test_a_search_says_how_it_passes_the_argument(cls, scoring):
    scorer = None if scoring is None else of_annex("metrics", "get_scorer")(scoring)
    with pytest.raises(ValueError, match=r"enable_metadata_routing=True.*n_trials=True"):
        cross_val_score(
            cls(**FEW),
            X,
            SUCCESSES,
            scoring=scorer,
            params={"n_trials": SIZE},
            cv=KFold(2),
            error_score="raise",
        )
