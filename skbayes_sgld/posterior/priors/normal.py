"""The prior of a linear model: normal coefficients by default, and the joint density of all.

The conventions are those of :mod:`~skbayes_sgld.posterior.priors.base`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.special import ndtri

from skbayes_sgld._arrays import check_covariance
from skbayes_sgld._linalg import column_means, column_squares, inverse_root, matmul_rows
from skbayes_sgld.posterior.likelihoods import Likelihood
from skbayes_sgld.posterior.priors.base import CoefficientPrior

Array = NDArray[Any]


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


@dataclass(frozen=True)
class JointDensity:
    """Density of the parameters ``linear (C, K, width)`` of K linear predictors.

    A row of ``linear`` holds the coefficients of one predictor and then its intercept. The prior's
    other forms are in :class:`~skbayes_sgld.posterior.linear_prior.LinearPrior`.

    Attributes
    ----------
    coef : CoefficientPrior
        Prior of the first ``n_features`` columns.
    intercept : CoefficientPrior or None
        Prior of the intercept at X = 0; None without an intercept or under a flat prior.
    n_features : int
    center : ndarray of shape (n_features,) or None
        Point of X at which the last column is the intercept; None for X = 0.
    from_data : bool
        Whether the scale of the coefficients' prior is in the units of the data.
    pin : ndarray of shape (width,) or None
        Precision of the mean over the predictors, which leaves softmax probabilities unchanged.
    """

    coef: CoefficientPrior
    intercept: CoefficientPrior | None
    n_features: int
    center: Array | None = None
    from_data: bool = False
    pin: Array | None = None
    separate: ClassVar[bool] = True  # coefficients and intercepts are independent

    @property
    def normal(self) -> bool:
        """Whether the prior is normal, given the noise."""
        return self.coef.normal and (self.intercept is None or self.intercept.normal)

    @property
    def nonsmooth(self) -> bool:
        """Whether the gradient jumps somewhere."""
        return self.coef.nonsmooth or (self.intercept is not None and self.intercept.nonsmooth)

    @property
    def of_coef_alone(self) -> bool:
        """Whether it is the prior of the coefficients, and flat in everything else."""
        return self.intercept is None and self.pin is None

    # ---- density and gradient -------------------------------------------------------------------

    def _at_zero(self, linear: Array) -> Array:
        """Intercepts at X = 0 ``(C, K, 1)``."""
        level = linear[..., self.n_features :]
        if self.center is None:
            return level
        # einsum, unlike matmul, rounds a chain alike whatever the number of chains
        return level - np.einsum("ckd,d->ck", linear[..., :-1], self.center)[..., None]

    def log_density(self, linear: Array, gamma: Array | None) -> Array:
        """Log density up to a constant ``(C,)``."""
        value = self.coef.log_density(linear[..., : self.n_features], gamma)
        if self.intercept is not None:
            value = value + self.intercept.log_density(self._at_zero(linear), gamma)
        if self.pin is not None:
            value = value - 0.5 * np.square(linear.sum(axis=1)) @ self.pin / linear.shape[1]
        return value

    def grad(self, linear: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Gradient in the parameters ``(C, K, width)`` and in gamma ``(C,)``."""
        out = np.zeros_like(linear)
        out[..., : self.n_features], in_gamma = self.coef.grad(
            linear[..., : self.n_features], gamma
        )
        if self.intercept is not None:
            slope, more = self.intercept.grad(self._at_zero(linear), gamma)
            out[..., self.n_features :] = slope
            if self.center is not None:
                out[..., : self.n_features] -= slope * self.center
            if more is not None:
                in_gamma = more if in_gamma is None else in_gamma + more
        if self.pin is not None:
            out -= linear.sum(axis=1, keepdims=True) * self.pin / linear.shape[1]
        return out, in_gamma

    def bind_grad(self, constant: Array) -> Callable[[Array], Array]:
        """Gradient plus a ``constant (K, width)`` at ``linear (C, K, width)``, settled once.

        It is for models whose noise is not a parameter. Where the prior is normal, the gradient at
        numbers of single precision is in single precision.
        """
        origin, d = np.zeros((1, *constant.shape)), self.n_features
        independent = self.coef.curvature(origin[0, :, :d], None)[0].ndim == 2
        own_columns = self.intercept is None or (self.intercept.normal and self.center is None)
        if not (independent and own_columns and (self.coef.normal or self.coef.flat)):
            if self.of_coef_alone and not constant.any():
                return self._grad_of_coef
            return lambda linear: self.grad(linear, None)[0] + constant
        unpinned = replace(self, pin=None)
        slope = -unpinned.diagonal(origin[0], None)[0]
        offset = unpinned.grad(origin, None)[0][0] + constant
        shifts, pinned, pull = bool(offset.any()), slice(0, 0), np.zeros(0)
        if self.pin is not None and self.pin.any():
            pinned = slice(int(np.flatnonzero(self.pin)[0]), None)
            pull = self.pin[pinned] / len(constant)

        exact = slope, offset, pull
        rounded = [array.astype(np.float32) for array in exact]
        if not (shifts or pull.size):
            return Proportional(slope, rounded[0])

        def grad(linear: Array) -> Array:
            slope, offset, pull = rounded if linear.dtype == np.float32 else exact
            out: Array = linear * slope
            if shifts:
                out += offset
            if pull.size:
                out[..., pinned] -= linear[..., pinned].sum(axis=1, keepdims=True) * pull
            return out

        return grad

    def _grad_of_coef(self, linear: Array) -> Array:
        of_coef, _ = self.coef.grad(linear[..., : self.n_features], None)
        if linear.shape[-1] == self.n_features:
            return of_coef
        out = np.zeros(linear.shape)
        out[..., : self.n_features] = of_coef
        return out

    # ---- curvature ------------------------------------------------------------------------------

    def of_intercept(self, linear: Array, gamma: float | None) -> tuple[Array, Array, Array, float]:
        """Curvature of the intercept's prior, which has one direction per predictor.

        Returns
        -------
        direction : ndarray of shape (width,)
            Gradient of the intercept at X = 0 in a row of ``linear``.
        own : ndarray of shape (K,)
            Curvature along it.
        cross : ndarray of shape (K,)
            Mixed curvature with gamma.
        corner : float
            Curvature in gamma.
        """
        direction, K = np.zeros(linear.shape[1]), linear.shape[0]
        if self.intercept is None:
            return direction, np.zeros(K), np.zeros(K), 0.0
        direction[-1] = 1.0
        if self.center is not None:
            direction[:-1] = -self.center
        at_zero = self._at_zero(linear[None])[0]
        own, cross, corner = self.intercept.curvature(at_zero, gamma)
        shared = np.zeros(K) if cross is None else cross[:, 0]
        return direction, np.broadcast_to(np.ravel(own), K), shared, corner

    def add_curvature(self, H: Array, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Add to ``H (K * width, K * width)`` what :meth:`curvature` returns first."""
        (K, width), d = linear.shape, self.n_features
        of_coef, with_gamma, corner = self.coef.curvature(linear[:, :d], gamma)
        direction, own, shared, more = self.of_intercept(linear, gamma)
        cross = shared[:, None] * direction
        if with_gamma is not None:
            cross[:, :d] += with_gamma
        for k in range(K):
            start = k * width
            at = np.arange(start, start + d)
            if of_coef.ndim > 2:
                H[start : start + d, start : start + d] += of_coef[min(k, len(of_coef) - 1)]
            else:
                H[at, at] += of_coef[k]
            if self.intercept is not None:
                rows = slice(start, start + width)
                H[rows, rows] += own[k] * np.outer(direction, direction)
        if self.pin is not None:
            at = np.arange(linear.size).reshape(K, width)
            H[at[:, None], at] += self.pin / K
        return cross.ravel(), corner + more

    def diagonal(self, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Diagonal of the curvature at one ``linear (K, width)``, and the curvature in gamma."""
        d = self.n_features
        of_coef, _, corner = self.coef.curvature(linear[:, :d], gamma)
        if of_coef.ndim > 2:
            of_coef = np.diagonal(of_coef, axis1=1, axis2=2)
        diagonal = np.zeros_like(linear)
        diagonal[:, :d] = of_coef
        direction, own, _, more = self.of_intercept(linear, gamma)
        diagonal += own[:, None] * np.square(direction)
        if self.pin is not None:
            diagonal += self.pin / len(linear)
        return diagonal, corner + more

    @classmethod
    def of_data(
        cls,
        coef: CoefficientPrior,
        intercept: CoefficientPrior,
        likelihood: Likelihood,
        data: tuple[Array, Array, Array | None],
        spread: Array | None,
        center: Array | None,
        has_intercept: bool,
    ) -> Self:
        """Prior of the linear parameters of a model of ``data``: X, y and weights.

        ``spread`` is as in :func:`in_units`, and ``center (d,)`` the point of X at which theta has
        the intercept, or None.

        Raises
        ------
        ValueError, TypeError
            Where a parameter of a prior is out of range, or is not one number per column of X.
        """
        (X, y, weight), K = data, likelihood.n_predictors
        coef.check(X.shape[1])
        intercept.check(1, "intercept_prior")
        coef, intercept = in_units(coef, intercept, spread, likelihood, y, weight)
        acts, pin = has_intercept and not intercept.flat, None
        if K > 1:
            free = has_intercept and not (acts and intercept.proper)
            pin = _shift_precision(X, weight, not coef.proper, free, has_intercept) / K
        of_intercept = intercept if acts else None
        return cls(coef, of_intercept, X.shape[1], center, spread is not None, pin)


@dataclass(frozen=True)
class Proportional:
    """Gradient that is a product with the parameters: of independent normal priors about zero."""

    slope: Array
    rounded: Array  # in single precision

    def __call__(self, linear: Array) -> Array:
        """Gradient in the precision of ``linear``."""
        return linear * (self.rounded if linear.dtype == np.float32 else self.slope)


def in_units(
    prior: CoefficientPrior,
    intercept_prior: CoefficientPrior,
    spread: Array | None,
    likelihood: Likelihood,
    y: Array,
    weight: Array | None,
) -> tuple[CoefficientPrior, CoefficientPrior]:
    """Priors whose automatic scales are numbers, in units of the columns' spread and of y.

    ``spread (d,)`` is None where the prior of the coefficients has a scale of its own. Where the
    noise variance is known, priors in units of the noise are so in those of y.
    """
    effect = partial(likelihood.effect, y, weight)
    if spread is not None:
        prior = prior.for_data(effect(), spread)
    if intercept_prior.automatic:
        level = float(intercept_prior.get_params()["location"])
        intercept_prior = intercept_prior.for_data(effect(level=level), 1.0)
    if not likelihood.quadratic or likelihood.infers_noise:
        return prior, intercept_prior
    variance = float(likelihood.noise_variance(None))
    return prior.given_noise(variance), intercept_prior.given_noise(variance)


def _shift_precision(
    X: Array, weight: Array | None, coef_is_free: bool, intercept_is_free: bool, has_intercept: bool
) -> Array:
    """Precision ``(width,)`` of the classes' common shift: under a flat prior, that of the data."""
    n, d = X.shape
    pin, w = np.zeros(d + has_intercept), np.ones(n) if weight is None else weight
    if coef_is_free:
        square = column_squares(X, column_means(X, weight), w)
        pin[:d] = np.where(square > 0, square, 1.0)
    if intercept_is_free:
        pin[-1] = w.sum()
    return pin
