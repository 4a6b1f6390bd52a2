"""The sum over rows of a log likelihood: value, gradient and minus the Hessian.

Blocks of rows fit in the cache with their predictors. Positions are multiplied in groups of a fixed
size, so that rounding does not depend on their number. In single precision a predictor u has a
rounding error ``du`` of about 1e-7 times the sum of ``|x_j theta_j|``. In coordinates whitened by
the curvature, this changes the gradient by less than the norm of ``sqrt(curvature) du`` over the
rows: 1e-5 for a thousand rows and predictors of order 10. Sums over blocks are in double precision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from skbayes_sgld._linalg import (
    GROUP,
    gram_of_predictors,
    in_threads,
    weighted_gram,
)
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import RowKernel
from skbayes_sgld.posterior.coefficient_maps import CoefficientMap
from skbayes_sgld.posterior.design import Design
from skbayes_sgld.posterior.protocol import Expansion

Part = list[tuple[slice, RowKernel]]


class RowSum:
    """Log likelihood of all rows and its derivatives in theta.

    Parameters
    ----------
    design : Design
        Design, whose dtype products and the likelihood's functions use.
    kernel : RowKernel
        Kernel of all rows, in that dtype.
    coefficient_map : CoefficientMap
        Map from theta to the coefficients of the design.
    """

    def __init__(self, design: Design, kernel: RowKernel, coefficient_map: CoefficientMap) -> None:
        self.design = design
        self.kernel, self.coefficient_map = kernel, coefficient_map
        self._divisions: dict[tuple[int, ...], list[Part]] = {}

    def _parts(self, n_products: int, min_rows: int = 32, sum_size: int = 1) -> list[Part]:
        """Blocks of rows with their kernels, divided into parts for threads."""
        key = n_products, min_rows, sum_size
        if key not in self._divisions:
            parts, kernel = self.design.parts(*key), self.kernel
            self._divisions[key] = [[(rows, kernel[..., rows]) for rows in part] for part in parts]
        return self._divisions[key]

    def _coefficients(self, theta: Array) -> Array:
        return self.coefficient_map.coefficients(theta).astype(self.design.dtype, copy=False)

    def _blocks(self, part: Part) -> Iterator[tuple[slice, RowKernel, Any]]:
        room = None  # the first block is the largest
        for rows, kernel in part:
            block = self.design.block(rows, room)
            room = block if room is None else room
            yield rows, kernel, block

    @cached_property
    def _single(self) -> tuple[Array, Array] | None:
        """Rows in single precision and their transpose, for products, if they are few."""
        held = self.design.held  # a large design is not copied
        if held is None or held.dtype != np.float32 or held.size > 2**22:
            return None
        # in float32 BLAS multiplies columns that do not fill a register one by one: unless zeros
        # fill it, an adjoint takes 1.2 to 1.8 times as long
        n, width = held.shape
        rows = np.zeros((n, width + -width % 8), np.float32)
        rows[:, :width] = held
        # predictors take 1.3 to 2 times as long from rows as from their transpose
        return rows, np.ascontiguousarray(held.T)

    def for_few_passes(self) -> RowSum:
        """Sum that makes no copies of the rows, which pay only over many passes."""
        other = copy(self)
        vars(other)["_single"] = None
        return other

    def _derivatives(self, theta: Array, group: int | None, *orders: int) -> list[Array]:
        """Log likelihood ``(C,)``, of order 0, and its gradient in the coefficients, of order 1.

        Products take whole groups of positions, the last one filled up with zeros; kernels take the
        C positions.
        """
        coefficients = self._coefficients(theta)
        C, K, width = coefficients.shape
        size = group or C
        if n_missing := -C % size:
            zeros = np.zeros((n_missing, K, width), self.design.dtype)
            coefficients = np.concatenate([coefficients, zeros])
        stacked = coefficients.reshape(-1, size * K, width)

        def block_sums(rows: slice, kernel: RowKernel, block: Any) -> list[Array]:
            if self._single is None:
                u = self.design.apply(stacked, block)
            else:
                block, u = self._single[0][rows], stacked @ self._single[1][:, rows]
            B = u.shape[-1]
            u = u.reshape(-1, K, B)[:C]
            if orders == (0,):
                return [kernel.total(u)]
            sums = list(kernel.derivatives(u, *orders))
            if 0 in orders:
                sums[0] = sums[0].sum(axis=1, dtype=float)
            if 1 in orders:
                score = sums[-1]
                if n_missing:
                    score = np.concatenate([score, np.zeros((n_missing, K, B), score.dtype)])
                grad = self.design.adjoint(score.reshape(len(stacked), -1, B), block)
                sums[-1] = grad.reshape(-1, K, grad.shape[2])[:C, :, :width]
            return sums

        def part_sums(part: Part) -> list[Array]:
            return _total(block_sums(*each) for each in self._blocks(part))

        parts = self._parts(size * K)
        if len(parts) == 1 == len(parts[0]):  # few rows
            rows, kernel = parts[0][0]
            sums = block_sums(rows, kernel, self.design.block(rows))
            return [each.astype(float, copy=False) for each in sums]
        return _total(in_threads(part_sums, parts))

    def value_and_grad(self, theta: Array, group: int | None = GROUP) -> tuple[Array, Array]:
        """Log likelihood ``(C,)`` and its gradient ``(C, P)`` at ``theta (C, P)``.

        ``group`` is the number of positions in a product; None takes all.
        """
        value, grad = self._derivatives(theta, group, 0, 1)
        return value, self.coefficient_map.gradient(grad)

    def grad(self, theta: Array, group: int | None = GROUP) -> Array:
        """Gradient of the log likelihood ``(C, P)``."""
        with np.errstate(over="ignore"):  # odds of well explained rows overflow
            (grad,) = self._derivatives(theta, group, 1)
        return self.coefficient_map.gradient(grad)

    def value(self, theta: Array, group: int | None = GROUP) -> Array:
        """Log likelihood ``(C,)``."""
        return self._derivatives(theta, group, 0)[0]

    def each_row(self, theta: Array) -> Array:
        """Log likelihood of each row ``(C, n)``."""
        coefficients, values = self._coefficients(theta), list[Array]()
        for part in self._parts(len(theta) * self.coefficient_map.n_products):
            for _, kernel, block in self._blocks(part):
                u = self.design.apply(coefficients, block)
                values += kernel.derivatives(u, 0)
        return np.concatenate(values, axis=1)

    # ---- second derivatives ---------------------------------------------------------------------

    def expand(self, theta: Array) -> Expansion:
        """Value and derivatives at ``theta (P,)``, or their means at draws ``(S, P)``.

        The means are those of an expansion about the mean of the draws.
        """
        draws = np.atleast_2d(theta)
        P, K = draws.shape[1], self.coefficient_map.n_products
        coefficients = self._coefficients(draws)
        # only for one local parameter: for several, these arrays would be as large as X
        of_rows = np.empty((2 if K == 1 and len(draws) == 1 else 0, self.design.shape[0]))

        def block_sums(rows: slice, kernel: RowKernel, block: Any) -> list[Array]:
            u = self.design.apply(coefficients, block)
            if len(of_rows):
                of_rows[0, rows] = u[0, 0]
            with np.errstate(over="ignore"):
                derivatives = kernel.derivatives(u, 0, 1, 2)
            value, score, curvature = (each.mean(axis=0) for each in derivatives)
            if len(of_rows):
                of_rows[0, rows] *= curvature[0, 0]
                of_rows[0, rows] += score[0]
                of_rows[1, rows] = curvature[0, 0]
            grad = self.design.adjoint(score[None], block)[0]
            total = value.sum(keepdims=True, dtype=float)
            room = block if self.design.makes_blocks else None
            return [total, grad, gram_of_predictors(block, curvature, room)]

        def part_sums(part: Part) -> list[Array]:
            return _total(block_sums(*each) for each in self._blocks(part))

        value, grad, H = _total(in_threads(part_sums, self._parts(len(draws) * K, P, P * P)))
        return Expansion(
            draws.mean(axis=0),
            self.coefficient_map.gradient(grad[None])[0],
            self.coefficient_map.hessian(H),
            tuple(of_rows),
            float(value[0]),
        )

    def remainders(self, draws: Array) -> Array:
        """Each row's log likelihood minus its expansion with averages over draws ``(S, n)``.

        The mean over the draws is left out.
        """
        coefficients, K = self._coefficients(draws), self.coefficient_map.n_products
        found = np.empty((len(draws), self.design.shape[0]), self.design.dtype)

        def part_remainders(part: Part) -> None:
            for rows, kernel, block in self._blocks(part):
                u = self.design.apply(coefficients, block)
                moves = u - u.mean(axis=0)
                with np.errstate(over="ignore"):
                    value, *derivatives = kernel.derivatives(u, 0, 1, 2)
                score, curvature = (each.mean(axis=0) for each in derivatives)
                slope = score - 0.5 * np.einsum("klb,slb->skb", curvature, moves)
                rest = value - np.einsum("skb,skb->sb", slope, moves)
                found[:, rows] = rest - rest.mean(axis=0)

        in_threads(part_remainders, self._parts(len(draws) * K))
        return found

    def curvatures(self, theta: Array) -> Iterator[tuple[slice, Any, Array]]:
        """Blocks of rows and their curvatures ``(n_products, n_products, B)`` at ``theta (P,)``."""
        coefficients = self._coefficients(theta[None])
        for part in self._parts(self.coefficient_map.n_products):
            for rows, kernel, block in self._blocks(part):
                u = self.design.apply(coefficients, block)
                with np.errstate(over="ignore"):
                    curvature = kernel.derivatives(u, 1, 2)[1][0]
                yield rows, block, curvature

    def predictors(self, theta: Array) -> Array:
        """Predictors ``(C, n_products, n)`` of all rows at ``theta (C, P)``."""
        coefficients = self._coefficients(theta)
        C, K, width = coefficients.shape
        stacked = coefficients.reshape(1, -1, width)
        out = np.empty((C, K, self.design.shape[0]), self.design.dtype)

        def part_predictors(part: Part) -> None:
            for rows, _, block in self._blocks(part):
                out[..., rows] = self.design.apply(stacked, block).reshape(C, K, -1)

        in_threads(part_predictors, self._parts(C * K))
        return out

    def pullback(self, score: Array) -> Array:
        """Gradient in theta ``(P,)`` from the scores ``(n_products, n)`` of all rows."""

        def part_sums(part: Part) -> list[Array]:
            return _total(
                [self.design.adjoint(score[None, :, rows], block)[0]]
                for rows, _, block in self._blocks(part)
            )

        grad = _total(in_threads(part_sums, self._parts(len(score))))[0]
        return self.coefficient_map.gradient(grad[None])[0]

    def variances(self, moves: Array) -> Array:
        """Variance of each predictor ``(n_products, n)`` if the covariance of theta is ``M^T M``.

        ``moves (k, P)`` is M.
        """
        coefficients = self._coefficients(moves)
        k, K, width = coefficients.shape
        if k > 2 * width and self.design.is_array:
            return self._by_covariances(coefficients)
        stacked, variances = coefficients.reshape(1, -1, width), np.empty((K, self.design.shape[0]))

        def part_variances(part: Part) -> None:
            for rows, _ in part:  # not centred, which would take half of the time
                u = self.design.apply(stacked, self.design.as_they_are(rows)).reshape(k, K, -1)
                np.einsum("skb,skb->kb", u, u, out=variances[:, rows])

        in_threads(part_variances, self._parts(k * K))
        return variances

    def _by_covariances(self, moves: Array) -> Array:
        """:meth:`variances`, from moves ``(k, K, width)`` of several predictors' coefficients.

        With seven classes and 546 moves it takes a sixth of the time of the moves of each row.
        """
        _, K, width = moves.shape
        covariances = moves.transpose(1, 2, 0) @ moves.transpose(1, 0, 2)
        variances = np.empty((K, self.design.shape[0]))

        def part_variances(part: Part) -> None:
            for rows, _, block in self._blocks(part):
                np.einsum("kbw,bw->kb", block @ covariances, block, out=variances[:, rows])

        in_threads(part_variances, self._parts(K * width))
        return np.maximum(variances, 0.0, out=variances)  # those of rows of zeros are rounded

    def leverages(self, theta: Array, variances: Array, sds: float = 0.0) -> Array:
        """Leverage of each predictor ``(n_products, n)`` at one ``theta (P,)``.

        For predictor k it is ``sum_l |W_kl| sqrt(v_k v_l)``, with the predictors' ``variances`` v
        ``(n_products, n)`` and the curvature W of a row; for indefinite W this is a bound. W is the
        largest of the curvature at theta, the curvatures ``sds`` sds of the predictors to either
        side, and the means in between, which follow from the change of the score.
        """
        leverages, widths = np.empty_like(variances), np.sqrt(variances)
        shifts = np.array([0.0, sds, -sds] if sds else [0.0])[:, None, None]
        coefficients = self._coefficients(theta[None])
        for part in self._parts(len(shifts) * len(variances)):
            for rows, kernel, block in self._blocks(part):
                width = widths[:, rows]
                u = self.design.apply(coefficients, block) + shifts * width
                with np.errstate(all="ignore"):
                    score, curvature = kernel.derivatives(u, 1, 2)
                    sums = np.einsum("sklb,lb->skb", np.abs(curvature), width)
                    if sds:
                        sums[1:] = np.maximum(sums[1:], np.abs(score[1:] - score[0]) / sds)
                    leverages[:, rows] = sums.max(axis=0) * width
        return leverages

    def gram(self, weights: Array) -> Array:
        """Sum of the rows' products ``(width, width)``, with weights ``(n,)`` of one predictor."""
        size = self.design.shape[1]

        def part_sums(part: Part) -> list[Array]:
            w = weights.astype(self.design.dtype, copy=False)
            return _total([weighted_gram(block, w[rows])] for rows, _, block in self._blocks(part))

        return _total(in_threads(part_sums, self._parts(1, size, size * size)))[0]

    def hessian_diagonal(self, theta: Array) -> Array:
        """Diagonal of minus the Hessian ``(P,)`` at one ``theta (P,)``."""
        total: Any = 0.0
        for _, block, curvature in self.curvatures(theta):
            weights = self.coefficient_map.row_weights(curvature)
            total = total + self.design.squares(weights, block)
        return self.coefficient_map.diagonal(total)


def _total(terms: Iterable[Iterable[Array]]) -> list[Array]:
    """Sum of each array over the terms, in double precision."""
    each = iter(terms)
    total = [array.astype(float, copy=False) for array in next(each)]
    for arrays in each:
        for sum_, array in zip(total, arrays, strict=True):
            sum_ += array
    return total
