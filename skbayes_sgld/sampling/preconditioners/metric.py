"""The matrix G of the preconditioned recursion, drift G g and noise G^{1/2} xi, and its names.

Karagiannis, Handout 6, eq. (3.9). One object gives both, so drift and noise cannot disagree. A
metric is known through a root of it, ``G = R R^T``; no metric but the dense one forms a matrix of
parameters by parameters. A :class:`Preconditioner` is how a user names one.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from skbayes_sgld._components import Component
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


class Preconditioner(Component):
    """Choice of the metric G in which steps are taken."""

    uses_curvature = False

    def bind(self, n_params: int, metric: Metric | None) -> Metric:
        """Metric for ``n_params`` parameters; ``metric`` is that of the mode, if known."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class Identity(Preconditioner):
    """No preconditioning: the step size is in the raw units of the parameters.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(preconditioner="none", step_size=1e-4)
    SGLDLogisticRegression(preconditioner='none', step_size=0.0001)
    """

    def bind(self, n_params: int, metric: Metric | None) -> Metric:
        """The identity."""
        return Metric(n_params)


@dataclass(eq=False, repr=False)
class Curvature(Preconditioner):
    """The inverse curvature at the mode, ``G = H^{-1}``: Newton's metric.

    In it a step size has no unit: 0.2 moves a fifth of the way to the mode, on any data. Up to
    3,000 parameters it is a matrix. Above, it is diagonal; but where a single linear predictor
    has fewer rows than parameters, and no more than 3,000, it is exact: the prior's diagonal and
    a term for each row.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(preconditioner="curvature", step_size=0.2)
    SGLDLogisticRegression(preconditioner='curvature', step_size=0.2)
    """

    uses_curvature = True

    def bind(self, n_params: int, metric: Metric | None) -> Metric:
        """Metric of the mode."""
        assert metric is not None
        return metric


@dataclass(eq=False, repr=False)
class Matrix(Preconditioner):
    """A preconditioner given by the user: a symmetric positive definite matrix or its diagonal.

    Parameters
    ----------
    matrix : array-like of shape (n_params, n_params) or (n_params,)
        In the order of the parameters: for each linear predictor the coefficients and the
        intercept, then the log noise variance where it is inferred.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.sampling import Matrix
    >>> SGLDLogisticRegression(preconditioner=Matrix([0.1, 0.1, 1.0]), step_size=0.05)
    SGLDLogisticRegression(preconditioner=Matrix(matrix=[0.1, 0.1, 1.0]),
                           step_size=0.05)
    """

    matrix: ArrayLike = 1.0

    def bind(self, n_params: int, metric: Metric | None) -> Metric:
        """Metric of the matrix.

        Raises
        ------
        TypeError, ValueError
            Where it is no array of numbers, has another shape or is not positive definite.
        """
        try:
            matrix = np.asarray(self.matrix, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(
                f"preconditioner={self.matrix!r} is not accepted; give 'auto', 'curvature', "
                "'none', None or an array of numbers."
            ) from None
        if matrix.shape not in ((n_params,), (n_params, n_params)):
            raise ValueError(
                f"preconditioner has shape {matrix.shape}; it must be ({n_params},), a diagonal, "
                f"or ({n_params}, {n_params}), a matrix, one row a parameter of the model."
            )
        if not np.all(np.isfinite(matrix)):
            raise ValueError("preconditioner has values that are not finite.")
        if matrix.ndim == 1:
            if np.any(matrix <= 0):
                raise ValueError(
                    f"preconditioner has a value of {matrix.min()}; it must be positive."
                )
            return Diagonal(matrix)
        if not np.allclose(matrix, matrix.T, rtol=1e-8):
            raise ValueError("preconditioner is not symmetric; it must be.")
        try:
            return Dense(linalg.cholesky(matrix, lower=True))
        except np.linalg.LinAlgError:
            smallest = np.linalg.eigvalsh(matrix)[0]
            raise ValueError(
                f"preconditioner has an eigenvalue of {smallest:.3g}; it must be positive definite."
            ) from None
