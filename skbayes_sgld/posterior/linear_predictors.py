"""Linear predictors of the rows of the data, and the gradients that come back through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skbayes_sgld._linalg import (
    BLOCK_NUMBERS,
    matmul_rows,
    row_parts,
    row_slices,
    sum_in_threads,
    weighted_gram,
)
from skbayes_sgld.posterior.base import BoundBatches
from skbayes_sgld.posterior.batches import LinearBatches
from skbayes_sgld.posterior.likelihoods import Likelihood
from skbayes_sgld.posterior.protocol import Expansion, Rows
from skbayes_sgld.posterior.rounded_hessian import rounded_expansion
from skbayes_sgld.posterior.sparse_design import SparseDesign

Array = NDArray[Any]

_HELD_NUMBERS = 2**20  # numbers of X up to which it is converted to float64 and C order once


class LinearPredictors:
    """The map from ``theta (C, P)`` to each row's local parameters u, and its transpose.

    ``theta`` holds the coefficients and the intercept of each linear predictor in turn, and last
    ``gamma = log sigma^2`` where the noise is inferred. The local parameters
    ``u (C, n_local, B)`` of a row are its predictors and gamma.

    All products are of float64 arrays in C order, a block of rows at a time: results for float32
    data, or for data in Fortran order, equal those for the same numbers in float64 and C order to
    the last bit.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d), float32 or float64
        Data, of which a large array is not copied, and a sparse one never made dense.
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
    n_predictors : int
    infers_noise : bool
    fit_intercept : bool
    center : ndarray of shape (d,) or None
        Row at which the intercept is that of the model, in place of X = 0: the mean of X.
    """

    param_names: list[str]
    X: Any
    _design: Any
    coords: Mapping[str, Sequence[str]]
    noise_columns: Array | None = None  # columns of X that the noise depends on, if any

    def __init__(
        self,
        X: Any,
        y: Array,
        weight: Array | None,
        n_predictors: int,
        infers_noise: bool,
        fit_intercept: bool,
        center: Array | None,
    ) -> None:
        self.n_features = X.shape[1]
        self.total_weight = float(len(y) if weight is None else weight.sum())
        self.n_predictors, self._infers_noise = n_predictors, infers_noise
        self.fit_intercept = fit_intercept
        self._width = self.n_features + fit_intercept
        self._n_linear = self.n_predictors * self._width
        self.n_params = self._n_linear + infers_noise
        self.center = center
        self._bind(X, y, weight)

    def _bind(self, X: Any, y: Array, weight: Array | None) -> None:
        """Set the data; a small X is converted to float64 and C order once, for all passes."""
        self.X, self.y, self.weight, self.n_samples = X, y, weight, X.shape[0]
        self._row_size = self.n_features
        if issparse(X):
            self._row_size = max(1, X.nnz // X.shape[0])
            self._ordered = X.astype(np.float64, copy=False)
            self._design = SparseDesign(self._ordered, self.center, self.fit_intercept)
            return
        held = X.size <= _HELD_NUMBERS
        self._ordered = np.ascontiguousarray(X, dtype=np.float64) if held else X
        few = X.size <= BLOCK_NUMBERS
        self._design = self.design(slice(0, self.n_samples)) if few else None

    def _thinned(self, rows: slice, rare: Array | None) -> tuple[Array, Array, Array]:
        """X, y and weights of a subset, whose rows that are not rare count for others too."""
        if rare is None:
            y = self.y[rows]
            each = self.n_samples / len(y)
            weight = np.full(len(y), each) if self.weight is None else each * self.weight[rows]
            return self.X[rows], y, weight
        chosen = np.zeros(self.n_samples, bool)
        chosen[rows] = True
        idx = np.flatnonzero(chosen | rare)
        weight = np.where(rare[idx], 1.0, self.n_samples / chosen.sum())
        if self.weight is not None:
            weight *= self.weight[idx]
        return self.X[idx], self.y[idx], weight

    def _blocks(self) -> Iterator[slice]:
        return row_slices(self.n_samples, self._row_size)

    def _parts(self) -> list[list[slice]]:
        """Blocks of rows, divided into the parts that threads may share."""
        if issparse(self.X):  # products with sparse rows would wait for each other in threads
            return [list(self._blocks())]
        return row_parts(self.n_samples, self.n_features)

    def gram_parts(self) -> list[list[slice]]:
        """Blocks of rows, in parts to take side by side, for sums of P by P matrices.

        Every block adds a whole matrix, and so has as many rows as there are parameters at least.
        """
        P = self.n_params
        if issparse(self.X):
            return [list(row_slices(self.n_samples, self._row_size, P))]
        return row_parts(self.n_samples, self.n_features, P, P * P)

    def _block(self, rows: slice) -> Array:
        """Rows of X in float64 and C order, without a copy if X already is."""
        block = self._ordered[rows]
        return block if issparse(block) else np.ascontiguousarray(block, dtype=np.float64)

    def _weights(self, rows: slice) -> Array:
        return np.ones(rows.stop - rows.start) if self.weight is None else self.weight[rows]

    def _linear(self, theta: Array) -> Array:
        return theta[:, : self._n_linear].reshape(theta.shape[0], self.n_predictors, self._width)

    def _gamma(self, theta: Array) -> Array | None:
        return theta[:, -1] if self._infers_noise else None

    @property
    def constrained_names(self) -> list[str]:
        """Names of the reported parameters."""
        linear = self.param_names[: self._n_linear]
        return linear + ["noise_variance"] * self._infers_noise

    def constrain(self, theta: Array) -> Array:
        """Reported parameters ``(S, P)`` at ``theta (S, P)``, in the same order.

        Intercepts are those at X = 0, the noise is a variance, and with several predictors
        coefficients and intercepts sum to zero over them.
        """
        values = theta.copy()
        linear = self._linear(values)
        if self.n_predictors > 1:
            linear -= linear.mean(axis=1, keepdims=True)
        if self.center is not None:
            # einsum, unlike matmul, is one call whatever the number of draws
            linear[..., -1] -= np.einsum("skd,d->sk", linear[..., :-1], self.center)
        if self._infers_noise:
            values[:, -1] = np.exp(values[:, -1])
        return values

    def unconstrain(self, values: Array) -> Array:
        """Theta ``(S, P)`` at the reported parameters."""
        theta = values.copy()
        if self.center is not None:
            linear = self._linear(theta)
            linear[..., -1] += linear[..., :-1] @ self.center
        if self._infers_noise:
            theta[:, -1] = np.log(theta[:, -1])
        return theta

    def _name_params(
        self, feature_names: Sequence[str] | None, class_names: Sequence[str] | None
    ) -> list[str]:
        """Names of the parameters, from those of the columns and of the classes."""
        features = list(feature_names or (f"x{j}" for j in range(self.n_features)))
        self.coords = {"feature": features}
        if self.n_predictors == 1:
            names = [f"coef[{f}]" for f in features] + ["intercept"] * self.fit_intercept
        else:
            names, classes = [], list(class_names or map(str, range(self.n_predictors)))
            self.coords = {"class": classes, "feature": features}
            for k in classes:
                names += [f"coef[{k}, {f}]" for f in features]
                names += [f"intercept[{k}]"] * self.fit_intercept
        return names + ["log_noise_variance"] * self._infers_noise

    def take(self, idx: Array) -> Rows:
        """Gathered rows ``idx (..., B)``; a leading axis of steps gathers those of many at once."""
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
        """Local parameters of gathered rows ``(C, n_local, B)``."""
        return self._append_gamma(self._linear(theta) @ rows.design.swapaxes(-1, -2), theta)

    def _local_block(self, theta: Array, rows: slice) -> Array:
        linear = self._linear(theta)
        if self._design is not None:
            return self._append_gamma(self._product(linear, self._design[rows].T), theta)
        u = self._product(linear[..., : self.n_features], self._block(rows).T)
        if self.fit_intercept:
            level = linear[..., -1]
            if self.center is not None:
                # einsum, unlike matmul, rounds a chain alike whatever the number of chains
                level = level - np.einsum("ckd,d->ck", linear[..., :-1], self.center)
            u += level[..., None]
        return self._append_gamma(u, theta)

    def _product(self, left: Array, right: Array) -> Array:
        """``left (C, K, m) @ right (m, k)``, each chain independent of the others."""
        if issparse(self.X):
            return left @ right
        return matmul_rows(left[:, 0], right)[:, None] if left.shape[1] == 1 else left @ right

    def pullback(self, score: Array, rows: Rows) -> Array:
        """Gradient in theta ``(C, P)`` from the rows' gradients in u."""
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

    def gram(self, design: Array, local: Array, overwrite: bool = False) -> Array:
        """Sum over rows of ``A_i^T W_i A_i (P, P)``, where A_i maps theta to row i's u.

        Parameters
        ----------
        design : ndarray of shape (B, d + 1)
            Rows of the design, as :meth:`take` gathers them.
        local : ndarray of shape (n_local, n_local, B)
            Symmetric matrices W_i.
        overwrite : bool, default=False
            Whether the design may be overwritten, which saves a copy of it.
        """
        K, width, L = self.n_predictors, self._width, self._n_linear
        H = np.zeros((self.n_params, self.n_params))
        if K == 1:
            H[:L, :L] = weighted_gram(design, local[0, 0], overwrite and not self._infers_noise)
        else:
            at = [slice(k * width, (k + 1) * width) for k in range(K)]
            for a, b in combinations_with_replacement(range(K), 2):
                H[at[a], at[b]] = weighted_gram(design, local[a, b])
                H[at[b], at[a]] = H[at[a], at[b]].T
        if self._infers_noise:
            H[-1, :L] = H[:L, -1] = (local[:K, -1] @ design).ravel()
            H[-1, -1] = local[-1, -1].sum()
        return H

    def design(self, rows: slice, out: Array | None = None) -> Array:
        """Rows of the design ``(B, d + 1)``, as :meth:`take` gathers them."""
        if issparse(self.X):
            return self._design[rows]
        X = self.X[rows]
        design = np.empty((X.shape[0], self._width)) if out is None else out[: X.shape[0]]
        self._fill(design, X)
        return design


class RowSums(LinearPredictors):
    """Sums over the rows of the log likelihood and its derivatives."""

    likelihood: Likelihood

    # ---- rows gathered for a batch --------------------------------------------------------------

    def score(self, u: Array, rows: Rows) -> Array:
        """Weighted gradient of each gathered row's log likelihood in u ``(C, n_local, B)``."""
        score = self.likelihood.score(u, rows.y)
        return score if rows.weight is None else score * rows.weight[:, None]

    def bind_batches(self, n_chains: int, batch_size: int) -> BoundBatches:
        """Batches of rows for the chains of one run, in one thread."""
        if issparse(self.X):
            of_rows: Any = self
            return BoundBatches(of_rows, batch_size)
        return LinearBatches(self, self._design, n_chains, batch_size)

    def local_curvature(self, u: Array, rows: Rows) -> Array:
        """Weighted minus Hessian of each row's log likelihood in u ``(C, n_local, n_local, B)``."""
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
        """Curvature of each row in its local parameters, a mean over draws ``theta (S, P)``."""
        draws = np.atleast_2d(theta)
        local = self.likelihood.curvature(self._local_block(draws, rows), self.y[rows])
        local = local[0] if len(draws) == 1 else local.mean(axis=0)
        return local if self.weight is None else local * self.weight[rows]

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Weighted log likelihood of each row ``(C, B)``."""
        if idx is not None:
            taken = self.take(idx)
            value = self.likelihood.log_density(self.local(theta, taken), taken.y)
            return value if taken.weight is None else value * taken.weight
        blocks = [self._log_likelihood_block(theta, rows) for rows in self._blocks()]
        return np.concatenate(blocks, axis=1)

    def likelihood_curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log likelihood ``(P, P)`` at one ``theta (P,)``."""
        return sum_in_threads(partial(self._sum_of_gram, theta), self.gram_parts())

    def _sum_of_gram(self, theta: Array, blocks: list[slice]) -> Array:
        H = np.zeros((self.n_params, self.n_params))
        design = np.empty((blocks[0].stop - blocks[0].start, self._width))
        for rows in blocks:
            local = self._weighted_curvature(theta, rows)
            H += self.gram(self.design(rows, design), local, overwrite=True)
        return H

    def expand_likelihood(self, theta: Array, curvature: Array | None = None) -> Expansion:
        """Gradient and Hessian of the log likelihood at one ``theta (P,)``, in one pass.

        Minus the Hessian is that of the rows, or ``curvature (P, P)`` where it is known nearly.
        """
        if curvature is not None:
            work = partial(self.sum_of_slope, theta)
            return Expansion(theta, sum_in_threads(work, self._parts()), curvature)
        rounded = rounded_expansion(self, theta)
        if rounded is not None:
            return rounded
        # of rows with several local parameters they would have a size like that of X
        by_row = np.empty((2 if self.likelihood.n_local == 1 else 0, self.n_samples))
        sums = sum_in_threads(partial(self._sum_of_expansion, theta, by_row), self.gram_parts())
        return Expansion(theta, sums[-1], sums[:-1], tuple(by_row))

    def sum_of_slope(
        self, theta: Array, blocks: list[slice], each: Callable[..., None] | None = None
    ) -> Array:
        """Gradient at one theta, whose products are not those of several chains.

        ``each`` is told of every block its rows, X, and the local parameters, scores and
        curvatures of the rows.
        """
        linear = self._linear(theta[None])[0]
        coef, level = linear[:, : self.n_features], np.zeros(self.n_predictors)
        if self.fit_intercept:
            level = linear[:, -1] - (0.0 if self.center is None else coef @ self.center)
        grad = np.zeros_like(theta)
        of_linear = self._linear(grad[None])[0]
        for rows in blocks:
            X = self._block(rows)
            u = self._append_gamma((coef @ X.T + level[:, None])[None], theta[None])
            score, bend = (of[0] for of in self.likelihood.score_and_curvature(u, self.y[rows]))
            if self.weight is not None:
                score, bend = score * self.weight[rows], bend * self.weight[rows]
            if each is not None:
                each(rows, X, u[0], score, bend)
            of_linear[:, : self.n_features] += score[: self.n_predictors] @ X
            if self.fit_intercept:
                of_linear[:, -1] += score[: self.n_predictors].sum(axis=1)
            if self._infers_noise:
                grad[-1] += score[-1].sum()
        if self.center is not None:
            of_linear[:, :-1] -= np.outer(of_linear[:, -1], self.center)
        return grad

    def _sum_of_expansion(self, theta: Array, by_row: Array, blocks: list[slice]) -> Array:
        """Hessian, with the gradient as a last row; the rows' own are written to ``by_row``."""
        sums = np.zeros((self.n_params + 1, self.n_params))
        design = np.empty((blocks[0].stop - blocks[0].start, self._width))
        for at in blocks:
            weight = None if self.weight is None else self.weight[at][None]
            rows = Rows(self.design(at, design)[None], self.y[at][None], weight)
            u = self.local(theta[None], rows)
            score, curvature = self.likelihood.score_and_curvature(u, self.y[at])
            if weight is not None:
                score, curvature = score * weight, curvature * weight
            if len(by_row):
                by_row[0, at] = (score + curvature[:, 0] * u)[0, 0]
                by_row[1, at] = curvature[0, 0, 0]
            sums[-1] += self.pullback(score, rows)[0]
            sums[:-1] += self.gram(rows.design[0], curvature[0], overwrite=True)
        return sums
