"""A logistic prior: normal in the middle, with the tails of a Laplace prior and no kink."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld.priors import LocationScale


@dataclass(eq=False, repr=False)
class Logistic(LocationScale):
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

    def log_standard(self, z):
        return -2.0 * np.logaddexp(0.5 * z, -0.5 * z)

    def standard_slope(self, z):
        return -np.tanh(0.5 * z)

    def standard_curvature(self, z):
        return 0.5 / np.square(np.cosh(0.5 * z))

    def draw_standard(self, rng, shape):
        return rng.logistic(size=shape)

    def standard_quantiles(self, u):
        return np.log(u / (1.0 - u))
