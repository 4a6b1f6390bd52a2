"""Sums of products of sparse columns with y, as the statistics of a normal model take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._sparse import column_sums, gram_about, move_gram

Array = NDArray[Any]


class SparseTable:
    """The rows of a sparse X with y as a last column.

    The columns of X are never shifted: an origin enters through corrections of rank one. They cost
    the digits that the square of a mean has over the variance, few in columns that are mostly zero.
    """

    def __init__(self, X: Any, y: Array, weight: Array | None) -> None:
        self._X, self._y = X, y
        self._weight = np.ones(len(y)) if weight is None else weight
        self._gram = gram_about(X, np.zeros(X.shape[1]), self._weight)
        self._sums = column_sums(X, self._weight)

    def typical_row(self) -> Array:
        """Origin of the sums ``(d + 1,)``: zero for the columns of X, the mean for y."""
        return np.append(np.zeros(self._X.shape[1]), np.average(self._y, weights=self._weight))

    def products(self, origin: Array) -> Array:
        """Sums of products of the columns less ``origin``, and of ones, ``(d + 2, d + 2)``."""
        d, w, of_x = self._X.shape[1], self._weight, origin[:-1]
        y, total = self._y - origin[-1], float(self._weight.sum())
        products = np.empty((d + 2, d + 2))
        products[:d, :d] = move_gram(self._gram, self._sums, total, of_x)
        products[d, :d] = column_sums(self._X, w * y) - (w @ y) * of_x
        products[d + 1, :d] = self._sums - total * of_x
        products[:d, d:] = products[d:, :d].T
        products[d:, d:] = [[w @ np.square(y), w @ y], [w @ y, total]]
        return products

    def residual_products(self, center: Array, coef: Array) -> Array:
        """Sums of products of the residuals with the columns, and with themselves ``(d + 1,)``."""
        residual = self._y - center[-1] - (self._X @ coef - center[:-1] @ coef)
        weighted = self._weight * residual
        cross = column_sums(self._X, weighted) - weighted.sum() * center[:-1]
        return np.append(cross, weighted @ residual)
