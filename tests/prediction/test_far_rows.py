"""Rows so far out under a log link that means, or their squares, overflow under some draws."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import cross_val_predict, cross_val_score

from skbayes_sgld import (
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDNegativeBinomialRegressor,
    SGLDPoissonRegressor,
    predict_interval,
    predict_quantiles,
)
from skbayes_sgld.likelihoods import Gamma, NegativeBinomial, Poisson
from skbayes_sgld.likelihoods.normal import UnequalNormalNoise
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.predictors import LinearPredictor
from tests.marks import quick

# 100 draws a chain are too few, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 2))
MEAN = np.exp(1.0 + X @ [0.5, -0.3])
TARGETS = {
    SGLDPoissonRegressor: RNG.poisson(MEAN),
    SGLDNegativeBinomialRegressor: RNG.poisson(MEAN * RNG.gamma(2.0, 0.5, 60)),
    SGLDGammaRegressor: MEAN * RNG.gamma(2.0, 0.5, 60),
}
FAR, OVERFLOWS = 23, 41
Z = X.copy()
Z[FAR], Z[OVERFLOWS] = 0.0, 0.0
Z[FAR, 0], Z[OVERFLOWS, 0] = 900.0, 5000.0  # log means of about 450 and 2,500
OTHERS = np.setdiff1d(np.arange(60), [FAR, OVERFLOWS])
TOLD = pytest.mark.filterwarnings("ignore:.* rows of X, of which row .* is the first:UserWarning")


@pytest.fixture(scope="module", params=TARGETS, ids=lambda model: model.__name__)
def fitted(request):
    y = TARGETS[request.param]
    return request.param(n_draws=100, prior="normal", random_state=0).fit(X, y), y


@TOLD
@pytest.mark.parametrize("as_rows", [np.asarray, csr_array])
def test_other_rows_are_predicted_as_without_a_far_one(fitted, as_rows):
    (model, y), rows = fitted, as_rows(Z)
    alone = as_rows(Z[OTHERS])
    for name, more in {
        "predict": (),
        "predict_interval": (),
        "predict_quantiles": ([0.2, 0.7], "mean"),
        "predict_cdf": (y,),
        "log_predictive_density": (y,),
        "log_likelihood": (y,),
        "posterior_mean_draws": (),
    }.items():
        some = tuple(y[OTHERS] if each is y else each for each in more)
        found, expected = getattr(model, name)(rows, *more), getattr(model, name)(alone, *some)
        np.testing.assert_allclose(found[OTHERS], expected, 1e-12)
        assert not np.isnan(found).any()
    assert np.isfinite(model.log_likelihood(rows, y)).all()
    assert np.isfinite(model.log_predictive_density(rows, y)).all()
    assert model.sample_y(rows, n_samples=3, random_state=0).shape == (60, 3)


def test_a_far_row_has_an_infinite_prediction_and_a_warning_names_it(fitted):
    model, y = fitted
    with pytest.warns(UserWarning, match="2 rows of X, of which row 23 .* is the first.* units"):
        mean, sd = model.predict(Z, return_std=True)
    assert mean[FAR] > 1e100 and sd[FAR] == np.inf
    assert mean[OVERFLOWS] == sd[OVERFLOWS] == np.inf
    for name in ("predict", "predict_interval", "sample_y", "posterior_mean_draws"):
        more = {"n_samples": 100, "random_state": 0} if name == "sample_y" else {}
        with pytest.warns(UserWarning, match=r"^Row 1 of X .* up to exp\(") as told:
            getattr(model, name)(Z[[0, OVERFLOWS]], **more)
        assert len(told) == 1
    with pytest.warns(UserWarning, match="rows of X"):
        assert -1e152 < model.score(Z, y) < 1.0


@pytest.mark.parametrize("model", [SGLDPoissonRegressor, SGLDNegativeBinomialRegressor])
@pytest.mark.parametrize("unit", [1.0, 1e3], ids=["as it is", "of another unit"])
def test_counts_of_rates_too_large_to_draw_are_told(model, unit):
    fitted = model(n_draws=100, prior="normal", random_state=0).fit(unit * X, TARGETS[model])
    rows = unit * np.array([[1.0, 0.0], [150.0, 0.0]])  # a log mean of about 75
    with pytest.warns(UserWarning, match=r"rate of a row is .* above 1e\+18.* drawn as if") as told:
        y = fitted.sample_y(rows, 50, random_state=0)
    assert len(told) == 1 and y[1].max() > 0.99e18 > 1e4 > y[0].max()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # a log mean of about 15
        assert fitted.sample_y(rows * [[1.0], [0.2]], 50, random_state=0).max() < 1e18


@pytest.mark.slow
@TOLD
def test_scores_and_displays_take_far_rows(fitted):
    from skbayes_sgld.metrics import get_scorer
    from skbayes_sgld.plotting import PredictiveIntervalDisplay

    (model, y), pyplot = fitted, pytest.importorskip("matplotlib.pyplot")
    for name in ("neg_coverage_error", "log_predictive_density", "neg_calibration_error"):
        assert np.isfinite(get_scorer(name)(model, Z, y))
    weight = np.isin(np.arange(60), OTHERS)
    for scorer in map(get_scorer, ("neg_crps", "neg_interval_score", "neg_interval_width")):
        assert scorer(model, Z, y) == -np.inf
        expected = scorer(model, Z[OTHERS], y[OTHERS])
        assert scorer(model, Z, y, sample_weight=weight) == pytest.approx(expected)
    assert get_scorer("neg_pinball_loss", q=[0.1, 0.9])(model, Z, y) == -np.inf
    PredictiveIntervalDisplay.from_estimator(model, Z, y).figure_.canvas.draw()
    pyplot.close("all")


# of 60 rows the folds without the far ones warn too, and the far rows are in the training sets
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "fitted", quick(TARGETS, SGLDPoissonRegressor, SGLDGammaRegressor), indirect=True
)
def test_a_cross_validation_with_a_far_row_is_finite(fitted):
    model, y = fitted
    apart = X.copy()
    apart[FAR] *= 700.0
    short = type(model)(n_draws=50, prior="normal", random_state=0)
    assert np.isfinite(cross_val_score(short, apart, y, cv=2)).all()
    found = cross_val_predict(short, apart, y, cv=2)
    assert not np.isnan(found).any() and np.isfinite(np.delete(found, FAR)).all()


def test_a_far_row_of_a_log_of_the_target_has_an_infinite_interval_and_leaves_the_others():
    from skbayes_sgld.metrics import get_scorer

    rng = np.random.default_rng(0)
    y = np.exp(1.0 + 0.5 * X[:, 0] + 0.3 * rng.standard_normal(60))
    model = SGLDLinearRegression(n_draws=250, random_state=0)
    model = TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp).fit(X, y)
    for predict in (predict_interval, lambda *a: predict_quantiles(*a, [0.2, 0.7])):
        with pytest.warns(UserWarning, match=r"^Row 41 of X .* is infinite .* units"):
            found = predict(model, Z)
        assert np.isinf(found[OVERFLOWS]).all()
        np.testing.assert_allclose(found[OTHERS], predict(model, Z[OTHERS]), 1e-12)
    weight = np.isin(np.arange(60), OTHERS)
    for name in ("neg_crps", "neg_interval_score", "neg_coverage_error"):
        scorer = get_scorer(name)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Row 41 of X", UserWarning)
            all_rows, weighted = scorer(model, Z, y), scorer(model, Z, y, sample_weight=weight)
        assert np.isfinite(all_rows) if "coverage" in name else all_rows == -np.inf
        assert weighted == pytest.approx(scorer(model, Z[OTHERS], y[OTHERS]))


SPREAD = RNG.normal(0.05, 0.1, (400, 1, 1))  # of log means of rows of 10 to 4,000
LEVEL = np.full((400, 1), 2.0)


@TOLD
@pytest.mark.parametrize("x", [10.0, 1000.0, 3000.0])
@pytest.mark.parametrize("q", [0.021, 0.301, 0.601])
@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial(), Gamma()])
def test_quantiles_of_means_that_differ_by_powers_are_those_of_the_mixture(likelihood, x, q):
    own = None if not likelihood.own else np.full((400, 1), np.log(0.5))
    predictive = PredictiveDistribution(LinearPredictor(SPREAD, LEVEL), likelihood, own)
    t = predictive.quantiles(np.array([[x], [x]]), np.array([q]))[0, 0]
    with np.errstate(over="ignore"):
        mu = np.exp(np.minimum(2.0 + x * SPREAD[:, 0, 0], 600.0))

    def below(t):
        if isinstance(likelihood, NegativeBinomial):
            return stats.nbinom.cdf(t, 2.0, 2.0 / (2.0 + mu)).mean()
        if isinstance(likelihood, Poisson):
            return stats.poisson.cdf(t, mu).mean()
        return stats.gamma.cdf(t, 2.0, scale=np.maximum(mu, 1e-300) / 2.0).mean()

    if t < 1e15:
        assert below(t * (1.0 + 1e-4)) >= q
        assert below(t - 1.0 if likelihood.whole else t * (1.0 - 1e-4)) < q
    else:  # where whole numbers have gaps
        assert np.mean(mu < 0.5 * t) <= q + 0.01 and (t == np.inf or np.mean(mu < 2.0 * t) >= q)


@pytest.mark.parametrize("n", [5, 300])
@pytest.mark.parametrize("power", [-3000.0, -500.0, 500.0, 3000.0])
def test_noise_beyond_the_range_is_at_its_end_and_other_rows_are_as_without_it(power, n):
    rng = np.random.default_rng(0)
    coef, level = 1.0 + 0.1 * rng.standard_normal((300, 2, 2)), np.zeros((300, 2))
    law = PredictiveDistribution(LinearPredictor(coef, level), UnequalNormalNoise())
    X = rng.standard_normal((n, 2))
    y, others, q = X[:, 0].copy(), X[1:], np.array([0.1, 0.9])
    alone = (
        law.moments(others),
        law.quantiles(others, q),
        law.cdf(others, y[1:, None]),
        law.log_density(others, y[1:]),
        law.log_likelihood(others, y[1:]),
    )
    X[0] = 0.5 * power
    y[0] = X[0].sum()
    calls = (
        lambda: law.moments(X),
        lambda: law.quantiles(X, q),
        lambda: law.cdf(X, y[:, None]),
        lambda: law.log_density(X, y),
        lambda: law.log_likelihood(X, y),
    )
    for call, expected in zip(calls, alone, strict=True):
        with pytest.warns(UserWarning, match=r"Row 0 of X \(from 0\) has a noise variance beyond"):
            found = call()
        np.testing.assert_allclose(found[1:], expected, rtol=1e-4, atol=1e-3)
        assert not np.isnan(found).any()
    with pytest.warns(UserWarning):
        low, high = law.quantiles(X, q)[0]
    assert (low, high) == (-np.inf, np.inf) if power > 0.0 else np.isfinite(high - low)
