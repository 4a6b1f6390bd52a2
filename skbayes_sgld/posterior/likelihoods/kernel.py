"""Kernels: the functions of a likelihood's rows that every sum over rows calls."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class RowKernel:
    """Log density and its derivatives in u of rows whose observations are known.

    ``u (C, n_products, B)`` holds the linear predictors of B rows for C positions and, last, the
    coordinates of the likelihood's own parameters. Predictors of a shift-invariant likelihood are
    contrasts: all but the last one, less the last one. Every method may overwrite u. This kernel
    calls the likelihood's functions; a family may have a faster one of its own.

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

    def fold(self, design: Array) -> tuple[RowKernel, Array]:
        """Kernel and rows ``(B, width)`` of the same likelihood that are cheaper to sum."""
        return self, design

    def log_density(self, u: Array) -> Array:
        """Log density of each row ``(C, B)``."""
        return self.likelihood.log_density(u, self.y)

    def score(self, u: Array) -> Array:
        """Gradient of the log density in u ``(C, n_products, B)``."""
        return self.likelihood.score(u, self.y)

    def value_and_score(self, u: Array) -> tuple[Array, Array]:
        """Log density and score."""
        return self.log_density(u), self.score(u)

    def score_and_curvature(self, u: Array) -> tuple[Array, Array]:
        """Score, and minus the Hessian of the log density ``(C, n_products, n_products, B)``."""
        curvature = self.likelihood.curvature(u, self.y)
        return self.score(u), curvature


class OffsetKernel(RowKernel):
    """A kernel whose first predictor has known offsets ``(..., B)``, which u leaves out."""

    def __init__(self, kernel: RowKernel, offset: Array) -> None:
        self.kernel, self.offset = kernel, offset

    def __getitem__(self, at: Any) -> OffsetKernel:
        """Kernel of some of the rows."""
        return OffsetKernel(self.kernel[at], self.offset[at])

    def fold(self, design: Array) -> tuple[RowKernel, Array]:
        """Fold the offset as one more column of the rows."""
        kernel, folded = self.kernel.fold(np.column_stack([design, self.offset]))
        return OffsetKernel(kernel, folded[:, -1].copy()), folded[:, :-1]

    def _moved(self, u: Array) -> Array:
        u[:, 0] += self.offset
        return u

    def log_density(self, u: Array) -> Array:
        """Log density at the predictor with its offset."""
        return self.kernel.log_density(self._moved(u))

    def score(self, u: Array) -> Array:
        """Score at the predictor with its offset."""
        return self.kernel.score(self._moved(u))

    def value_and_score(self, u: Array) -> tuple[Array, Array]:
        """Log density and score."""
        return self.kernel.value_and_score(self._moved(u))

    def score_and_curvature(self, u: Array) -> tuple[Array, Array]:
        """Score and curvature."""
        return self.kernel.score_and_curvature(self._moved(u))


class WeightedKernel(RowKernel):
    """A kernel whose rows count with weights ``(..., B)``."""

    def __init__(self, kernel: RowKernel, weight: Array) -> None:
        self.kernel, self.weight = kernel, weight

    def __getitem__(self, at: Any) -> WeightedKernel:
        """Kernel of some of the rows."""
        return WeightedKernel(self.kernel[at], self.weight[at])

    def fold(self, design: Array) -> tuple[RowKernel, Array]:
        """Fold the kernel that is weighted."""
        kernel, folded = self.kernel.fold(design)
        return WeightedKernel(kernel, self.weight), folded

    def log_density(self, u: Array) -> Array:
        """Weighted log density."""
        return self.kernel.log_density(u) * self.weight

    def score(self, u: Array) -> Array:
        """Weighted score."""
        return self.kernel.score(u) * self.weight[..., None, :]

    def value_and_score(self, u: Array) -> tuple[Array, Array]:
        """Weighted log density and score."""
        value, score = self.kernel.value_and_score(u)
        return value * self.weight, score * self.weight[..., None, :]

    def score_and_curvature(self, u: Array) -> tuple[Array, Array]:
        """Weighted score and curvature."""
        score, curvature = self.kernel.score_and_curvature(u)
        weight = self.weight[..., None, :]
        return score * weight, curvature * weight[..., None, :]


class PartsKernel(RowKernel):
    """A kernel whose value, score and curvature have terms in common, which are computed once.

    A family defines these terms, and the three as functions of u and of the terms.
    """

    def parts(self, u: Array) -> tuple[Any, ...]:
        """Terms in common."""
        raise NotImplementedError

    def value_of(self, u: Array, *parts: Any) -> Array:
        """Log density ``(C, B)``, given the terms."""
        raise NotImplementedError

    def score_of(self, u: Array, *parts: Any) -> Array:
        """Score ``(C, m, B)``, given the terms."""
        raise NotImplementedError

    def curvature_of(self, u: Array, *parts: Any) -> Array:
        """Curvature ``(C, m, m, B)``, given the terms."""
        raise NotImplementedError

    def log_density(self, u: Array) -> Array:
        """Log density of each row."""
        return self.value_of(u, *self.parts(u))

    def score(self, u: Array) -> Array:
        """Score in the predictors and the own parameters."""
        return self.score_of(u, *self.parts(u))

    def value_and_score(self, u: Array) -> tuple[Array, Array]:
        """Log density and score."""
        parts = self.parts(u)
        return self.value_of(u, *parts), self.score_of(u, *parts)

    def score_and_curvature(self, u: Array) -> tuple[Array, Array]:
        """Score and curvature."""
        parts = self.parts(u)
        return self.score_of(u, *parts), self.curvature_of(u, *parts)


def as_matrices(rows: list[list[Array]]) -> Array:
    """Matrices ``(C, m, m, B)`` of entries ``(C, B)``."""
    return np.stack([np.stack(row, axis=1) for row in rows], axis=1)
