"""Every registered prior of the noise: derivatives, mass, and the same answer in any units of y."""

import numpy as np
import pytest
from scipy import integrate, stats

from skbayes_sgld._components import resolve
from skbayes_sgld.priors import (
    NOISE_PRIORS,
    Exponential,
    HalfCauchy,
    HalfNormal,
    HalfStudentT,
    InverseGamma,
)
from tests.numeric import assert_derivative, derivative

GAMMA = np.array([-2.0, -0.4, 0.3, 1.7])


def check_noise_prior(name):
    """Raise where the noise prior of this name contradicts itself."""
    prior = resolve(name, NOISE_PRIORS, "noise_prior").for_data(1.3)
    slope = np.diagonal(derivative(prior.log_density, GAMMA))
    assert_derivative(prior.grad(GAMMA), slope, "gradient")
    bend = -np.diagonal(derivative(prior.grad, GAMMA))
    curvature = [prior.curvature(float(gamma)) for gamma in GAMMA]
    assert_derivative(curvature, bend, "curvature")
    # in gamma a density has a mass where it falls without end on both sides
    falls = prior.grad(np.array([-60.0]))[0] > 0 > prior.grad(np.array([60.0]))[0]
    assert falls == prior.proper, f"proper={prior.proper}, and its slopes show proper={falls}"
    if prior.proper:
        # an inverse gamma law of shape 0.001 goes on where variances are no longer numbers
        grid = np.linspace(-60.0, 700.0, 100_001)
        below = integrate.cumulative_trapezoid(np.exp(prior.log_density(grid)), grid, initial=0.0)
        gamma = np.log(prior.sample(np.random.default_rng(0), 200_000))
        inside = gamma[gamma < grid[-1]]
        apart = stats.kstest(inside, lambda at: np.interp(at, grid, below / below[-1]))
        assert apart.pvalue > 1e-6, "draws of sample are not of the density"
    # in units ten times smaller y's variance is 100 times larger: the density only moves
    moved = resolve(name, NOISE_PRIORS, "noise_prior").for_data(130.0)
    shift = moved.log_density(GAMMA + np.log(100.0)) - prior.log_density(GAMMA)
    np.testing.assert_allclose(shift, shift[0], atol=1e-9, err_msg="it depends on the units of y")


@pytest.mark.parametrize("name", NOISE_PRIORS)
def test_a_noise_prior_is_what_it_says_it_is(name):
    check_noise_prior(name)


def test_noise_priors_are_the_laws_they_name_on_the_log_scale():
    variance, sd = np.exp(GAMMA), np.exp(GAMMA / 2)
    laws = {  # each with the log of the Jacobian
        InverseGamma(2.5, 0.8): stats.invgamma(2.5, scale=0.8).logpdf(variance) + GAMMA,
        NOISE_PRIORS["flat"](): GAMMA / 2,
        HalfNormal(0.7): stats.halfnorm(scale=0.7).logpdf(sd) + GAMMA / 2,
        HalfCauchy(0.7): stats.halfcauchy(scale=0.7).logpdf(sd) + GAMMA / 2,
        HalfStudentT(4.0, 0.7): stats.t(4.0, scale=0.7).logpdf(sd) + GAMMA / 2,
        Exponential(0.7): stats.expon(scale=0.7).logpdf(sd) + GAMMA / 2,
    }
    for prior, expected in laws.items():
        assert np.ptp(prior.log_density(GAMMA) - expected) < 1e-12, prior


def test_automatic_scales_of_the_noise_follow_y():
    for family in (HalfNormal, HalfCauchy, HalfStudentT, Exponential):
        assert family().for_data(9.0).scale == 3.0
        assert family(scale=2.0).for_data(9.0).scale == 2.0
    assert InverseGamma(shape=0.5).for_data(9.0).scale == 4.5
