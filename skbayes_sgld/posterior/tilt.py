"""A quadratic beside the log prior: what is known of rows that a posterior does not hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld._typing import Array


@dataclass(frozen=True)
class Tilt:
    """Log density ``slope' delta - delta' precision delta / 2``, with ``delta = theta - at``.

    Attributes
    ----------
    at, slope : ndarray of shape (P,)
    precision : ndarray of shape (P, P)
        Symmetric; it may be singular or indefinite.
    """

    at: Array
    slope: Array
    precision: Array

    def tempered(self, power: float) -> Tilt:
        """The density to a power."""
        return replace(self, slope=power * self.slope, precision=power * self.precision)

    def _pull(self, theta: Array) -> tuple[Array, Array]:
        """Distance from ``at``, and minus its product with the precision, ``(C, P)``."""
        delta = theta - self.at
        return delta, -matmul_rows(delta, self.precision)

    def log_density(self, theta: Array) -> Array:
        """Log density ``(C,)``."""
        delta, pull = self._pull(theta)
        return np.einsum("cp,cp->c", delta, 0.5 * pull + self.slope)

    def grad(self, theta: Array) -> Array:
        """Gradient ``(C, P)``."""
        return self._pull(theta)[1] + self.slope
