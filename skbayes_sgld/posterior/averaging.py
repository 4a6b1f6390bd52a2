"""The normal distribution nearest to a posterior whose rows are averaged over it.

With few rows per parameter, the bulk of a classifier's posterior lies far from its mode: at the
mode most rows are classified with certainty, and the curvature comes from the few that are not. The
normal distribution nearest to the posterior in expectation (Opper & Archambeau 2009, eq. 8 and 9)
has its mean where the averaged gradient vanishes, and the averaged curvature as its precision.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from skbayes_sgld._linalg import in_threads, one_blas_thread, sum_in_threads
from skbayes_sgld.posterior.likelihoods import Likelihood
from skbayes_sgld.posterior.priors import CoefficientPrior
from skbayes_sgld.posterior.sparse_design import as_array, weighted_gram

Array = NDArray[Any]

_MANY, _FEW_ROWS = 300, 5  # parameters at least, and rows per parameter at most, to average
_ROUNDS = 20
_DAMPING = 0.5, 0.7  # factors on the log variances' change: the first rounds overshoot most
_CHANGE = 0.15  # tolerance of a log variance, and of the mean in sds: enough for a metric


class _LinearModel(Protocol):
    """The members of a generalised linear model that averaging uses."""

    n_samples: int
    n_features: int
    n_params: int
    y: Array
    weight: Array | None
    likelihood: Likelihood

    @property
    def prior(self) -> CoefficientPrior: ...
    def design(self, rows: slice) -> Array: ...
    def gram_parts(self) -> list[list[slice]]: ...
    def curvature(self, theta: Array) -> Array: ...
    def grad_log_prior(self, theta: Array) -> Array: ...
    def add_prior_curvature(self, H: Array, theta: Array) -> None: ...


def averaged_normal(
    posterior: _LinearModel, theta: Array, temperature: float
) -> tuple[Array, Array] | None:
    """Mean and precision of the normal distribution nearest in expectation.

    Parameters
    ----------
    posterior : GLMPosterior
    theta : ndarray of shape (P,)
        Mode of the posterior, from which the rounds begin.
    temperature : float

    Returns
    -------
    normal : tuple of ndarrays of shape (P,) and (P, P), or None
        Mean, and precision at temperature 1. None where the curvature at the mode serves as well
        (few parameters, or many rows per parameter) and where the rounds do not converge.
    """
    few = theta.size >= _MANY and posterior.n_samples < _FEW_ROWS * theta.size
    if not (few and posterior.likelihood.averages) or posterior.prior.nonsmooth:
        return None
    with one_blas_thread():
        return _search(posterior, theta, temperature)


def _search(
    posterior: _LinearModel, theta: Array, temperature: float
) -> tuple[Array, Array] | None:
    try:
        lower = linalg.cholesky(posterior.curvature(theta), lower=True, check_finite=False)
        variances = _row_variances(posterior, lower) * temperature
        for number in range(_ROUNDS):
            grad, H = _averaged(posterior, theta, variances)
            lower = linalg.cholesky(H, lower=True, check_finite=False)
            step = linalg.cho_solve((lower, True), grad, check_finite=False)
            moves = np.log(_row_variances(posterior, lower) * temperature / variances)
            theta = theta + step
            variances = variances * np.exp(_DAMPING[number > 3] * moves)
            far = float(grad @ step) > _CHANGE**2 * theta.size * temperature
            if not far and np.abs(moves).max() < _CHANGE:
                return theta, H
    except linalg.LinAlgError:
        pass
    return None


def _row_variances(posterior: _LinearModel, lower: Array) -> Array:
    """Variance of each row's predictor where the precision of theta is ``lower lower^T``."""

    def of_rows(blocks: list[slice]) -> Array:
        found = []
        for rows in blocks:
            design = as_array(posterior.design(rows))
            seen = linalg.solve_triangular(lower, design.T, lower=True, check_finite=False)
            found.append(np.einsum("pn,pn->n", seen, seen))
        return np.concatenate(found)

    return np.concatenate(in_threads(of_rows, posterior.gram_parts()))


def _averaged(posterior: _LinearModel, theta: Array, variances: Array) -> tuple[Array, Array]:
    """Gradient and curvature of the log posterior, averaged over the rows' predictors."""
    # the gradient as a last row: both are sums over the same rows
    sums = sum_in_threads(partial(_sums, posterior, theta, variances), posterior.gram_parts())
    grad, H = sums[-1], sums[:-1]
    posterior.add_prior_curvature(H, theta)
    return grad + posterior.grad_log_prior(theta[None])[0], H


def _sums(posterior: _LinearModel, theta: Array, variances: Array, blocks: list[slice]) -> Array:
    sums = np.zeros((theta.size + 1, theta.size))
    for rows in blocks:
        design = posterior.design(rows)
        score, bend = posterior.likelihood.averaged(
            design @ theta, variances[rows], posterior.y[rows]
        )
        if posterior.weight is not None:
            score, bend = score * posterior.weight[rows], bend * posterior.weight[rows]
        sums[-1] += score @ design
        sums[:-1] += weighted_gram(design, bend)
    return sums
