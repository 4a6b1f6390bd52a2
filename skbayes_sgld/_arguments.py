"""Arrays as users give them: scikit-learn's checks, with errors that name the argument."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

Array = NDArray[Any]


@contextmanager
def naming(*arguments: str) -> Iterator[None]:
    """Put the names in front of errors that name none of the arguments."""
    try:
        yield
    except (TypeError, ValueError) as error:
        message = str(error)
        if any(re.search(rf"\b{name}\b", message) for name in arguments):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{' and '.join(arguments)}: {message}") from None


def as_array(value: Any, argument: str, n_dims: tuple[int, ...] = (1,), **how: Any) -> Array:
    """Array of finite numbers of one of some numbers of dimensions.

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
    """Raise where arrays, given by their names, have different numbers of rows."""
    lengths = {name: array.shape[0] for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(f"{' and '.join(lengths)} have inconsistent numbers of rows: {listed}.")


def as_weights(value: Any, argument: str, size: int) -> Array:
    """Weights ``(size,)`` that are not negative, of which one is positive; None is one each."""
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
