"""Moments of the columns for the rows of each label, computed in one pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbayes_sgld._linalg import row_blocks
from skbayes_sgld.blocks.source import Array, Block

_JOINED = 640  # numbers in a row of joined rows
_SAMPLE = 1000  # rows that give the origin of sums, and columns that may have two values


@dataclass(frozen=True)
class Extent:
    """Least and largest value of each column, and whether it has no other values.

    Attributes
    ----------
    low, high : ndarray of shape (d,)
    two : ndarray of shape (d,), bool
    """

    low: Array
    high: Array
    two: Array

    @classmethod
    def from_rows(cls, X: Array) -> Extent:
        """Extent of the columns of one block."""
        low, high = _reduced(np.minimum, X), _reduced(np.maximum, X)
        some = X[:: max(1, len(X) // _SAMPLE)]
        two = np.all((some == low) | (some == high), axis=0)
        for j in np.flatnonzero(two):
            two[j] = np.all((X[:, j] == low[j]) | (X[:, j] == high[j]))
        return cls(low.astype(np.float64), high.astype(np.float64), two)

    def plus(self, other: Extent) -> Extent:
        """Extent of the rows of both together."""
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        ends = np.stack([self.low, self.high, other.low, other.high])
        two = self.two & other.two & np.all((ends == low) | (ends == high), axis=0)
        return Extent(low, high, two)

    def spread(self, sd: Array) -> Array:
        """Spread of each column in its units, by the rule of ``_linalg.column_moments``."""
        one = self.low == self.high
        size = np.where(self.low != 0, np.abs(self.low), 1.0)
        return np.where(one, size, np.where(self.two, self.high - self.low, sd))


def _reduced(ufunc: np.ufunc, X: Array) -> Array:
    """Reduction of each column of ``X``, in C order.

    Rows of few columns are joined: short loops take eight times as long.
    """
    n, d = X.shape
    joined = max(1, _JOINED // d)
    whole = n - n % joined
    wide = ufunc.reduce(X[:whole].reshape(-1, joined * d), axis=0) if whole else X[:0]
    return ufunc.reduce(np.concatenate([wide.reshape(-1, d), X[whole:]]), axis=0)


@dataclass(frozen=True)
class Moments:
    """Weight, mean and sums of squares about the mean, for the rows of each label.

    Attributes
    ----------
    labels : ndarray of shape (G,)
        Labels of the rows, including rows of weight 0; a single 0 if y is no label.
    n_rows, total : ndarray of shape (G,)
        Number and weight of the rows.
    exposed : ndarray of shape (G,)
        Weight times what y is made over, such as an exposure.
    mean, squares : ndarray of shape (G, d)
    """

    labels: Array
    n_rows: Array
    total: Array
    exposed: Array
    mean: Array
    squares: Array

    @classmethod
    def from_block(cls, block: Block, labels: Array, codes: Array | None) -> Moments:
        """Moments of one block, whose rows have the labels ``labels[codes]``."""
        X, weight = block.X, block.weight
        G, n = len(labels), len(X)
        w = np.ones(n) if weight is None else weight
        over = w if block.size is None else w * block.size
        codes = np.zeros(n, int) if codes is None else codes
        origin = X[:: max(1, n // _SAMPLE)].mean(axis=0, dtype=np.float64)
        total, sums = np.bincount(codes, w, minlength=G), np.zeros((2, G, X.shape[1]))
        for rows, deviations in row_blocks(X, origin):
            share = np.zeros((G, len(deviations)))
            share[codes[rows], np.arange(len(deviations))] = w[rows]
            sums[0] += share @ deviations
            sums[1] += share @ np.square(deviations, out=deviations)
        first = sums[0] / np.where(total > 0, total, 1.0)[:, None]
        squares = np.maximum(sums[1] - sums[0] * first, 0.0)
        exposed = np.bincount(codes, over, minlength=G)
        n_rows = np.bincount(codes, minlength=G)
        return cls(labels, n_rows, total, exposed, origin + first, squares)

    def plus(self, other: Moments) -> Moments:
        """Moments of the rows of both (Chan, Golub & LeVeque 1983, eq. 2.1)."""
        labels = self.labels
        if not np.array_equal(labels, other.labels):
            labels = np.union1d(labels, other.labels)
        a, b = self._over(labels), other._over(labels)
        total = a.total + b.total
        some = np.where(total > 0, total, 1.0)
        apart = b.mean - a.mean
        mean = a.mean + apart * (b.total / some)[:, None]
        between = np.square(apart) * (a.total * b.total / some)[:, None]
        squares = a.squares + b.squares + between
        exposed = a.exposed + b.exposed
        return Moments(labels, a.n_rows + b.n_rows, total, exposed, mean, squares)

    def _over(self, labels: Array) -> Moments:
        if labels is self.labels:
            return self
        at, G = np.searchsorted(labels, self.labels), len(labels)
        parts = []
        for values in (self.n_rows, self.total, self.exposed, self.mean, self.squares):
            wide = np.zeros((G, *values.shape[1:]), values.dtype)
            wide[at] = values
            parts.append(wide)
        return Moments(labels, *parts)

    def together(self, factor: Array) -> tuple[Array, Array]:
        """Mean and sd of each column ``(d,)``; ``factor (G,)`` multiplies the weights of labels."""
        total = self.total * factor
        mean = total @ self.mean / total.sum()
        about = self.squares * factor[:, None] + np.square(self.mean - mean) * total[:, None]
        return mean, np.sqrt(about.sum(axis=0) / total.sum())
