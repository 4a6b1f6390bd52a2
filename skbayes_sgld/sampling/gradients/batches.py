"""Batches of rows that are known by their numbers alone, and scores of all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import ROW_BLOCK
from skbayes_sgld.posterior.base import BasePosterior, BoundBatches

Array = NDArray[Any]


class IndexedBatches(BoundBatches):
    """Batches of rows without local parameters: theta itself stands for them.

    Parameters
    ----------
    posterior : BasePosterior
    n_chains, batch_size, n_walkers : int
    """

    def __init__(
        self, posterior: BasePosterior, n_chains: int, batch_size: int, n_walkers: int = 1
    ) -> None:
        super().__init__(posterior, batch_size)

    def gather(self, idx: Array) -> Sequence[Array]:
        """Row numbers of each step."""
        return list(idx)

    def local(self, theta: Array, batch: Array) -> Array:
        """Theta for each row ``(C, P, B)``."""
        return np.broadcast_to(theta[:, :, None], (*theta.shape, self.size))

    def score(self, u: Array, batch: Array) -> Array:
        """Gradient of each row ``(C, P, B)``; every row is passed as a chain of its own."""
        C, P, B = u.shape
        theta = np.ascontiguousarray(u.swapaxes(1, 2)).reshape(-1, P)
        grad = self._posterior.grad_log_likelihood(theta, batch.reshape(-1, 1))
        return grad.reshape(C, B, P).swapaxes(1, 2)

    def pullback(self, score: Array, batch: Array, out: Array | None = None) -> Array:
        """Sum over the rows."""
        return score.sum(axis=2, out=out)

    def gradient(self, theta: Array, batch: Array) -> Array:
        """Gradient of the batch's log likelihood, a new array."""
        return np.array(self._posterior.grad_log_likelihood(theta, batch), dtype=float)


def batch_binder(posterior: BasePosterior) -> Callable[[int, int, int], BoundBatches]:
    """Function from numbers of chains, rows and walkers to batches of that size."""
    if "local_rows" in posterior.abilities:
        return posterior.bind_batches
    return lambda *sizes: IndexedBatches(posterior, *sizes)


def scores_of_rows(posterior: BasePosterior, theta: Array) -> Array:
    """Gradient of every row in its local parameters ``(C, n_local, n)``."""
    n, parts = posterior.n_samples, []
    for start in range(0, n, ROW_BLOCK):
        idx = np.arange(start, min(start + ROW_BLOCK, n))
        if "local_rows" in posterior.abilities:
            rows = posterior.take(idx[None])
            parts.append(posterior.score(posterior.local(theta, rows), rows))
        else:
            batches = IndexedBatches(posterior, len(theta), len(idx))
            batch = np.tile(idx, (len(theta), 1))
            parts.append(batches.score(batches.local(theta, batch), batch))
    return np.concatenate(parts, axis=2)
