"""Sparse rows: moments of their columns and sums of products, without a dense copy.

Rows are ``scipy.sparse.csr_array``. Subtracting an origin from the columns is a correction of rank
one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from skbayes_sgld._typing import Array


def as_rows(X: Any) -> Any:
    """Sparse rows in compressed form, without duplicate entries; dense arrays stay as they are."""
    if not sparse.issparse(X):
        return X
    rows = sparse.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()  # do not change the caller's arrays
        rows.sum_duplicates()
    return rows


def _by_column(X: Any, entry_values: Array) -> Array:
    """Sums ``(d,)`` over the stored entries of each column."""
    sums = np.bincount(X.indices, weights=entry_values, minlength=X.shape[1])
    return np.asarray(sums, np.float64)  # without entries NumPy returns integers


def _entry_values(X: Any, each_row: Array) -> Array:
    """Value of ``each_row`` for each stored entry."""
    return np.repeat(each_row, np.diff(X.indptr))


def column_sums(X: Any, weight: Array) -> Array:
    """Weighted sum of each column ``(d,)``."""
    return X.T @ weight


def column_squares(X: Any) -> Array:
    """Sum of the squares of each column ``(d,)``."""
    return _by_column(X, np.square(X.data))


def column_ranges(X: Any) -> tuple[Array, Array]:
    """Least and largest value of each column, ``(d,)`` each, including zeros."""
    low, high = (of.toarray().ravel().astype(np.float64) for of in (X.min(axis=0), X.max(axis=0)))
    return low, high


def column_moments(X: Any, weight: Array | None = None) -> tuple[Array, Array]:
    """Mean and spread of each column, defined as in :func:`skbayes_sgld._linalg.column_moments`."""
    if weight is not None and not np.all(weight > 0):
        X, weight = X[weight > 0], weight[weight > 0]
    low, high = column_ranges(X)
    largest = np.maximum(np.abs(low), np.abs(high))
    unit = np.where(largest > 0, largest, 1.0)
    z = sparse.csr_array((X.data / unit[X.indices], X.indices, X.indptr), shape=X.shape)
    mean, variance = mean_variance_axis(z, axis=0, weights=weight)  # no square overflows
    spread = unit * np.sqrt(variance)
    other = (X.data != low[X.indices]) & (X.data != high[X.indices])
    absent = np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0]
    three = (_by_column(X, other.astype(float)) > 0) | (absent & (low < 0) & (high > 0))
    spread = np.where(three, spread, high - low)
    return unit * mean, np.where(low == high, unit, spread)


def gram_about(X: Any, origin: Array, weight: Array | None = None) -> Array:
    """Weighted sum of the products of the columns less ``origin (d,)``, a matrix ``(d, d)``."""
    w = np.ones(X.shape[0]) if weight is None else weight
    gram = (X.T @ weigh(X, w)).toarray()
    return move_gram(gram, column_sums(X, w), w.sum(), origin) if origin.any() else gram


def move_gram(gram: Array, sums: Array, total: float, origin: Array) -> Array:
    """Products about an origin, from those about 0, the columns' sums and the total weight."""
    shift = np.outer(origin, sums - 0.5 * total * origin)
    return gram - (shift + shift.T)


def squares_about(X: Any, origin: Array, weight: Array) -> Array:
    """Diagonal of :func:`gram_about` ``(d,)``."""
    square = _by_column(X, _entry_values(X, weight) * np.square(X.data))
    return square - origin * (2.0 * column_sums(X, weight) - weight.sum() * origin)


def weigh(X: Any, weight: Array) -> Any:
    """Rows times their weights."""
    scaled = X.data * _entry_values(X, weight)
    return sparse.csr_array((scaled, X.indices, X.indptr), shape=X.shape)


def scale_columns(X: Any, scale: Array | float) -> Any:
    """Columns times their scales."""
    each = np.broadcast_to(np.asarray(scale, dtype=float), X.shape[1])
    return sparse.csr_array((X.data * each[X.indices], X.indices, X.indptr), shape=X.shape)
