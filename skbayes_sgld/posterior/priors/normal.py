"""Normal priors, in the units of the coefficients or of the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbayes_sgld.posterior.priors.base import Array, CoefficientPrior


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
