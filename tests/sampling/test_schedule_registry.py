"""Every registered schedule is a positive multiplier, and what its docstring shows."""

import doctest
import inspect

import numpy as np
import pytest

from skbayes_sgld._components import resolve
from skbayes_sgld.sampling import SCHEDULES, Constant, Cyclical, FlatDecayFlat, Harmonic, Polynomial

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
    run_examples(type(schedule))


def run_examples(cls):
    """Run a class's docstring, which has to show values."""
    (found,) = doctest.DocTestFinder(recurse=False).find(cls, cls.__name__, inspect.getmodule(cls))
    assert found.examples, f"{cls.__name__} shows no values in its docstring"
    outcome = doctest.DocTestRunner(verbose=False).run(found, out=lambda text: None)
    assert outcome.failed == 0, f"the docstring of {cls.__name__} shows other values"


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
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_multipliers_are_those_of_the_published_formula_whose_steps_count_from_one(
    schedule, formula
):
    expected = [formula(t) for t in range(1, 41)]
    np.testing.assert_allclose(schedule(np.arange(40)), expected, rtol=1e-13)
