"""The design of sparse rows: their columns less a centre, and a column of ones, never formed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sgld._linalg import in_threads, row_slices
from skbayes_sgld._sparse import column_sums, gram_about, squares_about

Array = NDArray[Any]


_SHARED_ENTRIES = 2**17  # entries of X from which threads share a product
_PARTS = 4


class SparseDesign:
    """Rows of a design, in products with linear parameters and with the rows' scores.

    It stands for an array ``(..., B, width)`` in the few operations that models make of theirs:
    products from the left, slices, and gathered rows. A centre c is subtracted algebraically,
    ``(X - 1 c') b = X b - (c' b) 1``.

    Parameters
    ----------
    X : csr_array of shape (N, d)
        The rows of all leading axes, one after the other.
    center : ndarray of shape (d,) or None
    has_level : bool
        Whether a column of ones comes last.
    lead : tuple of int, default=None
        All axes but the last; by default ``(N,)``.
    """

    __array_ufunc__ = None  # products of arrays with it are its own
    held = None  # it never is an array

    def __init__(
        self, X: Any, center: Array | None, has_level: bool, lead: tuple[int, ...] | None = None
    ) -> None:
        self._X, self._has_level, self.dtype = X, has_level, X.dtype.type
        self._center = None if center is None else center.astype(self.dtype, copy=False)
        self._lead = (X.shape[0],) if lead is None else lead
        self._slices: dict[tuple[int, int], SparseDesign] = {}

    def block(self, rows: slice, room: None = None) -> SparseDesign:
        """Some of the rows."""
        return self[rows]

    def parts(self, n_products: int, fewest: int = 1, sums: int = 1) -> list[list[slice]]:
        """Blocks of rows; one part, since threads of sparse products wait for each other."""
        row_size = max(1, self._X.nnz // max(1, self._X.shape[0]))
        return [list(row_slices(self._X.shape[0], max(row_size, 4 * n_products), fewest))]

    def rows(self, idx: Array) -> SparseDesign:
        """Gathered rows ``idx (..., B)``."""
        return self.take(idx)

    def apply(self, coefficients: Array, rows: SparseDesign) -> Array:
        """Predictors of gathered rows."""
        return coefficients @ rows.T

    def adjoint(self, score: Array, rows: SparseDesign) -> Array:
        """Gradient in the coefficients, given that in the predictors."""
        return score @ rows

    @property
    def shape(self) -> tuple[int, ...]:
        """All axes, columns last."""
        return (*self._lead, self._X.shape[1] + self._has_level)

    @property
    def columns(self) -> Any:
        """Columns of X in the rows of all leading axes, as they are stored."""
        return self._X

    @property
    def center(self) -> Array | None:
        """Means ``(d,)`` that are subtracted from the columns, or None."""
        return self._center

    def __len__(self) -> int:
        """Length of the first axis."""
        return self._lead[0]

    def _of(self, X: Any, lead: tuple[int, ...]) -> SparseDesign:
        return SparseDesign(X, self._center, self._has_level, lead)

    def __getitem__(self, at: Any) -> SparseDesign:
        """Rows of a slice, one entry of a first axis, or with None a new first axis."""
        if at is None:
            return self._of(self._X, (1, *self._lead))
        if isinstance(at, slice):
            first, stop, _ = at.indices(self._lead[0])
            if (first, stop) not in self._slices:  # a pass goes through the same blocks each time
                part = self._of(_rows(self._X, first, stop), (stop - first,))
                self._slices[first, stop] = part
            return self._slices[first, stop]
        size = int(np.prod(self._lead[1:]))
        return self._of(_rows(self._X, at * size, (at + 1) * size), self._lead[1:])

    def take(self, idx: Array, out: None = None) -> SparseDesign:
        """Gathered rows ``idx (...)``."""
        return self._of(self._X[idx.ravel()], idx.shape)

    def reshape(self, *shape: int) -> SparseDesign:
        """Design of the same rows with other leading axes."""
        return self._of(self._X, shape[:-1])

    @property
    def T(self) -> _Transposed:
        """Last two axes swapped, for products with linear parameters."""
        return _Transposed(self)

    def swapaxes(self, a: int, b: int) -> _Transposed:
        """Last two axes swapped."""
        return _Transposed(self)

    def __matmul__(self, vector: Array) -> Array:
        """Predictors ``(B,)`` of one vector of linear parameters."""
        return (vector[None, None] @ self.T)[0, 0]

    @cached_property
    def _stacked(self) -> Any:
        """Rows of several chains as one block diagonal matrix ``(C B, C d)``."""
        X = self._X
        if len(self._lead) == 1 or self._lead[0] == 1:
            return X
        C, d = self._lead[0], X.shape[1]
        entries = np.diff(X.indptr[:: self._lead[1]])
        kind = X.indices.dtype if C * d < np.iinfo(X.indices.dtype).max else np.int64
        indices = X.indices + np.repeat(np.arange(C, dtype=kind) * d, entries)
        return sparse.csr_array((X.data, indices, X.indptr), shape=(X.shape[0], C * d))

    @cached_property
    def _back(self) -> Any:
        return self._stacked.T

    @cached_property
    def _parts_of_rows(self) -> list[Any]:
        return _parts(self._stacked)

    @cached_property
    def _parts_of_columns(self) -> list[Any]:
        return _parts(self._back if self._X.nnz < _SHARED_ENTRIES else self._back.tocsr())

    def predictors(self, linear: Array) -> Array:
        """``linear (C, K, width)`` times the transposed rows: ``(C, K, B)``."""
        (C, K, _), X, d = linear.shape, self._stacked, self._X.shape[1]
        coef = linear[..., :d]
        if X.shape[1] == d:  # the same rows for every chain
            columns = np.ascontiguousarray(coef.reshape(C * K, d).T)
            eta = _times(self._parts_of_rows, columns).T.reshape(C, K, -1)
        else:
            by_chain = np.ascontiguousarray(coef.swapaxes(1, 2)).reshape(C * d, K)
            eta = (X @ by_chain).reshape(C, -1, K).swapaxes(1, 2)
        eta = np.ascontiguousarray(eta)
        if self._has_level:
            level = linear[..., d]
            if self._center is not None:
                # einsum, unlike matmul, rounds a chain alike whatever the number of chains
                level = level - np.einsum("ckd,d->ck", coef, self._center)
            eta += level[..., None]
        return eta

    def __rmatmul__(self, score: Array) -> Array:
        """``score (C, K, B)``, or ``(K, B)`` or ``(B,)``, times the rows: ``(..., width)``."""
        if score.ndim < 3:
            flat = score.reshape(1, -1, score.shape[-1])
            return (flat @ self).reshape(*score.shape[:-1], -1)
        (C, K, B), back, d = score.shape, self._back, self._X.shape[1]
        out = np.empty((C, K, self.shape[-1]), np.result_type(score, self.dtype))
        if back.shape[0] == d:
            columns = np.ascontiguousarray(score.reshape(C * K, B).T)
            out[..., :d] = _times(self._parts_of_columns, columns).T.reshape(C, K, d)
        else:
            by_chain = np.ascontiguousarray(score.swapaxes(1, 2)).reshape(C * B, K)
            out[..., :d] = (back @ by_chain).reshape(C, d, K).swapaxes(1, 2)
        if self._has_level:
            total = score.sum(axis=2)
            out[..., d] = total
            if self._center is not None:
                out[..., :d] -= total[..., None] * self._center
        return out

    # ---- sums over the rows ---------------------------------------------------------------------

    def gram(self, weight: Array) -> Array:
        """Weighted sum of the rows' outer products ``(width, width)``."""
        d = self._X.shape[1]
        origin = np.zeros(d) if self._center is None else self._center
        H = np.empty((self.shape[-1],) * 2)
        H[:d, :d] = gram_about(self._X, origin, weight)
        if self._has_level:
            H[d, d] = weight.sum()
            H[d, :d] = H[:d, d] = column_sums(self._X, weight) - H[d, d] * origin
        return H

    def squares(self, weight: Array) -> Array:
        """Weighted sum of the rows' squares ``(width,)``: the diagonal of :meth:`gram`."""
        d = self._X.shape[1]
        origin = np.zeros(d) if self._center is None else self._center
        of_columns = squares_about(self._X, origin, weight)
        return np.append(of_columns, weight.sum()) if self._has_level else of_columns

    def lengths(self, scale: Array) -> Array:
        """Squared lengths ``(n,)`` of the rows about the centre, columns times ``scale (d,)``."""
        each = np.repeat(np.arange(self._X.shape[0]), np.diff(self._X.indptr))
        scaled = self._X.data * scale[self._X.indices]
        squares = np.bincount(each, np.square(scaled), self._X.shape[0])
        if self._center is None:
            return squares
        moved = np.square(scale) * self._center
        return np.maximum(squares - 2.0 * (self._X @ moved) + moved @ self._center, 1e-24)

    def toarray(self) -> Array:
        """A block of rows as an array, where what is computed of it is dense in any case."""
        block = np.ones(self.shape)
        columns = block[:, : self._X.shape[1]]
        columns[...] = self._X.toarray()
        if self._center is not None:
            columns -= self._center
        return block


class _Transposed:
    """A design from the right: linear parameters times it are the rows' predictors."""

    __array_ufunc__ = None

    def __init__(self, design: SparseDesign) -> None:
        self._design = design

    def __rmatmul__(self, linear: Array) -> Array:
        return self._design.predictors(linear)


def _parts(A: Any) -> list[Any]:
    """Rows of A in parts of about as many entries, for threads to share; few entries are one."""
    if A.nnz < _SHARED_ENTRIES:
        return [A]
    inner = np.searchsorted(A.indptr, np.linspace(0, A.nnz, _PARTS + 1)[1:-1])
    edges = [0, *inner.tolist(), A.shape[0]]
    return [A[a:b] for a, b in zip(edges[:-1], edges[1:], strict=True) if b > a]


def _times(parts: list[Any], columns: Array) -> Array:
    """Product of a matrix in parts with columns."""
    if len(parts) == 1:
        return parts[0] @ columns
    return np.concatenate(in_threads(lambda part: part @ columns, parts))


def _rows(X: Any, first: int, stop: int) -> Any:
    """Some rows, which share the memory of all."""
    a, b = X.indptr[first], X.indptr[stop]
    part = X.data[a:b], X.indices[a:b], X.indptr[first : stop + 1] - a
    return sparse.csr_array(part, shape=(stop - first, X.shape[1]))


def weighted_squares(design: Any, weight: Array) -> Array:
    """Weighted sum of the squares of a design's rows, dense or sparse."""
    if isinstance(design, SparseDesign):
        return design.squares(weight)
    return weight @ np.square(design)


def as_array(block: Any) -> Array:
    """A block of a design, or of few numbers, as an array."""
    return block if isinstance(block, np.ndarray) else block.toarray()
