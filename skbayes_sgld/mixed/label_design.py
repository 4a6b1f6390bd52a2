"""The design of effects of labels: the same few entries in every row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skbayes_sgld._linalg import row_slices
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.design import Design

_POSITIONS = 16  # that share a block of rows, whose predictors stay in cache


class EffectRows(NamedTuple):
    """Rows of the effects of labels.

    Attributes
    ----------
    columns : ndarray of shape (q, B)
        Columns of the entries of each row.
    values : ndarray of shape (q, B)
    width : int
        Number of columns.
    """

    columns: Array
    values: Array
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.columns.shape[1], self.width

    def toarray(self) -> Array:
        """Rows as an array."""
        out = np.zeros(self.shape, self.values.dtype)
        np.put_along_axis(out, self.columns.T, self.values.T, axis=1)
        return out


class LabelDesign(Design):
    """Columns of the effects of the labels of one term, of which every row has as many.

    Products gather the effects of the labels of rows, and add up rows label by label.

    Parameters
    ----------
    effects : csr_array of shape (n, width)
    dtype : type
    """

    def __init__(self, effects: Any, dtype: type) -> None:
        (n, self._width), self.dtype = effects.shape, dtype
        self.shape = n, self._width
        by_row = effects.indices.reshape(n, -1), effects.data.astype(dtype).reshape(n, -1)
        self._columns, self._values = (np.ascontiguousarray(each.T) for each in by_row)
        self._of_one = [bool(np.all(each == 1.0)) for each in self._values]

    def block(self, rows: slice, room: None = None) -> EffectRows:
        """Some of the rows."""
        return EffectRows(self._columns[:, rows], self._values[:, rows], self._width)

    def as_they_are(self, rows: slice) -> EffectRows:
        """Some of the rows."""
        return self.block(rows)

    def parts(self, n_products: int, min_rows: int = 32, sum_size: int = 1) -> list[list[slice]]:
        """Blocks of rows in one part."""
        return [list(row_slices(self.shape[0], _POSITIONS * n_products, min_rows))]

    def rows(self, idx: Array) -> EffectRows:
        """Rows ``idx (B,)``."""
        return EffectRows(self._columns[:, idx], self._values[:, idx], self._width)

    def apply(self, coefficients: Array, rows: EffectRows) -> Array:
        """Predictors ``(..., K, B)`` of rows, for coefficients ``(..., K, width)``."""
        parts = []
        for columns, values, one in zip(rows.columns, rows.values, self._of_one, strict=True):
            each = coefficients.take(columns, axis=-1, mode="clip")
            if not one:
                each *= values
            parts.append(each)
        u = parts[0]
        for each in parts[1:]:
            u += each
        return u

    def adjoint(self, score: Array, rows: EffectRows) -> Array:
        """Gradient in the coefficients ``(..., K, width)``, from that in the predictors."""
        flat = score.reshape(-1, score.shape[-1])
        out = np.zeros((len(flat), self._width))
        for columns, values, one in zip(rows.columns, rows.values, self._of_one, strict=True):
            for sums, each in zip(out, flat if one else flat * values, strict=True):
                sums += np.bincount(columns, each, self._width)
        return out.reshape(*score.shape[:-1], -1)

    def squares(self, weights: Array, rows: EffectRows) -> Array:
        """Sums ``(m, width)`` of a block's squares."""
        return self.adjoint(weights, rows._replace(values=np.square(rows.values)))
