"""The curvature of a generalised linear model as a diagonal and a factor: no P by P matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.posterior.linear_prior import LinearPrior
from skbayes_sgld.posterior.priors.noise import NoisePrior
from skbayes_sgld.posterior.sparse_design import weighted_squares

Array = NDArray[Any]

_NEGLIGIBLE = 1e-8  # share of the rows' curvature added where the prior has none


class _LinearModel(Protocol):
    """The members of a generalised linear model that its curvature is made of."""

    X: Array
    n_samples: int
    n_params: int
    n_predictors: int
    linear_prior: LinearPrior
    noise_prior: NoisePrior | None
    _width: int
    _infers_noise: bool

    def design(self, rows: slice) -> Array: ...
    def _blocks(self) -> Iterator[slice]: ...
    def _weighted_curvature(self, theta: Array, rows: slice) -> Array: ...
    def _linear(self, theta: Array) -> Array: ...
    def _gamma(self, theta: Array) -> Array | None: ...


def curvature_factor(posterior: _LinearModel, theta: Array) -> tuple[Array, Array | None]:
    """Diagonal d and factor F of the curvature ``diag(d) + F^T F`` at one ``theta (P,)``.

    The mixed derivatives of noise variance and coefficients, small at the mode, are left out.

    Parameters
    ----------
    posterior : GLMPosterior
    theta : ndarray of shape (P,)

    Returns
    -------
    diagonal : ndarray of shape (P,)
    factor : ndarray of shape (n, P) or (n + 1, P), or None
        One row per row of X, and one for the intercept's prior. None where it would not pay:
        with more rows than parameters or than 3,000, several linear predictors, or sparse rows.
        ``diagonal`` is then the whole diagonal of the curvature.
    """
    n, P, K, width = (
        posterior.n_samples,
        posterior.n_params,
        posterior.n_predictors,
        posterior._width,
    )
    few = K == 1 and n <= min(P, MAX_DENSE) and not issparse(posterior.X)
    factor = np.zeros((n, P)) if few else None
    seen = np.zeros(P)
    for rows in posterior._blocks():
        design, local = posterior.design(rows), posterior._weighted_curvature(theta, rows)
        for k in range(K):
            seen[k * width : (k + 1) * width] += weighted_squares(design, local[k, k])
        if posterior._infers_noise:
            seen[-1] += local[-1, -1].sum()
        if factor is not None:
            factor[rows, :width] = np.sqrt(local[0, 0])[:, None] * design
    prior = prior_diagonal(posterior, theta)
    if factor is None:
        return seen + prior, None
    if posterior.linear_prior.intercept is not None:  # one more row, for the intercept's prior
        gamma = float(theta[-1]) if posterior._infers_noise else None
        linear = posterior._linear(theta[None])[0]
        direction, curvature, *_ = posterior.linear_prior.of_intercept(linear, gamma)
        prior[:width] -= curvature[0] * np.square(direction)
        factor = np.concatenate([factor, np.zeros((1, P))])
        factor[-1, :width] = np.sqrt(max(curvature[0], 0.0)) * direction
    own = np.maximum(prior, _NEGLIGIBLE * seen)
    if posterior._infers_noise:
        own[-1] = seen[-1] + prior[-1]
    return own, factor


def prior_diagonal(posterior: Any, theta: Array) -> Array:
    """Diagonal of the log prior's curvature ``(P,)`` at one ``theta (P,)``."""
    linear, gamma = posterior._linear(theta[None])[0], posterior._gamma(theta[None])
    g = None if gamma is None else float(gamma[0])
    diagonal, corner = posterior.linear_prior.diagonal(linear, g)
    if g is None:
        return diagonal.ravel()
    assert posterior.noise_prior is not None
    return np.append(diagonal.ravel(), corner + posterior.noise_prior.curvature(g))
