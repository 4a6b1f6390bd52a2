"""Priors on the coefficients: what each of them defines, and the normal one.

Conventions
-----------
``coef`` is ``(C, K, d)``: chains, linear predictors (one, or one per class), columns of X.
``gamma`` is ``(C,)``, the log noise variance, or None where the model has no noise to infer.
The priors act on the coefficients of the X that the model sees, as the penalty of ``Ridge``
does; the intercept has a prior of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.special import ndtr, ndtri
from sklearn.base import clone

from skbayes_sgld._arrays import check_covariance
from skbayes_sgld._components import Component, Registry, check_array_or_number
from skbayes_sgld._linalg import inverse_root, matmul_rows

Array = NDArray[np.float64]


class Prior(Component):
    """A distribution of the coefficients, with or without parameters of its own.

    Attributes
    ----------
    hierarchical : bool
        Whether it has hyperparameters, which the model infers.
    proper : bool
        Whether the density integrates to a finite number.
    scaled_by_noise : bool
        Whether the scale is in units of the noise, so that the density depends on gamma.
    """

    hierarchical = False
    proper = True
    scaled_by_noise = False

    def check(self, n_features: int | None = None, argument: str = "prior") -> None:
        """Raise where a parameter is out of range, or is not one number per column of X."""

    def conditional(self) -> CoefficientPrior:
        """Prior of the coefficients where all hyperparameters are 1."""
        raise NotImplementedError


P = TypeVar("P", bound=Prior)


class PriorRegistry(Registry[P]):
    """A registry whose errors name the argument: the priors serve slopes and intercepts."""

    def check(self, component: P, argument: str) -> None:
        """Raise where a parameter of ``component`` is out of range."""
        component.check(argument=argument)


class CoefficientPrior(Prior):
    """A density on the coefficients, the same for each linear predictor.

    Attributes
    ----------
    flat : bool
        Whether the density is constant.
    normal : bool
        Whether the density is normal, given the noise.
    nonsmooth : bool
        Whether the gradient jumps somewhere, as at the kink of a Laplace density.
    log_concave : bool
        Whether the log density is concave, so that it adds no mode to a posterior.
    """

    flat = False
    normal = False
    nonsmooth = False
    log_concave = False

    def check(self, n_features: int | None = None, argument: str = "prior") -> None:
        """Raise where a parameter is out of range, or is not one number per column of X."""
        for name, value in self._by_column().items():
            if name == "scale" and isinstance(value, str):
                if value != "auto":
                    raise ValueError(
                        f"{argument}.scale={value!r} is not known; give 'auto', a positive number "
                        "or one for each column of X."
                    )
                continue
            positive = name == "scale"
            check_array_or_number(value, f"{argument}.{name}", n_features, positive=positive)

    @property
    def automatic(self) -> bool:
        """Whether the scale is to be taken from the data."""
        return isinstance(self._by_column().get("scale"), str)

    def for_data(self, unit: float, spread: float | Array) -> CoefficientPrior:
        """Prior in which ``scale="auto"`` is ``unit / spread``; itself where the scale is given.

        Parameters
        ----------
        unit : float
            Size of an effect that one spread of a column may have, in units of the predictor.
        spread : float or ndarray of shape (d,)
            Spread of each column.
        """
        if not self.automatic:
            return self
        return clone(self).set_params(scale=unit / spread)

    def conditional(self) -> CoefficientPrior:
        """The prior itself, which has no hyperparameters."""
        return self

    def _by_column(self) -> dict[str, Any]:
        """Parameters that are single numbers, or one number per column of X."""
        return self.get_params(deep=False)

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """Log density up to a constant ``(C,)``."""
        raise NotImplementedError

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Gradient in the coefficients ``(C, K, d)`` and in gamma ``(C,)``."""
        raise NotImplementedError

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Minus the Hessian at one ``coef (K, d)``.

        Returns
        -------
        of_coef : ndarray of shape (K, d) or (1, d, d)
            The diagonal where the columns are independent, otherwise the matrix of each predictor.
        cross : ndarray of shape (K, d) or None
            Minus the mixed derivatives in coefficients and gamma; None stands for zeros.
        corner : float
            Minus the second derivative in gamma.
        """
        raise NotImplementedError

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Coefficients ``(K, d)`` drawn from the prior; zeros where the prior is improper."""
        return np.zeros(shape)

    def quantiles(self, u: Array, d: int) -> Array | None:
        """Quantiles ``(len(u), d)`` of each coefficient's distance from its location.

        None where they are not known: the prior is then not compared with the data.
        """
        return None

    def root(self, d: int) -> Array:
        """Root ``(d, d)`` of the covariance of a normal prior of the same width in its middle."""
        at_one_sd = self.quantiles(ndtr([1.0]), d)
        assert at_one_sd is not None
        return np.diag(at_one_sd[0])

    def given_noise(self, variance: float) -> CoefficientPrior:
        """Prior where the noise variance is known."""
        return self

    def smoothed(self, spread: Array | None) -> CoefficientPrior:
        """Prior averaged over normal errors of sd ``spread (K, d)``.

        At a single point the curvature of a prior with a kink tells nothing of its width, but its
        average over the width of the posterior does. ``spread=None`` takes the width of the prior
        itself. A smooth prior is returned unchanged.
        """
        return self


@dataclass(eq=False, repr=False)
class NormalPrior(CoefficientPrior):
    """Base of the two normal priors: a mean, and standard deviations or a covariance matrix."""

    scale: Any = "auto"
    location: float | Array = 0.0
    covariance: ArrayLike | None = None

    normal = log_concave = True

    def check(self, n_features: int | None = None, argument: str = "prior") -> None:
        """Raise where a parameter is out of range, or both scale and covariance are given."""
        if np.ndim(self.scale) == 2:
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
        covariance, factors = self.__dict__.get("_known", (None, None))
        if covariance is not self.covariance:
            V = np.asarray(self.covariance, dtype=float)
            inverse = inverse_root(V)
            factors = linalg.solve_triangular(inverse.T, np.eye(len(V)), lower=True), inverse
            self._known = (self.covariance, factors)
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

    def _precise(self, z: Array) -> Array:
        """``R^-T z``: the inverse covariance times ``beta - location``."""
        if self.covariance is None:
            return z / self.scale
        return _rows_times(z, self._factors()[1].T)

    def _precision(self, shape: tuple[int, ...]) -> Array:
        """Inverse covariance: its diagonal ``(K, d)``, or the matrix ``(1, d, d)``."""
        if self.covariance is None:
            return np.broadcast_to(np.divide(1.0, np.square(self.scale)), shape)
        inverse = self._factors()[1]
        return (inverse @ inverse.T)[None]

    def _z(self, coef: Array) -> Array:
        return self.whiten(coef - self.location)


def _rows_times(x: Array, matrix: Array) -> Array:
    return matmul_rows(x.reshape(-1, x.shape[-1]), matrix).reshape(x.shape)


@dataclass(eq=False, repr=False)
class Normal(NormalPrior):
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

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Coefficients ``(K, d)`` drawn from the prior."""
        return self.location + self.unwhiten(rng.standard_normal(shape))

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """``-z'z / 2``, with z the whitened ``beta - mu``."""
        return -0.5 * np.square(self._z(coef)).sum(axis=(1, 2))

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Minus the inverse covariance times ``beta - mu``; gamma does not enter."""
        return -self._precise(self._z(coef)), None

    def root(self, d: int) -> Array:
        """Root ``(d, d)`` of the covariance."""
        return self.unwhiten(np.eye(d)).T

    def quantiles(self, u: Array, d: int) -> Array:
        """Quantiles ``(len(u), d)`` of each coefficient's distance from its location."""
        return np.outer(ndtri(u), np.sqrt(np.square(self.root(d)).sum(axis=1)))

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """``1 / s^2``, or the inverse covariance."""
        return self._precision(coef.shape), None, 0.0
