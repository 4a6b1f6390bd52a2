"""Leave-one-out distributions against posteriors without each row, by quadrature."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone

from skbayes_sgld import SGLDPoissonRegressor
from skbayes_sgld.criticism.checks import binomial_p_value, by_mean, pearson, share_inside
from skbayes_sgld.criticism.leave_one_out import leave_out, rows_of_fit
from skbayes_sgld.likelihoods.row_values import NO_VALUES
from tests.left_out import FAMILIES, GRID, N, X, average_without, density


def left_out_and_truth(family, smooth=True):
    """Leave-one-out of a fit, and a function that averages over the exact posterior without."""
    model, y, law = FAMILIES[family]
    model = clone(model).fit(X, y)
    left = (
        rows_of_fit("loo", model, X, y, None, {}).leave_out(np.arange(N))
        if smooth
        else leave_out(
            model._predictive(slice(0, None, 8)), model._observed(X, y, {}), smooth=False
        )
    )
    law = law(X * GRID)
    return left, law, y, average_without(density(law, y))


@pytest.mark.parametrize("family", ["normal", "counts"])
def test_the_transform_and_the_moments_are_those_without_the_row(family):
    left, law, y, average = left_out_and_truth(family)
    below, most, mean, variance = left.numbers
    assert_allclose(most, average(law.cdf(y[:, None])), atol=0.012)
    if family == "normal":
        assert_allclose(below, most)
    else:
        assert_allclose(below, average(law.cdf(y[:, None] - 1)), atol=0.012)
        assert_allclose(left.zero(), average(law.cdf(np.zeros((N, 1)))), atol=0.012)
    first = average(law.mean() + np.zeros_like(GRID))
    second = average(law.mean() ** 2 + law.var())
    assert_allclose(mean, first, rtol=0.02, atol=0.02)
    assert_allclose(variance, second - first**2, rtol=0.03)
    assert_allclose(left.slope(), mean if family == "counts" else 1.0, rtol=1e-3)
    samples = left.sample(4000, np.random.RandomState(0))
    error = np.sqrt(variance / 4000)
    assert np.all(np.abs(samples.mean(axis=1) - mean) < 5 * error)


def test_counts_that_are_left_out_have_the_exposures_of_their_rows():
    rng = np.random.default_rng(0)
    x, exposure = rng.standard_normal((60, 1)), rng.uniform(0.5, 20.0, 60)
    y = rng.poisson(exposure * np.exp(0.3 * x[:, 0]))
    model = SGLDPoissonRegressor(n_draws=250, random_state=0).fit(x, y, exposure=exposure)
    left = rows_of_fit("loo", model, x, y, None, {"exposure": exposure}).leave_out(np.arange(60))
    _, _, mean, variance = left.numbers
    assert_allclose(mean, model.predict(x, exposure=exposure), rtol=0.3)
    samples = left.sample(2000, np.random.RandomState(0))
    assert np.all(np.abs(samples.mean(axis=1) - mean) < 5 * np.sqrt(variance / 2000))


def test_probabilities_of_labels_are_those_without_the_row():
    left, law, _, average = left_out_and_truth("labels")
    p = left.probability()
    assert_allclose(p[:, 1], average(law.mean()), atol=0.012)
    assert_allclose(p.sum(axis=1), 1.0)


def test_bounded_weights_of_some_draws_are_near():
    left, law, y, average = left_out_and_truth("normal", smooth=False)
    assert_allclose(left.numbers.most, average(law.cdf(y[:, None])), atol=0.03)
    assert np.isnan(left.pareto_k).all()


def test_shares_inside_are_their_level():
    rng = np.random.default_rng(0)
    mean = rng.uniform(0.5, 3.0, 20_000)
    y = rng.poisson(mean)
    law = stats.poisson(mean)
    below, most = law.cdf(y - 1), law.cdf(y)
    for coverage in (0.5, 0.9):
        share = share_inside(below, most, coverage)
        assert abs(share.mean() - coverage) < 4 * share.std() / np.sqrt(len(y))
    u = rng.random(20_000)
    share = share_inside(u, u, 0.9)
    assert set(np.unique(share)) == {0.0, 1.0}
    assert abs(share.mean() - 0.9) < 4 * np.sqrt(0.09 / len(u))
    assert abs(pearson(y, mean, mean).mean() - 1) < 4 * np.sqrt(3.0 / len(y))
    thirds = by_mean(mean)
    assert [len(rows) for rows in thirds] == [6667, 6667, 6666]
    assert mean[thirds[0]].max() <= mean[thirds[2]].min()


def test_p_values_of_shares_are_those_of_binomial_numbers():
    law = stats.binom(60, 0.1)
    for k in (0, 3, 30):
        expected = min(1.0, 2.0 * min(law.cdf(k), law.sf(k - 1)))
        assert binomial_p_value(k, 60, 0.1) == pytest.approx(expected)
    assert binomial_p_value(30.4, 60, 0.1) == binomial_p_value(30, 60, 0.1)
    assert binomial_p_value(1.6, 60, 0.1) == binomial_p_value(2, 60, 0.1)


@pytest.mark.parametrize("level", [5.0, 9.0, 14.0])
def test_densities_that_underflow_are_summed_as_logarithms(level):
    """Weights are 1 / p(y), so that the density is the draws' harmonic mean."""
    rng = np.random.default_rng(0)
    draws, y = level + 0.01 * rng.standard_normal((300, 1)), np.exp(level + rng.standard_normal(40))
    law = stats.poisson(np.exp(draws.T))
    values = law.logpmf(np.round(y)[:, None])
    predictive = SimpleNamespace(share=np.full(300, 1 / 300), log_likelihood=lambda *data: values)
    left = leave_out(predictive, (y, y, NO_VALUES), smooth=True)
    assert np.isfinite(left.weight).all()
    assert_allclose(left.weight.sum(axis=1), 1.0)
    assert_allclose(left.log_density_with, logsumexp(values, axis=1) - np.log(300))
    exact = np.log(300) - logsumexp(-values, axis=1)
    far = np.ptp(values, axis=1) > 1000.0
    assert far.any() == (level > 5.0)
    assert np.isfinite(left.log_density).all()
    # a bound on the largest weight, and smoothing, give draws of a higher density more weight
    assert np.all(left.log_density[far] > exact[far] - 1.0)
    assert np.all(left.pareto_k[far] > 0.7)
