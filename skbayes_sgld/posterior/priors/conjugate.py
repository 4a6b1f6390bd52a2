"""The normal prior in units of the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbayes_sgld.posterior.priors.base import Array, CoefficientPrior
from skbayes_sgld.posterior.priors.normal import Normal


@dataclass(eq=False, repr=False)
class ConjugateNormal(Normal):
    """Normal prior scaled by the noise, ``beta | sigma^2 ~ N(location, sigma^2 V)``.

    With the inverse-gamma noise prior it makes the normal-inverse-gamma model of Karagiannis,
    Handout 6, Section 4, whose posterior is known in closed form.

    Parameters
    ----------
    scale : float, array-like of shape (n_features,) or "auto", default="auto"
        Standard deviation in units of that of the noise: the root of V's diagonal. ``"auto"`` is
        ``10 / sd(x_j)``, the handout's V = 100 I on standardised columns; for a column of two
        values their difference stands for the sd.
    location : float or array-like of shape (n_features,), default=0.0
        The handout's mu.
    covariance : array-like of shape (n_features, n_features) or None, default=None
        The handout's V itself, a covariance matrix in units of the noise variance, in place of
        ``scale``. ``covariance=V`` and ``scale=s`` are the same prior where ``V = diag(s**2)``.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.posterior import ConjugateNormal
    >>> SGLDLinearRegression(prior=ConjugateNormal(scale=3.0))
    SGLDLinearRegression(prior=ConjugateNormal(scale=3.0))
    >>> V = [[100.0, 50.0], [50.0, 100.0]]
    >>> model = SGLDLinearRegression(prior=ConjugateNormal(covariance=V))
    """

    scaled_by_noise = True

    def for_data(self, unit: float, spread: float | Array) -> CoefficientPrior:
        """Prior in which ``scale="auto"`` is 10 over the columns' spread, whatever the unit."""
        return super().for_data(10.0, spread)  # Karagiannis, Handout 6, Section 4: V = 100 I

    def given_noise(self, variance: float) -> CoefficientPrior:
        """Normal prior of sd ``scale * sqrt(variance)``."""
        if self.covariance is not None:
            return Normal(location=self.location, covariance=variance * np.asarray(self.covariance))
        return Normal(np.multiply(self.scale, np.sqrt(variance)), self.location)

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Coefficients ``(K, d)`` drawn from the prior."""
        return self.given_noise(noise_variance).sample(rng, shape, noise_variance)

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """``-d gamma / 2 - exp(-gamma) z'z / 2``."""
        assert gamma is not None
        size = coef.shape[1] * coef.shape[2]
        return np.exp(-gamma) * super().log_density(coef, None) - 0.5 * size * gamma

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Gradient in coefficients and gamma; (4.2) of the handout has the wrong sign of d/2."""
        assert gamma is not None
        precision, size = np.exp(-gamma), coef.shape[1] * coef.shape[2]
        in_gamma = -precision * super().log_density(coef, None) - 0.5 * size
        return precision[:, None, None] * super().grad(coef, None)[0], in_gamma

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Curvature of coefficients and gamma together."""
        assert gamma is not None
        precision = np.exp(-gamma)
        curvature, slope = super().curvature(coef, None)[0], super().grad(coef[None], None)[0][0]
        corner = -precision * float(super().log_density(coef[None], None)[0])
        return precision * curvature, precision * slope, corner
