"""Every registered prior of the noise: derivatives, mass, and the same answer in any units of y."""

import numpy as np
import pytest

from skbayes_sgld._components import resolve
from skbayes_sgld.posterior import NOISE_PRIORS
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
    assert falls == prior.proper, "proper"
    if prior.proper:
        # of draws the score averages 0, and its square what the curvature does
        gamma = np.log(prior.sample(np.random.default_rng(0), 4000))
        bend = np.array([prior.curvature(float(each)) for each in gamma])
        for moment in (prior.grad(gamma), np.square(prior.grad(gamma)) - bend):
            error = moment.std() / np.sqrt(len(moment))
            assert abs(moment.mean()) < 5 * error, "sample"
    # in units ten times smaller y's variance is 100 times larger: the density only moves
    moved = resolve(name, NOISE_PRIORS, "noise_prior").for_data(130.0)
    shift = moved.log_density(GAMMA + np.log(100.0)) - prior.log_density(GAMMA)
    np.testing.assert_allclose(shift, shift[0], atol=1e-9, err_msg="it depends on the units of y")


@pytest.mark.parametrize("name", NOISE_PRIORS)
def test_a_noise_prior_is_what_it_says_it_is(name):
    check_noise_prior(name)
