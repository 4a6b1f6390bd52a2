"""What residuals have in common within groups: figures, verdicts, and estimators suggested."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, check_model
from skbayes_sgld.criticism import remedies
from skbayes_sgld.criticism.groups import (
    Groups,
    categorical_groups,
    groups_given,
    intraclass_correlation,
    varying_slopes,
)
from skbayes_sgld.criticism.interactions import product_tests
from skbayes_sgld.criticism.settings import can_set
from tests.marks import SHORT, short_chains, slow

pl = pytest.importorskip("polars")

SLEEP = pd.read_csv(Path(__file__).parents[1] / "mixed" / "data" / "sleepstudy.csv")
SUBJECTS = "s" + SLEEP["Subject"].astype(str)
LINEAR = SGLDLinearRegression(n_draws=250, random_state=0)
NAMED = {one.name: one for one in remedies.REMEDIES}
CODES = np.repeat(np.arange(8), np.arange(1, 9) * 2)


@pytest.fixture(autouse=True)
def only_groups(monkeypatch):
    """Try effects of groups alone, which takes a part of the time."""
    some = [one for one in remedies.REMEDIES if one.groups]
    monkeypatch.setattr(remedies, "REMEDIES", some)


def test_figures_of_independent_residuals_are_those_of_chance():
    rng = np.random.default_rng(0)
    n, R = len(CODES), 1000
    X = rng.standard_normal((n, 3))
    found = {"common": [], "slopes": []}
    for _ in range(R):
        z = rng.standard_normal(n)
        found["common"].append(intraclass_correlation(z, CODES))
        found["slopes"].append(varying_slopes(z, CODES, X))
    for name, each in found.items():
        p = np.array([one.p_value for one in each])
        rate = np.mean(p < 0.05)
        assert abs(rate - 0.05) < 4.0 * np.sqrt(0.05 * 0.95 / R) or name == "slopes", rate
        assert rate < 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / R)
    away = np.array([one.measured / one.error for one in found["common"]])
    assert abs(away.mean()) < 0.15
    assert np.std(away) == pytest.approx(1.0, abs=0.15)


def test_the_intraclass_correlation_is_that_of_the_residuals():
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(400), 5)
    z = 0.6 * rng.standard_normal(400)[codes] + 0.8 * rng.standard_normal(2000)
    found = intraclass_correlation(z, codes)
    assert found.measured == pytest.approx(0.36, abs=0.08)
    assert found.p_value < 1e-20
    x = rng.standard_normal((2000, 2))
    slopes = rng.standard_normal(400)[codes] * x[:, 1]
    found = varying_slopes(z + slopes, codes, x)
    assert found.columns[0] == 1 and found.p_value < 1e-20


def test_labels_of_one_row_and_missing_residuals_are_left_out():
    rng = np.random.default_rng(2)
    z = rng.standard_normal(len(CODES))
    single = np.append(CODES, np.arange(100, 120))
    more = np.append(z, rng.standard_normal(20))
    assert intraclass_correlation(more, single) == intraclass_correlation(z, CODES)
    with_gaps = np.append(z, np.full(20, np.nan))
    assert intraclass_correlation(with_gaps, np.append(CODES, np.zeros(20, int))) == (
        intraclass_correlation(z, CODES)
    )
    assert intraclass_correlation(z, np.arange(len(z))) is None
    assert intraclass_correlation(z[:60], np.repeat([0, 1], 30)) is None


@short_chains
def test_effects_of_groups_are_tried_where_other_noise_helps_but_takes_none(monkeypatch):
    unequal = NAMED["noise_model='log_linear'"]
    monkeypatch.setattr(remedies, "REMEDIES", [unequal, NAMED["effects of groups"]])
    rng = np.random.default_rng(0)
    shop, X = np.repeat(np.arange(12), 10), pd.DataFrame({"size": rng.uniform(-2, 2, 120)})
    y = np.exp(X["size"]) * rng.standard_normal(120) + 2.0 * rng.standard_normal(12)[shop]
    found = check_model(clone(LINEAR).fit(X, y), X, y, groups=pd.Series(shop, name="shop"))
    assert "effects of groups" in found.remedies.index
    assert found.remedies.loc["noise_model='log_linear'", "difference"] > remedies.SMALL


@short_chains
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(lambda X: X, id="pandas"),
        slow(pl.from_pandas, id="polars"),
        slow(lambda X: X.to_numpy().tolist(), id="list"),
    ],
)
def test_the_subjects_of_repeated_measures_are_found_and_suggested(kind):
    X, y = kind(SLEEP[["Days"]]), SLEEP["Reaction"]
    found = check_model(LINEAR.fit(X, y), X, y, groups=SUBJECTS.rename("Subject"))
    checks = found.table.set_index("check")
    common = checks.loc["correlation of residuals within groups"]
    assert common["verdict"] == "misfit" and common["about"] == "Subject, 18 labels"
    # an analysis of variance of the residuals of least squares: 0.59
    assert common["measured"] == pytest.approx(0.59, abs=0.05)
    assert checks.loc["slopes that vary between groups", "verdict"] == "misfit"
    named = hasattr(X, "columns")
    key, slope = ("Subject", "Days") if named else (1, 0)
    assert found.suggestion.group_effects == {key: ["intercept", slope]}
    assert "with the labels of the groups as its " in found.reason
    assert found.remedies.iloc[0]["difference"] > 80.0
    more = SLEEP[["Days"]].assign(Subject=SUBJECTS)
    if hasattr(X, "index"):  # of one kind of rows are the residuals looked at again
        better = found.suggestion.fit(more, y)
        table = check_model(better, more, y, groups="Subject", remedies=False).table
        assert table.set_index("check").loc[common.name, "verdict"] == "fits"
    else:
        better = found.suggestion.set_params(**SHORT).fit(kind(more), y)
        assert len(better.group_effects_) == 2 * 18


@short_chains
@pytest.mark.parametrize(
    "kind", [pytest.param(lambda X: X, id="pandas"), slow(pl.from_pandas, id="polars")]
)
def test_a_column_that_a_pipeline_drops_is_given_to_the_model(kind, monkeypatch):
    intercepts = [one for one in remedies.REMEDIES if not one.slopes]
    monkeypatch.setattr(remedies, "REMEDIES", intercepts)
    X, y = kind(pd.DataFrame({"Subject": SUBJECTS, "Days": SLEEP["Days"]})), SLEEP["Reaction"]
    pipe = make_pipeline(make_column_transformer((StandardScaler(), ["Days"])), LINEAR)
    found = check_model(pipe.fit(X, y), X, y)
    better = found.suggestion
    assert better[-1].group_effects == {"Subject": "intercept"}
    assert "as its column" not in found.reason
    better[-1].set_params(**SHORT)
    better.fit(X, y)
    assert better[-1].predict_interval(better[:-1].transform(X)).shape == (180, 2)


@pytest.mark.slow  # as the subjects of repeated measures above
def test_labels_of_classes_have_groups():
    rng = np.random.default_rng(3)
    shops = rng.choice(list("abcdefghijkl"), 600)
    effects = dict(zip("abcdefghijkl", rng.normal(0.0, 1.2, 12), strict=True))
    X = pd.DataFrame({"x": rng.standard_normal(600), "shop": shops})
    eta = X["x"] + X["shop"].map(effects)
    y = (rng.random(600) < stats.logistic.cdf(eta)).astype(int)
    model = SGLDLogisticRegression(n_draws=250, random_state=0).fit(X[["x"]], y)
    found = check_model(model, X[["x"]], y, groups=X["shop"])
    assert found.suggestion.group_effects == {"shop": "intercept"}
    better = found.suggestion.fit(X, y)
    assert check_model(better, X, y, remedies=False).fits


def test_a_remedy_that_needs_every_label_says_so():
    X = SLEEP[["Days"]].assign(Subject=np.where(SLEEP["Days"] == 0, None, SUBJECTS))
    pipe = make_pipeline(make_column_transformer((StandardScaler(), ["Days"])), LINEAR)
    found = check_model(pipe.fit(X, SLEEP["Reaction"]), X, SLEEP["Reaction"])
    assert found.suggestion is None
    assert (found.table["verdict"][found.table["about"] == "Subject, 18 labels"] == "misfit").all()
    assert found.remedies["failed"].str.contains("no label in column 'Subject' in 18 rows").all()


def test_groups_are_read_as_users_have_them():
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "b", "a"], "t": [True, False, True]})
    assert [one.name for one in categorical_groups(X)] == ["g"]
    assert [one.name for one in categorical_groups(X.astype({"g": "category"}))] == ["g"]
    assert categorical_groups(X[["x"]].to_numpy()) == []
    assert groups_given("g", X, 3).column == 1
    assert groups_given(X["g"], X, 3).column == 1
    other = groups_given(pd.Series(["u", "u", "v"], name="g"), X, 3)
    assert (other.column, other.name) == (-1, "groups")
    assert groups_given([3, 3, 1], X, 3).codes.tolist() == [0, 0, 1]
    for wrong, message in [
        ("h", "'h' is no column of X"),
        (["a", "b"], "2 labels, and there are 3 rows"),
        (["a", None, "b"], "no label in 1 rows, the first of them row 1"),
        ([["a"], ["b"], ["c"]], r"shape \(3, 1\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            groups_given(wrong, X, 3)
    with pytest.raises(TypeError, match="groups=2.5"):
        groups_given(2.5, X, 3)


def test_groups_of_some_rows_have_the_labels_of_these():
    some = Groups.of("g", pd.Series(["a", None, "b", "c", "b"])).take(np.array([1, 2, 4]))
    assert some.codes.tolist() == [-1, 0, 0]
    assert some.labels.tolist() == ["b"]
    assert Groups.of("g", pd.Series(["a", "b"])).take(np.array([1])).codes.tolist() == [0]


def test_products_of_few_rows_are_compared_with_a_t_distribution():
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((10, 2)), rng.standard_normal(10)
    (found,) = product_tests([(z, np.ones(10), "")], X, normal=True)
    assert found.p_value == pytest.approx(2.0 * stats.t.sf(abs(found.t), 10 - 4))


@short_chains
@pytest.mark.parametrize(("slopes", "expected"), [(["Days"], True), (["Days", "square"], False)])
def test_heavy_tails_are_not_tried_beside_many_effects_of_a_label(slopes, expected):
    # a trial of 220 rows takes half a minute
    X = SLEEP[["Days"]].assign(square=SLEEP["Days"] ** 2, Subject=SUBJECTS)
    model = clone(LINEAR).set_params(group_effects={"Subject": ["intercept", *slopes]}, **SHORT)
    model.fit(X, SLEEP["Reaction"])
    assert can_set(model, "noise_distribution", "student_t") == expected
