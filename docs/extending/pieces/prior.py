"""A logistic prior: normal in the middle, with the tails of a Laplace prior and no kink."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld.posterior import CoefficientPrior


@dataclass(eq=False, repr=False)
class Logistic(CoefficientPrior):
    """Logistic prior, density ``sech^2(z / 2) / (4 s)`` with ``z = (beta - location) / s``.

    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.datasets import make_logistic
    >>> X, y = make_logistic(200, random_state=0)
    >>> model = SGLDLogisticRegression(prior=Logistic(scale=0.1), random_state=0)
    >>> narrow = model.fit(X, y).coef_
    >>> wide = model.set_params(prior__scale=5.0).fit(X, y).coef_
    >>> bool(np.all(np.abs(narrow) < np.abs(wide)))
    True
    """

    scale: Any = "auto"  # set from the data, in the units of each column
    location: Any = 0.0

    log_concave = True

    def log_density(self, coef, gamma):
        z = (coef - self.location) / self.scale
        return -2.0 * np.logaddexp(0.5 * z, -0.5 * z).sum(axis=(1, 2))

    def grad(self, coef, gamma):
        z = (coef - self.location) / self.scale
        return -np.tanh(0.5 * z) / self.scale, None

    def curvature(self, coef, gamma):
        z = (coef - self.location) / self.scale
        return 0.5 / np.square(np.cosh(0.5 * z) * self.scale), None, 0.0

    def sample(self, rng, shape, noise_variance):
        return self.location + self.scale * rng.logistic(size=shape)

    def quantiles(self, u, d):
        return np.outer(np.log(u / (1.0 - u)), np.broadcast_to(self.scale, d))
