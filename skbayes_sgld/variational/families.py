"""Variational families: normal distributions as functions of standard normal noise.

Conventions
-----------
``phi (C, R)`` holds the variational parameters of C distributions: the means of the Q variables,
then the parameters of scale. At phi = 0 every family is the standard normal distribution.
``noise (C, B, Q)`` is standard normal. Scales are given by their logarithms, so the entropy is
linear in phi.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import Component, Registry

Array = NDArray[Any]


@dataclass(eq=False, repr=False)
class Family(Component):
    """A family of normal distributions, as functions of standard normal noise."""

    def n_params(self, n_variables: int) -> int:
        """Number R of variational parameters."""
        raise NotImplementedError

    def names(self, variables: Sequence[str]) -> list[str]:
        """Names of the variational parameters, from those of the variables."""
        raise NotImplementedError

    def transform(self, phi: Array, noise: Array) -> Array:
        """Draws ``(C, B, Q)`` by reparameterisation, one for each row of the noise."""
        raise NotImplementedError

    def pull_back(self, phi: Array, noise: Array, grad: Array) -> Array:
        """Gradient in phi ``(C, R)``, summed over draws, given that in the draws ``(C, B, Q)``."""
        raise NotImplementedError

    def log_scales(self, n_variables: int) -> Array:
        """Weights ``(R,)`` with which the entropy is ``phi @ weights + Q log(2 pi e) / 2``."""
        raise NotImplementedError

    def covariance(self, phi: Array) -> Array:
        """Covariance for one ``phi (R,)``: ``(Q, Q)``, or its diagonal ``(Q,)``."""
        raise NotImplementedError

    def averaged(self, phi: Array) -> Array:
        """Statistic of the scale at one ``phi (R,)`` that is averaged over the iterates of a fit.

        On a normal posterior the gradient is nearly linear in variances and in triangular roots,
        so the noise of the iterates does not bias their average.
        """
        return self.covariance(phi)

    def root(self, average: Array) -> Array:
        """Root of the covariance, sds ``(Q,)`` or L ``(Q, Q)``, given that average."""
        return np.sqrt(average)

    def entropy(self, phi: Array, n_variables: int) -> Array:
        """Entropy of the distributions ``(C,)``."""
        constant = 0.5 * n_variables * np.log(2.0 * np.pi * np.e)
        return phi @ self.log_scales(n_variables) + constant


@dataclass(eq=False, repr=False)
class MeanField(Family):
    """Independent normal variables, each with its own mean and standard deviation.

    phi holds the means, then the logarithms of the sds. For a normal posterior of precision Lambda
    the nearest member has the exact mean and the variances ``1 / Lambda_jj``: the conditional
    ones, too small wherever variables are correlated (Bishop 2006, Section 10.1.2).
    """

    def n_params(self, n_variables: int) -> int:
        """``2 Q``: two for each variable."""
        return 2 * n_variables

    def names(self, variables: Sequence[str]) -> list[str]:
        """``mean[x]`` and ``log_sd[x]``."""
        return [f"mean[{v}]" for v in variables] + [f"log_sd[{v}]" for v in variables]

    def transform(self, phi: Array, noise: Array) -> Array:
        """``mean + sd noise``."""
        mean, log_sd = np.split(phi[:, None], 2, axis=2)
        return mean + np.exp(log_sd) * noise

    def pull_back(self, phi: Array, noise: Array, grad: Array) -> Array:
        """Gradient in phi ``(C, R)``."""
        sd = np.exp(phi[:, noise.shape[2] :])
        return np.concatenate([grad.sum(axis=1), sd * (grad * noise).sum(axis=1)], axis=1)

    def log_scales(self, n_variables: int) -> Array:
        """1 for each log sd."""
        return np.repeat([0.0, 1.0], n_variables)

    def covariance(self, phi: Array) -> Array:
        """Variances ``(Q,)``."""
        return np.exp(2.0 * phi[len(phi) // 2 :])


@dataclass(eq=False, repr=False)
class FullRank(Family):
    """Normal variables with any covariance ``L L^T``, L lower triangular.

    phi holds the means, the elements of L below its diagonal row by row, and the logarithms of the
    diagonal: ``Q (Q + 3) / 2`` numbers. The member nearest to a normal posterior is that posterior.
    """

    def n_params(self, n_variables: int) -> int:
        """``Q (Q + 3) / 2``."""
        return n_variables * (n_variables + 3) // 2

    def names(self, variables: Sequence[str]) -> list[str]:
        """``mean[x]``, ``root[x, y]`` below the diagonal and ``log_root[x]`` on it."""
        below = [f"root[{a}, {b}]" for i, a in enumerate(variables) for b in variables[:i]]
        diagonal = [f"log_root[{v}]" for v in variables]
        return [f"mean[{v}]" for v in variables] + below + diagonal

    def triangle(self, phi: Array) -> Array:
        """Lower triangular roots L ``(C, Q, Q)``."""
        n = round(np.sqrt(2.0 * phi.shape[1] + 2.25) - 1.5)
        root = np.zeros((len(phi), n, n))
        i, j = np.tril_indices(n, -1)
        root[:, i, j] = phi[:, n:-n]
        root[:, range(n), range(n)] = np.exp(phi[:, -n:])
        return root

    def transform(self, phi: Array, noise: Array) -> Array:
        """``mean + L noise``."""
        return phi[:, None, : noise.shape[2]] + noise @ self.triangle(phi).swapaxes(1, 2)

    def pull_back(self, phi: Array, noise: Array, grad: Array) -> Array:
        """Gradient in phi ``(C, R)``."""
        n = noise.shape[2]
        outer = grad.swapaxes(1, 2) @ noise
        i, j = np.tril_indices(n, -1)
        diagonal = outer[:, range(n), range(n)] * np.exp(phi[:, -n:])
        return np.concatenate([grad.sum(axis=1), outer[:, i, j], diagonal], axis=1)

    def log_scales(self, n_variables: int) -> Array:
        """1 for each logarithm of L's diagonal."""
        weights = np.zeros(self.n_params(n_variables))
        weights[-n_variables:] = 1.0
        return weights

    def covariance(self, phi: Array) -> Array:
        """``L L^T``."""
        root = self.triangle(phi[None])[0]
        return root @ root.T

    def averaged(self, phi: Array) -> Array:
        """L ``(Q, Q)``."""
        return self.triangle(phi[None])[0]

    def root(self, average: Array) -> Array:
        """L ``(Q, Q)``."""
        return average


@dataclass(eq=False, repr=False)
class Isotropic(Family):
    """Independent normal variables with a common standard deviation.

    phi holds the means and, last, the logarithm of the sd.
    """

    def n_params(self, n_variables: int) -> int:
        """``Q + 1``: one for each variable, and one."""
        return n_variables + 1

    def names(self, variables: Sequence[str]) -> list[str]:
        """``mean[x]`` and ``log_sd``."""
        return [f"mean[{v}]" for v in variables] + ["log_sd"]

    def transform(self, phi: Array, noise: Array) -> Array:
        """``mean + sd noise``."""
        return phi[:, None, :-1] + np.exp(phi[:, None, -1:]) * noise

    def pull_back(self, phi: Array, noise: Array, grad: Array) -> Array:
        """Gradient in phi ``(C, R)``."""
        in_scale = np.exp(phi[:, -1:]) * (grad * noise).sum(axis=(1, 2))[:, None]
        return np.concatenate([grad.sum(axis=1), in_scale], axis=1)

    def log_scales(self, n_variables: int) -> Array:
        """Q for the log sd."""
        weights = np.zeros(n_variables + 1)
        weights[-1] = n_variables
        return weights

    def covariance(self, phi: Array) -> Array:
        """Variances ``(Q,)``."""
        return np.full(len(phi) - 1, np.exp(2.0 * phi[-1]))


FAMILIES: Registry[Family] = Registry(
    Family, mean_field=MeanField, full_rank=FullRank, isotropic=Isotropic
)
