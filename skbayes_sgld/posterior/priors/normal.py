"""The normal prior, by standard deviations or a covariance matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.special import ndtri

from skbayes_sgld._checks import array_of, check_covariance
from skbayes_sgld._linalg import inverse_root, matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.priors.base import CoefficientPrior


@dataclass(eq=False, repr=False)
class Normal(CoefficientPrior):
    """Normal prior, ``beta_j ~ N(location_j, scale_j^2)`` or ``beta ~ N(location, covariance)``.

    Parameters
    ----------
    scale : float, array-like of shape (n_features,) or "auto", default="auto"
        Standard deviation, in the units of the coefficients. ``"auto"`` is ``1 / sd(x_j)`` in
        logistic and Poisson models (on standardised columns the posterior mode is the fit of
        ``LogisticRegression(C=1)``) and ``2.5 sd(y) / sd(x_j)`` in linear ones, so that no
        prediction depends on the units of X and y. For a column of two values their difference
        stands for the sd (Gelman, Jakulin, Pittau & Su 2008).
    location : float or array-like of shape (n_features,), default=0.0
        Mean.
    covariance : array-like of shape (n_features, n_features) or None, default=None
        Covariance matrix, in place of ``scale``. Its diagonal holds variances, where ``scale``
        holds standard deviations; hence the separate name. With several classes, the
        coefficients of each have this prior.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.posterior import Normal
    >>> SGLDLogisticRegression(prior=Normal(scale=2.5))
    SGLDLogisticRegression(prior=Normal(scale=2.5))
    >>> prior = Normal(covariance=[[1.0, 0.9], [0.9, 1.0]])  # two similar coefficients
    """

    scale: Any = "auto"
    location: float | Array = 0.0
    covariance: ArrayLike | None = None

    normal = log_concave = True

    def check(self, n_features: int | None = None, argument: str = "prior") -> None:
        """Raise where a parameter is out of range, or both scale and covariance are given."""
        if array_of(self.scale).ndim == 2:
            raise ValueError(
                f"{argument}.scale has shape {np.shape(self.scale)}; it must be a single number "
                f"or a vector of standard deviations. A matrix of covariances is "
                f"{argument}.covariance, of shape (n_features, n_features)."
            )
        super().check(n_features, argument)
        if self.covariance is None:
            return
        if not isinstance(self.scale, str):
            raise ValueError(
                f"{argument}.scale={self.scale!r} is not used beside {argument}.covariance, which "
                "holds the variances too; give one of them."
            )
        check_covariance(self.covariance, f"{argument}.covariance", n_features)

    @property
    def automatic(self) -> bool:
        """Whether the scale is to be taken from the data: there is none beside a covariance."""
        return self.covariance is None and super().automatic

    def _by_column(self) -> dict[str, Any]:
        return {"scale": self.scale, "location": self.location}

    # ---- whitened coordinates: z = R^-1 (beta - location), with R R' the covariance -------------

    def _factors(self) -> tuple[Array, Array]:
        """Lower triangular root R of the covariance, and ``R^-T``."""
        covariance, factors = self.__dict__.get("_cache", (None, None))
        if covariance is not self.covariance:
            V = np.asarray(self.covariance, dtype=float)
            inverse = inverse_root(V)
            factors = linalg.solve_triangular(inverse.T, np.eye(len(V)), lower=True), inverse
            self._cache = (self.covariance, factors)
        return factors

    def whiten(self, coef: Array) -> Array:
        """``R^-1 beta`` for each row of ``coef (..., d)``."""
        if self.covariance is None:
            return coef / self.scale
        return _rows_times(coef, self._factors()[1])

    def unwhiten(self, z: Array) -> Array:
        """``R z`` for each row of ``z (..., d)``."""
        if self.covariance is None:
            return z * self.scale
        return _rows_times(z, self._factors()[0].T)

    def scale_columns(self, X: Array) -> Array:
        """``X R``, the columns whose coefficients are the whitened ones."""
        return X * self.scale if self.covariance is None else X @ self._factors()[0]

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Coefficients ``(K, d)`` drawn from the prior."""
        return self.location + self.unwhiten(rng.standard_normal(shape))

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """``-z'z / 2``, with z the whitened ``beta - mu``."""
        return -0.5 * np.square(self.whiten(coef - self.location)).sum(axis=(1, 2))

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Minus the inverse covariance times ``beta - mu``; gamma does not enter."""
        if self.covariance is None:
            return (self.location - coef) / np.square(self.scale), None
        return -_rows_times(self.whiten(coef - self.location), self._factors()[1].T), None

    def root(self, d: int) -> Array:
        """Root ``(d, d)`` of the covariance."""
        return self.unwhiten(np.eye(d)).T

    def quantiles(self, u: Array, d: int) -> Array:
        """Quantiles ``(len(u), d)`` of each coefficient minus its location."""
        return np.outer(ndtri(u), np.sqrt(np.square(self.root(d)).sum(axis=1)))

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """``1 / s^2``, or the inverse covariance."""
        if self.covariance is None:
            diagonal = np.divide(1.0, np.square(self.scale))
            return np.broadcast_to(diagonal, coef.shape), None, 0.0
        inverse = self._factors()[1]
        return (inverse @ inverse.T)[None], None, 0.0


def _rows_times(x: Array, matrix: Array) -> Array:
    return matmul_rows(x.reshape(-1, x.shape[-1]), matrix).reshape(x.shape)
