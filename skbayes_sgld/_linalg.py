"""Linear algebra whose results do not depend on the number of chains, threads or blocks.

BLAS may round a row of a product differently when the number of rows changes. The draws of a
chain must not depend on the number of chains, so products over chains are computed in groups of a
fixed size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import combinations_with_replacement, pairwise
from threading import Lock, get_ident, local
from typing import Any, TypeVar

import joblib
import numpy as np
from scipy import linalg
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, eigsh
from threadpoolctl import ThreadpoolController

from skbayes_sgld import _sparse
from skbayes_sgld._random import probe_generator
from skbayes_sgld._typing import Array

Part = TypeVar("Part")
Result = TypeVar("Result")

MAX_DENSE = 4000  # parameters; with more, no P by P matrix is formed
BLOCK_NUMBERS = 2**17  # numbers of X in a block of rows, so that it stays in cache
ROW_BLOCK = 8192  # most rows in a block, so that temporaries of a few chains stay in cache
_FEWEST_ROWS = 32
# Rows of a product that BLAS rounds alike, whatever their order: rows 13 to 16 of 16 are rounded in
# another way, in float32 or with AVX-512
ALIKE = 8
GROUP = 4  # chains of a product, so that rounding does not depend on the number of chains
_BY_ENTRIES = (
    6  # rows of matrices of which many are factored entry by entry, in a third of the time
)
_LOST = 1e-8  # deviation, relative to a column's extent, whose square rounds to 0 beside 1


@cache
def cpu_count() -> int:
    """Number of processors that the process may use; cached, as joblib reads files for it."""
    return int(joblib.cpu_count())


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


class _OneBlasThread:
    """Limit of one BLAS thread, in force while any thread of the process is inside a block.

    The number of BLAS threads belongs to the process. If overlapping blocks each saved and restored
    it, the last one to end would restore the other's limit.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside: dict[int, int] = {}  # number of blocks that each thread is in
        self._before: list[tuple[Any, int]] = []  # libraries, and their earlier numbers of threads

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                libraries = [lib for lib in _threads().lib_controllers if lib.user_api == "blas"]
                # saved before the first is set, and kept if a restoration was interrupted
                self._before = self._before or [(lib, lib.num_threads) for lib in libraries]
                for library, _ in self._before:
                    library.set_num_threads(1)
            me = get_ident()
            self._inside[me] = self._inside.get(me, 0) + 1

    def __exit__(self, *exception: object) -> None:
        self.leave(self.depth - 1)

    @property
    def depth(self) -> int:
        """Number of blocks that this thread is in."""
        return self._inside.get(get_ident(), 0)

    def leave(self, depth: int) -> None:
        """Leave this thread's blocks until ``depth`` of them remain.

        An interrupt just at the end of a block leaves it open.
        """
        with self._lock:
            if depth > 0:
                self._inside[get_ident()] = depth
            else:
                self._inside.pop(get_ident(), None)
            if not self._inside:
                self._restore()

    def _restore(self) -> None:
        for library, n_threads in self._before:
            # from version 3.7 on, threadpoolctl obeys only the thread that set the limit first
            let = getattr(library, "clear_controlling_thread", None)
            if let is not None:
                let(force=True)
            library.set_num_threads(n_threads)
            if let is not None:
                let(force=True)
        self._before = []


_ONE_BLAS_THREAD = _OneBlasThread()


def one_blas_thread() -> _OneBlasThread:
    """Context in which BLAS uses one thread; blocks may nest and overlap.

    Products of few rows gain nothing from more threads. These would change the rounding and, on a
    busy machine, wait for each other.
    """
    return _ONE_BLAS_THREAD


_WORKER = local()


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cpu_count(), initializer=setattr, initargs=(_WORKER, "busy", True))


if hasattr(os, "register_at_fork"):  # a forked process has no threads of its parent
    os.register_at_fork(after_in_child=_workers.cache_clear)


def in_threads(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """List of ``work(part)`` for each part, computed in threads if there are several parts.

    The result depends only on the parts, not on the number of threads. Nested calls run in the
    thread of the outer part, which would otherwise wait for itself.
    """
    if len(parts) == 1 or cpu_count() == 1 or hasattr(_WORKER, "busy"):
        return [work(part) for part in parts]
    errors = np.geterr()  # each thread has its own

    def task(part: Part) -> Result:
        with np.errstate(**errors):
            return work(part)

    with one_blas_thread():
        return list(_workers().map(task, parts))


def sum_in_threads(work: Callable[[Part], Array], parts: Sequence[Part]) -> Array:
    """Sum of ``work(part)`` over the parts, in their order."""
    total, *others = in_threads(work, parts)
    for other in others:
        total += other
    return total


def weighted_gram(X: Any, weight: Array, room: Array | None = None) -> Array:
    """``X^T diag(weight) X``, at half the cost if all weights have one sign.

    X is an array, or a design of sparse rows with a method ``gram``. A ``room`` of the shape of X,
    which may be X, is overwritten.
    """
    if not isinstance(X, np.ndarray):
        return X.gram(weight)
    positive = np.all(weight >= 0)
    if positive or np.all(weight <= 0):
        scaled = np.multiply(X, np.sqrt(np.abs(weight))[:, None], out=room)
        gram = scaled.T @ scaled  # BLAS computes only half of the product of an array with itself
        return gram if positive else np.negative(gram, out=gram)
    return (X * weight[:, None]).T @ X


def gram_of_predictors(X: Any, weights: Array, room: Array | None = None) -> Array:
    """Blocks ``X^T diag(w_ab) X`` of K predictors of each row, for ``weights (K, K, B)``.

    One predictor may overwrite ``room``, as in :func:`weighted_gram`.
    """
    (K, _, _), width = weights.shape, X.shape[1]
    if K == 1:
        return weighted_gram(X, weights[0, 0], room)
    H = np.zeros((K, width, K, width))
    for a, b in combinations_with_replacement(range(K), 2):
        H[a, :, b] = weighted_gram(X, weights[a, b])
        H[b, :, a] = H[a, :, b].T
    return H.reshape(K * width, K * width)


def row_slices(
    n_rows: int, n_columns: int, min_rows: int = _FEWEST_ROWS, numbers: int = BLOCK_NUMBERS
) -> Iterator[slice]:
    """Slices of rows with at most ``numbers`` numbers each, for one pass over X."""
    size = max(min_rows, _FEWEST_ROWS, min(numbers // max(1, n_columns), ROW_BLOCK))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def equal_slices(n: int, n_parts: int) -> list[slice]:
    """Slices of n items whose lengths differ by at most one; none is empty."""
    edges = np.linspace(0, n, min(n_parts, n) + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(edges)]


def row_parts(
    n_rows: int, n_columns: int, min_rows: int = _FEWEST_ROWS, sum_size: int = 1
) -> list[list[slice]]:
    """Blocks of rows, divided into parts that threads may share.

    The division depends only on the shape of the data, so that sums do not depend on threads.
    ``sum_size`` is the size of the array that each part adds up.
    """
    numbers = n_rows * n_columns
    if numbers < 2**20:
        return [list(row_slices(n_rows, n_columns, min_rows))]
    # threads with smaller blocks wait for the interpreter
    blocks = list(row_slices(n_rows, n_columns, min_rows, 2**18))
    # parts large enough to be worth a thread, and few enough that all their sums fit in memory
    n_parts = int(np.clip(min(numbers // 2**20, 2**21 // sum_size), 2, 16))
    return [blocks[part] for part in equal_slices(len(blocks), n_parts)]


def row_blocks(X: Array, center: Array, dtype: Any = np.float64) -> Iterator[tuple[slice, Array]]:
    """Slices of rows, and the rows of X minus ``center (d,)`` in C order.

    A block in float64 is the same array whatever the dtype and the memory order of X, so no sum
    depends on them. X is never copied as a whole. Each block overwrites the one before: workers of
    Dask give freed memory back, and to get it anew for every block takes them twice as long.
    """
    room = None
    for rows in row_slices(*X.shape):
        if room is None:
            room = np.empty((rows.stop, X.shape[1]), dtype)
        yield rows, np.subtract(X[rows], center, out=room[: rows.stop - rows.start], dtype=dtype)


def sums_of_squares(X: Array) -> Array:
    """Sum of the squares of each column ``(d,)``; not finite if a value or its square is not."""

    def part_sums(blocks: list[slice]) -> Array:
        return np.sum([_column_squares(X[rows]) for rows in blocks], axis=0)

    with np.errstate(all="ignore"):
        if issparse(X):
            return _sparse.column_squares(X)
        return np.asarray(sum_in_threads(part_sums, row_parts(*X.shape)), dtype=float)


def _beside(X: Array) -> Array:
    """Several rows side by side, so that NumPy's inner loops over few columns are longer.

    A default linear fit of 1,000,000 x 5 takes 58 ms in place of 77 ms.
    """
    n, d = X.shape
    several = next((k for k in range(1024 // d, 1, -1) if n % k == 0), 1)
    return X.reshape(n // several, several * d) if X.flags.c_contiguous else X


def _column_squares(X: Array) -> Array:
    """Sum of the squares of each column ``(d,)``."""
    rows = _beside(X)
    return np.einsum("ij,ij->j", rows, rows).reshape(-1, X.shape[1]).sum(axis=0)


def matmul_rows(a: Array, b: Array, group: int = GROUP) -> Array:
    """``a @ b`` for ``a (C, k)`` and ``b (k, m)``, each row independent of the others."""
    n_rows = a.shape[0]
    if n_rows <= group:  # the usual case in a step, at half the cost
        if n_rows < group:
            few, a = a, np.zeros((group, a.shape[1]), a.dtype)
            a[:n_rows] = few
        return (a @ b)[:n_rows]
    pad = -n_rows % group
    if pad:
        a = np.concatenate([a, np.zeros((pad, a.shape[1]), a.dtype)])
    product = np.matmul(a.reshape(len(a) // group, group, a.shape[1]), b)
    return product.reshape(len(a), b.shape[1])[:n_rows]


def column_ranges(X: Array) -> tuple[Array, Array]:
    """Least and largest value of each column, ``(d,)`` each."""
    return _sparse.column_ranges(X) if issparse(X) else (X.min(axis=0), X.max(axis=0))


def column_squares(X: Array, origin: Array, weight: Array) -> Array:
    """Weighted sums of squares of the columns minus ``origin (d,)``."""
    if issparse(X):
        return _sparse.squares_about(X, origin, weight)
    parts = (np.square(block).T @ weight[rows] for rows, block in row_blocks(X, origin))
    return sum(parts, np.zeros(X.shape[1]))


def gram_about(X: Array, origin: Array) -> Array:
    """Matrix ``(d, d)`` of products of the columns minus ``origin (d,)``."""
    if issparse(X):
        return _sparse.gram_about(X, origin)
    parts = (block.T @ block for _, block in row_blocks(X, origin))
    return sum(parts, np.zeros((X.shape[1],) * 2))


def column_moments(X: Array, weight: Array | None = None) -> tuple[Array, Array]:
    """Mean and spread of each column, ``(d,)`` each, in one pass over the rows.

    The spread is positive and in the column's units. It is the standard deviation; with two values,
    their difference; with one value, its size, or 1 if it is 0. Rows of weight 0 do not count.
    """
    if issparse(X):
        return _sparse.column_moments(X, weight)
    rows: Any = slice(X.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    every = max(1, (X.shape[0] if weight is None else len(rows)) // 1000)
    # a slice copies nothing
    sample = X[::every] if weight is None else X[rows[::every]]
    sample = sample.astype(np.float64, order="C")
    columns = np.ascontiguousarray(sample.T)  # whose extremes take a third of the time
    low, high = columns.min(axis=1), columns.max(axis=1)
    extent = np.where(high > low, high - low, 1.0)
    # three rows exclude most columns
    few = np.all((sample[:3] == low) | (sample[:3] == high), axis=0)
    some = columns[few].T
    few[few] = np.all((some == low[few]) | (some == high[few]), axis=0)
    # sums of z = (x - shift) / unit: 0 or 1 in a column of two values, and otherwise scaled so that
    # the sums neither cancel nor overflow
    mean = sample.mean(axis=0)
    shift = np.where(few, low, np.where(np.abs(mean) > 3.0 * extent, mean, 0.0))
    unit = np.where(few | (np.abs(np.log(extent)) > 100), extent, 1.0)
    parts = row_parts(*X.shape)
    first, second = sum_in_threads(partial(_sums_of_columns, X, weight, shift, unit), parts)
    total = float(X.shape[0] if weight is None else weight.sum())
    variance = second / total - np.square(first / total)
    # if z is 0 or 1 in every row, z and z^2 have equal sums
    spread = unit * np.where(few & (first == second), 1.0, np.sqrt(np.maximum(variance, 0.0)))
    # rounding loses the variance if one row has far more weight than the others
    spread = np.where(spread > 0.0, spread, _LOST * extent)
    one = low == high
    spread[one] = np.where(low != 0, np.abs(low), 1.0)[one]
    for k in np.flatnonzero(one & (second > 0)):  # one value in the sample, but not in all rows
        x = X[rows, k].astype(np.float64)
        z = (x - x.min()) / np.ptp(x)
        two = np.all((z == 0.0) | (z == 1.0))
        w = None if weight is None else weight[rows]
        about = z - np.average(z, weights=w)
        sd = np.sqrt(np.average(np.square(about), weights=w))
        spread[k] = np.ptp(x) * (1.0 if two else max(sd, _LOST))
    return shift + unit * first / total, spread


def _sums_of_columns(
    X: Array, weight: Array | None, shift: Array, unit: Array, blocks: list[slice]
) -> Array:
    """Sums of ``w z`` and of ``w z^2`` of each column, with ``z = (x - shift) / unit``."""
    sums, shifted, scaled = np.zeros((2, X.shape[1])), np.any(shift != 0.0), np.any(unit != 1.0)
    for rows in blocks:
        z = np.ascontiguousarray(X[rows], dtype=np.float64)
        if shifted:
            z = z - shift
        if scaled:
            z = z / unit
        if weight is None:
            sums[0] += _beside(z).sum(axis=0).reshape(-1, z.shape[1]).sum(axis=0)
            sums[1] += _column_squares(z)
        else:
            sums += weight[rows] @ z, weight[rows] @ (z * z)
    return sums


def inverse_root(H: Array) -> Array:
    """Root R, ``R R^T = H^{-1}``, of a symmetric positive definite matrix.

    Rows and columns are scaled to a unit diagonal before the Cholesky factorisation, so that units
    of the columns may differ by a factor of 1e12.

    Raises
    ------
    numpy.linalg.LinAlgError
        If H is not positive definite to working precision.
    """
    diagonal = np.diagonal(H)
    if not np.all(np.isfinite(H)) or np.any(diagonal <= 0):
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    scale = 1.0 / np.sqrt(diagonal)
    scaled = H * scale[:, None]
    scaled *= scale
    lower = linalg.cholesky(scaled, lower=True, overwrite_a=True, check_finite=False)
    inverse, _ = linalg.lapack.dtrtri(lower, lower=1)  # a third of the work of a solve
    inverse *= scale
    return np.ascontiguousarray(inverse.T)


def largest_eigenvalue(S: Array) -> float:
    """Largest eigenvalue of a symmetric matrix."""
    last = S.shape[0] - 1
    with one_blas_thread():  # two threads would wait for each other on a busy machine
        return float(linalg.eigh(S, eigvals_only=True, subset_by_index=[last, last])[0])


def largest_eigenvalue_of(product: Callable[[Array], Array], size: int) -> float:
    """Largest eigenvalue of a symmetric matrix, from its products with vectors."""
    operator = LinearOperator((size, size), matvec=product, dtype=float)
    start = probe_generator().standard_normal(size)
    return float(eigsh(operator, k=1, which="LA", v0=start, tol=1e-4, return_eigenvectors=False)[0])


def inverse_factors(P: Array, many: bool = False) -> tuple[Array, Array]:
    """A ``(C, L, L)`` with ``A' A = P^-1``, lower triangular, and its log determinant ``(C,)``.

    nan if P is not positive definite in floating point. ``many`` is whether there are usually
    hundreds of them.
    """
    if many and P.shape[1] <= _BY_ENTRIES:
        return _inverse_factors_by_entries(P)
    A = np.array(P, order="C")  # not scaled: rounding errors hardly depend on scales of columns
    for one in A:  # in place: the transpose is in Fortran's order
        _, failed = dpotrf(one.T, overwrite_a=True)
        if failed:
            one[:] = np.nan
        else:
            dtrtri(one.T, overwrite_c=True)
    return A, np.log(np.einsum("cii->ci", A)).sum(axis=1)


def _inverse_factors_by_entries(P: Array) -> tuple[Array, Array]:
    """:func:`inverse_factors` of small matrices, each entry of all at once."""
    B = np.ascontiguousarray(P.transpose(1, 2, 0))
    A, log_det, n = np.zeros_like(B), np.zeros(len(P)), len(B)
    K: dict[tuple[int, int], Array] = {}
    for j in range(n):  # P = K K'
        pivot = B[j, j] - sum(np.square(K[j, k]) for k in range(j))
        pivot = np.where(pivot > 0.0, pivot, np.nan)
        log_det -= 0.5 * np.log(pivot)
        A[j, j] = 1.0 / np.sqrt(pivot)
        for i in range(j + 1, n):
            K[i, j] = (B[i, j] - sum(K[i, k] * K[j, k] for k in range(j))) * A[j, j]
    for i in range(n):  # K A = I
        for j in range(i):
            A[i, j] = -A[i, i] * sum(K[i, k] * A[k, j] for k in range(j, i))
    return np.ascontiguousarray(A.transpose(2, 0, 1)), log_det
