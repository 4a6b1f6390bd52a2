"""Checks of users' data: values can be squared without overflow, and errors name arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils.validation import _check_sample_weight, _num_samples

from skbayes_sgld._checks import LARGEST, SMALLEST, array_of, check_readable, check_size, naming
from skbayes_sgld._linalg import column_ranges, sums_of_squares
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.likelihoods.binomial import check_trials

_TIMES = np.datetime64, np.timedelta64  # NumPy would convert them to numbers of their units
FLOATS = [np.float64, np.float32]
_WEIGHTS = 1e-20, 1e20  # accepted sizes of weights above 0


def check_ranges(least: Array, most: Array, names: Any, smallest: float = SMALLEST) -> None:
    """Raise if columns with these ranges ``(d,)`` have values whose squares over- or underflow."""
    sizes = np.maximum(np.abs(least.astype(float)), np.abs(most.astype(float)))
    for j in np.flatnonzero((sizes > LARGEST) | ((sizes < smallest) & (sizes > 0.0))):
        check_size(float(sizes[j]), f"{_column(j, names)} of X", smallest)


def check_columns(X: Array, names: Any, smallest: float = SMALLEST) -> None:
    """Raise if X is not finite, or the squares of a column's values over- or underflow."""
    squares = sums_of_squares(X)  # if they are in range, so is every value: one cheap pass
    low, high = 1e4 * smallest**2, 1e-4 * LARGEST**2
    if np.all((squares > low) & (squares < high)):
        return
    check_finite(X, names)
    check_ranges(*column_ranges(X), names, smallest)


def check_finite(X: Any, names: Any) -> None:
    """Raise if X has values that are not finite; the error names the first one's column and row."""
    values = X.data if issparse(X) else X
    with np.errstate(all="ignore"):  # sums of infinities of both signs
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
    if issparse(X):
        entries = X.tocoo()
        wrong = np.column_stack([entries.col, entries.row])[~np.isfinite(entries.data)]
        wrong = wrong[np.lexsort(wrong.T[::-1])]
    else:
        wrong = np.argwhere(~np.isfinite(X.T))
    column, row = wrong[0]
    is_nan = bool(np.isnan(X[row, column]))
    what = "NaN" if is_nan else f"infinity or a value too large for {X.dtype}"
    filled = "fill them in" if is_nan else "replace these by NaN and fill them in"
    others = len(np.unique(wrong[:, 0])) - 1
    more = f", and in {others} other column{'s' * (others > 1)}" if others else ""
    raise ValueError(
        f"X contains {what} in {_column(column, names)}, first in row {row}{more}; leave such "
        f"rows or columns out, or {filled}, as sklearn.impute.SimpleImputer does."
    )


def _column(j: Any, names: Any) -> str:
    """Name of a column, or its position if columns have no names."""
    return f"column {j if names is None else repr(names[j])}"


def check_numeric(y: Any) -> None:
    """Raise if the target of a regression has a value that is not a number."""
    with naming("y"):
        wrong = [] if y is None else _not_numbers(np.asarray(y))
    if wrong:
        raise ValueError(
            f"y has the value {str(wrong[0])!r}, which is not a number; the target of a "
            "regression must be numeric."
        )


def check_weight(sample_weight: Any, X: Any) -> Array:
    """Weights as floats; raise if one is negative or all are zero."""
    check_readable(sample_weight, "sample_weight")
    with naming("sample_weight"):
        weights = np.asarray(sample_weight)
        if weights.dtype.kind in "cmM" or _not_numbers(weights):
            raise TypeError(f"sample_weight has dtype {weights.dtype}; weights must be numbers.")
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if np.any(weight < 0):
        raise ValueError(
            f"sample_weight has negative values, the least {weight.min():g}; weights must be >= 0. "
            "Negative values in data passed to `sample_weight`."
        )
    if not np.any(weight > 0):
        raise ValueError("sample_weight is zero for every row; at least one must be positive.")
    check_weight_sizes(weight, "sample_weight")
    return weight


def check_weight_sizes(weight: Array, argument: str) -> None:
    """Raise if a weight above 0 is too small or too large."""
    low, high = _WEIGHTS
    wrong = ((weight > 0) & (weight < low)) | (weight > high)
    if wrong.any():
        raise ValueError(
            f"{argument} gives a row the weight {weight[wrong][0]:g}; a row of weight w counts as "
            f"w rows, so weights must be 0 or in [{low:g}, {high:g}]."
        )


def one_a_row(row_values: Any, argument: str, X: Any) -> Array:
    """Numbers as floats, one for each row of X; a single number counts for all."""
    with naming("X"):
        n = _num_samples(X)
    check_readable(row_values, argument)
    with naming(argument):
        values = np.asarray(row_values)
    values = np.full(n, values) if values.ndim == 0 else values
    if values.shape != (n,) or values.dtype.kind not in "fiu":
        raise ValueError(
            f"{argument} has shape {values.shape} and dtype {values.dtype}; give a number or {n} "
            "numbers, one a row of X."
        )
    return values.astype(float)


def check_exposure(exposure: Any, X: Any) -> Array:
    """Exposures of the rows X as floats; one number counts for all."""
    return _positive(exposure, "exposure", X, "exposures must be positive and finite")


def check_n_averaged(n_averaged: Any, X: Any) -> Array:
    """Sizes of averages of the rows X as floats; one number counts for all."""
    accepted = "y is a mean of one observation at least; leave rows without any out"
    return _positive(n_averaged, "n_averaged", X, accepted)


def _positive(row_values: Any, argument: str, X: Any, accepted: str) -> Array:
    """Positive numbers as floats, one for each row of X."""
    values = one_a_row(row_values, argument, X)
    wrong = ~((values > 0) & (values < np.inf))
    if wrong.any():
        row = np.flatnonzero(wrong)[0]
        raise ValueError(f"{argument} has the value {values[row]:g} in row {row}; {accepted}.")
    check_weight_sizes(values, argument)
    return values


def trials_of(n_trials: Any, X: Any) -> Array:
    """Numbers of trials of the rows X as floats; one number counts for all."""
    values = one_a_row(n_trials, "n_trials", X)
    check_trials(values)
    return values


def warn_of_light_rows(total: float, n_rows: int, n_columns: int) -> None:
    """Warn if the weights sum to about one row, as weights that were normalised to 1 do."""
    if total <= max(1.0 + 1e-6, 0.5 * min(n_rows, n_columns + 1)):
        warn(
            f"sample_weight sums to {total:g} over {n_rows} rows: a row of weight w counts as "
            f"w rows, so the data count as {total:g} and the prior decides. Where the weights are "
            "relative, multiply sample_weight so that it averages 1.",
            UserWarning,
        )


def first_fraction(y: Array) -> float | None:
    """The first number of y that is not whole; None if all are."""
    broken = y[y != np.floor(y)]
    return float(broken[0]) if len(broken) else None


def warn_of_fraction(fraction: float | None, with_exposure: bool) -> None:
    """Warn if a count is not a whole number."""
    if fraction is None:
        return
    remedy = "give the counts as y, and what they were made over as exposure"
    if with_exposure:
        remedy = "with exposure, y is the counts themselves, not divided by it"
    warn(
        f"y has the value {fraction:g}, and the model is of whole counts: intervals would be too "
        f"wide or too narrow; {remedy}.",
        UserWarning,
    )


def warn_of_few_rows(weight: Array | None, n_rows: int, n_columns: int) -> None:
    """Warn if the conjugate prior of a linear model would make the noise far too small."""
    if weight is not None:  # light rows have another warning
        n_rows = max(int(np.count_nonzero(weight)), int(weight.sum()))
    # at two rows per column 90 % intervals under the conjugate prior cover 76 %
    if n_rows < 2.0 * n_columns:
        # with fewer rows than columns, only a learned prior lets the data determine the noise
        remedy = "prior='normal', or " * (n_rows > n_columns) + "prior='hierarchical_normal'"
        warn(
            f"{n_rows} rows for {n_columns} columns: with so few, the conjugate prior takes the "
            "noise to be too small, and predictive intervals are not to be relied on; set "
            f"{remedy}.",
            UserWarning,
        )


def check_no_gap(y: Any) -> None:
    """Raise if an observation is missing; the error names the first row, unlike scikit-learn's."""
    row = _first_gap(y)
    if row is not None:
        raise ValueError(f"Input y contains NaN, first in row {row}; leave such rows out.")


def check_classes(classes: Any) -> None:
    """Raise if one of the classes of ``partial_fit`` is no label."""
    position = None if classes is None else _first_gap(classes)
    if position is not None:
        raise ValueError(
            f"classes has no label at position {position}, but a missing value; give the labels "
            "that there will be, and leave rows without one out."
        )


def _first_gap(values: Any) -> int | None:
    """Position of the first value that is missing: NaN, None, NaT or pandas' NA."""
    if type(values) in (list, tuple):  # converted to an array, a NaN among text would become text
        values = np.asarray(values, dtype=object)
    values = np.asarray(values)
    if values.dtype.kind not in "fO" or not values.ndim:
        return None
    missing = np.isnan(values) if values.dtype.kind == "f" else pd.isna(values)
    return int(np.argwhere(missing)[0, 0]) if missing.any() else None


_ENCODE = "encode it, as sklearn.preprocessing's OneHotEncoder does"


def check_real(X: Any) -> None:
    """Raise if X has dates, durations or complex numbers, which NumPy would convert.

    For a frame the error names the column. scikit-learn refuses complex arrays itself.
    """
    check_readable(X, "X")
    if hasattr(X, "columns"):
        _check_kinds(X)
        return
    values = X if isinstance(X, np.ndarray) else array_of(X) if type(X) in (list, tuple) else None
    if values is None or values.dtype.kind not in "mMOU":
        return
    wrong = [value for value in values.flat if isinstance(value, _TIMES)][:1]
    if len(wrong):
        raise ValueError(
            f"X has the value {str(wrong[0])!r}, which is not a real number; give numbers, such as "
            "the days since some date."
        )
    for j, column in enumerate(values.T if values.ndim == 2 else ()):
        text = _not_numbers(np.array([each for each in column if isinstance(each, str)]))
        if text:
            raise ValueError(
                f"X has the value {str(text[0])!r} in column {j}, which is not a real number; "
                f"leave the column out, or {_ENCODE}."
            )


def _check_kinds(X: Any) -> None:
    """Raise if a column of a data frame of any library has values that are not numbers."""
    names = getattr(X, "column_names", getattr(X, "columns", ()))  # of Arrow tables; of frames
    if callable(names) or isinstance(X, pd.Series):  # a method of blocks; no frame
        return
    if hasattr(X, "columns") and not len(names):  # the message is scikit-learn's
        raise ValueError(
            f"X is a data frame with 0 feature(s) (shape={X.shape}) while a minimum of 1 is "
            "required."
        ) from None
    kinds = [getattr(kind, "kind", "O") for kind in getattr(X, "dtypes", ())] or ["O"] * len(names)
    found = []
    for name, kind in zip(names, kinds, strict=True) if len(set(names)) == len(names) else ():
        if kind in "biuf":
            continue
        values = np.asarray(X[name])
        wrong = values if values.dtype.kind in "cmM" else _not_numbers(values[~pd.isna(values)])
        if len(wrong):
            found.append((name, kind in "mM" or isinstance(wrong[0], _TIMES), wrong[0]))
    if not found:
        return
    name, is_time, value = found[0]
    how = _ENCODE
    if is_time:
        how = "make numbers of it, such as the days since some date"
    others = [repr(other) for other, *_ in found[1:]]
    listed = ", ".join(others[:5]) + f" and {len(others) - 5} more" * (len(others) > 5)
    raise ValueError(
        f"X has the column {name!r} with the value {str(value)!r}, which is not a real number; "
        f"leave the column out, or {how}." + f" The same goes for {listed}." * bool(others)
    ) from None


def _not_numbers(values: Array) -> list[Any]:
    """The first value that is not a number, if there is one."""
    for value in np.ravel(values) if values.dtype.kind in "OSUT" else ():
        try:
            if isinstance(value, _TIMES):
                return [value]
            float(value)
        except (TypeError, ValueError):
            return [value]
    return []
