"""Priors on the coefficients.

Conventions
-----------
``coef`` is ``(C, K, d)``: chains, linear predictors (one, or one a class), columns of X.
``gamma`` is ``(C,)``, the log noise variance, or None where the model has no noise to infer.
The priors act on the coefficients of the X that the model sees, as the penalty of ``Ridge``
does; the intercept is not theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from skbayes_sgld._components import Component, Registry, check_array_or_number

Array = NDArray[np.float64]


class CoefficientPrior(Component):
    """A density on the coefficients, independent from column to column."""

    proper = True
    normal = False  # given the noise
    scaled_by_noise = False
    kinked = False  # somewhere its gradient jumps

    def check(self, n_features: int | None = None) -> None:
        """Raise where a parameter is out of range or not one number a column of X."""
        for name in self.get_params():
            value = getattr(self, name)
            check_array_or_number(value, f"prior.{name}", n_features, positive=name == "scale")

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """Return the log density up to a constant ``(C,)``."""
        raise NotImplementedError

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Return the gradient in the coefficients ``(C, K, d)`` and in gamma ``(C,)``."""
        raise NotImplementedError

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Return minus the Hessian at one ``coef (K, d)``.

        Returns
        -------
        diagonal : ndarray of shape (K, d)
        cross : ndarray of shape (K, d) or None
            With gamma.
        corner : float
            Of gamma with itself.
        """
        raise NotImplementedError

    def given_noise(self, variance: float) -> CoefficientPrior:
        """Return the prior where the noise variance is known."""
        return self

    def smoothed(self, spread: Array | None) -> CoefficientPrior:
        """Return the prior averaged over normal errors of sd ``spread (K, d)``.

        The curvature of a prior with a kink says nothing at a point; averaged over the width of
        the posterior it does. None stands for the width of the prior itself. A smooth prior is
        its own average to the order that matters.
        """
        return self


@dataclass(eq=False, repr=False)
class Normal(CoefficientPrior):
    """Independent normal prior, ``beta_j ~ N(location_j, scale_j^2)``.

    Parameters
    ----------
    scale : float or array-like of shape (n_features,), default=1.0
        Standard deviation, in the units of the coefficients. At 1 the posterior mode of a
        logistic model is the fit of ``sklearn.linear_model.LogisticRegression(C=1)``.
    location : float or array-like of shape (n_features,), default=0.0
        Mean.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.posterior import Normal
    >>> SGLDLogisticRegression(prior=Normal(scale=2.5))
    SGLDLogisticRegression(prior=Normal(scale=2.5))
    """

    scale: float | Array = 1.0
    location: float | Array = 0.0
    normal = True

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """Return ``-sum (beta - mu)^2 / (2 s^2)``."""
        z = (coef - self.location) / self.scale
        return -0.5 * np.square(z).sum(axis=(1, 2))

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Return ``-(beta - mu) / s^2``; gamma does not enter."""
        return (self.location - coef) * np.divide(1.0, np.square(self.scale)), None

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Return ``1 / s^2``."""
        return np.broadcast_to(np.divide(1.0, np.square(self.scale)), coef.shape), None, 0.0


@dataclass(eq=False, repr=False)
class ConjugateNormal(CoefficientPrior):
    """Normal prior scaled by the noise, ``beta_j | sigma^2 ~ N(location_j, sigma^2 scale_j^2)``.

    With the inverse-gamma noise prior it makes the normal-inverse-gamma model of Karagiannis,
    Handout 6, Section 4, whose posterior is known in closed form.

    Parameters
    ----------
    scale : float or array-like of shape (n_features,), default=10.0
        Standard deviation in units of the noise's; 10 is the handout's V = 100 I.
    location : float or array-like of shape (n_features,), default=0.0
        Mean.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.posterior import ConjugateNormal
    >>> SGLDLinearRegression(prior=ConjugateNormal(scale=3.0))
    SGLDLinearRegression(prior=ConjugateNormal(scale=3.0))
    """

    scale: float | Array = 10.0
    location: float | Array = 0.0

    normal = True
    scaled_by_noise = True

    def given_noise(self, variance: float) -> CoefficientPrior:
        """Return the normal prior of sd ``scale * sqrt(variance)``."""
        return Normal(np.multiply(self.scale, np.sqrt(variance)), self.location)

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """Return ``-d gamma / 2 - exp(-gamma) sum (beta - mu)^2 / (2 s^2)``."""
        assert gamma is not None
        z = (coef - self.location) / self.scale
        size = coef.shape[1] * coef.shape[2]
        return -0.5 * (size * gamma + np.exp(-gamma) * np.square(z).sum(axis=(1, 2)))

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Return the gradient; the handout's (4.2) has the sign of d/2 in gamma reversed."""
        assert gamma is not None
        precision = np.exp(-gamma)
        z = (coef - self.location) / self.scale
        size = coef.shape[1] * coef.shape[2]
        in_gamma = 0.5 * (precision * np.square(z).sum(axis=(1, 2)) - size)
        return -z / self.scale * precision[:, None, None], in_gamma

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Return the curvature of coefficients and gamma together."""
        assert gamma is not None
        precision = np.exp(-gamma)
        z = (coef - self.location) / self.scale
        diagonal = np.broadcast_to(precision / np.square(self.scale), coef.shape)
        return diagonal, -precision * z / self.scale, float(0.5 * precision * np.square(z).sum())


@dataclass(eq=False, repr=False)
class Laplace(CoefficientPrior):
    """Laplace (double exponential) prior, density ``exp(-|beta_j - location_j| / b_j) / (2 b_j)``.

    Parameters
    ----------
    scale : float or array-like of shape (n_features,), default=1.0
        b; the standard deviation is ``sqrt(2) b``. 1 is the setting of Welling & Teh (2011).
    location : float or array-like of shape (n_features,), default=0.0
        Median.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.posterior import Laplace
    >>> SGLDLinearRegression(prior=Laplace(scale=0.5))
    SGLDLinearRegression(prior=Laplace(scale=0.5))
    """

    scale: float | Array = 1.0
    location: float | Array = 0.0

    kinked = True

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """Return ``-sum |beta - mu| / b``."""
        return -np.abs((coef - self.location) / self.scale).sum(axis=(1, 2))

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Return the subgradient ``-sign(beta - mu) / b``, 0 at the kink."""
        return -np.sign(coef - self.location) / self.scale, None

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Return zeros: there is no curvature away from the kink; see :meth:`smoothed`."""
        return np.zeros_like(coef), None, 0.0

    def smoothed(self, spread: Array | None) -> CoefficientPrior:
        """Return the average over normal errors, in closed form."""
        prior = _SmoothedLaplace(self.scale, self.location)
        prior.spread = np.sqrt(2.0) * np.asarray(self.scale) if spread is None else spread
        return prior


class _SmoothedLaplace(Laplace):
    """The Laplace log density averaged over normal errors: the folded normal's mean."""

    spread: Array

    def _standardised(self, coef: Array) -> tuple[Array, Array]:
        z = (coef - self.location) / self.spread
        return z, np.exp(-0.5 * np.square(z)) * np.sqrt(2.0 / np.pi)

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        z, bump = self._standardised(coef)
        folded = self.spread * (bump + z * erf(z / np.sqrt(2.0)))
        return -(folded / self.scale).sum(axis=(1, 2))

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        z, _ = self._standardised(coef)
        return -erf(z / np.sqrt(2.0)) / self.scale, None

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        _, bump = self._standardised(coef)
        return bump / (self.spread * self.scale), None, 0.0


@dataclass(eq=False, repr=False)
class Flat(CoefficientPrior):
    """Flat (improper) prior: the likelihood alone speaks.

    The posterior is proper only where the data determine every coefficient: more rows than
    columns, no constant column beside an intercept, classes that no plane separates.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> SGLDLinearRegression(prior="flat", noise_prior="flat")
    SGLDLinearRegression(noise_prior='flat', prior='flat')
    """

    proper = False
    normal = True  # the limit of ever wider normal priors

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """Return zeros."""
        return np.zeros(coef.shape[0])

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Return zeros."""
        return np.zeros_like(coef), None

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Return zeros."""
        return np.zeros_like(coef), None, 0.0


PRIORS: Registry[CoefficientPrior] = Registry(
    CoefficientPrior,
    normal=Normal,
    conjugate_normal=ConjugateNormal,
    laplace=Laplace,
    flat=Flat,
)
