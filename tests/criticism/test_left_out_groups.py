"""Leave-one-group-out against fits without each group, and marginal densities by integration."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats
from scipy.special import expit, logsumexp
from sklearn.base import clone

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, compare_models
from skbayes_sgld.criticism import left_out_groups
from skbayes_sgld.metrics import interval_coverage, loo
from skbayes_sgld.mixed.group_density import labels_of_one_group, marginal_log_likelihood

pl = pytest.importorskip("polars")

RNG = np.random.default_rng(0)
N, LABELS = 80, list("abcdefghij")
X = pd.DataFrame({"x": RNG.standard_normal(N), "g": RNG.choice(LABELS, N)})
EFFECTS = X["g"].map(dict(zip(LABELS, RNG.normal(0.0, 0.8, 10), strict=True)))
Y = (1.0 + 0.5 * X["x"] + EFFECTS + RNG.normal(0.0, 0.7, N)).to_numpy()
CODES = X["g"].factorize()[0]
PLAIN = SGLDLinearRegression(random_state=0)
MIXED = SGLDLinearRegression(group_effects={"g": "intercept"}, random_state=0)


def draws_of(model):
    return dict(zip(model.posterior_.names, model.posterior_.flat.T, strict=True))


def density_of_a_new_group(model, rows, y):
    """Log density of all rows of a group that the fit did not see."""
    draws = draws_of(model)
    mean = draws["intercept"] + np.outer(rows["x"], draws["coef[x]"])
    scale = draws.get("sd[g, intercept]", np.zeros(len(draws["intercept"])))
    each = [
        stats.multivariate_normal(mu, v * np.eye(len(y)) + s**2).logpdf(y)
        for mu, v, s in zip(mean.T[::4], draws["noise_variance"][::4], scale[::4], strict=True)
    ]
    return logsumexp(each) - np.log(len(each))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "mixed"])
def test_each_group_is_as_in_the_posterior_of_the_others(kind):
    model, rows = (PLAIN, X[["x"]]) if kind == "plain" else (MIXED, X)
    found, k, exact = [], [], []
    for seed in range(3):
        one = clone(model).set_params(random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a group that cannot be left out
            result = loo(clone(one).fit(rows, Y), rows, Y, groups=X["g"])
        found.append(result.pointwise)
        k.append(result.pareto_k)
        others = [X["g"].to_numpy() != label for label in result.rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fits = [clone(one).fit(rows[kept], Y[kept]) for kept in others]
        pairs = zip(fits, others, strict=True)
        exact.append([density_of_a_new_group(m, X[~kept], Y[~kept]) for m, kept in pairs])
    found, exact = np.array(found), np.array(exact)
    sound = np.max(k, axis=0) < result.good_k
    assert sound.sum() >= 8
    error = np.sqrt(found.var(axis=0, ddof=1) / 3 + exact.var(axis=0, ddof=1) / 3)
    away = np.abs(found.mean(axis=0) - exact.mean(axis=0))[sound]
    # Student's t of four degrees of freedom, for ten groups; errors of few seeds may be far too low
    assert np.all(away < stats.t.isf(0.5e-3, 4) * np.maximum(error[sound], 0.01))
    assert result.elpd == pytest.approx(result.pointwise.sum())
    assert result.unit == "group" and set(result.counted) == set(LABELS)


@pytest.fixture(scope="module")
def fits():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "plain": clone(PLAIN).fit(X[["x"]], Y),
            "mixed": clone(MIXED).fit(X, Y),
        }


def every(model):
    """Masks of all labels of a model."""
    return [np.ones(len(term.labels), bool) for term in model._fitted.mixed.terms]


def test_densities_of_groups_are_normal_with_effects_integrated_out(fits):
    y = Y + np.where(CODES % 2, 0.5, -0.5) * X["x"]
    model = clone(MIXED).set_params(group_effects={"g": ["intercept", "x"]}, n_draws=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    data = model._observed(X, y, {})
    found = marginal_log_likelihood(model._predictive(), data, np.ones(N), CODES, every(model))
    draws = draws_of(model)
    for g, s in ((0, 0), (3, 7), (9, 30)):
        rows = g == CODES
        Z = np.column_stack([np.ones(rows.sum()), X["x"][rows]])
        sds = np.array([draws["sd[g, intercept]"][s], draws["sd[g, x]"][s]])
        rho = draws["correlation[g, intercept, x]"][s]
        cov = Z @ (np.outer(sds, sds) * [[1.0, rho], [rho, 1.0]]) @ Z.T
        cov += draws["noise_variance"][s] * np.eye(rows.sum())
        mean = draws["intercept"][s] + draws["coef[x]"][s] * X["x"][rows]
        assert found[g, s] == pytest.approx(stats.multivariate_normal(mean, cov).logpdf(y[rows]))
    # groups of several labels of the term: the sum over their labels
    pairs = marginal_log_likelihood(model._predictive(), data, np.ones(N), CODES // 2, every(model))
    assert_allclose(pairs[1], found[2] + found[3])
    # a group that shares labels with another keeps their effects
    halves, predictive = np.arange(N) % 2, model._predictive()
    labels = labels_of_one_group(predictive.predictor.terms, data[0], halves)
    crossed = marginal_log_likelihood(predictive, data, np.ones(N), halves, labels)
    each = model._predictive().log_likelihood(*data)
    assert_allclose(crossed[1], each[1::2].sum(axis=0))


def test_densities_of_groups_of_labels_are_those_of_quadrature():
    y = (RNG.random(N) < expit(X["x"] + 2.0 * EFFECTS)).astype(int)
    model = SGLDLogisticRegression(group_effects={"g": "intercept"}, n_draws=40, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    data = model._observed(X, y, {})
    found = marginal_log_likelihood(model._predictive(), data, np.ones(N), CODES, every(model))
    draws = draws_of(model)
    for g, s in ((0, 0), (4, 11), (7, 25)):
        rows = g == CODES
        eta = draws["intercept"][s] + draws["coef[x]"][s] * X["x"][rows].to_numpy()
        sign = 2.0 * y[rows] - 1.0

        def density(u, eta=eta, sign=sign, s=s):
            return np.prod(expit(sign * (eta + draws["sd[g, intercept]"][s] * u))) * (
                stats.norm.pdf(u)
            )

        exact = integrate.quad(density, -12.0, 12.0, epsabs=1e-14, epsrel=1e-9, limit=200)[0]
        assert found[g, s] == pytest.approx(np.log(exact), abs=1e-4)


def test_models_are_compared_by_groups_that_are_left_out(fits):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = loo(fits["mixed"], X, Y, groups="g")
    both = {"mixed": fits["mixed"]}
    table = compare_models(both, X, Y, groups="g")
    assert table.loc["mixed", "elpd"] == pytest.approx(alone.elpd)
    assert str(alone).startswith("Leave-one-group-out of 10 groups, from 10 of them")
    assert table.loc["mixed", "se"] == pytest.approx(np.sqrt(10) * alone.pointwise.std(ddof=1))
    # weights of whole groups by their density given their effects would not do
    assert np.sum(alone.pareto_k > alone.good_k) <= 2
    some = loo(fits["mixed"], X, Y, groups=X["g"], n_rows=8)
    assert len(some.rows) == 8 and some.subsampling_se > 0.0
    assert abs(some.elpd - alone.elpd) < 5.0 * some.subsampling_se


def test_new_rows_of_new_groups_have_their_joint_density(fits):
    new = pd.DataFrame({"x": [0.3, -1.0, 0.5, 0.2], "g": ["new", "new", "other", "a"]})
    y = np.array([2.5, 2.0, 0.1, 1.0])
    table = compare_models({"mixed": fits["mixed"]}, new, y, groups="g", held_out=True)
    model = fits["mixed"]
    exact = [density_of_a_new_group(model, new[:2], y[:2])]
    exact += [density_of_a_new_group(model, new[2:3], y[2:3])]
    exact += [model.log_predictive_density(new[3:], y[3:])[0]]
    assert table.loc["mixed", "elpd"] == pytest.approx(np.sum(exact), abs=0.05)


@pytest.mark.parametrize("kind", [lambda x: x, lambda x: x.tolist(), lambda x: pl.Series("g", x)])
def test_coverages_are_those_of_each_group(kind):
    y = np.array([0.5, 2.0, 0.1, 0.9, 3.0])
    groups = kind(np.array(["b", "b", "a", "a", "c"]))
    ends = np.column_stack([np.zeros(5), np.ones(5)])
    table = interval_coverage(y, ends, groups=groups)
    assert table.index.tolist() == ["a", "b", "c"]
    assert table["coverage"].tolist() == [1.0, 0.5, 0.0]
    assert table["n"].tolist() == [2, 2, 1]
    assert_allclose(table["se"]["b"], np.sqrt(0.25 / 2))
    assert (table["se"] > 0).all()
    weighed = interval_coverage(y, ends, groups=groups, sample_weight=[1, 3, 1, 1, 1])
    assert weighed["coverage"]["b"] == 0.25
    several = interval_coverage(y, np.stack([ends, 2.5 * ends], axis=2), groups=groups)
    assert several.loc[("b", 1), "coverage"] == 1.0
    assert several["n"].tolist() == [2, 2, 2, 2, 1, 1]
    with pytest.raises(TypeError, match="give the label of each row"):
        interval_coverage(y, ends, groups="g")
    with pytest.raises(ValueError, match="4 labels, and there are 5 rows"):
        interval_coverage(y, ends, groups=["a"] * 4)


def test_one_group_is_refused(fits):
    with pytest.raises(ValueError, match="groups has one label, 1; give two or more"):
        loo(fits["plain"], X[["x"]], Y, groups=np.ones(N, int))


@pytest.mark.filterwarnings("ignore:The Pareto k")  # four groups say little of their scale
def test_labels_of_several_groups_keep_their_effects_however_few_groups_are_left_out(monkeypatch):
    rng = np.random.default_rng(0)
    group, item = np.arange(240) % 4, rng.integers(6, size=240)
    y = rng.normal(size=4)[group] + 2.0 * rng.normal(size=6)[item] + 0.5 * rng.normal(size=240)
    frame = pd.DataFrame({"g": group.astype(str), "h": item.astype(str)})
    terms = {"g": "intercept", "h": "intercept"}
    model = SGLDLinearRegression(group_effects=terms, n_draws=250, random_state=0).fit(frame, y)
    together = loo(model, frame, y, groups="g").pointwise
    monkeypatch.setattr(left_out_groups, "_NUMBERS", 1)  # one group at a time
    assert_allclose(loo(model, frame, y, groups="g").pointwise, together)


@pytest.mark.filterwarnings("ignore:The Pareto k")  # of a row that shares its label
def test_rows_with_a_label_of_their_own_are_left_out_with_its_effect():
    rng = np.random.default_rng(1)
    codes = np.r_[np.arange(60), 60 + np.arange(60) % 15]
    x, effects = rng.normal(size=120), rng.normal(size=75)
    y = 0.5 * x + effects[codes] + 0.5 * rng.normal(size=120)
    frame = pd.DataFrame({"x": x, "g": codes.astype(str)})
    model = SGLDLinearRegression(group_effects={"g": "intercept"}, n_draws=2000, random_state=0)
    found = loo(clone(model).fit(frame, y), frame, y)
    assert found.pareto_k[:60].max() < 0.7
    for row in (0, int(np.argmax(np.abs(y - 0.5 * x)[:60]))):
        rest = np.arange(120) != row
        exact = clone(model).fit(frame[rest], y[rest])
        density = density_of_a_new_group(exact, frame[~rest], y[~rest])
        assert found.pointwise[row] == pytest.approx(density, abs=0.06)
