"""A posterior that only has a gradient, seen as one that has a curvature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_STEP = 1e-5  # of a central difference, relative: its error is of second order
_BLOCK = 256  # parameters whose differences are taken at a time, as chains


class Numerical:
    """A posterior with the curvature that Newton's method wants, by differences of its gradient.

    Parameters
    ----------
    posterior : Posterior
        With ``log_density`` and ``grad``, or the four functions that they are made of.
    """

    n_samples = 0  # no part of the rows stands for all of them

    def __init__(self, posterior: Any) -> None:
        self.posterior = posterior
        self.n_params = posterior.n_params

    def log_density(self, theta: Array) -> Array:
        """Return the log density ``(C,)``."""
        if hasattr(self.posterior, "log_density"):
            return self.posterior.log_density(theta)
        return self.posterior.log_likelihood(theta).sum(axis=1) + self.posterior.log_prior(theta)

    def grad(self, theta: Array) -> Array:
        """Return its gradient ``(C, P)``."""
        if hasattr(self.posterior, "grad"):
            return self.posterior.grad(theta)
        return self.posterior.grad_log_likelihood(theta) + self.posterior.grad_log_prior(theta)

    def curvature(self, theta: Array) -> Array:
        """Return minus the Hessian at one ``theta (P,)``."""
        P = self.n_params
        steps = _STEP * (1.0 + np.abs(theta))
        H = np.empty((P, P))
        for first in range(0, P, _BLOCK):
            at = np.arange(first, min(first + _BLOCK, P))
            moves = np.zeros((len(at), P))
            moves[np.arange(len(at)), at] = steps[at]
            change = self.grad(theta - moves) - self.grad(theta + moves)
            H[at] = change / (2.0 * steps[at, None])
        return 0.5 * (H + H.T)

    def smoothed(self, spread: Array | None) -> Numerical:
        """Return itself: nothing is known of kinks."""
        return self
