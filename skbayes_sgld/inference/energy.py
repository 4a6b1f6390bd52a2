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

from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.sampling.run import Chains
from skbayes_sgld.sampling.samplers import ParallelTempering
from skbayes_sgld.sampling.samplers.hmc import Hamiltonian

_LEAST_BFMI, _MOST_DIVERGED = 0.2, 1e-4


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


def energy_of(plan: Plan, chains: Chains) -> Energy:
    """Energy diagnostics of the draws of a run."""
    counts = chains.state.sampler_state.get("diverged")
    if counts is None or not isinstance(plan.run.sampler, Hamiltonian):
        return Energy()
    flat = chains.draws.reshape(-1, chains.draws.shape[2])
    affordable = int(np.clip(2**22 // max(plan.posterior.n_samples, flat.shape[1]), 50, 1000))
    some = flat[:: -(-len(flat) // affordable)]
    with np.errstate(all="ignore"):
        potential = plan.posterior.log_density(some) / plan.settings.tau
        kinetic = 0.5 * flat.shape[1]  # variance of half a chi-square variable
        bfmi = float(kinetic / (kinetic + potential.var()))
    return Energy(bfmi, float(counts.mean() / max(chains.state.step, 1)))


def energy_problem(plan: Plan, energy: Energy) -> list[str]:
    """Sentence on a funnel, whose narrow part makes trajectories diverge."""
    # swaps of temperatures and jumps between modes change the energy too
    swaps = isinstance(plan.run.sampler, ParallelTempering) or bool(plan.modes)
    if swaps or not (energy.bfmi < _LEAST_BFMI and energy.diverged > _MOST_DIVERGED):
        return []
    if plan.posterior.facts.user_defined:
        remedy = (
            "write parameters whose scale is a parameter as location + scale * z, with z standard "
            "normal, and sample z"
        )
    else:
        remedy = (
            "set parameterization='auto'"
            if plan.choices["parameterization"].given
            else "give the noise, or the scale that is learned, a prior with more weight"
        )
    return [
        f"{energy.diverged:.1%} of the trajectories diverged, and the energy's fraction of missing "
        f"information (E-BFMI) is {energy.bfmi:.2f}, below {_LEAST_BFMI:g}: chains miss the narrow "
        f"part of a funnel; {remedy}"
    ]
