"""Functions of many rows, evaluated block by block on all cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import in_threads

Array = NDArray[Any]

_NUMBERS = 2**20  # in a block's temporaries: of fewer, threads wait for the interpreter
_FEWEST_ROWS = 8  # fewer make a product one of vectors, whatever the number of draws
_TASK_ROWS = 512  # that a thread takes at once
_FEWEST_TASKS = 8  # so that no thread waits long for the last one


def block_size(n_numbers: int) -> int:
    """Rows of a block whose temporaries hold ``n_numbers`` a row."""
    return max(_FEWEST_ROWS, _NUMBERS // max(n_numbers, 1))


def by_blocks(function: Callable[[slice], Array], n_rows: int, size: int) -> Array:
    """Concatenated values of ``function`` on slices of ``size`` rows, one after the other."""
    slices = [slice(a, min(a + size, n_rows)) for a in range(0, n_rows, size)]
    return np.concatenate([function(rows) for rows in slices])


def map_blocks(function: Callable[[slice], Array], n_rows: int, size: int) -> Array:
    """Concatenated values of ``function`` on slices of ``size`` rows, computed in threads.

    The slices depend on the sizes alone, so the values do not depend on the threads.

    Parameters
    ----------
    function : callable
        Function from a slice of rows to an array with one entry per row.
    n_rows, size : int

    Returns
    -------
    values : ndarray of shape (n_rows, ...)
    """
    size = min(size, max(_FEWEST_ROWS, -(-n_rows // _FEWEST_TASKS)))
    step = size * max(1, min(_TASK_ROWS // size, n_rows // (size * _FEWEST_TASKS)))

    def values_of(first: int) -> Array:
        rows = min(step, n_rows - first)
        return by_blocks(lambda part: function(_moved(part, first)), rows, size)

    return np.concatenate(in_threads(values_of, range(0, n_rows, step)))


def _moved(rows: slice, by: int) -> slice:
    return slice(rows.start + by, rows.stop + by)
