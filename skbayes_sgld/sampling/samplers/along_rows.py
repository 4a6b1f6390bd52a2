"""Trajectories along whitened rows, which are cheaper where rows are fewer than parameters."""

from __future__ import annotations

import numpy as np

from skbayes_sgld.posterior.whitening import WhitenedPosterior
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.leapfrog import equal_kicks, kicked, leapfrog


def travel_along_rows(
    z: Array,
    momentum: Array,
    force: Array,
    step: Array,
    n_steps: int,
    dynamics: Dynamics,
    rotates: bool,
) -> tuple[State, Array]:
    """State and momentum at the end of a trajectory of leapfrog steps of size ``step (C, 1)``."""
    rows = dynamics.whitened
    assert rows is not None and dynamics.center is not None
    if rotates:
        z, momentum = along_rows(rows, z, momentum, step, n_steps)
        end = {"theta": rows.locate(z), "value": rows.log_density(z), "z": z}
        return end | {"force": np.zeros_like(z)}, momentum
    parts = equal_kicks(n_steps)
    z, momentum = leapfrog(z, momentum, force, step, parts[:, :-1], rows.grad)
    value, force = rows.value_and_grad(z)
    momentum = kicked(momentum, z, force, parts[0, -1] * step, rotates=False)
    theta = dynamics.center + dynamics.metric.sqrt(z)
    return {"theta": theta, "value": value, "z": z, "force": force}, momentum


def along_rows(
    rows: WhitenedPosterior, z: Array, momentum: Array, step: Array, n_steps: int
) -> tuple[Array, Array]:
    """Position and momentum at the end of a trajectory along whitened rows, in single precision.

    Steps drift first: if rows bound their predictors steeply, the errors of the energy are smaller
    than with kicks first, and more trajectories are accepted.
    """

    def gradient(z: Array) -> Array:
        return rows.grad(z).astype(np.float32, copy=False)

    start = z.astype(np.float32), momentum.astype(np.float32), None, step.astype(np.float32)
    ends = leapfrog(*start, equal_kicks(n_steps, drifts_first=True), gradient, rotates=True)
    return ends[0].astype(float), ends[1].astype(float)
