"""Heavy-tailed priors on the coefficients: Student's t and Cauchy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from skbayes_sgld._checks import check_number
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.priors.base import CoefficientPrior

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(eq=False, repr=False)
class StudentT(CoefficientPrior):
    """Student's t prior, ``(beta_j - location_j) / scale_j ~ t(df)``.

    Its tails let a large coefficient stand where a normal prior would shrink it (Gelman, Jakulin,
    Pittau & Su 2008).

    Parameters
    ----------
    df : float, default=4.0
        Degrees of freedom; 1 is the Cauchy prior.
    scale : float, array-like of shape (n_features,) or "auto", default="auto"
        Scale of the t distribution, in the units of the coefficients. ``"auto"`` is
        ``1 / sd(x_j)`` in logistic and Poisson models and ``2.5 sd(y) / sd(x_j)`` in linear ones,
        as of :class:`Normal`.
    location : float or array-like of shape (n_features,), default=0.0
        Median.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.posterior import StudentT
    >>> SGLDLogisticRegression(prior=StudentT(df=7.0, scale=2.5))
    SGLDLogisticRegression(prior=StudentT(df=7.0, scale=2.5))
    """

    df: float = 4.0
    scale: Any = "auto"
    location: float | Array = 0.0

    def check(self, n_features: int | None = None, argument: str = "prior") -> None:
        """Raise where a parameter is out of range."""
        check_number(self.df, f"{argument}.df", low=0)
        super().check(n_features, argument)

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Coefficients ``(K, d)`` drawn from the prior."""
        return self.location + np.multiply(self.scale, rng.standard_t(self.df, shape))

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """``-(df + 1) / 2 sum log(1 + z^2 / df)``."""
        z = (coef - self.location) / self.scale
        return -0.5 * (self.df + 1) * np.log1p(np.square(z) / self.df).sum(axis=(1, 2))

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """``-(df + 1) z / (df + z^2) / s``."""
        z = (coef - self.location) / self.scale
        return -(self.df + 1) * z / (self.df + np.square(z)) / self.scale, None

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Minus the Hessian's diagonal ``(K, d)``, which is negative in the tails."""
        square = np.square((coef - self.location) / self.scale)
        curvature = (self.df + 1) * (self.df - square) / np.square(self.df + square)
        return curvature / np.square(self.scale), None, 0.0

    def quantiles(self, u: Array, d: int) -> Array:
        """Quantiles ``(len(u), d)`` of each coefficient minus its location."""
        return np.outer(stdtrit(self.df, u), np.broadcast_to(self.scale, d))

    def smoothed(self, spread: Array | None) -> CoefficientPrior:
        """Prior averaged over normal errors of sd ``spread (K, d)``."""
        return _Averaged(self, np.asarray(self.scale, dtype=float) if spread is None else spread)


class Cauchy(StudentT):
    """Cauchy prior: Student's t with one degree of freedom.

    Parameters
    ----------
    scale : float, array-like of shape (n_features,) or "auto", default="auto"
        Half the interquartile range. ``"auto"`` is ``1 / sd(x_j)`` in logistic and Poisson models
        (Gelman, Jakulin, Pittau & Su 2008 take 1.25) and ``2.5 sd(y) / sd(x_j)`` in linear ones,
        as of :class:`Normal`.
    location : float or array-like of shape (n_features,), default=0.0
        Median.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(prior="cauchy").set_params(prior__scale=1.0)
    SGLDLogisticRegression(prior=Cauchy(scale=1.0))
    """

    df = 1.0

    def __init__(self, scale: Any = "auto", location: float | Array = 0.0) -> None:
        self.scale = scale
        self.location = location


class _Averaged(CoefficientPrior):
    """Prior with its log density averaged over normal errors, by a Gauss-Hermite rule."""

    def __init__(self, prior: CoefficientPrior, spread: Array) -> None:
        self.prior, self.spread = prior, spread

    def _average(self, function: Callable[[Array], Any]) -> Array:
        return sum(w * function(x * self.spread) for x, w in zip(_NODES, _WEIGHTS, strict=True))

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        return self._average(lambda error: self.prior.log_density(coef + error, gamma))

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        return self._average(lambda error: self.prior.grad(coef + error, gamma)[0]), None

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        return self._average(lambda error: self.prior.curvature(coef + error, gamma)[0]), None, 0.0
