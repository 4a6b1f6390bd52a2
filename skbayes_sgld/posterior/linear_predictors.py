"""What theta does to the rows of the data, and the way back: the linear predictors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import BLOCK_NUMBERS, column_means, matmul_rows, row_slices
from skbayes_sgld.posterior.likelihoods import Likelihood
from skbayes_sgld.posterior.protocol import Rows

Array = NDArray[Any]

_SHARED_NUMBERS = 2**20  # of X: from here on two threads share a pass over the rows
_HELD_NUMBERS = 2**20  # of X in another type or order: fewer are put in order once, for all passes


class LinearPredictors:
    """The map from ``theta (C, P)`` to each row's local parameters u, and its transpose.

    ``theta`` holds, a linear predictor after the other, the coefficients and the intercept, and
    last ``gamma = log sigma^2`` where the noise is inferred; a row sees ``u (C, n_local, B)``,
    its predictors and gamma.

    All products are of float64 numbers in C order, a block of rows at a time: what is computed
    from float32 data, or from data in Fortran order, is to the last bit what is computed from the
    same numbers in float64 and C order.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
        Not copied where it is large.
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
    n_predictors : int
    infers_noise : bool
    fit_intercept : bool
    center : bool
        Take the intercept at the mean of X.
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        weight: Array | None,
        n_predictors: int,
        infers_noise: bool,
        fit_intercept: bool,
        center: bool,
    ) -> None:
        self.n_features = X.shape[1]
        self.total_weight = float(len(y) if weight is None else weight.sum())
        self.n_predictors, self._infers_noise = n_predictors, infers_noise
        self.fit_intercept = fit_intercept
        self._width = self.n_features + fit_intercept
        self._n_linear = self.n_predictors * self._width
        self.n_params = self._n_linear + infers_noise
        self.center = column_means(X, weight) if center and fit_intercept else None
        self._bind(X, y, weight)

    def _bind(self, X: Array, y: Array, weight: Array | None) -> None:
        """Set the rows; where they are few, put them in order for all passes to come."""
        self.X, self.y, self.weight, self.n_samples = X, y, weight, X.shape[0]
        held = X.size <= _HELD_NUMBERS
        self._ordered = np.ascontiguousarray(X, dtype=np.float64) if held else X
        few = X.size <= BLOCK_NUMBERS
        self._design = self.design(slice(0, self.n_samples)) if few else None

    def _blocks(self) -> Iterator[slice]:
        return row_slices(self.n_samples, self.n_features)

    def _parts(self) -> list[list[slice]]:
        """Return the blocks in the parts that a pass over many rows takes side by side.

        They depend on the shape of the data alone, so the sums do too.
        """
        blocks = list(self._blocks())
        if self.X.size < _SHARED_NUMBERS:
            return [blocks]
        half = (len(blocks) + 1) // 2
        return [blocks[:half], blocks[half:]]

    def _block(self, rows: slice) -> Array:
        """Return rows of X in float64 and C order: no copy where that is what X is in."""
        return np.ascontiguousarray(self._ordered[rows], dtype=np.float64)

    def _weights(self, rows: slice) -> Array:
        return np.ones(rows.stop - rows.start) if self.weight is None else self.weight[rows]

    def _linear(self, theta: Array) -> Array:
        return theta[:, : self._n_linear].reshape(theta.shape[0], self.n_predictors, self._width)

    def _gamma(self, theta: Array) -> Array | None:
        return theta[:, -1] if self._infers_noise else None

    def take(self, idx: Array) -> Rows:
        """Gather the rows ``idx (..., B)``, once for as many steps as the indices are of."""
        weight = None if self.weight is None else self.weight.take(idx)
        if self._design is not None:
            return Rows(self._design.take(idx, axis=0), self.y.take(idx), weight)
        design = np.empty((*idx.shape, self._width), dtype=np.float64)
        self._fill(design, self.X.take(idx, axis=0))
        return Rows(design, self.y.take(idx), weight)

    def _fill(self, design: Array, columns: Array) -> None:
        """Write rows of X ``(..., d)`` as rows of the design ``(..., d + 1)``."""
        out = design[..., : self.n_features]
        if self.center is None:
            out[...] = columns
        else:
            np.subtract(columns, self.center, out=out)
        if self.fit_intercept:
            design[..., -1] = 1.0

    def _append_gamma(self, u: Array, theta: Array) -> Array:
        gamma = self._gamma(theta)
        if gamma is None:
            return u
        return np.concatenate([u, np.broadcast_to(gamma[:, None, None], u.shape)], axis=1)

    def local(self, theta: Array, rows: Rows) -> Array:
        """Return the local parameters of gathered rows ``(C, n_local, B)``."""
        return self._append_gamma(self._linear(theta) @ rows.design.swapaxes(-1, -2), theta)

    def _local_block(self, theta: Array, rows: slice) -> Array:
        linear = self._linear(theta)
        if self._design is not None:
            return self._append_gamma(self._product(linear, self._design[rows].T), theta)
        u = self._product(linear[..., : self.n_features], self._block(rows).T)
        if self.fit_intercept:
            level = linear[..., -1]
            if self.center is not None:
                # einsum and not matmul: it rounds a chain alike whatever the number of chains
                level = level - np.einsum("ckd,d->ck", linear[..., :-1], self.center)
            u += level[..., None]
        return self._append_gamma(u, theta)

    def _product(self, left: Array, right: Array) -> Array:
        """Return ``left (C, K, m) @ right (m, k)``, every chain as if it stood alone."""
        return matmul_rows(left[:, 0], right)[:, None] if left.shape[1] == 1 else left @ right

    def pullback(self, score: Array, rows: Rows) -> Array:
        """Return the gradient in theta ``(C, P)`` from the rows' gradients in u."""
        linear = score[:, : self.n_predictors] @ rows.design
        grad = linear.reshape(score.shape[0], self._n_linear)
        if self._infers_noise:
            grad = np.concatenate([grad, score[:, -1:].sum(axis=2)], axis=1)
        return grad

    def _pullback_block(self, score: Array, rows: slice, grad: Array) -> None:
        linear, in_predictors = self._linear(grad), score[:, : self.n_predictors]
        if self._infers_noise:
            grad[:, -1] += score[:, -1].sum(axis=1)
        if self._design is not None:
            linear += self._product(in_predictors, self._design[rows])
            return
        linear[..., : self.n_features] += self._product(in_predictors, self._block(rows))
        if self.fit_intercept:
            total = in_predictors.sum(axis=2)
            linear[..., -1] += total
            if self.center is not None:
                linear[..., : self.n_features] -= total[..., None] * self.center

    def gram(self, design: Array, local: Array) -> Array:
        """Return ``sum_i A_i^T W_i A_i (P, P)``, A_i being what takes theta to row i's u.

        Parameters
        ----------
        design : ndarray of shape (B, d + 1)
            Rows as :meth:`take` gathers them.
        local : ndarray of shape (n_local, n_local, B)
            The symmetric W_i.
        """
        K, width = self.n_predictors, self._width
        H = np.zeros((self.n_params, self.n_params))
        at = [slice(k * width, (k + 1) * width) for k in range(K)]
        for a in range(K):
            for b in range(a, K):
                block = (design * local[a, b][:, None]).T @ design
                H[at[a], at[b]] = block
                H[at[b], at[a]] = block.T
            if self._infers_noise:
                H[at[a], -1] = H[-1, at[a]] = local[a, -1] @ design
        if self._infers_noise:
            H[-1, -1] = local[-1, -1].sum()
        return H

    def design(self, rows: slice) -> Array:
        """Return rows of the design ``(B, d + 1)``, as :meth:`take` gathers them."""
        X = self.X[rows]
        design = np.empty((X.shape[0], self._width))
        self._fill(design, X)
        return design


class RowSums(LinearPredictors):
    """What the rows' likelihood adds up to, through their linear predictors."""

    likelihood: Likelihood

    # ---- rows gathered for a batch --------------------------------------------------------------

    def score(self, u: Array, rows: Rows) -> Array:
        """Return the gradient of each gathered row's log likelihood in u, weighted."""
        score = self.likelihood.score(u, rows.y)
        return score if rows.weight is None else score * rows.weight[:, None]

    def local_curvature(self, u: Array, rows: Rows) -> Array:
        """Return minus the Hessian of each gathered row's log likelihood in u, weighted."""
        curvature = self.likelihood.curvature(u, rows.y)
        return curvature if rows.weight is None else curvature * rows.weight[:, None, None]

    # ---- sums over blocks of rows, which threads may share --------------------------------------

    def _sum_of_log_likelihood(self, theta: Array, blocks: list[slice]) -> Array:
        value = np.zeros(theta.shape[0])
        for rows in blocks:
            value += self._log_likelihood_block(theta, rows).sum(axis=1)
        return value

    def _sum_of_grad(self, theta: Array, blocks: list[slice]) -> Array:
        grad = np.zeros_like(theta)
        for rows in blocks:
            score = self.likelihood.score(self._local_block(theta, rows), self.y[rows])
            if self.weight is not None:
                score *= self.weight[rows]
            self._pullback_block(score, rows, grad)
        return grad

    def _sum_of_value_and_grad(self, theta: Array, blocks: list[slice]) -> tuple[Array, Array]:
        value, grad = np.zeros(theta.shape[0]), np.zeros_like(theta)
        for rows in blocks:
            u, y = self._local_block(theta, rows), self.y[rows]
            log_density, score = self.likelihood.value_and_score(u, y)
            if self.weight is not None:
                log_density, score = log_density * self.weight[rows], score * self.weight[rows]
            value += log_density.sum(axis=1)
            self._pullback_block(score, rows, grad)
        return value, grad

    def _log_likelihood_block(self, theta: Array, rows: slice) -> Array:
        value = self.likelihood.log_density(self._local_block(theta, rows), self.y[rows])
        return value if self.weight is None else value * self.weight[rows]

    def _weighted_curvature(self, theta: Array, rows: slice) -> Array:
        local = self.likelihood.curvature(self._local_block(theta[None], rows), self.y[rows])[0]
        return local if self.weight is None else local * self.weight[rows]

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Return the weighted log likelihood of each row ``(C, B)``."""
        if idx is not None:
            taken = self.take(idx)
            value = self.likelihood.log_density(self.local(theta, taken), taken.y)
            return value if taken.weight is None else value * taken.weight
        blocks = [self._log_likelihood_block(theta, rows) for rows in self._blocks()]
        return np.concatenate(blocks, axis=1)

    def likelihood_curvature(self, theta: Array) -> Array:
        """Return minus the Hessian of the log likelihood at one ``theta (P,)``."""
        H = np.zeros((self.n_params, self.n_params))
        # as many rows as parameters at least: every block adds a whole matrix
        for rows in row_slices(self.n_samples, self.n_features, self.n_params):
            H += self.gram(self.design(rows), self._weighted_curvature(theta, rows))
        return H
