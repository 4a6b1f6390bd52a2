"""Metrics: the matrix G of the preconditioned recursion, drift G g and noise G^{1/2} xi.

Karagiannis, Handout 6, eq. (3.9). One object gives both, so drift and noise cannot disagree. A
metric is known through a root of it, ``G = R R^T``; no metric but the dense one forms a matrix of
parameters by parameters.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from skbayes_sgld._linalg import (
    GROUP,
    MAX_DENSE,
    largest_eigenvalue_of,
    matmul_rows,
    matmul_symmetric,
    row_slices,
)

Array = NDArray[Any]

_WIDE = 256  # parameters from which a root in float32 is cheaper
_ROWS = 16  # rows of noise in a product: fixed, so that draws do not depend on the block size


class Metric:
    """The identity: the recursion of eq. (3.4). Base of the others."""

    _group: int | None = GROUP

    def __init__(self, n_params: int) -> None:
        self.n_params = n_params

    @property
    def diagonal(self) -> Array | None:
        """Diagonal of G ``(P,)`` where it is a diagonal matrix; None otherwise."""
        return None

    def scale(self, v: Array) -> Array:
        """``G v`` for each row of ``v (C, P)``."""
        return v

    def sqrt(self, z: Array) -> Array:
        """``R z`` for each ``z (..., P)``."""
        return z

    @property
    def root(self) -> Array:
        """R as a matrix ``(P, P)``."""
        return self.sqrt(np.eye(self.n_params)).T

    def sqrt_t(self, v: Array) -> Array:
        """``R^T v``, a gradient in the preconditioned coordinates ``(C, P)``."""
        return v

    def of_chains(self, some: slice) -> Metric:
        """Metric of some of the chains."""
        return self

    def in_groups_of(self, size: int | None) -> Self:
        """Metric whose :meth:`sqrt` and :meth:`sqrt_t` take so many positions in a product.

        None takes all, for a pilot, whose number of chains is fixed. Sixty-four positions of thirty
        parameters take a third of the time.
        """
        other = copy(self)
        other._group = size
        return other

    def rounded(self) -> Metric:
        """Metric whose :meth:`sqrt` and :meth:`sqrt_t` of a few rows may be in float32."""
        return self

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x`` for each row of ``x (C, P)``."""
        return x

    def whiten_t(self, v: Array) -> Array:
        """``R^{-T} v`` for each row of ``v (C, P)``."""
        return v

    @property
    def marginal_sd(self) -> Array:
        """The roots of G's diagonal ``(P,)``: the sds under ``N(0, G)``."""
        return np.ones(self.n_params)

    def stretched(self, sds: Array) -> Metric:
        """Metric in which directions whose whitened sds were ``sds (P,)`` have the sd 1."""
        return Diagonal(np.square(sds))


class Diagonal(Metric):
    """A diagonal metric, by its diagonal ``(P,)``."""

    def __init__(self, variances: Array) -> None:
        super().__init__(len(variances))
        self._variances, self._sds = variances, np.sqrt(variances)

    @property
    def diagonal(self) -> Array:
        """Diagonal."""
        return self._variances

    def scale(self, v: Array) -> Array:
        """``G v``."""
        return v * self._variances

    def sqrt(self, z: Array) -> Array:
        """``R z``."""
        return z * self._sds

    def sqrt_t(self, v: Array) -> Array:
        """``R^T v``."""
        return v * self._sds

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x``."""
        return x / self._sds

    def whiten_t(self, v: Array) -> Array:
        """``R^{-T} v``."""
        return v / self._sds

    @property
    def marginal_sd(self) -> Array:
        """The roots of the diagonal."""
        return self._sds

    def stretched(self, sds: Array) -> Metric:
        """The diagonal times the variances."""
        return Diagonal(self._variances * np.square(sds))


class LowRank(Metric):
    """Inverse of ``diag(d) + F^T F``, F having fewer rows than there are parameters.

    With the thin singular value decomposition ``F d^{-1/2} = U S V^T`` a root is
    ``d^{-1/2} (I + V ((1 + S^2)^{-1/2} - 1) V^T)`` (by the Woodbury identity): O(m P) a product.

    Parameters
    ----------
    diagonal : ndarray of shape (P,)
        d, positive.
    factor : ndarray of shape (m, P)
        F.
    """

    def __init__(self, diagonal: Array, factor: Array) -> None:
        super().__init__(len(diagonal))
        self._sds = 1.0 / np.sqrt(diagonal)
        _, values, self._vectors = linalg.svd(
            factor * self._sds, full_matrices=False, overwrite_a=True
        )
        self._stretch = np.sqrt(1.0 + np.square(values))

    def _apply(self, x: Array, gain: Array) -> Array:
        """``(I + V (gain - 1) V^T) x``."""
        seen = matmul_rows(x, self._vectors.T) * (gain - 1.0)
        return x + matmul_rows(seen, self._vectors)

    def scale(self, v: Array) -> Array:
        """``G v``."""
        return self._sds * self._apply(v * self._sds, self._stretch**-2.0)

    def sqrt(self, z: Array) -> Array:
        """``R z``."""
        rows = z.reshape(-1, z.shape[-1])
        return (self._sds * self._apply(rows, 1.0 / self._stretch)).reshape(z.shape)

    def sqrt_t(self, v: Array) -> Array:
        """``R^T v``."""
        return self._apply(v * self._sds, 1.0 / self._stretch)

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x``."""
        return self._apply(x / self._sds, self._stretch)

    def whiten_t(self, v: Array) -> Array:
        """``R^{-T} v``."""
        return self._apply(v, self._stretch) / self._sds

    @property
    def marginal_sd(self) -> Array:
        """The roots of the diagonal."""
        seen = (self._stretch**-2.0 - 1.0) @ np.square(self._vectors)
        return self._sds * np.sqrt(1.0 + seen)

    def stretched(self, sds: Array) -> Metric:
        """The metric times the mean variance: its form has no room for one a direction."""
        other = object.__new__(LowRank)
        vars(other).update(vars(self), _sds=self._sds * np.sqrt(np.mean(np.square(sds))))
        return other


class Dense(Metric):
    """Any metric, by a root of it.

    Parameters
    ----------
    root : ndarray of shape (P, P)
        R.
    curvature : ndarray of shape (P, P), default=None
        ``G^{-1}``, where it is known.
    inverse_t : ndarray of shape (P, P), default=None
        ``R^{-T}``, where it is known.
    """

    def __init__(
        self, root: Array, curvature: Array | None = None, inverse_t: Array | None = None
    ) -> None:
        super().__init__(len(root))
        self._root, self._curvature = root, curvature
        if inverse_t is not None:
            self._inverse_t = inverse_t

    def scaled(self, variance: float) -> Dense:
        """The metric times a number."""
        curvature = None if self._curvature is None else self._curvature / variance
        return Dense(self._root * np.sqrt(variance), curvature)

    @property
    def root(self) -> Array:
        """R."""
        return self._root

    @cached_property
    def _matrix(self) -> Array:
        return self._root @ self._root.T

    @cached_property
    def _root_t(self) -> Array:
        return np.ascontiguousarray(self._root.T)

    @cached_property
    def _narrow(self) -> _RoundedRoot:
        return _RoundedRoot(self._root)

    def rounded(self) -> Metric:
        """Metric with a root in float32, where that is the cheaper one."""
        return self._narrow.in_groups_of(self._group) if self.n_params >= _WIDE else self

    @cached_property
    def _inverse_t(self) -> Array:
        """``R^{-T}``."""
        if self._curvature is None:
            return np.linalg.inv(self._root).T
        return self._curvature @ self._root

    def scale(self, v: Array) -> Array:
        """``G v``."""
        return matmul_symmetric(v, self._matrix)

    def sqrt(self, z: Array) -> Array:
        """``R z``."""
        if z.ndim == 2:
            return matmul_rows(z, self._root_t, self._group or len(z))
        return matmul_rows(z.reshape(-1, z.shape[-1]), self._root_t, _ROWS).reshape(z.shape)

    def sqrt_t(self, v: Array) -> Array:
        """``R^T v``."""
        return matmul_rows(v, self._root, self._group or len(v))

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x``."""
        return matmul_rows(x, self._inverse_t, _ROWS)

    def whiten_t(self, v: Array) -> Array:
        """``R^{-T} v``."""
        return matmul_rows(v, self._inverse_t.T, _ROWS)

    @property
    def marginal_sd(self) -> Array:
        """The roots of the diagonal."""
        return np.sqrt(np.einsum("pq,pq->p", self._root, self._root))


class _RoundedRoot(Metric):
    """The products with a root, in float32 and without the columns in which its rows are zero.

    A root of many parameters does not stay in cache, and its bytes are what a product costs.
    """

    def __init__(self, root: Array) -> None:
        super().__init__(len(root))
        self._blocks = []
        for rows in row_slices(*root.shape):
            first = int(np.argmax(root[rows].any(axis=0)))
            block = np.ascontiguousarray(root[rows, first:], dtype=np.float32)
            self._blocks.append((rows, slice(first, None), block))

    def sqrt(self, z: Array) -> Array:
        """``R z``, for ``z (C, P)``."""
        narrow, out = z.astype(np.float32), np.empty(z.shape)
        for rows, columns, block in self._blocks:
            out[:, rows] = matmul_rows(narrow[:, columns], block.T, self._group or len(z))
        return out

    def sqrt_t(self, v: Array) -> Array:
        """``R^T v``."""
        narrow, out = v.astype(np.float32), np.zeros(v.shape)
        for rows, columns, block in self._blocks:
            out[:, columns] += matmul_rows(narrow[:, rows], block, self._group or len(v))
        return out


def preconditioned_eigenvalues(metric: Metric, curvature: Metric) -> Array:
    """Rates at which a step of size 1 moves to the mode, by direction, ascending ``(P,)``.

    They are the eigenvalues of G H, H being the inverse of the second metric: a step of size eta
    is stable on a normal distribution while eta times the largest is below 2, and forgets at
    eta times the smallest. Above 3,000 parameters only these two are found, and values evenly
    spaced in the logarithm are put between them.
    """
    if metric.n_params <= MAX_DENSE:
        whitened = curvature.whiten(metric.root.T)
        return np.linalg.eigvalsh(whitened @ whitened.T)
    slowest = 1.0 / _largest_width(curvature, metric)
    return np.geomspace(slowest, _largest_width(metric, curvature), metric.n_params)


def _largest_width(metric: Metric, beside: Metric) -> float:
    """Largest variance of the one metric's normal distribution in units of the other's."""

    def product(z: Array) -> Array:
        x = beside.whiten(metric.sqrt(z.reshape(1, -1)))
        return metric.sqrt_t(beside.whiten_t(x))[0]

    return largest_eigenvalue_of(product, metric.n_params)
