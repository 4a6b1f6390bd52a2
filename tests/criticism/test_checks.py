"""Figures of the checks over data drawn from a predictive distribution that is known."""

from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit

from skbayes_sgld.criticism.checks import find_checks, residuals
from skbayes_sgld.criticism.interactions import connected, product_tests
from skbayes_sgld.criticism.leave_one_out import LeftOut
from skbayes_sgld.likelihoods import Bernoulli, FixedNormalNoise
from skbayes_sgld.likelihoods.row_values import NO_VALUES

N, S, REPLICATIONS = 150, 50, 250
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.5, 1.5, (N, 1))


def probability(X, row_values=NO_VALUES):
    p = expit(0.3 + 0.8 * X[:, 0])
    return np.column_stack([1.0 - p, p])


LABELS = SimpleNamespace(
    likelihood=Bernoulli(),
    probability=probability,
    probability_draws=lambda X, _: np.repeat(probability(X)[..., None], S, axis=2),
)
NORMAL = SimpleNamespace(
    likelihood=FixedNormalNoise(1.0),
    mean=lambda X, terms: X[:, 0],
    local=lambda X, terms: np.repeat(X[:, :1, None], S, axis=2),
)
DRAW = {
    "labels": (LABELS, lambda rng: (rng.random(N) < probability(X)[:, 1]).astype(float)),
    "numbers": (NORMAL, lambda rng: X[:, 0] + rng.standard_normal(N)),
}


def left_out(predictive, X, y):
    n = len(y)
    nothing = np.full(n, np.nan)
    weight = np.full((n, S), 1.0 / S)
    return LeftOut(predictive, (X, y, NO_VALUES), weight, np.full(n, -np.inf), nothing, nothing)


@pytest.mark.parametrize("kind", DRAW)
def test_figures_of_a_true_model_have_their_expectation_and_standard_error(kind):
    predictive, draw = DRAW[kind]
    away, p_values = {}, {}
    for seed in range(REPLICATIONS):
        left = left_out(predictive, X, draw(np.random.default_rng([1, seed])))
        for check in find_checks(left, ["x0"], range(N), 0):
            if np.isfinite(check.error):
                z = (check.measured - check.expected) / check.error
                away.setdefault(check.name, []).append(z)
                p_values.setdefault(check.name, []).append(check.p_value)
    thirds = [name for name in away if "third" in name]
    assert len(thirds) == {"labels": 3, "numbers": 6}[kind]
    for name, z in away.items():
        assert len(z) == REPLICATIONS
        assert abs(np.mean(z)) < 4.0 / np.sqrt(REPLICATIONS), name
        # a standard error of 4.5 %, and figures whose normal distribution is that of many rows;
        # curvature is the larger of two scores, whose square has the mean 1 + 2 / pi
        spread = np.sqrt(1.0 + 2.0 / np.pi) if name.startswith("curvature") else 1.0
        assert np.std(z) == pytest.approx(spread, abs=0.2), name
        assert np.mean(np.array(p_values[name]) < 0.05) < 0.1, name


def test_p_values_of_shares_of_classes_are_those_of_their_distance_in_errors():
    labels = np.random.default_rng(1).integers(0, 2, N).astype(float)
    checks = find_checks(left_out(LABELS, X, labels), ["x0"], range(N), 0)
    shares = [check for check in checks if check.name.startswith("share of class")]
    assert shares
    for check in shares:
        z = abs(check.measured - check.expected) / check.error
        assert check.p_value == pytest.approx(2.0 * stats.norm.sf(z))


def test_residuals_of_rows_far_away_are_finite():
    y = X[:, 0].copy()
    y[:2] = [100.0, -100.0]
    z = residuals(left_out(NORMAL, X, y), np.random.RandomState(0))
    assert_allclose(z[:2], [8.2, -8.2], atol=0.1)
    assert_allclose(z[2:], 0.0, atol=1e-12)


@pytest.mark.parametrize("n, checked", [(22, False), (23, True)])
def test_curvature_is_looked_at_with_twenty_rows_beyond_its_parameters(n, checked):
    """An intercept, a slope and a square."""
    found = find_checks(left_out(NORMAL, X[:n], np.sin(X[:n, 0])), ["x0"], range(n), 0)
    assert any(check.kind == "curvature" for check in found) == checked


@pytest.mark.parametrize("normal", [True, False], ids=["normal", "labels"])
def test_products_of_pairs_have_the_level_of_one_test_where_few_rows_have_both(normal):
    """Twenty columns, half of which are 0 but in a few rows."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((150, 20))
    rows[:, 10:] = rng.random((150, 10)) < 0.06
    p = np.full(150, 0.2)
    found = []
    for _ in range(200):
        y = rng.random(150) < p
        z = rng.standard_normal(150) if normal else (y - p) / np.sqrt(p * (1.0 - p))
        found.append(product_tests([(z, np.ones(150), "")], rows, normal)[0].p_value)
    assert np.mean(np.array(found) < 0.05) < 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / 200)


def test_the_pairs_whose_test_is_made_have_the_strongest():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((600, 100))
    z = rng.standard_normal(600) + 0.3 * rows[:, 13] * rows[:, 77]
    strongest = product_tests([(z, np.ones(600), "")], rows, True)[0]
    assert strongest.pair == (13, 77)
    assert strongest.p_value < 1e-3
    assert connected([(1, 2), (5, 4), (2, 3)]) == [(4, 5), (1, 2, 3)]


@pytest.mark.parametrize("kind", ["own label above", "own label below"])
def test_shares_of_thirds_that_the_rows_own_labels_sort_are_no_misfit(kind):
    """A fit has the higher probability where the label is there; left out, equal rows the lower."""
    y = np.random.default_rng(0).integers(0, 2, N).astype(float)
    eta, shift = 0.01 * X[:, 0], 0.1 * (y - 0.5)
    above = kind == "own label above"
    fitted, without = expit(eta + shift * above), expit(eta - shift * (not above))
    left = mock.Mock(family="labels", y=y, data=(X, y), weight=np.full((N, S), 1.0 / S))
    left.probability.return_value = np.column_stack([1.0 - without, without])
    left.fitted.return_value = np.column_stack([1.0 - fitted, fitted])
    left.pareto_k = np.full(N, -np.inf)
    checks = find_checks(left, ["x0"], range(N), 0)
    thirds = [check for check in checks if "third" in check.name]
    assert len(thirds) == 3
    assert all(check.verdict == "fits" for check in thirds)


def test_a_product_is_tested_as_a_further_column_of_least_squares():
    rng = np.random.default_rng(0)
    columns, z = rng.uniform(-1.0, 1.0, (9, 2)), 0.3 * rng.standard_normal(9)
    (found,) = product_tests([(z, np.ones(9), "y")], columns, normal=True)
    standard = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    design = np.column_stack([np.ones(9), columns, standard.prod(axis=1)])
    coef = np.linalg.lstsq(design, z)[0][-1]
    t = coef / np.sqrt(np.linalg.inv(design.T @ design)[-1, -1])  # of residuals with an sd of 1
    assert found.t == pytest.approx(t)
    assert found.p_value == pytest.approx(2.0 * stats.t.sf(abs(t), 9 - design.shape[1]))
