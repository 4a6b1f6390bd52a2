"""Rows gathered part by part, and pooled: few rows with the sums of products of many.

A mixed model with normal noise depends on the rows of a *cell*, which have the same labels and the
same values of columns with curves, through the weighted sums of products of their other columns and
of y alone. So the rows of a cell are replaced by ``2 k`` rows with these sums, if there are more of
them: rows at equal distances on both sides of the mean, along a root of the products. Pooled rows
are rows like others, to which further ones may be added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from skbayes_sgld._memory import check_memory
from skbayes_sgld._typing import Array
from skbayes_sgld.blocks.moments import Extent
from skbayes_sgld.likelihoods.row_values import RowValues

_GATHERED = 2**22  # numbers in X from which rows are pooled before further ones are read


@dataclass(frozen=True)
class GatheredRows:
    """Encoded rows of blocks or batches, the later ones on the right.

    Attributes
    ----------
    X : tuple of ndarray of shape (n_t, d)
    values : tuple of RowValues
    cells : sequence of int or None
        Columns whose values make a cell; None if rows may not be pooled.
    extent : Extent or None
        Ranges of the columns; None without rows.
    n_pooled : int
        Number of rows after they were last pooled.
    """

    X: tuple[Array, ...]
    values: tuple[RowValues, ...]
    cells: Sequence[int] | None
    extent: Extent | None
    n_pooled: int = 0

    @classmethod
    def of(cls, X: Array, values: RowValues, cells: Sequence[int] | None) -> GatheredRows:
        """Rows of one part; those of weight 0 are left out if rows may be pooled."""
        if cells is not None and values.weight is not None and not values.weight.all():
            some = values.weight > 0
            X, values = X[some], values[some]
        return cls((X,), (values,), cells, Extent.from_rows(X) if len(X) else None)

    def plus(self, other: GatheredRows) -> GatheredRows:
        """Rows of both, pooled when they are many."""
        parts = self.extent, other.extent
        extent = parts[0].plus(parts[1]) if parts[0] and parts[1] else parts[0] or parts[1]
        X, values = self.X + other.X, self.values + other.values
        both = replace(self, X=X, values=values, extent=extent)
        n, d = both.shape
        if self.cells is not None and (n <= 2 * self.n_pooled or n * d <= _GATHERED):
            return both
        both._check_memory(n, d)
        return both if self.cells is None else both.pooled()

    def weighted(self, factor: float) -> GatheredRows:
        """Rows whose weights are multiplied by a factor."""
        if factor == 1.0:
            return self
        return replace(self, values=tuple(each.weighted(factor) for each in self.values))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return sum(map(len, self.X)), self.X[0].shape[1]

    def _check_memory(self, n: int, d: int) -> None:
        why = "that of other likelihoods than of normal noise" if self.cells is None else "them"
        n_bytes = 8 * n * (d + 2)
        check_memory(
            n_bytes,
            f"group_effects and smooth_effects keep rows in memory, {why}: after {n:,} rows a copy",
            f"give at most {n // 2:,} rows, such as a random sample; with normal noise rows of the "
            "same labels are pooled, and those of a curve if its column takes few values",
        )

    def joined(self) -> tuple[Array, RowValues]:
        """All rows in one array."""
        values, *later = self.values
        for each in later:
            values = values.followed_by(each)
        return np.concatenate(self.X), values

    def pooled(self) -> GatheredRows:
        """Rows with the same sums, and fewer of them."""
        assert self.cells is not None
        X, values = pool_rows(*self.joined(), self.cells)
        return replace(self, X=(X,), values=(values,), n_pooled=len(X))

    def moments(self, X: Array, weight: Array | None) -> tuple[Array, Array]:
        """Mean and spread of each column of all rows, of which X are the pooled ones."""
        assert self.extent is not None
        mean = np.average(X, axis=0, weights=weight)
        sd = np.sqrt(np.average(np.square(X - mean), axis=0, weights=weight))
        return mean, self.extent.spread(sd)


def pool_rows(X: Array, values: RowValues, cells: Sequence[int]) -> tuple[Array, RowValues]:
    """Fewer rows, and their observations and weights, with the sums of each cell.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    values : RowValues
        Observations, and positive weights or None.
    cells : sequence of int
        Columns with the same value in all rows of a cell.
    """
    assert values.y is not None
    n, free = len(X), np.delete(np.arange(X.shape[1]), cells)
    order = np.lexsort([X[:, j] for j in cells]) if len(cells) else np.arange(n)
    X, y = X[order], values.y[order]
    weight = np.ones(n) if values.weight is None else values.weight[order]
    ends = np.any(X[1:, cells] != X[:-1, cells], axis=1)
    starts = np.concatenate([[0], np.flatnonzero(ends) + 1])
    sizes = np.diff(np.append(starts, n))
    k = len(free) + 1
    many = sizes > 2 * k
    if not many.any():
        return X, RowValues(y, weight)
    inside = np.repeat(many, sizes)
    numbers = np.column_stack([X[inside][:, free], y[inside]])
    w, of_cell = weight[inside], np.repeat(np.arange(many.sum()), sizes[many])
    first = np.cumsum(sizes[many]) - sizes[many]
    total = np.add.reduceat(w, first)
    origin = numbers[first]  # a row of the cell, about which sums do not cancel
    numbers -= origin[of_cell]
    mean = np.add.reduceat(w[:, None] * numbers, first) / total[:, None]
    numbers -= mean[of_cell]
    products = np.empty((len(total), k, k))
    for i in range(k):
        products[:, i] = np.add.reduceat((w * numbers[:, i])[:, None] * numbers, first)
    size = np.sqrt(np.maximum(np.einsum("cii->ci", products), 0.0))
    unit = np.where(size > 0, size, 1.0)
    squares, vectors = np.linalg.eigh(products / (unit[:, :, None] * unit[:, None, :]))
    root = (vectors * np.sqrt(np.maximum(squares, 0.0))[:, None, :]).swapaxes(1, 2)
    away = root * unit[:, None, :] * np.sqrt(k / total)[:, None, None]
    rows = (origin + mean)[:, None, :] + np.concatenate([away, -away], axis=1)
    made = np.repeat(X[starts[many]], 2 * k, axis=0)
    made[:, free] = rows[..., :-1].reshape(-1, k - 1)
    few = ~inside
    weights = np.concatenate([weight[few], np.repeat(total / (2 * k), 2 * k)])
    observed = np.concatenate([y[few], rows[..., -1].ravel()])
    return np.concatenate([X[few], made]), RowValues(observed, weights)
