"""Factors among the columns of a table, and their levels.

A column is a factor if it holds no numbers, if all its numbers are 0 or 1, or if a step before the
model treats its numbers as codes. The last is found by what the steps do to slightly different
numbers, whatever the classes of the steps: an encoder refuses these or turns them into something
far away, and bins make no difference between them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from scipy import sparse

from skbayes_sgld._checks import naming
from skbayes_sgld._typing import Array
from skbayes_sgld.prediction.tables import Table

_PROBED = 200  # rows whose numbers are moved
_SEEN = 20_000  # rows that are given other levels, and at most as many levels
_DENSE = 2**24  # numbers that the model sees of these rows; with more, bins are not looked for
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Levels:
    """Levels of a factor, the reference first.

    Attributes
    ----------
    values : list
        One value of each level.
    names : list
        Names of the levels: their values, or the ranges of bins.
    upper : list
        Largest number in each level.
    """

    values: list[Any]
    names: list[Any]
    upper: list[Any]

    @classmethod
    def of_values(cls, values: list[Any]) -> Levels:
        """Levels whose names are their values."""
        return cls(values, [_name(value) for value in values], values)

    def most_frequent(self, x: Array) -> Any:
        """Value of the level to which most of the numbers ``x (n,)`` belong."""
        return self.values[np.bincount(np.searchsorted(self.upper, x)).argmax()]


@dataclass(frozen=True)
class Columns:
    """The columns of a table: numbers or factors.

    Attributes
    ----------
    table : Table
    see : callable or None
        Function from a table to the rows that the model sees; None if it sees the table itself.
    named : collection of int
        Positions of columns of numbers that the user calls factors.
    """

    table: Table
    see: Callable[[Table], Any] | None
    named: Collection[int] = ()
    _found: dict[int, tuple[Levels | None, bool]] = field(default_factory=dict)

    def levels(self, j: int) -> Levels | None:
        """Levels of a factor; None of a column of numbers."""
        column = self.table.column(j)
        if not _is_numbers(column):
            return Levels.of_values(_ordered(column))
        values = set(_distinct(column))
        if values == {0, 1}:  # the steps have seen both
            return Levels.of_values([0, 1])
        codes = self._codes(j)
        return Levels.of_values([0, 1]) if codes is None and values <= {0, 1} else codes

    def is_open(self, j: int) -> bool:
        """Whether values of a factor may be names or dates: text, or codes nobody named."""
        column = self.table.column(j)
        declared = isinstance(column.dtype, pd.CategoricalDtype) or is_bool_dtype(column)
        return not declared and j not in self.named

    def jumps(self, j: int) -> bool:
        """Whether what the model sees of a column of numbers jumps at some of them."""
        return _is_numbers(self.table.column(j)) and self._reaction(j)[1]

    def is_left_out(self, j: int) -> bool:
        """Whether the values of a column differ, and the model sees no difference between them.

        Every row gets the first value, then another one. A few values are tried first: for most
        columns that is enough to see a difference.
        """
        column = self.table.column(j)
        if self.see is None or column.nunique() < 2:
            return False
        # in any order, since a column that is dropped may hold what cannot be sorted
        known = column.dropna().unique()
        values = _distinct(column) if _is_numbers(column) else list(known)
        return all(self._are_alike(self.see, j, _thinned(values, n)) for n in (_PROBED, _SEEN))

    def _are_alike(self, see: Callable[[Table], Any], j: int, values: list[Any]) -> bool:
        """Whether the model sees no difference if rows have the first value instead of others."""
        n = max(_PROBED, len(values))
        rows = self.table.take(np.linspace(0, self.table.n_rows - 1, n).astype(int))
        others = [values[k % len(values)] for k in range(n)]
        first, other = (_matrix(see(rows.replaced(j, one))) for one in ([values[0]] * n, others))
        changed = first != other
        return not (changed.nnz if sparse.issparse(changed) else changed.any())

    def typical(self) -> Table:
        """One row: the means of columns of numbers, and the most frequent levels of factors."""
        if self.see is None and not self.named and self.table.is_matrix:
            return self.table.means()
        row = self.table.take(np.arange(1))
        for j in range(len(self.table.names)):
            column = self.table.column(j)
            if not _is_numbers(column):
                row = row.replaced(j, [column.mode(dropna=False).iloc[0]])
                continue
            x, codes = numbers_of(column), self._codes(j)
            known = x[np.isfinite(x)]
            if codes is None:
                row = row.moved(j, np.atleast_1d(np.nanmean(x)))
            else:
                row = row.replaced(j, [codes.most_frequent(known)])
        return row

    def _codes(self, j: int) -> Levels | None:
        """Levels of a column whose numbers are codes."""
        if j in self.named:
            return Levels.of_values(_distinct(self.table.column(j)))
        return self._reaction(j)[0]

    def _reaction(self, j: int) -> tuple[Levels | None, bool]:
        """Levels of a column if its numbers are codes, and whether the steps have jumps."""
        if self.see is None:
            return None, False
        if j not in self._found:
            self._found[j] = self._probe(self.see, j)
        return self._found[j]

    def _probe(self, see: Callable[[Table], Any], j: int) -> tuple[Levels | None, bool]:
        column = self.table.column(j)
        x, values = numbers_of(column), _distinct(column)
        if not values:
            return None, False
        rows = np.flatnonzero(np.isfinite(x))
        rows = rows[np.argsort(x[rows], kind="stable")]
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, _PROBED).astype(int))]
        width = close_by(x[rows], spread_of(x))
        moves = reactions(see, self.table.take(rows), j, x[rows], width)
        if (moves > 0).any():
            return None, bool((moves < 0).any())
        of_value = self._alike(see, j, values)
        n_groups = of_value[-1] + 1 if np.all(np.diff(of_value) >= 0) else len(values)
        if not of_value.any():  # no difference between any of them
            ends = values if len(values) == 1 else [values[0], values[-1]]
            return (Levels.of_values(ends) if (moves < 0).any() else None), False
        if n_groups == len(values):
            return Levels.of_values(values), False
        first = np.searchsorted(of_value, np.arange(n_groups))
        bins = [values[a:b] for a, b in zip(first, [*first[1:], len(values)], strict=True)]
        middles = [one[len(one) // 2] for one in bins]
        return Levels(middles, _ranges(bins), [one[-1] for one in bins]), False

    def _alike(self, see: Callable[[Table], Any], j: int, values: list[Any]) -> Array:
        """Number, from 0, of each value's group; within a group the model sees no difference."""
        values[:] = _thinned(values, _SEEN)
        size = len(values)
        n_bases = int(np.clip(_SEEN // size, 1, 3))
        bases = np.linspace(0, self.table.n_rows - 1, n_bases).astype(int)
        rows = self.table.take(np.repeat(bases, size)).replaced(j, values * n_bases)
        seen = _matrix(see(rows))
        if seen.shape[0] * seen.shape[1] > _DENSE:
            return np.arange(size)
        seen = seen.toarray() if sparse.issparse(seen) else seen
        by_value = np.ascontiguousarray(seen.reshape(n_bases, size, -1).swapaxes(0, 1)) + 0.0
        numbers: dict[bytes, int] = {}
        keys = [each.tobytes() for each in by_value]
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def numbers_of(column: pd.Series) -> Array:
    """Numbers of a column, with nan for those that are missing."""
    return column.to_numpy(dtype=float, na_value=np.nan)


def spread_of(x: Array) -> float:
    """Range of numbers, or their size if all are equal."""
    x = x[np.isfinite(x)]
    return float(np.ptp(x) or np.abs(x).max() or 1.0)


def close_by(x: Array, spread: float) -> Array:
    """A small step in each number, by which derivatives are measured.

    The derivative's error by it is below that by rounding, 1e-8, and no value of a column of
    positive numbers becomes negative, unless it is a ten millionth of the range.
    """
    return np.clip(1e-4 * np.abs(x), 1e-7 * spread, 1e-4 * spread)


def reactions(see: Callable[[Table], Any], table: Table, j: int, x: Array, width: Array) -> Array:
    """How each row that the model sees reacts to a small step in the column ``(n,)``.

    1 if it moves in proportion, 0 if it does not move, -1 if it jumps or the steps raise an
    error.
    """
    here = see(table)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about unknown categories
            ends = [_matrix(see(table.moved(j, x + to * width))) for to in (-1.0, 1.0)]
    except Exception:  # a user's transformer may raise anything for a code that it does not know
        return np.full(len(x), -1)
    here, (low, high) = _matrix(here), ends
    if not here.shape == low.shape == high.shape:
        return np.full(len(x), -1)
    with np.errstate(invalid="ignore"):
        slope, bend = abs(high - low), abs(high + low - 2.0 * here)
        size = abs(here).max(axis=0)
        limit = 1e-3 * (here.max(axis=0) - here.min(axis=0)) + 1e-9 * size
        excess = bend - 0.5 * slope
    moves = np.asarray((slope > 0).sum(axis=1)).ravel() > 0
    if sparse.issparse(excess):
        excess = excess.tocoo()
        far = ~(excess.data <= np.asarray(limit.toarray()).ravel()[excess.col])
        jumps = np.zeros(len(x), dtype=bool)
        jumps[excess.row[far]] = True
    else:
        jumps = ~(excess <= limit).all(axis=1)
    return np.where(jumps, -1, moves.astype(int))


def _matrix(X: Any) -> Any:
    """Rows that a model sees as floats, dense or sparse."""
    return sparse.csr_array(X, dtype=float) if sparse.issparse(X) else np.asarray(X, dtype=float)


def _is_numbers(column: pd.Series) -> bool:
    return is_numeric_dtype(column) and not is_bool_dtype(column)


def _name(value: Any) -> Any:
    """Name of a level; whole floats have no decimals."""
    return f"{value:.12g}" if isinstance(value, (float, np.floating)) else value


def _thinned(values: list[Any], n: int) -> list[Any]:
    """At most ``n`` of the values, evenly spread."""
    if len(values) <= n:
        return values
    return [values[k] for k in np.linspace(0, len(values) - 1, n).astype(int)]


def _ranges(bins: list[list[Any]]) -> list[str]:
    """Names of bins ``[lowest, highest]``, with as few digits as make their ends different."""
    ends = {value for one in bins for value in (one[0], one[-1])}
    digits = next((k for k in range(3, 12) if len({f"{v:.{k}g}" for v in ends}) == len(ends)), 12)
    return [
        f"[{one[0]:.{digits}g}, {one[-1]:.{digits}g}]" if len(one) > 1 else f"{one[0]:.{digits}g}"
        for one in bins
    ]


def different(column: pd.Series) -> list[Any]:
    """Different values of a column, in order."""
    return _distinct(column) if _is_numbers(column) else _ordered(column)


def _distinct(column: pd.Series) -> list[Any]:
    """Different numbers of a column, ordered, in its own type."""
    values = column.dropna().unique()
    values = values[np.isfinite(values.astype(float))]
    return list(values[values.argsort()])


def _ordered(column: pd.Series) -> list[Any]:
    """Levels of a column that holds no numbers, in the order of their categories, or sorted."""
    if is_bool_dtype(column):
        return [False, True]
    levels = list(column.dropna().unique())
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = list(column.cat.remove_unused_categories().cat.categories)
        by_letters = all(isinstance(one, str) for one in levels) and levels == sorted(levels)
        if column.cat.ordered or not by_letters:  # an order that somebody chose
            return levels
    with naming("X"):
        return sorted(levels, key=_natural(levels))


def _natural(levels: list[Any]) -> Callable[[Any], Any] | None:
    """Sorting key for text in which numbers are compared by size: 2 before 10, g2 before g10."""
    if not all(isinstance(one, str) for one in levels):
        return None
    try:
        if np.isfinite([float(one) for one in levels]).all():
            return lambda text: (float(text), text)
    except ValueError:
        pass

    def key(text: str) -> Any:
        parts = _DIGITS.split(text)
        return [int(part) if k % 2 else part for k, part in enumerate(parts)], text

    return key
