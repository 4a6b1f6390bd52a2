"""Displays: what the artists on the axes are, against the draws and predictions they stand for."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.calibration import calibration_curve
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import (
    PosteriorDraws,
    SGLDBetaBinomialRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDPoissonRegressor,
    predict_interval,
    predict_proba_interval,
    predict_quantiles,
)
from skbayes_sgld.metrics import interval_coverage
from skbayes_sgld.plotting import (
    AutocorrelationDisplay,
    CoverageDisplay,
    DensityDisplay,
    ForestDisplay,
    PartialDependenceDisplay,
    PredictiveIntervalDisplay,
    ProbabilityContourDisplay,
    RankDisplay,
    ReliabilityDisplay,
    TraceDisplay,
)
from tests.marks import slow

pyplot = pytest.importorskip("matplotlib.pyplot", reason="the displays need the extra 'plot'")
# the runs are short
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

OF_DRAWS = [TraceDisplay, RankDisplay, DensityDisplay, ForestDisplay, AutocorrelationDisplay]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((90, 2)), columns=["age", "size"])
    return X, pd.Series(X["age"] + 0.5 * rng.standard_normal(90), name="price")


@pytest.fixture(scope="module")
def model(data):
    return SGLDLinearRegression(n_draws=100, random_state=0).fit(*data)


def classes(data):
    return np.where(data[1] > 0.2, "yes", "no")


@pytest.fixture(scope="module")
def labels(data):
    pipe = make_pipeline(StandardScaler(), SGLDLogisticRegression(n_draws=100, random_state=0))
    return pipe.fit(data[0], classes(data))


def weighted(seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((3, 80, 2)).cumsum(axis=1)
    return PosteriorDraws(values, ["a", "b"], rng.uniform(0.1, 2.0, 80))


def ends_at(band, x):
    """Lowest and highest vertex of a band at a value."""
    vertices = band.get_paths()[0].vertices
    at = vertices[np.isclose(vertices[:, 0], x), 1]
    return at.min(), at.max()


# ---- draws --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def target(data):
    outer = TransformedTargetRegressor(SGLDLinearRegression(n_draws=50, random_state=0))
    return outer.fit(*data)


@pytest.mark.parametrize("cls", OF_DRAWS)
def test_displays_of_draws_look_into_wrappers_and_draw_where_they_are_told(cls, model, target):
    assert cls.from_estimator(target, parameters="intercept").names == ["intercept"]
    figure, axes = pyplot.subplots(2)
    shown = cls.from_draws(model.posterior_, parameters=["coef"])
    assert shown.names == ["coef[age]", "coef[size]"]
    given = axes if isinstance(shown.ax_, np.ndarray) else axes[0]
    display = cls.from_draws(model.posterior_, parameters=["coef"], ax=given)
    assert display.figure_ is figure
    assert np.all(display.ax_ == given)
    with pytest.raises(ValueError, match=r"'height' is not a parameter; there are coef\[age\]"):
        cls.from_estimator(model, parameters="height")


def test_the_lines_of_traces_are_the_draws(model):
    display = TraceDisplay.from_estimator(model)
    assert display.ax_[0].get_title(loc="left") == ""
    values = model.posterior_.values
    assert display.lines_.shape == (4, 4)
    for k, of_panel in enumerate(display.lines_):
        assert display.ax_[k].get_ylabel() == model.posterior_.names[k]
        for c, line in enumerate(of_panel):
            assert_array_equal(line.get_ydata(), values[c, :, k])
    assert len({line.get_color() for line in display.lines_[0]}) == 4
    assert [text.get_text() for text in display.ax_[0].get_legend().get_texts()] == list("0123")


@pytest.mark.parametrize("cls", [TraceDisplay, RankDisplay])
def test_long_names_of_chains_are_broken_into_lines_that_fit_their_panels(cls):
    names = ["effect[firm=General Motors, year]", "intercept", "sd[firm, year]"]
    draws = PosteriorDraws(np.random.default_rng(0).normal(size=(2, 50, 3)), names)
    display = cls.from_draws(draws)
    display.ax_[0].figure.canvas.draw()
    for name, panel in zip(names, display.ax_, strict=True):
        assert " ".join(panel.get_ylabel().splitlines()).startswith(name)
        assert panel.yaxis.label.get_window_extent().height < 1.6 * panel.bbox.height


def test_what_is_left_out_is_said():
    draws = PosteriorDraws(np.random.default_rng(0).standard_normal((2, 50, 9)), list("abcdefghi"))
    display = TraceDisplay.from_draws(draws)
    assert len(display.ax_) == 6
    assert display.ax_[0].get_title(loc="left") == "6 of 9 parameters"
    with pytest.raises(ValueError, match="ax has 3 axes; it must have 2"):
        TraceDisplay.from_draws(draws, parameters=["a", "b"], ax=pyplot.subplots(3)[1])


def test_ranks_of_each_chain_are_counted_over_their_expectation():
    values = np.random.default_rng(0).standard_normal((3, 400, 1))
    values[2] += 3.0  # a chain apart
    display = RankDisplay.from_draws(PosteriorDraws(values, ["a"]))
    ranks = stats.rankdata(values[..., 0]).reshape(3, 400)
    for chain, line in zip(ranks, display.lines_[0], strict=True):
        height, edges, _ = line.get_data()
        assert_allclose(height, np.histogram(chain, edges)[0] / 20.0)
    assert height[-1] == pytest.approx(3.0, abs=0.1)  # all of the highest ranks
    assert height[0] == 0.0


def test_the_forests_lines_end_where_the_summary_says(model):
    assert ForestDisplay.from_estimator(model).names == ["coef[age]", "coef[size]"]
    for draws, coverage in ((model.posterior_, 0.9), (weighted(), 0.6)):
        display = ForestDisplay.from_draws(draws, coverage=coverage)
        table, inner = (draws.summary(level).loc[display.names] for level in (coverage, 0.5))
        thin, thick = (
            np.array([path[:, 0] for path in lines.get_segments()]) for lines in display.lines_
        )
        assert_allclose(thin, table.iloc[:, -2:], rtol=1e-12)
        assert_allclose(thick, inner.iloc[:, -2:], rtol=1e-12)
        assert_allclose(display.points_.get_xdata(), table["mean"], rtol=1e-12)
        assert_array_equal(display.points_.get_ydata(), np.arange(len(table)))
        assert [text.get_text() for text in display.ax_.get_yticklabels()] == display.names
        assert f"{100 * coverage:.0f} %" in display.ax_.get_xlabel()


def test_densities_have_the_mass_of_their_interval():
    rng = np.random.default_rng(0)
    draws = PosteriorDraws(2.0 + 0.5 * rng.standard_normal((4, 1000, 1)), ["a"])
    display = DensityDisplay.from_draws(draws, coverage=0.8)
    x, density = display.lines_[0].get_data()
    assert np.trapezoid(density, x) == pytest.approx(1.0, abs=0.01)
    assert_allclose(density, stats.norm.pdf(x, 2.0, 0.5), atol=0.06)
    assert_allclose(display.intervals_, draws.summary(0.8).iloc[:, -2:])
    shaded = display.ax_[0].collections[0].get_paths()[0].vertices[:, 0]
    assert_allclose([shaded.min(), shaded.max()], display.intervals_[0])
    assert display.ax_[0].get_xlabel() == "a"


def test_autocorrelations_are_those_of_statsmodels():
    stattools = pytest.importorskip("statsmodels.tsa.stattools", reason="the reference")
    draws = weighted()
    display = AutocorrelationDisplay.from_draws(draws, max_lag=12)
    for k, line in enumerate(display.lines_):
        # of each chain, weighted by its variance
        chains = draws.values[..., k]
        each = [stattools.acf(chain, nlags=12, fft=False) * chain.var() for chain in chains]
        assert_allclose(line.get_ydata(), np.mean(each, axis=0) / chains.var(axis=1).mean())
        assert line.get_label() == draws.names[k]


# ---- intervals ----------------------------------------------------------------------------------


def test_intervals_of_rows_are_sorted_by_the_median(model, data):
    X, y = data
    display = PredictiveIntervalDisplay.from_estimator(model, X, y, coverage=0.7)
    ends, center = predict_interval(model, X, 0.7), predict_quantiles(model, X, [0.5])[:, 0]
    order = np.argsort(center)
    inside = ((ends[:, 0] <= y) & (y <= ends[:, 1])).to_numpy()[order]
    assert_allclose(display.line_.get_ydata(), center[order])
    assert_allclose(display.inside_.get_ydata(), y.to_numpy()[order][inside])
    assert_allclose(display.outside_.get_ydata(), y.to_numpy()[order][~inside])
    share = f"{100 * inside.mean():.1f}".removesuffix(".0")
    title = f"{inside.sum()} of 90 observations ({share} %) inside"
    assert display.ax_.get_title(loc="left") == title
    assert display.band_.get_label() == "70 % interval"
    assert display.ax_.get_ylabel() == "price"
    drawn = display.band_.get_paths()[0].vertices[:, 1]
    assert_allclose([drawn.min(), drawn.max()], [ends.min(), ends.max()])


def test_intervals_over_one_column_are_a_curve_along_it(data):
    X, y = data
    one = X[["age"]]
    model = SGLDLinearRegression(n_draws=100, random_state=0).fit(one, y)
    display = PredictiveIntervalDisplay.from_estimator(model, one, kind="mean", y_name="EUR")
    assert_allclose(display.line_.get_xdata(), np.sort(one["age"]))
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("age", "EUR")
    assert display.inside_ is None
    low = predict_interval(model, one, 0.9, kind="mean")[:, 0]
    assert ends_at(display.band_, one["age"].iloc[5])[0] == pytest.approx(low[5])


def test_coverage_is_drawn_with_its_credible_interval(model, data):
    X, y = data
    levels = [0.3, 0.6, 0.9]
    display = CoverageDisplay.from_estimator(model, X, y, coverage=levels, band_coverage=0.8)
    interval = predict_interval(model, X, levels)
    inside = (interval[:, 0] <= y.to_numpy()[:, None]) & (y.to_numpy()[:, None] <= interval[:, 1])
    assert_allclose(display.line_.get_data(), [levels, inside.mean(axis=0)])
    k = inside.sum(axis=0)
    ends = stats.beta.ppf([[0.1], [0.9]], k + 0.5, 90 - k + 0.5)
    assert_allclose(np.transpose([ends_at(display.band_, x) for x in levels]), ends)
    assert display.line_.get_label() == "SGLDLinearRegression"
    with pytest.raises(ValueError, match="3 coverages on its last axis; coverage has 2"):
        CoverageDisplay.from_predictions(y, interval, [0.5, 0.9])


def families():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2))
    eta, settings = X[:, 0], {"n_draws": 250, "random_state": 0}
    plain = SGLDLinearRegression(**settings)
    heavy = SGLDLinearRegression(noise_distribution="student_t", **settings)
    logs = TransformedTargetRegressor(clone(plain), func=np.log, inverse_func=np.exp)
    falling = TransformedTargetRegressor(clone(plain), func=np.negative, inverse_func=np.negative)
    y = eta + rng.standard_normal(120)
    yield plain, X, y, {}
    yield heavy, X, eta + rng.standard_t(4, 120), {}
    yield logs, X, np.exp(y), {}
    yield falling, X, y, {}
    yield SGLDPoissonRegressor(**settings), X, rng.poisson(np.exp(eta)), {}
    years = rng.uniform(0.5, 4.0, 120)
    counts = rng.poisson(years * np.exp(eta))
    yield SGLDNegativeBinomialRegressor(**settings), X, counts, {"exposure": years}
    trials = rng.integers(1, 30, 120)
    totals = rng.binomial(trials, stats.logistic.cdf(eta))
    yield SGLDBetaBinomialRegressor(**settings), X, totals, {"n_trials": trials}


@pytest.mark.parametrize("which", [0, slow(1), 2, 3, 4, 5, slow(6)])
def test_coverage_by_the_distribution_function_is_that_of_the_intervals(which):
    model, X, y, by_row = list(families())[which]
    model.fit(X, y, **by_row)
    levels = [0.2, 0.5, 0.8, 0.95]
    display = CoverageDisplay.from_estimator(model, X, y, coverage=levels, **by_row)
    interval = predict_interval(model, X, levels, **by_row)
    expected = interval_coverage(y, interval)
    assert_allclose(display.observed, expected, atol=1e-12)
    if which == 2:  # numbers that have no logarithm are in no interval
        y = np.where(np.arange(120) < 50, -1.0, y)
        display = CoverageDisplay.from_estimator(model, X, y, coverage=levels)
        assert_allclose(display.observed, interval_coverage(y, interval), atol=1e-12)


# ---- probabilities ------------------------------------------------------------------------------


def test_reliability_is_that_of_scikit_learns_bins_with_credible_intervals(labels, data):
    X, y = data[0], classes(data)
    display = ReliabilityDisplay.from_estimator(labels, X, y, n_bins=5)
    p = labels.predict_proba(X)[:, 1]
    observed, predicted = calibration_curve(y == "yes", p, n_bins=5)
    assert_allclose(display.line_.get_data(), [predicted, observed])
    counts = np.histogram(p, np.linspace(0, 1, 6))[0]
    k = observed * counts
    low, high = stats.beta.ppf([[0.05], [0.95]], k + 0.5, counts - k + 0.5)
    drawn = np.array([path[:, 1] for path in display.bars_.get_segments()])
    assert_allclose(drawn[:, 0], np.where(k > 0, low, 0.0))
    assert_allclose(drawn[:, 1], np.where(k < counts, high, 1.0))
    assert display.ax_.get_xlabel() == "predicted probability of class yes"
    assert display.line_.get_label() == "SGLDLogisticRegression"


def test_reliability_is_of_any_classifier_and_class(data):
    X, z = data
    y = np.digitize(z, [-0.5, 0.5])
    model = LogisticRegression().fit(X, y)
    display = ReliabilityDisplay.from_estimator(model, X, y, pos_label=2, n_bins=4)
    other = ReliabilityDisplay.from_predictions(y == 2, model.predict_proba(X)[:, 2], n_bins=4)
    assert_allclose(display.line_.get_data(), other.line_.get_data())
    for label, message in (
        (None, r"3 classes; give one of them: \[0, 1, 2\]"),
        (7, "pos_label=7 is not a class"),
    ):
        with pytest.raises(ValueError, match=message):
            ReliabilityDisplay.from_estimator(model, X, y, pos_label=label)
    with pytest.raises(ValueError, match="whether the event happened"):
        ReliabilityDisplay.from_predictions(y, np.full(90, 0.5))


def test_contours_are_of_the_probability_and_shades_of_its_interval(labels, data):
    X, y = data[0], classes(data)
    display = ProbabilityContourDisplay.from_estimator(labels, X, y, grid_resolution=8)
    grid = pd.DataFrame({"age": display.x0.ravel(), "size": display.x1.ravel()})
    expected = labels.predict_proba(grid)[:, 1].reshape(8, 8)
    assert_allclose(display.probability, expected)
    ends = predict_proba_interval(labels, grid, 0.9)[:, 1]
    shades = display.shades_.get_array().reshape(8, 8)
    assert_allclose(shades, (ends[:, 1] - ends[:, 0]).reshape(8, 8))
    assert_allclose(display.contours_.levels, [0.1, 0.25, 0.5, 0.75, 0.9])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("age", "size")
    assert [line.get_label() for line in display.points_] == ["no", "yes"]
    assert_allclose(display.points_[1].get_xdata(), X["age"][y == "yes"])
    assert "probability of class yes" in display.ax_.get_title(loc="left")
    with pytest.raises(ValueError, match="3 columns"):
        ProbabilityContourDisplay.from_estimator(labels, np.zeros((4, 3)))


# ---- errors -------------------------------------------------------------------------------------


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(ImportError, match=r'pip install "skbayes-sgld\[plot\]"'):
        TraceDisplay.from_draws(PosteriorDraws(np.zeros((1, 9, 1)), ["a"]))


def test_a_display_of_another_kind_of_estimator_names_itself(model, labels, data):
    for display in (ReliabilityDisplay, ProbabilityContourDisplay):
        needs = f"{display.__name__} needs a .*classifier: SGLDLinearRegression has no predict_pr"
        with pytest.raises(TypeError, match=needs):
            display.from_estimator(model, *data)
    for display in (PredictiveIntervalDisplay, CoverageDisplay):
        needs = f"{display.__name__} needs a regressor.*: SGLDLogisticRegression has no predict_int"
        with pytest.raises(TypeError, match=needs):
            display.from_estimator(labels, *data)
    with pytest.raises(TypeError, match="TraceDisplay needs draws of a posterior: LinearReg"):
        TraceDisplay.from_estimator(LinearRegression().fit(*data))
    with pytest.raises(TypeError, match=r"ndarray; give PosteriorDraws.* or TraceDisplay\(values"):
        TraceDisplay.from_draws(np.zeros((4, 100, 1)))


# ---- partial dependence -------------------------------------------------------------------------


def test_the_band_holds_the_draws_of_the_mean_response(data, model):
    X, _ = data
    display = PartialDependenceDisplay.from_estimator(
        model, X, "age", coverage=0.8, grid_resolution=5, y_name="price"
    )
    grid = np.linspace(X["age"].min(), X["age"].max(), 5)
    draws = [model.posterior_mean_draws(X.assign(age=value)).mean(axis=0) for value in grid]
    assert_allclose(display.lines_[0].get_data(), [grid, np.mean(draws, axis=1)], rtol=1e-12)
    ends = np.quantile(draws, [0.1, 0.9], axis=1)
    drawn = np.transpose([ends_at(display.bands_[0], value) for value in grid])
    assert_allclose(drawn, ends, rtol=1e-12)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("age", "price")


def test_levels_of_a_factor_are_points_and_classes_have_lines(data, labels):
    X, z = data
    display = PartialDependenceDisplay.from_estimator(labels, X, "size", kind="at_mean")
    assert display.names is None and display.ax_.get_legend() is None
    assert display.ax_.get_ylabel() == "probability of class yes"
    p = labels.predict_proba(X.assign(age=X["age"].mean(), size=X["size"].max())[:1])[0, 1]
    assert_allclose(display.mean[-1], p, rtol=1e-9)
    flags = pd.DataFrame({"old": X["age"] > 0, "size": X["size"]})
    model = SGLDLogisticRegression(n_draws=50, random_state=0).fit(flags, np.digitize(z, [-1, 1]))
    display = PartialDependenceDisplay.from_estimator(model, flags, "old")
    assert display.names == ["0", "1", "2"] and display.bands_ == []
    assert display.ax_.get_ylabel() == "probability"
    ticks = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert ticks == ["False", "True"]
    points = display.lines_[2].lines[0].get_ydata()
    assert_allclose(points[1], model.predict_proba(flags.assign(old=True))[:, 2].mean(), rtol=1e-9)
    with pytest.raises(ValueError, match="column='weight' is not a column of X, which has 'old'"):
        PartialDependenceDisplay.from_estimator(model, flags, "weight")
    with pytest.raises(
        ValueError, match="which has 'old'.*; give the name or position of one column"
    ):
        PartialDependenceDisplay.from_estimator(model, flags, ["old"])
    with pytest.raises(ValueError, match="n_trials is given, and the model was fitted to labels"):
        PartialDependenceDisplay.from_estimator(model, flags, "old", n_trials=3)


def test_intervals_with_their_ends_swapped_are_not_drawn():
    with pytest.raises(ValueError, match="lower end 1 above the upper end 0 in row 1"):
        PredictiveIntervalDisplay.from_predictions(None, [[0.0, 1.0], [1.0, 0.0]])
