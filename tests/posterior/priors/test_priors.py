"""The priors are the distributions that they name, against scipy.stats."""

import numpy as np
import pytest
from scipy import integrate, stats

from skbayes_sgld.posterior import (
    NOISE_PRIORS,
    Cauchy,
    ConjugateNormal,
    Exponential,
    HalfCauchy,
    HalfNormal,
    HalfStudentT,
    InverseGamma,
    Laplace,
    Normal,
    StudentT,
)

D = 3


@pytest.mark.parametrize("scale", [0.5, np.array([0.3, 1.0, 2.0])], ids=["number", "vector"])
@pytest.mark.parametrize("location", [0.0, np.array([0.1, 0.2, -0.3])], ids=["zero", "vector"])
def test_priors_are_the_laws_they_name(scale, location):
    rng = np.random.default_rng(2)
    coef, gamma = rng.standard_normal((2, 1, D)), np.array([0.3, -0.6])
    sigma = np.exp(gamma / 2)[:, None]
    exact = {
        Normal: stats.norm(location, scale).logpdf(coef[:, 0]),
        Laplace: stats.laplace(location, scale).logpdf(coef[:, 0]),
        ConjugateNormal: stats.norm(location, scale * sigma).logpdf(coef[:, 0]),
        Cauchy: stats.cauchy(location, scale).logpdf(coef[:, 0]),
        StudentT: stats.t(4.0, location, scale).logpdf(coef[:, 0]),
    }
    for family, expected in exact.items():
        got = family(scale=scale, location=location).log_density(coef, gamma)
        assert np.ptp(got - expected.sum(1)) < 1e-12, family.__name__


def test_noise_priors_are_the_laws_they_name_on_the_log_scale():
    gamma = np.array([-1.0, 0.2, 1.5])
    exact = stats.invgamma(2.5, scale=0.8)
    expected = exact.logpdf(np.exp(gamma)) + gamma  # the Jacobian
    assert np.ptp(InverseGamma(2.5, 0.8).log_density(gamma) - expected) < 1e-12
    flat = NOISE_PRIORS["flat"]().log_density(gamma)
    assert np.ptp(flat - gamma / 2) < 1e-12  # d sigma = exp(gamma / 2) / 2 d gamma
    on_sigma = {
        HalfNormal(0.7): stats.halfnorm(scale=0.7),
        HalfCauchy(0.7): stats.halfcauchy(scale=0.7),
        HalfStudentT(4.0, 0.7): stats.t(4.0, scale=0.7),
        Exponential(0.7): stats.expon(scale=0.7),
    }
    for prior, exact in on_sigma.items():
        expected = exact.logpdf(np.exp(gamma / 2)) + gamma / 2
        assert np.ptp(prior.log_density(gamma) - expected) < 1e-12, prior


def test_automatic_scales_of_the_noise_follow_y():
    for family in (HalfNormal, HalfCauchy, HalfStudentT, Exponential):
        assert family().for_data(9.0).scale == 3.0
        assert family(scale=2.0).for_data(9.0).scale == 2.0
    assert InverseGamma(shape=0.5).for_data(9.0).scale == 4.5


def test_gamma_gradient_of_the_conjugate_prior_has_the_derived_sign():
    # the handout prints d/2 with a plus in (4.2); the density falls with gamma at beta = mu
    coef, gamma = np.zeros((1, 1, D)), np.zeros(1)
    in_gamma = ConjugateNormal(scale=2.0).grad(coef, gamma)[1]
    assert in_gamma[0] == pytest.approx(-D / 2)


@pytest.mark.parametrize("family", [Laplace, StudentT, Cauchy])
def test_smoothed_priors_are_averages_over_normal_errors(family):
    spread, scale, location = 0.7, 0.4 if family is Laplace else 2.0, 0.1
    sharp = family(scale=scale, location=location)
    smooth = sharp.smoothed(np.full((1, 1), spread))
    for beta in (-1.0, 0.1, 0.5):
        coef = np.full((1, 1, 1), beta)

        def integrand(e, beta=beta):
            return sharp.log_density(np.full((1, 1, 1), beta + e), None)[0] * stats.norm.pdf(
                e, scale=spread
            )

        expected = integrate.quad(integrand, -8, 8, points=[location - beta], limit=200)[0]
        assert smooth.log_density(coef, None)[0] == pytest.approx(expected, abs=1e-5)
        h = 1e-4
        values = [smooth.log_density(coef + s, None)[0] for s in (-h, 0, h)]
        slope, bend = (values[2] - values[0]) / (2 * h), np.diff(values, 2)[0] / h**2
        assert smooth.grad(coef, None)[0].item() == pytest.approx(slope, abs=1e-6)
        assert smooth.curvature(coef[0], None)[0].item() == pytest.approx(-bend, abs=1e-5)
