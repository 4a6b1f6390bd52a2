"""A log-normal prior of the noise."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skbayes_sgld.posterior import NoisePrior


@dataclass(eq=False, repr=False)
class LogNormal(NoisePrior):
    """Log-normal prior: ``gamma = log sigma^2`` is normal around ``log scale^2``.

    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SGLDLinearRegression(noise_prior=LogNormal(width=0.1, scale=30.0), random_state=0)
    >>> bool(30**2 < model.fit(X, y).noise_variance_ < 2876)  # between the prior and the data
    True
    """

    width: float = 2.0  # standard deviation of gamma
    scale: Any = "auto"  # of sigma, in units of y; "auto" is the standard deviation of y

    def for_data(self, variance):
        return replace(self, scale=np.sqrt(variance)) if self.scale == "auto" else self

    def _z(self, gamma):
        return (gamma - 2.0 * np.log(self.scale)) / self.width

    def log_density(self, gamma):
        return -0.5 * np.square(self._z(gamma))

    def grad(self, gamma):
        return -self._z(gamma) / self.width

    def curvature(self, gamma):
        return self.width**-2.0

    def sample(self, rng, size):
        return np.square(self.scale) * np.exp(self.width * rng.standard_normal(size))
