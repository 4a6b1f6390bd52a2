r"""A linear model with unequal noise, in coordinates in which its coefficients are standard normal.

Given the noise and under normal priors the coefficients are normal, with the mean
:math:`\hat\beta(\eta)` and the precision :math:`A(\eta)`, :math:`\eta` being the parameters of the
noise. The coordinates are :math:`\phi = (z, \eta)` with :math:`\beta = \hat\beta + R z` and
:math:`R R' = A^{-1}`; their log density is

.. math:: \log p(\hat\beta, \eta) - \tfrac12 \log |A| - \tfrac12 z'z.

With few rows a column the noise of some rows may nearly vanish. The coefficients are then held by
these rows alone, in a part of the posterior too narrow for any step that suits the rest; in z there
is no such part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld.posterior.log_linear_noise import LogLinearNoisePosterior
from skbayes_sgld.posterior.parameterizations.base import Reparameterized
from skbayes_sgld.posterior.parameterizations.conditional import _cholesky

Array = NDArray[Any]

_BLOCK = 256  # draws whose coefficients are found at a time


class UnequalNoisePosterior(Reparameterized):
    """The posterior of a linear model with unequal noise in coordinates phi = (z, eta).

    Parameters
    ----------
    posterior : LogLinearNoisePosterior
        Under normal priors of the coefficients.
    temperature : float
        Temperature tau that the sampler is to use: the log Jacobian is multiplied by it.
    """

    bounded_curvature = False

    def __init__(self, posterior: LogLinearNoisePosterior, temperature: float = 1.0) -> None:
        super().__init__(posterior, temperature)
        design, self._noise_design, _ = posterior.mean_and_noise(posterior.start())
        self._design, L = design, design.shape[1]
        self._n_linear = L
        self._products = (design[:, :, None] * design[:, None, :]).reshape(-1, L * L)
        weight = posterior.weight
        self._weight = np.ones(len(design)) if weight is None else weight
        # the prior precision is U + S / sigma^2, sigma being the noise at the centre
        theta = np.zeros(self.n_params)
        at_0 = posterior.prior_precision(theta)[:L, :L]
        theta[-1] = 1.0
        at_1 = posterior.prior_precision(theta)[:L, :L]
        self._scaled = (at_0 - at_1) / (1.0 - np.exp(-1.0))
        self._unscaled = at_0 - self._scaled

    def _given(self, eta: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Theta at z = 0, the inverse factor of A, log |A|, leverages, and S's share."""
        L = self._n_linear
        known = self._weight * np.exp(-matmul_rows(eta, self._noise_design.T))
        A = matmul_rows(known, self._products).reshape(-1, L, L)
        of_prior = np.exp(-eta[:, -1])[:, None, None] * self._scaled
        A += of_prior
        A += self._unscaled
        unit = 1.0 / np.sqrt(np.einsum("cii->ci", A))  # columns in units of their own
        lower = _cholesky(A * unit[:, :, None] * unit[:, None, :])
        inverse = np.linalg.inv(lower) * unit[:, None, :]
        log_det = 2.0 * (np.log(np.einsum("cii->ci", lower)) - np.log(unit)).sum(axis=1)
        theta = np.concatenate([np.zeros((len(eta), L)), eta], axis=1)
        for _ in range(2):  # the second leaves no rounding error
            slope = np.einsum("cij,cj->ci", inverse, self.inner.grad(theta)[:, :L])
            theta[:, :L] += np.einsum("cij,ci->cj", inverse, slope)
        leverage = known * np.square(inverse @ self._design.T).sum(axis=1)
        share = np.einsum("cij,cij->c", inverse @ of_prior, inverse)
        return theta, inverse, log_det, leverage, share

    def value_and_grad(self, phi: Array) -> tuple[Array, Array]:
        """Log posterior density of phi up to a constant ``(C,)``, and its gradient ``(C, P)``."""
        L, tau = self._n_linear, self._temperature
        z = phi[:, :L]
        with np.errstate(all="ignore"):  # far out A may not be positive definite in floating point
            theta, _, log_det, leverage, share = self._given(phi[:, L:])
            value, slope = self.inner.value_and_grad(theta)
            value = value - 0.5 * tau * log_det - 0.5 * np.einsum("cj,cj->c", z, z)
            grad = np.concatenate([-z, slope[:, L:]], axis=1)
            grad[:, L:] += 0.5 * tau * matmul_rows(leverage, self._noise_design)
            grad[:, -1] += 0.5 * tau * share
        return np.where(np.isnan(value), -np.inf, value), grad

    def log_density(self, phi: Array) -> Array:
        """Log posterior density of phi up to a constant ``(C,)``."""
        return self.value_and_grad(phi)[0]

    def grad(self, phi: Array) -> Array:
        """Gradient of the log posterior ``(C, P)``."""
        return self.value_and_grad(phi)[1]

    def to_theta(self, phi: Array) -> Array:
        """Theta ``(C, P)`` at ``phi (C, P)``."""
        theta, inverse, *_ = self._given(phi[:, self._n_linear :])
        theta[:, : self._n_linear] += np.einsum("cij,ci->cj", inverse, phi[:, : self._n_linear])
        return theta

    def from_theta(self, theta: Array) -> Array:
        """Coordinates phi ``(C, P)`` of ``theta (C, P)``."""
        L = self._n_linear
        at_zero, inverse, *_ = self._given(theta[:, L:])
        moved = (theta - at_zero)[:, :L]
        z = np.linalg.solve(inverse.swapaxes(1, 2), moved[..., None])[..., 0]
        return np.concatenate([z, theta[:, L:]], axis=1)

    def constrain(self, phi: Array) -> Array:
        """Reported parameters ``(C, P)`` at phi."""
        parts = [phi[first : first + _BLOCK] for first in range(0, len(phi), _BLOCK)]
        return self.inner.constrain(np.concatenate([self.to_theta(part) for part in parts]))

    def start(self) -> Array:
        """Start ``(P,)`` of a search for the mode."""
        return np.append(np.zeros(self._n_linear), self.inner.start()[self._n_linear :])
