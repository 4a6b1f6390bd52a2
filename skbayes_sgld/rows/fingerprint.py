"""Sums over the rows of a fit, by which a later call recognises the same rows.

Sums do not depend on the order of the rows, on the dtype, or on whether X is sparse. There are a
few numbers for each column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from skbayes_sgld._linalg import row_slices, sums_of_squares
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.row_values import RowValues

# Difference of two sums, relative to the root of the sum of squares, up to which rows are the same.
# Rounding to float32 changes a sum by 1e-7 of that root, and by 1e-4 if a standardised column was
# rounded in units in which its mean is 1,000 sds. Other rows change it by about 1
_SAME = 1e-3
_NUMBERS = 2**18  # numbers in X beyond which only some columns are summed; a millisecond or two


@dataclass(frozen=True)
class Fingerprint:
    """Number of rows, and sums over them: of the columns, and of the columns times y.

    Attributes
    ----------
    n_rows : int
        Rows with a weight above 0.
    weight : float
        Sum of their weights, as given by the user.
    sums : ndarray of shape (2, d + 2)
        Sums of the columns of X, of y and of what the rows bring besides (an offset, the number
        of trials, others, added up): first these alone, then times y. nan if a sum is not known.
    squares : ndarray of shape (d + 2,)
        Sums of squares of the columns, of y and of the sum of the others.
    """

    n_rows: int
    weight: float
    sums: Array
    squares: Array

    @classmethod
    def of(cls, X: Any, values: RowValues) -> Fingerprint:
        """Fingerprint of rows with a weight above 0; y may hold successes among trials."""
        y, weight = values.y, values.weight
        assert y is not None
        more = values.offset, values.n_averaged, *values.others.values()
        brought = [v for v in more if v is not None]
        if y.dtype.names is not None:
            y, brought = y["successes"], [*brought, y["trials"]]
        n, d = X.shape
        y = np.asarray(y, dtype=float)
        sums, squares = np.full((2, d + 2), np.nan), np.zeros(d + 2)
        some = _chosen(X)
        with np.errstate(all="ignore"):  # squares of very large or small data
            sums[:, some], squares[some] = _sums(X[:, some], y)
            sums[:, -2], squares[-2], sums[:, -1] = (y.sum(), y @ y), y @ y, 0.0
            if brought:
                each = [v.reshape(n, -1).sum(axis=1, dtype=float) for v in brought]
                sums[:, -1:], squares[-1:] = _sums(sum(each[1:], each[0])[:, None], y)
        return cls(n, float(n if weight is None else weight.sum()), sums, squares)

    def plus(self, other: Fingerprint) -> Fingerprint:
        """Fingerprint of the rows of both together."""
        return Fingerprint(
            self.n_rows + other.n_rows,
            self.weight + other.weight,
            self.sums + other.sums,
            self.squares + other.squares,
        )

    def without_target(self) -> Fingerprint:
        """Fingerprint of only the columns of X."""
        sums = self.sums.copy()
        sums[1], sums[:, -2:] = np.nan, np.nan
        return replace(self, sums=sums)

    def difference(self, other: Fingerprint) -> str:
        """Part in which other rows differ: "rows", "y", "X" or "argument"; "" if none does."""
        if self.n_rows != other.n_rows:
            return "rows"
        with np.errstate(all="ignore"):
            size = np.sqrt(np.maximum(self.squares, other.squares))
            bound = np.stack([size, size * size[-2] / np.sqrt(max(self.n_rows, 1))])
            apart = np.abs(self.sums - other.sums) > _SAME * bound  # False for nan
        if apart[0, -2]:
            return "y"
        if apart[:, :-2].any():
            return "X"
        return "argument" if apart.any() else ""


def _chosen(X: Any) -> slice:
    """Columns of X to sum up: all, or if there are many numbers the first and some others."""
    n, d = X.shape
    few = sparse.issparse(X) or n * d <= _NUMBERS
    return slice(0, d, 1 if few else -(-d // max(_NUMBERS // n, 1)))


def _sums(X: Any, y: Array) -> tuple[Array, Array]:
    """Sums of the columns, alone and times y ``(2, k)``, and of their squares ``(k,)``."""
    sums, squares = np.zeros((2, X.shape[1])), np.zeros(X.shape[1])
    if sparse.issparse(X):
        values = X.astype(float, copy=False)
        sums += np.stack([np.ones(len(y)), y]) @ values
        return sums, np.asarray(values.multiply(values).sum(axis=0)).ravel()
    for rows in row_slices(X.shape[0], X.shape[1], 2**15):
        block = np.ascontiguousarray(X[rows], dtype=float)
        sums += np.ones(len(block)) @ block, y[rows] @ block  # one product takes twice as long
        squares += sums_of_squares(block)
    return sums, squares
