"""The metric of a run: the matrix G of the preconditioned recursion, in terms of a root.

The recursion has the drift ``G g`` and the noise ``G^{1/2} xi`` (Karagiannis, Handout 6, eq. 3.9).
One object gives both, so that drift and noise cannot disagree. With ``G = R R^T`` the coordinates
``z = R^{-1} theta`` are those in which the metric is the identity. Only :class:`Dense` forms a
matrix of parameters by parameters.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import linalg

from skbayes_sgld._linalg import (
    ALIKE,
    GROUP,
    MAX_DENSE,
    inverse_root,
    largest_eigenvalue_of,
    matmul_rows,
)
from skbayes_sgld._typing import Array


class Metric:
    """Interface of all metrics."""

    n_params: int
    dtype: type = np.float64
    """Precision of the products ``sqrt`` and ``sqrt_t``."""
    diagonal: Array | None = None
    """Diagonal of G ``(P,)`` if G is one diagonal matrix for all chains; else None."""

    def sqrt(self, x: Array) -> Array:
        """``R x`` for each ``x (..., P)``."""
        raise NotImplementedError

    def sqrt_t(self, x: Array) -> Array:
        """``R^T x`` for each row of ``x (C, P)``: a gradient in the coordinates z."""
        raise NotImplementedError

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x`` for each row of ``x (C, P)``."""
        raise NotImplementedError

    def whiten_t(self, x: Array) -> Array:
        """``R^{-T} x`` for each row of ``x (C, P)``."""
        raise NotImplementedError

    def scale(self, x: Array) -> Array:
        """``G x`` for each row of ``x (C, P)``."""
        return self.sqrt(self.sqrt_t(x))

    @property
    def root(self) -> Array:
        """R as a matrix ``(P, P)``."""
        return self.sqrt(np.eye(self.n_params)).T

    @property
    def marginal_sd(self) -> Array:
        """Roots of the diagonal of G ``(P,)``: the sds of the normal distribution ``N(0, G)``."""
        root = self.root
        return np.sqrt(np.einsum("pq,pq->p", root, root))

    def scaled(self, factor: Any) -> Metric:
        """Metric with the root ``diag(factor) R``, for a number or an array ``factor (P,)``."""
        raise NotImplementedError

    def for_chains(self, some: slice) -> Metric:
        """Metric of some of the chains."""
        return self

    def in_groups_of(self, size: int | None) -> Self:
        """Metric whose matrix products take ``size`` positions at once; None: all of them."""
        return self

    def rounded(self) -> Metric:
        """Metric whose ``sqrt`` and ``sqrt_t`` are in float32, if that is faster."""
        return self

    def stored(self) -> Metric:
        """Metric without the matrices that follow from its root, for a pickle."""
        return self


class Diagonal(Metric):
    """Diagonal metric.

    Parameters
    ----------
    variances : ndarray of shape (P,) or (C, P)
        Diagonal of G, the same for all chains or one for each.
    """

    def __init__(self, variances: Array) -> None:
        self.n_params = variances.shape[-1]
        self._variances, self._sds = variances, np.sqrt(variances)
        self.diagonal = variances if variances.ndim == 1 else None
        self._is_identity = bool(np.all(variances == 1.0))

    def sqrt(self, x: Array) -> Array:
        """``R x``, for ``x (C, P)``, or for many of each chain ``(C, T, P)``."""
        each = self._sds.ndim == 2 and x.ndim == 3
        return x * (self._sds[:, None] if each else self._sds)

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x``."""
        return x / self._sds

    sqrt_t, whiten_t = sqrt, whiten  # R is its own transpose

    def scale(self, x: Array) -> Array:
        """``G x``; skipping the identity saves a twelfth of a step on a small batch."""
        return x if self._is_identity else x * self._variances

    @property
    def marginal_sd(self) -> Array:
        """Roots of the diagonal."""
        return self._sds

    def scaled(self, factor: Any) -> Metric:
        """The diagonal times the squared factor."""
        return Diagonal(self._variances * np.square(factor))

    def for_chains(self, some: slice) -> Metric:
        """Metric of some of the chains."""
        return self if self._variances.ndim == 1 else Diagonal(self._variances[some])


class Dense(Metric):
    """Metric with a dense matrix as root.

    Parameters
    ----------
    root : ndarray of shape (P, P)
        R.
    curvature : ndarray of shape (P, P), default=None
        ``G^{-1}``, if known.
    inverse_t : ndarray of shape (P, P), default=None
        ``R^{-T}``, if known.
    """

    _group: int | None = GROUP

    def __init__(
        self, root: Array, curvature: Array | None = None, inverse_t: Array | None = None
    ) -> None:
        self.n_params, self.dtype = len(root), root.dtype.type
        self._root, self._curvature = root, curvature
        if inverse_t is not None:
            self._inverse_t = inverse_t

    @classmethod
    def from_curvature(cls, H: Array) -> Self:
        """Metric ``H^{-1}``; raise LinAlgError if H is not positive definite."""
        return cls(inverse_root(H), H)

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
    def _inverse_t(self) -> Array:
        """``R^{-T}``."""
        if self._curvature is None:
            return np.linalg.inv(self._root).T
        return self._curvature @ self._root

    def in_groups_of(self, size: int | None) -> Self:
        """Metric whose matrix products take ``size`` positions at once; None: all of them."""
        other = copy(self)
        other._group = size
        return other

    @cached_property
    def _single(self) -> Dense:
        return Dense(self._root.astype(np.float32))

    def rounded(self) -> Metric:
        """Metric with the root in float32, from 128 parameters on.

        From there on a product takes half of the time.
        """
        return self._single.in_groups_of(self._group) if self.n_params >= 128 else self

    def stored(self) -> Metric:
        """Metric without the matrices that follow from its root."""
        return Dense(self._root)

    def scale(self, x: Array) -> Array:
        """``G x``."""
        return matmul_rows(x.astype(self.dtype, copy=False), self._matrix, self._group or len(x))

    def sqrt(self, x: Array) -> Array:
        """``R x``."""
        x = x.astype(self.dtype, copy=False)
        if x.ndim == 2:
            return matmul_rows(x, self._root_t, self._group or len(x))
        return matmul_rows(x.reshape(-1, x.shape[-1]), self._root_t, ALIKE).reshape(x.shape)

    def sqrt_t(self, x: Array) -> Array:
        """``R^T x``."""
        return matmul_rows(x.astype(self.dtype, copy=False), self._root, self._group or len(x))

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x``."""
        return matmul_rows(x, self._inverse_t, ALIKE)

    def whiten_t(self, x: Array) -> Array:
        """``R^{-T} x``."""
        return matmul_rows(x, self._inverse_t.T, ALIKE)

    def scaled(self, factor: Any) -> Metric:
        """``diag(factor) R``."""
        return Dense(self._root * np.reshape(factor, (-1, 1)))


class LowRank(Metric):
    """Inverse of ``diag(d) + F^T F``, F having fewer rows than there are parameters.

    With the thin singular value decomposition ``F d^{-1/2} = U S V^T``, a root is
    ``d^{-1/2} (I + V ((1 + S^2)^{-1/2} - 1) V^T)`` (Woodbury identity). A product costs O(m P).

    Parameters
    ----------
    diagonal : ndarray of shape (P,)
        d, positive.
    factor : ndarray of shape (m, P)
        F.
    """

    def __init__(self, diagonal: Array, factor: Array) -> None:
        self.n_params = len(diagonal)
        self._sds = 1.0 / np.sqrt(diagonal)
        _, values, self._vectors = linalg.svd(
            factor * self._sds, full_matrices=False, overwrite_a=True
        )
        self._stretch = np.sqrt(1.0 + np.square(values))

    def _apply(self, x: Array, gain: Array) -> Array:
        """``(I + V (gain - 1) V^T) x``."""
        along = matmul_rows(x, self._vectors.T) * (gain - 1.0)
        return x + matmul_rows(along, self._vectors)

    def sqrt(self, x: Array) -> Array:
        """``R x``."""
        rows = x.reshape(-1, x.shape[-1])
        return (self._sds * self._apply(rows, 1.0 / self._stretch)).reshape(x.shape)

    def sqrt_t(self, x: Array) -> Array:
        """``R^T x``."""
        return self._apply(x * self._sds, 1.0 / self._stretch)

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x``."""
        return self._apply(x / self._sds, self._stretch)

    def whiten_t(self, x: Array) -> Array:
        """``R^{-T} x``."""
        return self._apply(x, self._stretch) / self._sds

    @property
    def marginal_sd(self) -> Array:
        """Roots of the diagonal."""
        change = (self._stretch**-2.0 - 1.0) @ np.square(self._vectors)
        return self._sds * np.sqrt(1.0 + change)

    def scaled(self, factor: Any) -> Metric:
        """``diag(factor) R``."""
        other = copy(self)
        other._sds = self._sds * factor
        return other


def preconditioned_eigenvalues(metric: Metric, curvature: Metric) -> Array:
    """Curvatures in the coordinates of ``metric``, ascending ``(P,)``: the eigenvalues of G H.

    H is the inverse of the second metric. On a normal distribution a step of size eta is stable
    while eta times the largest is below 2, and the chain forgets its start at the rate of eta
    times the smallest. Above 4,000 parameters only these two are computed; the values between
    them are spaced evenly in the logarithm.
    """
    if metric.n_params <= MAX_DENSE:
        whitened = curvature.whiten(metric.root.T)
        return np.linalg.eigvalsh(whitened @ whitened.T)
    slowest = 1.0 / _largest_width(curvature, metric)
    return np.geomspace(slowest, _largest_width(metric, curvature), metric.n_params)


def _largest_width(metric: Metric, unit: Metric) -> float:
    """Largest ratio of the variance of ``N(0, metric)`` to that of ``N(0, unit)``."""

    def product(z: Array) -> Array:
        x = unit.whiten(metric.sqrt(z.reshape(1, -1)))
        return metric.sqrt_t(unit.whiten_t(x))[0]

    return largest_eigenvalue_of(product, metric.n_params)
