"""Every likelihood of the registry: derivatives, moments and quantiles are those of its density."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld.posterior import LIKELIHOODS, Bernoulli, Categorical, LabelLikelihood, Poisson
from skbayes_sgld.posterior.likelihoods.mixture import solve_quantile

C, B, S = 3, 7, 4000
every_likelihood = pytest.mark.parametrize(
    "likelihood", [family() for family in LIKELIHOODS.values()], ids=list(LIKELIHOODS)
)
every_numeric = pytest.mark.parametrize(
    "likelihood",
    [family() for family in LIKELIHOODS.values() if not issubclass(family, LabelLikelihood)],
    ids=[name for name, family in LIKELIHOODS.items() if not issubclass(family, LabelLikelihood)],
)
every_label = pytest.mark.parametrize(
    "likelihood",
    [family() for family in LIKELIHOODS.values() if issubclass(family, LabelLikelihood)],
    ids=[name for name, family in LIKELIHOODS.items() if issubclass(family, LabelLikelihood)],
)


def some_u(likelihood, size=B, seed=0):
    return 0.2 + 0.7 * np.random.default_rng(seed).standard_normal((C, likelihood.n_local, size))


def some_y(likelihood, u, seed=0):
    return likelihood.sample(u, np.random.RandomState(seed)).astype(float)


def in_u(function, u, h=1e-5):
    """Central differences of ``function`` in every local parameter, on the axis after the first."""
    columns = []
    for k in range(u.shape[1]):
        step = np.zeros_like(u)
        step[:, k] = h
        columns.append((function(u + step) - function(u - step)) / (2 * h))
    return np.stack(columns, axis=1)


@every_likelihood
@pytest.mark.parametrize("own_rows", [False, True])
def test_the_score_is_the_derivative_of_the_log_density(likelihood, own_rows):
    u = some_u(likelihood)
    y = some_y(likelihood, u)
    y = y if own_rows else y[0]
    value, score = likelihood.value_and_score(u, y)
    np.testing.assert_allclose(
        likelihood.score(u, y), in_u(lambda v: likelihood.log_density(v, y), u), atol=1e-8
    )
    np.testing.assert_allclose(score, likelihood.score(u, y), atol=1e-12)
    np.testing.assert_allclose(value, likelihood.log_density(u, y), atol=1e-12)


@every_likelihood
def test_the_curvature_is_minus_the_derivative_of_the_score(likelihood):
    u = some_u(likelihood)
    y = some_y(likelihood, u)
    expected = -in_u(lambda v: likelihood.score(v, y), u)
    np.testing.assert_allclose(likelihood.curvature(u, y), expected, atol=1e-7)


@every_likelihood
def test_samples_have_the_mean_and_the_variance(likelihood):
    u = np.repeat(some_u(likelihood, 1), S, axis=2)
    y, mean = some_y(likelihood, u), likelihood.mean(u)
    if isinstance(likelihood, LabelLikelihood):
        p = likelihood.probabilities(u)[0][..., 0]
        share = np.stack([(y == k).mean(axis=1) for k in range(likelihood.n_classes)], axis=1)
        assert np.all(np.abs(share - p) < 4.5 * np.sqrt(p * (1 - p) / S))
        expected = p if mean.ndim == 3 else p[:, 1]
        np.testing.assert_allclose(mean[..., 0], expected, rtol=1e-12)
        return
    variance = likelihood.variance(u)[:, 0]
    square = (y - mean) ** 2
    assert np.all(np.abs(y.mean(axis=1) - mean[:, 0]) < 4.5 * np.sqrt(variance / S))
    error = square.std(axis=1) / np.sqrt(S)
    assert np.all(np.abs(square.mean(axis=1) - variance) < 4.5 * error)


@every_numeric
def test_the_distribution_function_is_that_of_the_density(likelihood):
    u = some_u(likelihood)
    y = some_y(likelihood, u)
    density = np.exp(likelihood.log_density(u, y))
    if likelihood.whole:
        step = likelihood.cdf(u, y) - likelihood.cdf(u, y - 1.0)
    else:
        h = 1e-5
        step = (likelihood.cdf(u, y + h) - likelihood.cdf(u, y - h)) / (2 * h)
    np.testing.assert_allclose(step, density, rtol=1e-6)


@every_numeric
def test_samples_follow_the_distribution_function(likelihood):
    u = np.repeat(some_u(likelihood, 1), S, axis=2)
    y = some_y(likelihood, u)
    for t in np.quantile(y, [0.1, 0.5, 0.9]):
        p = likelihood.cdf(u, np.full((C, 1), t))[:, 0]
        assert np.all(np.abs((y <= t).mean(axis=1) - p) < 4.5 * np.sqrt(p * (1 - p) / S) + 1e-12)


@every_numeric
@pytest.mark.parametrize("q", [1e-5, 0.05, 0.5, 0.9, 0.99999])
def test_mixture_quantiles_solve_the_mean_of_the_distribution_functions(likelihood, q):
    rng = np.random.default_rng(1)
    n, draws = 5, 300
    eta = np.linspace(-2, 6, n)[:, None] + 0.4 * rng.standard_normal((n, draws))
    gamma = 0.5 * rng.standard_normal(draws) if likelihood.infers_noise else None
    share = rng.dirichlet(np.ones(draws))
    rows = [eta] if gamma is None else [eta, np.broadcast_to(gamma, eta.shape)]
    u = np.stack(rows, axis=1)
    t = likelihood.mixture_quantile(u, share, q)
    at, sd = likelihood.cdf(u, t[:, None]) @ share, np.sqrt(likelihood.variance(u) @ share)
    if likelihood.whole:
        assert np.all(at >= q)
        assert np.all(likelihood.cdf(u, t[:, None] - 1.0) @ share < q)
    else:
        h = 1e-4 * sd
        assert np.all(likelihood.cdf(u, (t - h)[:, None]) @ share < q)
        assert np.all(likelihood.cdf(u, (t + h)[:, None]) @ share > q)


@every_label
def test_probabilities_are_those_of_the_density_and_sum_to_one(likelihood):
    u = some_u(likelihood)
    p, rest = likelihood.probabilities(u)
    for k in range(likelihood.n_classes):
        code = np.full(B, float(k))
        np.testing.assert_allclose(p[:, k], np.exp(likelihood.log_density(u, code)), rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(p + rest, 1.0, rtol=1e-14)
    log_p, log_rest = likelihood.log_probabilities(u)
    np.testing.assert_allclose(log_p, np.log(p), atol=1e-13)
    np.testing.assert_allclose(log_rest, np.log(rest), atol=1e-13)


@every_label
def test_no_digit_of_a_small_probability_is_lost(likelihood):
    u = np.zeros((2, likelihood.n_local, 1))
    u[:, -1] = np.array([[40.0], [1000.0]])
    others = max(likelihood.n_predictors - 1, 1)
    log_p, log_rest = likelihood.log_probabilities(u)
    expected = np.array([-40.0, -1000.0]) + np.log(others)
    np.testing.assert_allclose(log_rest[:, -1, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(log_p[:, 0, 0], [-40.0, -1000.0], rtol=1e-12)
    np.testing.assert_allclose(likelihood.probabilities(u)[1][0, -1, 0], others * np.exp(-40.0))


def test_codes_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"value 2, which is not a code.*0 \.\.\. 1"):
        Bernoulli().check_target(np.array([0.0, 2.0]))
    with pytest.raises(ValueError, match=r"value 0\.5, which is not a code.*0 \.\.\. 3"):
        Categorical(4).check_target(np.array([0.0, 0.5, 3.0]))


def test_the_poisson_density_is_that_of_scipy():
    y, eta = np.arange(40.0), np.linspace(-3, 4, 5)
    expected = stats.poisson.logpmf(y, np.exp(eta)[:, None])
    u = np.repeat(eta[:, None, None], 40, axis=2)
    np.testing.assert_allclose(Poisson().log_density(u, y), expected, rtol=1e-12)


@pytest.mark.parametrize("rate", [1e-3, 0.7, 30.0, 1e6])
@pytest.mark.parametrize("q", [1e-6, 0.05, 0.5, 0.95, 0.999999])
def test_whole_quantiles_are_exact_at_every_size(rate, q):
    def cdf(t, rows):
        return stats.poisson.cdf(t, rate)

    found = solve_quantile(cdf, q, np.array([rate]), np.sqrt([rate]), whole=True)
    np.testing.assert_allclose(found, stats.poisson.ppf(q, rate), rtol=1e-12)


@pytest.mark.parametrize(
    "law", [stats.logistic(), stats.t(2.5), stats.expon()], ids=["logistic", "t", "exponential"]
)
def test_quantiles_are_found_to_a_hundred_thousandth_of_a_sd(law):
    mean, sd = np.array([law.mean()]), np.array([law.std()])
    for q in (1e-4, 0.05, 0.5, 0.74, 0.975):
        found = solve_quantile(lambda t, _: law.cdf(t), q, mean, sd)
        assert abs(found[0] - law.ppf(q)) < 1e-5 * sd[0]


@every_likelihood
def test_the_gains_are_the_directions_along_which_the_likelihood_never_falls(likelihood):
    """All directions of small whole numbers, on rows of small whole numbers, by the density."""
    rng = np.random.default_rng(0)
    K, width = likelihood.n_predictors, 2
    directions = np.array(list(product((-1.0, 0.0, 1.0), repeat=K * width)))[1:]
    found = {True: 0, False: 0}
    for seed in range(25):
        design = rng.integers(-1, 2, (3, width)).astype(float)
        y = some_y(likelihood, some_u(likelihood, 3, seed), seed)[0]
        gains = likelihood.gains(design, y)
        for v in directions:
            moved = np.einsum("nw,kw->kn", design, v.reshape(K, width))
            if not moved.any():
                continue
            u = np.zeros((5, likelihood.n_local, 3))
            u[:, :K] = np.array([0.0, 1.0, 2.0, 4.0, 8.0])[:, None, None] * moved
            values = likelihood.log_density(u, y).sum(axis=1)
            never_falls = bool(np.all(np.diff(values) >= -1e-12))
            told = gains is not None and bool(np.all(gains @ v >= 0.0))
            assert told == never_falls, (design, y, v, values)
            found[told] += 1
    assert found[False] > 20 and (found[True] > 5) == (gains is not None)
