"""Energy of Hamiltonian trajectories, which shows if chains miss parts of a posterior.

A trajectory conserves the sum of potential energy (minus the log density) and kinetic energy. Only
the new momentum of the next trajectory changes it, and with few parameters by little. If the log
density varies much more than that, as in a funnel, chains move slowly between its narrow and wide
parts (Betancourt 2016). Trajectories into a part too narrow for their steps diverge, and are
rejected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.sampling.samplers.hmc import Hamiltonian


class Energy(NamedTuple):
    """Energy diagnostics of a run of Hamiltonian Monte Carlo.

    Attributes
    ----------
    bfmi : float
        Variance of the kinetic energy over that of the total energy: the Bayesian fraction of
        missing information, E-BFMI, 0.5 for a normal posterior. nan for samplers without
        trajectories.
    diverged : float
        Share of the trajectories within the support whose energy grew by more than 1,000.
    """

    bfmi: float = np.nan
    diverged: float = 0.0


def energy_of(plan: Plan, theta: Array, diverged: float | None) -> Energy:
    """Energy diagnostics of the draws of a run, given the share of trajectories that diverged."""
    if diverged is None or not plan.has_data or not isinstance(plan.run.sampler, Hamiltonian):
        return Energy()
    flat = theta.reshape(-1, theta.shape[2])
    n, P = plan.posterior.n_samples, flat.shape[1]
    # 200 draws know a variance to 10 %
    affordable = int(np.clip(min(2**22 // max(n, P), 1e9 // max(n * P, 1)), 50, 1000))
    some = flat[:: -(-len(flat) // affordable)]
    with np.errstate(all="ignore"):
        potential = plan.posterior.log_density(some) / plan.settings.tau
        kinetic = 0.5 * flat.shape[1]  # variance of half a chi-square variable
        bfmi = float(kinetic / (kinetic + potential.var()))
    return Energy(bfmi, diverged)
