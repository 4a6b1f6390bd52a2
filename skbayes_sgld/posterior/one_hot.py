"""Sums over rows of which most columns say which level a factor has.

The predictors of such rows are products with the other columns, plus a number for each level. Rows
are sorted by their level, so that neither has to be looked up. Gradients of seven classes by 77
columns, 60 of which are levels, take 0.6 of the time, and curvatures a third.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import RowKernel
from skbayes_sgld.posterior.coefficient_maps import CoefficientMap
from skbayes_sgld.posterior.design import Design
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.posterior.row_sum import RowSum

# Numbers of X below which levels are not looked for. From 2**17 on, fits of three classes take 0.85
# to 1 of the time, and gradients of seven classes by 2,000 rows of 77 columns 0.8
_FEWEST_NUMBERS = 2**17
_FEWEST_LEVELS = 24  # columns of a factor, and their least share: else products take little longer
_LEAST_SHARE = 0.5
_LOOKED_AT = 512  # rows that decide where the search goes on


class Levels(NamedTuple):
    """A factor: its columns, and the level of each row ``(n,)``, 0 if it has none of these."""

    columns: slice
    of_rows: Array


def levels_of(X: Array) -> Levels | None:
    """Factor that has most of the columns of X.

    Its columns are neighbouring columns of zeros and ones, at most one of which is 1 in a row.
    None if no factor has so many columns that sorting pays.
    """
    n, d = X.shape
    least = max(_FEWEST_LEVELS, _LEAST_SHARE * d)
    if n * d < _FEWEST_NUMBERS or d < least:
        return None
    some = X[:: max(1, n // _LOOKED_AT)]
    binary = ((some == 0.0) | (some == 1.0)).all(axis=0)
    if binary.sum() < least:
        return None
    columns = _longest(some, binary)
    if columns.stop - columns.start < least:
        return None
    Z = X[:, columns]
    in_range = ((Z == 0.0) | (Z == 1.0)).all() and (Z.sum(axis=1) <= 1.0).all()
    return Levels(columns, np.where(Z.any(axis=1), Z.argmax(axis=1) + 1, 0)) if in_range else None


def _longest(some: Array, binary: Array) -> slice:
    """Longest run of neighbouring binary columns of which no two are 1 in one row."""
    first, longest = 0, slice(0, 0)
    taken = np.zeros(len(some), bool)
    for j in range(some.shape[1]):
        ones = some[:, j] == 1.0
        if not binary[j]:
            first, taken = j + 1, np.zeros_like(taken)
            continue
        if (ones & taken).any():
            first, taken = j, np.zeros_like(taken)
        taken = taken | ones
        if j + 1 - first > longest.stop - longest.start:
            longest = slice(first, j + 1)
    return longest


@dataclass
class LevelBlock:
    """Rows in the order of their levels.

    Attributes
    ----------
    columns : ndarray of shape (B, m)
        Columns other than the levels.
    transposed : ndarray of shape (m, B)
    levels : ndarray of shape (k,)
        Levels of the rows, in order.
    starts, counts : ndarray of shape (k,)
        First row and number of rows of each of these levels.
    shape : tuple of int
        Number of rows, and of columns and levels.
    """

    columns: Array
    transposed: Array
    levels: Array
    starts: Array
    counts: Array
    shape: tuple[int, int]

    def gram(self, weights: Array) -> Array:
        """Weighted sum of outer products."""
        m = self.columns.shape[1]
        weighted = self.columns * weights[:, None]
        both = np.zeros((self.shape[1],) * 2, weighted.dtype)
        both[:m, :m] = self.transposed @ weighted
        at = m + self.levels
        both[at, :m] = np.add.reduceat(weighted, self.starts, axis=0)
        both[:m, m:] = both[m:, :m].T
        both[at, at] = np.add.reduceat(weights, self.starts)
        return both


class LevelDesign(Design):
    """Columns of X minus a centre, but for one factor's, and its levels; rows are sorted by these.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    x_mean : ndarray of shape (d,) or None
        Vector to subtract from the rows.
    found : Levels
    order : ndarray of int of shape (n,)
        Order of the rows.
    dtype : type
        Dtype of the products.
    """

    def __init__(
        self, X: Array, x_mean: Array | None, found: Levels, order: Array, dtype: type
    ) -> None:
        others = np.delete(X, found.columns, axis=1)[order]
        if x_mean is not None:
            others = others - np.delete(x_mean, found.columns)
        self._columns: Array = np.ascontiguousarray(others, dtype)
        self._transposed, self._level = np.ascontiguousarray(self._columns.T), found.of_rows[order]
        self._blocks: dict[tuple[int, int], LevelBlock] = {}
        self.dtype = dtype
        self.shape = len(X), X.shape[1] + 1  # a level without a column comes first

    def block(self, rows: slice, room: Any = None) -> LevelBlock:
        """Some of the rows."""
        key = rows.start, rows.stop
        if key not in self._blocks:
            level = self._level[rows]
            levels, starts, counts = np.unique(level, return_index=True, return_counts=True)
            parts = self._columns[rows], self._transposed[:, rows], levels, starts, counts
            self._blocks[key] = LevelBlock(*parts, (len(level), self.shape[1]))
        return self._blocks[key]

    def apply(self, coefficients: Array, rows: LevelBlock) -> Array:
        """Predictors ``(..., K, B)``, for coefficients ``(..., K, width)``."""
        m = rows.columns.shape[1]
        u: Array = np.matmul(coefficients[..., :m], rows.transposed)
        u += np.repeat(coefficients[..., m + rows.levels], rows.counts, axis=-1)
        return u

    def adjoint(self, score: Array, rows: LevelBlock) -> Array:
        """Gradient in the coefficients ``(..., K, width)``, from that in the predictors."""
        m = rows.columns.shape[1]
        grad = np.zeros((*score.shape[:-1], self.shape[1]), score.dtype)
        grad[..., :m] = np.matmul(score, rows.columns)
        grad[..., m + rows.levels] = np.add.reduceat(score, rows.starts, axis=-1)
        return grad


class LevelMap(CoefficientMap):
    """Map from theta to the coefficients of columns and levels, from that to those of columns.

    A level's coefficient is that of its column plus the intercept at the centre of X.

    Parameters
    ----------
    inner : CoefficientMap
    columns : slice
        Columns of the factor.
    center : ndarray of shape (L,)
        Centre of these columns.
    width : int
        Number of columns and one.
    """

    def __init__(self, inner: CoefficientMap, columns: slice, center: Array, width: int) -> None:
        super().__init__(inner.n_products, width)
        self._inner, self._columns, self._center = inner, columns, center
        self._others = np.delete(np.arange(width - 1), columns)

    def coefficients(self, theta: Array) -> Array:
        """Coefficients of the other columns, of no level, and of the levels."""
        given = self._inner.coefficients(theta)
        own = given[..., self._columns]
        # one dot product per chain, so that rounding does not depend on the number of chains
        level = given[..., -1] - np.vecdot(own, self._center.astype(own.dtype, copy=False))
        parts = given[..., self._others], level[..., None], own + level[..., None]
        return np.concatenate(parts, axis=-1)

    def _spread(self, grad: Array) -> Array:
        """Gradient in the coefficients of all columns ``(..., width)``."""
        m, out = len(self._others), np.empty_like(grad)
        total: Array = np.add.reduce(grad[..., m:], axis=-1)[..., None]
        out[..., self._others] = grad[..., :m]
        out[..., self._columns] = grad[..., m + 1 :] - total * self._center
        out[..., -1:] = total
        return out

    def gradient(self, grad: Array) -> Array:
        """Gradient in theta ``(C, P)``, from that in the coefficients."""
        return self._inner.gradient(self._spread(grad))

    def hessian(self, H: Array) -> Array:
        """Hessian in theta ``(P, P)``, from that in the coefficients."""
        K, w = self.n_products, self._width
        half = self._spread(H.reshape(K * w, K, w)).reshape(K * w, K * w)
        whole = self._spread(half.T.reshape(K * w, K, w)).reshape(K * w, K * w)
        return self._inner.hessian(whole)


class LevelSum(RowSum):
    """Log likelihood of all rows, sorted by the levels of one factor.

    Attributes
    ----------
    order : ndarray of int of shape (n,)
        Order of the rows.
    """

    order: Array

    @classmethod
    def of(
        cls,
        X: Array,
        x_mean: Array | None,
        found: Levels,
        kernel: RowKernel,
        coefficient_map: CoefficientMap,
        dtype: type,
    ) -> LevelSum:
        """Sum from rows with an intercept, the factor that was found, and a kernel of all rows."""
        order = np.argsort(found.of_rows, kind="stable")
        center = (np.zeros(X.shape[1]) if x_mean is None else x_mean)[found.columns]
        wide = LevelMap(coefficient_map, found.columns, center, X.shape[1] + 1)
        design = LevelDesign(X, x_mean, found, order, dtype)
        sums = cls(design, kernel[..., order], wide)
        sums.order = order
        return sums

    def expand(self, theta: Array) -> Expansion:
        """Value and derivatives; those of each row are in the order of X."""
        at = super().expand(theta)
        of_rows = []
        for each in at.of_rows:
            of_rows.append(np.empty_like(each))
            of_rows[-1][self.order] = each
        return at._replace(of_rows=tuple(of_rows))
