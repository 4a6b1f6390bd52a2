"""Every registered schedule: a positive multiplier, its formula and its properties."""

import numpy as np
import pytest

from skbayes_sgld._components import resolve
from skbayes_sgld.sampling import (
    SCHEDULES,
    Constant,
    Cooling,
    Cyclical,
    FlatDecayFlat,
    Harmonic,
    Polynomial,
    Schedule,
)

STEPS = np.r_[np.arange(2000), 10 ** np.arange(4, 10)]


def check_schedule(name):
    """Raise where the schedule of this name is not what the runner takes it for."""
    schedule = resolve(name, SCHEDULES, "schedule")
    multipliers = schedule(STEPS)
    assert multipliers.dtype == np.float64
    assert multipliers.shape == STEPS.shape
    assert np.isfinite(multipliers).all(), "a multiplier is not finite"
    assert (multipliers > 0).all(), "a multiplier is not positive"
    one_by_one = [float(schedule(int(t))) for t in STEPS]
    np.testing.assert_allclose(multipliers, one_by_one, rtol=1e-14, err_msg="by t and by array")
    square = STEPS[:2000].reshape(40, 50)
    np.testing.assert_array_equal(schedule(square), multipliers[:2000].reshape(40, 50))
    np.testing.assert_array_equal(schedule(STEPS), multipliers, "it does not repeat itself")
    check_decay(schedule)


def check_decay(schedule):
    """Raise where it does not settle, or decay, as it says."""
    if schedule.settles_at < 1e9:
        later = schedule(schedule.settles_at + STEPS)
        np.testing.assert_allclose(later, later[0], rtol=1e-12, err_msg="settles_at")
    if not np.isnan(schedule.decay_power):  # of means, over the cycles of those that have some
        far, further = (schedule(start + np.arange(5000)).mean() for start in (10**9, 10**10))
        power = np.log10(far / further)
        said = schedule.decay_power
        assert abs(power - said) < 0.01, f"decay_power={said:g}, and it is {power:.2f}"


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_a_positive_multiplier_of_any_steps(name):
    check_schedule(name)


@pytest.mark.parametrize(
    ("schedule", "formula"),
    [
        (Constant(), lambda t: 1.0),
        (Harmonic(t0=30.0), lambda t: 30.0 / t),
        (Polynomial(offset=6.0, power=0.55), lambda t: (6.0 + t) ** -0.55),
        (FlatDecayFlat(hold=9, power=2.0, floor=0.2), lambda t: min(1.0, max(0.2, (9 / t) ** 2))),
        (Cyclical(period=7), lambda t: 0.5 * (1.0 + np.cos(np.pi * ((t - 1) % 7) / 7))),
        (Cooling(8.0, hold=2, decay=3), lambda t: 8.0 * 0.5 ** min(max(t - 3, 0), 3)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_multipliers_are_those_of_the_published_formula_whose_steps_count_from_one(
    schedule, formula
):
    expected = [formula(t) for t in range(1, 41)]
    np.testing.assert_allclose(schedule(np.arange(40)), expected, rtol=1e-13)


EXAMPLES = {
    "harmonic": [Harmonic(t0=30.0)],
    "polynomial": [
        Polynomial(),
        Polynomial(offset=0.0, power=1.0),
        Polynomial(power=0.5),
        Polynomial(power=1.5),
        Polynomial(power=0.0),
    ],
    "flat_decay_flat": [
        FlatDecayFlat(hold=7.0, power=0.55, floor=0.2),
        FlatDecayFlat(power=0.0),
        FlatDecayFlat(hold=10.0, floor=1.0),
    ],
    "cyclical": [Cyclical(period=50)],
    "cooling": [Cooling(), Cooling(high=30.0, hold=0, decay=7, low=2.0)],
}
every = pytest.mark.parametrize(
    "schedule",
    # one that is registered and has no examples yet is tried as it is by default
    [s for name, cls in SCHEDULES.items() for s in EXAMPLES.get(name, [cls()])],
    ids=repr,
)


@pytest.mark.parametrize(
    "schedule, holds",
    [
        (Constant(), False),
        (Cyclical(period=50), False),
        (Harmonic(), True),  # the sum of 1 / t is infinite, and that of 1 / t^2 is not
        (Polynomial(power=0.5), False),
        (Polynomial(power=0.51), True),
        (Polynomial(power=1.01), False),
        (FlatDecayFlat(), False),
    ],
)
def test_condition_27_holds_for_infinite_sums_of_steps_and_finite_ones_of_squares(schedule, holds):
    assert schedule.satisfies_condition_27 is holds


@every
def test_a_schedule_is_constant_from_the_step_at_which_it_settles(schedule):
    at = schedule.settles_at
    if np.isfinite(at):
        assert np.ptp(schedule(at + np.arange(5000))) < 1e-12
        assert at == 0 or schedule(at - 1) > schedule(at)
    else:
        values = schedule(np.arange(5000))
        assert np.unique(values[-100:]).size > 1


def test_of_a_user_s_own_schedule_nothing_is_claimed():
    class Halving(Schedule):
        def __call__(self, t):
            return 0.5 ** np.asarray(t, dtype=float)

    assert Halving().satisfies_condition_27 is None
    assert Halving().settles_at == np.inf


@pytest.mark.parametrize(
    "schedule, message",
    [
        (Cooling(low=0.0), r"schedule\.low=0\.0"),
        (Cooling(high=0.5), r"schedule\.high=0\.5 is below schedule\.low=1"),
        (Cooling(decay=0), r"schedule\.decay=0 .* \[1, inf"),
        (Cooling(hold=-1), r"schedule\.hold=-1 .* \[0, inf"),
    ],
)
def test_a_schedule_that_does_not_cool_is_refused(schedule, message):
    with pytest.raises(ValueError, match=message):
        schedule.check()
