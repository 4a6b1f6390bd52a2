"""Means over draws from a few nodes of a row."""

from math import factorial

import numpy as np
import pytest
from numpy.polynomial import hermite_e
from scipy.special import ndtr
from scipy.stats import norm, poisson

from skbayes_sgld.likelihoods import BetaBinomial, Gamma, NegativeBinomial, Poisson, StudentTNoise
from skbayes_sgld.likelihoods.mixture import Mixture, solve_quantile
from skbayes_sgld.likelihoods.normal import UnequalNormalNoise
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.predictors import LinearPredictor
from skbayes_sgld.prediction.quadrature import Nodes, OwnNodes, Quadrature, count_nodes
from tests.marks import slow

ERROR = 6e-6


def nodes_of(eta, share, n, own=None):
    """Nodes of rows with predictors ``(K, n, S)``."""
    own = np.zeros((len(share), 0)) if own is None else own
    center = eta @ share
    z = eta - center[..., None]
    sd = np.sqrt(np.square(z) @ share)
    quadrature = Quadrature(n, len(eta), share, OwnNodes(own, share, ERROR), True)
    found = quadrature(center, sd, z / np.where(sd > 0, sd, 1.0)[..., None])
    return Nodes(*found, quadrature)


def average(mixture, function):
    return mixture.mean(lambda u, rows: function(u), np.arange(len(mixture)))


@pytest.mark.parametrize(("sd", "n"), [(0.0, 3), (0.1, 4), (0.2, 6)])
def test_nodes_average_a_normal_distribution_function(sd, n):
    rng = np.random.default_rng(0)
    center, share = np.array([-1.0, 0.0, 2.0]), rng.dirichlet(np.ones(2000))
    eta = (center[:, None] + sd * rng.standard_normal((3, 2000)))[None]
    nodes = nodes_of(eta, share, n)
    assert nodes.u.shape == (3, 1, n)
    found = average(nodes, lambda u: ndtr(2.0 * u[:, 0]))
    np.testing.assert_allclose(found, ndtr(2.0 * eta[0]) @ share, atol=1e-5)
    np.testing.assert_allclose(nodes.center()[..., 0], (eta @ share).T, atol=1e-12)


@pytest.mark.parametrize("K", [1, 2])
def test_polynomials_are_averaged_as_over_the_draws(K):
    rng = np.random.default_rng(1)
    share, own = rng.dirichlet(np.ones(2000)), rng.gamma(3.0, 0.2, (2000, 2))
    skewed = rng.gamma(20.0, 0.1, (K, 3, 2000)) + own[:, 0]  # they depend on each other
    skewed[-1] += 0.5 * skewed[0]
    nodes = nodes_of(skewed, share, 4, own)
    for function in (
        lambda u: u[:, 0] ** 3 - u[:, K - 1] ** 2 + 1.0,
        lambda u: u[:, 0] * u[:, K - 1] * u[:, K],
        lambda u: u[:, K] ** 2 * u[:, K + 1],
    ):
        every = np.broadcast_to(own.T[:, None], (2, 3, 2000))
        u = np.concatenate([skewed, every]).swapaxes(0, 1)
        np.testing.assert_allclose(average(nodes, function), function(u) @ share, rtol=1e-9)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("n_own", [0, 1, 2])
@pytest.mark.parametrize("K", [1, 2])
def test_second_moments_make_nodes_with_the_moments_of_the_draws(K, n_own, n):
    """Draws are skewed, depend on each other, and some of them have nearly no weight."""
    rng = np.random.default_rng(1)
    share, own = rng.dirichlet(np.full(2000, 0.2)), rng.gamma(3.0, 0.2, (2000, n_own))
    share = np.maximum(share, 1e-15)  # with less the draws would not be factored
    share /= share.sum()
    coef = rng.gamma(2.0, 0.1, (2000, K, 4)) + own.sum(axis=1)[:, None, None]
    coef[:, -1] += 0.5 * coef[:, 0]
    predictor = LinearPredictor(coef, rng.standard_t(3, (2000, K)) + coef[:, :, 0])
    spread, X = predictor.spread(share, np.empty((500, 4))), rng.standard_t(2, (50, 4))
    coordinates = spread.coordinates(X)
    center, sd = coordinates[..., -1].copy(), np.sqrt(spread.variance(coordinates))
    coordinates /= sd[..., None]
    quadrature = Quadrature(n, K, share, OwnNodes(own, share, ERROR), False)
    u, weights, _ = quadrature.by_moments(spread.directions)(center, sd, coordinates[..., :-1])
    known = np.broadcast_to(own.T[:, None], (n_own, 50, 2000))
    draws = np.concatenate([predictor(X), known]).swapaxes(0, 1)
    predictors, others = range(K), range(K, K + n_own)
    products = [(k, m) for k in predictors for m in others]
    if n == 3:
        products += [(k, j) for k in predictors for j in predictors]
        products += [(k, j, m) for k in predictors for j in (*predictors, *others) for m in others]
    for each in products:
        found = np.sum(weights * u[:, each].prod(axis=1), axis=1)
        np.testing.assert_allclose(found, draws[:, each].prod(axis=1) @ share, rtol=1e-8)


def test_second_moments_are_left_if_they_take_longer_than_the_draws():
    share, own = np.full(400, 1.0 / 400), np.zeros((400, 0))
    own_nodes = OwnNodes(own, share, ERROR)
    directions = np.random.default_rng(0).standard_normal((1, 40, 400))
    assert Quadrature(3, 1, share, own_nodes, False).by_moments(directions)
    assert Quadrature(4, 1, share, own_nodes, False).by_moments(directions, True)
    assert not Quadrature(4, 1, share, own_nodes, False).by_moments(directions)
    assert not Quadrature(3, 1, share, own_nodes, False).by_moments(np.tile(directions, (1, 2, 1)))


@pytest.mark.parametrize("K", [1, 2])
def test_third_moments_of_four_nodes_are_those_of_some_draws(K):
    rng = np.random.default_rng(2)
    share, own = np.full(4000, 1.0 / 4000), np.zeros((4000, 0))
    predictor = LinearPredictor(rng.gamma(2.0, 0.1, (4000, K, 4)), rng.gamma(2.0, 0.1, (4000, K)))
    spread, X = predictor.spread(share, np.empty((500, 4))), rng.standard_normal((50, 4))
    coordinates = spread.coordinates(X)
    center, sd = coordinates[..., -1].copy(), np.sqrt(spread.variance(coordinates))
    coordinates /= sd[..., None]
    quadrature = Quadrature(4, K, share, OwnNodes(own, share, ERROR), False)
    nodes_at = quadrature.by_moments(spread.directions, True)
    u, weights, _ = nodes_at(center, sd, coordinates[..., :-1])
    at_nodes = (u - center.T[..., None]) / sd.T[..., None]
    draws = ((predictor(X) - center[..., None]) / sd[..., None]).swapaxes(0, 1)
    for a, b in ((0, 0), (0, K - 1), (K - 1, 0)):
        found = np.sum(weights * at_nodes[:, a] ** 2 * at_nodes[:, b], axis=1)
        expected = np.mean(draws[:, a] ** 2 * draws[:, b], axis=1)
        standard_error = np.std(draws[:, a] ** 2 * draws[:, b], axis=1) / np.sqrt(1000)
        assert np.all(np.abs(found - expected) < 4.0 * standard_error)
        assert a != b or np.polyfit(expected, found, 1)[0] > 0.6
    weighted = np.append(0.5, share[1:])
    unequal = Quadrature(4, K, weighted, OwnNodes(own, weighted / weighted.sum(), ERROR), False)
    assert not unequal.by_moments(spread.directions, True)


@pytest.mark.parametrize("n", [3, 4])
def test_products_of_predictors_that_are_left_out_have_mean_0(n):
    """As for independent normal predictors: their part of a function would else be added."""
    rng = np.random.default_rng(3)
    share = np.full(4000, 1.0 / 4000)
    nodes = nodes_of(rng.standard_normal((2, 20, 4000)), share, n)
    squares = average(nodes, lambda u: (u[:, 0] ** 2 - 1.0) * (u[:, 1] ** 2 - 1.0))
    assert np.all(np.abs(squares) < 0.15)


@pytest.mark.parametrize("spread", [0.1, 0.5, 1.5])
def test_errors_are_estimated(spread):
    rng = np.random.default_rng(2)
    share, own = np.full(4000, 1 / 4000), spread * rng.standard_normal((4000, 2))
    skewed = spread * (rng.gamma(16.0, 0.25, (1, 50, 4000)) - 4.0) + rng.uniform(-2, 2, (50, 1))
    nodes = nodes_of(skewed, share, 5, own)

    def at(u):
        return ndtr(np.exp(-0.5 * u[:, 1]) * u[:, 0] + 0.2 * u[:, 2])

    u = np.concatenate([skewed, np.broadcast_to(own.T[:, None], (2, 50, 4000))]).swapaxes(0, 1)
    error = np.abs(average(nodes, at) - at(u) @ share)
    some = np.isfinite(nodes.error)  # others have nodes beyond their draws
    assert some.sum() > 30
    assert np.all(error[some] < 3.0 * nodes.error[some] + 1e-7)
    assert nodes.error[some].max() < 100.0 * error[some].max()


def test_errors_of_products_with_an_own_coordinate_are_estimated():
    rng = np.random.default_rng(0)
    share, own = np.full(4000, 1 / 4000), 0.3 * rng.standard_normal((4000, 1))
    nodes = nodes_of(rng.standard_normal((1, 3, 4000)), share, 5, own)
    last = len(np.unique(nodes.u[0, 1].round(12))) - 1  # degree that the rule of it just has

    def estimated(function):
        nodes.error[:] = 0.0
        average(nodes, function)
        return nodes.error.copy()

    def power(u):
        return ((u[:, 1] - own.mean()) / own.std()) ** last

    crossed = estimated(lambda u: power(u) * (1.0 + u[:, 0]))
    assert np.all(crossed > 3.0 * estimated(power))
    assert np.all(estimated(lambda u: u[:, 0]) < 1e-9)


@pytest.mark.parametrize("error", [6e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("sd", [0.01, 0.1, 0.3, 0.5])
def test_nodes_are_as_few_as_the_coefficients_of_a_normal_distribution_function_allow(sd, error):
    # the n-th coefficient of Phi(a + sd z), whose b is a / sqrt(1 + sd^2), is
    # (sd^2 / (1 + sd^2))^(n/2) He_(n-1)(b) phi(b) / sqrt(n!)
    b = np.linspace(-8.0, 8.0, 4001)

    def left(n):
        largest = np.abs(hermite_e.hermeval(b, np.eye(n)[-1]) * norm.pdf(b)).max()
        return 0.1 * (sd**2 / (1.0 + sd**2)) ** (n / 2) * largest / np.sqrt(factorial(n))

    n = int(count_nodes(np.array([sd]), error)[0])
    assert left(n) < 1.25 * 0.15 * error
    assert n == 2 or left(n - 1 if n <= 6 else n - 3) > 0.15 * error


def test_functions_that_hardly_change_over_a_predictor_take_nodes(monkeypatch):
    summed, by_sums = [], PredictiveDistribution._by_sums

    def noted(self, function, X, *more):
        summed.append(len(X))
        return by_sums(self, function, X, *more)

    monkeypatch.setattr(PredictiveDistribution, "_by_sums", noted)
    rng = np.random.default_rng(0)
    coef, level = (
        0.3 * rng.standard_normal((1000, 1, 2)),
        -4.0 + 0.1 * rng.standard_normal((1000, 1)),
    )
    predictive = PredictiveDistribution(LinearPredictor(coef, level), Poisson())
    predictive.quantiles(rng.uniform(-1, 1, (40, 2)), np.array([0.5, 0.99, 0.999]))
    assert sum(summed) < 20  # of 40; their rates are about exp(-4 / 2)


def test_a_row_whose_nodes_are_beyond_its_draws_has_no_error():
    """A rate that is exp(350) at most under the draws would overflow at a node beyond them."""
    eta = np.full((1, 2, 500), 300.0)
    eta[0, 0, :5] = -1e6  # the sd is 1e5, and no draw is above the mean by as much
    eta[0, 1] += np.random.default_rng(3).standard_normal(500)
    nodes = nodes_of(eta, np.full(500, 1 / 500), 4)
    average(nodes, lambda u: np.exp(u[:, 0] - 300.0))
    assert np.isnan(nodes.error[0]) and nodes.error[1] >= 0.0


# ---- levels of quantiles ------------------------------------------------------------------------

# family, and centres and sds of its own coordinates
FAMILIES = {
    "unequal noise": (UnequalNormalNoise(), [], []),
    "Student-t": (StudentTNoise(), [-0.5, 1.5], [0.1, 0.4]),
    "Student-t, unequal noise": (StudentTNoise(), [1.5], [0.4]),
    "gamma": (Gamma(), [-0.7], [0.15]),
    "Poisson": (Poisson(), [], []),
    "negative binomial": (NegativeBinomial(), [-0.5], [0.5]),
    "mostly zeros": (NegativeBinomial(), [2.5], [0.5]),
    "beta-binomial": (BetaBinomial(), [-1.0], [0.3]),
}


def difficult(name, spread, n):
    """Rows far out and with a rare column, and skewed draws with heavy tails among them."""
    likelihood, centers, sds = FAMILIES[name]
    rng = np.random.default_rng(0)
    d, S = 4, 1000
    X = rng.standard_normal((n, d))
    X[:, 3] = np.arange(n) % 10 == 0  # rare: its coefficient is known ten times less
    X[:2, :3] *= 30.0
    K = 2 if "unequal" in name else 1
    noise = rng.standard_normal((S, K, d)) * [1, 1, 1, 10]
    noise[:, :, 1] = rng.gamma(2.0, 1.0, (S, K)) - 2.0
    noise[:, :, 2] *= np.sqrt(6.0 / rng.chisquare(6.0, S))[:, None]
    intercept = 0.5 + spread * rng.standard_normal((S, K)) - 3.0 * ("zeros" in name)
    own = np.array(centers) + np.array(sds) * rng.standard_normal((S, len(sds))) if sds else None
    predictor = LinearPredictor(0.1 + spread * noise, intercept)
    trials = RowValues(others={"trials": np.full(n, 20.0)}) if likelihood.totals else RowValues()
    return PredictiveDistribution(predictor, likelihood, own), X, trials


# the less the draws are spread the easier: narrow draws of the dearest families are in slow tests
@pytest.mark.parametrize(
    ("name", "spread"),
    [
        slow(name, 0.03) if FAMILIES[name][1] and spread < 0.3 else (name, spread)
        for name in FAMILIES
        for spread in (0.03, 0.3)
    ],
)
def test_levels_are_those_of_the_mixture_over_all_draws(name, spread):
    predictive, X, trials = difficult(name, spread, 60)
    likelihood, n = predictive.likelihood, len(X)
    q = np.array([0.01, 0.3, 0.95])
    found = predictive.quantiles(X, q, trials)
    mixture = Mixture(predictive.local(X, trials), predictive.share)
    cdf, every = mixture.cdf(likelihood.cdf), np.arange(n)
    for t, level in zip(found.T, q, strict=True):
        if likelihood.whole:
            assert np.all(cdf(t, every) > level - 1e-3)
            assert np.all(cdf(t - 1.0, every) < level + 1e-3)
        else:
            np.testing.assert_allclose(cdf(t, every), level, rtol=0, atol=1e-3)


def test_intervals_of_rows_whose_noise_draws_differ_by_powers_of_ten_are_finite():
    """Between narrow and wide draws the distribution function is flat, and a search takes leaps."""
    rng = np.random.default_rng(1)
    S, n = 400, 200
    coef = 0.3 * rng.standard_normal((2, 3)) + 0.3 * rng.standard_normal((S, 2, 3))
    X = rng.standard_normal((n, 3))
    X[6:12] *= 10.0
    law = LinearPredictor(coef, 0.3 * rng.standard_normal((S, 2)))
    predictive, q = PredictiveDistribution(law, UnequalNormalNoise()), np.array([0.025, 0.975])
    eta, log_variance = law(X)
    for t, level in zip(predictive.quantiles(X, q).T, q, strict=True):
        cdf = ndtr((t[:, None] - eta) / np.exp(0.5 * log_variance)).mean(axis=1)
        np.testing.assert_allclose(cdf, level, rtol=0, atol=1e-3)


@pytest.mark.parametrize("spread", [0.03, 0.1, 0.3])
@pytest.mark.parametrize("name", FAMILIES)
def test_moments_are_those_of_the_mixture_over_all_draws(name, spread):
    predictive, X, trials = difficult(name, spread, 240)
    u, share, likelihood = predictive.local(X, trials), predictive.share, predictive.likelihood
    each = likelihood.mean(u)
    mean = each @ share
    variance = np.square(each - mean[:, None]) @ share + likelihood.variance(u) @ share
    found = predictive.moments(X, trials)
    assert np.all(np.abs(found[:, 0] - mean) < 2e-4 * np.sqrt(variance))
    np.testing.assert_allclose(found[:, 1], variance, rtol=2e-3)


@pytest.mark.parametrize("name", ["Poisson", "negative binomial", "mostly zeros", "beta-binomial"])
def test_quantiles_of_counts_by_nodes_are_those_of_all_draws(name):
    """Nodes with a larger error are enough if it cannot move the level past the quantile's."""
    likelihood, centers, sds = FAMILIES[name]
    rng = np.random.default_rng(1)
    X, S = rng.standard_normal((300, 3)), 1000
    coef, level = 0.3 * rng.standard_normal((S, 1, 3)), 1.0 + 0.2 * rng.standard_normal((S, 1))
    own = np.array(centers) + np.array(sds) * rng.standard_normal((S, len(sds))) if sds else None
    predictive = PredictiveDistribution(LinearPredictor(coef, level), likelihood, own)
    trials = RowValues(others={"trials": np.full(300, 20.0)}) if likelihood.totals else RowValues()
    q = np.array([0.02, 0.5, 0.95])
    mixture = Mixture(predictive.local(X, trials), predictive.share)
    cdf, some = mixture.cdf(likelihood.cdf), np.arange(0, 300, 3)  # the exact sums take long
    for t, level in zip(predictive.quantiles(X, q, trials)[some].T, q, strict=True):
        assert np.all(cdf(t, some) > level - 1e-4)
        assert np.all(cdf(t - 1.0, some) < level + 1e-4)


@pytest.mark.parametrize(
    "name", ["Poisson", "negative binomial", "mostly zeros", slow("beta-binomial")]
)
def test_distribution_functions_of_counts_by_ratios_are_those_of_all_draws(name):
    """Small and large counts, of few rows (sums over the draws) and of many (nodes)."""
    predictive, X, trials = difficult(name, 0.1, 240)
    likelihood = predictive.likelihood
    t = np.sort(np.random.default_rng(2).geometric(0.15, (240, 6)) - 2.0, axis=1)
    t[::7, -1] = 15.0 if likelihood.totals else 400.0  # more than are summed
    mixture = Mixture(predictive.local(X, trials), predictive.share)
    cdf = mixture.cdf(likelihood.cdf)
    for rows in (np.arange(240), np.arange(0, 240, 7)):
        expected = np.column_stack([cdf(at, rows) for at in t[rows].T])
        found = predictive.cdf(X[rows], t[rows], trials[rows])
        np.testing.assert_allclose(found, expected, rtol=0, atol=3e-4)


def test_a_distribution_function_of_counts_of_its_own_is_not_replaced_by_ratios():
    class Inflated(Poisson):
        def cdf(self, u, y):
            return np.where(y < 0, 0.0, 0.5 + 0.5 * super().cdf(u, y))

    X, level = np.zeros((3, 1)), np.full((60, 1), np.log(2.0))
    predictive = PredictiveDistribution(LinearPredictor(np.zeros((60, 1, 1)), level), Inflated())
    expected = 0.5 + 0.5 * poisson.cdf([0.0, 1.0, 2.0], 2.0)
    found = predictive.cdf(X, np.tile([0.0, 1.0, 2.0], (3, 1)))
    np.testing.assert_allclose(found, np.tile(expected, (3, 1)), rtol=1e-12)
    np.testing.assert_array_equal(predictive.quantiles(X, np.array([0.4, 0.5])), 0.0)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.93])
def test_the_margin_of_a_count_is_the_distance_of_its_level_from_the_nearest_probability(q):
    mean = np.array([0.02, 0.7, 3.0, 12.0, 80.0])
    found = solve_quantile(
        lambda t, rows: poisson.cdf(t, mean[rows]), q, mean, np.sqrt(mean), whole=True
    )
    count = poisson.ppf(q, mean)
    np.testing.assert_array_equal(found.quantile, count)
    ends = poisson.cdf([count - 1.0, count], mean)
    np.testing.assert_allclose(found.margin, np.abs(ends - q).min(axis=0), rtol=1e-12)
