"""Every registered optimizer climbs to a known maximum, whatever the coordinates."""

import numpy as np
import pytest

from skbayes_sgld._components import resolve
from skbayes_sgld.optimizers import OPTIMIZERS, Adam
from skbayes_sgld.own_models import FunctionPosterior
from skbayes_sgld.sampling import ChainOverflowError, Constant, Curvature, Identity, Polynomial
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.metric import Dense
from skbayes_sgld.sampling.tuning.mode import Mode
from tests.references.targets import make_run

MAXIMUM = np.array([1.0, -2.0])
SCALE = np.array([1.0, 0.5])
START = np.array([[4.0, -2.0], [-1.0, 1.0], [1.0, -5.0]])
HYPERBOLIC = FunctionPosterior(  # concave, and no parabola
    lambda x: -np.log(np.cosh((x - MAXIMUM) / SCALE)).sum(axis=1),
    lambda x: -np.tanh((x - MAXIMUM) / SCALE) / SCALE,
    2,
)


def check_optimizer(name):
    """Raise where the optimizer of this name does not end at the maximum."""
    optimizer = resolve(name, OPTIMIZERS, "optimizer")
    mode = Mode(MAXIMUM, Dense(np.array([[1.0, 0.0], [0.2, 0.5]])))
    for preconditioner in (Identity(), Curvature()):
        # a rule that shortens its own steps needs no schedule, the others one that decays
        for schedule in (Polynomial(offset=10.0, power=0.7), Constant()):
            end = farthest(optimizer, schedule, preconditioner, mode)
            if end < 0.02:
                break
        assert end < 0.02, f"it ends {end:.3g} sds away"
    check_step_size(optimizer)


def check_step_size(optimizer):
    """Raise where the automatic step leads away from the mode of a normal target.

    The sds are 0.05 and 0.1, and paths begin 3 sds away.
    """
    sd = np.array([0.05, 0.1])
    target = FunctionPosterior(
        lambda x: -0.5 * np.square(x / sd).sum(axis=1), lambda x: -x / sd**2, 2
    )
    step = optimizer.step_size(1.0 / sd[0] ** 2, 3.0)
    run = make_run(target, sampler=optimizer, preconditioner=Identity(), step_size=step)
    start = 3.0 * sd * [[1.0, 0.0], [0.0, -1.0]]
    try:
        draws = run_chains(run, start, n_draws=50, n_burnin=500).draws
    except ChainOverflowError:
        draws = np.full((2, 50, 2), np.inf)
    away = np.linalg.norm(draws / sd, axis=2).max()
    assert away < 1.0, f"by its step_size it stays {away:.3g} sds away"


def farthest(optimizer, schedule, preconditioner, mode):
    """Largest distance from the maximum at which a path ends, in units of the scale."""
    run = make_run(
        HYPERBOLIC,
        sampler=optimizer,
        preconditioner=preconditioner,
        schedule=schedule,
        step_size=1.0,
        mode=mode,
    )
    ends = run_chains(run, START, n_draws=1, n_burnin=3000, seed=0).draws[:, 0]
    return np.abs((ends - MAXIMUM) / SCALE).max()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_reaches_a_known_maximum(name):
    check_optimizer(name)


def test_adam_is_the_published_recursion():
    run = make_run(HYPERBOLIC, sampler=Adam(decay=0.8, square_decay=0.95), step_size=0.1)
    draws = run_chains(run, START, n_draws=6).draws
    theta, mean, square = START, 0.0, 0.0
    for t in range(1, 7):
        gradient = HYPERBOLIC.grad(theta)
        mean = 0.8 * mean + 0.2 * gradient
        square = 0.95 * square + 0.05 * gradient**2
        root = np.sqrt(square / (1.0 - 0.95**t)) + 1e-8
        theta = theta + 0.1 * mean / (1.0 - 0.8**t) / root
        np.testing.assert_allclose(draws[:, t - 1], theta, rtol=1e-9)
