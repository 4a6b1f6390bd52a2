"""Everything that rows bring besides their columns, in one record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np

from skbayes_sgld._typing import Array


@dataclass(frozen=True)
class RowValues:
    """Values of n rows; the first axis of every array is that of the rows.

    Attributes
    ----------
    y : ndarray of shape (n,) or None, default=None
        Observations; None for rows to predict.
    weight : ndarray of shape (n,) or None, default=None
        Weights; None if all are 1.
    offset : ndarray of shape (n,) or None, default=None
        Number that is added to the first linear predictor of each row: the log of an exposure.
    n_averaged : ndarray of shape (n,) or None, default=None
        Number of observations that each y is the mean of; None of single observations. Its log is
        taken from the log spread, ``Likelihood.spread_at``.
    others : dict of ndarray of shape (n, ...), default={}
        Further values by name, for the part of a model that asks for them. A likelihood names
        those that it takes, such as the number of ``"trials"``, in ``Likelihood.takes``. A value
        that nothing asks for changes nothing.
    """

    y: Array | None = None
    weight: Array | None = None
    offset: Array | None = None
    n_averaged: Array | None = None
    others: Mapping[str, Array] = field(default_factory=dict)

    @property
    def trials(self) -> Array | None:
        """Numbers of trials of rows to predict; None: one trial each."""
        return self.others.get("trials")

    @property
    def y_less_offset(self) -> Array:
        """Observations less the known part of their predictors, for sums of a normal model."""
        assert self.y is not None
        return self.y if self.offset is None else self.y - self.offset

    def changed(self, change: Callable[[Array], Array]) -> RowValues:
        """Values whose arrays are all changed in one way, as by a slice."""
        y, weight, offset, size = (None if v is None else change(v) for v in self._fields)
        return RowValues(y, weight, offset, size, {k: change(v) for k, v in self.others.items()})

    def __getitem__(self, rows: Any) -> RowValues:
        """Values of some of the rows."""
        return self.changed(itemgetter(rows))

    def beside(self, other: RowValues) -> RowValues:
        """Values of the same rows from both: weights and sizes are multiplied, offsets added."""
        return RowValues(
            self.y if other.y is None else other.y,
            _both(np.multiply, self.weight, other.weight),
            _both(np.add, self.offset, other.offset),
            _both(np.multiply, self.n_averaged, other.n_averaged),
            {**self.others, **other.others},
        )

    def weighted(self, factor: Array | float) -> RowValues:
        """Values of rows whose weights are multiplied by a factor."""
        assert self.y is not None
        return self.beside(RowValues(weight=np.broadcast_to(factor, self.y.shape)))

    def followed_by(self, other: RowValues) -> RowValues:
        """Values of these rows and then of the other's, which bring the same others."""
        pairs = zip(self._fields, other._fields, (None, 1.0, 0.0, 1.0), strict=True)
        assert self.y is not None and other.y is not None
        n, m = len(self.y), len(other.y)
        y, weight, offset, size = (
            None if a is None is b else np.concatenate([_full(a, n, one), _full(b, m, one)])
            for a, b, one in pairs
        )
        others = {k: np.concatenate([v, other.others[k]]) for k, v in self.others.items()}
        return RowValues(y, weight, offset, size, others)

    @property
    def _fields(self) -> tuple[Array | None, ...]:
        return self.y, self.weight, self.offset, self.n_averaged

    def without_offset(self) -> RowValues:
        """Values without the offset."""
        return replace(self, offset=None)


def _both(combine: Callable[..., Array], a: Array | None, b: Array | None) -> Array | None:
    """Both arrays combined; None is neutral."""
    return b if a is None else a if b is None else combine(a, b)


def _full(values: Array | None, n: int, neutral: float | None) -> Array:
    """The array; the neutral number for each of n rows if it is None."""
    return np.full(n, neutral) if values is None else values


NO_VALUES = RowValues()
"""Values of rows that bring nothing besides their columns."""
