"""What theta does to the rows of the data, and the way back: the linear predictors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import ROW_BLOCK, column_means, matmul_rows
from skbayes_sgld.posterior.rows import Rows

Array = NDArray[Any]

_BLOCK_NUMBERS = 2**17  # of X in a block of rows: it stays in cache from one product to the next
_FEWEST_ROWS = 128


class LinearPredictors:
    """The map from ``theta (C, P)`` to each row's local parameters u, and its transpose.

    ``theta`` holds, a linear predictor after the other, the coefficients and the intercept, and
    last ``gamma = log sigma^2`` where the noise is inferred; a row sees ``u (C, n_local, B)``,
    its predictors and gamma.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
        Never copied.
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
        self.X, self.y, self.weight = X, y, weight
        self.n_samples, self.n_features = X.shape
        self.total_weight = float(self.n_samples if weight is None else weight.sum())
        self.n_predictors, self._infers_noise = n_predictors, infers_noise
        self.fit_intercept = fit_intercept
        self._width = self.n_features + fit_intercept
        self._n_linear = self.n_predictors * self._width
        self.n_params = self._n_linear + infers_noise
        self.center = column_means(X, weight) if center and fit_intercept else None

    def _blocks(self) -> Iterator[slice]:
        size = int(np.clip(_BLOCK_NUMBERS // self.n_features, _FEWEST_ROWS, ROW_BLOCK))
        for start in range(0, self.n_samples, size):
            yield slice(start, min(start + size, self.n_samples))

    def _weights(self, rows: slice) -> Array:
        return np.ones(rows.stop - rows.start) if self.weight is None else self.weight[rows]

    def _linear(self, theta: Array) -> Array:
        return theta[:, : self._n_linear].reshape(theta.shape[0], self.n_predictors, self._width)

    def _gamma(self, theta: Array) -> Array | None:
        return theta[:, -1] if self._infers_noise else None

    def take(self, idx: Array) -> Rows:
        """Gather the rows ``idx (..., B)``, once for as many steps as the indices are of."""
        design = np.empty((*idx.shape, self._width), dtype=np.float64)
        columns = self.X.take(idx, axis=0)
        if self.center is None:
            design[..., : self.n_features] = columns
        else:
            np.subtract(columns, self.center, out=design[..., : self.n_features])
        if self.fit_intercept:
            design[..., -1] = 1.0
        weight = None if self.weight is None else self.weight.take(idx)
        return Rows(design, self.y.take(idx), weight)

    def _append_gamma(self, u: Array, theta: Array) -> Array:
        gamma = self._gamma(theta)
        if gamma is None:
            return u
        return np.concatenate([u, np.broadcast_to(gamma[:, None, None], u.shape)], axis=1)

    def local(self, theta: Array, rows: Rows) -> Array:
        """Return the local parameters of gathered rows ``(C, n_local, B)``."""
        return self._append_gamma(self._linear(theta) @ rows.design.swapaxes(-1, -2), theta)

    def _local_block(self, theta: Array, rows: slice) -> Array:
        linear, X = self._linear(theta), self.X[rows]
        coef = linear[..., : self.n_features].astype(X.dtype, copy=False)
        u = matmul_rows(coef[:, 0], X.T)[:, None] if self.n_predictors == 1 else coef @ X.T
        if self.fit_intercept:
            level = linear[..., -1]
            if self.center is not None:
                # einsum and not matmul: it rounds a chain alike whatever the number of chains
                level = level - np.einsum("ckd,d->ck", linear[..., :-1], self.center)
            u = u + level[..., None]
        return self._append_gamma(u, theta)

    def pullback(self, score: Array, rows: Rows) -> Array:
        """Return the gradient in theta ``(C, P)`` from the rows' gradients in u."""
        linear = score[:, : self.n_predictors] @ rows.design
        grad = linear.reshape(score.shape[0], self._n_linear)
        if self._infers_noise:
            grad = np.concatenate([grad, score[:, -1:].sum(axis=2)], axis=1)
        return grad

    def _pullback_block(self, score: Array, rows: slice, grad: Array) -> None:
        X = self.X[rows]
        total = score.sum(axis=2)
        linear, K = self._linear(grad), self.n_predictors
        weights = score[:, :K].astype(X.dtype, copy=False)
        product = matmul_rows(weights[:, 0], X)[:, None] if K == 1 else weights @ X
        linear[..., : self.n_features] += product
        if self.fit_intercept:
            linear[..., -1] += total[:, :K]
            if self.center is not None:
                linear[..., : self.n_features] -= total[:, :K, None] * self.center
        if self._infers_noise:
            grad[:, -1] += total[:, -1]

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

    def _design_block(self, rows: slice) -> Array:
        X = self.X[rows]
        design = np.ones((X.shape[0], self._width))
        design[:, : self.n_features] = X if self.center is None else X - self.center
        return design
