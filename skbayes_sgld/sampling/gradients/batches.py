"""Access to the rows of a minibatch: gathered beforehand, or by their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import ROW_BLOCK
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Rows

Array = NDArray[Any]


class Batches(Protocol):
    """Access to the rows of a posterior; ``batch`` is what :meth:`at` returns."""

    def prepare(self, idx: Array) -> Any:
        """Rows ``idx (T, C, B)`` of many steps."""

    def at(self, prepared: Any, t: int) -> Any:
        """Rows of step ``t``."""

    def size(self, batch: Any) -> int:
        """Rows of a batch, B."""

    def score(self, theta: Array, batch: Any) -> Array:
        """Each row's gradient in its local parameters ``(C, n_local, B)``."""

    def pullback(self, score: Array, batch: Any) -> Array:
        """Gradient in theta ``(C, P)`` from the rows' own, summed over the batch."""

    def gradient(self, theta: Array, batch: Any) -> Array:
        """Gradient of the batch's log likelihood ``(C, P)``, a new array."""

    def change(self, theta: Array, since: Array, batch: Any) -> Array:
        """Gradient at theta less that at ``since (C, P)``."""

    def blocks(self, n_chains: int) -> Iterator[Any]:
        """All rows, a block after the other."""


class GatheredRows:
    """Rows that see theta through local parameters: they are gathered once for many steps."""

    def __init__(self, posterior: BasePosterior) -> None:
        self._posterior = posterior

    def prepare(self, idx: Array) -> Rows:
        """Gather the rows."""
        return self._posterior.take(idx)

    def at(self, prepared: Rows, t: int) -> Rows:
        """Rows of step ``t``."""
        return prepared.step(t)

    def size(self, batch: Rows) -> int:
        """Rows of a batch."""
        return batch.y.shape[-1]

    def score(self, theta: Array, batch: Rows) -> Array:
        """Each row's gradient in its local parameters."""
        return self._posterior.score(self._posterior.local(theta, batch), batch)

    def pullback(self, score: Array, batch: Rows) -> Array:
        """Gradient in theta."""
        return self._posterior.pullback(score, batch)

    def gradient(self, theta: Array, batch: Rows) -> Array:
        """Gradient of the batch's log likelihood."""
        return self.pullback(self.score(theta, batch), batch)

    def change(self, theta: Array, since: Array, batch: Rows) -> Array:
        """Difference of two gradients, taken row by row."""
        return self.pullback(self.score(theta, batch) - self.score(since, batch), batch)

    def blocks(self, n_chains: int) -> Iterator[Rows]:
        """All rows, the same for every chain."""
        n = self._posterior.n_samples
        for start in range(0, n, ROW_BLOCK):
            yield self.prepare(np.arange(start, min(start + ROW_BLOCK, n))[None])


class IndexedRows:
    """Rows known by their numbers alone: a row's local parameters are theta itself."""

    def __init__(self, posterior: BasePosterior) -> None:
        self._posterior = posterior

    def prepare(self, idx: Array) -> Array:
        """Keep the numbers."""
        return idx

    def at(self, prepared: Array, t: int) -> Array:
        """Numbers of step ``t``."""
        return prepared[t]

    def size(self, batch: Array) -> int:
        """Rows of a batch."""
        return batch.shape[-1]

    def score(self, theta: Array, batch: Array) -> Array:
        """Each row's gradient ``(C, P, B)``: every row is handed over as a chain of its own."""
        C, B = batch.shape
        flat = self._posterior.grad_log_likelihood(
            np.repeat(theta, B, axis=0), batch.reshape(-1, 1)
        )
        return flat.reshape(C, B, -1).swapaxes(1, 2)

    def pullback(self, score: Array, batch: Array) -> Array:
        """Sum over the rows."""
        return score.sum(axis=2)

    def gradient(self, theta: Array, batch: Array) -> Array:
        """Gradient of the batch's log likelihood, in an array that may be written to."""
        return np.array(self._posterior.grad_log_likelihood(theta, batch), dtype=float)

    def change(self, theta: Array, since: Array, batch: Array) -> Array:
        """Difference of two gradients."""
        return self.gradient(theta, batch) - self._posterior.grad_log_likelihood(since, batch)

    def blocks(self, n_chains: int) -> Iterator[Array]:
        """All rows' numbers, once for each chain."""
        n = self._posterior.n_samples
        for start in range(0, n, ROW_BLOCK):
            yield np.tile(np.arange(start, min(start + ROW_BLOCK, n)), (n_chains, 1))


def batches_of(posterior: BasePosterior) -> Batches:
    """Access to the rows that a posterior's abilities allow."""
    gathers = "local_rows" in posterior.abilities
    return GatheredRows(posterior) if gathers else IndexedRows(posterior)
