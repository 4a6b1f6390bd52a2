"""Coordinates of half-Cauchy scales: nearly normal under the prior, and the density still exact."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld.inference.parameterizations.learned_scales import LearnedScales
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.likelihoods import Bernoulli, NormalNoise
from skbayes_sgld.own_models import check_gradient
from skbayes_sgld.posterior import GLMPosterior, HierarchicalPosterior
from skbayes_sgld.posterior.parameterizations.base import Affine
from skbayes_sgld.posterior.parameterizations.conditional import CholeskyScales, ColumnScales
from skbayes_sgld.posterior.parameterizations.half_cauchy import HalfCauchyScales
from skbayes_sgld.posterior.parameterizations.hyperparameters import by_columns, noncentered_scales
from skbayes_sgld.priors import Horseshoe, InverseGamma
from tests.numeric import derivative_by_chain

MEDIANS = np.array([-1.5, np.nan, 0.7])


def test_the_log_of_a_half_cauchy_variable_becomes_nearly_normal():
    level, root = np.array([-1.5, 0.2, 0.7]), np.eye(3)  # 0 where the logs are those of the medians
    u = np.linspace(-3.0, 3.0, 61)
    at = HalfCauchyScales(MEDIANS, level, root).expand(np.repeat(u[:, None], 3, axis=1))
    exact = np.log(np.tan(0.5 * np.pi * stats.norm.cdf(u)))
    np.testing.assert_allclose(at.theta[:, 0], exact - 1.5, atol=0.3)
    np.testing.assert_allclose(at.theta[:, 2], exact + 0.7, atol=0.3)
    np.testing.assert_array_equal(at.theta[:, 1], 0.2 + u)  # not half-Cauchy


def test_the_map_has_its_inverse_its_jacobian_and_its_chain_rule():
    rng = np.random.default_rng(0)
    map_ = HalfCauchyScales(MEDIANS, np.array([3.0, 0.2, -4.0]), rng.standard_normal((3, 3)))
    np.testing.assert_allclose(map_.forward(np.zeros((1, 3)))[0], [3.0, 0.2, -4.0], rtol=1e-12)
    x = 3.0 * rng.standard_normal((5, 3))
    at, weight = map_.expand(x), rng.standard_normal((5, 3))
    np.testing.assert_allclose(map_.inverse(at.theta), x, atol=1e-9)
    slopes = derivative_by_chain(map_.forward, x)
    constant = np.linalg.slogdet(slopes)[1] - at.log_jacobian
    np.testing.assert_allclose(constant, constant[0], atol=1e-6)

    def tilted(x):
        found = map_.expand(x)
        return (found.theta * weight).sum(axis=1) + 2.5 * found.log_jacobian

    np.testing.assert_allclose(
        at.pull_back(weight, 2.5), derivative_by_chain(tilted, x), rtol=1e-6, atol=1e-6
    )
    assert np.isfinite(map_.inverse(1e3 * weight)).all()


def joint(likelihood, collinear=False):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 4))
    if collinear:
        X[:, 1] = X[:, 0] + 0.01 * X[:, 1]
    y = X[:, 0] + X[:, 1] + rng.standard_normal(40)
    y = y if likelihood.infers_noise else (y > 0) * 1.0
    noise = InverseGamma(2.0, 1.0) if likelihood.infers_noise else None
    prior = Horseshoe()
    glm = GLMPosterior(X, y, likelihood, prior.conditional(), noise, intercept_at_mean=True)
    return HierarchicalPosterior(glm, prior)


@pytest.mark.parametrize("likelihood", [NormalNoise(), Bernoulli()], ids=["noise", "classes"])
@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_single_columns_keep_the_density(likelihood, temperature):
    model = joint(likelihood)
    center, eta = np.split(model.start(), [model.n_linear])
    factors = noncentered_scales(model, center + 0.1, eta + 0.2, None, 0.0, temperature)
    posterior = by_columns(factors)
    check_gradient(posterior)
    map_, rng = posterior.coordinates, np.random.default_rng(0)
    phi = 0.5 * rng.standard_normal((3, posterior.n_params))
    log_jacobian = np.linalg.slogdet(derivative_by_chain(map_.forward, phi))[1]
    expected = model.log_density(map_.forward(phi)) + temperature * log_jacobian
    np.testing.assert_allclose(np.ptp(posterior.log_density(phi) - expected), 0.0, atol=1e-4)
    np.testing.assert_allclose(map_.inverse(map_.forward(phi)), phi, atol=1e-8)
    # at the reference, coefficients have the mean and the sds that factors give them
    here = np.zeros((1, posterior.n_params))
    np.testing.assert_allclose(map_.forward(here), factors.coordinates.forward(here), atol=1e-9)
    L = model.n_linear
    roots = [
        derivative_by_chain(each.coordinates.forward, here)[0, :L, :L]
        for each in (posterior, factors)
    ]
    covariance = roots[1] @ roots[1].T
    np.testing.assert_allclose(np.square(roots[0]), np.diag(np.diag(covariance)), atol=1e-7)


@pytest.mark.parametrize("collinear, kind", [(False, ColumnScales), (True, CholeskyScales)])
def test_collinear_columns_are_standardised_together(collinear, kind):
    model = joint(NormalNoise(), collinear)
    found, mode = LearnedScales.apply(model, Settings.of({}))
    assert isinstance(found.coordinates.coefficients, kind)
    # the metric is that of the coefficients at the mode of their scales
    H = -found.grad(mode.theta + 1e-4 * np.eye(found.n_params)) + found.grad(mode.theta[None])
    L = model.n_linear
    np.testing.assert_allclose(
        (H / 1e-4)[:L, :L],
        np.linalg.inv(mode.metric.scale(np.eye(found.n_params)))[:L, :L],
        atol=1e-3,
    )


@pytest.mark.parametrize("copied, kind", [(False, HalfCauchyScales), (True, Affine)])
def test_scales_of_copied_columns_stay_as_they_are(copied, kind):
    model = joint(Bernoulli(), copied)
    center, eta = np.split(model.start(), [model.n_linear])
    found = noncentered_scales(model, center, eta, None, 0.0, 1.0)
    assert isinstance(found.coordinates.scale_map, kind)
    assert found.facts.path_length == (1.8 if copied else 2.2)
