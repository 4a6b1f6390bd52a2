"""Columns of X that hold labels of groups: the labels of a fit, and their codes in later rows.

Inside the package a column of labels holds codes, numbers of float64, so that rows of any kind
remain matrices of numbers. A label of the fit is its position among them. A label that the fit did
not see is a negative number made of its text, the same in every call; its effects are drawn from
the population, with this number as their seed. ``POPULATION`` stands for no group at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype
from scipy.sparse import csc_array, csr_array, issparse

from skbayes_sgld._checks import escaped
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn

POPULATION = -1.0
_FIRST_NEW = -2.0


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of some columns of X, in the order in which a fit saw them.

    Attributes
    ----------
    of_columns : dict of int to ndarray
        Labels by the position of their column.
    names : dict of int to str
        Names of these columns, for errors.
    """

    of_columns: Mapping[int, Array]
    names: Mapping[int, str]

    @classmethod
    def learned(cls, X: Any, names: Mapping[int, str]) -> Labels:
        """Labels in the rows of a fit, in the columns at the positions that have names.

        Raises
        ------
        ValueError
            If a label is missing, or has no text of its own by which parameters are named.
        """
        found = {}
        for j, name in names.items():
            values = _values(X, j)
            _check_values(values, name, fitting=True)
            found[j] = _distinct(values, name)
        return cls(found, names)

    def followed_by(self, X: Any) -> Labels:
        """These labels, and after them those that appear first in further rows of a fit."""
        found = dict(self.of_columns)
        for j, labels in self.of_columns.items():
            values = _values(X, j)
            _check_values(values, self.names[j], fitting=True)
            known = pd.Index(labels, tupleize_cols=False)
            distinct = pd.Index(_distinct(values, self.names[j]), tupleize_cols=False)
            new = known.get_indexer(distinct) < 0
            if new.any():
                found[j] = _distinct(known.append(distinct[new]), self.names[j])
        return Labels(found, self.names)

    def given(self, X: Any) -> dict[str, Any]:
        """Labels in the rows X, by the names of their columns."""
        return {self.names[j]: _values(X, j) for j in self.of_columns}

    def marks(self, X: Any) -> Array:
        """A number ``(n, m)`` for the text of each label, also of one that is missing."""
        columns = []
        for values in self.given(X).values():
            places, distinct = pd.factorize(values, use_na_sentinel=False)
            numbers = [float(crc32(repr(_plain(each)).encode())) for each in distinct]
            columns.append(np.array(numbers)[places])
        return np.column_stack(columns)

    def encoded(self, X: Any, population: bool = False) -> Any:
        """X with codes in place of labels: a frame, an array, or sparse rows.

        With ``population`` all codes are :data:`POPULATION`, whatever the columns hold.

        Raises
        ------
        ValueError
            If a label is missing, or all labels are of another type than in the fit.
        """
        if not self.of_columns:
            return X
        codes = {}
        for j in self.of_columns:
            values = _values(X, j)
            if population:
                codes[j] = np.full(len(values), POPULATION)
            else:
                _check_values(values, self.names[j], fitting=False)
                codes[j] = self.codes(j, values)
        return _with_columns(X, codes)

    def codes(self, j: int, values: Array) -> Array:
        """Codes ``(n,)`` of the labels in one column."""
        labels = pd.Index(self.of_columns[j], tupleize_cols=False)
        places, distinct = pd.factorize(values)
        codes = labels.get_indexer(pd.Index(distinct, tupleize_cols=False)).astype(float)
        new = np.flatnonzero(codes < 0)
        if len(new):
            _check_new(self.of_columns[j], distinct[new], self.names[j])
        for k in new:
            codes[k] = _FIRST_NEW - crc32(repr(_plain(distinct[k])).encode())
        return codes[places]


def pair_codes(first: Array, second: Array, known: Array, n_second: int) -> Array:
    """Codes of pairs of labels: their positions among ``known``, sorted numbers of pairs.

    The number of a pair of known labels is ``first * n_second + second``.
    """
    codes = np.empty(len(first))
    seen = (first >= 0) & (second >= 0)
    number = first * n_second + second
    at = np.searchsorted(known, number).clip(max=len(known) - 1)
    seen &= known[at] == number
    codes[seen] = at[seen]
    new = ~seen
    # a multiplier prime to 2^32 separates (a, b) from (b, a)
    mixed = np.abs(first[new]) * 2654435761.0 + np.abs(second[new])
    codes[new] = _FIRST_NEW - np.mod(mixed, 2.0**32)
    codes[(first == POPULATION) | (second == POPULATION)] = POPULATION
    return codes


def pair_numbers(first: Array, second: Array, n_second: int) -> Array:
    """Sorted numbers of the pairs of labels that a fit saw."""
    return np.unique(first * n_second + second)


# ---- columns of any kind of X -------------------------------------------------------------------


def _values(X: Any, j: int) -> Any:
    """Column of labels of a frame of any library, an array or sparse rows."""
    if hasattr(X, "iloc"):
        column = X.iloc[:, j]
        return column.astype(object).to_numpy() if column.dtype == "category" else column.to_numpy()
    if issparse(X):
        return csc_array(X)[:, [j]].toarray().ravel()
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        return np.asarray(X[_names(X)[j]])
    return _as_array(X)[:, j]


def _with_columns(X: Any, codes: Mapping[int, Array]) -> Any:
    """X with these columns."""
    if hasattr(X, "iloc"):
        parts = [codes.get(j, X.iloc[:, j]) for j in range(X.shape[1])]
        frame = pd.concat([pd.Series(part, index=X.index) for part in parts], axis=1)
        return frame.set_axis(X.columns, axis=1)
    if issparse(X):
        by_column = csc_array(X, dtype=float)
        parts = [
            csc_array(codes[j][:, None]) if j in codes else by_column[:, [j]]
            for j in range(X.shape[1])
        ]
        from scipy.sparse import hstack

        return csr_array(hstack(parts, format="csr"))
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        names = _names(X)
        values = {name: codes.get(j, np.asarray(X[name])) for j, name in enumerate(names)}
        return pd.DataFrame(values)
    array = _as_array(X)
    array = array.astype(object if array.dtype.kind in "OUS" else float)
    for j, column in codes.items():
        array[:, j] = column
    return array


def _as_array(X: Any) -> Array:
    """Rows as an array; lists of different types keep these."""
    if isinstance(X, np.ndarray):
        return X
    array = np.asarray(X)
    return np.array(X, dtype=object) if array.dtype.kind in "US" else array


def _names(X: Any) -> list[str]:
    """Names of the columns of a frame of another library than pandas."""
    return list(getattr(X, "column_names", None) or X.columns)


# ---- checks -------------------------------------------------------------------------------------


def _distinct(values: Any, name: str) -> Array:
    """Different labels of a column, in the order of the rows."""
    _check_no_numbers_among_bools(values, name)
    try:
        labels = pd.Index(pd.unique(values), tupleize_cols=False)
    except TypeError:
        wrong = next(each for each in values if getattr(each, "__hash__", None) is None)
        raise TypeError(
            f"X has the label {wrong!r} in column {name!r}, of type {type(wrong).__name__}; its "
            "argument must be a string, a number or a date."
        ) from None
    by_text: dict[str, Any] = {}
    for label in labels:
        other = by_text.setdefault(escaped(label), label)
        if other is not label:
            raise ValueError(
                f"X has the labels {_plain(other)!r} and {_plain(label)!r} in column {name!r}, of "
                "one text; give labels of one type."
            )
    if labels.dtype.kind in "OUmM" or not isinstance(labels.dtype, np.dtype):
        return np.array([*labels, None], dtype=object)[:-1]  # of tuples too
    numbers = labels.to_numpy()
    return numbers + 0.0 if numbers.dtype.kind == "f" else numbers  # 0.0 for -0.0


def _check_values(values: Any, name: str, fitting: bool) -> None:
    """Raise if a label is missing, infinite, or so large that its type has rounded it."""
    missing = pd.isna(values)
    if getattr(values.dtype, "kind", "") == "f":
        largest = np.max(np.abs(np.asarray(values)[~missing]), initial=0.0)
        if largest == np.inf:
            raise ValueError(
                f"X has the label inf or -inf in column {name!r}; give finite numbers."
            )
        if largest >= 2.0 / np.finfo(values.dtype).eps:
            raise ValueError(
                f"X has the label {largest:.16g} in column {name!r} as {values.dtype}, which does "
                "not tell whole numbers of this size apart; give labels as integers or text."
            )
    if not missing.any():
        return
    first = int(np.argmax(missing))
    found = "NaN" if isinstance(values[first], float | np.floating) else values[first]
    remedy = (
        "give each row a label, such as 'none', or leave these rows out"
        if fitting
        else "give each row a label, or predict(..., groups='population') without effects of groups"
    )
    raise ValueError(
        f"X has no label in column {name!r} in {missing.sum()} rows, the first of them row "
        f"{first}, which has {found}; {remedy}."
    )


def _plain(label: Any) -> Any:
    """Label as Python has it, so that numbers and dates of all types have one text."""
    if isinstance(label, np.datetime64 | datetime):
        return pd.Timestamp(label)
    if isinstance(label, np.timedelta64 | timedelta):
        return pd.Timedelta(label)
    if isinstance(label, np.generic):
        label = label.item()
    return int(label) if isinstance(label, float) and label.is_integer() else label


def _check_new(known: Array, new: Any, name: str) -> None:
    """Raise if new labels are of a type that the fit had not, or its own but for rounding.

    Warn if a label of the fit differs in case or outer spaces alone.
    """
    kinds = {_kind(each) for each in (known if known.dtype == object else known[:1])}
    for label in new:
        if _kind(label) not in kinds:
            raise ValueError(
                f"X has labels such as {_plain(label)!r} in column {name!r}, of type "
                f"{_kind(label)}, and the fit had {_plain(known[0])!r}, of type "
                f"{_kind(known[0])}; give labels of one type."
            )
    by_letters = {each.strip().casefold(): each for each in known if isinstance(each, str)}
    for label in new if by_letters else ():
        if isinstance(label, str) and (same := by_letters.get(label.strip().casefold())):
            warn(
                f"X has the label {label!r} in column {name!r}, which is new, and the fit had "
                f"{same!r}: its effects are those of an unknown group. If both are one group, "
                "write its label as in the fit.",
                UserWarning,
            )
            break
    if known.dtype.kind != "f":
        return
    some = np.asarray(new, dtype=float)
    # numbers that float32 has, where the fit had those that it rounds, or the other way round
    rounded = known.astype(np.float32).astype(float)
    short = np.isin(some, rounded) | np.isin(some.astype(np.float32).astype(float), known)
    if short.any():
        label = float(some[np.argmax(short)])
        near = float(known[np.abs(known - label).argmin()])
        raise ValueError(
            f"X has the label {label!r} in column {name!r}, and the fit had {near!r}, which is the "
            "same in float32; give labels of one type."
        )


def _kind(label: Any) -> str:
    """Type of a label, as errors name it; numbers of all types are one."""
    plain = _plain(label)
    if isinstance(plain, (int, float)) and not isinstance(plain, bool):
        return "number"
    return type(plain).__name__ + " with a time zone" * (getattr(plain, "tzinfo", None) is not None)


def _check_no_numbers_among_bools(values: Any, name: str) -> None:
    """Raise if True and 1 may stand for one label."""
    mixed = isinstance(values, np.ndarray) and values.dtype.kind == "O"
    if not (mixed and infer_dtype(values).startswith("mixed")):
        return
    by_kind = {_kind(each): each for each in values}
    if {"bool", "number"} <= by_kind.keys():
        raise ValueError(
            f"X has labels such as {by_kind['bool']!r} and {by_kind['number']!r} in column "
            f"{name!r}, and True is equal to 1; give labels of one type."
        )
