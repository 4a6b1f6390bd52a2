"""Checks of users' arguments: numbers, flags and arrays; the errors name the argument."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import ENAMETOOLONG
from numbers import Integral, Number
from os import PathLike, fspath, lstat
from typing import Any

import numpy as np
from sklearn.utils import check_array

from skbayes_sgld._typing import Array

SMALLEST, LARGEST = 1e-50, 1e50  # sizes of data; products of four values do not overflow

_LARGEST_COUNT = 2**53  # larger floats skip whole numbers


def check_number(
    value: Any,
    argument: str,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    closed: str = "neither",
    integer: bool = False,
    any_size: bool = False,
) -> None:
    """Raise if ``value`` is not a number in the interval from ``low`` to ``high``.

    Parameters
    ----------
    value : object
        What the user wrote.
    argument : str
        Name of the argument in errors.
    low, high : float, default=-inf and inf
        Ends of the interval.
    closed : {"neither", "left", "right", "both"}, default="neither"
        Ends that belong to the interval.
    integer : bool, default=False
        Whether ``value`` must be a whole number.
    any_size : bool, default=False
        Whether its square may overflow.

    Raises
    ------
    TypeError
        When ``value`` is not a number, or not a whole one.
    ValueError
        When it is out of range.
    """
    kind = "a whole number" if integer else "a number"
    left, right = closed in ("left", "both"), closed in ("right", "both")
    bounds = f"{'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
    accepted = f"it must be {kind} in {bounds}"
    # Fraction and the like are real numbers, but NumPy cannot compute with them
    family: Any = Integral if integer else (int, float, np.integer, np.floating)
    if not isinstance(value, family) or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument}={value!r} is not {kind}; {accepted}.")
    # in half precision the ends of the interval would overflow
    size = float(value) if isinstance(value, np.floating) else value
    inside = (size >= low if left else size > low) and (size <= high if right else size < high)
    if not inside:
        raise ValueError(f"{argument}={value!r} is out of range; {accepted}.")
    if integer and abs(value) > _LARGEST_COUNT:
        raise ValueError(
            f"{argument}={value!r} is out of range; whole numbers must be within {_LARGEST_COUNT}."
        )
    least, most = SMALLEST**2, LARGEST**2
    if not (integer or any_size or value == 0 or least <= abs(float(value)) <= most):
        raise ValueError(
            f"{argument}={value!r} is out of range; its size must be in [{least:g}, {most:g}], "
            "beyond which squares leave the range of floating point numbers."
        )


def check_batch_size(batch_size: int | None, n_rows: int, advice: str) -> None:
    """Raise if a batch would be larger than the data; ``advice`` ends the message."""
    if batch_size is not None and batch_size > n_rows:
        raise ValueError(
            f"batch_size={batch_size} is larger than the {n_rows} rows; give at most {n_rows}, "
            f"{advice}."
        )


def check_flag(value: Any, argument: str) -> bool:
    """Return ``value`` if it is a bool; raise otherwise."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument}={value!r} is not accepted; give True or False.")
    return bool(value)


def check_choice(value: Any, argument: str, names: tuple[str, ...]) -> None:
    """Raise unless the value is one of the known names."""
    if not isinstance(value, str) or value not in names:
        listed = ", ".join(map(repr, names))
        raise ValueError(f"{argument}={value!r} is not known; choose one of {listed}.")


_LISTED = 20  # names of columns in an error
_NAMED = 5  # numbers of an array in an error


def column_position(
    column: Any, d: int, names: Sequence[str] | None, argument: str, or_else: str = ""
) -> int:
    """Position of a column among the d of X, given its name or position.

    ``or_else`` is accepted in place of a name, and ends the message of a name that is not in X.

    Raises
    ------
    TypeError, ValueError
        Where X has no such column; the message begins with ``argument``.
    """
    head = f"{argument} has the column {column!r}; "
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"{head}the columns of X have no names that are text; give positions, or names "
                "from a data frame, which the steps of a pipeline keep after "
                "set_output(transform='pandas')."
            )
        if column not in list(names):
            listed = ", ".join(map(repr, names[:_LISTED])) + ", ..." * (len(names) > _LISTED)
            raise ValueError(f"{head}the names in X are {listed}{or_else}.")
        return list(names).index(column)
    if not isinstance(column, Integral) or isinstance(column, bool):
        raise TypeError(f"{head}give names or whole numbers.")
    at = int(column)
    if not -d <= at < d:
        raise ValueError(f"{head}X has {d} columns.")
    return at % d


def out_of_range(value: Any, argument: str, wrong: Array) -> str:
    """Beginning of an error: a number that is out of range, or an array's ``wrong`` numbers."""
    if np.ndim(value) == 0:
        return f"{argument}={value!r} is out of range"
    found = list(dict.fromkeys(map(repr, np.ravel(array_of(value))[np.ravel(wrong)].tolist())))
    more = f" and {len(found) - _NAMED} more" * (len(found) > _NAMED)
    return f"{argument} has values out of range: {', '.join(found[:_NAMED])}{more}"


def check_array_or_number(
    value: Any, argument: str, size: int | None, *, positive: bool = False
) -> None:
    """Raise if ``value`` is neither one number nor a vector of ``size`` numbers."""
    array = array_of(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{argument}={value!r} is not a number or an array of numbers.")
    wrong = ~np.isfinite(array) | (array <= 0 if positive else False)
    if wrong.any():
        accepted = "positive and finite" if positive else "finite"
        raise ValueError(f"{out_of_range(value, argument, wrong)}; it must be {accepted}.")
    sizes = np.abs(array.astype(float))
    wrong = (sizes > 0.0) & ((sizes < SMALLEST**2) | (sizes > LARGEST**2))
    if wrong.any():
        raise ValueError(
            f"{out_of_range(value, argument, wrong)}; sizes must be in [{SMALLEST**2:g}, "
            f"{LARGEST**2:g}], beyond which squares leave the range of floating point numbers."
        )
    if array.ndim > 1 or (array.ndim == 1 and size is not None and array.size != size):
        expected = "a vector" if size is None else f"a vector of {size}, one per column of X"
        raise ValueError(
            f"{argument} has shape {array.shape}; it must be a single number or {expected}."
        )


def array_of(value: Any) -> Any:
    """Array of a value; of objects if its rows have different lengths."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.asarray(None)


@contextmanager
def naming(*arguments: str) -> Iterator[None]:
    """Context that adds the names of arguments to errors that name none."""
    try:
        yield
    except (TypeError, ValueError) as error:
        message = str(error)
        if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) for name in arguments):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{' and '.join(arguments)}: {message}") from None


def check_readable(value: Any, argument: str) -> None:
    """Raise if a polars frame is lazy, or values are masked: NumPy would read those, too."""
    if type(value).__name__ == "LazyFrame":
        raise TypeError(
            f"{argument} is a LazyFrame, which has no rows yet; give {argument}.collect()."
        )
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        row = int(np.argwhere(np.atleast_1d(np.ma.getmaskarray(value)))[0, 0])
        raise ValueError(
            f"{argument} has masked values, first in row {row}; leave such rows out, or fill them "
            "in."
        )


def printable(text: Any) -> str:
    """Text on one line, with escapes for the control characters that a terminal would obey."""
    return escaped(" ".join(str(text).split()))


def escaped(name: Any) -> str:
    """Name of a parameter, a column or a label, with escapes for control characters."""
    text = str(name)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def check_path(value: Any, argument: str) -> None:
    """Raise if ``value`` cannot be the path of a file."""
    if not isinstance(value, (str, PathLike)):
        raise TypeError(f"{argument}={value!r} is not a path; give a string or a pathlib.Path.")
    path = fspath(value)
    if "\0" in path:
        raise ValueError(
            f"{argument}={value!r} has a null character, which no path has; give another."
        )
    try:
        lstat(path)
    except OSError as error:
        if error.errno == ENAMETOOLONG:
            raise ValueError(
                f"{argument}={path[:40] + '...'!r}, of {len(path):,} characters, is too long for a "
                "path; give a shorter one."
            ) from None


def as_array(value: Any, argument: str, n_dims: tuple[int, ...] = (1,), **how: Any) -> Array:
    """Array of finite numbers, with an accepted number of dimensions.

    Parameters
    ----------
    value : object
        What the user wrote.
    argument : str
        Name of the argument in errors.
    n_dims : tuple of int, default=(1,)
        Accepted numbers of dimensions.
    **how : dict
        Arguments of ``sklearn.utils.check_array``.
    """
    check_readable(value, argument)
    expected = " or ".join(f"{n}" for n in n_dims)
    accepted = f"it must be an array of {expected} dimension{'' if expected == '1' else 's'}"
    if isinstance(value, (str, Number)) or getattr(value, "ndim", None) == 0:
        raise TypeError(f"{argument}={printable(repr(value))} is a single value; {accepted}.")
    how = {"dtype": np.float64, **how}
    with naming(argument), np.errstate(invalid="ignore"):  # sums of infinities
        array: Array = check_array(
            value, ensure_2d=False, allow_nd=True, input_name=argument, **how
        )
    if array.ndim not in n_dims:
        raise ValueError(f"{argument} has shape {array.shape}; {accepted}.")
    return array


def check_lengths(**arrays: Any) -> None:
    """Raise if the named arrays have different numbers of rows."""
    lengths = {name: np.shape(array)[0] for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(f"{' and '.join(lengths)} have inconsistent numbers of rows: {listed}.")


def as_weights(value: Any, argument: str, size: int) -> Array:
    """Weights ``(size,)``, none negative and one positive; None stands for ones."""
    if value is None:
        return np.ones(size)
    weights = as_array(value, argument)
    if weights.shape != (size,):
        raise ValueError(f"{argument} has shape {weights.shape}; it must be ({size},).")
    if np.any(weights < 0) or not 0.0 < weights.sum() < np.inf:
        raise ValueError(
            f"{argument} has values from {weights.min():g} to {weights.max():g}; weights must not "
            "be negative, and one of them must be positive."
        )
    return weights


def as_numbers(value: Any, argument: str) -> Any:
    """Array of finite floats, of any shape.

    Raises
    ------
    TypeError, ValueError
        If ``value`` holds anything else, or a number that is not finite.
    """
    array = array_of(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{argument}={value!r} is not an array of numbers.")
    array = np.array(array, dtype=float)
    wrong = ~np.isfinite(array)
    if wrong.any():
        raise ValueError(f"{out_of_range(value, argument, wrong)}; all numbers must be finite.")
    return array


def as_vector(value: Any, argument: str, size: int) -> Any:
    """Array of ``size`` finite floats, one per parameter.

    Raises
    ------
    TypeError, ValueError
        If ``value`` is anything else.
    """
    vector = as_numbers(value, argument)
    if vector.shape != (size,):
        raise ValueError(
            f"{argument} has shape {vector.shape}; it must be {size} finite numbers, one per "
            "parameter."
        )
    return vector


def check_covariance(value: Any, argument: str, size: int | None) -> None:
    """Raise unless ``value`` is a symmetric positive definite matrix with ``size`` columns."""
    matrix = array_of(value)
    if matrix.dtype.kind not in "fiu":
        raise TypeError(f"{argument}={value!r} is not a matrix of numbers.")
    shape = "a square matrix" if size is None else f"a matrix of shape ({size}, {size})"
    d = size or len(np.atleast_1d(matrix))
    if matrix.shape != (d, d):
        raise ValueError(f"{argument} has shape {matrix.shape}; it must be {shape}.")
    accepted = "it must be a symmetric positive definite matrix of finite numbers"
    wrong = ~np.isfinite(matrix)
    if wrong.any():
        raise ValueError(f"{out_of_range(value, argument, wrong)}; {accepted}.")
    sds = np.sqrt(np.abs(np.diagonal(matrix)))
    if np.any(sds == 0):
        raise ValueError(f"{argument} has a zero on its diagonal; {accepted}.")
    unit = matrix / sds / sds[:, None]
    if np.max(np.abs(unit - unit.T)) > 1e-8:
        raise ValueError(f"{argument} is not symmetric; {accepted}.")
    smallest = float(np.linalg.eigvalsh(unit)[0])
    if smallest < 1e-13:
        raise ValueError(
            f"{argument} has the smallest eigenvalue {smallest:.2g} after scaling to a "
            f"unit diagonal; {accepted}."
        )


def check_size(largest: float, argument: str, low: float = SMALLEST, high: float = LARGEST) -> None:
    """Raise unless the largest absolute value of an argument is 0 or in a range.

    Outside the range, squares and products overflow or underflow.
    """
    if not (largest == 0.0 or low <= largest <= high):
        raise ValueError(
            f"{argument} has values of size {largest:.3g}; it must be 0 or in [{low:g}, {high:g}], "
            f"since their squares leave the range of floating point numbers. Change the unit: "
            f"divide by {largest:.0e}."
        )
