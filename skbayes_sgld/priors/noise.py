"""Priors of a likelihood's own parameters, such as the noise variance of a linear model.

The prior of a positive parameter v, such as ``sigma^2`` or a dispersion, is implemented as a
density of ``gamma = log v``, with its Jacobian. Some are named after that of ``sigma = sqrt(v)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sgld._checks import check_number
from skbayes_sgld._components import Component

Array = NDArray[np.float64]


class NoisePrior(Component):
    """Prior density of the noise variance, or of another positive parameter of a likelihood.

    Attributes
    ----------
    proper : bool
        Whether the density integrates to a finite number.
    """

    proper = True

    def check_as(self, argument: str) -> None:
        """Check; errors name the argument, as priors serve several own parameters."""
        self.check(argument)

    def check(self, argument: str = "noise_prior") -> None:
        """Raise if a parameter is out of range."""

    @property
    def conjugate(self) -> tuple[float, float] | None:
        """``(a, b)`` if the density is ``exp(-a gamma - b exp(-gamma))``; otherwise None."""
        return None

    def for_data(self, variance: float) -> NoisePrior:
        """Copy whose ``"auto"`` parameters are set from the variance of y.

        For parameters without a unit, such as a dispersion, ``variance`` is 1.
        """
        return self

    def log_density(self, gamma: Array) -> Array:
        """Log density of gamma up to a constant ``(C,)``."""
        raise self._undefined("log_density")

    def grad(self, gamma: Array) -> Array:
        """Derivative of the log density ``(C,)``."""
        raise self._undefined("grad")

    def curvature(self, gamma: float) -> float:
        """Minus the second derivative of the log density at one gamma."""
        raise self._undefined("curvature")

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Variances ``(size,)`` drawn from the prior, if it is proper."""
        raise self._undefined("sample")


class _Positive(NoisePrior):
    """Prior whose parameters are positive numbers, one of which may be "auto"."""

    _automatic = "scale"

    def check(self, argument: str = "noise_prior") -> None:
        """Raise if a parameter is not positive."""
        for name, value in self.get_params().items():
            if not (name == self._automatic and isinstance(value, str) and value == "auto"):
                check_number(value, f"{argument}.{name}", low=0)

    def for_data(self, variance: float) -> NoisePrior:
        """Prior whose ``"auto"`` is set from the variance of y."""
        if self.get_params().get(self._automatic) != "auto":
            return self
        return clone(self).set_params(**{self._automatic: self._from_data(variance)})

    def _from_data(self, variance: float) -> float:
        """Number for ``"auto"``; by default the standard deviation of y."""
        return float(np.sqrt(variance))  # a Python float, for the repr


class _GeneralizedGamma(_Positive):
    """Prior of log density ``a gamma - c exp(b gamma)``."""

    def _terms(self, gamma: Any) -> tuple[float, float, Any]:
        """``a``, ``b`` and ``c exp(b gamma)``."""
        raise NotImplementedError

    def log_density(self, gamma: Array) -> Array:
        """``a gamma - c exp(b gamma)``."""
        a, _, tail = self._terms(gamma)
        return a * gamma - tail

    def grad(self, gamma: Array) -> Array:
        """``a - b c exp(b gamma)``."""
        a, b, tail = self._terms(gamma)
        return a - b * tail

    def curvature(self, gamma: float) -> float:
        """``b^2 c exp(b gamma)``."""
        _, b, tail = self._terms(gamma)
        return float(b * b * tail)


@dataclass(eq=False, repr=False)
class InverseGamma(_GeneralizedGamma):
    r"""Inverse gamma prior of the noise variance.

    .. math:: \sigma^2 \sim \text{IG}(\phi, \psi), \quad
        p(\sigma^2) \propto (\sigma^2)^{-\phi - 1} e^{-\psi / \sigma^2},

    with shape :math:`\phi` and scale :math:`\psi`, as in Karagiannis, Handout 6, Section 4.

    Parameters
    ----------
    shape : float, default=1e-3
        phi. The prior counts as ``2 shape`` observations, next to nothing at 0.001.
    scale : float or "auto", default="auto"
        psi, in squared units of y. ``"auto"`` is ``shape`` times the variance of y, so that the
        units of y do not change the result.

    Examples
    --------
    The handout's prior:

    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.priors import InverseGamma
    >>> SGLDLinearRegression(noise_prior=InverseGamma(shape=1.0, scale=1.0))
    SGLDLinearRegression(noise_prior=InverseGamma(scale=1.0, shape=1.0))
    """

    shape: float = 1e-3
    scale: Any = "auto"

    def check(self, argument: str = "noise_prior") -> None:
        """Raise if shape or scale is not positive, or the shape is above 1e15."""
        check_number(self.shape, f"{argument}.shape", low=0, high=1e15)
        super().check(argument)

    @property
    def conjugate(self) -> tuple[float, float]:
        """Shape and scale."""
        return self.shape, self.scale

    def _from_data(self, variance: float) -> float:
        return self.shape * variance

    def _terms(self, gamma: Any) -> tuple[float, float, Any]:
        return -self.shape, -1.0, self.scale * np.exp(-gamma)

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Variances ``(size,)`` drawn from the prior; infinite if they overflow."""
        with np.errstate(divide="ignore", over="ignore"):
            return self.scale / rng.standard_gamma(self.shape, size)


@dataclass(eq=False, repr=False)
class FlatNoise(_GeneralizedGamma):
    """Flat (improper) prior on the standard deviation sigma.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> SGLDLinearRegression(noise_prior="flat")
    SGLDLinearRegression(noise_prior='flat')
    """

    proper = False

    @property
    def conjugate(self) -> tuple[float, float]:
        """``(-1 / 2, 0)``."""
        return -0.5, 0.0

    def _terms(self, gamma: Any) -> tuple[float, float, Any]:
        return 0.5, 0.0, np.zeros_like(gamma)  # from the Jacobian d sigma / d gamma


@dataclass(eq=False, repr=False)
class HalfNormal(_GeneralizedGamma):
    r"""Half-normal prior of the noise's standard deviation.

    .. math:: p(\sigma) \propto e^{-\sigma^2 / (2 s^2)}, \quad \sigma > 0,

    with scale s.

    Parameters
    ----------
    scale : float or "auto", default="auto"
        s, in units of y; ``"auto"`` is the standard deviation of y.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> SGLDLinearRegression(noise_prior="half_normal")
    SGLDLinearRegression(noise_prior='half_normal')
    """

    scale: Any = "auto"

    def _terms(self, gamma: Any) -> tuple[float, float, Any]:
        return 0.5, 1.0, 0.5 * (np.exp(gamma) / self.scale**2)

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Variances ``(size,)`` drawn from the prior."""
        return np.square(self.scale * rng.standard_normal(size))


@dataclass(eq=False, repr=False)
class HalfStudentT(_Positive):
    r"""Half-t prior of the noise's standard deviation (Gelman 2006).

    .. math:: \sigma / s \sim |T|, \quad T \sim t_\text{df},

    with scale s.

    Parameters
    ----------
    df : float, default=3.0
        Degrees of freedom.
    scale : float or "auto", default="auto"
        s, in units of y; ``"auto"`` is the standard deviation of y.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> SGLDLinearRegression(noise_prior="half_student_t").set_params(noise_prior__df=4.0)
    SGLDLinearRegression(noise_prior=HalfStudentT(df=4.0))
    """

    df: float = 3.0
    scale: Any = "auto"

    def _ratio(self, gamma: Array) -> Array:
        return np.exp(gamma) / (self.df * self.scale**2)

    def log_density(self, gamma: Array) -> Array:
        """``-(df + 1) / 2 log(1 + sigma^2 / (df s^2)) + gamma / 2``."""
        return 0.5 * (gamma - (self.df + 1) * np.log1p(self._ratio(gamma)))

    def grad(self, gamma: Array) -> Array:
        """Derivative of the log density ``(C,)``."""
        ratio = self._ratio(gamma)
        return 0.5 * (1.0 - (self.df + 1) * ratio / (1 + ratio))

    def curvature(self, gamma: float) -> float:
        """Minus the second derivative of the log density."""
        ratio = float(self._ratio(np.asarray(gamma)))
        return 0.5 * (self.df + 1) * ratio / (1 + ratio) ** 2

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Variances ``(size,)`` drawn from the prior."""
        return np.square(self.scale * rng.standard_t(self.df, size))


class HalfCauchy(HalfStudentT):
    """Half-Cauchy prior on sigma: the half-t prior with one degree of freedom.

    Parameters
    ----------
    scale : float or "auto", default="auto"
        s, in units of y; ``"auto"`` is the standard deviation of y.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> SGLDLinearRegression(noise_prior="half_cauchy")
    SGLDLinearRegression(noise_prior='half_cauchy')
    """

    df = 1.0

    def __init__(self, scale: Any = "auto") -> None:
        self.scale = scale


@dataclass(eq=False, repr=False)
class Exponential(_GeneralizedGamma):
    r"""Exponential prior of the noise's standard deviation.

    .. math:: p(\sigma) \propto e^{-\sigma / s}, \quad \sigma > 0,

    with scale s.

    Parameters
    ----------
    scale : float or "auto", default="auto"
        The mean, in units of y; ``"auto"`` is the standard deviation of y.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> SGLDLinearRegression(noise_prior="exponential")
    SGLDLinearRegression(noise_prior='exponential')
    """

    scale: Any = "auto"

    def _terms(self, gamma: Any) -> tuple[float, float, Any]:
        return 0.5, 0.5, np.exp(0.5 * gamma) / self.scale

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Variances ``(size,)`` drawn from the prior."""
        return np.square(self.scale * rng.standard_exponential(size))


@dataclass(eq=False, repr=False)
class LogNormal(_Positive):
    """Log-normal prior: the log of the parameter is normal.

    Parameters
    ----------
    width : float, default=1.5
        Standard deviation of the log.
    median : float or "auto", default="auto"
        Median of the parameter. ``"auto"`` is the variance of y for the noise variance, and 1 for
        parameters without a unit (for the gaps of K > 6 ordered classes 6 / K).

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> SGLDLinearRegression(noise_prior="log_normal")
    SGLDLinearRegression(noise_prior='log_normal')
    """

    width: float = 1.5
    median: Any = "auto"

    _automatic = "median"

    def _from_data(self, variance: float) -> float:
        return variance

    def _z(self, gamma: Any) -> Any:
        return (gamma - np.log(float(self.median))) / self.width

    def log_density(self, gamma: Array) -> Array:
        """``-z^2 / 2`` of the standardised log z."""
        return -0.5 * np.square(self._z(gamma))

    def grad(self, gamma: Array) -> Array:
        """``-z / width``."""
        return -self._z(gamma) / self.width

    def curvature(self, gamma: float) -> float:
        """``1 / width^2``, at every gamma."""
        return self.width**-2.0

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Values ``(size,)`` drawn from the prior."""
        return self.median * np.exp(self.width * rng.standard_normal(size))


@dataclass(eq=False, repr=False)
class GammaPrior(_GeneralizedGamma):
    r"""Gamma prior of a positive parameter.

    .. math:: p(x) \propto x^{k - 1} e^{-x / s}, \quad x > 0,

    with shape k and scale s.

    The default, shape 2 and rate 0.1, is the prior of Juarez & Steel (2010, Section 2) for the
    degrees of freedom of t-distributed noise: with a probability of 90 % they are between 3.6 and
    47.

    Parameters
    ----------
    shape : float, default=2.0
    scale : float or "auto", default="auto"
        s, the inverse of the rate. ``"auto"`` is 10 for parameters without a unit, and 10 times
        the variance of y for the noise variance.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.priors import GammaPrior
    >>> SGLDLinearRegression(
    ...     noise_distribution="student_t", degrees_of_freedom_prior=GammaPrior(scale=2.0)
    ... )
    SGLDLinearRegression(degrees_of_freedom_prior=GammaPrior(scale=2.0),
                         noise_distribution='student_t')
    """

    shape: float = 2.0
    scale: Any = "auto"

    def _from_data(self, variance: float) -> float:
        return 10.0 * variance

    def _terms(self, gamma: Any) -> tuple[float, float, Any]:
        return self.shape, 1.0, np.exp(gamma) / self.scale

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Values ``(size,)`` drawn from the prior."""
        return self.scale * rng.standard_gamma(self.shape, size)
