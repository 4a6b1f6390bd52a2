"""Rows of one term of groups, sorted by label, in blocks of whole labels that fit in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skbayes_sgld._typing import Array

_ROWS = 2**14  # rows of a block, if no label has more


class LabelBlock:
    """Rows of consecutive labels, and sums over the rows of each label.

    Arrays of labels are ``(..., L)`` and of rows ``(..., n)``, for the labels and rows of the
    block.

    Parameters
    ----------
    working : WorkingModel
        With one term of groups and no others.
    kernel : RowKernel
        Kernel of all rows, in their original order.
    labels : slice
        The labels of the block.
    """

    def __init__(self, working: Any, kernel: Any, labels: slice) -> None:
        self.labels, starts = labels, working.starts[labels.start : labels.stop + 1]
        rows = working.order[starts[0] : starts[-1]]
        self.X = np.ascontiguousarray(working.fixed[rows].T)
        """Columns of the coefficients and the intercept ``(d, n)``."""
        self.kernel = kernel[..., rows]
        columns = working.values[rows].T
        self._values = [None if np.all(each == 1.0) else each.copy() for each in columns]
        self._starts, self._sizes = starts[:-1] - starts[0], np.diff(starts)
        empty = self._sizes == 0  # labels whose rows have a weight of 0
        self._empty = empty if empty.any() else None

    def sum(self, rows: Array) -> Array:
        """Sums over the rows of each label."""
        if self._empty is None:
            return np.add.reduceat(rows, self._starts, axis=-1)
        sums = np.zeros((*rows.shape[:-1], len(self._sizes)))
        if rows.shape[-1]:
            some = self._starts[~self._empty]
            sums[..., ~self._empty] = np.add.reduceat(rows, some, axis=-1)
        return sums

    def spread(self, labels: Array) -> Array:
        """Values of the label of each row."""
        return np.repeat(labels, self._sizes, axis=-1)

    def times(self, rows: Array, effect: int) -> Array:
        """Rows times the numbers of an effect."""
        values = self._values[effect]
        return rows if values is None else rows * values

    def local(self, base: Array, own: Array, effects: Any) -> Array:
        """Local parameters ``(C, n_local, n)`` at predictors without effects, with these effects.

        ``base`` is ``(C, n)``, ``own (C, n_own)``, and each effect ``(C, L)`` or ``(1, L)``.
        """
        local = np.empty((len(base), 1 + own.shape[1], base.shape[1]))
        local[:, 0] = base
        for k, each in enumerate(effects):
            local[:, 0] += self.times(self.spread(each), k)
        local[:, 1:] = own[:, :, None]
        return local


def label_blocks(working: Any, kernel: Any) -> Iterator[LabelBlock]:
    """Blocks of all labels of a model with one term of groups and no others."""
    starts, n_labels, first = working.starts, working.n_labels, 0
    while first < n_labels:
        end = int(np.searchsorted(starts, starts[first] + _ROWS, side="right")) - 1
        end = min(max(end, first + 1), n_labels)
        yield LabelBlock(working, kernel, slice(first, end))
        first = end
