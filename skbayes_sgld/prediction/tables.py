"""Rows as the user keeps them: frames of pandas, Polars and Arrow, arrays and sparse arrays.

Rows are taken and columns replaced without changing the kind of table or the type of a column,
because the transformers of a user's pipeline may expect both.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import sparse

from skbayes_sgld._checks import as_array, naming
from skbayes_sgld._typing import Array


class Table:
    """Rows in one kind of table.

    Attributes
    ----------
    X : DataFrame, Table, csr_array or ndarray
        Rows as the outermost wrapper takes them.
    names : list
        Names of the columns; x0, x1, ... without names.
    """

    def __init__(self, X: Any) -> None:
        self.X = X

    @staticmethod
    def of(X: Any) -> Table:
        """Table of rows, which are checked unless they are a frame."""
        module = type(X).__module__.partition(".")[0]
        if isinstance(X, pd.DataFrame):
            return _Pandas(X)
        if module == "polars" and hasattr(X, "to_series"):
            return _Polars(X)
        if module == "pyarrow" and hasattr(X, "set_column"):
            return _Arrow(X)
        if isinstance(X, (list, tuple)):  # as an array of objects: encoders see lists as such
            with naming("X"):
                X = np.asarray(X, dtype=object)
        keeps_type = isinstance(X, np.ndarray) and X.dtype.kind in "OSUbiu"
        how: dict[str, Any] = {"ensure_all_finite": "allow-nan", "accept_sparse": "csr"}
        how["dtype"] = None if keeps_type else np.float64
        return _Numbers(as_array(X, "X", (2,), **how))

    @property
    def names(self) -> list[Any]:
        """Names of the columns."""
        return list(self.X.columns)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def is_matrix(self) -> bool:
        """Whether all columns are of numbers of one type, dense or sparse."""
        return False

    def means(self) -> Self:
        """One row: the means of a matrix's columns, over the numbers that are not missing."""
        raise NotImplementedError

    def column(self, j: int) -> pd.Series:
        """Values of a column."""
        raise NotImplementedError

    def take(self, rows: Array) -> Self:
        """Rows at positions, which may repeat."""
        raise NotImplementedError

    def replaced(self, j: int, values: Any) -> Self:
        """Rows with other values in a column, which keeps its type."""
        raise NotImplementedError

    def moved(self, j: int, numbers: Array) -> Self:
        """Rows with other numbers in a column, which becomes a column of floats."""
        raise NotImplementedError


class _Pandas(Table):
    def column(self, j: int) -> pd.Series:
        return self.X.iloc[:, j]

    def take(self, rows: Array) -> Self:
        return type(self)(self.X.iloc[rows])

    def replaced(self, j: int, values: Any) -> Self:
        return self.moved(j, pd.array(list(values), dtype=self.X.dtypes.iloc[j]))

    def moved(self, j: int, numbers: Any) -> Self:
        X = self.X.copy(deep=False)
        X.isetitem(j, numbers)
        return type(self)(X)


class _Polars(Table):
    def column(self, j: int) -> pd.Series:
        column = self.X.to_series(j)
        if type(column.dtype).__name__ == "Enum":  # the categories of others have no order
            names = column.dtype.categories.to_list()
            return pd.Series(pd.Categorical(column.to_list(), names, ordered=True))
        if column.dtype.is_numeric():
            return pd.Series(column.to_numpy())
        return pd.Series(column.to_list(), dtype=None if _is_bool(column) else object)

    def take(self, rows: Array) -> Self:
        return type(self)(self.X[np.asarray(rows)])

    def replaced(self, j: int, values: Any) -> Self:
        column = self.X.to_series(j)
        values = [value.item() if hasattr(value, "item") else value for value in values]
        return self._with(type(column)(column.name, values, dtype=column.dtype))

    def moved(self, j: int, numbers: Array) -> Self:
        column = self.X.to_series(j)
        return self._with(type(column)(column.name, np.asarray(numbers, dtype=float)))

    def _with(self, column: Any) -> Self:
        return type(self)(self.X.with_columns(column))


def _is_bool(column: Any) -> bool:
    return str(column.dtype) == "Boolean" and not column.null_count()


class _Arrow(Table):
    @property
    def names(self) -> list[Any]:
        return list(self.X.column_names)

    def column(self, j: int) -> pd.Series:
        return self.X.column(j).to_pandas()

    def take(self, rows: Array) -> Self:
        return type(self)(self.X.take(rows))

    def replaced(self, j: int, values: Any) -> Self:
        return self._with(j, list(values), self.X.schema.field(j).type)

    def moved(self, j: int, numbers: Array) -> Self:
        return self._with(j, numbers, None)

    def _with(self, j: int, values: Any, kind: Any) -> Self:
        import pyarrow

        column = pyarrow.array(values, type=kind)
        return type(self)(self.X.set_column(j, self.X.column_names[j], column))


class _Numbers(Table):
    """Arrays, dense or sparse, and object arrays of numbers and text."""

    @property
    def names(self) -> list[Any]:
        return [f"x{j}" for j in range(self.X.shape[1])]

    @property
    def is_matrix(self) -> bool:
        return bool(self.X.dtype.kind in "iuf")

    def means(self) -> Self:
        X = self.X
        mean = X.mean(axis=0) if sparse.issparse(X) else np.nanmean(X, axis=0)
        return type(self)(np.reshape(mean, (1, -1)))

    def column(self, j: int) -> pd.Series:
        column = self.X[:, [j]]
        column = column.toarray() if sparse.issparse(column) else column
        return pd.Series(column.ravel()).infer_objects()

    def take(self, rows: Array) -> Self:
        return type(self)(self.X[rows])

    def replaced(self, j: int, values: Any) -> Self:
        X = self.X
        if sparse.issparse(X):
            column = sparse.csr_array(np.reshape(np.asarray(values, dtype=X.dtype), (-1, 1)))
            parts = [X[:, :j], column, X[:, j + 1 :]]
            return type(self)(sparse.csr_array(sparse.hstack(parts, format="csr")))
        X = X.copy()
        X[:, j] = values
        return type(self)(X)

    def moved(self, j: int, numbers: Array) -> Self:
        some = self.X.astype(float) if self.X.dtype.kind in "iub" else self.X
        return type(self)(some).replaced(j, numbers)
