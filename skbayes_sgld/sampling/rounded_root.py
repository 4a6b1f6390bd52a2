"""Products with the root of a metric of many parameters, in single precision."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import BLOCK_NUMBERS, GROUP, equal_slices, matmul_rows

Array = NDArray[Any]

# Blocks of columns at least, which leave 63 % of a triangular root: a product of 128 positions of
# 325 parameters takes 0.29 ms, in place of 0.40 ms
_BLOCKS = 4


class RoundedRoot:
    """The products with a root, in float32 and without most of the zeros of a triangular one.

    A root of many parameters does not stay in cache, and its bytes are what a product costs.
    """

    dtype = np.float32
    _group: int | None = GROUP

    def __init__(self, root: Array) -> None:
        parts = equal_slices(len(root), max(_BLOCKS, root.size // BLOCK_NUMBERS))
        narrow = root.astype(np.float32)
        self._blocks, self._blocks_t = _nonzero(narrow.T, parts), _nonzero(narrow, parts)

    def in_groups_of(self, size: int | None) -> RoundedRoot:
        """Copy that takes so many positions in a product; None takes all."""
        other = copy(self)
        other._group = size
        return other

    def sqrt(self, z: Array) -> Array:
        """``R z``, for ``z (C, P)``, in float32."""
        return self._product(z, self._blocks)

    def sqrt_t(self, v: Array) -> Array:
        """``R^T v``, in float32."""
        return self._product(v, self._blocks_t)

    def _product(self, a: Array, blocks: list[tuple[slice, slice, Array]]) -> Array:
        narrow, out = a.astype(np.float32, copy=False), np.empty(a.shape, np.float32)
        for rows, columns, block in blocks:
            out[:, columns] = matmul_rows(narrow[:, rows], block, self._group or len(a))
        return out


def _nonzero(matrix: Array, parts: list[slice]) -> list[tuple[slice, slice, Array]]:
    """Blocks of columns of a matrix, from their first row that is not zero to their last."""
    blocks = []
    for columns in parts:
        used = np.flatnonzero(matrix[:, columns].any(axis=1))
        rows = slice(used[0], used[-1] + 1)
        blocks.append((rows, columns, np.ascontiguousarray(matrix[rows, columns])))
    return blocks
