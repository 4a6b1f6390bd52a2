"""Distances that judge a fit, in sds of the tempered posterior."""

from types import SimpleNamespace

import numpy as np
import pytest

from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning.mode import Mode


def judged(theta, temperature=1.0, sd=0.5):
    mode = Mode(np.array([3.0]), Diagonal(np.array([sd**2])))
    return SamplingResult(
        theta,
        ["x"],
        plan=SimpleNamespace(mode=mode, settings=SimpleNamespace(tau=temperature)),
        theta=theta,
        mean=theta.mean((0, 1)),
        positions=theta[:, -1],
        clipped=0.0,
        acceptance=None,
    )


def test_shift_and_width_are_in_units_of_the_tempered_sd():
    z = np.random.default_rng(0).standard_normal((4, 500, 1))
    z = (z - z.mean()) / z.std()
    for temperature in (0.25, 1.0, 9.0):
        theta = 3.0 + 0.5 * np.sqrt(temperature) * (0.2 + 1.3 * z)
        shift, width = judged(theta, temperature).from_laplace()
        assert shift == pytest.approx(0.2)
        assert width == pytest.approx(0.3)


def test_a_chain_is_divergent_by_its_own_mean():
    theta = np.full((3, 100, 1), 3.0)
    theta[1] += 0.5 * 2.0 * 4.1  # at temperature 4 the sd is 1
    assert judged(theta, 4.0).divergent(4.0) == [1]
    assert judged(theta, 4.0).divergent(4.2) == []
