"""What a fit keeps in order to be judged later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.sampling import Mode, Run
from skbayes_sgld.sampling.samplers.hmc import transition_acceptance

Array = NDArray[Any]

_WORK = 5e7  # multiplications that the transitions of a judgement may take
_FEWEST, _MOST = 16, 256  # transitions


@dataclass
class Judged:
    """A run and its draws, in the coordinates that were sampled.

    Attributes
    ----------
    posterior : object or None
        None once the estimator was pickled: the data stay behind.
    run : Run or None
    laplace : Mode
        The mode and the curvature there.
    theta : ndarray of shape (n_chains, n_draws, n_params)
    bias : tuple of float
    noise_ratio : float
    accepted : float or None
        The share of proposals that were accepted; None where all moves are.
    """

    posterior: Any
    run: Run | None
    laplace: Mode
    theta: Array
    bias: tuple[float, float]
    noise_ratio: float
    accepted: float | None = None

    def without_data(self) -> Judged:
        """Return what can be kept without the data."""
        return replace(self, posterior=None, run=None)

    def _standardised(self) -> Array:
        """Return the draws in the Laplace approximation's own sds, less the mode."""
        tau = 1.0 if self.run is None else self.run.dynamics.temperature
        return (self.theta - self.laplace.theta) / self.laplace.marginal_sd / np.sqrt(tau)

    def from_laplace(self) -> tuple[float, float]:
        """Return the largest shift of a mean from the mode, and of an sd, less 1."""
        z = self._standardised()
        shift, width = z.mean(axis=(0, 1)), z.std(axis=(0, 1)) - 1.0
        return float(shift[np.abs(shift).argmax()]), float(width[np.abs(width).argmax()])

    def divergent(self, limit: float) -> list[int]:
        """Return the chains whose mean is over ``limit`` sds from the mode, in any parameter."""
        far = np.abs(self._standardised().mean(axis=1)).max(axis=1)
        return np.flatnonzero(~(far <= limit)).tolist()

    def acceptance(self) -> float:
        """Return the mean Metropolis acceptance of the chains' own transitions.

        Where none was rejected, it is what Euler transitions from some of the draws would have.
        """
        if self.accepted is not None:
            return self.accepted
        if self.posterior is None or self.run is None:
            return float("nan")
        run, P = self.run, self.theta.shape[2]
        cost = self.posterior.n_samples * P
        flat = self.theta.reshape(-1, P)
        size = int(np.clip(_WORK // cost, _FEWEST, min(_MOST, len(flat))))
        theta = flat[np.linspace(0, len(flat) - 1, size).astype(int)]
        eta = run.step_size * float(run.schedule(self.theta.shape[1]))
        return transition_acceptance(theta, eta, replace(run.dynamics))
