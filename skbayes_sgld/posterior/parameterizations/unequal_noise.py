r"""A linear model with unequal noise, in coordinates in which its coefficients are standard normal.

Given the noise and under normal priors the coefficients are normal, with the mean
:math:`\hat\beta(\eta)` and the precision :math:`A(\eta)`, :math:`\eta` being the parameters of the
noise. The coordinates are :math:`\phi = (z, \eta)` with :math:`\beta = \hat\beta + R z` and
:math:`R R' = A^{-1}`; their log density is

.. math:: \log p(\hat\beta, \eta) - \tfrac12 \log |A| - \tfrac12 z'z.

With few rows per column the noise of some rows may nearly vanish. These rows alone then determine
the coefficients, in a part of the posterior too narrow for any step size that suits the rest. In z
there is no such part.
"""

from __future__ import annotations

import numpy as np

from skbayes_sgld._linalg import inverse_factors, matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.noise_models import LogLinearNoisePosterior
from skbayes_sgld.posterior.parameterizations.base import Map
from skbayes_sgld.posterior.parameterizations.conditional import NormalCoefficients


class NormalGivenUnequalNoise(Map):
    """Map from phi = (z, eta): coefficients standardised given the noise of each row.

    Parameters
    ----------
    posterior : LogLinearNoisePosterior
        Posterior with normal priors of the coefficients.
    """

    def __init__(self, posterior: LogLinearNoisePosterior) -> None:
        self._posterior = posterior
        design, self._noise_design, _ = posterior.mean_and_noise(posterior.start())
        self._design, L = design, design.shape[1]
        self._products = (design[:, :, None] * design[:, None, :]).reshape(-1, L * L)
        self._weight = np.ones(len(design)) if posterior.weight is None else posterior.weight
        if posterior.n_averaged is not None:
            self._weight = self._weight * posterior.n_averaged
        self.origin = np.zeros(L)
        # the prior precision is U + S / sigma^2, sigma being the noise at the centre
        theta = np.zeros(posterior.n_params)
        at_0 = posterior.prior_precision(theta)[:L, :L]
        theta[-1] = 1.0
        at_1 = posterior.prior_precision(theta)[:L, :L]
        self._scaled = (at_0 - at_1) / (1.0 - np.exp(-1.0))
        self._unscaled = at_0 - self._scaled

    def _conditional(self, eta: Array) -> tuple[Array, Array, Array, Array]:
        """Theta at z = 0, the inverse factor of A, its log determinant, and that one's gradient."""
        L = len(self.origin)
        precision = self._weight * np.exp(-matmul_rows(eta, self._noise_design.T))
        A = matmul_rows(precision, self._products).reshape(-1, L, L)
        prior_part = np.exp(-eta[:, -1])[:, None, None] * self._scaled
        A += prior_part
        A += self._unscaled
        inverse, log_det = inverse_factors(A)
        theta = np.concatenate([np.zeros((len(eta), L)), eta], axis=1)
        for _ in range(2):  # the second removes rounding errors
            slope = np.einsum("cij,cj->ci", inverse, self._posterior.grad(theta)[:, :L])
            theta[:, :L] += np.einsum("cij,ci->cj", inverse, slope)
        leverage = precision * np.square(inverse @ self._design.T).sum(axis=1)
        in_eta = 0.5 * matmul_rows(leverage, self._noise_design)
        in_eta[:, -1] += 0.5 * np.einsum("cij,cij->c", inverse @ prior_part, inverse)
        return theta, inverse, log_det, in_eta

    def marginal(self, eta: Array, tau: float) -> tuple[Array, Array]:
        """Log density of eta, the coefficients integrated out, and its gradient.

        At z = 0, where the density is largest in the coefficients, only eta changes it.
        """
        L = len(self.origin)
        with np.errstate(all="ignore"):  # far out, A may not be positive definite in floating point
            theta, _, log_det, in_eta = self._conditional(eta)
            value, slope = self._posterior.value_and_grad(theta)
            value = value + tau * log_det
        return np.where(np.isnan(value), -np.inf, value), slope[:, L:] + tau * in_eta

    def log_marginal(self, eta: Array, tau: float) -> Array:
        """Log density of :meth:`marginal` alone."""
        return self.marginal(eta, tau)[0]

    def forward(self, phi: Array) -> Array:
        """Theta ``(C, P)`` at ``phi (C, P)``."""
        L = len(self.origin)
        theta, inverse, *_ = self._conditional(phi[:, L:])
        theta[:, :L] += np.einsum("cij,ci->cj", inverse, phi[:, :L])
        return theta

    def inverse(self, theta: Array) -> Array:
        """Coordinates phi ``(C, P)`` of ``theta (C, P)``."""
        L = len(self.origin)
        at_zero, inverse, *_ = self._conditional(theta[:, L:])
        deviation = (theta - at_zero)[:, :L]
        z = np.linalg.solve(inverse.swapaxes(1, 2), deviation[..., None])[..., 0]
        return np.concatenate([z, theta[:, L:]], axis=1)


class UnequalNoisePosterior(NormalCoefficients):
    """Posterior of a linear model with unequal noise in coordinates phi = (z, eta).

    Parameters
    ----------
    posterior : LogLinearNoisePosterior
        Posterior with normal priors of the coefficients.
    temperature : float
        Temperature tau of the sampler.
    """

    def __init__(self, posterior: LogLinearNoisePosterior, temperature: float = 1.0) -> None:
        coordinates = NormalGivenUnequalNoise(posterior)
        super().__init__(posterior, coordinates, temperature, bounded_curvature=False)
        self.abilities = self.abilities - {"rows"}  # a marginal density needs all rows

    def start(self) -> Array:
        """Starting point ``(P,)`` of a search for the mode."""
        L = len(self.coordinates.origin)
        return np.append(np.zeros(L), self.inner.start()[L:])
