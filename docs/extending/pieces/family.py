"""Independent Laplace variables as variational family."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from skbayes_sgld.variational import Family


@dataclass(eq=False, repr=False)
class LaplaceFamily(Family):
    """Independent Laplace variables; phi holds the medians, then the logarithms of the scales.

    >>> from skbayes_sgld.likelihoods import Bernoulli
    >>> from skbayes_sgld.posterior import GLMPosterior
    >>> from skbayes_sgld.priors import Normal
    >>> from skbayes_sgld.datasets import make_logistic
    >>> from skbayes_sgld.variational import BayesByBackprop
    >>> X, y = make_logistic(500, random_state=0)
    >>> posterior = GLMPosterior(X, y.astype(float), Bernoulli(), Normal(scale=2.0))
    >>> fit = BayesByBackprop(family=LaplaceFamily(), random_state=0).fit(posterior)
    >>> fit.sample(10, random_state=0).shape
    (10, 3)
    """

    def n_params(self, n_variables):
        return 2 * n_variables

    def names(self, variables):
        return [f"median[{v}]" for v in variables] + [f"log_scale[{v}]" for v in variables]

    def _standard(self, noise):
        """Laplace variables, as a function of normal ones."""
        return -np.sign(noise) * (np.log(2.0) + log_ndtr(-np.abs(noise)))

    def transform(self, phi, noise):
        median, log_scale = np.split(phi[:, None], 2, axis=2)
        return median + np.exp(log_scale) * self._standard(noise)

    def pull_back(self, phi, noise, grad):
        scale = np.exp(phi[:, noise.shape[2] :])
        of_scale = scale * (grad * self._standard(noise)).sum(axis=1)
        return np.concatenate([grad.sum(axis=1), of_scale], axis=1)

    def log_scales(self, n_variables):
        return np.repeat([0.0, 1.0], n_variables)

    def entropy(self, phi, n_variables):
        return phi @ self.log_scales(n_variables) + n_variables * (1.0 + np.log(2.0))

    def covariance(self, phi):
        return 2.0 * np.exp(2.0 * phi[len(phi) // 2 :])
