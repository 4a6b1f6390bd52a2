"""The design of several blocks of coefficients side by side, each with a design of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld._linalg import weighted_gram
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.design import Design
from skbayes_sgld.posterior.sparse_design import as_array


class StackedDesign(Design):
    """Designs of the same rows; predictors are the sums of theirs.

    Parameters
    ----------
    *designs : Design
        The first one says how rows are divided into blocks.
    """

    def __init__(self, *designs: Design) -> None:
        self._designs, self.dtype = designs, designs[0].dtype
        widths = [each.shape[1] for each in designs]
        ends = np.cumsum([0, *widths])
        self._at = [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
        self.shape = designs[0].shape[0], int(ends[-1])

    def parts(self, n_products: int, min_rows: int = 32, sum_size: int = 1) -> list[list[slice]]:
        """Blocks of rows, as the first design has them."""
        return self._designs[0].parts(n_products, min_rows, sum_size)

    def block(self, rows: slice, room: Any = None) -> StackedBlock:
        """Block of some rows."""
        return StackedBlock(each.block(rows) for each in self._designs)

    def as_they_are(self, rows: slice) -> StackedBlock:
        """Block of some rows."""
        return self.block(rows)

    def rows(self, idx: Array) -> StackedBlock:
        """Block of the rows ``idx``."""
        return StackedBlock(each.rows(idx) for each in self._designs)

    def apply(self, coefficients: Array, rows: StackedBlock) -> Array:
        """Predictors ``(..., K, B)`` of a block."""
        u, *others = (
            design.apply(coefficients[..., at], block)
            for design, at, block in zip(self._designs, self._at, rows, strict=True)
        )
        for other in others:
            u += other
        return u

    def adjoint(self, score: Array, rows: StackedBlock) -> Array:
        """Gradient in the coefficients ``(..., K, width)``."""
        pairs = zip(self._designs, rows, strict=True)
        return np.concatenate([each.adjoint(score, block) for each, block in pairs], axis=-1)

    def squares(self, weights: Array, rows: StackedBlock) -> Array:
        """Sums ``(m, width)`` of a block's squares."""
        pairs = zip(self._designs, rows, strict=True)
        return np.concatenate([each.squares(weights, block) for each, block in pairs], axis=-1)


class StackedBlock(tuple[Any, ...]):
    """Blocks of the same rows, one of each design."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self[0].shape[0], sum(block.shape[1] for block in self)

    def gram(self, weights: Array) -> Array:
        """Weighted sum of the rows' outer products, for designs that are not wide."""
        return weighted_gram(np.hstack([as_array(block) for block in self]), weights)
