r"""Rows of a generalised linear model in the coordinates of a metric: no product with the metric.

With centre m and a metric ``R R^T = H^{-1}``, ``H = X^T W X + Lambda``, W with a weight for each
row and Lambda the precision of a normal prior, ``theta = m + R z``. The predictors are
``u = X m + A z`` with ``A = X R``, and since ``R^T Lambda R = I - A^T W A`` the log posterior is,
up to a constant,

.. math:: \log L(X m + A z) + (R^T s)^T z + \tfrac12 \sum_i W_i (A z)_i^2 - \tfrac12 z^T z,

with s the gradient of the log prior at m: neither it nor its gradient needs a product with a matrix
of parameters by parameters. A leapfrog step reads A once, in single precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse import issparse

from skbayes_sgld._linalg import equal_slices, in_threads, matmul_rows, one_blas_thread
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import RowKernel
from skbayes_sgld.posterior.coefficient_maps import CoefficientMap
from skbayes_sgld.posterior.design import DenseDesign
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.row_sum import RowSum
from skbayes_sgld.posterior.whitening import WhitenedPosterior

# Positions in a product, always this many, so that rounding does not depend on their number. A
# product of 64 takes 1.5 times as long as one of 32, and that 1.3 times as long as one of 16
_GROUP = 64
_BLOCK = 1024  # rows of a block that is whitened
_LARGEST_BLOCK = 4096  # rows of a block of products, so that those of all positions stay in cache
_PARTS = 4  # parts into which products that are made once are split


class QuadraticKernel(RowKernel):
    """Kernel at ``v + offset``, plus ``curvature v^2 / 2``."""

    def __init__(self, kernel: RowKernel, offset: Array, curvature: Array) -> None:
        self.kernel, self.offset, self.curvature = kernel, offset, curvature

    def __getitem__(self, at: Any) -> QuadraticKernel:
        """Kernel of some of the rows."""
        return QuadraticKernel(self.kernel[at], self.offset[at], self.curvature[at])

    def derivatives(self, u: Array, *orders: int) -> list[Array]:
        """Log density or score at ``v + offset``, plus ``curvature v^2 / 2`` or its derivative."""
        values = list(self.kernel.derivatives(u + self.offset, *orders))
        bent = self.curvature * u
        if 1 in orders:
            values[-1] += bent
        if 0 in orders:
            bent *= u
            values[0] = values[0] + 0.5 * bent[:, 0]
        return values


class LargeBlocks(DenseDesign):
    """Rows in a few large blocks: of 3,000 columns, gradients take 0.8 of the time."""

    def parts(self, n_products: int, min_rows: int = 32, sum_size: int = 1) -> list[list[slice]]:
        """One block for each part of a pass."""
        n_parts = max(_PARTS, self.shape[0] // _LARGEST_BLOCK)
        return [[rows] for rows in equal_slices(self.shape[0], n_parts)]


class WhitenedRows(WhitenedPosterior):
    """Posterior of z, for any number of positions.

    Parameters
    ----------
    posterior : GLMPosterior
        It has one linear predictor and a normal prior.
    center : ndarray of shape (P,)
        Centre m.
    weights : ndarray of shape (n,)
        Weights W, positive.
    precision : ndarray of shape (P, P) or None
        H, if it is known; small weights are else raised, which keeps it positive definite.

    Raises
    ------
    numpy.linalg.LinAlgError
        If H is not positive definite.
    """

    n_together = n_fewest = group = _GROUP

    def __init__(
        self,
        posterior: GLMPosterior,
        center: Array,
        weights: Array,
        precision: Array | None = None,
    ) -> None:
        self.center, self._posterior = center, posterior
        n, P = posterior.n_samples, posterior.n_params
        self.n_params = P
        with one_blas_thread():
            H = precision
            if H is None:
                weights = np.maximum(weights, 1e-3 * weights.mean())
                H = posterior.row_sum(np.float32).gram(weights)
                posterior.add_prior_curvature(H, center)
            lower = linalg.cholesky(H, lower=True, check_finite=False)
            inverse, _ = linalg.lapack.dtrtri(lower, lower=1)
            self.inverse, self.root, self.inverse_t = H, np.ascontiguousarray(inverse.T), lower
            self._rounded_root = self.root.astype(np.float32)
            self._rows, lengths = _whiten(posterior, center, weights, self._rounded_root)
        # a trajectory that enters a wall by one step is thrown far away; scores of labels are
        # bounded
        walls = not posterior.likelihood.bounded_curvature
        self.softness = float(1.0 / np.sqrt(lengths.max() if walls else np.median(lengths)))
        self._sds = np.sqrt(lengths)
        self.work = float(2 * n * P)
        self._slope = self.root.T @ posterior.grad_log_prior(center[None])[0]
        self._level = float(posterior.log_prior(center[None])[0])

    def grad(self, z: Array) -> Array:
        """Gradient at positions ``(C, P)``."""
        grad = self._rows.grad(z, _GROUP)
        grad += self._slope
        grad -= z
        return grad

    def log_density(self, z: Array) -> Array:
        """Log density ``(C,)`` at ``z (C, P)``; functions of rows are float32."""
        return self._rows.value(z, _GROUP) + self._normal_part(z)

    def value_and_grad(self, z: Array) -> tuple[Array, Array]:
        """Log density ``(C,)`` and gradient ``(C, P)``, which share the product with the rows."""
        value, grad = self._rows.value_and_grad(z, _GROUP)
        grad += self._slope
        grad -= z
        return value + self._normal_part(z), grad

    def _normal_part(self, z: Array) -> Array:
        # einsum, unlike matmul, rounds a chain's values the same way with any number of chains
        z = z.astype(float, copy=False)
        return (
            self._level + np.einsum("cp,p->c", z, self._slope) - 0.5 * np.einsum("cp,cp->c", z, z)
        )

    def steepness(self) -> float:
        """Largest change of a row's force, in whitened coordinates, within its predictor's reach.

        The reach is 1.5 sds on both sides of the centre. Rows far from their wall have none.
        """
        kernel: Any = self._rows.kernel
        ends = kernel.offset + np.array([[-1.5], [1.5]], np.float32) * self._sds
        with np.errstate(over="ignore"):
            scores = kernel.kernel.derivatives(ends[:, None], 1)[0][:, 0]
        return float(np.max(self._sds * (scores[0] - scores[1])))

    def locate(self, z: Array) -> Array:
        """``center + root z`` for each row of ``z (C, P)``, with a product in single precision."""
        z = z.astype(np.float32, copy=False)
        root = self._rounded_root  # triangular: each part of its rows begins with zeros

        def product(part: slice) -> Array:
            return matmul_rows(z[:, part.start :], root[part, part.start :].T, _GROUP)

        parts = equal_slices(self.n_params, max(_PARTS, self.n_params // 256))
        return self.center + np.hstack(in_threads(product, parts))


def whiten_rows(
    posterior: GLMPosterior, center: Array, weights: Array, precision: Array | None = None
) -> WhitenedRows | None:
    """Rows in the metric of the weights; None if rounding is too coarse.

    ``precision`` is the metric's inverse, if it is known. Rounding is too coarse for nearly
    collinear columns, whose coefficients cancel.
    """
    if not posterior.facts.light_tailed or posterior.n_predictors > 1 or issparse(posterior.X):
        return None
    try:
        rows = WhitenedRows(posterior, center, weights, precision)
    except np.linalg.LinAlgError:
        return None
    # rounding changes an acceptance ratio by this much
    return rows if rows.rounding(posterior) < 0.02 else None


class SparseRows(WhitenedPosterior):
    """The posterior of z with ``theta = m + r z`` for sparse rows, with one r for each parameter.

    It is for classifiers with thousands of columns. With few rows per column the posterior is
    hardly narrower than the prior: each row cuts it by a soft wall. The metric is nearly that of
    the prior, and a leapfrog step is as long as the walls are soft. Sums over rows are in single
    precision.

    Parameters
    ----------
    posterior : GLMPosterior
        It has sparse rows, one linear predictor and independent normal priors.
    center : ndarray of shape (P,)
        Centre m.
    row_curvature : ndarray of shape (P,)
        Curvature that the rows add to the prior's precisions in the metric, ``1 / r^2``.
    """

    learns = True

    def __init__(self, posterior: GLMPosterior, center: Array, row_curvature: Array) -> None:
        self.center, self._posterior = center, posterior
        self.n_params = posterior.n_params
        # rounding, or a column of zeros, may leave no curvature
        row_curvature = np.maximum(row_curvature, 1e-6 * max(row_curvature.max(), 1.0))
        self.inverse = posterior.prior_diagonal(center) + row_curvature
        self.inverse_t = np.sqrt(self.inverse)
        self.root = 1.0 / self.inverse_t
        self._rows = posterior.row_sum(np.float32)
        design: Any = self._rows.design
        squares = design.lengths(self.root[: posterior.n_features])
        self.softness = float(1.0 / np.sqrt(np.median(squares)))
        # in products with 16 columns a sparse multiplication takes 14 times as long as a dense one
        self.work = 14.0 * 2.0 * posterior.X.nnz

    def log_density(self, z: Array) -> Array:
        """Log density ``(C,)``."""
        theta = self.locate(z)
        return self._rows.value(theta) + self._posterior.log_prior(theta)

    def grad(self, z: Array) -> Array:
        """Gradient at ``z (C, P)``."""
        theta = self.locate(z)
        return self._whitened(theta, self._rows.grad(theta, None))

    def value_and_grad(self, z: Array) -> tuple[Array, Array]:
        """Log density ``(C,)`` and gradient ``(C, P)``, which share the product with the rows."""
        theta = self.locate(z)
        value, grad = self._rows.value_and_grad(theta, None)
        return value + self._posterior.log_prior(theta), self._whitened(theta, grad)

    def _whitened(self, theta: Array, grad: Array) -> Array:
        """Gradient of the log density in z, from that of the rows in theta, which it overwrites."""
        grad += self._posterior.grad_log_prior(theta)
        grad *= self.root
        return grad

    def matched(self, draws: Array, temperature: float) -> SparseRows:
        """Rows about the mean of ``draws (S, P)`` of theta, in a metric that fits these.

        The curvature that the rows add is in proportion to their mean curvature, and such that the
        mean variance of the whitened draws is the temperature.
        """
        posterior, center = self._posterior, draws.mean(axis=0)
        own, variance = posterior.prior_diagonal(center), draws.var(axis=0, ddof=1)
        bends = posterior.row_sum().hessian_diagonal(draws[-1])
        share = (self.n_params * temperature - own @ variance) / (bends @ variance)
        return SparseRows(posterior, center, np.clip(share, 1e-6, 1.0) * bends)


def sparse_rows(posterior: GLMPosterior, center: Array) -> SparseRows | None:
    """Sparse rows in the metric of the curvature's diagonal; None if rounding is too coarse."""
    if not posterior.facts.light_tailed or posterior.n_predictors > 1:
        return None
    rows = SparseRows(posterior, center, posterior.row_sum().hessian_diagonal(center))
    return rows if rows.rounding(posterior) < 0.05 * np.sqrt(posterior.n_params) else None


def _whiten(
    posterior: GLMPosterior, center: Array, weights: Array, root: Array
) -> tuple[RowSum, Array]:
    """Sum over rows with the posterior's design times the root, and the design's squares."""
    n, P = posterior.n_samples, posterior.n_params
    whitened, offset = np.empty((n, P), np.float32), np.empty(n, np.float32)

    def work(part: slice) -> None:
        for start in range(part.start, part.stop, _BLOCK):
            rows = slice(start, min(start + _BLOCK, part.stop))
            design = posterior.design_rows(rows)
            # half of a product, as the root is triangular
            whitened[rows] = linalg.blas.strmm(1.0, root.T, design.astype(np.float32).T, lower=1).T
            offset[rows] = design @ center
            if posterior.offset is not None:
                offset[rows] += posterior.offset[rows]

    in_threads(work, equal_slices(n, _PARTS))
    kernel = posterior.likelihood.bind(posterior.values.without_offset(), np.float32)
    quadratic = QuadraticKernel(kernel, offset, weights.astype(np.float32))
    design = LargeBlocks(whitened, None, False, np.float32)
    return RowSum(design, quadratic, CoefficientMap(1, P)), np.einsum(
        "np,np->n", whitened, whitened
    )
