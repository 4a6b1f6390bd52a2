"""The Metropolis-adjusted Langevin algorithm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbayes_sgld.sampling.dynamics import Array
from skbayes_sgld.sampling.samplers.hamiltonian import Hamiltonian


@dataclass(eq=False, repr=False)
class MALA(Hamiltonian):
    """The Metropolis-adjusted Langevin algorithm: each Euler step is accepted or rejected.

    ``step_size`` is that of :class:`SGLD`; a step is one leapfrog step of ``sqrt(2 step_size)``
    (Roberts & Tweedie 1996, Section 1.4.1; Neal 2011, Section 5.5.2).

    Parameters
    ----------
    target_acceptance : float, default=0.574
        Of Roberts & Rosenthal 1998, optimal in many dimensions.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(sampler="mala")
    SGLDLogisticRegression(sampler='mala')
    """

    target_acceptance: float = 0.574
    extra_normals = 1

    def pace(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Step size and time of SGLD."""
        step = step or 0.5 / rates[-1]
        return step, 2.0 / (step * rates[0])

    def steps(self, eta: Array, normals: Array, walls: bool = False) -> Array:
        """Steps of ``sqrt(2 eta)``."""
        return np.broadcast_to(np.sqrt(2.0 * eta), normals.shape[:2])
