"""Checks of the arrays that users give; the errors name the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from skbayes_sgld._components import LARGEST, SMALLEST, array_of, naming

Array = NDArray[Any]

_ASYMMETRY = 1e-8  # accepted in a matrix scaled to a unit diagonal
_SINGULAR = 1e-13  # smallest eigenvalue accepted in such a matrix


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
    how = {"dtype": np.float64, **how}
    with naming(argument):
        array: Array = check_array(
            value, ensure_2d=False, allow_nd=True, input_name=argument, **how
        )
    if array.ndim not in n_dims:
        wanted = " or ".join(f"{n}" for n in n_dims)
        raise ValueError(
            f"{argument} has shape {array.shape}; it must be an array of {wanted} dimension"
            f"{'' if wanted == '1' else 's'}."
        )
    return array


def check_lengths(**arrays: Any) -> None:
    """Raise if the named arrays have different numbers of rows."""
    lengths = {name: array.shape[0] for name, array in arrays.items()}
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
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{argument}={value!r} is out of range; all numbers must be finite.")
    return array


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
    if not np.all(np.isfinite(matrix)):
        raise ValueError(f"{argument}={value!r} is out of range; {accepted}.")
    sds = np.sqrt(np.abs(np.diagonal(matrix)))
    if np.any(sds == 0):
        raise ValueError(f"{argument}={value!r} has a zero on its diagonal; {accepted}.")
    unit = matrix / sds / sds[:, None]
    if np.max(np.abs(unit - unit.T)) > _ASYMMETRY:
        raise ValueError(f"{argument}={value!r} is not symmetric; {accepted}.")
    smallest = float(np.linalg.eigvalsh(unit)[0])
    if smallest < _SINGULAR:
        raise ValueError(
            f"{argument}={value!r} has the smallest eigenvalue {smallest:.2g} after scaling to a "
            f"unit diagonal; {accepted}."
        )


def check_size(largest: float, argument: str, low: float = SMALLEST, high: float = LARGEST) -> None:
    """Raise unless the largest absolute value of an argument is 0 or in a range.

    Outside the range, squares and products leave the range of floating point numbers.
    """
    if not (largest == 0.0 or low <= largest <= high):
        raise ValueError(
            f"{argument} has values of size {largest:.3g}; it must be 0 or in [{low:g}, {high:g}], "
            f"since their squares leave the range of floating point numbers. Change the unit: "
            f"divide by {largest:.0e}."
        )
