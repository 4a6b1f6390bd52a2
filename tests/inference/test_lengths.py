"""Burn-in and thinning, and what is said of them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.inference.decisions import Tuned, choose_lengths, choose_spacing
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.sampling import Cooling
from tests.references.targets import NormalMean, make_run

SETTINGS = Settings.check(SimpleNamespace(**SGLDLogisticRegression(random_state=0).get_params()))


def lengths(time, most_spaced=100, **changes):
    tuned = Tuned(make_run(NormalMean()), None, time, most_spaced=most_spaced)
    return choose_lengths(tuned, replace(SETTINGS, **changes), 1000, goes_on=False)


@pytest.mark.parametrize(
    ("most_spaced", "thin", "why"),
    [
        (7, 6, "12 steps to an independent draw; closer draws cost less"),
        (6, 6, "12 steps to an independent draw; closer draws cost less"),
        (5, 5, "12 steps to an independent draw, and more steps a draw would take too long"),
    ],
)
def test_only_draws_that_are_made_closer_are_said_to_take_too_long(most_spaced, thin, why):
    n_burnin, found, said = lengths(12.0, most_spaced)
    assert (n_burnin, found) == (120, thin)
    assert said["thin"].why == why


def test_settled_walkers_burn_in_for_half_as_long_and_for_few_of_their_draws():
    run = make_run(NormalMean())
    settled = replace(run, dynamics=replace(run.dynamics, whitened=object()))
    for time, thin, n_burnin in ((12.0, None, 60), (90.0, 2, 120), (90.0, 1, 60)):
        found = choose_lengths(
            Tuned(settled, None, time), replace(SETTINGS, thin=thin), 1000, False
        )
        assert found[0] == n_burnin


def test_trajectories_of_the_pilot_count_as_burn_in_where_chains_begin_at_its_ends():
    led = {"pilot_ends": np.zeros((8, 3)), "pilot_steps": 22}
    for time, init, n_burnin in ((1.0, "auto", 2), (2.4, "auto", 5), (5.0, "auto", 28)):
        tuned = Tuned(make_run(NormalMean()), None, time, **led)
        found = choose_lengths(tuned, replace(SETTINGS, init=init), 1000, False)
        assert found[0] == n_burnin
    tuned = Tuned(make_run(NormalMean()), None, 5.0, **led)
    assert choose_lengths(tuned, replace(SETTINGS, init="mode"), 1000, False)[0] == 50


def test_burn_in_is_at_most_half_of_the_run_and_begins_when_the_temperature_has_settled():
    assert lengths(3000.0, n_draws=1000)[:2] == (10_000, 100)
    assert lengths(5.0, thin=1)[0] == 50
    assert lengths(90.0, thin=1)[0] == 900
    assert lengths(120.0, thin=1)[0] == 1000  # as many steps as the draws take
    assert lengths(5.0, n_burnin=7)[0] == 7
    heat = SETTINGS.temperature
    cooling = Settings.check(
        SimpleNamespace(
            **SGLDLogisticRegression(temperature=Cooling(hold=30, decay=70)).get_params()
        )
    ).temperature
    assert (heat.n_hot, cooling.n_hot) == (0, 100)
    assert lengths(5.0, temperature=cooling)[0] == 150
    assert np.isfinite(cooling.final)


def test_spacing_follows_the_time_to_an_independent_draw():
    assert choose_spacing(4.0) == (40, 4)
    assert choose_spacing(6.0) == (60, 6)
    assert choose_spacing(20.0) == (200, 10)
    assert choose_spacing(1e4) == (10_000, 100)
