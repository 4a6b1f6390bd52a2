"""Coordinates of a model whose prior has hyperparameters: where they are taken."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from skbayes_sgld.posterior.differences import difference_curvature
from skbayes_sgld.posterior.hierarchical import HierarchicalPosterior
from skbayes_sgld.posterior.parameterizations.base import Reparameterized
from skbayes_sgld.posterior.parameterizations.hyperparameters import noncentered_scales
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning.mode import Mode, find_mode

Array = NDArray[Any]


def standardise(
    posterior: HierarchicalPosterior, temperature: float = 1.0
) -> tuple[Reparameterized, Mode]:
    """Posterior in coordinates about its mode in the hyperparameters, and its mode there.

    Where z = 0 the log density is that of the hyperparameters with the coefficients integrated
    out: exactly under a normal likelihood, otherwise by the Laplace approximation.
    """
    L = posterior.n_linear
    center, eta = np.split(posterior.start(), [L])
    for _ in range(3):  # each expands the likelihood where the last one found the mode
        center = find_mode(posterior.given(eta), center).theta
        found = noncentered_scales(posterior, center, eta, None, 0.0, temperature)
        moved, covariance = _marginal_mode(found, L)
        eta = eta + moved
    power = _power(posterior, center, eta, np.sqrt(covariance[0, 0]))
    found = noncentered_scales(posterior, center, eta, None, power, temperature)
    moved, covariance = _marginal_mode(found, L)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 1e-3 * eigenvalues[-1]))
    found = noncentered_scales(posterior, center, eta + moved, root, power, temperature)
    return found, Mode(np.zeros(found.n_params), Diagonal(np.ones(found.n_params)))


def _power(posterior: HierarchicalPosterior, start: Array, eta: Array, sd: float) -> float:
    """Power of the prior precision that the information of the rows follows, from 0 to 1.

    It is measured at the conditional modes, one sd of the log common scale apart.
    """
    if posterior.model.likelihood.quadratic or not posterior.prior.common:
        return 0.0
    seen: list[float] = []
    for moved in (0.0, sd):
        there = np.append(eta[0] + moved, eta[1:])
        conditional = posterior.given(there)
        mode = find_mode(conditional, start)
        H = conditional.likelihood_curvature(mode.theta)
        if not seen:
            root = mode.metric.root
        seen.append(float(np.log(np.trace(root.T @ H @ root))))
    return float(np.clip(0.5 * (seen[0] - seen[1]) / sd, 0.0, 1.0))


def _marginal_mode(posterior: Reparameterized, n_linear: int) -> tuple[Array, Array]:
    """Mode in the hyperparameters where z = 0, and their covariance by the curvature there."""

    def at(v: Array) -> Array:
        return np.hstack([np.zeros((len(v), n_linear)), v])

    def negative(v: Array) -> tuple[float, Array]:
        value, grad = posterior.value_and_grad(at(v[None]))
        if not np.isfinite(value[0]):
            return np.inf, np.zeros_like(v)
        return -float(value[0]), -grad[0, n_linear:]

    with np.errstate(all="ignore"):
        m = posterior.n_params - n_linear
        found = minimize(negative, np.zeros(m), jac=True, method="L-BFGS-B").x
        H = difference_curvature(lambda v: posterior.grad(at(v))[:, n_linear:], found, 0)
    eigenvalues, vectors = np.linalg.eigh(0.5 * (H + H.T))
    variances = 1.0 / np.maximum(eigenvalues, 3.0**-2)  # no log scale has an sd above 3
    covariance = (vectors * variances) @ vectors.T
    # any coordinates do, and rounding errors of the data are to leave these: the mode to about a
    # hundredth of an sd, and three digits of the covariance
    unit = np.exp2(np.rint(0.5 * np.log2(np.diagonal(covariance))) - 6.0)
    digits = [float(f"{value:.2e}") for value in covariance.flat]
    return unit * np.rint(found / unit), np.reshape(digits, covariance.shape)
