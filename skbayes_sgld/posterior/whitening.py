"""The base of posteriors in whitened coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.posterior.base import BasePosterior

Array = NDArray[Any]


class WhitenedPosterior(BasePosterior):
    """A posterior in the coordinates z of a metric about a centre, ``theta = center + root z``.

    Attributes
    ----------
    softness : float
        Distance over which the typical row's log likelihood bends: a step of leapfrog is about
        as long.
    work : float
        Multiplications that a gradient at one position takes, or what takes as long, of a product
        of matrices.
    center : ndarray of shape (P,)
    root, inverse_t : ndarray of shape (P, P), or (P,) of a diagonal metric
        R and ``R^{-T}``, with ``R R^T`` the metric.
    inverse : ndarray of shape (P, P)
        Inverse of the metric.
    """

    center: Array
    softness: float
    work: float
    root: Array
    inverse_t: Array
    inverse: Array

    def locate(self, z: Array) -> Array:
        """``center + root z`` for each row of ``z (C, P)``."""
        raise NotImplementedError

    def travel(self, z: Array, momentum: Array, maps: Array, n_steps: int) -> tuple[Array, Array]:
        """Positions and momenta ``(C, P)`` at the ends of trajectories.

        Before each of ``n_steps`` gradients a linear map of position, gradient and momentum to
        position and momentum is made, and one after the last: ``maps (C, 3, 2, 3)`` are the first
        of them, those that follow, and the last.
        """
        now = np.zeros((len(z), 3, z.shape[1]))
        now[:, 0], now[:, 2] = z, momentum
        place, force, moved = now[:, 0], now[:, 1], now[:, ::2]
        step, whole, last = maps.swapaxes(0, 1)
        for _ in range(n_steps):
            moved[...] = step @ now
            step = whole
            force[...] = self.grad(place)
        moved[...] = last @ now
        return place, now[:, 2]

    def matched(self, draws: Array, temperature: float) -> WhitenedPosterior:
        """Posterior about the mean of ``draws (S, P)`` of theta, in a metric that fits these."""
        raise NotImplementedError
