"""The sum over rows of a log likelihood: value, gradient and Hessian.

Blocks of rows are as large as stay in cache with their predictors. Positions are multiplied in
groups of a fixed size, so that no rounding depends on how many there are. Rounding a predictor u
by ``du``, about 1e-7 times the sum of ``|x_j theta_j|`` in single precision, changes the gradient
in coordinates whitened by the curvature by less than the norm of ``sqrt(curvature) du`` over the
rows: 1e-5 for a thousand rows and predictors of order 10. Sums over blocks are in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import (
    GROUP,
    gram_of_predictors,
    in_threads,
    sum_in_threads,
    weighted_gram,
)
from skbayes_sgld.posterior.design import DenseDesign
from skbayes_sgld.posterior.likelihoods import RowKernel
from skbayes_sgld.posterior.predictor_maps import Predictors
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.posterior.sparse_design import SparseDesign, weighted_squares

Array = NDArray[Any]
Blocks = list[tuple[slice, RowKernel, Any]]  # rows, their kernel, and their design where it is held
Products = list[tuple[RowKernel, Any, Any]]  # a kernel, its rows, and their transpose

_COPIED = 2**22  # numbers of a held design up to which it is copied for its products
_REGISTER = 8  # numbers in single precision


class RowSum:
    """Log likelihood of all rows and its derivatives in theta.

    Parameters
    ----------
    design : DenseDesign or SparseDesign
        Its dtype is that of products and of the likelihood's functions.
    kernel : RowKernel
        The likelihood of all rows, in that dtype.
    predictors : Predictors
        Map from theta to the coefficients of the design.
    """

    def __init__(
        self, design: DenseDesign | SparseDesign, kernel: RowKernel, predictors: Predictors
    ) -> None:
        self.design: Any = design
        self.kernel, self.predictors = kernel, predictors
        self._known: dict[tuple[int, ...], list[Blocks]] = {}
        self._bound: dict[int, list[Products]] = {}

    def _parts(self, n_products: int, fewest: int = 32, sums: int = 1) -> list[Blocks]:
        """Blocks of rows with their kernels, in the parts that threads share."""
        key = n_products, fewest, sums
        if key not in self._known:
            self._known[key] = [
                [(rows, self.kernel[..., rows], self.design.held(rows)) for rows in part]
                for part in self.design.parts(n_products, fewest, sums)
            ]
        return self._known[key]

    def _coefficients(self, theta: Array) -> Array:
        return self.predictors.coefficients(theta).astype(self.design.dtype, copy=False)

    def _blocks(self, part: Blocks) -> Iterator[tuple[slice, RowKernel, Any]]:
        room = None
        for rows, kernel, block in part:
            if block is None:
                room = self.design.room(rows) if room is None else room
                yield rows, kernel, self.design.block(rows, room)
            else:
                yield rows, kernel, block

    @cached_property
    def _folded(self) -> tuple[RowKernel, Array, Array] | None:
        """Kernel, rows and their transpose as products take them; None of a large design."""
        n, width = self.design.shape
        block = self.design.held(slice(0, n)) if n * width <= _COPIED else None
        if not isinstance(block, np.ndarray):
            return None
        kernel, folded = self.kernel.fold(block)
        if folded.dtype != np.float32:
            rows = np.ascontiguousarray(folded)
            return kernel, rows, rows.T
        # BLAS in float32 takes columns that do not fill a register one at a time: without zeros
        # beside them an adjoint takes 1.2 to 1.8 times as long
        rows = np.zeros((n, width + -width % _REGISTER), np.float32)
        rows[:, :width] = folded
        # and 1.3 to 2 times as long for predictors from rows in this order
        return kernel, rows, np.ascontiguousarray(folded.T)

    def _products(self, n_products: int) -> list[Any]:
        """Parts of the rows that threads share: blocks of the folded rows, or :meth:`_parts`."""
        if self._folded is None:
            return self._parts(n_products)
        if n_products not in self._bound:
            kernel, rows, turned = self._folded
            self._bound[n_products] = [
                [(kernel[..., some], rows[some], turned[:, some]) for some in part]
                for part in self.design.parts(n_products)
            ]
        return self._bound[n_products]

    def _over_blocks(
        self,
        theta: Array,
        group: int | None,
        of_block: Callable[[int, Array, RowKernel, Any, Any], tuple[Array, ...]],
    ) -> tuple[Array, ...]:
        """Sums over the blocks of what ``of_block(C, left, kernel, block, block.T)`` returns.

        ``left (groups, n_each * n_products, width)`` are the coefficients in groups of positions,
        zeros in place of those that the last group lacks: products take whole groups, kernels take
        the C positions.
        """
        coefficients = self._coefficients(theta)
        C, K, width = coefficients.shape
        size = group or C
        if lacking := -C % size:
            zeros = np.zeros((lacking, K, width), self.design.dtype)
            coefficients = np.concatenate([coefficients, zeros])
        left = coefficients.reshape(-1, size * K, width)

        parts, folded = self._products(size * K), self._folded is not None
        if folded and len(parts) == 1 == len(parts[0]):  # few rows
            sums = of_block(C, left, *parts[0][0])
            return tuple([each.astype(float, copy=False) for each in sums])

        def of_part(part: Any) -> tuple[Array, ...]:
            blocks = iter(part) if folded else ((k, b, b.T) for _, k, b in self._blocks(part))
            total = tuple(a.astype(float) for a in of_block(C, left, *next(blocks)))
            for block in blocks:
                for sum_, each in zip(total, of_block(C, left, *block), strict=True):
                    sum_ += each
            return total

        first, *others = in_threads(of_part, parts)
        for other in others:
            for sum_, each in zip(first, other, strict=True):
                sum_ += each
        return first

    def value_and_grad(self, theta: Array, group: int | None = GROUP) -> tuple[Array, Array]:
        """Log likelihood ``(C,)`` and its gradient ``(C, P)`` at ``theta (C, P)``.

        ``group`` is the number of positions in a product; None takes all.
        """
        value, grad = self._over_blocks(theta, group, self._value_and_grad)
        return value, self.predictors.gradient(grad)

    def grad(self, theta: Array, group: int | None = GROUP) -> Array:
        """Gradient of the log likelihood ``(C, P)``."""
        with np.errstate(over="ignore"):  # of the odds of rows that are well explained
            grad = self._over_blocks(theta, group, self._grad)[0]
        return self.predictors.gradient(grad)

    def value(self, theta: Array) -> Array:
        """Log likelihood ``(C,)``."""
        return self._over_blocks(theta, GROUP, self._value)[0]

    def _local(self, C: int, left: Array, columns: Any) -> Array:
        """Local parameters of a block ``(C, n_products, B)``, given its transpose."""
        u = left @ columns
        return u.reshape(-1, self.predictors.n_products, u.shape[-1])[:C]

    def _adjoint(self, score: Array, left: Array, block: Any) -> Array:
        """Gradient in the coefficients ``(C, n_products, width)``."""
        (C, K, B), (groups, size, width) = score.shape, left.shape
        if lacking := groups * size // K - C:
            score = np.concatenate([score, np.zeros((lacking, K, B), score.dtype)])
        grad = score.reshape(groups, size, B) @ block
        return grad.reshape(-1, K, grad.shape[2])[:C, :, :width]

    def _value(
        self, C: int, left: Array, kernel: RowKernel, block: Any, columns: Any
    ) -> tuple[Array]:
        return (kernel.log_density(self._local(C, left, columns)).sum(axis=1, dtype=float),)

    def _grad(
        self, C: int, left: Array, kernel: RowKernel, block: Any, columns: Any
    ) -> tuple[Array]:
        return (self._adjoint(kernel.score(self._local(C, left, columns)), left, block),)

    def _value_and_grad(
        self, C: int, left: Array, kernel: RowKernel, block: Any, columns: Any
    ) -> tuple[Array, Array]:
        value, score = kernel.value_and_score(self._local(C, left, columns))
        return value.sum(axis=1, dtype=float), self._adjoint(score, left, block)

    def by_row(self, theta: Array) -> Array:
        """Log likelihood of each row ``(C, n)``."""
        coefficients, values = self._coefficients(theta), []
        for part in self._parts(len(theta) * self.predictors.n_products):
            for _, kernel, block in self._blocks(part):
                values.append(kernel.log_density(coefficients @ block.T))
        return np.concatenate(values, axis=1)

    # ---- second derivatives ---------------------------------------------------------------------

    def expand(self, theta: Array) -> Expansion:
        """Gradient and Hessian at ``theta (P,)``, or their means over draws ``(S, P)``."""
        draws = np.atleast_2d(theta)
        P, K = draws.shape[1], self.predictors.n_products
        coefficients = self._coefficients(draws)
        # of rows with several local parameters they would have a size like that of X
        by_row = np.empty((2 if K == 1 and len(draws) == 1 else 0, self.design.shape[0]))
        work = partial(self._expand, coefficients, by_row)
        sums = in_threads(work, self._parts(len(draws) * K, P, P * P))
        grad, H = sums[0]
        for slope, curvature in sums[1:]:
            grad += slope
            H += curvature
        return Expansion(
            theta,
            self.predictors.gradient(grad[None])[0],
            self.predictors.hessian(H),
            tuple(by_row),
        )

    def _expand(self, coefficients: Array, by_row: Array, part: Blocks) -> tuple[Array, Array]:
        size = coefficients[0].size
        grad, H = np.zeros(coefficients.shape[1:]), np.zeros((size, size))
        for rows, kernel, block in self._blocks(part):
            u = coefficients @ block.T
            if len(by_row):
                by_row[0, rows] = u[0, 0]
            with np.errstate(over="ignore"):
                found = kernel.score_and_curvature(u)
            score, curvature = (each.mean(axis=0) for each in found)
            if len(by_row):
                by_row[0, rows] *= curvature[0, 0]
                by_row[0, rows] += score[0]
                by_row[1, rows] = curvature[0, 0]
            grad += score @ block
            H += gram_of_predictors(block, curvature)
        return grad, H

    def curvatures(self, theta: Array) -> Iterator[tuple[slice, Any, Array]]:
        """Blocks of rows and their curvatures ``(n_products, n_products, B)`` at ``theta (P,)``."""
        coefficients = self._coefficients(theta[None])
        for part in self._parts(self.predictors.n_products):
            for rows, kernel, block in self._blocks(part):
                with np.errstate(over="ignore"):
                    curvature = kernel.score_and_curvature(coefficients @ block.T)[1][0]
                yield rows, block, curvature

    def gram(self, weights: Array) -> Array:
        """Sum of the rows' weighted products ``(P, P)``, for weights ``(n,)`` of one predictor."""
        size = self.design.shape[1]

        def of_part(part: Blocks) -> Array:
            H = np.zeros((size, size))
            for rows, _, block in self._blocks(part):
                H += weighted_gram(block, weights[rows].astype(self.design.dtype, copy=False))
            return H

        return sum_in_threads(of_part, self._parts(1, size, size * size))

    def hessian_diagonal(self, theta: Array) -> Array:
        """Diagonal of minus the Hessian ``(P,)`` at one ``theta (P,)``."""
        total: Any = 0.0
        for _, block, curvature in self.curvatures(theta):
            weights = self.predictors.row_weights(curvature)
            total = total + np.array([weighted_squares(block, weight) for weight in weights])
        return self.predictors.diagonal(total)
