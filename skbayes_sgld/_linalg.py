"""Linear algebra whose results do not depend on the number of chains, threads or blocks.

BLAS may round a row of a product differently when the number of rows changes. The draws of a
chain must not depend on how many chains run beside it, so products over chains are computed in
groups of a fixed size.
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
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, eigsh
from threadpoolctl import ThreadpoolController

from skbayes_sgld import _sparse

Array = NDArray[Any]
Part = TypeVar("Part")
Result = TypeVar("Result")

MAX_DENSE = 3000  # parameters; with more, no P by P matrix is formed
BLOCK_NUMBERS = 2**17  # numbers of X in a block of rows, so that it stays in cache
ROW_BLOCK = 8192  # rows in a block at most, so that the temporaries of a few chains stay in cache
_FEWEST_ROWS = 32
GROUP = 4  # chains of a product, whose rounding then does not depend on how many there are
_SAMPLE = 1000  # rows that show the units of the columns
_LOST = 1e-8  # of the extent of a column: a deviation whose square is lost beside 1
_NEAR_ZERO = 3.0  # ranges of a column from zero to its mean up to which its sums lose no digits
_WIDE = 512  # columns of a symmetric matrix from which it is taken by blocks of rows
_LONG = 1024  # numbers in a row of several, whose columns are summed up together
_SHARED_NUMBERS = 2**20  # numbers of X from which threads share a pass over the rows
_SHARED_BLOCK = 2**18  # numbers of X in a block of theirs: of fewer they wait for the interpreter
_PART_NUMBERS = 2**20  # of them at least in a part of a pass, so that starting it costs nothing
_SUM_NUMBERS = 2**21  # numbers in the sums of all parts together


@cache
def cpu_count() -> int:
    """Number of processors that the process may use; joblib reads files to tell it."""
    return int(joblib.cpu_count())


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


class _OneBlasThread:
    """A limit of one BLAS thread, held while any thread of the process is inside.

    The number of BLAS threads belongs to the process. If overlapping blocks each saved and
    restored it, the one that ends last would restore the other's limit.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside: dict[int, int] = {}  # blocks by the thread that is in them
        self._before: list[tuple[Any, int]] = []  # the libraries, and the threads that they had

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit()
            me = get_ident()
            self._inside[me] = self._inside.get(me, 0) + 1

    def __exit__(self, *exception: object) -> None:
        self.leave(self.depth - 1)

    @property
    def depth(self) -> int:
        """Number of blocks that this thread is in."""
        return self._inside.get(get_ident(), 0)

    def leave(self, depth: int) -> None:
        """Leave the blocks of this thread but so many.

        An interrupt may come where a block is about to end, which then stays open.
        """
        with self._lock:
            if depth > 0:
                self._inside[get_ident()] = depth
            else:
                self._inside.pop(get_ident(), None)
            if not self._inside:
                self._restore()

    def _limit(self) -> None:
        libraries = [lib for lib in _threads().lib_controllers if lib.user_api == "blas"]
        # noted before the first is set; where a restoration was interrupted, it still is
        self._before = self._before or [(lib, lib.num_threads) for lib in libraries]
        for library, _ in self._before:
            library.set_num_threads(1)

    def _restore(self) -> None:
        for library, n_threads in self._before:
            # from version 3.7 on, threadpoolctl ignores all but the thread that set them first
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

    Products of a few rows gain nothing from more threads, which would change the rounding and, on
    a busy machine, wait for each other.
    """
    return _ONE_BLAS_THREAD


_WORKER = local()


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cpu_count(), initializer=setattr, initargs=(_WORKER, "busy", True))


if hasattr(os, "register_at_fork"):  # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_workers.cache_clear)


def in_threads(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """List of ``work(part)`` for each part, computed in threads if there are several parts.

    The result depends on the parts alone, not on the number of threads. A thread that computes a
    part itself computes parts of that one after the other, since it would wait for its own end.
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


def weighted_gram(X: Any, weight: Array, overwrite: bool = False) -> Array:
    """``X^T diag(weight) X``, at half the cost where no weight is negative.

    X is an array, or a design of sparse rows, which knows its own. Where an array may be
    overwritten no temporary of its size is made.
    """
    if not isinstance(X, np.ndarray):
        return X.gram(weight)
    if np.all(weight >= 0):
        scaled = np.multiply(X, np.sqrt(weight)[:, None], out=X if overwrite else None)
        return scaled.T @ scaled  # the product of an array with itself is known to be symmetric
    return (X * weight[:, None]).T @ X


def gram_of_predictors(X: Any, weights: Array, overwrite: bool = False) -> Array:
    """Blocks ``X^T diag(w_ab) X`` of K predictors of each row, for ``weights (K, K, B)``."""
    (K, _, _), width = weights.shape, X.shape[1]
    if K == 1:
        return weighted_gram(X, weights[0, 0], overwrite)
    H = np.empty((K * width, K * width))
    at = [slice(k * width, (k + 1) * width) for k in range(K)]
    for a, b in combinations_with_replacement(range(K), 2):
        H[at[a], at[b]] = weighted_gram(X, weights[a, b])
        H[at[b], at[a]] = H[at[a], at[b]].T
    return H


def row_slices(
    n_rows: int, n_columns: int, fewest: int = _FEWEST_ROWS, numbers: int = BLOCK_NUMBERS
) -> Iterator[slice]:
    """Slices of the blocks of rows, each of so many numbers, in which a pass is made."""
    size = max(fewest, int(np.clip(numbers // n_columns, _FEWEST_ROWS, ROW_BLOCK)))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def equal_slices(n: int, n_parts: int) -> list[slice]:
    """Slices of n items that differ by one in their length, at most; none is empty."""
    edges = np.linspace(0, n, min(n_parts, n) + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(edges)]


def row_parts(
    n_rows: int, n_columns: int, fewest: int = _FEWEST_ROWS, sums: int = 1
) -> list[list[slice]]:
    """Blocks of rows, divided into the parts of a pass that threads may share.

    The division depends on the shape of the data alone, so that sums do not depend on threads.
    ``sums`` is how many numbers each part adds up.
    """
    numbers = n_rows * n_columns
    if numbers < _SHARED_NUMBERS:
        return [list(row_slices(n_rows, n_columns, fewest))]
    blocks = list(row_slices(n_rows, n_columns, fewest, _SHARED_BLOCK))
    n_parts = int(np.clip(min(numbers // _PART_NUMBERS, _SUM_NUMBERS // sums), 2, 16))
    return [blocks[part] for part in equal_slices(len(blocks), n_parts)]


def row_blocks(X: Array, center: Array | None = None) -> Iterator[tuple[slice, Array]]:
    """Slices of rows with the block of X there, minus ``center (d,)``, in float64 and C order.

    A block is the same array whatever the dtype and the memory order of X, so no sum depends on
    either; and X is never copied as a whole.
    """
    for rows in row_slices(*X.shape):
        if center is None:
            yield rows, np.ascontiguousarray(X[rows], dtype=np.float64)
        else:
            yield rows, np.subtract(X[rows], center, dtype=np.float64, order="C")


def sums_of_squares(X: Array) -> Array:
    """Sum of the squares of each column ``(d,)``; not finite where a value or its square is not."""

    def of_part(blocks: list[slice]) -> Array:
        return np.sum([_column_squares(X[rows]) for rows in blocks], axis=0)

    with np.errstate(all="ignore"):
        if issparse(X):
            return _sparse.column_squares(X)
        return np.asarray(sum_in_threads(of_part, row_parts(*X.shape)), dtype=float)


@cache
def _largest_divisor(n: int, most: int) -> int:
    return max((k for k in range(1, 1 + most) if n % k == 0), default=1)


def _beside(X: Array) -> Array:
    """Rows side by side, so that loops over the columns are long, which is faster."""
    n, d = X.shape
    several = _largest_divisor(n, _LONG // d)
    return X.reshape(n // several, several * d) if X.flags.c_contiguous else X


def _column_sums(X: Array) -> Array:
    """Sum of each column ``(d,)``."""
    return _beside(X).sum(axis=0).reshape(-1, X.shape[1]).sum(axis=0)


def _column_squares(X: Array) -> Array:
    """Sum of the squares of each column ``(d,)``."""
    rows = _beside(X)
    return np.einsum("ij,ij->j", rows, rows).reshape(-1, X.shape[1]).sum(axis=0)


def matmul_rows(a: Array, b: Array, group: int = GROUP) -> Array:
    """``a @ b`` for ``a (C, k)`` and ``b (k, m)``, each row independent of the others."""
    n_rows = a.shape[0]
    if n_rows <= group:  # the usual case of a step, at half the cost
        if n_rows < group:
            few, a = a, np.zeros((group, a.shape[1]), a.dtype)
            a[:n_rows] = few
        return (a @ b)[:n_rows]
    pad = -n_rows % group
    if pad:
        a = np.concatenate([a, np.zeros((pad, a.shape[1]), a.dtype)])
    product = np.matmul(a.reshape(-1, group, a.shape[1]), b)
    return product.reshape(-1, b.shape[1])[:n_rows]


def matmul_symmetric(a: Array, b: Array, group: int = GROUP) -> Array:
    """``a @ b`` for a symmetric b, each row of a independent of the others.

    BLAS multiplies by a few rows of b at a time faster, since it then copies none.
    """
    if len(b) < _WIDE:
        return matmul_rows(a, b, group)
    blocks = [b[rows].T for rows in row_slices(*b.shape)]
    return np.concatenate([matmul_rows(a, block, group) for block in blocks], axis=1)


def column_means(X: Array, weight: Array | None) -> Array:
    """Weighted mean of each column ``(d,)``, without a temporary of the size of X."""
    w = np.ones(X.shape[0]) if weight is None else weight
    if issparse(X):
        return _sparse.column_sums(X, w) / float(w.sum())

    def of_part(blocks: list[slice]) -> Array:
        total = np.zeros(X.shape[1])
        for rows in blocks:
            total += w[rows] @ np.ascontiguousarray(X[rows], dtype=np.float64)
        return total

    return sum_in_threads(of_part, row_parts(*X.shape)) / float(w.sum())


def column_ranges(X: Array) -> tuple[Array, Array]:
    """Least and largest value of each column, ``(d,)`` each."""
    return _sparse.column_ranges(X) if issparse(X) else (X.min(axis=0), X.max(axis=0))


def column_squares(X: Array, origin: Array, weight: Array) -> Array:
    """Weighted sum of the squares of the columns less ``origin (d,)``."""
    if issparse(X):
        return _sparse.squares_about(X, origin, weight)
    total = np.zeros(X.shape[1])
    for rows, block in row_blocks(X, origin):
        total += np.square(block).T @ weight[rows]
    return total


def gram_about(X: Array, origin: Array) -> Array:
    """Sum of the products of the columns less ``origin (d,)``, a matrix ``(d, d)``."""
    if issparse(X):
        return _sparse.gram_about(X, origin)
    gram = np.zeros((X.shape[1],) * 2)
    for _, block in row_blocks(X, origin):
        gram += block.T @ block
    return gram


def column_moments(X: Array, weight: Array | None = None) -> tuple[Array, Array]:
    """Mean and spread of each column, ``(d,)`` each, in one pass over the rows.

    The spread is in the column's units and positive: the standard deviation; of a column of two
    values their difference; of a column of one value its size, or 1 where that is 0. Rows of
    weight 0 do not count.
    """
    if issparse(X):
        return _sparse.column_moments(X, weight)
    kept: Any = range(X.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    sample = X[kept[:: max(1, len(kept) // _SAMPLE)]].astype(np.float64)
    low, high = sample.min(axis=0), sample.max(axis=0)
    extent = np.where(high > low, high - low, 1.0)
    few = np.all((sample == low) | (sample == high), axis=0)
    # sums of z = (x - shift) / unit, which is 0 or 1 in a column of two values, and otherwise
    # such that the sums neither cancel nor overflow
    mean = sample.mean(axis=0)
    shift = np.where(few, low, np.where(np.abs(mean) > _NEAR_ZERO * extent, mean, 0.0))
    unit = np.where(few | (np.abs(np.log(extent)) > 100), extent, 1.0)
    parts = row_parts(*X.shape)
    first, second = sum_in_threads(partial(_sums_of_columns, X, weight, shift, unit), parts)
    total = float(X.shape[0] if weight is None else weight.sum())
    variance = second / total - np.square(first / total)
    # z and z^2 are the same numbers, and so are their sums, where z is 0 or 1 in every row
    spread = unit * np.where(few & (first == second), 1.0, np.sqrt(np.maximum(variance, 0.0)))
    # of a variance that is lost to rounding, beside a row of far more weight than the others
    spread = np.where(spread > 0.0, spread, _LOST * extent)
    one = low == high
    spread[one] = np.where(low != 0, np.abs(low), 1.0)[one]
    for k in np.flatnonzero(one & (second > 0)):  # of one value in the sample only
        x = X[kept, k].astype(np.float64)
        z = (x - x.min()) / np.ptp(x)
        two = np.all((z == 0.0) | (z == 1.0))
        w = None if weight is None else weight[kept]
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
        sums[0] += _column_sums(z) if weight is None else weight[rows] @ z
        sums[1] += _column_squares(z) if weight is None else weight[rows] @ (z * z)
    return sums


def inverse_root(H: Array) -> Array:
    """Root R, ``R R^T = H^{-1}``, of a symmetric positive definite matrix.

    Rows and columns are scaled to a unit diagonal before the Cholesky factorisation, so that
    units of the columns that differ by a factor of 1e12 do no harm.

    Raises
    ------
    numpy.linalg.LinAlgError
        When H is not positive definite to working precision.
    """
    lower, scale = _scaled_cholesky(H)
    inverse, _ = linalg.lapack.dtrtri(lower, lower=1)  # a third of the work of solving for it
    inverse *= scale
    return np.ascontiguousarray(inverse.T)


def solve_positive(H: Array, v: Array) -> Array:
    """``H^{-1} v`` with H as in :func:`inverse_root`, at a third of the cost of its root."""
    lower, scale = _scaled_cholesky(H)
    return scale * linalg.cho_solve((lower, True), scale * v)


def _scaled_cholesky(H: Array) -> tuple[Array, Array]:
    """Cholesky factor of H scaled to a unit diagonal, and the scale ``(P,)``."""
    diagonal = np.diagonal(H)
    if not np.all(np.isfinite(H)) or np.any(diagonal <= 0):
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    scale = 1.0 / np.sqrt(diagonal)
    scaled = H * scale[:, None]
    scaled *= scale
    return linalg.cholesky(scaled, lower=True, overwrite_a=True, check_finite=False), scale


def largest_eigenvalue(S: Array) -> float:
    """Largest eigenvalue of a symmetric matrix."""
    last = S.shape[0] - 1
    with one_blas_thread():  # two wait for each other: 600 rows took 1.7 s on a busy machine
        return float(linalg.eigh(S, eigvals_only=True, subset_by_index=[last, last])[0])


def largest_eigenvalue_of(product: Callable[[Array], Array], size: int) -> float:
    """Largest eigenvalue of a symmetric matrix that is given by its products with vectors."""
    operator = LinearOperator((size, size), matvec=product, dtype=float)
    start = np.random.default_rng(0).standard_normal(size)
    return float(eigsh(operator, k=1, which="LA", v0=start, tol=1e-4, return_eigenvectors=False)[0])
