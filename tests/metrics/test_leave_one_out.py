"""Leave-one-out against fits without each row, in closed form and by quadrature."""

import tracemalloc
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import log_expit
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import (
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
)
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.metrics import log_predictive_density, loo
from skbayes_sgld.rows.fingerprint import Fingerprint
from tests.left_out import FAMILIES, GRID, N, X, average_without, density

# the runs are short
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NORMAL, COUNTS = FAMILIES["normal"][0], FAMILIES["counts"][0]
Y = FAMILIES["normal"][1]
SEEDS = range(6)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_row_is_as_in_the_posterior_of_the_others(family):
    model, y, law = FAMILIES[family]
    each = density(law(X * GRID), y)
    exact = np.log(average_without(each)(np.exp(each)))
    fits = [clone(model).set_params(random_state=seed).fit(X, y) for seed in SEEDS]
    found = [loo(fit, X, y) for fit in fits]
    each = np.array([one.pointwise for one in found])
    error = each.std(axis=0, ddof=1) / np.sqrt(len(SEEDS))
    # Student's t of as many seeds, for 40 rows at once
    far = stats.t.isf(0.5e-3 / N, len(SEEDS) - 1)
    assert np.all(np.abs(each.mean(axis=0) - exact) < far * error)
    assert np.all(error < 0.02)
    one = found[0]
    assert one.elpd == pytest.approx(one.pointwise.sum())
    assert one.se == pytest.approx(np.sqrt(N) * one.pointwise.std(ddof=1))
    assert one.subsampling_se == 0.0
    assert one.pareto_k.max() < one.good_k == 0.7
    with_row = fits[0].log_predictive_density(X, y)
    assert one.p_loo == pytest.approx((with_row - one.pointwise).sum(), rel=1e-3)


@pytest.fixture(scope="module")
def many():
    """A fit of 1,000 rows with few draws, and every row left out."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((1000, 4))
    y = (rng.random(1000) < stats.logistic.cdf(rows @ [1.0, 0.5, -1.0, 2.0])).astype(int)
    model = SGLDLogisticRegression(n_draws=100, random_state=0).fit(rows, y)
    return model, rows, y, loo(model, rows, y, n_rows=None)


def as_if_fitted_to(model, rows, y, weight=None):
    """The same draws, whose leave-one-out may be compared on other rows."""
    other = copy(model)
    fingerprint = Fingerprint.of(rows, RowValues(y, weight))
    other._fitted = replace(model._fitted, rows=fingerprint)
    return other


def test_some_rows_tell_the_sum_of_all_within_their_standard_error(many):
    model, rows, y, whole = many
    found = [loo(model, rows, y, n_rows=40, random_state=seed) for seed in range(50)]
    lost = model.log_predictive_density(rows, y) - whole.pointwise
    each = {"elpd": whole.pointwise - whole.surrogate, "p_loo": lost}
    for name, error in (("elpd", "subsampling_se"), ("p_loo", "p_loo_subsampling_se")):
        away = np.array([getattr(one, name) for one in found]) - getattr(whole, name)
        told = np.array([getattr(one, error) for one in found])
        assert abs(away.mean()) < 4 * away.std() / np.sqrt(50)  # unbiased
        # the variance of a sum over 40 of 1,000 rows without replacement
        true = 1000**2 * (1 - 0.04) * each[name].var(ddof=1) / 40
        assert abs(np.square(told).mean() - true) < 4 * np.square(told).std() / np.sqrt(50)
        inside = np.mean(np.abs(away) < stats.t.isf(0.05, 39) * told)
        assert inside > 0.9 - 4 * np.sqrt(0.09 / 50) - 0.04  # differences are skewed
    spread = np.array([one.se for one in found])
    assert abs(np.square(spread).mean() - whole.se**2) < 4 * np.square(spread).std() / np.sqrt(50)


def test_the_surrogate_makes_the_sum_of_some_rows_sharper(many):
    model, rows, y, _ = many
    one = loo(model, rows, y, n_rows=40)
    plain = 1000 * np.sqrt((1 - 0.04) / 40) * one.pointwise.std(ddof=1)
    assert one.subsampling_se < 0.05 * plain
    assert one.good_k == pytest.approx(1 - 1 / np.log10(400))  # Vehtari et al. (2024)
    mean = model.posterior_.flat.mean(axis=0)
    eta = rows @ mean[:4] + mean[4]
    assert_allclose(one.surrogate, log_expit((2 * y - 1) * eta))


def test_a_row_of_weight_two_counts_as_two_rows_of_which_one_is_left_out(many):
    model, rows, y, _ = many
    twice = np.concatenate([np.arange(300), np.arange(100)])
    weight = np.where(np.arange(300) < 100, 2.0, 1.0)
    repeated = loo(
        as_if_fitted_to(model, rows[twice], y[twice]), rows[twice], y[twice], n_rows=None
    )
    model = as_if_fitted_to(model, rows[:300], y[:300], weight)
    weighted = loo(model, rows[:300], y[:300], sample_weight=weight, n_rows=None)
    assert weighted.elpd == pytest.approx(repeated.elpd)
    assert weighted.p_loo == pytest.approx(repeated.p_loo)
    model = as_if_fitted_to(model, rows[:100], y[:100])
    none = loo(model, rows[:200], y[:200], sample_weight=np.repeat([1.0, 0.0], 100))
    assert none.elpd == pytest.approx(loo(model, rows[:100], y[:100]).elpd)
    assert none.rows.max() < 100


def test_a_row_of_little_weight_is_left_out_by_that_weight(many):
    model, rows, y, _ = many
    model = as_if_fitted_to(model, rows[:2], y[:2], np.array([1e-12, 0.9]))
    light = loo(model, rows[:2], y[:2], sample_weight=[1e-12, 0.9], n_rows=None)
    each = model.log_likelihood(rows[:2], y[:2])
    assert light.pointwise[0] == pytest.approx(np.log(np.exp(each[0]).mean()))
    assert light.pointwise[1] < np.log(np.exp(each[1]).mean())


def test_weighted_draws_are_left_out_as_draws_of_the_posterior_that_they_stand_for():
    plain = clone(NORMAL).set_params(n_chains=1, n_draws=4000).fit(X, Y)
    weighted, shifted, draws = clone(NORMAL), clone(NORMAL), plain.posterior_
    vars(weighted).update(vars(plain))
    vars(shifted).update(vars(plain))
    # a normal density of z times exp(z) is that of z + 1
    z = (draws.values[0, :, 0] - draws.values.mean()) / draws.values.std()
    weighted.posterior_ = replace(draws, weights=np.exp(z) / np.exp(z).mean())
    shifted.posterior_ = replace(draws, values=draws.values + draws.values.std())
    found, exact, other = (loo(each, X, Y) for each in (weighted, shifted, plain))
    assert np.abs(other.pointwise - exact.pointwise).max() > 0.2
    assert_allclose(found.pointwise, exact.pointwise, atol=0.05)
    with_row = log_predictive_density(
        weighted.log_likelihood(X, Y), draw_weights=weighted.posterior_.flat_weights
    )
    assert found.p_loo == pytest.approx(N * with_row - found.elpd)


def test_pipelines_searches_and_transformed_targets_are_looked_into():
    model = SGLDLinearRegression(n_draws=200, random_state=0)
    pipe = make_pipeline(StandardScaler(), model)
    search = GridSearchCV(pipe, {"sgldlinearregression__temperature": [1.0]}, cv=2).fit(X, Y)
    inner = search.best_estimator_[-1]
    plain = loo(inner, StandardScaler().fit_transform(X), Y)
    assert loo(search, X, Y).elpd == pytest.approx(plain.elpd)
    logs = TransformedTargetRegressor(clone(pipe), func=np.log, inverse_func=np.exp)
    logs.fit(X, np.exp(Y))
    assert_allclose(loo(logs, X, np.exp(Y)).pointwise, plain.pointwise - Y, atol=1e-6)


def test_exposures_are_those_of_the_fit():
    rng = np.random.default_rng(0)
    exposure = rng.uniform(0.5, 3.0, N)
    y = rng.poisson(exposure * np.exp(0.6 * X[:, 0]))
    model = clone(COUNTS).fit(X, y, exposure=exposure)
    each = density(stats.poisson(exposure[:, None] * np.exp(X * GRID)), y)
    exact = np.log(average_without(each)(np.exp(each)))
    found = loo(model, X, y, exposure=exposure, n_rows=20)
    assert_allclose(found.pointwise, exact[found.rows], atol=0.05)
    assert loo(model, X, y, exposure=exposure).elpd == pytest.approx(exact.sum(), abs=0.2)


# weights have an influential row for networks, and loo says so
@pytest.mark.filterwarnings("ignore:The Pareto k")
def test_networks_and_laplace_approximations_are_taken_too():
    network = SGLDMLPRegressor(hidden_layer_sizes=3, n_burnin=50, n_draws=50, random_state=0)
    found = loo(network.fit(X, Y), X, Y, n_rows=20)
    assert np.isfinite(found.elpd)
    laplace = loo(SGDMAPRegressor(random_state=0).fit(X, Y), X, Y)
    sampled = loo(SGLDLinearRegression(random_state=0).fit(X, Y), X, Y)
    assert laplace.elpd == pytest.approx(sampled.elpd, abs=0.5)


def test_many_rows_take_the_memory_of_some():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((50_000, 3))
    y = rows @ [1.0, 2.0, 3.0] + rng.standard_normal(50_000)
    model = SGLDLinearRegression(random_state=0).fit(rows, y)
    loo(model, rows, y, n_rows=2)  # imports
    tracemalloc.start()
    found = loo(model, rows, y, n_rows=100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.n_data_points == 50_000
    assert found.n_rows == 100
    assert peak < 2e8  # all log likelihoods would be 1.6e9


def test_a_row_that_the_draws_cannot_leave_out_is_told():
    rows, y = X.copy(), Y.copy()
    rows[0], y[0] = 30.0, -30.0
    model = clone(NORMAL).fit(rows, y)
    with pytest.warns(UserWarning, match=r"The Pareto k of 1 of 40 rows is above 0\.7, up to"):
        found = loo(model, rows, y)
    assert np.flatnonzero(found.pareto_k > found.good_k).tolist() == [0]
    assert "in 1 of 40 rows." in str(found)


def test_a_row_that_does_not_depend_on_the_parameters_is_left_out():
    rows = X.copy()
    rows[0] = 0.0
    found = loo(clone(NORMAL).fit(rows, Y), rows, Y)
    assert found.pointwise[0] == pytest.approx(stats.norm.logpdf(Y[0], 0.0, np.sqrt(0.5)))


def test_a_result_shows_itself():
    found = loo(clone(NORMAL).fit(X, Y), X, Y, n_rows=20)
    assert repr(found) == str(found)
    assert repr(found).startswith("Leave-one-out of 40 rows, from 20 of them\n")
