"""Every registered optimizer climbs to a known maximum, whatever the coordinates."""

import numpy as np
import pytest

from skbayes_sgld._components import resolve
from skbayes_sgld.posterior import FunctionPosterior
from skbayes_sgld.sampling import OPTIMIZERS, Constant, Curvature, Identity, Polynomial
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
