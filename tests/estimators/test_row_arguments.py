"""Arguments by row: where a fit had one, nothing compares y with predictions without it."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from skbayes_sgld import (
    RowBlocks,
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDPoissonRegressor,
    check_model,
    compare_models,
)
from skbayes_sgld.metrics import get_scorer, get_scorer_names, loo
from skbayes_sgld.plotting import (
    CoverageDisplay,
    ModelCheckDisplay,
    ModelComparisonDisplay,
    PredictiveIntervalDisplay,
    ReliabilityDisplay,
)

RNG = np.random.default_rng(0)
N = 80
X = RNG.standard_normal((N, 2))
SIZE = RNG.integers(1, 30, N)
COUNTS = RNG.poisson(SIZE * np.exp(0.3 * X[:, 0] - 0.5))
SUCCESSES = RNG.binomial(SIZE, expit(X[:, 0]))
AVERAGES = 1.0 + 0.3 * X[:, 0] + RNG.standard_normal(N) / np.sqrt(SIZE)
FEW = {"n_draws": 50, "n_chains": 2, "random_state": 0}
# 50 draws of two chains are too few, and fit says so
few_draws = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MODELS = {
    "Poisson": (SGLDPoissonRegressor(**FEW), COUNTS, "exposure"),
    "negative binomial": (SGLDNegativeBinomialRegressor(**FEW), COUNTS, "exposure"),
    "logistic": (SGLDLogisticRegression(**FEW), SUCCESSES, "n_trials"),
    "beta-binomial": (SGLDBetaBinomialRegressor(**FEW), SUCCESSES, "n_trials"),
    "normal averages": (SGLDLinearRegression(**FEW), AVERAGES, "n_averaged"),
    "gamma averages": (SGLDGammaRegressor(**FEW), np.exp(AVERAGES), "n_averaged"),
}
JUDGES = {
    "score": lambda model, y: model.score(X, y),
    "score, weights": lambda model, y: model.score(X, y, sample_weight=np.ones(N)),
    "score, blocks": lambda model, y: model.score(RowBlocks(lambda: iter([(X, y)]))),
    "score, weighted blocks": lambda model, y: model.score(
        RowBlocks(lambda: iter([(X, y, np.ones(N))]))
    ),
    "log_likelihood": lambda model, y: model.log_likelihood(X, y),
    "log_predictive_density": lambda model, y: model.log_predictive_density(X, y),
    "predict_cdf": lambda model, y: model.predict_cdf(X, y),
    "to_arviz": lambda model, y: model.to_arviz(X, y),
    "check_model": lambda model, y: check_model(model, X, y),
    "compare_models": lambda model, y: compare_models({"a": model}, X, y),
    "loo": lambda model, y: loo(model, X, y),
    "coverage": lambda model, y: CoverageDisplay.from_estimator(model, X, y),
    "intervals": lambda model, y: PredictiveIntervalDisplay.from_estimator(model, X, y),
    "checks": lambda model, y: ModelCheckDisplay.from_estimator(model, X, y),
    "comparison": lambda model, y: ModelComparisonDisplay.from_estimators({"a": model}, X, y),
}
FOR_NUMBERS = "cdf", "crps", "pinball", "coverage", "interval", "checks"  # no method of classifiers
JUDGES |= {
    f"scorer {name}": lambda model, y, name=name: get_scorer(name)(model, X, y)
    for name in get_scorer_names()
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    model, y, argument = MODELS[request.param]
    with pytest.warns():
        return clone(model).fit(X, y, **{argument: SIZE}), y, argument


@pytest.mark.parametrize("judge", JUDGES)
def test_rows_are_not_judged_without_the_argument_of_the_fit(judge, fitted):
    model, y, argument = fitted
    others = FOR_NUMBERS if hasattr(model, "classes_") else ("brier",)
    if any(word in judge for word in others):
        pytest.skip("the model has no such method")
    with pytest.raises(ValueError, match=f"{argument} is None, and the model was fitted to"):
        JUDGES[judge](model, np.minimum(y, 1))  # each could be of one trial


@few_draws
@pytest.mark.parametrize("name", MODELS)
def test_batches_and_blocks_are_judged_as_arrays_are(name):
    model, y, argument = MODELS[name]
    if name == "logistic":
        by_batch = clone(model).partial_fit(X[:40], y[:40], n_trials=SIZE[:40])
        by_batch.partial_fit(X[40:], y[40:], n_trials=SIZE[40:])
    else:
        by_batch = clone(model).partial_fit(X[:40], y[:40], **{argument: SIZE[:40]})
        by_batch.partial_fit(X[40:], y[40:], **{argument: SIZE[40:]})
    in_blocks = clone(model).fit(RowBlocks(lambda: iter([(X, y, None, SIZE)])))
    for each in (by_batch, in_blocks):
        with pytest.raises(ValueError, match=f"{argument} is None"):
            each.score(X, np.minimum(y, 1))
        assert np.isfinite(each.score(X, y, **{argument: SIZE}))
    if argument == "exposure":  # a later fit to counts of one unit
        assert np.isfinite(in_blocks.fit(X, y).score(X, y))


@few_draws
def test_the_display_of_labels_takes_no_totals():
    model = SGLDLogisticRegression(**FEW).fit(X, SUCCESSES, n_trials=SIZE)
    with pytest.raises(ValueError, match="takes labels, and the model was fitted to totals"):
        ReliabilityDisplay.from_estimator(model, X, np.minimum(SUCCESSES, 1))


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
        SGLDNegativeBinomialRegressor(**FEW).fit(RowBlocks(lambda: iter([(X, rates, SIZE)])))


@few_draws
@pytest.mark.parametrize("scoring", [None, "neg_crps"])
def test_a_search_says_how_it_passes_the_argument(scoring):
    scorer = None if scoring is None else get_scorer(scoring)
    with pytest.raises(ValueError, match=r"enable_metadata_routing=True.*n_trials=True"):
        cross_val_score(
            SGLDBetaBinomialRegressor(**FEW),
            X,
            SUCCESSES,
            scoring=scorer,
            params={"n_trials": SIZE},
            cv=2,
            error_score="raise",
        )
