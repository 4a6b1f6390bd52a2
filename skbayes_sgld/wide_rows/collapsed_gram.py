r"""Few rows, dense or sparse, whose independent noise is integrated out, with their kernel held.

The kernel ``K = A A^T`` of n rows is an array, and so are a root of ``(K - D)^{-1}`` and
``K^{-1}``: a step takes n^2 multiplications, however many columns there are, and functions of K
take one product rather than a series of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse import issparse

from skbayes_sgld._linalg import matmul_rows, one_blas_thread
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.wide_rows.collapsed_rows import CollapsedRows

_GROUP = 16  # positions of a product, always as many, so that rounding does not depend on them


class CollapsedGram(CollapsedRows):
    """Collapsed rows that are few enough for matrices of rows by rows.

    Parameters and errors are those of :class:`~skbayes_sgld.wide_rows.collapsed_rows.CollapsedRows`
    and rows may be dense.
    """

    n_fewest = n_together = group = _GROUP

    def __init__(self, posterior: GLMPosterior, theta: Array) -> None:
        with one_blas_thread():
            super().__init__(posterior, theta)

    def _rows_of(self, posterior: GLMPosterior) -> Any:
        if issparse(posterior.X):
            return super()._rows_of(posterior)
        return _DenseRows(posterior.X, posterior.x_mean, posterior.fit_intercept)

    def _scaled(self, design: Any, unit: Array, x_mean: Array, dtype: type) -> Any:
        if not isinstance(design, _DenseRows):
            return super()._scaled(design, unit, x_mean, dtype)
        return _DenseRows((design.X * unit).astype(dtype), x_mean.astype(dtype), False)

    def _hold(self) -> None:
        every = np.eye(self.n_rows, dtype=np.float32)
        self._kernel = np.ascontiguousarray(super()._gram(every))

    def _prepare_functions(self) -> None:
        kernel = self._kernel.astype(float)
        self._inverse = _squared(_inverse_factor(kernel)).astype(np.float32)
        kernel.flat[:: self.n_rows + 1] -= self._own
        self._root = _inverse_factor(kernel).astype(np.float32)

    def _product_work(self) -> float:
        return float(self.n_rows) ** 2

    def work_of(self, n_steps: int) -> float:
        """Cost of a trajectory, its momentum and the draw at its end, in multiplications."""
        return self.work * (n_steps + 3.0) + 3.0 * self.n_rows * self._design.X.shape[1]

    def _gram(self, x: Array) -> Array:
        return matmul_rows(x, self._kernel, _GROUP)

    def _solved(self, x: Array) -> Array:
        return matmul_rows(x, self._inverse, _GROUP)

    def _momenta(self, normals: Array) -> Array:
        return matmul_rows(np.ascontiguousarray(normals), self._root, _GROUP)


class _DenseRows:
    """Dense rows minus a mean, and a column of ones, with the products of a sparse design."""

    def __init__(self, X: Array, x_mean: Array | None, has_ones: bool) -> None:
        self.x_mean = np.zeros(X.shape[1]) if x_mean is None else x_mean
        self.X, self.shape, self.has_ones = X, X.shape, has_ones
        self._centred = X - self.x_mean

    def apply(self, coefficients: Array, rows: _DenseRows) -> Array:
        """Predictors ``(C, 1, n)``, for coefficients ``(C, 1, width)``."""
        columns = np.ascontiguousarray(coefficients[:, 0, : self.X.shape[1]])
        u = matmul_rows(columns, rows._centred.T, _GROUP)
        return (u + coefficients[:, 0, -1:] if self.has_ones else u)[:, None]

    def adjoint(self, score: Array, rows: _DenseRows) -> Array:
        """Gradient in the coefficients ``(C, 1, d)``, from that in the predictors."""
        return matmul_rows(np.ascontiguousarray(score[:, 0]), rows._centred, _GROUP)[:, None]

    def lengths(self, scale: Array) -> Array:
        """Squared lengths ``(n,)`` of the rows, with columns times ``scale (d,)``."""
        squares = np.square(self._centred) @ np.square(scale)
        return np.maximum(squares, 1e-24)


def _inverse_factor(K: Array) -> Array:
    """Inverse of the lower Cholesky factor of K."""
    lower = linalg.cholesky(K, lower=True, check_finite=False)
    inverse, _ = linalg.lapack.dtrtri(lower, lower=1)
    return np.ascontiguousarray(inverse)


def _squared(lower: Array) -> Array:
    """``L^T L``."""
    return lower.T @ lower
