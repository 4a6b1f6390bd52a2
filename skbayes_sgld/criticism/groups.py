"""Groups of rows: their labels as a user gives them, and what residuals have in common within them.

Residuals are normal scores, independent under the true model. The intraclass correlation is that of
a one-way analysis of variance; it is tested against values above 0 alone, since residuals of a
model with an effect for each label cancel within labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import (
    is_bool_dtype,
    is_datetime64_any_dtype,
    is_numeric_dtype,
    is_timedelta64_dtype,
)
from scipy import stats

from skbayes_sgld._checks import printable
from skbayes_sgld._typing import Array
from skbayes_sgld.prediction.tables import Table

_FEWEST_ROWS = 20  # as of the other checks
_FEWEST_LABELS = 3  # two labels are a column of zeros and ones
_MOST_SLOPES = 3  # columns whose slopes are named


@dataclass(frozen=True, eq=False)
class Groups:
    """Labels of rows.

    Attributes
    ----------
    name : str
        Name of the column, or of the labels that were given.
    codes : ndarray of shape (n,)
        Position of each row's label; -1 for a missing one.
    labels : pandas.Index
    column : int
        Position of the column in X; -1 if the labels are not in X.
    values : pandas.Series
        The label of each row, as given.
    """

    name: str
    codes: Array
    labels: pd.Index
    column: int
    values: pd.Series

    @classmethod
    def of(cls, name: Any, values: pd.Series, column: int = -1) -> Groups:
        """Groups by the labels of a column."""
        codes, labels = pd.factorize(values.astype(object).to_numpy())
        return cls(printable(str(name)), codes, pd.Index(labels), column, values)

    def take(self, rows: Array) -> Groups:
        """Groups of some rows, with the labels that these have."""
        codes, present = self.codes[rows], self.labels
        known, inverse = np.unique(codes, return_inverse=True)
        first = int(len(known) > 0 and known[0] < 0)
        return replace(
            self,
            codes=inverse.ravel() - first,
            labels=present[known[first:]],
            values=self.values.iloc[rows],
        )


def groups_given(groups: Any, X: Any, n_rows: int) -> Groups:
    """Groups by labels of the rows, or by the name or position of a column of X.

    Raises
    ------
    ValueError, TypeError
        If there is no such column, or not one label for each row.
    """
    if X is None and isinstance(groups, str):
        raise TypeError(f"groups={groups!r} is not accepted; give the label of each row.")
    if (
        X is not None
        and isinstance(groups, (str, int, np.integer))
        and not isinstance(groups, bool)
    ):
        table = Table.of(X)
        names = table.names
        if groups in names:
            j = names.index(groups)
        elif not isinstance(groups, str) and 0 <= groups < len(names):
            j = int(groups)
        else:
            raise ValueError(
                f"groups={groups!r} is no column of X, which has "
                f"{', '.join(repr(name) for name in names[:10])}{', ...' * (len(names) > 10)}; "
                "give the name of a column, or the label of each row."
            )
        found = Groups.of(names[j], table.column(j), j)
    else:
        try:
            values = pd.Series(groups.to_list() if hasattr(groups, "to_list") else list(groups))
        except TypeError as error:
            raise TypeError(
                f"groups={groups!r} is not accepted; give the label of each row, or the name of a "
                "column of X."
            ) from error
        if np.ndim(groups) != 1:
            raise ValueError(f"groups has shape {np.shape(groups)}; give one label for each row.")
        if len(values) != n_rows:
            raise ValueError(f"groups has {len(values)} labels, and there are {n_rows} rows.")
        name = getattr(groups, "name", None)
        found = _in_table(Groups.of("groups" if name is None else name, values), X)
    if (found.codes < 0).any():
        row = int(np.argmax(found.codes < 0))
        raise ValueError(
            f"groups has no label in {(found.codes < 0).sum()} rows, the first of them row {row}; "
            "give each row one, such as 'none'."
        )
    return found


def _in_table(groups: Groups, X: Any) -> Groups:
    """The groups, with their column if X has it; with another name if X has one of this name."""
    if not hasattr(X, "columns") and not hasattr(X, "column_names"):
        return groups
    table = Table.of(X)
    names = [str(name) for name in table.names]
    if groups.name not in names:
        return groups
    j = names.index(groups.name)
    same = Groups.of(groups.name, table.column(j), j)
    if np.array_equal(same.codes, groups.codes):
        return same
    free = (f"groups-{k}" if k else "groups" for k in range(len(names) + 1))
    return replace(groups, name=next(name for name in free if name not in names))


def categorical_groups(X: Any) -> list[Groups]:
    """Groups by each column of X that holds text or categories, as the user has it."""
    table = Table.of(X)
    if table.is_matrix:
        return []
    found = []
    for j, name in enumerate(table.names):
        column = table.column(j)
        times = is_datetime64_any_dtype(column) or is_timedelta64_dtype(column)
        if not (is_numeric_dtype(column) or is_bool_dtype(column) or times):
            found.append(Groups.of(name, column, j))
    return found


# ---- what residuals have in common --------------------------------------------------------------


class Within(NamedTuple):
    """Figure of the residuals in groups.

    Attributes
    ----------
    measured, error : float
        The figure, and its standard error if the model is true; it is then 0.
    p_value : float
        Of a figure at least as large.
    columns : tuple of int
        Columns that it is about.
    """

    measured: float
    error: float
    p_value: float
    columns: tuple[int, ...] = ()


def intraclass_correlation(z: Array, codes: Array) -> Within | None:
    """Correlation of residuals ``z (m,)`` within groups; None if rows or groups are too few.

    The error is Smith's (1956) at a correlation of 0.
    """
    z, codes, counts = _repeated(z, codes)
    n, G = len(z), len(counts)
    if n < _FEWEST_ROWS or G < _FEWEST_LABELS:
        return None
    means = np.bincount(codes, z) / counts
    between = counts @ np.square(means - z.mean()) / (G - 1)
    inside = np.square(z - means[codes]).sum() / (n - G)
    size = (n - np.square(counts).sum() / n) / (G - 1)  # typical number of rows of a label
    whole = between + (size - 1.0) * inside
    if not whole > 0.0:
        return None
    error = np.sqrt(2.0 / (G - 1) + 2.0 / (n - G)) / size
    p_value = stats.f.sf(between / inside, G - 1, n - G) if inside > 0.0 else 0.0
    return Within(float((between - inside) / whole), float(error), float(p_value))


def varying_slopes(z: Array, codes: Array, X: Array) -> Within | None:
    """How much slopes of the residuals differ from group to group, along the strongest columns.

    The figure is the variance of the groups' slopes over that of their errors, minus 1. What the
    residuals of a group have in common counts for neither.
    """
    X = X[np.isfinite(z) & (codes >= 0)]
    z, codes, counts, kept = _repeated(z, codes, which=True)
    X = X[kept]
    n, G = len(z), len(counts)
    if n < _FEWEST_ROWS or G < _FEWEST_LABELS or X.shape[1] == 0:
        return None
    found = []
    scale = X.std(axis=0)
    inside = float(np.square(z - (np.bincount(codes, z) / counts)[codes]).sum())
    for j in np.flatnonzero(scale > 0):
        x = X[:, j] - (np.bincount(codes, X[:, j]) / counts)[codes]
        squares = np.bincount(codes, np.square(x))
        some = squares > 1e-8 * counts * scale[j] ** 2
        k = int(some.sum())
        free = n - G - k
        if k < _FEWEST_LABELS or free < _FEWEST_LABELS:
            continue
        total = float(np.sum(np.square(np.bincount(codes, x * z)[some]) / squares[some]))
        rest = (inside - total) / free
        if not rest > 0.0:
            continue
        ratio, error = total / k / rest, np.sqrt(2.0 / k + 2.0 / free)
        found.append((float(stats.f.sf(ratio, k, free)), ratio - 1.0, error, int(j)))
    if not found:
        return None
    found.sort()
    p_value, measured, error, _ = found[0]
    columns = tuple(j for p, *_, j in found if p < 0.05 / len(found))[:_MOST_SLOPES]
    return Within(measured, float(error), min(1.0, len(found) * p_value), columns or (found[0][3],))


def _repeated(z: Array, codes: Array, which: bool = False) -> Any:
    """Residuals and codes of the labels that have two rows or more, and their numbers of rows."""
    known = np.isfinite(z) & (codes >= 0)
    z, codes = z[known], codes[known]
    _, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    kept = counts[place] > 1
    _, place, counts = np.unique(place[kept], return_inverse=True, return_counts=True)
    return (z[kept], place, counts, kept) if which else (z[kept], place, counts)


# ---- a column of labels besides ------------------------------------------------------------------


def with_labels(X: Any, groups: Groups) -> Any:
    """X with the labels as its last column; X itself if they are in it."""
    if groups.column >= 0:
        return X
    labels = groups.values
    if isinstance(X, pd.DataFrame):
        return X.assign(**{groups.name: labels.to_numpy()})
    if hasattr(X, "with_columns"):
        import polars

        return X.with_columns(polars.Series(groups.name, labels.to_list()))
    if hasattr(X, "append_column"):
        import pyarrow

        return X.append_column(groups.name, pyarrow.array(labels.to_list()))
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_array, hstack

        return csr_array(hstack([X, groups.codes[:, None].astype(float)], format="csr"))
    X = np.asarray(X)
    numbers = is_numeric_dtype(labels) and X.dtype.kind in "iuf"
    column = labels.to_numpy(dtype=float if numbers else object)
    return np.column_stack([X if numbers else X.astype(object), column])
