"""Functions of many rows, evaluated block by block on all cores."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from skbayes_sgld._linalg import one_blas_thread

Array = NDArray[Any]

_BLOCK = 2**20  # numbers in the temporaries of a block


def map_blocks(function: Callable[[slice], Array], n_rows: int, n_numbers: int) -> Array:
    """Concatenated values of ``function`` on blocks of rows, computed in threads.

    Parameters
    ----------
    function : callable
        Function from a slice of rows to an array with one entry per row.
    n_rows : int
    n_numbers : int
        Numbers that the temporaries of one row hold, which sets the size of a block: it stays in
        cache, and memory does not grow with the number of rows.

    Returns
    -------
    values : ndarray of shape (n_rows, ...)
    """
    size = max(1, _BLOCK // max(n_numbers, 1))
    blocks = [slice(a, min(a + size, n_rows)) for a in range(0, n_rows, size)]
    workers = min(effective_n_jobs(-1), len(blocks))
    if workers <= 1:
        return np.concatenate([function(rows) for rows in blocks])
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        return np.concatenate(list(pool.map(function, blocks)))
