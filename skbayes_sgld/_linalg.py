"""Products whose rows do not depend, to the last bit, on how many rows stand beside them.

BLAS may round a row of a product differently when the number of rows changes. The draws of a
chain must not depend on how many chains run beside it, so products over chains are taken in
groups of a fixed size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh
from threadpoolctl import ThreadpoolController

Array = NDArray[Any]

ROW_BLOCK = 8192  # rows of X at a time: the temporaries of a few chains stay in cache
MAX_DENSE = 2000  # parameters: with more, no matrix of parameters by parameters is formed
_GROUP = 4


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> Any:
    """Return a context in which BLAS keeps to one thread.

    Products of a few rows gain nothing from more, which would only change the rounding and, on a
    busy machine, wait for each other.
    """
    return _threads().limit(limits=1, user_api="blas")


def matmul_rows(a: Array, b: Array, group: int = _GROUP) -> Array:
    """Return ``a @ b`` for ``a (C, k)`` and ``b (k, m)``, each row as if it stood alone."""
    n_rows = a.shape[0]
    pad = -n_rows % group
    if pad:
        a = np.concatenate([a, np.zeros((pad, a.shape[1]), a.dtype)])
    product = np.matmul(a.reshape(-1, group, a.shape[1]), b)
    return product.reshape(-1, b.shape[1])[:n_rows]


def column_means(X: Array, weight: Array | None) -> Array:
    """Return the weighted mean of each column, without a temporary of the size of X."""
    w = np.ones(X.shape[0], X.dtype) if weight is None else weight.astype(X.dtype, copy=False)
    total = np.zeros(X.shape[1])
    for start in range(0, X.shape[0], ROW_BLOCK):
        rows = slice(start, start + ROW_BLOCK)
        total += w[rows] @ X[rows]
    return total / float(w.sum(dtype=float))


def inverse_root(H: Array) -> Array:
    """Return a root R, ``R R^T = H^{-1}``, of a symmetric positive definite matrix.

    The rows and columns are scaled to a unit diagonal before the Cholesky factorisation, so that
    columns in units 1e12 apart do no harm.

    Raises
    ------
    numpy.linalg.LinAlgError
        When H is not positive definite to working precision.
    """
    diagonal = np.diagonal(H)
    if not np.all(np.isfinite(H)) or np.any(diagonal <= 0):
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    scale = 1.0 / np.sqrt(diagonal)
    lower = linalg.cholesky(H * scale[:, None] * scale, lower=True)
    inverse = linalg.solve_triangular(lower, np.diag(scale), lower=True)
    return np.ascontiguousarray(inverse.T)


def largest_eigenvalue(S: Array) -> float:
    """Return the largest eigenvalue of a symmetric matrix."""
    last = S.shape[0] - 1
    return float(linalg.eigh(S, eigvals_only=True, subset_by_index=[last, last])[0])


def largest_eigenvalue_of(product: Callable[[Array], Array], size: int) -> float:
    """Return the largest eigenvalue of a symmetric matrix of which only products are known."""
    operator = LinearOperator((size, size), matvec=product, dtype=float)
    start = np.random.default_rng(0).standard_normal(size)
    return float(eigsh(operator, k=1, which="LA", v0=start, tol=1e-4, return_eigenvectors=False)[0])
