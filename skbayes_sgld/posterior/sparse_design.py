"""The design of sparse rows: columns minus a centre, and a column of ones, never formed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from skbayes_sgld._linalg import in_threads, row_slices
from skbayes_sgld._sparse import column_sums, gram_about, scale_columns, squares_about
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.design import Design

_SHARED_ENTRIES = 2**17  # entries of X from which threads share a product
_PARTS = 4


class SparseDesign(Design):
    """Columns of a sparse X minus a centre, and a column of ones.

    A block is a design of some of the rows, which shares the memory of all rows. A centre c is
    subtracted algebraically, ``(X - 1 c') b = X b - (c' b) 1``.

    Parameters
    ----------
    X : csr_array of shape (n, d)
    x_mean : ndarray of shape (d,) or None
    has_ones : bool
        Whether a column of ones comes last.
    n_chains : int, default=1
        Number of chains to which these gathered rows belong, chain by chain.
    """

    def __init__(self, X: Any, x_mean: Array | None, has_ones: bool, n_chains: int = 1) -> None:
        self.X, self.has_ones, self.dtype, self.n_chains = X, has_ones, X.dtype.type, n_chains
        n, d = X.shape
        self.shape = n, d + has_ones
        self.x_mean: Array = np.zeros(d) if x_mean is None else x_mean
        self.x_mean = self.x_mean.astype(self.dtype, copy=False)
        self._slices: dict[tuple[int, int], SparseDesign] = {}

    def block(self, rows: slice, room: None = None) -> SparseDesign:
        """Some of the rows."""
        first, stop, _ = rows.indices(self.shape[0])
        if (first, stop) not in self._slices:  # every pass uses the same blocks
            a, b = self.X.indptr[first], self.X.indptr[stop]
            part = self.X.data[a:b], self.X.indices[a:b], self.X.indptr[first : stop + 1] - a
            X = sparse.csr_array(part, shape=(stop - first, self.X.shape[1]))
            self._slices[first, stop] = SparseDesign(X, self.x_mean, self.has_ones)
        return self._slices[first, stop]

    def as_they_are(self, rows: slice) -> SparseDesign:
        """Some of the rows, not centred."""
        return self.block(rows)

    def parts(self, n_products: int, min_rows: int = 1, sum_size: int = 1) -> list[list[slice]]:
        """Blocks of rows in one part, since threads of sparse products wait for each other."""
        n = self.shape[0]
        row_size = max(1, self.X.nnz // max(1, n))
        return [list(row_slices(n, max(row_size, 4 * n_products), min_rows))]

    def rows(self, idx: Array) -> SparseDesign:
        """Rows ``idx (B,)``, or ``(C, B)`` of several chains."""
        return SparseDesign(self.X[idx.ravel()], self.x_mean, self.has_ones, idx[..., 0].size)

    # ---- products -------------------------------------------------------------------------------

    @cached_property
    def _stacked(self) -> Any:
        """Block diagonal matrix ``(C B, C d)`` of the chains' rows."""
        X, C, (n, d) = self.X, self.n_chains, self.X.shape
        if C == 1:
            return X
        entries = np.diff(X.indptr[:: n // C])
        kind = X.indices.dtype if C * d < np.iinfo(X.indices.dtype).max else np.int64
        indices = X.indices + np.repeat(np.arange(C, dtype=kind) * d, entries)
        return sparse.csr_array((X.data, indices, X.indptr), shape=(n, C * d))

    @cached_property
    def _parts_of_rows(self) -> list[Any]:
        return _parts(self._stacked)

    @cached_property
    def _parts_of_columns(self) -> list[Any]:
        back = self._stacked.T
        return _parts(back if self.X.nnz < _SHARED_ENTRIES else back.tocsr())

    def apply(self, coefficients: Array, rows: SparseDesign) -> Array:
        """Predictors ``(C, K, B)`` of rows, for coefficients ``(C, K, width)``."""
        (C, K, _), d = coefficients.shape, rows.X.shape[1]
        columns = coefficients[..., :d]
        if rows.n_chains == 1:  # the same rows for every chain
            flat = np.ascontiguousarray(columns.reshape(C * K, d).T)
            u = _times(rows._parts_of_rows, flat).T.reshape(C, K, -1)
        else:
            flat = np.ascontiguousarray(columns.swapaxes(1, 2)).reshape(C * d, K)
            u = (rows._stacked @ flat).reshape(C, -1, K).swapaxes(1, 2)
        u = np.ascontiguousarray(u)
        # einsum's rounding, unlike matmul's, does not depend on the number of chains
        level = -np.einsum("ckd,d->ck", columns, rows.x_mean)
        if rows.has_ones:
            level += coefficients[..., d]
        u += level[..., None]
        return u

    def adjoint(self, score: Array, rows: SparseDesign) -> Array:
        """Gradient in the coefficients ``(C, K, width)``, from that in the predictors."""
        (C, K, B), d = score.shape, rows.X.shape[1]
        out = np.empty((C, K, rows.shape[1]), np.result_type(score, rows.dtype))
        if rows.n_chains == 1:
            flat = np.ascontiguousarray(score.reshape(C * K, B).T)
            out[..., :d] = _times(rows._parts_of_columns, flat).T.reshape(C, K, d)
        else:
            flat = np.ascontiguousarray(score.swapaxes(1, 2)).reshape(C * B, K)
            out[..., :d] = (rows._stacked.T @ flat).reshape(C, d, K).swapaxes(1, 2)
        total = score.sum(axis=2)
        out[..., :d] -= total[..., None] * rows.x_mean
        out[..., d:] = total[..., None]
        return out

    # ---- sums over the rows ---------------------------------------------------------------------

    def gram(self, weight: Array) -> Array:
        """Weighted sum of the rows' outer products ``(width, width)``."""
        d = self.X.shape[1]
        H = np.empty((self.shape[1],) * 2)
        H[:d, :d] = gram_about(self.X, self.x_mean, weight)
        if self.has_ones:
            H[d, d] = weight.sum()
            H[d, :d] = H[:d, d] = column_sums(self.X, weight) - H[d, d] * self.x_mean
        return H

    def squares(self, weights: Array, rows: SparseDesign) -> Array:
        """Weighted sums of squares: diagonals of :meth:`gram`."""
        each = [squares_about(rows.X, rows.x_mean, weight) for weight in weights]
        return np.column_stack([each, weights.sum(axis=1)]) if self.has_ones else np.array(each)

    def lengths(self, scale: Array) -> Array:
        """Squared lengths ``(n,)`` of the centred rows, with columns times ``scale (d,)``."""
        squares = np.square(scale_columns(self.X, scale)).sum(axis=1)
        weighted = np.square(scale) * self.x_mean
        return np.maximum(squares - 2.0 * (self.X @ weighted) + weighted @ self.x_mean, 1e-24)

    def toarray(self) -> Array:
        """Block of rows as an array, for results that are dense in any case."""
        block = np.ones(self.shape)
        block[:, : self.X.shape[1]] = self.X.toarray() - self.x_mean
        return block


def _parts(A: Any) -> list[Any]:
    """Rows of A in parts with about equal numbers of entries, for threads; one if A is small."""
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


def as_array(block: Any) -> Array:
    """Block of any design as an array."""
    return block if isinstance(block, np.ndarray) else block.toarray()
