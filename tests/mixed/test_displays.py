"""Displays of effects of groups: what the artists are, against the draws they stand for."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDOrdinalClassifier
from skbayes_sgld.plotting import GroupEffectsDisplay, PartialDependenceDisplay, ShrinkageDisplay
from tests.marks import SHORT, short_chains

pyplot = pytest.importorskip("matplotlib.pyplot", reason="the displays need the extra 'plot'")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 300
    shop = rng.choice(40, n, p=rng.dirichlet(np.full(40, 2.0)))
    X = pd.DataFrame({"shop": [f"shop {k}" for k in shop], "x": rng.normal(size=n)})
    y = 1.0 + X["x"] + rng.normal(size=40)[shop] + rng.normal(size=n)
    return X, pd.Series(y, name="sales")


@pytest.fixture(scope="module")
def model(rows):
    return SGLDLinearRegression(group_effects={"shop": "intercept"}, random_state=0).fit(*rows)


def test_effects_are_sorted_with_their_intervals(model):
    display = GroupEffectsDisplay.from_estimator(model, n_labels=None)
    table = model.group_effects_.loc["shop"].droplevel("effect").sort_values("mean")
    assert display.labels == list(table.index)
    assert_allclose(display.points_[0].get_xdata(), table["mean"])
    assert_allclose(display.intervals_[0], table[["lower", "upper"]])
    (panel,) = display.ax_
    assert [tick.get_text() for tick in panel.get_yticklabels()] == display.labels
    assert panel.get_ylabel() == "shop"
    assert panel.get_xlabel() == "intercept"
    assert "\n" not in panel.get_title(loc="left")


def test_of_many_labels_the_lowest_and_the_highest_are_shown(model):
    display = GroupEffectsDisplay.from_estimator(model, n_labels=7)
    every = GroupEffectsDisplay.from_estimator(model, n_labels=None).labels
    assert display.labels == every[:3] + every[-4:]
    title = display.ax_[0].get_title(loc="left")
    assert title.endswith(f"7 of {len(every)} labels: the lowest and the highest")
    heights = display.points_[0].get_ydata()
    assert list(np.diff(heights)) == [1.0, 1.0, 2.0, 1.0, 1.0, 1.0]


@short_chains
def test_each_effect_has_a_panel_or_one_is_chosen(rows):
    terms = {"shop": ["intercept", "x"]}
    model = SGLDLinearRegression(group_effects=terms, random_state=0, **SHORT).fit(*rows)
    display = GroupEffectsDisplay.from_estimator(model)
    assert [panel.get_xlabel() for panel in display.ax_] == ["intercept", "slope of x"]
    table = model.group_effects_["mean"].unstack("effect").loc["shop"].loc[display.labels]
    for points, effect in zip(display.points_, ["intercept", "x"], strict=True):
        assert_allclose(points.get_xdata(), table[effect])
    _, axes = pyplot.subplots()
    slopes = GroupEffectsDisplay.from_estimator(model, effect="x", ax=axes)
    assert slopes.ax_[0] is axes
    assert np.all(np.diff(slopes.points_[0].get_xdata()) > 0)


def test_in_a_linear_regression_the_effects_of_shrinkage_are_the_effects(model, rows):
    X, y = rows
    display = ShrinkageDisplay.from_estimator(model, X, y, n_labels=None)
    table = model.group_effects_.loc["shop"].droplevel("effect").loc[display.labels]
    assert_allclose(display.points_.get_xdata(), table["mean"], atol=1e-9)
    assert_allclose(display.interval, table[["lower", "upper"]], atol=1e-9)
    residual = y - model.predict(X, groups="population")
    by_label = residual.groupby(X["shop"].to_numpy())
    own = by_label.mean().loc[display.labels]
    assert_allclose(display.own_.get_offsets()[:, 0], own)
    n_rows = by_label.size().loc[display.labels]
    np.testing.assert_array_equal(display.sizes, n_rows)
    assert np.all(np.diff(display.own_.get_sizes()[np.argsort(n_rows)]) >= 0)
    # pooling draws towards the population, the more the fewer the rows
    kept = display.mean / display.own
    assert np.all((kept > 0) & (kept < 1.02) | (np.abs(display.own) < 0.1))
    far = np.abs(display.own) > 0.3
    assert kept[far][n_rows[far] > 8].mean() > kept[far][n_rows[far] <= 5].mean()
    assert display.ax_.get_xlabel() == "sales: deviation from the population"
    assert len(display.arrows_) == len(display.labels)


def test_another_term_is_part_of_what_is_expected(rows):
    X, y = rows
    rng = np.random.default_rng(1)
    X = X.assign(town=rng.choice(list("abcdef"), len(X)))
    y = y + X["town"].map(dict(zip("abcdef", range(6), strict=True)))
    terms = {"shop": "intercept", "town": "intercept"}
    model = SGLDLinearRegression(group_effects=terms, random_state=0).fit(X, y)
    display = ShrinkageDisplay.from_estimator(model, X, y, term="town")
    table = model.group_effects_.loc["town"].droplevel("effect").loc[display.labels]
    assert_allclose(display.mean, table["mean"], atol=1e-9)
    assert_allclose(display.own, display.mean, atol=0.15)  # 50 rows each


@short_chains
def test_shrinkage_of_shares_and_of_transformed_targets(rows):
    X, y = rows
    labels = np.where(y > 1.0, "yes", "no")
    model = SGLDLogisticRegression(group_effects={"shop": "intercept"}, random_state=0, **SHORT)
    model.fit(X, labels)
    display = ShrinkageDisplay.from_estimator(model, X, labels)
    at = display.labels[-1]
    some = X["shop"] == at
    base = model.predict_proba(X[some], groups="population")[:, 1].mean()
    full = model.predict_proba(X[some])[:, 1].mean()
    assert display.own[-1] == pytest.approx((labels[some] == "yes").mean() - base)
    assert display.mean[-1] == pytest.approx(full - base)
    inner = SGLDLinearRegression(group_effects={"shop": "intercept"}, random_state=0, **SHORT)
    outer = TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, y)
    display = ShrinkageDisplay.from_estimator(outer, X, y, n_labels=4)
    assert len(display.labels) == 4
    assert np.all(np.abs(display.own) < 4.0)


@short_chains
def test_what_cannot_be_shown_is_refused(model, rows):
    X, y = rows
    plain = SGLDLinearRegression(random_state=0).fit(X[["x"]], y)
    for cls, data in ((GroupEffectsDisplay, ()), (ShrinkageDisplay, (X, y))):
        with pytest.raises(TypeError, match="needs a model with group_effects"):
            cls.from_estimator(plain, *data)
        with pytest.raises(ValueError, match="term='town' is not a term"):
            cls.from_estimator(model, *data, term="town")
        with pytest.raises(ValueError, match="n_labels=1"):
            cls.from_estimator(model, *data, n_labels=1)
    with pytest.raises(ValueError, match="effect='x' is not an effect"):
        GroupEffectsDisplay.from_estimator(model, effect="x")
    ordered = SGLDOrdinalClassifier(group_effects={"shop": "intercept"}, random_state=0, **SHORT)
    ordered.fit(X, np.digitize(y, [0.0, 2.0]))
    assert len(GroupEffectsDisplay.from_estimator(ordered).labels) == 30
    with pytest.raises(TypeError, match="3 classes"):
        ShrinkageDisplay.from_estimator(ordered, X, np.digitize(y, [0.0, 2.0]))


def test_names_of_many_levels_stand_upright(model, rows):
    display = PartialDependenceDisplay.from_estimator(model, rows[0], "shop", n_rows=20)
    assert {tick.get_rotation() for tick in display.ax_.get_xticklabels()} == {90.0}
