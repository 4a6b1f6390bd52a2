"""Hessians in single precision: as good as the posterior needs, or told to be none."""

import numpy as np
import pytest
from scipy import sparse

from skbayes_sgld.posterior import (
    Bernoulli,
    Categorical,
    Cauchy,
    Gaussian,
    GLMPosterior,
    InverseGamma,
    Normal,
    glm,
    rounded_hessian,
)
from skbayes_sgld.posterior.rounded_hessian import rounded_expansion
from skbayes_sgld.sampling import find_mode

LIKELIHOODS = Bernoulli(), Categorical(3)


@pytest.fixture(autouse=True)
def small_data(monkeypatch):
    monkeypatch.setattr(rounded_hessian, "_FEWEST_NUMBERS", 0)


def make(likelihood, *, scale=1.0, offset=0.0, twin=None, intercept=True, weighted=False):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4)) * scale + offset
    if twin is not None:
        X[:, 1] = X[:, 0] + twin * X[:, 1]
    y = rng.integers(0, likelihood.n_classes, 3000).astype(float)
    weight = rng.uniform(0.0, 3.0, 3000) if weighted else None
    return GLMPosterior(
        X, y, likelihood, Normal(), center=True, fit_intercept=intercept, sample_weight=weight
    )


@pytest.mark.parametrize(
    "likelihood", [Bernoulli(), Categorical(3)], ids=lambda x: type(x).__name__
)
@pytest.mark.parametrize(
    "data",
    [{}, {"intercept": False}, {"weighted": True}, {"scale": 1e-6, "offset": 1.0}, {"scale": 1e8}],
    ids=str,
)
def test_the_error_is_far_below_the_widths_of_the_posterior(likelihood, data, monkeypatch):
    posterior = make(likelihood, **data)
    theta = np.random.default_rng(1).standard_normal(posterior.n_params)
    linear = theta.reshape(posterior.n_predictors, -1)
    linear[:, :4] /= data.get("scale", 1.0)
    found = rounded_expansion(posterior, theta)
    monkeypatch.setattr(glm, "rounded_expansion", lambda *args: None)
    exact = posterior.expand_likelihood(theta)
    unit = 1.0 / np.sqrt(np.diagonal(exact.curvature))
    error = (found.curvature - exact.curvature) * unit[:, None] * unit
    assert 0 < np.abs(error).max() < 1e-6
    np.testing.assert_allclose(found.grad * unit, exact.grad * unit, atol=1e-6)
    for one, other in zip(found.by_row, exact.by_row, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    if likelihood.shift_invariant:
        shift = np.tile(np.random.default_rng(2).standard_normal(found.grad.size // 3), 3)
        assert np.abs(found.curvature @ shift / np.abs(found.curvature).max()).max() < 1e-12


@pytest.mark.parametrize(
    "likelihood", [Bernoulli(), Categorical(3)], ids=lambda x: type(x).__name__
)
@pytest.mark.parametrize("data", [{"twin": 1e-4}, {"scale": 1e-25}, {"scale": 1e25}], ids=str)
def test_a_hessian_that_single_precision_does_not_hold_is_none(likelihood, data):
    posterior = make(likelihood, **data)
    theta = np.zeros(posterior.n_params)
    assert rounded_expansion(posterior, theta) is None
    assert np.linalg.eigvalsh(posterior.expand_likelihood(theta).curvature)[-1] > 0


def test_a_likelihood_of_another_form_keeps_double_precision():
    rng = np.random.default_rng(0)
    posterior = GLMPosterior(
        rng.standard_normal((50, 2)), rng.standard_normal(50), Gaussian(), Normal(), InverseGamma()
    )
    assert rounded_expansion(posterior, np.zeros(4)) is None


def test_the_mode_of_several_classes_is_that_of_exact_hessians(monkeypatch):
    posterior = make(Categorical(3), weighted=True)
    theta = np.random.default_rng(3).standard_normal(posterior.n_params)
    rough, exact = posterior.rough_curvature(theta), posterior.curvature(theta)
    assert 0 < np.abs(rough - exact).max() < 1e-6 * np.abs(exact).max()
    found = find_mode(posterior, posterior.start())
    monkeypatch.setattr(type(posterior), "rough_curvature", lambda self, theta: None)
    exact = find_mode(posterior, posterior.start())
    np.testing.assert_allclose(found.theta, exact.theta, atol=1e-5)
    np.testing.assert_allclose(found.marginal_sd, exact.marginal_sd, rtol=1e-6)


def test_rough_curvatures_are_of_many_parameters_dense_rows_and_light_tails(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = (X[:, 0] + rng.logistic(size=60) > 0).astype(float)
    theta = rng.standard_normal(6)
    light = GLMPosterior(X, y, Bernoulli(), Normal(1.0))
    assert light.rough_curvature(theta) is None  # few
    monkeypatch.setattr(glm, "MANY", 6)
    found, exact = light.rough_curvature(theta), light.curvature(theta)
    np.testing.assert_allclose(found, exact, atol=1e-5 * np.abs(exact).max())
    for X_of, prior in ((sparse.csr_array(X), Normal(1.0)), (X, Cauchy(1.0))):
        posterior = GLMPosterior(X_of, y, Bernoulli(), prior)
        assert posterior.rough_curvature(theta) is None
