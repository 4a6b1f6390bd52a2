"""The priors are the distributions that they name, against scipy.stats."""

import numpy as np
import pytest
from scipy import stats

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
