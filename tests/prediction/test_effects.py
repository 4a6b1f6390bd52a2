"""Marginal effects against closed forms under every draw, and against statsmodels' estimates."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
    _progress,
    effects,
    summary,
)
from skbayes_sgld.prediction import response as responses
from skbayes_sgld.prediction import slopes
from tests.marks import slow

# the runs are short
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 150
DRAWS = {"n_draws": 100, "n_chains": 2, "random_state": 0}
LINEAR, LABELS = SGLDLinearRegression(**DRAWS), SGLDLogisticRegression(**DRAWS)
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(3.0, 2.0, N), RNG.normal(size=N), RNG.integers(0, 2, N)])
Z = 0.4 * X[:, 0] - 0.7 * X[:, 1] + 0.5 * X[:, 2] - 1.0
FRAME = pd.DataFrame(
    {
        "age": X[:, 0],
        "sport": pd.Categorical(RNG.choice(["ski", "run", "row"], N), ["ski", "run", "row"]),
        "city": RNG.choice(["Rome", "Oslo"], N),
        "old": X[:, 2] > 0,
    }
)


def summarised(draws, coverage=0.9):
    """Mean, sd and interval of draws ``(S,)`` or ``(S, K)``, in a table's order."""
    draws = np.reshape(draws, (len(draws), -1))
    ends = np.quantile(draws, [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage], axis=0)
    return np.column_stack([draws.mean(axis=0), draws.std(axis=0), *ends])


def estimates(table):
    return table[["estimate", "sd", "lower", "upper"]].to_numpy()


def parameters(model):
    parts = model.posterior_
    coef = parts["coef"].reshape(-1, parts["coef"].shape[-1])
    return coef, parts["intercept"].reshape(len(coef), -1)


# ---- closed forms under every draw --------------------------------------------------------------


def test_effects_in_a_linear_model_are_coefficients_in_units_of_the_raw_columns():
    search = GridSearchCV(make_pipeline(StandardScaler(), LINEAR), {}, cv=2)
    search.fit(X, Z + RNG.normal(size=N))
    table = effects(search, X, coverage=0.8)
    coef = parameters(search.best_estimator_[-1])[0] / search.best_estimator_[0].scale_
    expected = [summarised(coef[:, j], 0.8)[0] for j in range(3)]
    assert_allclose(estimates(table), expected, rtol=1e-9)
    assert table["column"].tolist() == ["x0", "x1", "x2"]
    assert table["contrast"].tolist() == ["dy/dx", "dy/dx", "1 - 0"]
    steps = effects(search, X, [0], step=10.0, coverage=0.8)
    assert steps["contrast"].tolist() == ["+10"]
    assert_allclose(estimates(steps) / 10.0, expected[:1], rtol=1e-9)


def test_slopes_by_a_column_with_zeros_do_not_depend_on_its_unit():
    counts = np.round(np.abs(X[:, 1]) * 2.0)
    assert (counts == 0).any()
    for unit in (1e-6, 1e6):
        model = clone(LINEAR).fit((counts * unit)[:, None], Z)
        coef, _ = parameters(model)
        table = effects(model, (counts * unit)[:, None])
        assert_allclose(estimates(table), summarised(coef[:, 0]), rtol=1e-6)


def test_slopes_of_three_classes_are_those_of_the_softmax():
    y = np.array(["a", "b", "c"])[np.digitize(Z + RNG.logistic(size=N), [-0.5, 1.0])]
    model = make_pipeline(StandardScaler(), LABELS).fit(X, y)
    draws = model[-1].posterior_
    intercept, coef = draws["intercept"].reshape(-1, 3), draws["coef"].reshape(-1, 3, 3)
    seen = model[0].transform(X)
    p = softmax(np.einsum("skj,nj->snk", coef, seen) + intercept[:, None], axis=2)
    at = coef[:, None, :, 0] / model[0].scale_[0]
    slope = (p * (at - (p * at).sum(axis=2, keepdims=True))).mean(axis=1)
    table = effects(model, X, "x0")
    assert table["class"].tolist() == ["a", "b", "c"]
    assert_allclose(estimates(table), summarised(slope), rtol=1e-6, atol=1e-9)


def test_exposures_stay_with_their_rows_where_a_number_is_missing():
    rng = np.random.default_rng(11)
    exposure = np.exp(rng.uniform(-3.0, 3.0, N))
    model = make_pipeline(SimpleImputer(), SGLDPoissonRegressor(n_draws=50, random_state=0))
    model.fit(X, rng.poisson(exposure * np.exp(Z)), sgldpoissonregressor__exposure=exposure)
    rows, some = X.copy(), rng.random(N) < 0.6
    rows[~some, 1] = np.nan
    draws = model[-1].sample_posterior()
    each = exposure[some] * np.exp(draws.coef @ X[some].T + draws.intercept[:, None])
    known = each.mean(axis=1) * draws.coef[:, 1]
    found = effects(model, rows, [1], exposure=exposure)
    assert_allclose(found["estimate"].iloc[0], known.mean(), rtol=1e-5)
    whole = effects(model, rows, [1], exposure=exposure, step=0.5)
    known = each.mean(axis=1) * np.expm1(0.5 * draws.coef[:, 1])
    assert_allclose(whole["estimate"].iloc[0], known.mean(), rtol=1e-5)


def test_effects_on_counts_are_multiplied_by_the_exposures_of_the_rows():
    exposure = RNG.uniform(0.5, 4.0, N)
    model = SGLDPoissonRegressor(**DRAWS)
    model.fit(X, RNG.poisson(exposure * np.exp(Z)), exposure=exposure)
    coef, intercept = parameters(model)
    others = coef[:, :2] @ X[:, :2].T + intercept
    mean = exposure * np.exp(others + coef[:, 2:] * X[:, 2])
    table = effects(model, X, exposure=exposure)
    assert_allclose(estimates(table)[1], summarised(mean.mean(axis=1) * coef[:, 1])[0], rtol=1e-7)
    factor = (exposure * np.exp(others)).mean(axis=1) * np.expm1(coef[:, 2])
    assert_allclose(estimates(table)[2], summarised(factor)[0], rtol=1e-9)
    rates = (mean / exposure).mean(axis=1) * coef[:, 1]
    assert_allclose(estimates(effects(model, X, 1))[0], summarised(rates)[0], rtol=1e-7)
    at_mean = exposure.mean() * np.exp(coef @ X.mean(axis=0) + intercept[:, 0]) * coef[:, 1]
    table = effects(model, X, [1], "at_mean", exposure=exposure)
    assert_allclose(estimates(table), summarised(at_mean), rtol=1e-7)


# ---- statsmodels --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "kind", "at"), [("Logit", "average", "overall"), ("Poisson", "at_mean", "mean")]
)
def test_effects_under_flat_priors_are_those_of_statsmodels(family, kind, at):
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(2.0, 1.0, (2000, 2)), rng.integers(0, 2, 2000)])
    z = X @ [0.5, -0.6, 0.4]
    y = rng.binomial(1, expit(z)) if family == "Logit" else rng.poisson(np.exp(z))
    fit = getattr(api, family)(y, api.add_constant(X)).fit(disp=False)
    theirs = fit.get_margeff(at=at, dummy=True)
    cls = SGLDLogisticRegression if family == "Logit" else SGLDPoissonRegressor
    model = cls(prior="flat", n_draws=500, random_state=0).fit(X, y)
    ours = effects(model, X, kind=kind)
    ours = ours[ours["class"] == 1] if family == "Logit" else ours
    # five Monte Carlo standard errors, and the skewness of the posterior
    sd = theirs.margeff_se
    assert_allclose(ours["estimate"], theirs.margeff, rtol=0.0, atol=0.15 * sd.min())
    assert_allclose(ours["sd"], sd, rtol=0.1)


# ---- factors and missing values -----------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed():
    prepare = make_column_transformer(
        (SimpleImputer(), ["age"]),
        (OneHotEncoder(drop="first"), ["sport", "city"]),
        ("passthrough", ["old"]),
    )
    y = RNG.poisson(np.exp(Z + (FRAME["sport"] == "run")))
    return make_pipeline(prepare, SGLDPoissonRegressor(**DRAWS)).fit(FRAME, y)


def response(model, X):
    return model[-1].posterior_mean_draws(model[0].transform(X)).mean(axis=0)


def test_levels_are_compared_with_the_first_category_or_the_first_in_order(mixed):
    before = FRAME.copy()
    table = effects(mixed, FRAME)
    pd.testing.assert_frame_equal(FRAME, before)
    contrasts = ["dy/dx", "run - ski", "row - ski", "Rome - Oslo", "True - False"]
    assert table["contrast"].tolist() == contrasts
    sport = FRAME["sport"].dtype
    base = response(mixed, FRAME.assign(sport=pd.Categorical(["ski"] * N, dtype=sport)))
    for k, level in [(1, "run"), (2, "row")]:
        other = response(mixed, FRAME.assign(sport=pd.Categorical([level] * N, dtype=sport)))
        assert_allclose(estimates(table)[k], summarised(other - base)[0], rtol=1e-9)
    city = response(mixed, FRAME.assign(city="Rome")) - response(mixed, FRAME.assign(city="Oslo"))
    assert_allclose(estimates(table)[3], summarised(city)[0], rtol=1e-9)
    turned = FRAME.assign(sport=FRAME["sport"].cat.reorder_categories(["run", "row", "ski"]))
    assert effects(mixed, turned, "sport")["contrast"].tolist() == ["row - run", "ski - run"]


def test_at_the_mean_other_factors_have_their_most_frequent_level(mixed):
    row = FRAME[:1].assign(age=FRAME["age"].mean(), old=FRAME["old"].mode()[0])
    row["sport"] = pd.Categorical(FRAME["sport"].mode(), dtype=FRAME["sport"].dtype)
    draws = response(mixed, row.assign(city="Rome")) - response(mixed, row.assign(city="Oslo"))
    found = effects(mixed, FRAME, "city", "at_mean")
    assert_allclose(estimates(found), summarised(draws), rtol=1e-9)


def test_rows_without_a_number_have_no_slope_but_are_compared(mixed):
    holes = FRAME.copy()
    holes.loc[::3, "age"] = np.nan
    known = holes["age"].notna()
    ours, theirs = effects(mixed, holes, ["age", "old"]), effects(mixed, FRAME[known], "age")
    assert_allclose(estimates(ours)[0], estimates(theirs)[0], rtol=1e-9)
    old = response(mixed, holes.assign(old=True)) - response(mixed, holes.assign(old=False))
    assert_allclose(estimates(ours)[1], summarised(old)[0], rtol=1e-9)


def test_rows_without_a_number_take_their_exposures_with_them():
    exposure = np.linspace(0.1, 5.0, N)
    model = make_pipeline(SimpleImputer(), SGLDPoissonRegressor(**DRAWS))
    model.fit(X, RNG.poisson(exposure * np.exp(Z)), sgldpoissonregressor__exposure=exposure)
    holes, known = X.copy(), np.arange(N) % 3 > 0
    known[:40] = False
    holes[~known, 0] = np.nan
    for more in ({}, {"step": 1.0}):
        found = effects(model, holes, 0, exposure=exposure, **more)
        theirs = effects(model, X[known], 0, exposure=exposure[known], **more)
        assert_allclose(estimates(found), estimates(theirs), rtol=1e-9)


# ---- other models, targets and rows -------------------------------------------------------------


def test_of_a_log_of_the_target_the_response_is_its_median():
    y = np.exp(Z + 0.3 * RNG.normal(size=N))
    model = TransformedTargetRegressor(LINEAR, func=np.log, inverse_func=np.exp).fit(X, y)
    coef, intercept = parameters(model.regressor_)
    slope = np.exp(coef @ X.T + intercept).mean(axis=1) * coef[:, 0]
    assert_allclose(estimates(effects(model, X, 0)), summarised(slope), rtol=1e-7)


def test_several_outputs_have_a_row_each():
    Y = pd.DataFrame({"cost": Z + RNG.normal(size=N), "time": -Z + RNG.normal(size=N)})
    model = SGLDLinearRegression(**DRAWS).fit(X, Y)
    table = effects(model, X, [1])
    assert table["output"].tolist() == ["cost", "time"]
    assert_allclose(table["estimate"], model.coef_[:, 1], rtol=1e-9)


def test_networks_and_laplace_approximations_have_effects():
    from skbayes_sgld import SGDMAPClassifier, SGLDMLPClassifier

    network = SGLDMLPClassifier(n_draws=5, n_chains=2, n_burnin=20, random_state=0)
    for model in (network, SGDMAPClassifier(random_state=0)):
        table = effects(model.fit(X, Z > 0), X)
        assert_allclose(table.groupby("column")["estimate"].sum(), 0.0, atol=1e-9)
        assert table["class"].tolist() == [False, True] * 3
        above, below = (model.posterior_mean_draws(X + [h, 0.0, 0.0]) for h in (1e-3, -1e-3))
        slope = (above - below)[:, 1].mean(axis=0) / 2e-3
        assert_allclose(estimates(table)[1], summarised(slope)[0], rtol=1e-3)


def test_sparse_rows_float32_blocks_of_rows_and_one_row_have_effects(monkeypatch):
    model = SGLDPoissonRegressor(**DRAWS).fit(X, RNG.poisson(np.exp(Z)))
    coef, intercept = parameters(model)
    slope = np.exp(coef @ X[0] + intercept[:, 0]) * coef[:, 0]
    assert_allclose(estimates(effects(model, X[:1], 0)), summarised(slope), rtol=1e-7)
    expected = estimates(effects(model, X))
    assert_allclose(estimates(effects(model, sparse.csr_array(X))), expected, rtol=1e-8)
    at_mean = estimates(effects(model, X, kind="at_mean"))
    found = estimates(effects(model, sparse.csc_array(X), kind="at_mean"))
    assert_allclose(found, at_mean, rtol=1e-8)
    assert_allclose(estimates(effects(model, X.astype(np.float32))), expected, rtol=1e-5)
    monkeypatch.setattr(responses, "_NUMBERS", 7 * 200)
    assert_allclose(estimates(effects(model, X)), expected, rtol=1e-8)


def test_slopes_follow_all_columns_that_the_steps_make_of_one():
    def seen(rows):
        return np.column_stack([rows[:, 0] ** 2, np.exp(rows[:, 0] * rows[:, 1]), rows[:, 1]])

    model = make_pipeline(FunctionTransformer(seen), clone(LABELS)).fit(X, Z > 0)
    coef, intercept = parameters(model[-1])
    p, product = expit(coef @ seen(X).T + intercept), np.exp(X[:, 0] * X[:, 1])
    by_first = coef[:, :2] @ np.stack([2.0 * X[:, 0], X[:, 1] * product])
    by_second = coef[:, 1:] @ np.stack([X[:, 0] * product, np.ones(N)])
    table = effects(model, X, [0, 1])
    for j, slope in enumerate((by_first, by_second)):
        expected = summarised((p * (1.0 - p) * slope).mean(axis=1))
        assert_allclose(estimates(table)[2 * j + 1], expected[0], rtol=1e-5)


@pytest.mark.parametrize("together", [1, slow(1000)])
def test_slopes_in_one_pass_are_those_of_differences(monkeypatch, together):
    monkeypatch.setattr(slopes, "_TOGETHER", together)
    y = np.digitize(Z + np.random.default_rng(4).logistic(size=N), [-1.0, 0.0, 1.0])
    holes = X.copy()
    holes[::4, 1] = np.nan
    steps = make_pipeline(SimpleImputer(), StandardScaler())
    both = np.column_stack([Z + 5.0, 7.0 - Z])
    log = {"func": np.log, "inverse_func": np.exp}
    for model, target in (
        (SGLDOrdinalClassifier(**DRAWS), y),
        (LABELS, y),
        (clone(LINEAR).set_params(noise_model="log_linear"), Z),
        (LINEAR, both),
        (TransformedTargetRegressor(clone(LINEAR), **log), Z + 5.0),
    ):
        fitted = make_pipeline(*steps, clone(model)).fit(holes, target)
        found = effects(fitted, holes, [0, 1])
        with monkeypatch.context() as differences:
            differences.setattr(slopes, "follows_lines", lambda model: False)
            expected = effects(fitted, holes, [0, 1])
        scale = expected["sd"].to_numpy()[:, None]
        assert_allclose(estimates(found) / scale, estimates(expected) / scale, atol=1e-4)


def test_differences_stay_in_the_range_of_positive_columns():
    rows = np.exp(2.0 * X[:, [1]])  # from 0.01 to 100
    model = make_pipeline(FunctionTransformer(np.log), LINEAR).fit(rows, Z)
    expected = summarised(parameters(model[-1])[0] * np.mean(1.0 / rows))
    assert_allclose(estimates(effects(model, rows)), expected, rtol=1e-3)


def test_a_screen_of_80_columns_shows_estimate_and_interval(monkeypatch):
    rows = FRAME.rename(columns={"city": "neighbourhood"})
    rows["neighbourhood"] = RNG.choice(["Manhattan", "Bronx"], N)
    encode = make_column_transformer((OneHotEncoder(), ["neighbourhood"]), ("passthrough", ["age"]))
    model = make_pipeline(encode, clone(LABELS)).fit(rows, Z > 0)
    monkeypatch.setenv("COLUMNS", "80")
    with pd.option_context("display.max_columns", 0, "display.width", 80):
        table = repr(effects(model, rows, ["neighbourhood", "age"]))
        posterior = repr(summary(model))
    assert "..." in table and "..." in posterior  # some figures do not fit
    for name in ("neighbourhood", "Manhattan - Bronx", "True", "estimate", "lower", "upper"):
        assert name in table
    for name in ("coef[onehotencoder__neighbourhood_Bronx]", "mean", "upper"):
        assert name in posterior


# ---- errors -------------------------------------------------------------------------------------


def test_what_is_linear_in_the_parameters_is_known_at_all_draws_from_some_of_them():
    draws = clone(LINEAR).set_params(n_draws=500).fit(X, Z + RNG.normal(size=N)).posterior_
    (at, matrix, _), theta = responses._to_all_draws(draws), draws.flat
    values = theta @ np.arange(1.0, theta.shape[1] + 1.0) + 3.0
    near = np.all(np.abs(theta - theta.mean(axis=0)) < 4.0 * theta.std(axis=0), axis=1)
    known = matrix @ values[at]
    assert near.mean() > 0.99  # the others are cut off
    assert_allclose(known[near], values[near], atol=0.01 * values.std())


def test_all_draws_predict_all_rows_if_few_of_these_have_most_of_the_mean():
    rng = np.random.default_rng(5)
    train, rows = rng.normal(size=(200, 3)), rng.normal(size=(1500, 3))
    rows[0] *= 12.0
    y = rng.poisson(np.exp(train @ [0.5, -0.7, 0.3]))
    model = SGLDPoissonRegressor(n_draws=500, random_state=0).fit(train, y)
    exposure = 10.0 ** rng.uniform(0.0, 5.0, 1500)
    part, full = (
        effects(model, rows, [0], exposure=exposure, n_rows=n_rows) for n_rows in (200, None)
    )
    sd = full["sd"].to_numpy()
    for name in ("estimate", "lower", "upper"):
        assert_allclose((part[name] - full[name]) / sd, 0.0, atol=0.1)


def test_a_class_that_a_column_hardly_moves_does_not_ask_for_all_draws(monkeypatch):
    rng, predicted = np.random.default_rng(0), []
    train, rows = rng.normal(size=(4000, 3)), rng.normal(size=(1500, 3))
    z = train @ [0.6, -0.4, 0.02] + rng.logistic(size=4000)
    model = SGLDOrdinalClassifier(n_draws=500, random_state=0)
    model.fit(train, np.digitize(z, np.quantile(z, [0.33, 0.67])))
    add_up = responses.Response.add_up

    def recorded(self, some, n_draws, of_block):
        predicted.append((len(some), n_draws))
        return add_up(self, some, n_draws, of_block)

    full = effects(model, rows, n_rows=None)
    monkeypatch.setattr(responses.Response, "add_up", recorded)
    part = effects(model, rows, n_rows=200)
    assert predicted
    assert all(n <= 200 or n_draws is not None for n, n_draws in predicted)
    most = full.groupby("column")["sd"].transform("max").to_numpy()
    assert (full["sd"] / most).min() < 0.1  # a class that hardly moves
    for name in ("estimate", "lower", "upper"):
        assert_allclose((part[name] - full[name]) / most, 0.0, atol=0.04)


@pytest.mark.slow
def test_a_part_of_the_rows_gives_the_effects_of_all():
    rng = np.random.default_rng(3)
    n = 3000
    rows = np.column_stack([2.0 * rng.normal(size=n), rng.normal(size=n), rng.integers(0, 2, n)])
    exposure = rng.uniform(0.5, 2.0, n)
    z = 0.6 * rows[:, 0] - 0.3 * rows[:, 1] + 0.5 * rows[:, 2]
    model = SGLDPoissonRegressor(random_state=0)
    model.fit(rows, rng.poisson(exposure * np.exp(z)), exposure=exposure)
    full = effects(model, rows, exposure=exposure, n_rows=None)
    assert_array_equal(effects(model, rows, exposure=exposure, n_rows=n), full)
    m, sd = 300, full["sd"].to_numpy()[:, None]
    alone = effects(model, rows[:m], exposure=exposure[:m])
    assert np.abs((alone["estimate"] - full["estimate"]).to_numpy() / sd[:, 0]).max() > 1.0
    for seed in range(5):
        part = effects(model, rows, exposure=exposure, n_rows=m, random_state=seed)
        apart = np.abs(estimates(part) - estimates(full)) / sd
        assert apart.max() < 0.1  # at most 0.03 over 20 seeds
    again = effects(model, rows, exposure=exposure, n_rows=m, random_state=4)
    assert_array_equal(estimates(again), estimates(part))
    holes = rows.copy()
    holes[::3, 0] = np.nan
    known = np.isfinite(holes[:, 0])
    found, theirs = effects(model, holes, 0, n_rows=m), effects(model, rows[known], 0, n_rows=None)
    assert np.abs(found["estimate"] - theirs["estimate"])[0] < 0.1 * sd[0, 0]


def test_effects_that_take_seconds_say_which_column_they_are_at(monkeypatch, capsys):
    model = clone(LINEAR).fit(FRAME[["age", "old"]], Z)
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    effects(model, FRAME[["age", "old"]])
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(",")[0] for line in lines] == [
        "effects: block of rows 1 of 1: derivatives by all columns",
        "effects: column 1 of 1: old",
    ]


def test_a_row_whose_response_is_infinite_is_refused_by_its_number():
    model = clone(LINEAR).set_params(n_draws=50)
    counts = SGLDPoissonRegressor(**DRAWS).fit(X, RNG.poisson(np.exp(Z)))
    logs = TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp).fit(X, np.exp(Z))
    far = np.vstack([X] * 10)
    far[1234, 0] = 1e5
    for one in (counts, logs):
        for n_rows in (None, 100):
            with pytest.raises(ValueError, match="the expected response at row 1234 of X"):
                effects(one, far, n_rows=n_rows)
    far[:1000, 1] = np.nan
    with pytest.raises(ValueError, match="the expected response at row 1234 of X"):
        effects(make_pipeline(SimpleImputer(), counts).fit(X, np.ones(N)), far, 1)


def test_columns_without_a_contrast_and_models_without_a_posterior_are_refused(mixed):
    from skbayes_sgld import SGDMAPClassifier

    oslo = FRAME[FRAME["city"] == "Oslo"]
    with pytest.raises(ValueError, match="X has one level in the column 'city'"):
        effects(mixed, oslo, "city")
    assert "city" not in effects(mixed, oslo)["column"].tolist()
    names = FRAME.assign(name=[f"p{k}" for k in range(N)])
    with pytest.warns(UserWarning, match="column 'name', whose values .* they have no row"):
        assert_array_equal(effects(mixed, names), effects(mixed, FRAME))
    assert_array_equal(effects(mixed, names, "old"), effects(mixed, FRAME, "old"))
    with pytest.warns(UserWarning, match="do not change with the column 'name', whose values"):
        assert len(effects(mixed, names[:20], "name")) == 19
    with pytest.raises(ValueError, match="columns is empty; name one column at least"):
        effects(mixed, FRAME, columns=[])
    with pytest.raises(ValueError, match="n_rows=0 is out of range"):
        effects(mixed, FRAME, n_rows=0)
    with pytest.raises(ValueError, match="X has no rows|X: Found array with 0 sample"):
        effects(mixed, FRAME[:0])
    with pytest.raises(TypeError, match="effects needs .* Ridge has no posterior_mean_draws"):
        effects(Ridge().fit(X, Z), X)
    with pytest.raises(TypeError, match="effects has no argument 'exposure'"):
        effects(SGDMAPClassifier(random_state=0).fit(X, Z > 0), X, exposure=2.0)
