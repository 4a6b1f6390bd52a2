"""Functions of many rows, evaluated block by block on all cores."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np

from skbayes_sgld._linalg import in_threads
from skbayes_sgld._memory import check_memory
from skbayes_sgld._typing import Array

_FEWEST_ROWS = 8  # with fewer, a matrix product is as slow as products with vectors
_FEWEST_TASKS = 8  # so that no thread waits long for the last task
_KEPT = 2**25 - 2**16  # bytes; the C library of Linux keeps no larger arrays


def block_size(n_numbers: int) -> int:
    """Number of rows of a block, if its temporaries hold ``n_numbers`` for each row."""
    # 2**20 numbers in all: with fewer, threads wait for the interpreter
    return max(_FEWEST_ROWS, 2**20 // max(n_numbers, 1))


@cache
def _keep_freed_memory() -> None:
    """Free an array, of which the C library learns to keep freed memory of up to twice its size.

    Otherwise each block's temporaries may be given back to the system, and their pages be made
    anew: half of the time of ``log_likelihood`` with t-distributed noise.
    """
    np.empty(_KEPT, np.uint8)


def _allocated(first: Array, n_rows: int, dtype: Any = None) -> Array:
    """Array with one entry for each row, of the first block's shape and dtype, and holding it."""
    shape, dtype = (n_rows, *first.shape[1:]), np.dtype(dtype or first.dtype)
    what = f"X has {n_rows} rows, and a result of shape {shape}"
    check_memory(prod(shape) * dtype.itemsize, what, "give fewer rows at once")
    values = np.empty(shape, dtype)
    values[: len(first)] = first
    return values


def by_blocks(function: Callable[[slice], Array], n_rows: int, size: int) -> Array:
    """Values of ``function`` on slices of ``size`` rows, computed in order, in one array."""
    _keep_freed_memory()
    values = _allocated(function(slice(0, min(size, n_rows))), n_rows)
    for start in range(size, n_rows, size):
        rows = slice(start, min(start + size, n_rows))
        values[rows] = function(rows)
    return values


def map_blocks(
    function: Callable[[slice], Array], n_rows: int, size: int, dtype: Any = None
) -> Array:
    """Values of ``function`` on slices of ``size`` rows, computed in threads, in one array.

    The slices depend on the sizes alone, so the values do not depend on the threads.

    Parameters
    ----------
    function : callable
        Function from a slice of rows to an array with one entry per row.
    n_rows, size : int
    dtype : type or None, default=None
        That of the values; None: that of the function's arrays.

    Returns
    -------
    values : ndarray of shape (n_rows, ...)
    """
    if n_rows * _FEWEST_TASKS > size:  # for fewer rows threads do not pay
        size = min(size, max(_FEWEST_ROWS, -(-n_rows // _FEWEST_TASKS)))
    _keep_freed_memory()
    # a thread takes at most 512 rows at once
    step = size * max(1, min(512 // size, n_rows // (size * _FEWEST_TASKS)))
    values = _allocated(function(slice(0, min(size, n_rows))), n_rows, dtype)

    def work(first: int) -> None:
        for start in range(first, min(first + step, n_rows), size):
            rows = slice(start, min(start + size, n_rows))
            values[rows] = function(rows)

    if n_rows > size:
        in_threads(work, range(size, n_rows, step))
    return values
