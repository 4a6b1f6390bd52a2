"""The prior of linear parameters times the exponential of a quadratic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import ClassVar

import numpy as np

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld.posterior.linear_prior import Array, LinearPrior


@dataclass(frozen=True)
class TiltedPrior(LinearPrior):
    """Prior times ``exp(slope' delta - delta' precision delta / 2)`` with ``delta = linear - at``.

    The quadratic stands for rows that are not in memory: those of earlier batches, or those that a
    sample leaves out. The noise is no parameter.

    Attributes
    ----------
    at, slope : ndarray of shape (K, width)
        Point of the expansion, and the gradient there.
    precision : ndarray of shape (K * width, K * width)
        Minus the Hessian; it may be singular or indefinite.
    """

    at: Array = field(default_factory=lambda: np.zeros((1, 1)))
    slope: Array = field(default_factory=lambda: np.zeros((1, 1)))
    precision: Array = field(default_factory=lambda: np.zeros((1, 1)))
    separate: ClassVar[bool] = False

    def _pull(self, linear: Array) -> tuple[Array, Array]:
        """Distance from the point, and the part of the slope that changes with it."""
        delta = linear.reshape(len(linear), -1) - self.at.ravel()
        return delta, -matmul_rows(delta, self.precision)

    def log_density(self, linear: Array, gamma: Array | None) -> Array:
        """Log density up to a constant ``(C,)``."""
        delta, pull = self._pull(linear)
        quadratic = np.einsum("cp,cp->c", delta, 0.5 * pull + self.slope.ravel())
        return super().log_density(linear, gamma) + quadratic

    def grad(self, linear: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Gradient in the parameters ``(C, K, width)``."""
        slope = self._pull(linear)[1] + self.slope.ravel()
        return super().grad(linear, gamma)[0] + slope.reshape(linear.shape), None

    def bind_grad(self, constant: Array) -> Callable[[Array], Array]:
        """Gradient plus a ``constant (K, width)``."""
        own = {f.name: getattr(self, f.name) for f in fields(LinearPrior)}
        of_prior = LinearPrior(**own).bind_grad(constant + self.slope)
        return lambda linear: of_prior(linear) + self._pull(linear)[1].reshape(linear.shape)

    def diagonal(self, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Diagonal of the curvature at one ``linear (K, width)``."""
        of_prior, corner = super().diagonal(linear, gamma)
        return of_prior + np.diagonal(self.precision).reshape(linear.shape), corner

    def add_curvature(self, H: Array, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Add minus the Hessian to ``H (K * width, K * width)``."""
        H += self.precision
        return super().add_curvature(H, linear, gamma)
