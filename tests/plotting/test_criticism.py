"""Displays of checks and comparisons: what is drawn, against the frames that it stands for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
    check_model,
    compare_models,
)
from skbayes_sgld.plotting import ModelCheckDisplay, ModelComparisonDisplay

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 2))
COUNTS = RNG.poisson(np.exp(0.5 + 0.4 * X[:, 0]))


def test_bars_share_each_counts_transform_and_the_band_is_binomial():
    model = SGLDPoissonRegressor(n_draws=250, random_state=0).fit(X, COUNTS)
    check = check_model(model, X, COUNTS, remedies=False)
    display = ModelCheckDisplay.from_check(check, n_bins=4, n_groups=3, coverage=0.9)
    heights = np.array([bar.get_height() for bar in display.bars_])
    at = (np.arange(4000) + 0.5) / 4000  # points of each transform's interval
    u = check.below[:, None] + at * (check.most - check.below)[:, None]
    assert_allclose(heights, np.histogram(u, 4, (0, 1))[0] / u.size * 4, atol=1e-3)
    low, high = stats.binom.interval(0.9, 120, 0.25)
    ends = display.band_.get_paths()[0].vertices[:, 1]
    assert_allclose([ends.min(), ends.max()], [low * 4 / 120, high * 4 / 120])
    # coverage of all rows is the mean of that of groups of as many
    for line, name in zip(display.lines_, ("50 % intervals", "90 % intervals"), strict=True):
        table = check.table.set_index("check")["measured"]
        assert np.mean(line.get_ydata()) == pytest.approx(table[name])
        assert line.get_label() == name
    every = ModelCheckDisplay.from_check(check, n_groups=200)  # more than there are rows
    assert [len(line.get_ydata()) for line in every.lines_] == [120, 120]
    assert display.ax_[0].get_title(loc="left") == (
        "SGLDPoissonRegressor: 120 rows, left out one at a time"
    )
    new = ModelCheckDisplay.from_estimator(model, X[:60], COUNTS[:60], held_out=True)
    assert new.ax_[0].get_title(loc="left") == "SGLDPoissonRegressor: 60 new rows"


def test_the_transforms_of_numbers_are_counted_and_labels_have_none():
    y = X[:, 0] + RNG.standard_normal(120)
    model = SGLDLinearRegression(n_draws=250, random_state=0).fit(X, y)
    display = ModelCheckDisplay.from_estimator(model, X, y, n_bins=5)
    heights = np.array([bar.get_height() for bar in display.bars_])
    assert_allclose(heights, np.histogram(display.most, 5, (0, 1))[0] / 24)
    model = SGLDLogisticRegression(n_draws=250, random_state=0).fit(X, COUNTS > 1)
    with pytest.raises(TypeError, match="ReliabilityDisplay shows"):
        ModelCheckDisplay.from_estimator(model, X, COUNTS > 1)


def test_differences_are_those_of_the_table():
    models = {
        "both": SGLDPoissonRegressor(n_draws=250, random_state=0).fit(X, COUNTS),
        "narrow": SGLDPoissonRegressor(n_draws=250, temperature=0.1, random_state=0).fit(X, COUNTS),
    }
    new = ModelComparisonDisplay.from_estimators(models, X[:60], COUNTS[:60], held_out=True)
    assert new.ax_.get_xlabel() == "log density of new rows, less that of the best model"
    table = compare_models(models, X, COUNTS)
    display = ModelComparisonDisplay.from_estimators(models, X, COUNTS)
    assert_allclose(display.line_.get_xdata(), table["difference"])
    ends = np.array([path[:, 0] for path in display.bars_.get_segments()])
    assert_allclose(np.diff(ends, axis=1)[:, 0], 4 * table["se_difference"])
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == table.index.tolist()
