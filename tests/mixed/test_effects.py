"""Effects on the response, partial dependence and permutation importance with labels of groups."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.inspection import permutation_importance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLinearRegression, SGLDPoissonRegressor, effects
from skbayes_sgld.plotting import PartialDependenceDisplay
from skbayes_sgld.prediction import slopes
from tests.marks import SHORT, short_chains, slow

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

NUMBERS = {308: 2.0, 309: 0.0, 310: -1.0, 330: 1.0, 331: 0.5}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 250
    X = pd.DataFrame({"subject": rng.choice(list(NUMBERS), n), "x": rng.normal(size=n)})
    slope = X["subject"].map(NUMBERS)
    return X, (1.0 + slope * (0.5 + X["x"]) + rng.normal(size=n)).to_numpy()


@pytest.fixture(scope="module")
def model(rows):
    terms = {"subject": ["intercept", "x"]}
    return SGLDLinearRegression(group_effects=terms, random_state=0).fit(*rows)


def own_slopes(model):
    """Draws of each label's own slope."""
    coef = model.posterior_["coef[x]"].ravel()
    return {k: coef + model.posterior_[f"effect[subject={k}, x]"].ravel() for k in NUMBERS}


FRAMES = {"pandas": lambda X: X, "polars": pl.from_pandas, "Arrow": pa.Table.from_pandas}


@pytest.mark.parametrize("kind", FRAMES)
def test_slopes_are_averaged_over_the_labels_as_they_are(model, rows, kind):
    X = rows[0]
    table = effects(model, FRAMES[kind](X))
    assert list(table["column"]) == ["x"]  # labels are left out
    share, slopes = X["subject"].value_counts(normalize=True), own_slopes(model)
    expected = sum(share[k] * draws for k, draws in slopes.items())
    np.testing.assert_allclose(table["estimate"], expected.mean(), rtol=1e-5)
    np.testing.assert_allclose(table["sd"], expected.std(), rtol=1e-4)


@short_chains
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_that_no_term_reads_are_measured_in_one_pass(sparse, monkeypatch):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 8, 300), rng.normal(size=(300, 4))])
    y = rng.poisson(
        np.exp(0.3 * X[:, 1] + np.sin(X[:, 2]) + rng.normal(size=8)[X[:, 0].astype(int)])
    )
    terms = {
        "group_effects": {0: ["intercept", 1]},
        **({} if sparse else {"smooth_effects": {2: 5}}),
    }
    rows = csr_array(X) if sparse else X
    model = SGLDPoissonRegressor(**terms, random_state=0, **SHORT).fit(rows, y)
    apart, slope = [], slopes._slope
    with monkeypatch.context() as watched:
        watched.setattr(
            slopes, "_slope", lambda at, j, spread: apart.append(j) or slope(at, j, spread)
        )
        found = effects(model, rows)
    assert apart == ([1] if sparse else [1, 2])  # the column with slopes, and that of the curve
    monkeypatch.setattr(slopes, "lines_of", lambda *_: {})
    expected = effects(model, rows)
    for name in ("estimate", "sd", "lower", "upper"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-7)
    rate = model.posterior_mean_draws(rows).mean(axis=0)  # of the log link
    draws = rate * model.posterior_["coef"][..., -1].ravel()
    np.testing.assert_allclose(found["estimate"].iloc[-1], draws.mean(), rtol=1e-5)


@pytest.mark.parametrize("kind", FRAMES)
def test_by_labels_gives_the_own_slope_of_each(model, rows, kind):
    table = effects(model, FRAMES[kind](rows[0]), by="subject")
    assert list(table["by"]) == list(NUMBERS)
    assert table.attrs["by"] == "subject"
    for (_, row), draws in zip(table.iterrows(), own_slopes(model).values(), strict=True):
        assert row["estimate"] == pytest.approx(draws.mean(), rel=1e-4, abs=1e-5)
        np.testing.assert_allclose(
            row[["lower", "upper"]].astype(float), np.quantile(draws, [0.05, 0.95]), atol=1e-4
        )


def test_the_population_has_no_effects_of_groups(model, rows):
    coef = model.posterior_["coef[x]"]
    gaps = rows[0].assign(subject=rows[0]["subject"].astype(object).where(rows[0]["x"] > 0))
    for X in (rows[0], gaps):
        table = effects(model, X, groups="population")
        assert list(table["column"]) == ["x"]
        np.testing.assert_allclose(table["estimate"], coef.mean(), rtol=1e-5)
    with pytest.raises(ValueError, match="no label"):
        effects(model, gaps)
    with pytest.raises(ValueError, match="groups='all'"):
        effects(model, rows[0], groups="all")
    plain = SGLDLinearRegression(random_state=0).fit(rows[0][["x"]], rows[1])
    with pytest.raises(TypeError, match="groups"):
        effects(plain, rows[0][["x"]], groups="population")


@short_chains
@pytest.mark.parametrize("text", [False, True])
def test_a_named_column_of_labels_is_compared_level_by_level(model, rows, text):
    X, y = rows
    X = X.assign(subject="s" + X["subject"].astype(str)) if text else X
    # a column of numbers may hold labels
    other = clone(model).set_params(**SHORT).fit(X, y)
    table = effects(other, X, columns="subject").set_index("contrast")
    assert len(table) == 4
    a, b = ("s308", "s309") if text else (308, 309)
    draws = other.posterior_
    expected = draws[f"effect[subject={b}, intercept]"] - draws[f"effect[subject={a}, intercept]"]
    slope = draws[f"effect[subject={b}, x]"] - draws[f"effect[subject={a}, x]"]
    expected = (expected + X["x"].mean() * slope).mean()
    assert table.loc[f"{b} - {a}", "estimate"] == pytest.approx(expected)


@short_chains
@pytest.mark.parametrize("text", [slow(False), True])
def test_steps_before_the_model_may_pass_labels_through(rows, text):
    X, y = rows
    frame = X.assign(subject="s" + X["subject"].astype(str)) if text else X
    scale = ColumnTransformer([("s", StandardScaler(), ["x"])], remainder="passthrough")
    scale.set_output(transform="pandas")
    terms = {"remainder__subject": ["intercept", "s__x"]}
    few = SHORT | {"n_draws": 50}  # the slopes are determined to 0.15
    model = SGLDLinearRegression(group_effects=terms, random_state=0, **few)
    pipeline = make_pipeline(scale, model).fit(frame, y)
    assert list(effects(pipeline, frame)["column"]) == ["x"]
    assert len(effects(pipeline, frame, columns="subject")) == 4
    slopes = effects(pipeline, frame, by="subject")["estimate"]
    np.testing.assert_allclose(slopes, list(NUMBERS.values()), atol=0.5)


def test_by_takes_any_column_of_any_model(rows):
    rng = np.random.default_rng(1)
    X = rows[0].assign(year=rng.choice([1, 2], 250))[["x", "year"]]
    X["shop"] = pd.Categorical(rng.choice(list("ab"), 250), ["b", "a", "unused"])
    counts = rng.poisson(np.exp(0.2 + 0.3 * X["x"] + 0.5 * (X["year"] == 2)))
    model = SGLDPoissonRegressor(random_state=0).fit(X[["x", "year"]], counts)
    table = effects(model, X[["x", "year"]], columns="x", by="year")
    draws = model.sample_posterior()
    for year, estimate in zip([1, 2], table["estimate"], strict=True):
        some = X.loc[X["year"] == year, ["x", "year"]].to_numpy()
        mean = np.exp(some @ draws.coef.T + draws.intercept).mean(axis=0)
        assert estimate == pytest.approx((draws.coef[:, 0] * mean).mean(), rel=1e-4)
    drop = ColumnTransformer([("keep", "passthrough", ["x", "year"])])
    pipeline = make_pipeline(drop, SGLDPoissonRegressor(random_state=0)).fit(X, counts)
    table = effects(pipeline, X, columns="x", by="shop")
    assert list(table["by"]) == ["b", "a"]
    with pytest.raises(ValueError, match="by='town'"):
        effects(pipeline, X, columns="x", by="town")


@short_chains
def test_columns_that_the_steps_drop_have_no_effect_beside_curves_alone(rows):
    X, y = rows[0][["x"]].assign(other=1.0, word="a"), rows[1]
    X.loc[::2, ["other", "word"]] = 2.0, "b"
    model = SGLDLinearRegression(smooth_effects={0: 5}, random_state=0, **SHORT)
    drop = ColumnTransformer([("keep", "passthrough", ["x"])])
    pipeline = make_pipeline(drop, model).fit(X, y)
    with pytest.warns(UserWarning, match="do not change with the columns 'other', 'word'"):
        table = effects(pipeline, X)
    assert list(table["column"]) == ["x"]
    alone = effects(model.fit(X[["x"]].to_numpy(), y), X[["x"]].to_numpy())
    assert table["estimate"].item() == pytest.approx(alone["estimate"].item())


def test_at_mean_takes_the_most_frequent_label_of_each_part(model, rows):
    table = effects(model, rows[0], kind="at_mean", by="subject")
    slopes = own_slopes(model)
    np.testing.assert_allclose(
        table["estimate"], [draws.mean() for draws in slopes.values()], rtol=1e-3, atol=1e-4
    )


def test_labels_alone_have_effects_and_comparisons(rows):
    X, y = rows[0][["subject"]], rows[1]
    model = SGLDLinearRegression(group_effects={"subject": "intercept"}, random_state=0).fit(X, y)
    assert model.coef_.shape == (0,)
    assert model.prior_.scale == 1.0
    means = [y[X["subject"] == k].mean() for k in NUMBERS]
    found = model.intercept_ + model.group_effects_["mean"].loc["subject"].groupby("label").first()
    np.testing.assert_allclose(found[list(NUMBERS)], means, atol=0.15)
    with pytest.raises(ValueError, match="labels of groups alone"):
        effects(model, X)
    assert len(effects(model, X, columns=["subject"])) == 4


def test_partial_dependence_and_permutation_importance_take_labels(model, rows):
    X, y = rows
    display = PartialDependenceDisplay.from_estimator(model, X, "subject", n_rows=20)
    assert list(display.values) == list(NUMBERS)
    few = {"n_rows": 20, "grid_resolution": 10}
    curve = PartialDependenceDisplay.from_estimator(model, X, "x", groups="population", **few)
    slope = np.ptp(curve.mean) / np.ptp(curve.values)
    assert slope == pytest.approx(abs(model.coef_[0]), rel=1e-6)
    importance = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert (importance.importances_mean > 0.1).all()
