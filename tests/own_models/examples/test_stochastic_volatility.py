"""Stochastic volatility: densities by scipy.stats and loops, and draws."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats

from skbayes_sgld import sample
from skbayes_sgld.datasets import make_stochastic_volatility
from skbayes_sgld.own_models import StochasticVolatility, check_gradient
from skbayes_sgld.sampling import SGLD
from tests.numeric import derivative

RETURNS = np.array([0.5, -1.2, 0.0, 0.1, 2.5, -0.3])
T = len(RETURNS)


def some_theta(n_chains=3, n_params=T + 2):
    rng = np.random.default_rng(3)
    return rng.standard_normal((n_chains, n_params)) * 0.7 + [-1.0, 1.5, *np.zeros(n_params - 2)]


def log_prior(sigma, nu, h, initial_scale, sigma_rate, nu_rate):
    value = stats.expon.logpdf(sigma, scale=1 / sigma_rate)
    value += stats.expon.logpdf(nu, scale=1 / nu_rate)
    value += stats.norm.logpdf(h[0], 0, sigma if initial_scale is None else initial_scale)
    for before, after in zip(h[:-1], h[1:], strict=True):
        value += stats.norm.logpdf(after, before, sigma)
    return value


def unpack(posterior, theta):
    values = posterior.constrain(theta[None])[0]
    return values[0], values[1], np.log(values[2:])


def log_determinant(posterior, theta):
    """Of the Jacobian of (sigma, nu, h) in theta, by finite differences."""

    def moved(theta):
        sigma, nu, log_volatility = unpack(posterior, theta)
        return np.array([sigma, nu, *log_volatility])

    return np.linalg.slogdet(derivative(moved, theta))[1]


@pytest.mark.parametrize("initial_scale, temperature", [(0.5, 2.0), (None, 1.0)])
def test_densities_are_those_of_the_model_in_the_coordinates(initial_scale, temperature):
    posterior = StochasticVolatility(
        RETURNS, initial_scale=initial_scale, sigma_rate=3.0, nu_rate=0.2
    ).tempered(temperature)
    for theta in some_theta():
        sigma, nu, h = unpack(posterior, theta)
        expected = stats.t.logpdf(RETURNS, nu, 0, np.exp(h))
        np.testing.assert_allclose(posterior.log_likelihood(theta[None])[0], expected)
        prior = log_prior(sigma, nu, h, initial_scale, 3.0, 0.2)
        prior += temperature * log_determinant(posterior, theta)
        assert posterior.log_prior(theta[None])[0] == pytest.approx(prior, rel=1e-6)
        total = posterior.log_density(theta[None])[0]
        assert total == pytest.approx(sum(expected) + prior, rel=1e-6)


@pytest.mark.parametrize("initial_scale, temperature", [(0.5, 0.4), (None, 1.0)])
def test_gradients_and_batches_are_those_of_the_densities(initial_scale, temperature):
    posterior = StochasticVolatility(RETURNS, initial_scale=initial_scale).tempered(temperature)
    check_gradient(posterior)
    check_gradient(posterior, some_theta())
    long = StochasticVolatility(make_stochastic_volatility(300, random_state=0).returns)
    check_gradient(long, long.start() + 0.3 * some_theta(1, 302)[0])


def test_a_row_that_a_batch_holds_twice_counts_twice():
    posterior = StochasticVolatility(RETURNS)
    theta = some_theta(2)
    idx = np.array([[1, 1, 4], [0, 5, 0]])
    rows = posterior.log_likelihood(theta)
    np.testing.assert_allclose(
        posterior.log_likelihood(theta, idx), np.take_along_axis(rows, idx, axis=1)
    )
    single = np.array([posterior.grad_log_likelihood(theta, np.full((2, 1), t)) for t in range(T)])
    expected = [single[rows, c].sum(axis=0) for c, rows in enumerate(idx)]
    np.testing.assert_allclose(posterior.grad_log_likelihood(theta, idx), expected, atol=1e-12)


def test_natural_parameters_are_one_to_one_and_named():
    posterior = StochasticVolatility(RETURNS)
    values = np.array([[0.2, 7.0, 0.5, 0.6, 0.4, 0.3, 0.9, 1.4]])
    np.testing.assert_allclose(posterior.constrain(posterior.unconstrain(values)), values)
    assert posterior.constrained_names == ["sigma", "nu"] + [f"volatility[{t}]" for t in range(T)]
    assert posterior.param_names[:3] == ["log_sigma", "log_nu", "w[0]"]
    with pytest.raises(ValueError, match="must be positive"):
        posterior.unconstrain(-values)


def test_the_start_is_the_means_of_the_priors_and_the_level_of_the_returns():
    posterior = StochasticVolatility(1e-3 * RETURNS)
    sigma, nu, h = unpack(posterior, posterior.start())
    assert (sigma, nu) == pytest.approx((1 / 50, 10))
    np.testing.assert_allclose(h, np.log(1e-3 * np.sqrt(np.mean(RETURNS**2))))


def test_the_unit_of_the_returns_does_not_matter():
    theta = some_theta()
    gradients = [StochasticVolatility(c * RETURNS).grad(theta) for c in (1.0, 1e-4)]
    # but for the prior of the first level, whose pull is a log scale over 100^2
    np.testing.assert_allclose(*gradients, atol=2 * np.log(1e4) / 100**2 * 10)


def test_curvature_diagonal_is_that_of_the_density_on_average_over_data():
    sigma, nu, n = 0.3, 6.0, 400
    found, h = [], 1e-3
    some = [0, 1, 2, 40, 200, 401]
    for seed in range(30):
        data = make_stochastic_volatility(
            n, sigma=sigma, nu=nu, initial_volatility=1.0, random_state=seed
        )
        posterior = StochasticVolatility(data.returns)
        theta = posterior.unconstrain(np.r_[sigma, nu, data.volatility][None])[0]
        steps = h * np.eye(n + 2)[some]
        ends = posterior.grad(theta + steps), posterior.grad(theta - steps)
        found.append([(b - a)[j] / (2 * h) for a, b, j in zip(*ends, some, strict=True)])
    expected = posterior.curvature_diagonal(theta)[some]
    error = np.std(found, axis=0) / np.sqrt(len(found))
    # the walk has an end, where Whittle's approximation is off by the order of one term
    assert np.all(np.abs(np.mean(found, axis=0) - expected) < 4 * error + 0.05 * expected)


def z_scores(*pair):
    """Differences of the means and of the sds of two runs, in standard errors."""
    scores = []
    for method, statistic in {"mean": np.mean, "sd": np.std}.items():
        errors = [array_stats.mcse(x, chain_axis=0, draw_axis=1, method=method) for x in pair]
        values = [statistic(x, axis=(0, 1)) for x in pair]
        scores.append((values[0] - values[1]) / np.hypot(*errors))
    return np.concatenate(scores)


@pytest.mark.slow
def test_the_default_sampler_agrees_with_sgld_of_a_diagonal_metric():
    data = make_stochastic_volatility(60, sigma=0.2, nu=6.0, random_state=2)
    posterior = StochasticVolatility(data.returns, sigma_rate=5.0)
    default = sample(posterior, n_draws=500, n_chains=8, random_state=0)
    plain = sample(
        posterior,
        SGLD("leimkuhler_matthews"),
        preconditioner=1.0 / posterior.curvature_diagonal(posterior.start()),
        step_size=0.12,
        n_draws=230,
        n_burnin=500,
        thin=15,
        n_chains=12,
        random_state=0,
    )
    z = z_scores(np.log(default.values), np.log(plain.values))
    assert np.abs(z).max() < stats.norm.isf(5e-4 / len(z))  # by chance, one time in a thousand


@pytest.mark.parametrize(
    "returns, kwargs, match",
    [
        ([[1.0, 2.0]], {}, r"^returns of shape \(1, 2\) must be a vector"),
        ([1.0], {}, "at least two"),
        ([1.0, np.nan], {}, "finite"),
        ([0.0, 0.0], {}, "not all 0"),
        ([1.0, 2.0], {"sigma_rate": 0.0}, "^sigma_rate=0.0 is out"),
        ([1.0, 2.0], {"nu_rate": -1.0}, "^nu_rate=-1.0 is out"),
        ([1.0, 2.0], {"initial_scale": 0.0}, "^initial_scale=0.0 is out"),
    ],
)
def test_bad_input_is_named(returns, kwargs, match):
    with pytest.raises(ValueError, match=match):
        StochasticVolatility(returns, **kwargs)


@pytest.mark.parametrize("name", ["n_samples", "sigma", "nu", "initial_volatility"])
def test_bad_arguments_of_the_simulator_are_named(name):
    with pytest.raises(ValueError, match=f"^{name}=0 is out of range"):
        make_stochastic_volatility(**{name: 0})
