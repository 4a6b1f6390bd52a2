"""Functions of many rows, evaluated block by block on all cores."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import in_threads
from skbayes_sgld._memory import check_memory

Array = NDArray[Any]

_NUMBERS = 2**20  # in a block's temporaries; with fewer, threads wait for the interpreter
_FEWEST_ROWS = 8  # with fewer, a matrix product is as slow as products with vectors
_TASK_ROWS = 512  # rows that a thread takes at once
_FEWEST_TASKS = 8  # so that no thread waits long for the last one


def block_size(n_numbers: int) -> int:
    """Rows of a block whose temporaries hold ``n_numbers`` a row."""
    return max(_FEWEST_ROWS, _NUMBERS // max(n_numbers, 1))


class _Values:
    """Array with one entry a row, allocated once the first block shows its shape."""

    def __init__(self, n_rows: int) -> None:
        self._n_rows, self._lock = n_rows, Lock()
        self.array: Array | None = None

    def __setitem__(self, rows: slice, values: Array) -> None:
        with self._lock:
            if self.array is None:
                shape = (self._n_rows, *values.shape[1:])
                what = f"X has {self._n_rows} rows, and a result of shape {shape}"
                n_bytes = prod(shape) * values.itemsize
                check_memory(n_bytes, what, "give fewer rows at once")
                self.array = np.empty(shape, values.dtype)
        self.array[rows] = values


def by_blocks(function: Callable[[slice], Array], n_rows: int, size: int) -> Array:
    """Values of ``function`` on slices of ``size`` rows, computed in order, in one array."""
    values = _Values(n_rows)
    for first in range(0, n_rows, size):
        rows = slice(first, min(first + size, n_rows))
        values[rows] = function(rows)
    assert values.array is not None
    return values.array


def map_blocks(function: Callable[[slice], Array], n_rows: int, size: int) -> Array:
    """Values of ``function`` on slices of ``size`` rows, computed in threads, in one array.

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

    values = _Values(n_rows)

    def work(first: int) -> None:
        for start in range(first, min(first + step, n_rows), size):
            rows = slice(start, min(start + size, first + step, n_rows))
            values[rows] = function(rows)

    in_threads(work, range(0, n_rows, step))
    assert values.array is not None
    return values.array
