"""Comparisons of models against exact leave-one-out densities and the best mixture."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor

from skbayes_sgld import SGLDLinearRegression, compare_models
from skbayes_sgld.criticism.comparison import stacking_weights
from skbayes_sgld.metrics import loo
from skbayes_sgld.priors import Normal
from tests.marks import slow

pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")

N = 60
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
Y = np.exp(0.5 + X @ [0.6, 0.3, 0.0] + 0.4 * RNG.standard_normal(N))
SETTINGS = {"noise_variance": 0.5, "prior": Normal(scale=2.0), "fit_intercept": False}


def linear():
    return SGLDLinearRegression(**SETTINGS, random_state=0)


def exact(X, y):
    """Log density of each row given the others: normal, from a regression without that row."""
    found = []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        precision = X[rest].T @ X[rest] / 0.5 + np.eye(X.shape[1]) / 4.0
        mean = np.linalg.solve(precision, X[rest].T @ y[rest] / 0.5)
        variance = 0.5 + X[i] @ np.linalg.solve(precision, X[i])
        found.append(stats.norm.logpdf(y[i], X[i] @ mean, np.sqrt(variance)))
    return np.array(found)


def test_differences_and_their_errors_are_those_of_exact_refits():
    log_target = TransformedTargetRegressor(linear(), func=np.log, inverse_func=np.exp)
    table = compare_models({"plain": linear().fit(X, Y), "log": log_target.fit(X, Y)}, X, Y)
    plain, logs = exact(X, Y), exact(X, np.log(Y)) - np.log(Y)
    assert table.index.tolist() == ["log", "plain"]
    # the density of a row far out, where noise of this variance hardly goes, is known to 0.5
    assert_allclose(table["elpd"], [logs.sum(), plain.sum()], atol=1.5)
    difference = plain - logs
    assert table.loc["plain", "difference"] == pytest.approx(difference.sum(), abs=1.5)
    se = np.sqrt(N) * difference.std(ddof=1)
    assert table.loc["plain", "se_difference"] == pytest.approx(se, rel=0.05)
    assert table.loc["log", ["difference", "se_difference"]].tolist() == [0.0, 0.0]
    assert table["weight"].sum() == pytest.approx(1.0)
    assert table["elpd"].iloc[0] == pytest.approx(loo(log_target, X, Y).elpd)


def test_the_weights_are_those_of_the_best_mixture():
    a, b = stats.norm.logpdf(RNG.standard_normal((2, 500)) * [[1.0], [1.5]])
    weight = RNG.uniform(0.5, 2.0, 500)
    found = stacking_weights(np.column_stack([a, b]), weight)

    def loss(w):
        return -(weight @ np.log(w * np.exp(a) + (1 - w) * np.exp(b)))

    best = minimize_scalar(loss, bounds=(0, 1), method="bounded").x
    assert_allclose(found, [best, 1 - best], atol=2e-3)


# a row far out has a Pareto k at about the limit, whatever the draws
@pytest.mark.filterwarnings("ignore:The Pareto k:UserWarning")
@pytest.mark.parametrize(
    ("kind", "groups"),
    [(pd.DataFrame, None), (pl.from_pandas, "shop"), slow(pa.Table.from_pandas, "shop")],
)
def test_models_of_different_columns_of_a_frame_are_compared(kind, groups):
    """The one without groups does not see the column of labels, which is text."""
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["shop"] = np.repeat([f"s{k}" for k in range(12)], 5)
    short = linear().set_params(n_draws=250)
    one = TransformedTargetRegressor(short).fit(frame[["b"]], Y)
    two = clone(short).fit(frame[["b", "a"]], Y)  # in another order
    shops = clone(two).set_params(group_effects={"shop": "intercept"}).fit(frame, Y)
    found = compare_models({"one": one, "two": two, "shops": shops}, kind(frame), Y, groups=groups)
    given = frame["shop"] if groups else None
    for name, model in {"one": one, "two": two}.items():
        expected = loo(model, frame[model.feature_names_in_], Y, groups=given)
        assert found.loc[name, "elpd"] == pytest.approx(expected.elpd, abs=1e-8)
    with pytest.raises(ValueError, match=r"(?s)estimators\['two'\].*yet now missing:\n- a"):
        compare_models({"one": one, "two": two}, frame[["b", "shop"]], Y)


def test_some_rows_tell_the_totals_of_all():
    models = {"all": linear().fit(X, Y), "one": linear().fit(X, Y)}
    whole, part = compare_models(models, X, Y), compare_models(models, X, Y, n_rows=30)
    away = part["elpd"] - whole["elpd"]
    assert np.all(np.abs(away) < 4 * part["se"])
    assert np.all(part["se"] > 0)
    assert part["difference"].tolist() == [0.0, 0.0]


@pytest.mark.slow
def test_all_of_many_rows_take_the_memory_of_a_block():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((6000, 2))
    y = rows @ [1.0, 2.0] + rng.standard_normal(6000)
    models = {"a": SGLDLinearRegression(n_draws=250, random_state=0).fit(rows, y)}
    compare_models(models, rows, y, n_rows=50)  # imports
    tracemalloc.start()
    table = compare_models(models, rows, y, n_rows=None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.4e8  # without blocks 4e8, and proportional to the rows
    assert table.loc["a", "elpd"] == pytest.approx(loo(models["a"], rows, y, n_rows=None).elpd)
