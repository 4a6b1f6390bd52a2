"""Kernels: a likelihood's functions of its rows, which every sum over rows calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from skbayes_sgld._typing import Array


class RowKernel:
    """Log density and its derivatives in u of rows whose observations are known.

    ``u (C, n_products, B)`` holds the linear predictors of B rows for C positions and, last, the
    coordinates of the likelihood's own parameters. Predictors of a shift-invariant likelihood are
    contrasts: all but the last one, minus the last one. This kernel calls the likelihood's
    functions; a family may define a faster one.

    Parameters
    ----------
    likelihood : Likelihood
    y : ndarray of shape (..., B)
        Observations, in the precision of u.
    """

    def __init__(self, likelihood: Any, y: Array) -> None:
        self.likelihood, self.y = likelihood, y

    @classmethod
    def bind(cls, likelihood: Any, y: Array) -> Self:
        """Kernel of these observations; a family may prepare them here."""
        return cls(likelihood, y)

    def __getitem__(self, at: Any) -> Self:
        """Kernel of some of the rows, ``[..., rows]``, or of one entry of a leading axis."""
        return type(self)(self.likelihood, self.y[at])

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Log density of each row and its derivatives in u, which may be overwritten.

        Order 0 is the log density ``(C, B)``, order 1 the score ``(C, n_products, B)``, and order 2
        minus the Hessian ``(C, n_products, n_products, B)``. Sums over rows ask for 0, for 1, for
        0 and 1, for 1 and 2, or for all three.
        """
        functions = self.likelihood.log_density, self.likelihood.score, self.likelihood.curvature
        return [functions[order](u, self.y) for order in orders]

    def total(self, u: Array) -> Array:
        """Sum of the log densities ``(C,)``; a family may sum them without computing each."""
        total: Array = self.derivatives(u, 0)[0].sum(axis=1, dtype=float)
        return total


class OffsetKernel(RowKernel):
    """Kernel that adds known offsets ``(..., B)`` to one local parameter."""

    def __init__(self, kernel: RowKernel, offset: Array, position: int = 0) -> None:
        self.kernel, self.offset, self.position = kernel, offset, position

    def __getitem__(self, at: Any) -> OffsetKernel:
        """Kernel of some of the rows."""
        return OffsetKernel(self.kernel[at], self.offset[at], self.position)

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Log density and derivatives with the offset added."""
        u[:, self.position] += self.offset
        return self.kernel.derivatives(u, *orders)

    def total(self, u: Array) -> Array:
        """Sum of the log densities with the offset added."""
        u[:, self.position] += self.offset
        return self.kernel.total(u)


class GivenKernel(RowKernel):
    """Kernel whose last local parameters are known, from one that takes them last in u.

    Parameters
    ----------
    kernel : RowKernel
    known : ndarray of shape (..., m, B)
    """

    def __init__(self, kernel: RowKernel, known: Array) -> None:
        self.kernel, self.known = kernel, known

    def __getitem__(self, at: Any) -> Self:
        """Kernel of some of the rows."""
        return type(self)(self.kernel[at], self.known[at])

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Log density, and its derivatives in the local parameters that are not known."""
        C, K, B = u.shape
        known = np.broadcast_to(self.known, (C, self.known.shape[-2], B))
        values = self.kernel.derivatives(np.concatenate([u, known], axis=1), *orders)
        unknown = np.s_[:], np.s_[:, :K], np.s_[:, :K, :K]
        return [each[unknown[order]] for each, order in zip(values, orders, strict=True)]


class WeightedKernel(RowKernel):
    """Kernel whose rows have weights ``(..., B)``."""

    def __init__(self, kernel: RowKernel, weight: Array) -> None:
        self.kernel, self.weight = kernel, weight

    def __getitem__(self, at: Any) -> WeightedKernel:
        """Kernel of some of the rows."""
        return WeightedKernel(self.kernel[at], self.weight[at])

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Weighted log density and derivatives."""
        w = self.weight
        weights = w, w[..., None, :], w[..., None, None, :]
        values = self.kernel.derivatives(u, *orders)
        return [each * weights[order] for each, order in zip(values, orders, strict=True)]


def with_offset_and_weight(
    kernel: RowKernel,
    offset: Array | None,
    weight: Array | None,
    dtype: type,
) -> RowKernel:
    """Kernel whose rows have these offsets and weights ``(..., B)``, in ``dtype``; None for none.

    The kernel adds a row's offset to its first predictor.
    """
    if offset is not None:
        kernel = OffsetKernel(kernel, offset.astype(dtype, copy=False))
    if weight is not None:
        kernel = WeightedKernel(kernel, weight.astype(dtype, copy=False))
    return kernel


def as_matrices(rows: list[list[Array]]) -> Array:
    """Matrices ``(C, m, m, B)`` of entries ``(C, B)``."""
    return np.stack([np.stack(row, axis=1) for row in rows], axis=1)
