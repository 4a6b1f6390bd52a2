"""Random walk Metropolis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.metropolis import Adjusted


@dataclass(eq=False, repr=False)
class RandomWalk(Adjusted):
    """Random walk Metropolis: the proposal is ``theta + step_size sqrt(tau) G^{1/2} noise``.

    It takes no gradient, and as many steps as there are parameters, and more, to an independent
    draw (Metropolis et al. 1953; Roberts, Gelman & Gilks 1997).

    Parameters
    ----------
    target_acceptance : float, default=0.234
        What ``step_size="auto"`` aims at: optimal in many dimensions (Roberts, Gelman & Gilks
        1997, Corollary 1.2); a single parameter wants 0.44.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(sampler="random_walk")
    SGLDLogisticRegression(sampler='random_walk')
    """

    target_acceptance: float = 0.234

    largest_step = 2.4

    def pace(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """2.38 over the root of the dimension, in sds of the narrowest direction."""
        step = step or 2.38 / np.sqrt(len(rates) * rates[-1])
        return step, 34.0 / (step**2 * rates[0])

    def propose(
        self, state: State, eta: float, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """Take a random step."""
        theta = state["theta"] + eta * noise[:, : state["theta"].shape[1]]
        value = dynamics.posterior.log_density(theta)
        return {"theta": theta, "value": value}, value - state["value"]
