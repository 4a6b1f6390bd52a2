"""Variational families: distributions as functions of standard normal noise.

Conventions
-----------
``phi (C, R)`` holds the variational parameters of C distributions: the locations of the Q
variables, then the logarithms of scales. ``noise (C, B, Q)`` is standard normal. At phi = 0 every
normal family is the standard normal distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import (
    digamma,
    gammainccinv,
    gammaincinv,
    gammaln,
    log_ndtr,
    ndtr,
    polygamma,
)

from skbayes_sgld._components import Component, Registry
from skbayes_sgld._typing import Array


@dataclass(eq=False, repr=False)
class Family(Component):
    """A family of distributions, as functions of standard normal noise.

    The methods that have a body are right for normal distributions.
    """

    def n_params(self, n_variables: int) -> int:
        """Number R of variational parameters."""
        return len(self.log_scales(n_variables))

    def names(self, variables: Sequence[str]) -> list[str]:
        """Names of the variational parameters, made from the names of the variables."""
        raise self._undefined("names")

    def transform(self, phi: Array, noise: Array) -> Array:
        """Draws ``(C, B, Q)`` by reparameterisation, one for each row of the noise."""
        raise self._undefined("transform")

    def pull_back(self, phi: Array, noise: Array, grad: Array) -> Array:
        """Gradient in phi ``(C, R)``, summed over draws, from that in the draws ``(C, B, Q)``."""
        raise self._undefined("pull_back")

    def log_scales(self, n_variables: int) -> Array:
        """Derivatives ``(R,)`` of the entropy of normal variables in phi.

        The entropy is ``phi @ weights + Q log(2 pi e) / 2``; only logarithms of scales have weights
        other than 0. By default Q locations come first, then the logarithms of Q scales.
        """
        return np.repeat([0.0, 1.0], n_variables)

    def covariance(self, phi: Array) -> Array:
        """Covariance for one ``phi (R,)``: ``(Q, Q)``, or its diagonal ``(Q,)``."""
        raise self._undefined("covariance")

    def mean(self, phi: Array, n_variables: int) -> Array:
        """Mean ``(Q,)`` for one ``phi (R,)``."""
        return phi[:n_variables]

    def begin(self, unit: Array) -> tuple[Array, Array]:
        """Starting parameters ``(R,)`` for sds ``unit (Q,)``, and the units of the variables.

        Rescaled normal variables are normal. A family without this property starts at these sds, in
        units of 1.
        """
        return np.zeros(self.n_params(len(unit))), unit

    def entropy(self, phi: Array, n_variables: int) -> Array:
        """Entropy of the distributions ``(C,)``."""
        constant = 0.5 * n_variables * np.log(2.0 * np.pi * np.e)
        return phi @ self.log_scales(n_variables) + constant

    def grad_entropy(self, phi: Array, n_variables: int) -> Array:
        """Gradient of the entropy in phi ``(C, R)``."""
        return np.tile(self.log_scales(n_variables), (len(phi), 1))


@dataclass(eq=False, repr=False)
class MeanField(Family):
    """Independent normal variables, each with its own mean and standard deviation.

    phi holds the means, then the logarithms of the sds. For a normal posterior of precision Lambda
    the nearest member has the exact mean and the variances ``1 / Lambda_jj``: the conditional
    ones, too small if variables are correlated (Bishop 2006, Section 10.1.2).
    """

    def names(self, variables: Sequence[str]) -> list[str]:
        """``mean[x]`` and ``log_sd[x]``."""
        return [f"mean[{v}]" for v in variables] + [f"log_sd[{v}]" for v in variables]

    def transform(self, phi: Array, noise: Array) -> Array:
        """``mean + sd noise``."""
        n = noise.shape[2]
        return phi[:, None, :n] + np.exp(phi[:, None, n:]) * noise

    def pull_back(self, phi: Array, noise: Array, grad: Array) -> Array:
        """Gradient in phi ``(C, R)``."""
        sd = np.exp(phi[:, noise.shape[2] :])
        return np.concatenate([grad.sum(axis=1), sd * (grad * noise).sum(axis=1)], axis=1)

    def covariance(self, phi: Array) -> Array:
        """Variances ``(Q,)``."""
        return np.exp(2.0 * phi[len(phi) // 2 :])


@dataclass(eq=False, repr=False)
class FullRank(Family):
    """Normal variables with any covariance ``L L^T``, L lower triangular.

    phi holds the means, the elements of L below its diagonal row by row, and the logarithms of the
    diagonal: ``Q (Q + 3) / 2`` numbers. A normal posterior is a member of this family.
    """

    def names(self, variables: Sequence[str]) -> list[str]:
        """``mean[x]``, ``root[x, y]`` below the diagonal and ``log_root[x]`` on it."""
        below = [f"root[{a}, {b}]" for i, a in enumerate(variables) for b in variables[:i]]
        diagonal = [f"log_root[{v}]" for v in variables]
        return [f"mean[{v}]" for v in variables] + below + diagonal

    def triangle(self, phi: Array) -> Array:
        """Lower triangular roots L ``(C, Q, Q)``."""
        n = round(np.sqrt(2.0 * phi.shape[1] + 2.25) - 1.5)  # Q (Q + 3) / 2 parameters
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
        weights = np.zeros(n_variables * (n_variables + 3) // 2)
        weights[-n_variables:] = 1.0
        return weights

    def covariance(self, phi: Array) -> Array:
        """``L L^T``."""
        root = self.triangle(phi[None])[0]
        return root @ root.T


@dataclass(eq=False, repr=False)
class Isotropic(MeanField):
    """Independent normal variables with a common standard deviation.

    phi holds the means and, last, the logarithm of the sd.
    """

    def names(self, variables: Sequence[str]) -> list[str]:
        """``mean[x]`` and ``log_sd``."""
        return [f"mean[{v}]" for v in variables] + ["log_sd"]

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


@dataclass(eq=False, repr=False)
class GammaFamily(Family):
    r"""Logarithms of independent gamma variables, for parameters that are positive.

    The variable is the logarithm of a positive parameter x, as the package samples it; x has a
    gamma distribution. phi holds the logarithms of the means of x, then those of its coefficients
    of variation (sd over mean). The inverse square of the latter is the shape a of the gamma
    distribution. A coefficient of variation of 1 gives the exponential distribution, ``x = mean *
    e`` with e standard exponential (B. Keng, "Bayesian Learning via Stochastic Gradient Langevin
    Dynamics and Bayes by Backprop", eq. 33); far below 1 the family is close to :class:`MeanField`.
    Draws are gamma quantiles at the levels of normal noise; their gradient in a is taken by
    differences.

    Under a gamma prior, the posterior of a Poisson rate is a member of this family, and so is that
    of the precision of normal observations.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.own_models import FunctionPosterior
    >>> from skbayes_sgld.variational import BayesByBackprop
    >>> rate = FunctionPosterior(  # log of a rate with the posterior Gamma(3, rate=2)
    ...     lambda t: (3.0 * t - 2.0 * np.exp(t)).sum(1), lambda t: 3.0 - 2.0 * np.exp(t), 1
    ... )
    >>> q = BayesByBackprop(family="gamma", random_state=0).fit(rate)
    >>> float(np.exp(q.sample(100_000, random_state=0)).mean().round(1))
    1.5
    """

    def names(self, variables: Sequence[str]) -> list[str]:
        """``log_mean_exp[x]`` and ``log_cv_exp[x]``, of the exponential of a variable."""
        return [f"log_mean_exp[{v}]" for v in variables] + [f"log_cv_exp[{v}]" for v in variables]

    def transform(self, phi: Array, noise: Array) -> Array:
        """``log mean + log(G / a)``, with G the quantile of shape a and rate 1 at the noise."""
        log_mean, log_cv = np.split(phi[:, None], 2, axis=2)
        return log_mean + _log_ratio(log_cv, noise)

    def pull_back(self, phi: Array, noise: Array, grad: Array) -> Array:
        """Gradient in phi ``(C, R)``."""
        log_cv = phi[:, None, noise.shape[2] :]
        change = _log_ratio(log_cv + _STEP, noise) - _log_ratio(log_cv - _STEP, noise)
        in_cv = (grad * change).sum(axis=1) / (2.0 * _STEP)
        return np.concatenate([grad.sum(axis=1), in_cv], axis=1)

    def entropy(self, phi: Array, n_variables: int) -> Array:
        """``log Gamma(a) - a digamma(a) + a``, summed over the variables."""
        shape = np.exp(-2.0 * phi[:, n_variables:])
        return (gammaln(shape) - shape * digamma(shape) + shape).sum(axis=1)

    def grad_entropy(self, phi: Array, n_variables: int) -> Array:
        """``2 a (a trigamma(a) - 1)`` for each log coefficient of variation."""
        shape = np.exp(-2.0 * phi[:, n_variables:])
        in_cv = 2.0 * shape * (shape * polygamma(1, shape) - 1.0)
        return np.concatenate([np.zeros_like(in_cv), in_cv], axis=1)

    def mean(self, phi: Array, n_variables: int) -> Array:
        """``log mean + digamma(a) - log a``."""
        shape = np.exp(-2.0 * phi[n_variables:])
        return phi[:n_variables] + digamma(shape) - np.log(shape)

    def covariance(self, phi: Array) -> Array:
        """``trigamma(a)`` ``(Q,)``."""
        return polygamma(1, np.exp(-2.0 * phi[len(phi) // 2 :]))

    def begin(self, unit: Array) -> tuple[Array, Array]:
        """Coefficients of variation of ``unit``, as powers of gamma variables have no gamma law."""
        return np.concatenate([np.zeros(len(unit)), np.log(unit)]), np.ones(len(unit))


_STEP = 1e-4  # step of the differences, in a log coefficient of variation
_LEAST = 1e-290  # quantile below which the log is that of the first term of its series


def _log_ratio(log_cv: Array, noise: Array) -> Array:
    """Log quantiles ``log(G / a)`` of gamma variables of mean 1, at the levels of the noise."""
    shape = np.exp(-2.0 * log_cv)
    below = gammaincinv(shape, ndtr(np.minimum(noise, 0.0)))
    above = gammainccinv(shape, ndtr(-np.maximum(noise, 0.0)))  # precise if levels are close to 1
    quantile = np.where(noise < 0.0, below, above)
    small = (log_ndtr(noise) + gammaln(shape + 1.0)) / shape
    log_quantile = np.where(quantile > _LEAST, np.log(np.maximum(quantile, _LEAST)), small)
    return log_quantile - np.log(shape)


FAMILIES: Registry[Family] = Registry(
    Family, mean_field=MeanField, full_rank=FullRank, isotropic=Isotropic, gamma=GammaFamily
)
