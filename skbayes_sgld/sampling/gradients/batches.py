"""Access to the rows of a minibatch: gathered beforehand, or by their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cache
from itertools import repeat
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import ROW_BLOCK
from skbayes_sgld.posterior.base import BasePosterior, BoundBatches

Array = NDArray[Any]


class Batches(Protocol):
    """Access to the rows of a posterior; ``batch`` is what :meth:`prepare` returns for a step."""

    def of_run(self) -> Self:
        """Copy for one run in one thread, which may reuse its arrays."""

    def prepare(self, idx: Array) -> Sequence[Any]:
        """Batches of the rows ``idx (T, C, B)``, one a step."""

    def size(self, batch: Any) -> int:
        """Rows of a batch, B."""

    def score(self, theta: Array, batch: Any) -> Array:
        """Each row's gradient in its local parameters ``(C, n_local, B)``."""

    def pullback(self, score: Array, batch: Any) -> Array:
        """Gradient in theta ``(C, P)`` from the rows' own, summed over the batch."""

    def gradient(self, theta: Array, batch: Any) -> Array:
        """Gradient of the batch's log likelihood ``(C, P)``, a new array."""

    def change(self, theta: Array, since: Array, batch: Any) -> Array:
        """Gradient at theta less that at ``since (C, P)``, a new array."""

    def scores(self, theta: Array) -> Array:
        """Every row's gradient in its local parameters ``(C, n_local, n)``."""


class GatheredRows:
    """Rows that see theta through local parameters: they are gathered once for many steps."""

    def __init__(self, posterior: BasePosterior) -> None:
        self._posterior = posterior
        self._bind = posterior.bind_batches

    def of_run(self) -> Self:
        """Copy that gathers into the same arrays again and again."""
        bound = copy(self)
        bound._bind = cache(self._posterior.bind_batches)
        return bound

    def prepare(self, idx: Array) -> Sequence[tuple[BoundBatches, Any]]:
        """Gather the rows."""
        bound = self._bind(*idx.shape[1:])
        return list(zip(repeat(bound), bound.gather(idx), strict=False))

    def size(self, batch: tuple[BoundBatches, Any]) -> int:
        """Rows of a batch."""
        return batch[0].size

    def score(self, theta: Array, batch: tuple[BoundBatches, Any]) -> Array:
        """Each row's gradient in its local parameters, valid until the next is computed."""
        bound, rows = batch
        return bound.score(bound.local(theta, rows), rows)

    def pullback(self, score: Array, batch: tuple[BoundBatches, Any]) -> Array:
        """Gradient in theta."""
        bound, rows = batch
        return bound.pullback(score, rows)

    def gradient(self, theta: Array, batch: tuple[BoundBatches, Any]) -> Array:
        """Gradient of the batch's log likelihood."""
        bound, rows = batch
        return bound.gradient(theta, rows)

    def change(self, theta: Array, since: Array, batch: tuple[BoundBatches, Any]) -> Array:
        """Difference of two gradients, taken row by row."""
        before = self.score(since, batch).copy()
        return self.pullback(self.score(theta, batch) - before, batch)

    def scores(self, theta: Array) -> Array:
        """Every row's gradient in its local parameters, a block of rows after the other."""
        posterior, parts = self._posterior, []
        for start in range(0, posterior.n_samples, ROW_BLOCK):
            rows = posterior.take(
                np.arange(start, min(start + ROW_BLOCK, posterior.n_samples))[None]
            )
            parts.append(posterior.score(posterior.local(theta, rows), rows))
        return np.concatenate(parts, axis=2)


class IndexedRows:
    """Rows known by their numbers alone: a row's local parameters are theta itself."""

    def __init__(self, posterior: BasePosterior) -> None:
        self._posterior = posterior

    def of_run(self) -> Self:
        """Itself: it holds nothing."""
        return self

    def prepare(self, idx: Array) -> Sequence[Array]:
        """Keep the numbers."""
        return list(idx)

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

    def scores(self, theta: Array) -> Array:
        """Every row's gradient, a block of rows after the other."""
        n, parts = self._posterior.n_samples, []
        for start in range(0, n, ROW_BLOCK):
            rows = np.arange(start, min(start + ROW_BLOCK, n))
            parts.append(self.score(theta, np.tile(rows, (len(theta), 1))))
        return np.concatenate(parts, axis=2)


def batches_of(posterior: BasePosterior) -> Batches:
    """Access to the rows that a posterior's abilities allow."""
    if "local_rows" in posterior.abilities:
        return GatheredRows(posterior)
    return IndexedRows(posterior)
