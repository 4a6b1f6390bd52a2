"""Preconditioners by name: the identity, the curvature at the mode, or a user's own matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from skbayes_sgld._components import Component, Registry, resolve
from skbayes_sgld.sampling.base import Preconditioner
from skbayes_sgld.sampling.metric import Dense, Diagonal, Metric


@dataclass(eq=False, repr=False)
class Identity(Preconditioner):
    """No preconditioning: the step size is in the raw units of the parameters.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(preconditioner="none", step_size=1e-4)
    SGLDLogisticRegression(preconditioner='none', step_size=0.0001)
    """

    def bind(self, n_params: int, metric: Metric | None) -> Metric:
        """The identity."""
        return Diagonal(np.ones(n_params))


@dataclass(eq=False, repr=False)
class Curvature(Preconditioner):
    """The inverse curvature at the mode, ``G = H^{-1}``: Newton's metric.

    A step size in this metric has no unit: 0.2 moves a fifth of the way to the mode, on any data.
    Up to 4,000 parameters G is a matrix; above, it is diagonal. With one linear predictor and at
    most 4,000 rows, fewer than the parameters, it is exact at any width: the prior's diagonal and
    a term for each row.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(preconditioner="curvature", step_size=0.2)
    SGLDLogisticRegression(preconditioner='curvature', step_size=0.2)
    """

    uses_curvature = True

    def bind(self, n_params: int, metric: Metric | None) -> Metric:
        """Metric of the mode."""
        assert metric is not None
        return metric


@dataclass(eq=False, repr=False)
class Matrix(Preconditioner):
    """A preconditioner given by the user: a symmetric positive definite matrix or its diagonal.

    Parameters
    ----------
    matrix : array-like of shape (n_params, n_params) or (n_params,)
        In the order of the parameters: for each linear predictor the coefficients and the
        intercept, then the log noise variance if it is inferred.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.sampling import Matrix
    >>> SGLDLogisticRegression(preconditioner=Matrix([0.1, 0.1, 1.0]), step_size=0.05)
    SGLDLogisticRegression(preconditioner=Matrix(matrix=[0.1, 0.1, 1.0]),
                           step_size=0.05)
    """

    matrix: ArrayLike = 1.0

    def bind(self, n_params: int, metric: Metric | None) -> Metric:
        """Metric of the matrix.

        Raises
        ------
        TypeError, ValueError
            If it is no array of numbers, has another shape or is not positive definite.
        """
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
            return Diagonal(matrix)
        if not np.allclose(matrix, matrix.T, rtol=1e-8):
            raise ValueError("preconditioner is not symmetric; it must be.")
        try:
            return Dense(linalg.cholesky(matrix, lower=True))
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


def preconditioner_of(value: Any, also: tuple[str, ...] = ()) -> Preconditioner:
    """Preconditioner for a name, an instance, an array or None (the identity)."""
    if value is None:
        return Identity()
    if isinstance(value, (str, Component)):
        return resolve(value, PRECONDITIONERS, "preconditioner", also)
    return Matrix(value)
