"""A random sample of rows, drawn in one pass: from all rows, and from the rows of each group.

A row of weight w and size s has the key ``u / (w s)``, with u uniform on (0, 1), and the rows with
the smallest keys are kept (priority sampling: Duffield, Lund & Thorup 2007). A kept row gets the
weight ``max(w, 1 / (s t))``, where t is the smallest key that was not kept: sums over the sample
with these weights are unbiased estimates of sums over all rows. Half of the size is the same for
all rows, and half is the squared distance from the mean in sds of the columns: outlying rows, and
rows in rare columns, dominate the higher orders of a log likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from skbayes_sgld._linalg import row_blocks
from skbayes_sgld.blocks.source import Array, Block
from skbayes_sgld.likelihoods.row_values import RowValues

_EVEN = 0.5  # part of the size that is the same for all rows
_ROOM = 1.25  # rows of a sum, in those of the sample, from which it keeps what it needs
_SPARE = 8.0  # sds of the number of rows below a limit, so that enough rows almost surely are


@dataclass(frozen=True)
class Sampling:
    """Settings of a random sample of rows.

    Attributes
    ----------
    size : int
        Number of rows with the smallest keys to keep.
    seed : int
    least : int, default=0
        Least number of rows to keep of each group.
    labels : bool, default=False
        Whether y is a label; each label is then a group. Otherwise there are two groups, y = 0 and
        other values, which keeps enough rows of a rare event.
    n_rows : int or None
        Number of all rows, if known: blocks then pass on few more rows than are kept.
    """

    size: int
    seed: int
    least: int = 0
    labels: bool = False
    n_rows: int | None = None

    def groups(self, y: Array) -> Array:
        """Number of the group of each row, from 0."""
        return (
            pd.factorize(y if self.labels else y != 0)[0] if self.least else np.zeros(len(y), int)
        )

    @property
    def limit(self) -> float:
        """Key below which enough keys of unweighted rows almost surely are."""
        if not self.n_rows:
            return np.inf
        return (self.size + _SPARE * np.sqrt(self.size) + _SPARE**2) / (_EVEN * self.n_rows)


@dataclass(frozen=True)
class Sample:
    """Rows with the smallest keys, enough to draw the sample.

    Attributes
    ----------
    how : Sampling
    n_rows : int
        Number of rows, of positive weight, that the sample was drawn from.
    X : ndarray of shape (m, d)
        Kept rows.
    values : RowValues
        What the kept rows bring besides; weights are 1 if the source has none.
    size, key : ndarray of shape (m,)
    place : ndarray of shape (m, 2)
        Block of each row, and its position in the block.
    """

    how: Sampling
    n_rows: int
    X: Array
    values: RowValues
    size: Array
    key: Array
    place: Array

    @classmethod
    def from_block(cls, block: Block, how: Sampling, mean: Array, sd: Array) -> Sample:
        """Rows of one block; ``mean`` and ``sd`` of the columns may be approximate."""
        key = np.random.default_rng([how.seed, block.number]).random(len(block.y))
        size = sizes(block.X, mean, sd)
        if block.size is not None:
            size *= block.size
        key /= size
        limit = how.limit if block.size is None else np.inf
        if block.weight is None:
            n_rows, positions = len(key), _smallest(key, block.y, how, limit)
        else:
            positive = np.flatnonzero(block.weight > 0)
            key[positive] /= block.weight[positive]
            smallest = _smallest(key[positive], block.y[positive], how)
            n_rows, positions = len(positive), positive[smallest]
        weight = np.ones(len(positions)) if block.weight is None else block.weight[positions]
        values = replace(block.values[positions], weight=weight)
        place = np.column_stack([np.full(len(positions), block.number), positions])
        return cls(how, n_rows, block.X[positions], values, size[positions], key[positions], place)

    def plus(self, other: Sample) -> Sample:
        """Sample of the rows of both together."""
        pairs = zip(self._arrays(), other._arrays(), strict=True)
        X, *arrays = (np.concatenate(pair) for pair in pairs)
        values = self.values.followed_by(other.values)
        both = Sample(self.how, self.n_rows + other.n_rows, X, values, *arrays)
        assert values.y is not None
        if len(both.key) < _ROOM * self.how.size:  # a choice takes longer than the sum
            return both
        return both._at(_smallest(both.key, values.y, self.how))

    def _arrays(self) -> tuple[Array, ...]:
        return self.X, self.size, self.key, self.place

    def _at(self, positions: Array) -> Sample:
        X, *arrays = (each[positions] for each in self._arrays())
        size, key, place = arrays
        values = self.values[positions]
        return replace(self, X=X, values=values, size=size, key=key, place=place)

    @property
    def complete(self) -> bool:
        """Whether the sample holds all rows."""
        return self.n_rows <= min(self.how.size, len(self.key))

    def rows(self) -> Block:
        """Rows with their weights in the sample, in the order of the source, as one block."""
        y, own = self.values.y, self.values.weight
        assert y is not None and own is not None
        group = self.how.groups(y)
        bar = _next(self.key, self.how.size)
        if bar == np.inf and not self.complete:  # with a probability of 1e-15
            bar = self.how.limit
        bars = np.full(group.max() + 1, bar)
        for k in range(len(bars) if self.how.least else 0):
            bars[k] = max(bar, _next(self.key[group == k], self.how.least))
        positions = np.flatnonzero(self.key < bars[group])
        positions = positions[np.lexsort(self.place[positions].T[::-1])]
        weight = np.maximum(own[positions], 1.0 / (self.size * bars[group])[positions])
        return Block(self.X[positions], replace(self.values[positions], weight=weight), 0)


def sizes(X: Array, mean: Array, sd: Array) -> Array:
    """Size of each row ``(n,)``: a constant, and its squared distance from the mean in sds."""
    size, scale = np.empty(len(X)), np.where(sd > 0, 1.0 / np.where(sd > 0, sd, 1.0), 0.0)
    with np.errstate(all="ignore"):
        mean, scale = mean.astype(X.dtype), scale.astype(X.dtype)  # any sizes near these are right
        for rows, scaled in row_blocks(X, mean, X.dtype):
            scaled *= scale
            size[rows] = np.einsum("ij,ij->i", scaled, scaled) / max(1, X.shape[1])
    size = np.where(np.isfinite(size), size, 1.0)  # such rows raise an error later
    return _EVEN + (1.0 - _EVEN) * size


def _smallest(key: Array, y: Array, how: Sampling, limit: float = np.inf) -> Array:
    """Rows with the smallest keys, overall and in each group, and the next one."""
    inside = key < limit
    if len(key) > how.size + 1:
        lowest = np.argpartition(key, how.size)[: how.size + 1]
        among = np.zeros(len(key), bool)
        among[lowest] = True
        inside &= among
    if how.least and not inside.all():
        group = how.groups(y)
        for k in range(group.max() + 1):
            own = np.flatnonzero(group == k)
            if len(own) > how.least + 1:
                own = own[np.argpartition(key[own], how.least)[: how.least + 1]]
            inside[own] = True
    return np.flatnonzero(inside)


def _next(key: Array, size: int) -> float:
    """Key after the ``size`` smallest; infinite if there is none."""
    return float(np.partition(key, size)[size]) if len(key) > size else np.inf
