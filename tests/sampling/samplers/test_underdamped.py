"""SGHMC and the thermostat, whose friction swings most in few dimensions."""

import numpy as np
import pytest
from scipy import stats

import skbayes_sgld
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.sampling import SGHMC, SGNHT
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.tuning.pilots import StandardNormal
from tests.references.targets import assert_moments, make_run


def target(name):
    """A posterior of one parameter, and its distribution."""
    from skbayes_sgld.own_models import FunctionPosterior

    if name == "normal":
        return StandardNormal(1), stats.norm()
    density = (lambda x: 2 * np.log(x[:, 0]) - 2 * x[:, 0], lambda x: 2 / x - 2, 1)
    gamma = FunctionPosterior(*density, transforms={"theta[0]": "positive"})
    return gamma, stats.gamma(3, scale=0.5)


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("gamma", 0),
        *(pytest.param("gamma", seed, marks=pytest.mark.slow) for seed in range(1, 24)),
        *(pytest.param("normal", seed, marks=pytest.mark.slow) for seed in range(24)),
    ],
)
def test_one_parameter_with_automatic_settings_does_not_overflow(name, seed):
    # with the paper's thermostat every one of these overflowed
    posterior, exact = target(name)
    draws = skbayes_sgld.sample(posterior, "sgnht", n_draws=600, random_state=seed)
    assert_moments(draws, exact.mean(), exact.std(), rough=0.02)  # 1.3 % are the step's


@pytest.mark.parametrize("friction", [0.05, 0.3])
def test_the_split_step_has_the_variance_of_a_normal_target_whatever_the_step_size(friction):
    split = SGHMC(friction, "leimkuhler_matthews")
    run = make_run(StandardNormal(1000), sampler=split, step_size=1.0)
    start = np.random.default_rng(0).standard_normal((2, 1000))
    draws = run_chains(run, start, n_draws=60, n_burnin=100, thin=10).draws
    ess = effective_sample_size(draws)
    error = np.sqrt(2.0 / ess.sum())  # of a variance
    assert abs(draws.var() - 1.0) < 4 * error < 0.1
    paper = make_run(StandardNormal(1000), sampler=SGHMC(friction), step_size=1.0)
    wide = run_chains(paper, start, n_draws=60, n_burnin=100, thin=10).draws.var()
    assert abs(wide - SGHMC(friction).gaussian_inflation(1.0)) < 8 * error * wide
    assert wide > 1.2


def test_an_integrator_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match=r"integrator='verlet'.*'euler', 'leimkuhler_matthews'"):
        SGHMC(integrator="verlet").check()


def test_of_many_parameters_the_thermostat_is_the_papers():
    # from 160 on at this step
    start = np.zeros((2, 400))
    paper, ours = (
        run_chains(make_run(StandardNormal(400), sampler=rule), start, n_draws=1, thin=50).draws
        for rule in (SGNHT(inertia=1.0), SGNHT())
    )
    np.testing.assert_array_equal(paper, ours)
