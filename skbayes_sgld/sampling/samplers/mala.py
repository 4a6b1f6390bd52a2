"""The Metropolis-adjusted Langevin algorithm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbayes_sgld._random import probe_generator
from skbayes_sgld.sampling.dynamics import Array, Dynamics
from skbayes_sgld.sampling.samplers.hmc import Hamiltonian


@dataclass(eq=False, repr=False)
class MALA(Hamiltonian):
    """The Metropolis-adjusted Langevin algorithm: each Euler step is accepted or rejected.

    ``step_size`` is that of :class:`SGLD`; a step is one leapfrog step of ``sqrt(2 step_size)``
    (Roberts & Tweedie 1996, Section 1.4.1; Neal 2011, Section 5.5.2).

    Parameters
    ----------
    target_acceptance : float, default=0.574
        Acceptance that ``step_size="auto"`` aims at: optimal in many dimensions (Roberts &
        Rosenthal 1998).

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(sampler="mala")
    SGLDLogisticRegression(sampler='mala')
    """

    target_acceptance: float = 0.574
    extra_normals = 1

    def step_sizes(self, eta: Array, normals: Array, walls: bool = False) -> Array:
        """Leapfrog steps of ``sqrt(2 eta)``."""
        return np.broadcast_to(np.sqrt(2.0 * eta), normals.shape[:2])


def transition_acceptance(theta: Array, eta: float, dynamics: Dynamics) -> float:
    """Mean Metropolis acceptance of one Euler step of size eta from ``theta (C, P)``."""
    sampler = MALA()
    normals = probe_generator().standard_normal(theta.shape)
    normals = np.append(normals, np.zeros((len(theta), 1)), axis=1)[None]
    with np.errstate(all="ignore"):
        noise = sampler.prepare(normals, normals[0], np.array([eta]), dynamics)[0]
        gain = sampler.propose(sampler.evaluate(theta, dynamics), eta, noise, dynamics)[1]
        log_ratio = gain / dynamics.temperature
    return float(np.mean(np.exp(np.minimum(np.nan_to_num(log_ratio, nan=-np.inf), 0.0))))
