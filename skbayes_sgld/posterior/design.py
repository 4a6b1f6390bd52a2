"""Designs: linear maps from coefficients to predictors; here that of dense rows.

The design of sparse rows is in :mod:`~skbayes_sgld.posterior.sparse_design`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skbayes_sgld._linalg import row_parts, row_slices
from skbayes_sgld._typing import Array

HELD_NUMBERS = 2**20  # numbers of X up to which the design is held as one array


class Design:
    """Rows of a design, a linear map from coefficients to predictors.

    Sums over rows take a design block by block. A block is an array ``(B, width)`` or an object
    with ``shape`` and ``gram(weights)``, its weighted sum of outer products ``(width, width)``.

    Attributes
    ----------
    shape : tuple of int
        Numbers of rows and of coefficients of a predictor, the width.
    dtype : type
        Dtype of the products.
    is_array : bool
        Whether blocks are arrays.
    held : ndarray or None
        All rows as one array, if they are kept as one.
    makes_blocks : bool
        Whether blocks are arrays that are made when needed.
    """

    shape: tuple[int, int]
    dtype: Any
    is_array: ClassVar[bool] = False
    held: Array | None = None

    @property
    def makes_blocks(self) -> bool:
        """Whether blocks are arrays that are made when needed."""
        return self.is_array and self.held is None

    def parts(self, n_products: int, min_rows: int = 32, sum_size: int = 1) -> list[list[slice]]:
        """Blocks of rows, divided into the parts of a pass that threads may share.

        Parameters
        ----------
        n_products : int
            Number of predictors of a row; those of a block stay in cache.
        min_rows : int, default=32
            Fewest rows of a block.
        sum_size : int, default=1
            Size of the array that each part adds up.
        """
        return row_parts(self.shape[0], max(self.shape[1], 2 * n_products), min_rows, sum_size)

    def block(self, rows: slice, room: Any = None) -> Any:
        """Block of some rows; it may overwrite ``room``, an earlier block.

        Change it only if ``makes_blocks``: else it may be a part of X.
        """
        raise NotImplementedError

    def as_they_are(self, rows: slice) -> Any:
        """Block of some rows, not centred if that is cheaper."""
        raise NotImplementedError

    def rows(self, idx: Array) -> Any:
        """Block of the rows ``idx (B,)``, or ``(C, B)`` of several chains."""
        raise NotImplementedError

    def apply(self, coefficients: Array, rows: Any) -> Array:
        """Predictors ``(..., K, B)`` of a block, for coefficients ``(..., K, width)``."""
        raise NotImplementedError

    def adjoint(self, score: Array, rows: Any) -> Array:
        """Gradient in the coefficients ``(..., K, width)``, from that in the predictors."""
        raise NotImplementedError

    def squares(self, weights: Array, rows: Any) -> Array:
        """Sums ``(m, width)`` of a block's squares, with weights ``(m, B)``."""
        raise NotImplementedError


class DenseDesign(Design):
    """Columns of X minus a centre, and a column of ones.

    A block is an array ``(B, width)`` in C order: predictors are ``coefficients @ block.T``, and
    their adjoint is ``score @ block``. The design of a small X is kept in memory; for a large X
    blocks are formed when needed. Blocks do not depend on the dtype and memory order of X.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    x_mean : ndarray of shape (d,) or None
        Vector to subtract from the rows.
    has_ones : bool
        Whether a column of ones comes last.
    dtype : type
        Dtype of the blocks; a design in float32 is kept in memory.
    """

    is_array = True

    def __init__(self, X: Array, x_mean: Array | None, has_ones: bool, dtype: type) -> None:
        self.x_mean, self.dtype, self._X = x_mean, dtype, X
        self.shape = X.shape[0], X.shape[1] + has_ones
        if x_mean is None and not has_ones and X.dtype == dtype and X.flags.c_contiguous:
            self.held = X
        elif dtype is np.float32 or X.size <= HELD_NUMBERS:
            held: Array = np.empty(self.shape, dtype)
            for rows in row_slices(*X.shape):
                self._fill(held[rows], X[rows])
            self.held = held

    def _fill(self, out: Array, columns: Array) -> None:
        d = columns.shape[-1]
        if self.x_mean is None:
            out[..., :d] = columns
        else:
            np.subtract(columns, self.x_mean, out=out[..., :d], casting="same_kind")
        out[..., d:] = 1.0

    def block(self, rows: slice, room: Array | None = None) -> Array:
        """Some of the rows."""
        if self.held is not None:
            return self.held[rows]
        columns = self._X[rows]
        out = np.empty((len(columns), self.shape[1])) if room is None else room[: len(columns)]
        self._fill(out, columns)
        return out

    def as_they_are(self, rows: slice) -> Array:
        """Some of the rows; those of a large X are neither centred nor have a column of ones."""
        return (self._X if self.held is None else self.held)[rows]

    def rows(self, idx: Array) -> Array:
        """Rows of the design ``(..., B, width)``."""
        if self.held is not None:
            return self.held.take(idx, axis=0)
        out = np.empty((*idx.shape, self.shape[1]))
        self._fill(out, self._X.take(idx, axis=0))
        return out

    def squares(self, weights: Array, rows: Array) -> Array:
        """Weighted sums of squares."""
        return weights @ np.square(rows)

    # ---- gathered rows --------------------------------------------------------------------------

    def take(self, idx: Array, out: Array | None = None) -> Array:
        """Gathered rows ``(..., B, width)`` for :meth:`apply` and :meth:`adjoint`.

        Rows of a large X are not centred, ``(..., B, d)``: that would cost as much as gathering.
        """
        source = self._X if self.held is None else self.held
        if out is None:
            out = np.empty((*idx.shape, source.shape[1]), self.dtype)
        if source.flags.c_contiguous and source.dtype == self.dtype:
            # mode "raise" would write to a temporary first, and no index is out of range
            source.take(idx, axis=0, out=out, mode="clip")
        else:
            out[...] = source[idx]
        return out

    def apply(self, coefficients: Array, rows: Array) -> Array:
        """Predictors ``(..., K, B)`` of rows, for coefficients ``(..., K, width)``."""
        if rows.shape[-1] == self.shape[1]:
            return np.matmul(coefficients, rows.swapaxes(-1, -2))
        columns = coefficients[..., :-1]
        level = coefficients[..., -1]
        if self.x_mean is not None:
            # one dot product per chain, so that rounding does not depend on the number of chains
            level = level - np.vecdot(columns, self.x_mean)
        u: Array = np.matmul(columns, rows.swapaxes(-1, -2))
        u += level[..., None]
        return u

    def adjoint(self, score: Array, rows: Array) -> Array:
        """Gradient in the coefficients ``(..., K, width)``, from that in the predictors.

        It is 0 for additional columns of zeros.
        """
        if rows.shape[-1] >= self.shape[1]:
            return np.matmul(score, rows)
        total: Array = np.add.reduce(score, axis=-1)[..., None]
        columns: Array = np.matmul(score, rows)  # a product into a part of an array is slow
        if self.x_mean is not None:
            columns -= total * self.x_mean
        return np.concatenate([columns, total], axis=-1)
