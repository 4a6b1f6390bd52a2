"""Sums over the rows of a normal linear model, which add up from batch to batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.posterior.statistics import table_of

Array = NDArray[Any]


@dataclass(frozen=True)
class Sums:
    """Weight, mean and sums of products about the mean of rows, with y as their last column.

    Attributes
    ----------
    total : float
    mean : ndarray of shape (d + 1,)
    products : ndarray of shape (d + 1, d + 1)
    """

    total: float
    mean: Array
    products: Array

    @classmethod
    def of_rows(cls, X: Any, y: Array, weight: Array | None) -> Sums:
        """Sums of rows, dense or sparse, in two passes: products about the mean keep digits."""
        data = table_of(X, y, weight)
        origin = data.typical_row()
        first = data.products(origin)
        origin = origin + first[-1, :-1] / first[-1, -1]
        about = data.products(origin)
        total, moved = float(about[-1, -1]), about[-1, :-1]
        products = about[:-1, :-1] - np.outer(moved, moved) / total
        return cls(total, origin + moved / total, products)

    def plus(self, other: Sums) -> Sums:
        """Sums of both (Chan, Golub & LeVeque 1983, eq. 2.1)."""
        total = self.total + other.total
        apart = other.mean - self.mean
        between = np.outer(apart, apart) * (self.total * other.total / total)
        mean = self.mean + apart * (other.total / total)
        return Sums(total, mean, self.products + other.products + between)

    def tempered(self, power: float) -> Sums:
        """Sums of rows whose weights are multiplied by ``power``."""
        return Sums(power * self.total, self.mean, power * self.products)

    def as_rows(self) -> tuple[Array, Array, Array]:
        """X, y and weights of ``2 (d + 1)`` rows that have these sums.

        They lie at equal distances on both sides of the mean along a root of the products. A
        normal likelihood knows its rows by their sums alone.
        """
        size = np.sqrt(np.maximum(np.diagonal(self.products), 0.0))
        unit = np.where(size > 0, size, 1.0)
        values, vectors = np.linalg.eigh(self.products / np.outer(unit, unit))
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T * unit
        n = 2 * len(root)
        moved = root * np.sqrt(0.5 * n / self.total)
        rows = self.mean + np.concatenate([moved, -moved])
        X: Array = np.ascontiguousarray(rows[:, :-1])
        return X, rows[:, -1].copy(), np.full(n, self.total / n)
