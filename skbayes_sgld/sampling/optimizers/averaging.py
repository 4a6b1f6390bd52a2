"""Averages of an optimizer's iterates."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.protocol import Algorithm


class Averaged(Algorithm):
    """An optimizer that keeps the mean of its iterates beside them.

    Under a schedule that decays slower than 1 / t the mean of the iterates from step ``start`` on
    has, in the limit, the smallest variance that any rule can reach (Polyak & Juditsky 1992,
    Theorem 1). Under a constant step size eta, in the curvature's metric, its variance after t
    steps is about ``2 / (eta t)`` that of an iterate. The path itself stays as it was.

    Parameters
    ----------
    optimizer : Algorithm
    start : int
        The first step whose iterate is averaged, from 1. The state's ``average`` is the iterate
        itself until then.
    """

    uses_noise = False

    def __init__(self, optimizer: Algorithm, start: int) -> None:
        self.optimizer, self.start = optimizer, start

    def init(self, theta: Array, noise: Array | None) -> State:
        """State of the optimizer, and the average, which is the starting point."""
        return self.optimizer.init(theta, noise) | {"average": theta}

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Make the optimizer's step and move the average."""
        self.optimizer.step(state, eta, noise, batch, dynamics)
        n_averaged = np.maximum(state["count"] - self.start + 1, 1)[:, None]
        state["average"] = state["average"] + (state["theta"] - state["average"]) / n_averaged
