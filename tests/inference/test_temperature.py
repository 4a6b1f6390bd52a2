"""Temperature schedules: hot first, then the temperature whose distribution is wanted."""

import numpy as np
import pytest

import skbayes_sgld
from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.inference.setting_checks import resolve_temperature
from skbayes_sgld.sampling import (
    SGHMC,
    Cooling,
    Cyclical,
    FlatDecayFlat,
    RandomWalk,
)
from skbayes_sgld.sampling.loop import run_chains
from tests.marks import slow
from tests.references.targets import NormalMean, make_run

COOLING = Cooling(high=20.0, hold=500, decay=1000)


@pytest.fixture(scope="module")
def mixture():
    """Two modes of like mass, 21 nats above the line between them."""
    from skbayes_sgld.own_models import TiedGaussianMixture

    x = np.random.default_rng(0).normal(np.repeat([0.0, 2.0], 20), np.sqrt(0.5))
    return TiedGaussianMixture(x, variance=0.5, prior_variances=(10.0, 4.0))


def chains_from_one_mode(mixture, temperature, sampler=None, step_size=0.01, n_chains=64):
    grid = mixture.grid_density(n_points=401)
    at = np.unravel_index(
        np.argmax(np.where(grid.theta2 > 0, grid.density, 0.0)), grid.density.shape
    )
    start = np.tile([grid.theta1[at[0]], grid.theta2[at[1]]], (n_chains, 1))
    run = make_run(mixture, sampler=sampler, step_size=step_size)
    run.temperature = temperature
    draws = run_chains(run, start, n_draws=200, n_burnin=1600, seed=0).draws
    return draws[..., 1] < 0, grid.mass[1]


def test_plain_sgld_holds_both_modes_only_where_it_starts_hot(mixture):
    other, mass = chains_from_one_mode(mixture, None)
    assert 0.3 < mass < 0.7 and not other.any()
    other, mass = chains_from_one_mode(mixture, COOLING)
    assert np.all(other == other[:, :1])  # cold again, no chain crosses
    error = np.sqrt(mass * (1 - mass) / len(other))
    assert other[:, 0].mean() == pytest.approx(mass, abs=3 * error)


@pytest.mark.parametrize(
    "sampler, step_size", [(SGHMC(), 0.003), slow(RandomWalk(), 0.2)], ids=repr
)
def test_every_sampler_can_start_hot(mixture, sampler, step_size):
    other, _ = chains_from_one_mode(mixture, COOLING, sampler, step_size, n_chains=16)
    assert 2 <= other[:, 0].sum() <= 14


def test_a_hot_step_is_as_wide_as_its_temperature():
    posterior = NormalMean()
    run = make_run(posterior, step_size=0.01)
    run.temperature = FlatDecayFlat(hold=3, floor=0.25)
    start = np.full((4_000, 1), posterior.y.mean())
    draws = run_chains(run, start, n_draws=4, seed=3, block_size=2).draws[..., 0]
    variance = 0.0
    for t, tau in enumerate([1.0, 1.0, 1.0, 0.75]):
        variance = (1 - 0.01 * posterior.precision) ** 2 * variance + 0.02 * tau
        error = variance * np.sqrt(2 / len(draws))
        assert draws[:, t].var() == pytest.approx(variance, abs=4 * error)


def test_an_estimator_s_draws_are_of_the_last_temperature_and_burn_in_covers_the_rest(by_steps):
    from skbayes_sgld.datasets import make_correlated_pair

    X, y = make_correlated_pair(300, random_state=0)
    cooling = {"temperature": Cooling(high=30.0, hold=50, decay=200, low=2.0), "warm_start": True}
    hot = SGLDLinearRegression(noise_variance=0.2, random_state=0, **cooling).fit(X, y)
    plain = SGLDLinearRegression(noise_variance=0.2, random_state=0).fit(X, y)
    assert hot.n_burnin_ == 250 + plain.n_burnin_
    ratio = hot.summary()["sd"] / plain.summary()["sd"]
    np.testing.assert_allclose(ratio, np.sqrt(2.0), rtol=4 / np.sqrt(4000))
    assert hot.diagnose().usable
    hot.fit(X, y)  # chains that continue are not heated again
    assert hot.n_burnin_ == hot.result_.plan.n_hot == 0 and hot.result_.plan.run.temperature is None


def test_draws_that_are_kept_while_it_cools_are_told():
    from skbayes_sgld.datasets import make_correlated_pair

    X, y = make_correlated_pair(300, random_state=0)
    model = SGLDLinearRegression(temperature="cooling", n_burnin=100, random_state=0)
    with pytest.warns(UserWarning, match="settles at step 2500 and n_burnin=100.*'auto'"):
        model.fit(X, y)


def test_nested_parameters_of_the_temperature_can_be_searched():
    model = SGLDLinearRegression(temperature="cooling").set_params(temperature__high=40.0)
    assert model.temperature.high == 40.0
    with pytest.raises(ValueError, match="temperature__high=2 has nothing to be set on"):
        SGLDLinearRegression().set_params(temperature__high=2)


@pytest.mark.parametrize("value", [Cyclical(), "polynomial"])
def test_a_temperature_that_never_settles_is_refused(value, mixture):
    with pytest.raises(ValueError, match=r"temperature=.* never settles.*'cooling'"):
        skbayes_sgld.sample(mixture, temperature=value)


def test_a_temperature_is_a_number_or_settles_within_a_thousand_million_steps():
    assert resolve_temperature("constant") == resolve_temperature(1)
    assert resolve_temperature(FlatDecayFlat(floor=0.5))[0] == 0.5
    assert resolve_temperature(Cooling(hold=10**9 - 10, decay=10))[1].settles_at == 10**9
    with pytest.raises(ValueError, match="settles after 1e[+]09 steps"):
        resolve_temperature(Cooling(hold=10**9 - 9, decay=10))
