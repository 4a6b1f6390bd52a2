"""The prior of a linear model times the exponential of a quadratic."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy import linalg

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld.posterior.linear_prior import Array, LinearPrior


@dataclass(frozen=True)
class TiltedPrior(LinearPrior):
    """Prior times ``exp(slope' delta - delta' precision delta / 2)``, ``delta = linear - at``.

    It is for models whose noise is not a parameter.

    Attributes
    ----------
    at, slope : ndarray of shape (K, width)
    precision : ndarray of shape (K * width, K * width)
        Symmetric; it may be singular or indefinite.
    """

    at: Array = field(kw_only=True)
    slope: Array = field(kw_only=True)
    precision: Array = field(kw_only=True)
    separate: ClassVar[bool] = False

    def _pull(self, linear: Array) -> tuple[Array, Array]:
        """Distance from ``at``, and minus its product with the precision, ``(C, K * width)``."""
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

    def diagonal(self, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Diagonal of the curvature at one ``linear (K, width)``."""
        of_prior, corner = super().diagonal(linear, gamma)
        return of_prior + np.diagonal(self.precision).reshape(linear.shape), corner

    def add_curvature(self, H: Array, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Add minus the Hessian to ``H (K * width, K * width)``."""
        H += self.precision
        return super().add_curvature(H, linear, gamma)

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Draw ``(K, width)`` of the normal approximation about ``at``, intercepts at X = 0."""
        H, slope = self.curvature(self.at, None)[0], self.grad(self.at[None], None)[0]
        upper = linalg.cholesky(H)
        delta = linalg.cho_solve((upper, False), slope.ravel())
        delta += linalg.solve_triangular(upper, rng.standard_normal(len(delta)))
        linear = self.at + delta.reshape(shape)
        if self.center is not None:
            linear[:, -1] -= linear[:, :-1] @ self.center
        return linear
