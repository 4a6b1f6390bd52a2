"""Priors on the noise of a linear model, as densities of ``gamma = log sigma^2``.

Every density includes the Jacobian of the transformation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import Component, Registry, check_number

Array = NDArray[np.float64]


class NoisePrior(Component):
    """A density on the noise variance."""

    proper = True

    def for_data(self, variance: float) -> NoisePrior:
        """Return the prior with every ``"auto"`` set from the variance of y."""
        return self

    def log_density(self, gamma: Array) -> Array:
        """Return the log density of gamma up to a constant ``(C,)``."""
        raise NotImplementedError

    def grad(self, gamma: Array) -> Array:
        """Return its derivative ``(C,)``."""
        raise NotImplementedError

    def curvature(self, gamma: float) -> float:
        """Return minus its second derivative at one gamma."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class InverseGamma(NoisePrior):
    """Inverse gamma prior, ``sigma^2 ~ IG(shape, scale)`` (Karagiannis, Handout 6, Section 4).

    Density of sigma^2: proportional to ``x^(-shape - 1) exp(-scale / x)``.

    Parameters
    ----------
    shape : float, default=1e-3
        phi; the prior weighs as much as ``2 shape`` observations. At 0.001 the data decide.
    scale : float or "auto", default="auto"
        psi, in squared units of y. ``"auto"`` is ``shape`` times the variance of y, so that the
        answer does not change with the units of y.

    Examples
    --------
    The handout's prior:

    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.posterior import InverseGamma
    >>> SGLDLinearRegression(noise_prior=InverseGamma(shape=1.0, scale=1.0))
    SGLDLinearRegression(noise_prior=InverseGamma(scale=1.0, shape=1.0))
    """

    shape: float = 1e-3
    scale: Any = "auto"

    def check(self) -> None:
        """Raise where shape or scale is not positive."""
        check_number(self.shape, "noise_prior.shape", low=0)
        if not (isinstance(self.scale, str) and self.scale == "auto"):
            check_number(self.scale, "noise_prior.scale", low=0)

    def for_data(self, variance: float) -> InverseGamma:
        """Return the prior with ``scale="auto"`` set to ``shape * variance``."""
        scale = self.shape * variance if self.scale == "auto" else self.scale
        return InverseGamma(self.shape, scale)

    def log_density(self, gamma: Array) -> Array:
        """Return ``-phi gamma - psi exp(-gamma)``."""
        return -self.shape * gamma - self.scale * np.exp(-gamma)

    def grad(self, gamma: Array) -> Array:
        """Return ``-phi + psi exp(-gamma)``."""
        return -self.shape + self.scale * np.exp(-gamma)

    def curvature(self, gamma: float) -> float:
        """Return ``psi exp(-gamma)``."""
        return float(self.scale * np.exp(-gamma))


@dataclass(eq=False, repr=False)
class FlatNoise(NoisePrior):
    """Flat (improper) prior on the standard deviation sigma.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> SGLDLinearRegression(noise_prior="flat")
    SGLDLinearRegression(noise_prior='flat')
    """

    proper = False

    def log_density(self, gamma: Array) -> Array:
        """Return ``gamma / 2``, the Jacobian d sigma / d gamma."""
        return 0.5 * gamma

    def grad(self, gamma: Array) -> Array:
        """Return one half."""
        return np.full_like(gamma, 0.5)

    def curvature(self, gamma: float) -> float:
        """Return zero."""
        return 0.0


NOISE_PRIORS: Registry[NoisePrior] = Registry(
    NoisePrior,
    inverse_gamma=InverseGamma,
    flat=FlatNoise,
)
