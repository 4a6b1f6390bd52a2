"""A dispersion by its quantiles: the same posterior, in which it is nearly normal."""

import numpy as np
import pytest
from scipy.stats import betabinom, nbinom

from skbayes_sgld import (
    SGLDBetaBinomialRegressor,
    SGLDNegativeBinomialRegressor,
    SGLDPoissonRegressor,
)
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.likelihoods import NegativeBinomial
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.parameterizations.quantiles import in_quantiles
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling.tuning.mode import newton_mode
from tests.marks import SHORT, short_chains
from tests.numeric import assert_derivative, derivative_by_chain

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 1))
Y = RNG.poisson(np.exp(1.0 + 0.2 * X[:, 0])).astype(float)
TOTALS = RNG.binomial(6, 0.4, 200)
GRID = np.linspace(-0.4, 0.6, 61), np.linspace(-14.0, 1.0, 241)  # coefficient, own coordinate


def of_counts(temperature=1.0):
    """Posterior of counts in its own coordinates and in quantiles, and points about the mode."""
    posterior = GLMPosterior(X, Y, NegativeBinomial(), Normal())
    mode = newton_mode(posterior, posterior.start())
    transformed = in_quantiles(
        posterior, mode.theta, float(mode.metric.marginal_sd[-1]), temperature
    )
    moves = 0.1 * RNG.standard_normal((5, 2))
    return posterior, transformed, np.column_stack([mode.theta[:-1] + moves, RNG.normal(size=5)])


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_the_density_is_that_of_the_model_times_the_jacobian(temperature):
    posterior, transformed, x = of_counts(temperature)
    theta, slope = x.copy(), derivative_by_chain(transformed.reported.values, x)[:, -1, -1]
    theta[:, -1] = np.log(transformed.reported.values(x)[:, -1])
    slope /= np.exp(theta[:, -1])  # of the log dispersion
    expected = posterior.log_density(theta) + temperature * np.log(slope)
    np.testing.assert_allclose(transformed.log_density(x), expected, rtol=1e-8)
    values = posterior.reported.values(theta)
    np.testing.assert_allclose(transformed.reported.values(x), values)
    np.testing.assert_allclose(transformed.reported.theta(values), x, atol=1e-8)


def test_gradient_and_curvature_are_those_of_the_density():
    _, transformed, x = of_counts()
    expected = derivative_by_chain(transformed.log_density, x)
    assert_derivative(transformed.grad(x), expected, "gradient", rtol=1e-5)
    expected = -derivative_by_chain(transformed.grad, x[:1])[0]
    assert_derivative(transformed.curvature(x[0]), expected, "curvature", rtol=1e-5)


def counts(b, t):
    r, mu = np.exp(-t), np.exp(1.0 + b * X[:60, 0])
    return nbinom.logpmf(Y[:60], r, r / (r + mu))


def totals(b, t):
    r, p = np.exp(-t), 1.0 / (1.0 + np.exp(-b * X[:60, 0]))
    return betabinom.logpmf(TOTALS[:60], 6, r * p, r * (1.0 - p))


@pytest.mark.parametrize("family", ["counts", "totals"])
def test_draws_have_the_moments_of_quadrature(family, by_steps):
    estimator, log_likelihood, rows = {
        "counts": (SGLDNegativeBinomialRegressor, counts, {"exposure": np.full(60, np.e)}),
        "totals": (SGLDBetaBinomialRegressor, totals, {"n_trials": np.full(60, 6)}),
    }[family]
    y = {"counts": Y, "totals": TOTALS}[family][:60]
    model = estimator(prior=Normal(scale=1.0), fit_intercept=False, random_state=0)
    model.fit(X[:60], y, **rows)
    assert model.result_.plan.choices["parameterization"].value == "quantiles"
    assert str(model.result_.plan.choices["sampler"].value) == "SGLD()"
    b, t = np.meshgrid(*GRID, indexing="ij")
    value = log_likelihood(b[..., None], t[..., None]).sum(axis=-1)
    value += 0.5 * t - np.exp(0.5 * t) - 0.5 * b**2  # the default prior of the square root
    weight = np.exp(value - value.max())
    own = np.exp(t) if family == "counts" else 1.0 / (1.0 + np.exp(-t))
    draws = model.result_.draws.values
    for at, exact in ((0, b), (1, np.sqrt(own))):
        found = draws[..., at] if at == 0 else np.sqrt(draws[..., at])
        error = found.std() / np.sqrt(effective_sample_size(found[..., None])[0])
        mean = np.average(exact, weights=weight)
        sd = np.sqrt(np.average(np.square(exact - mean), weights=weight))
        assert abs(found.mean() - mean) < 4.0 * error + 0.01 * sd
        assert found.std() / sd == pytest.approx(1.0, abs=0.01 + 4.0 * error / sd)


def test_a_dispersion_that_is_known_keeps_its_logarithm():
    y = RNG.poisson(np.exp(1.0 + 0.2 * X[:, 0]) * RNG.exponential(size=200))
    rows = np.tile(X, (8, 1)), np.tile(y, 8)
    choice = SGLDNegativeBinomialRegressor(random_state=0).fit(*rows).result_.plan.choices
    assert choice["parameterization"].value == "centered"
    assert "dispersion is known to" in choice["parameterization"].why


@short_chains
def test_coordinates_that_are_asked_for_are_taken():
    for name in ("centered", "quantiles"):
        model = SGLDNegativeBinomialRegressor(parameterization=name, random_state=0, **SHORT)
        model.fit(X, Y)
        assert model.result_.plan.choices["parameterization"].value == name
        assert model.result_.plan.choices["parameterization"].given
    with pytest.raises(ValueError, match="'quantiles' needs a dispersion of counts"):
        SGLDPoissonRegressor(parameterization="quantiles").fit(X, Y)
