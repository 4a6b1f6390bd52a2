"""Burn-in and thinning, and what is said of them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.inference.decisions import (
    Tuned,
    choose_burnin,
    choose_thin,
    usual_burnin,
    usual_thin,
)
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.sampling import Cooling
from tests.references.targets import NormalMean, make_run

SETTINGS = Settings.check(SimpleNamespace(**SGLDLogisticRegression(random_state=0).get_params()))
RUN = make_run(NormalMean())


def lengths(time, run=RUN, findings=None, **changes):
    """Burn-in and thinning of 1,000 draws whose autocorrelation time is ``time`` steps."""
    tuned, settings = Tuned(run, None, time, **findings or {}), replace(SETTINGS, **changes)
    thin = choose_thin(tuned, settings).value
    return choose_burnin(tuned, settings, 1000, thin, continues=False).value, thin


@pytest.mark.parametrize(
    ("most_spaced", "thin", "why"),
    [
        (7, 6, "12 steps to an independent draw; closer draws cost less"),
        (6, 6, "12 steps to an independent draw; closer draws cost less"),
        (5, 5, "12 steps to an independent draw, and more steps a draw would take too long"),
    ],
)
def test_only_draws_that_are_made_closer_are_said_to_take_too_long(most_spaced, thin, why):
    tuned = Tuned(RUN, None, 12.0, most_spaced=most_spaced)
    assert choose_thin(tuned, SETTINGS) == (thin, why)
    assert choose_burnin(tuned, SETTINGS, 1000, thin, continues=False).value == 120


@pytest.mark.parametrize(("time", "thin", "n_burnin"), [(12, None, 60), (90, 2, 120), (90, 1, 60)])
def test_settled_walkers_burn_in_for_half_as_long_and_for_few_of_their_draws(time, thin, n_burnin):
    settled = replace(RUN, dynamics=replace(RUN.dynamics, whitened=object()))
    assert lengths(time, settled, thin=thin)[0] == n_burnin


@pytest.mark.parametrize(
    ("time", "init", "n_burnin"),
    [(1.0, "auto", 2), (2.4, "auto", 5), (5.0, "auto", 28), (5.0, "mode", 50)],
)
def test_trajectories_of_the_pilot_count_as_burn_in_where_chains_begin_at_its_ends(
    time, init, n_burnin
):
    ends = {"pilot_ends": np.zeros((8, 3)), "pilot_steps": 22}
    assert lengths(time, findings=ends, init=init)[0] == n_burnin


def test_burn_in_is_at_most_half_of_the_run_and_begins_when_the_temperature_has_settled():
    assert lengths(3000.0) == (10_000, 100)
    assert lengths(5.0, thin=1)[0] == 50
    assert lengths(90.0, thin=1)[0] == 900
    assert lengths(120.0, thin=1)[0] == 1000  # as many steps as the draws take
    assert lengths(5.0, n_burnin=7)[0] == 7
    cooling = Settings.check(
        SimpleNamespace(
            **SGLDLogisticRegression(temperature=Cooling(hold=30, decay=70)).get_params()
        )
    )
    assert (SETTINGS.n_hot, cooling.n_hot) == (0, 100)
    assert lengths(5.0, temperature=cooling.temperature)[0] == 150
    assert np.isfinite(cooling.tau)


@pytest.mark.parametrize(
    ("time", "n_burnin", "thin"),
    [(4.0, 40, 4), (6.0, 60, 6), (20.0, 200, 10), (1e4, 10_000, 100)],
)
def test_spacing_follows_the_time_to_an_independent_draw(time, n_burnin, thin):
    assert (usual_burnin(time), usual_thin(time)) == (n_burnin, thin)
