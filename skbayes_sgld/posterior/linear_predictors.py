"""Sums over the rows of a generalised linear model, through their linear predictors.

A run takes thousands of gradients of the same few chains. What does not depend on theta is settled
for them once: the design is copied in the layout that each of its two products wants, with the
column of ones and the rows' signs in it, what is linear in the predictors is summed over the rows,
and the predictors have a buffer of their own.

Products and exponentials are faster in single precision. Rounding a row's predictor u by ``du``,
about 1e-7 times the sum of ``|x_j theta_j|``, changes the gradient in coordinates whitened by the
curvature by less than the norm of ``sqrt(curvature of the row) du`` over the rows: 1e-5 for a
thousand rows and predictors of order 10. Sums over rows are in single precision only within a block
of rows, whose rounding in the same coordinates is 1e-8 times the rows of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skbayes_sgld._linalg import (
    BLOCK_NUMBERS,
    gram_of_predictors,
    in_threads,
    matmul_rows,
    row_parts,
    row_slices,
    sum_in_threads,
)
from skbayes_sgld.posterior.likelihoods import Likelihood, RowKernel
from skbayes_sgld.posterior.sparse_design import SparseDesign

Array = NDArray[Any]

HELD_NUMBERS = 2**20  # numbers of X up to which it is held in float64 and C order
_TWO_LAYOUTS = 2**22  # numbers of X up to which the design is held in both layouts
# Columns of zeros behind a design, by its width modulo eight: BLAS takes those that are left over
# one at a time. Without zeros a gradient of 600 rows takes 14 % longer where seven are left over,
# and 4 to 7 % where five or six are
_ZEROS = 0, 0, 0, 1, 0, 3, 2, 1
# Chains of a product from which it takes one predictor of them: 16 chains of three classes take 7 %
# less time so, four of ten classes 26 % more
_MANY = 16
# Predictors of a group of many chains from which it is followed by itself, and stays in cache: four
# groups of 32, 901 rows and five classes take 10 to 15 % less
_LARGE = 2**16


class LinearPredictors:
    """The map from ``theta (C, P)`` to each row's local parameters u, and its transpose.

    ``theta`` holds the coefficients and the intercept of each linear predictor in turn, and last
    ``gamma = log sigma^2`` where the noise is inferred. The local parameters
    ``u (C, n_local, B)`` of a row are its predictors and gamma.

    All products are of float64 arrays in C order, a block of rows at a time: results for float32
    data, or for data in Fortran order, equal those for the same numbers in float64 and C order to
    the last bit.

    ``center (d,)`` is the row at which the intercept is that of the model, in place of X = 0: the
    mean of X. A large X is not copied, and a sparse one never made dense.
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
        held = X.size <= HELD_NUMBERS
        self._ordered = np.ascontiguousarray(X, dtype=np.float64) if held else X
        few = X.size <= BLOCK_NUMBERS
        self._design = self.design(slice(0, self.n_samples)) if few else None

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

    def _linear(self, theta: Array) -> Array:
        return theta[:, : self._n_linear].reshape(theta.shape[0], self.n_predictors, self._width)

    def _gamma(self, theta: Array) -> Array | None:
        return theta[:, -1] if self._infers_noise else None

    def constrain(self, theta: Array) -> Array:
        """Reported parameters ``(S, P)`` at ``theta (S, P)``, in the same order.

        Intercepts are those at X = 0, the noise is a variance, and with several predictors
        coefficients and intercepts sum to zero over them.
        """
        values = self.reported_moves(theta)
        if self._infers_noise:
            values[:, -1] = np.exp(values[:, -1])
        return values

    def reported_moves(self, moves: Array) -> Array:
        """Moves of theta ``(M, P)`` as moves of the reported parameters and the log noise."""
        values = moves.copy()
        linear = self._linear(values)
        if self.n_predictors > 1:
            linear -= linear.mean(axis=1, keepdims=True)
        if self.center is not None:
            # einsum, unlike matmul, is one call whatever the number of draws
            linear[..., -1] -= np.einsum("skd,d->sk", linear[..., :-1], self.center)
        return values

    def unconstrain(self, values: Array) -> Array:
        """Theta ``(S, P)`` at the reported parameters."""
        theta = self._about_center(values)
        if self._infers_noise:
            theta[:, -1] = np.log(theta[:, -1])
        return theta

    def _about_center(self, values: Array) -> Array:
        """Copy of ``values (S, P)`` whose intercepts are those at the centre of the columns."""
        theta = values.copy()
        if self.center is not None:
            linear = self._linear(theta)
            linear[..., -1] += linear[..., :-1] @ self.center
        return theta

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
            Rows of the design, a column of ones last where there are intercepts.
        local : ndarray of shape (n_local, n_local, B)
            Symmetric matrices W_i.
        overwrite : bool, default=False
            Whether the design may be overwritten, which saves a copy of it.
        """
        K, L, overwrite = self.n_predictors, self._n_linear, overwrite and not self._infers_noise
        H = np.zeros((self.n_params, self.n_params))
        H[:L, :L] = gram_of_predictors(design, local[:K, :K], overwrite)
        if self._infers_noise:
            H[-1, :L] = H[:L, -1] = (local[:K, -1] @ design).ravel()
            H[-1, -1] = local[-1, -1].sum()
        return H

    def design(self, rows: slice, out: Array | None = None) -> Array:
        """Rows of the design ``(B, d + 1)``, a column of ones last where there are intercepts."""
        if issparse(self.X):
            return self._design[rows]
        X = self.X[rows]
        design = np.empty((X.shape[0], self._width)) if out is None else out[: X.shape[0]]
        self._fill(design, X)
        return design


class RowSums(LinearPredictors):
    """Sums over the rows of the log likelihood and its derivatives."""

    likelihood: Likelihood

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

    def _weighted_curvature(self, theta: Array, rows: slice) -> Array:
        """Curvature of each row in its local parameters, a mean over draws ``theta (S, P)``."""
        draws = np.atleast_2d(theta)
        local = self.likelihood.curvature(self._local_block(draws, rows), self.y[rows])
        local = local[0] if len(draws) == 1 else local.mean(axis=0)
        return local if self.weight is None else local * self.weight[rows]

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


class _Block(NamedTuple):
    """Rows of the design, signed, in the layouts of the two products."""

    kernel: RowKernel
    forward: Array
    back: Array


class BoundWork(NamedTuple):
    """A block with room for its predictors and its gradient.

    The products see groups of rows, the likelihood sees ``u (C, n_products, B)`` and the sum
    ``grad (C, n_products, width)``: two views of one array each.
    """

    kernel: RowKernel
    forward: Array
    back: Array
    grouped: Array
    u: Array
    right: Array
    grad: Array


class SettledRows:
    """The rows of a generalised linear model in one precision, for any number of chains.

    Attributes
    ----------
    dtype : type
        float64 or float32.
    parts : list of list of _Block
        Blocks of rows, in the parts that threads may share.
    pull, level : ndarray of shape (n_linear,)
        Parts of the gradient, and of the log density's slope, that are the same everywhere.
    """

    def __init__(self, posterior: RowSums, dtype: type) -> None:
        y, weight = posterior.y, posterior.weight
        # in double precision the second layout gains nothing
        both = dtype is np.float32 and posterior.X.size <= _TWO_LAYOUTS
        sums = np.zeros((2, max(posterior.n_predictors - 1, 1), posterior._width))
        self.dtype = dtype
        self.parts: list[list[_Block]] = []
        for slices in posterior._parts():
            self.parts.append([])
            for rows in slices:
                w = None if weight is None else weight[rows]
                kernel = posterior.likelihood.bind_rows(y[rows], w, dtype)
                assert kernel is not None
                design = posterior.design(rows)
                if kernel.signs is not None:
                    design *= kernel.signs[:, None]
                sums += np.stack([kernel.pull @ design, kernel.level @ design])
                zeros = _ZEROS[posterior._width % 8] if both else 0
                back: Array = np.zeros((len(design), posterior._width + zeros), dtype)
                back[:, : posterior._width] = design
                forward = np.ascontiguousarray(back.T) if both else back.T
                self.parts[-1].append(_Block(kernel, forward, back))
        if posterior.n_predictors > 1:  # the last class's predictor is subtracted from the others
            sums = np.concatenate([sums, -sums.sum(axis=1, keepdims=True)], axis=1)
        self.pull, self.level = sums.reshape(2, -1)


class BoundRows:
    """Sums over settled rows for ``n_chains`` chains, for one run in one thread.

    Parameters
    ----------
    rows : SettledRows
    n_chains, n_predictors, width : int
    group : int or None
        Chains of a product, so that the rounding of one does not depend on how many there are;
        None: all of them.
    """

    def __init__(
        self, rows: SettledRows, n_chains: int, n_predictors: int, width: int, group: int | None
    ) -> None:
        self._n_products, self._dtype = max(n_predictors - 1, 1), rows.dtype
        self._group = group or n_chains
        n_rows = sum(len(block.back) for part in rows.parts for block in part)
        large = self._group >= _MANY and self._group * self._n_products * n_rows >= _LARGE
        apart = large and n_chains % self._group == 0
        size, self._at_once = self._group if apart else n_chains, apart or group is None
        self._slices = [slice(c, c + size) for c in range(0, n_chains, size)]
        self._shape = size, n_predictors, width
        self._left, linear = self._room(rows.parts[0][0].back.shape[1])
        self._left[...] = 0.0  # which chains that fill the last group stay
        self._linear = linear[..., :width]
        self._works = [self._buffers(part) for part in rows.parts]
        first, *others = self._works[0]
        self._single = None if others or self._works[1:] else first

    def _room(self, n: int, slots: Array | None = None) -> tuple[Array, Array]:
        """Array of ``n`` numbers of each chain and product, as products see it, and by chain.

        Where a product takes ``_MANY`` chains or more, the array holds one predictor of all chains
        after the other, and a product is of one predictor, or of all where it takes all chains.
        Where it takes fewer, it holds all predictors of one chain after the other.
        """
        n_chains, n_products = self._shape[0], self._n_products
        n_slots = -(-n_chains // self._group) * self._group
        numbers = n_slots * n_products * n
        slots = np.empty(numbers, self._dtype) if slots is None else slots[:numbers]
        if self._group >= _MANY:
            by_chain = slots.reshape(n_products, n_slots, n).swapaxes(0, 1)
            group = n_slots * n_products if self._at_once else self._group
            return slots.reshape(-1, group, n), by_chain[:n_chains]
        by_chain = slots.reshape(n_slots, n_products, n)
        return slots.reshape(-1, self._group * n_products, n), by_chain[:n_chains]

    def _buffers(self, blocks: list[_Block]) -> list[BoundWork]:
        """Each block with room for its predictors and its gradient; blocks share the room."""
        right, grad = self._room(self._left.shape[2])
        grad = grad[..., : self._shape[2]]
        room = self._room(max(len(block.back) for block in blocks))[0].reshape(-1)
        views = [self._room(len(block.back), room) for block in blocks]
        return [
            BoundWork(*block, *view, right, grad) for block, view in zip(blocks, views, strict=True)
        ]

    def _take(self, theta: Array) -> None:
        linear = theta.reshape(self._shape)
        if self._shape[1] == 1:
            self._linear[...] = linear
        else:
            np.subtract(linear[:, :-1], linear[:, -1:], out=self._linear, casting="same_kind")

    def _give(self, grad: Array, out: Array) -> None:
        """Add the gradient in the products ``(C, n_products, width)`` to ``out (C, n_linear)``."""
        if self._shape[1] == 1:
            out += grad[:, 0]
            return
        linear = out.reshape(self._shape)
        linear[:, :-1] += grad
        last = linear[:, -1]
        for k in range(self._n_products):
            last -= grad[:, k]

    def add_grad(self, theta: Array, out: Array) -> None:
        """Add the gradient at ``theta (C, n_linear)``, less the rows' pull, to ``out``."""
        for some in self._slices:
            self._take(theta[some])
            if self._single is not None:
                self._give(self._grad_of_block(self._single), out[some])
                continue
            for part in in_threads(self._grad_of_part, self._works):
                self._give(part, out[some])

    def _grad_of_block(self, work: BoundWork) -> Array:
        np.matmul(self._left, work.forward, out=work.grouped)
        work.kernel.score(work.u)
        np.matmul(work.grouped, work.back, out=work.right)
        return work.grad

    def _grad_of_part(self, works: list[BoundWork]) -> Array:
        total = np.zeros(self._linear.shape)
        for work in works:
            total += self._grad_of_block(work)
        return total
