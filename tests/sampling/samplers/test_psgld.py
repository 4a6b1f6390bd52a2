"""pSGLD's metric, step by step."""

import numpy as np
import pytest

from skbayes_sgld.sampling import PSGLD
from tests.references.targets import make_run


def test_the_squares_are_a_plain_mean_until_they_are_as_many_as_are_remembered():
    # a log density whose gradient at x is x itself
    from skbayes_sgld.own_models import FunctionPosterior

    line = FunctionPosterior(lambda x: 0.5 * np.square(x).sum(axis=1), lambda x: x.copy(), 1)
    sampler = PSGLD(decay=0.75)
    dynamics = make_run(line, sampler=sampler).dynamics
    state = sampler.init(np.array([[1.0]]))
    values, squares = np.array([3.0, -1.0, 2.0, 5.0, 4.0, -2.0]), []
    for value in values:
        state["theta"] = np.array([[value]])
        sampler.step(state, np.float64(0.1), np.array([[0.0]]), None, dynamics)
        squares.append(state["square"].item())
        # the step goes by the squares that its own gradient is part of
        moved = 0.1 * value / (sampler.damping + np.sqrt(squares[-1]))
        np.testing.assert_allclose(state["theta"], value + moved, rtol=1e-12)
    for t in range(4):  # a decay of 0.75 remembers four
        np.testing.assert_allclose(squares[t], np.mean(values[: t + 1] ** 2))
    for t in (4, 5):
        np.testing.assert_allclose(squares[t], 0.75 * squares[t - 1] + 0.25 * values[t] ** 2)


@pytest.mark.parametrize(
    ("decay", "step", "percent"),
    [(0.99, 0.02, 21), (0.99, 0.1, 10), (0.999, 0.02, 3), (0.999, 0.1, 6)],
)
def test_variances_are_too_wide_by_the_memory_and_by_eulers_steps(decay, step, percent):
    declared = PSGLD(decay=decay).gaussian_inflation(step)
    assert 100.0 * (declared - 1.0) == pytest.approx(percent, abs=0.5)
