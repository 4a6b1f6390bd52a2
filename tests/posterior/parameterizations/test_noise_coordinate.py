"""The coordinate of an uncertain noise: nearly standard normal, and the posterior still exact."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, polygamma

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.inference.parameterizations.noncentered import noncenter
from skbayes_sgld.likelihoods import NormalNoise
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.parameterizations.base import Affine
from skbayes_sgld.posterior.parameterizations.noise_coordinate import (
    NormalQuantiles,
    normal_quantiles,
    straight_line,
)
from skbayes_sgld.posterior.propriety import ImproperPosteriorError
from skbayes_sgld.priors import ConjugateNormal, InverseGamma, Laplace, Normal
from tests.marks import slow

X = np.random.default_rng(0).standard_normal((10, 30))
Y = 2.0 * X[:, 0] + np.random.default_rng(1).standard_normal(10)


def wall(gamma):
    """Log density that falls like exp(-exp(-gamma)), and slowly on the other side."""
    return -2.0 * gamma - np.exp(-2.0 * gamma)


@pytest.fixture(scope="module", params=[0.5, 2.0])
def tempered(request):
    line = straight_line(wall, 0.0, 10.0, request.param)
    return normal_quantiles(wall, line, request.param), request.param


def test_gamma_is_normal_in_its_quantiles(tempered):
    quantiles, temperature = tempered
    x = np.sqrt(temperature) * np.linspace(-4.5, 4.5, 91)
    at = quantiles.forward(x[:, None])[:, 0]
    density = (wall(at) / temperature) + quantiles.expand(x[:, None]).log_jacobian
    expected = stats.norm.logpdf(x, scale=np.sqrt(temperature))
    off = density - expected
    np.testing.assert_allclose(off, off[45], atol=0.01)


def test_the_map_has_no_jump_at_its_knots(tempered):
    quantiles, _ = tempered
    knots = quantiles.knots
    below, above = (
        quantiles.forward(np.nextafter(knots, side)[:, None]) for side in (-np.inf, np.inf)
    )
    np.testing.assert_allclose(below, above, rtol=0, atol=1e-12)


def test_derivatives_are_those_of_the_map_and_go_on_straight_beyond_it(tempered):
    quantiles, temperature = tempered
    x = np.sqrt(temperature) * np.r_[np.linspace(-5.93, 5.93, 40), -40.0, 40.0][:, None]
    h, ones = 1e-5, np.ones_like(x)
    slope = (quantiles.forward(x + h) - quantiles.forward(x - h)) / (2 * h)
    at = quantiles.expand(x)
    np.testing.assert_allclose(at.pull_back(ones, 0.0), slope, rtol=1e-6)
    np.testing.assert_allclose(at.log_jacobian, np.log(slope[:, 0]), atol=1e-6)
    above, below = (quantiles.expand(x + move).log_jacobian for move in (h, -h))
    bend = at.pull_back(0.0 * ones, 1.0)
    np.testing.assert_allclose(bend[:, 0], (above - below) / (2 * h), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(bend[-2:], 0.0)
    assert np.all(slope > 0)
    np.testing.assert_allclose(quantiles.inverse(quantiles.forward(x)), x, atol=1e-8)


@pytest.mark.parametrize("level", [-15.0, 19.0, 20.5, 45.0, 150.0])
@pytest.mark.parametrize("shape", [2.0, 300.0])
def test_a_noise_far_from_where_the_search_begins_is_found(level, shape):
    line = straight_line(lambda g: -shape * (g - level + np.exp(level - g)), 0.0, 10.0, 1.0)
    np.testing.assert_allclose(line.level, level + np.log(shape) - digamma(shape), atol=0.02)
    np.testing.assert_allclose(line.root[0, 0], np.sqrt(polygamma(1, shape)), rtol=0.02)


@pytest.mark.parametrize("rise", [0.05, 0.0, -0.1], ids=["rises", "is flat", "hardly falls"])
def test_a_noise_without_an_upper_end_is_improper(rise):
    with pytest.raises(ImproperPosteriorError, match="no upper end"):
        straight_line(lambda g: rise * g - np.exp(-g), 0.0, 10.0, 1.0)


@pytest.mark.parametrize("prior", [Normal(), Laplace(), ConjugateNormal()])
def test_a_prior_of_noise_far_above_that_of_y_is_followed(prior):
    shape, scale = 40.0, 40.0 * np.exp(25.0)
    X = np.random.default_rng(2).standard_normal((50, 2))
    y = X @ [1.0, -1.0] + np.random.default_rng(3).standard_normal(50)
    model = SGLDLinearRegression(
        prior=prior, noise_prior=InverseGamma(shape, scale), fit_intercept=False, random_state=0
    ).fit(X, y)
    draws = np.log(model.posterior_["noise_variance"]).ravel()
    # y tells nothing but its number: all of it is noise
    expected = np.log(scale) - digamma(shape + 25.0), np.sqrt(polygamma(1, shape + 25.0))
    assert abs(draws.mean() - expected[0]) < 4.0 * expected[1] / np.sqrt(400.0)
    assert abs(draws.std() / expected[1] - 1.0) < 4.0 / np.sqrt(800.0)


def test_few_rows_have_quantiles_and_many_a_line():
    few, many = (
        noncenter(
            GLMPosterior(
                X[:, :3], Y, NormalNoise(), Normal(), InverseGamma(0.5, 0.5), sample_weight=weight
            ),
            1.0,
        )
        for weight in (np.ones(10), np.full(10, 9.0))
    )
    assert isinstance(few[0].coordinates.scale_map, NormalQuantiles)
    assert isinstance(many[0].coordinates.scale_map, Affine)
    assert not few[0].facts.steep and not many[0].facts.steep


@pytest.mark.parametrize(
    "prior", [slow(Normal(100.0), id="normal"), pytest.param(ConjugateNormal(30.0), id="conjugate")]
)
def test_the_noise_of_a_third_as_many_rows_as_columns_is_that_of_quadrature(prior):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a chain that stands still at small noise
        model = SGLDLinearRegression(
            prior=prior, noise_prior=InverseGamma(0.5, 0.5), random_state=0
        ).fit(X, Y)
    gamma = np.linspace(-12.0, 25.0, 4000)
    noise = np.exp(gamma)
    # y minus its mean is normal, with the coefficients and the flat intercept integrated out
    basis = np.linalg.svd(np.eye(10) - 0.1)[0][:, :9]
    values, vectors = np.linalg.eigh(basis.T @ X @ X.T @ basis)
    scale = prior.scale**2 * (noise if isinstance(prior, ConjugateNormal) else np.ones_like(noise))
    variance = scale[:, None] * values + noise[:, None]
    projected = vectors.T @ basis.T @ Y
    log_density = stats.norm.logpdf(projected, scale=np.sqrt(variance)).sum(axis=1)
    log_density += stats.invgamma.logpdf(noise, 0.5, scale=0.5) + gamma
    weight = np.exp(log_density - log_density.max())
    cdf = np.cumsum(weight) / weight.sum()
    draws = np.log(model.posterior_["noise_variance"]).ravel()
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        found = np.interp(np.quantile(draws, level), gamma, cdf)
        # 3,000 effective draws at the least
        assert abs(found - level) < 4.0 * np.sqrt(level * (1.0 - level) / 3000.0)
    assert model.summary()["ess_bulk"].min() > 3000
    # the mean of a coefficient, given each noise, is that of a ridge regression
    means = (X.T @ basis @ vectors) @ (scale[:, None] / variance * projected).T
    exact = means @ weight / weight.sum()
    table = model.summary().iloc[:30]
    np.testing.assert_allclose(table["mean"], exact, atol=4.5 * table["sd"].max() / np.sqrt(3000))
