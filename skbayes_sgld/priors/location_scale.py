r"""Priors with a location and a scale: the density of a standard variable, shifted and scaled.

A prior is a density of one standard variable z, and

.. math:: \beta_j = \mathrm{location}_j + \mathrm{scale}_j z_j,

with one z for each coefficient. In units of the noise the scale is multiplied by its standard
deviation ``exp(gamma / 2)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.special import erf, ndtri, stdtrit

from skbayes_sgld._checks import array_of, check_covariance, check_number
from skbayes_sgld._linalg import inverse_root, matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.priors.base import CoefficientPrior

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class LocationScale(CoefficientPrior):
    """Prior from the density of a standard variable, which a subclass defines.

    Its parameters have the names ``scale`` and ``location``, each a number or one for each column.
    """

    scale: Any
    location: Any

    # ---- the standard variable, which a subclass defines ----------------------------------------

    def log_standard(self, z: Array) -> Array:
        """Log density at each z, up to a constant."""
        raise self._undefined("log_standard")

    def standard_slope(self, z: Array) -> Array:
        """Derivative of the log density at each z."""
        raise self._undefined("standard_slope")

    def standard_curvature(self, z: Array) -> Array:
        """Minus the second derivative of the log density at each z."""
        raise self._undefined("standard_curvature")

    def draw_standard(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Draws of z."""
        raise self._undefined("draw_standard")

    def standard_quantiles(self, u: Array) -> Array:
        """Quantiles of z at the levels u."""
        raise self._undefined("standard_quantiles")

    # ---- coefficients and the standard variable -------------------------------------------------

    def whiten(self, coef: Array) -> Array:
        """Standard variables of coefficients ``(..., d)`` minus their location."""
        return coef / self.scale

    def unwhiten(self, z: Array) -> Array:
        """Coefficients ``(..., d)`` minus their location, from the standard variables z."""
        return z * self.scale

    def _pull_back(self, slope: Array) -> Array:
        """Gradient in the coefficients ``(..., d)``, from that in z."""
        return slope / self.scale

    def _squared(self, curvature: Array) -> Array:
        """Curvature in the coefficients, from that in each z ``(K, d)``."""
        return curvature / np.square(self.scale)

    def _standardised(self, coef: Array, gamma: Any) -> tuple[Array, Any]:
        """Standard variables of ``coef (C, K, d)``, and 1 over the noise's unit ``(C, 1, 1)``."""
        z = self.whiten(coef - self.location)
        if not self.scaled_by_noise:
            return z, 1.0
        rate = np.exp(-0.5 * np.asarray(gamma))[..., None, None]
        return rate * z, rate

    # ---- the prior ------------------------------------------------------------------------------

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """Log density up to a constant ``(C,)``, from that of the standard variables."""
        value = self.log_standard(self._standardised(coef, gamma)[0]).sum(axis=(1, 2))
        if self.scaled_by_noise:
            value -= 0.5 * coef.shape[1] * coef.shape[2] * gamma
        return value

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Gradient in the coefficients, and in gamma if the noise scales them."""
        z, rate = self._standardised(coef, gamma)
        slope = self.standard_slope(z)
        if not self.scaled_by_noise:
            return self._pull_back(slope), None
        in_gamma = -0.5 * (z * slope).sum(axis=(1, 2)) - 0.5 * coef.shape[1] * coef.shape[2]
        return rate * self._pull_back(slope), in_gamma

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Curvature in the coefficients, and in gamma if the noise scales them."""
        z, rate = self._standardised(coef, gamma)
        curvature = self.standard_curvature(z)
        if not self.scaled_by_noise:
            return self._squared(curvature), None, 0.0
        turn = self.standard_slope(z) - z * curvature
        of_coef = np.square(rate) * self._squared(curvature)
        return of_coef, rate * self._pull_back(0.5 * turn), -0.25 * float((z * turn).sum())

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Coefficients ``(K, d)`` drawn from the prior."""
        unit = np.sqrt(noise_variance) if self.scaled_by_noise else 1.0
        return self.location + unit * self.unwhiten(self.draw_standard(rng, shape))

    def quantiles(self, u: Array, d: int) -> Array:
        """Quantiles ``(len(u), d)`` of each coefficient minus its location."""
        levels = np.asarray(u)[:, None]  # beside parameters that are one number per column
        return self.standard_quantiles(levels) * np.broadcast_to(self.scale, d)


@dataclass(eq=False, repr=False)
class Normal(LocationScale):
    r"""Normal prior of coefficients.

    .. math:: \beta_j \sim N(m_j, s_j^2) \quad \text{or} \quad \beta \sim N(m, \Sigma),

    with location m, scale s and covariance :math:`\Sigma`.

    Parameters
    ----------
    scale : float, array-like of shape (n_features,) or "auto", default="auto"
        Standard deviation, in the units of the coefficients. ``"auto"`` is ``1 / sd(x_j)`` in
        logistic and Poisson models (on standardised columns the posterior mode is the fit of
        ``LogisticRegression(C=1)``) and ``2.5 sd(y) / sd(x_j)`` in linear ones, so that no
        prediction depends on the units of X and y. A column of two values has their
        difference in place of the sd (Gelman, Jakulin, Pittau & Su 2008).
    location : float or array-like of shape (n_features,), default=0.0
        Mean.
    covariance : array-like of shape (n_features, n_features) or None, default=None
        Covariance matrix, in place of ``scale``. Its diagonal holds variances, whereas ``scale``
        holds standard deviations. With several classes, the coefficients of each class have
        this prior.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.priors import Normal
    >>> SGLDLogisticRegression(prior=Normal(scale=2.5))
    SGLDLogisticRegression(prior=Normal(scale=2.5))
    >>> prior = Normal(covariance=[[1.0, 0.9], [0.9, 1.0]])  # two similar coefficients
    """

    scale: Any = "auto"
    location: float | Array = 0.0
    covariance: ArrayLike | None = None

    normal = log_concave = True

    def check(self, n_features: int | None = None, argument: str = "prior") -> None:
        """Raise if a parameter is out of range, or both scale and covariance are given."""
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
        """Whether the scale comes from the data; it does not if a covariance is given."""
        return self.covariance is None and super().automatic

    def _by_column(self) -> dict[str, Any]:
        return {"scale": self.scale, "location": self.location}

    def log_standard(self, z: Array) -> Array:
        """``-z^2 / 2``."""
        return -0.5 * np.square(z)

    def standard_slope(self, z: Array) -> Array:
        """``-z``."""
        return -z

    def standard_curvature(self, z: Array) -> Array:
        """One."""
        return np.ones_like(z)

    def draw_standard(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Draws of z."""
        return rng.standard_normal(shape)

    def standard_quantiles(self, u: Array) -> Array:
        """Quantiles of z at the levels u."""
        return ndtri(u)

    # ---- a covariance: z = R^-1 (beta - location), with R R' the covariance ---------------------

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
        """``X R``, whose coefficients are the whitened ones."""
        return X * self.scale if self.covariance is None else X @ self._factors()[0]

    def _pull_back(self, slope: Array) -> Array:
        if self.covariance is None:
            return super()._pull_back(slope)
        return _rows_times(slope, self._factors()[1].T)

    def _squared(self, curvature: Array) -> Array:
        if self.covariance is None:
            return super()._squared(curvature)
        inverse = self._factors()[1]
        return (inverse @ inverse.T)[None]

    def root(self, d: int) -> Array:
        """Root ``(d, d)`` of the covariance."""
        return self.unwhiten(np.eye(d)).T

    def quantiles(self, u: Array, d: int) -> Array:
        """Quantiles ``(len(u), d)`` of each coefficient minus its location."""
        return np.outer(ndtri(u), np.sqrt(np.square(self.root(d)).sum(axis=1)))


def _rows_times(x: Array, matrix: Array) -> Array:
    return matmul_rows(x.reshape(-1, x.shape[-1]), matrix).reshape(x.shape)


@dataclass(eq=False, repr=False)
class ConjugateNormal(Normal):
    r"""Normal prior of coefficients, scaled by the noise.

    .. math:: \beta \mid \sigma^2 \sim N(\mu, \sigma^2 V).

    With the inverse-gamma noise prior it makes the normal-inverse-gamma model of Karagiannis,
    Handout 6, Section 4, whose posterior is known in closed form.

    Parameters
    ----------
    scale : float, array-like of shape (n_features,) or "auto", default="auto"
        Standard deviation in units of that of the noise: the root of V's diagonal. ``"auto"`` is
        ``10 / sd(x_j)``, the handout's V = 100 I on standardised columns; a column of two values
        has their difference in place of the sd.
    location : float or array-like of shape (n_features,), default=0.0
        The handout's mu.
    covariance : array-like of shape (n_features, n_features) or None, default=None
        The handout's V itself, a covariance matrix in units of the noise variance, in place of
        ``scale``. ``covariance=V`` and ``scale=s`` are the same prior if ``V = diag(s**2)``.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.priors import ConjugateNormal
    >>> SGLDLinearRegression(prior=ConjugateNormal(scale=3.0))
    SGLDLinearRegression(prior=ConjugateNormal(scale=3.0))
    >>> V = [[100.0, 50.0], [50.0, 100.0]]
    >>> model = SGLDLinearRegression(prior=ConjugateNormal(covariance=V))
    """

    scaled_by_noise = True

    def for_data(self, unit: float, spread: float | Array) -> CoefficientPrior:
        """Prior in which ``scale="auto"`` is 10 over the columns' spread; ``unit`` is not used."""
        return super().for_data(10.0, spread)  # Karagiannis, Handout 6, Section 4: V = 100 I

    def given_noise(self, variance: float) -> CoefficientPrior:
        """Normal prior of sd ``scale * sqrt(variance)``."""
        if self.covariance is not None:
            return Normal(location=self.location, covariance=variance * np.asarray(self.covariance))
        return Normal(np.multiply(self.scale, np.sqrt(variance)), self.location)


@dataclass(eq=False, repr=False)
class StudentT(LocationScale):
    """Student's t prior, ``(beta_j - location_j) / scale_j ~ t(df)``.

    It shrinks large coefficients less than a normal prior does (Gelman, Jakulin, Pittau & Su
    2008).

    Parameters
    ----------
    df : float, default=4.0
        Degrees of freedom; 1 is the Cauchy prior.
    scale : float, array-like of shape (n_features,) or "auto", default="auto"
        Scale of the t distribution, in the units of the coefficients. ``"auto"`` is
        ``1 / sd(x_j)`` in logistic and Poisson models and ``2.5 sd(y) / sd(x_j)`` in linear ones,
        as for :class:`Normal`.
    location : float or array-like of shape (n_features,), default=0.0
        Median.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.priors import StudentT
    >>> SGLDLogisticRegression(prior=StudentT(df=7.0, scale=2.5))
    SGLDLogisticRegression(prior=StudentT(df=7.0, scale=2.5))
    """

    df: float = 4.0
    scale: Any = "auto"
    location: float | Array = 0.0

    def check(self, n_features: int | None = None, argument: str = "prior") -> None:
        """Raise if a parameter is out of range."""
        check_number(self.df, f"{argument}.df", low=0)
        super().check(n_features, argument)

    def log_standard(self, z: Array) -> Array:
        """``-(df + 1) / 2 log(1 + z^2 / df)``."""
        return -0.5 * (self.df + 1) * np.log1p(np.square(z) / self.df)

    def standard_slope(self, z: Array) -> Array:
        """``-(df + 1) z / (df + z^2)``."""
        return -(self.df + 1) * z / (self.df + np.square(z))

    def standard_curvature(self, z: Array) -> Array:
        """``(df + 1) (df - z^2) / (df + z^2)^2``, which is negative in the tails."""
        square = np.square(z)
        return (self.df + 1) * (self.df - square) / np.square(self.df + square)

    def draw_standard(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Draws of z."""
        return rng.standard_t(self.df, shape)

    def standard_quantiles(self, u: Array) -> Array:
        """Quantiles of z at the levels u."""
        return stdtrit(self.df, u)

    def averaged_over(self, spread: Array | None) -> CoefficientPrior:
        """Prior averaged over normal errors of sd ``spread (K, d)``."""
        return _Averaged(self, np.asarray(self.scale, dtype=float) if spread is None else spread)


class Cauchy(StudentT):
    """Cauchy prior: Student's t with one degree of freedom.

    Parameters
    ----------
    scale : float, array-like of shape (n_features,) or "auto", default="auto"
        Half the interquartile range. ``"auto"`` is ``1 / sd(x_j)`` in logistic and Poisson models
        (Gelman, Jakulin, Pittau & Su 2008 take 1.25) and ``2.5 sd(y) / sd(x_j)`` in linear ones,
        as for :class:`Normal`.
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

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        return self._average(self.prior.log_density(*self._at_nodes(coef, gamma)))

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        return self._average(self.prior.grad(*self._at_nodes(coef, gamma))[0]), None

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        nodes, _ = self._at_nodes(coef, None)
        return self._average(self.prior.curvature(nodes, gamma)[0]), None, 0.0

    def _at_nodes(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Coefficients ``coef (C, ...)`` and gamma ``(C,)`` at all S nodes: ``S C`` of each."""
        shifts = _NODES.reshape(-1, *[1] * coef.ndim) * self.spread
        gamma = gamma if gamma is None else np.tile(gamma, len(_NODES))
        return (coef + shifts).reshape(-1, *coef.shape[1:]), gamma

    def _average(self, values: Array) -> Array:
        """Average over the nodes of ``values (S C, ...)``."""
        by_node = values.reshape(len(_NODES), -1, *values.shape[1:])
        weighted = by_node * _WEIGHTS.reshape(-1, *[1] * (by_node.ndim - 1))
        return np.asarray(weighted.sum(axis=0))


@dataclass(eq=False, repr=False)
class Laplace(LocationScale):
    r"""Laplace (double exponential) prior of coefficients.

    .. math:: p(\beta_j) = \frac{1}{2 b_j} \exp\left(-\frac{|\beta_j - m_j|}{b_j}\right),

    with location m and scale b.

    Parameters
    ----------
    scale : float, array-like of shape (n_features,) or "auto", default="auto"
        b; the standard deviation is ``sqrt(2) b``. 1 is the setting of Welling & Teh (2011).
        ``"auto"`` is ``1 / sd(x_j)`` in logistic and Poisson models and ``2.5 sd(y) / sd(x_j)``
        in linear ones, as for :class:`Normal`.
    location : float or array-like of shape (n_features,), default=0.0
        Median.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.priors import Laplace
    >>> SGLDLinearRegression(prior=Laplace(scale=0.5))
    SGLDLinearRegression(prior=Laplace(scale=0.5))
    """

    scale: Any = "auto"
    location: float | Array = 0.0

    nonsmooth = log_concave = True

    def log_standard(self, z: Array) -> Array:
        """``-|z|``."""
        return -np.abs(z)

    def standard_slope(self, z: Array) -> Array:
        """``-sign(z)``, a subgradient: 0 at the kink."""
        return -np.sign(z)

    def standard_curvature(self, z: Array) -> Array:
        """Zeros: all curvature is at the kink, and :meth:`averaged_over` spreads it out."""
        return np.zeros_like(z)

    def draw_standard(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Draws of z."""
        return rng.laplace(size=shape)

    def standard_quantiles(self, u: Array) -> Array:
        """Quantiles of z at the levels u."""
        return -np.sign(u - 0.5) * np.log1p(-np.abs(2.0 * u - 1.0))

    def averaged_over(self, spread: Array | None) -> CoefficientPrior:
        """Prior averaged over normal errors of sd ``spread (K, d)``, in closed form."""
        width = np.sqrt(2.0) * np.asarray(self.scale) if spread is None else spread
        return _SmoothedLaplace(self.scale, self.location, width / self.scale)


class _SmoothedLaplace(Laplace):
    """Laplace prior with its log density averaged over normal errors: a folded normal mean.

    ``width`` is the sd of the errors of the standard variable.
    """

    def __init__(self, scale: Any, location: float | Array, width: Array) -> None:
        super().__init__(scale, location)
        self.width = width

    def log_standard(self, z: Array) -> Array:
        x = z / self.width
        folded = np.sqrt(2.0 / np.pi) * np.exp(-0.5 * np.square(x)) + x * erf(x / np.sqrt(2.0))
        return -self.width * folded

    def standard_slope(self, z: Array) -> Array:
        return -erf(z / self.width / np.sqrt(2.0))

    def standard_curvature(self, z: Array) -> Array:
        return np.sqrt(2.0 / np.pi) * np.exp(-0.5 * np.square(z / self.width)) / self.width
