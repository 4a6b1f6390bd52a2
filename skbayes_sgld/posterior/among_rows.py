r"""Trajectories of whitened rows, followed by their predictors where the rows are few.

With A the signed rows times the root of the metric, the force at z is ``A^T s + g - z``, where s is
a function of each row's predictor and g a vector. A linear map of position, force and momentum is
one of the predictors ``A z``, of ``A A^T s + A g`` and of ``A p``, too: a step takes one product
with the Gram matrix ``A A^T``, of rows by rows, in place of two with A. A trajectory's end is a
combination of its start, of g, and of ``A^T`` times sums of s.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import in_threads, sum_in_threads
from skbayes_sgld.posterior.likelihoods import RowKernel
from skbayes_sgld.posterior.whitening import moved

Array = NDArray[Any]


class RowBlock(NamedTuple):
    """Rows of A, their predictors at the centre and their weights W; A and predictors signed."""

    rows: slice
    seen: Array
    shift: Array
    weight: Array
    kernel: RowKernel

    def pull(self, predictors: Array) -> Array:
        """``s``, the score and ``W A z``, in place of the predictors ``A z (..., n)``."""
        v = (predictors + self.shift.astype(np.float32)).reshape(-1, 1, len(self.seen))
        self.kernel.score(v)
        predictors *= self.weight.astype(np.float32)
        predictors += v.reshape(predictors.shape)
        predictors += self.kernel.pull[0].astype(np.float32)
        return predictors


class AmongRows:
    """Trajectories in single precision, of groups of positions.

    Parameters
    ----------
    parts : list of lists of RowBlock
        Rows that threads share.
    slope : ndarray of shape (P,)
        g.
    """

    def __init__(self, parts: list[list[RowBlock]], slope: Array) -> None:
        rows = np.concatenate([block.seen for blocks in parts for block in blocks])
        self._n_rows, self._slope = len(rows), slope
        self._parts = in_threads(partial(_Part, rows, rows @ slope.astype(np.float32)), parts)

    def travel(
        self, place: Array, momentum: Array, maps: Array, n_steps: int
    ) -> tuple[Array, Array]:
        """Positions and momenta ``(n_groups, n_each, P)`` where trajectories end.

        ``maps (3, 2, 3, n_groups, n_each)`` are as in ``WhitenedPosterior.travel``, of double
        precision.
        """
        first, whole, last = (step[..., None] for step in maps)
        first[:, 1] = 0.0
        for step in whole, last:  # of which z is a part of the force
            step[:, 0] -= step[:, 1]
        shares, ends = _shares_of_end(first, whole, last, n_steps)
        begin, step, rounded = (a.astype(np.float32) for a in (first, whole, shares))
        pulls = np.zeros((2, *place.shape[:2], self._n_rows), np.float32)
        paths = in_threads(lambda part: _Path(part, place, momentum), self._parts)
        for k in range(n_steps):
            advance = partial(_Path.advance, step=step if k else begin, share=rounded[k])
            in_threads(partial(advance, pull=pulls[k % 2 - 1], new=pulls[k % 2]), paths)
        pulled = sum_in_threads(_Path.pulled, paths)
        total = shares.sum(axis=0)
        z, moving = (
            of_place * place + of_momentum * momentum + of_slope * self._slope + by_rows
            for (of_place, of_momentum), of_slope, by_rows in zip(ends, total, pulled, strict=True)
        )
        return z, moving


class _Part:
    """Some of the rows: their columns of the Gram matrix and of ``A g``."""

    def __init__(self, rows: Array, level: Array, blocks: list[RowBlock]) -> None:
        first = blocks[0].rows.start
        self.own = slice(first, blocks[-1].rows.stop)
        self.gram, self.level = rows @ rows[self.own].T, level[self.own]
        within = [slice(b.rows.start - first, b.rows.stop - first) for b in blocks]
        self.blocks = list(zip(within, blocks, strict=True))


class _Path:
    """Predictors of some rows, and sums of what they pull, on the way."""

    def __init__(self, part: _Part, place: Array, momentum: Array) -> None:
        self._part = part
        start = np.stack([place, momentum])
        seen = [np.matmul(start, block.seen.T) for _, block in part.blocks]
        self._place, self._moving = np.concatenate(seen, axis=-1)
        self._sums = np.zeros((2, *self._place.shape), np.float32)

    def advance(self, pull: Array, new: Array, step: Array, share: Array) -> None:
        """Make a step by the pull of all rows, and put their new one in place of an older."""
        part = self._part
        force = np.matmul(pull, part.gram)
        force += part.level
        self._place, self._moving = moved(step, self._place, force, self._moving)
        for within, block in part.blocks:
            here = new[..., block.rows]
            here[...] = self._place[..., within]
            block.pull(here)
        for total, of_pull in zip(self._sums, share, strict=True):
            total += of_pull * new[..., part.own]

    def pulled(self) -> Array:
        """``A^T`` times the sums ``(2, n_groups, n_each, P)``."""
        total = 0.0
        for within, block in self._part.blocks:
            total = total + np.matmul(self._sums[..., within], block.seen).astype(float)
        return np.asarray(total)


def _shares_of_end(first: Array, whole: Array, last: Array, n_steps: int) -> tuple[Array, Array]:
    """Shares of each step's pull ``(n_steps, 2, ...)`` and of the start ``(2, 2, ...)`` in the end.

    The end is that of linear maps ``(2, 3, ...)`` of place, pull and momentum.
    """
    after, shares = last[:, ::2], [last[:, 1]]
    for _ in range(n_steps - 1):
        shares.append((after * whole[:, 1]).sum(axis=1))
        after = _product(after, whole[:, ::2])
    return np.stack(shares[::-1]), _product(after, first[:, ::2])


def _product(a: Array, b: Array) -> Array:
    """Products of matrices ``(2, 2, ...)``."""
    return np.stack([(row[:, None] * b).sum(axis=0) for row in a])
