"""Blocks of steps whose coordinates move each on its own are the steps one by one."""

import numpy as np
import pytest

from skbayes_sgld.inference.parameterizations.noncentered import noncenter
from skbayes_sgld.likelihoods import NormalNoise
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import ConjugateNormal, FlatNoise, InverseGamma
from skbayes_sgld.sampling import SGLD, Constant, Full, Polynomial
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.run import Run


class OneByOne(SGLD):
    """SGLD whose steps are never made a block at a time."""

    def step(self, *how):
        super().step(*how)


class Halved(SGLD):
    """SGLD at half of its step size."""

    def step(self, state, eta, noise, batch, dynamics):
        super().step(state, 0.5 * eta, np.sqrt(0.5) * noise, batch, dynamics)


def noncentered(noise_prior):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = X[:, 0] + rng.standard_normal(40)
    return noncenter(GLMPosterior(X, y, NormalNoise(), ConjugateNormal(), noise_prior), 1.0)


def test_a_block_is_of_the_sampler_s_own_steps():
    posterior, mode = noncentered(FlatNoise())
    dynamics = Dynamics(Full().bind(posterior), mode.metric)
    draws = [
        run_chains(Run(sampler, dynamics, Constant(), size, 40), mode.theta[None], n_draws=20).draws
        for sampler, size in ((Halved("euler"), 0.8), (SGLD("euler"), 0.4))
    ]
    np.testing.assert_allclose(draws[0], draws[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("step_size", [20.0, 60.0, 3e4])
def test_a_block_overflows_where_its_steps_do_one_by_one(step_size):
    posterior, mode = noncentered(FlatNoise())
    dynamics, told = Dynamics(Full().bind(posterior), mode.metric), []
    for sampler in (SGLD, OneByOne):
        run = Run(sampler(), dynamics, Constant(), step_size, 40)
        with pytest.raises(ChainOverflowError) as raised:
            run_chains(run, np.tile(mode.theta, (3, 1)), n_draws=600, thin=2)
        told.append((raised.value.step, raised.value.chain, raised.value.parameter))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    "step_size, noise_prior", [(0.3, InverseGamma(2.0, 1.0)), (1.0, FlatNoise())]
)
def test_a_block_of_steps_is_the_steps_one_by_one(step_size, noise_prior):
    posterior, mode = noncentered(noise_prior)
    assert posterior.facts.normal_but_last is not None
    dynamics = Dynamics(Full().bind(posterior), mode.metric)
    start = mode.theta + np.random.default_rng(0).standard_normal((3, 5))
    schedule = Polynomial(power=0.3)
    draws = [
        run_chains(run, start, n_draws=60, n_burnin=7, thin=3, block_size=50).draws
        for run in (
            Run(sampler(), dynamics, schedule, step_size, 40) for sampler in (SGLD, OneByOne)
        )
    ]
    assert draws[0].std() > 0.5
    np.testing.assert_allclose(draws[0], draws[1], rtol=1e-10, atol=1e-10)
