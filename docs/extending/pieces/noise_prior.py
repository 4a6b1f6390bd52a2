"""A log-logistic prior of the noise."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skbayes_sgld.priors import NoisePrior


@dataclass(eq=False, repr=False)
class LogLogistic(NoisePrior):
    """Log-logistic prior: ``gamma = log sigma^2`` is logistic around ``log scale^2``.

    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> prior = LogLogistic(width=0.01, scale=30.0)
    >>> model = SGLDLinearRegression(noise_prior=prior, random_state=0).fit(X, y)
    >>> bool(30**2 < model.noise_variance_ < 2876)  # between the prior and the data
    True
    """

    width: float = 1.0  # scale of gamma
    scale: Any = "auto"  # of sigma, in units of y; "auto" is the standard deviation of y

    def for_data(self, variance):
        return replace(self, scale=np.sqrt(variance)) if self.scale == "auto" else self

    def _tanh(self, gamma):
        return np.tanh(0.5 * (gamma - 2.0 * np.log(self.scale)) / self.width)

    def log_density(self, gamma):
        z = np.abs(gamma - 2.0 * np.log(self.scale)) / self.width
        return -z - 2.0 * np.log1p(np.exp(-z))

    def grad(self, gamma):
        return -self._tanh(gamma) / self.width

    def curvature(self, gamma):
        return 0.5 * (1.0 - self._tanh(gamma) ** 2) / self.width**2

    def sample(self, rng, size):
        return np.square(self.scale) * np.exp(self.width * rng.logistic(size=size))
