"""Preconditioners: the matrix G of the preconditioned recursion, drift G g and noise G^{1/2} xi.

Karagiannis, Handout 6, eq. (3.9). One object gives both, so drift and noise cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from skbayes_sgld._components import Component, Registry
from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld.sampling.mode import Mode

Array = NDArray[Any]

_ROWS = 16  # rows of noise a product: fixed, so that the draws do not depend on the block size


class Preconditioner(Component):
    """How the parameter space is stretched before a step is taken."""

    uses_curvature = False

    def bind(self, n_params: int, mode: Mode | None) -> BoundPreconditioner:
        """Return the matrix itself, for a posterior of ``n_params`` with this mode."""
        raise NotImplementedError


class BoundPreconditioner:
    """The identity: the recursion of eq. (3.4)."""

    def scale(self, v: Array) -> Array:
        """Return ``G v`` for each row of ``v (C, P)``."""
        return v

    def sqrt(self, z: Array) -> Array:
        """Return ``G^{1/2} z`` for each ``z (..., P)``."""
        return z

    def sqrt_t(self, v: Array) -> Array:
        """Return ``(G^{1/2})^T v``, a gradient in the preconditioned coordinates ``(C, P)``."""
        return v

    def rates(self, curvature: Array) -> Array:
        """Return how fast a unit step pulls to the mode, direction by direction, ascending.

        They are the eigenvalues of G H: a step of size eta is stable on a normal law while
        eta times the largest is below 2, and forgets at eta times the smallest.
        """
        root = self.sqrt(np.eye(curvature.shape[0])).T
        return np.linalg.eigvalsh(root.T @ curvature @ root)


class _Diagonal(BoundPreconditioner):
    def __init__(self, values: Array) -> None:
        self._values, self._roots = values, np.sqrt(values)

    def scale(self, v: Array) -> Array:
        return v * self._values

    def sqrt(self, z: Array) -> Array:
        return z * self._roots

    def sqrt_t(self, v: Array) -> Array:
        return v * self._roots


class _Dense(BoundPreconditioner):
    def __init__(self, root: Array) -> None:
        self._matrix, self._root_t = root @ root.T, np.ascontiguousarray(root.T)

    def scale(self, v: Array) -> Array:
        return matmul_rows(v, self._matrix)

    def sqrt(self, z: Array) -> Array:
        return matmul_rows(z.reshape(-1, z.shape[-1]), self._root_t, _ROWS).reshape(z.shape)

    def sqrt_t(self, v: Array) -> Array:
        return matmul_rows(v, self._root_t.T)


@dataclass(eq=False, repr=False)
class Identity(Preconditioner):
    """No preconditioning: the step size is in the raw units of the parameters."""

    def bind(self, n_params: int, mode: Mode | None) -> BoundPreconditioner:
        """Return the identity."""
        return BoundPreconditioner()


@dataclass(eq=False, repr=False)
class Curvature(Preconditioner):
    """The inverse curvature at the mode, ``G = H^{-1}``: Newton's metric.

    In it a step size has no unit: 0.2 moves a fifth of the way to the mode, on any data.
    """

    uses_curvature = True

    def bind(self, n_params: int, mode: Mode | None) -> BoundPreconditioner:
        """Return H^{-1} and its root."""
        assert mode is not None
        diagonal = np.diagonal(mode.root)
        if np.count_nonzero(mode.root) == np.count_nonzero(diagonal):
            return _Diagonal(np.square(diagonal))
        return _Dense(mode.root)


@dataclass(eq=False, repr=False)
class Matrix(Preconditioner):
    """A preconditioner given by the user: a symmetric positive definite matrix or its diagonal.

    Parameters
    ----------
    matrix : array-like of shape (n_params, n_params) or (n_params,)
        In the order of the parameters: for each linear predictor the coefficients and the
        intercept, then the log noise variance where it is inferred.
    """

    matrix: ArrayLike = 1.0

    def bind(self, n_params: int, mode: Mode | None) -> BoundPreconditioner:
        """Return the matrix; raise ValueError where its shape or sign does not fit."""
        try:
            matrix = np.asarray(self.matrix, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(
                f"preconditioner={self.matrix!r} is not accepted; give 'auto', 'curvature', "
                "'none', None or an array of numbers."
            ) from None
        if matrix.shape not in ((n_params,), (n_params, n_params)):
            raise ValueError(
                f"preconditioner has shape {matrix.shape}; it must be ({n_params},), a diagonal, "
                f"or ({n_params}, {n_params}), a matrix, one row a parameter of the model."
            )
        if not np.all(np.isfinite(matrix)):
            raise ValueError("preconditioner has values that are not finite.")
        if matrix.ndim == 1:
            if np.any(matrix <= 0):
                raise ValueError(
                    f"preconditioner has a value of {matrix.min()}; it must be positive."
                )
            return _Diagonal(matrix)
        if not np.allclose(matrix, matrix.T, rtol=1e-8):
            raise ValueError("preconditioner is not symmetric; it must be.")
        try:
            return _Dense(linalg.cholesky(matrix, lower=True))
        except np.linalg.LinAlgError:
            smallest = np.linalg.eigvalsh(matrix)[0]
            raise ValueError(
                f"preconditioner has an eigenvalue of {smallest:.3g}; it must be positive definite."
            ) from None


PRECONDITIONERS: Registry[Preconditioner] = Registry(
    Preconditioner,
    none=Identity,
    curvature=Curvature,
)
