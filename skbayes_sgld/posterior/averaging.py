"""The normal distribution nearest to a posterior whose rows are averaged over it.

With few rows per parameter, the bulk of a classifier's posterior lies far from its mode: at the
mode most rows are classified with certainty, and the curvature comes from the few that are not. The
normal distribution nearest to the posterior in expectation (Opper & Archambeau 2009, eq. 8 and 9)
has its mean where the averaged gradient vanishes, and the averaged curvature as its precision.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse import issparse

from skbayes_sgld._linalg import (
    MAX_DENSE,
    in_threads,
    one_blas_thread,
    sum_in_threads,
    weighted_gram,
)
from skbayes_sgld.posterior.collapsed_rows import collapsed_rows
from skbayes_sgld.posterior.likelihoods import Likelihood
from skbayes_sgld.posterior.priors import CoefficientPrior
from skbayes_sgld.posterior.protocol import AveragedNormal
from skbayes_sgld.posterior.rounded_hessian import equal_parts, rounded_gram
from skbayes_sgld.posterior.sparse_design import as_array
from skbayes_sgld.posterior.sparse_rows import sparse_rows
from skbayes_sgld.posterior.whitened import whiten_rows
from skbayes_sgld.posterior.whitening import WhitenedPosterior

Array = NDArray[Any]

MANY = 300  # parameters from which the bulk may be far from the mode
FEW_ROWS = 5  # per parameter at most, to average
_ROUNDS = 20
_DAMPING = 0.5, 0.7  # factors on the log variances' change: the first rounds overshoot most
# Root mean square of the log variances' change, and of the mean's in sds: enough for the metric of
# a pilot. Of 3,000 rows and 2,100 columns five rounds end 0.1 from the posterior mean, and ten 0.16
# (root mean square): the averages are approximations
_CHANGE = 0.35


class _LinearModel(Protocol):
    """The members of a generalised linear model that averaging uses."""

    X: Array
    n_samples: int
    n_features: int
    n_params: int
    n_predictors: int
    y: Array
    weight: Array | None
    likelihood: Likelihood

    @property
    def prior(self) -> CoefficientPrior: ...
    @property
    def light_tailed(self) -> bool: ...
    def design(self, rows: slice) -> Array: ...
    def gram_parts(self) -> list[list[slice]]: ...
    def _parts(self) -> list[list[slice]]: ...
    def rough_curvature(self, theta: Array) -> Array | None: ...
    def curvature(self, theta: Array) -> Array: ...
    def curvature_factor(self, theta: Array) -> tuple[Array, Array | None]: ...
    def _weighted_curvature(self, theta: Array, rows: slice) -> Array: ...
    def value_and_grad(self, theta: Array) -> tuple[Array, Array]: ...
    def log_prior(self, theta: Array) -> Array: ...
    def grad_log_prior(self, theta: Array) -> Array: ...
    def add_prior_curvature(self, H: Array, theta: Array) -> None: ...


def averaged_normal(
    posterior: _LinearModel, theta: Array, temperature: float
) -> AveragedNormal | None:
    """Normal distribution nearest in expectation.

    Parameters
    ----------
    posterior : GLMPosterior
        Far from its mode, for lack of rows.
    theta : ndarray of shape (P,)
        Mode of the posterior, or a point near it, from which the rounds begin.
    temperature : float

    Returns
    -------
    normal : AveragedNormal or None
        None where the rounds do not converge.
    """
    if theta.size > MAX_DENSE:
        rows: WhitenedPosterior | None = None
        if issparse(posterior.X):
            # at another temperature it would be the tempered likelihood that is integrated
            rows = collapsed_rows(posterior, theta) if temperature == 1.0 else None
            rows = rows or sparse_rows(posterior, theta)
        return None if rows is None else AveragedNormal(theta, rows.inverse, rows)
    with one_blas_thread():
        return _search(posterior, theta, temperature)


def _search(posterior: _LinearModel, theta: Array, temperature: float) -> AveragedNormal | None:
    # the first is enough for a metric, in a third of the time
    for dtype in (np.float32, np.float64):
        with suppress(linalg.LinAlgError):
            return _rounds(posterior, theta, temperature, dtype)
    return None


def _rounds(
    posterior: _LinearModel, theta: Array, temperature: float, dtype: type
) -> AveragedNormal | None:
    rough = posterior.rough_curvature(theta) if dtype is np.float32 else None
    lower = _factor(posterior.curvature(theta) if rough is None else rough, dtype)
    variances = _row_variances(posterior, lower) * temperature
    for number in range(_ROUNDS):
        grad, H, weights = _averaged(posterior, theta, variances, dtype)
        lower = _factor(H, dtype)
        step = linalg.cho_solve((lower, True), grad, check_finite=False)
        moves = np.log(_row_variances(posterior, lower) * temperature / variances)
        theta = theta + step
        variances = variances * np.exp(_DAMPING[number > 3] * moves)
        far = float(grad @ step) > _CHANGE**2 * theta.size * temperature
        if not far and np.square(moves).mean() < _CHANGE**2:
            whitened = whiten_rows(posterior, theta, weights)
            return AveragedNormal(theta, H, whitened)
    return None


def _factor(H: Array, dtype: type) -> Array:
    return linalg.cholesky(H.astype(dtype), lower=True, check_finite=False)


def _row_variances(posterior: _LinearModel, lower: Array) -> Array:
    """Variance of each row's predictor where the precision of theta is ``lower lower^T``."""

    def of_rows(rows: slice) -> Array:
        design = as_array(posterior.design(rows)).astype(lower.dtype)
        seen = linalg.solve_triangular(lower, design.T, lower=True, check_finite=False)
        return np.einsum("pn,pn->n", seen, seen)

    parts = equal_parts(posterior.n_samples, posterior.n_params)
    return np.concatenate(in_threads(of_rows, parts)).astype(float)


def _averaged(
    posterior: _LinearModel, theta: Array, variances: Array, dtype: type
) -> tuple[Array, Array, Array]:
    """Gradient and curvature of the log posterior, averaged over the rows' predictors.

    The last array is each row's curvature ``(n,)``.
    """
    bends = np.empty(posterior.n_samples)
    work = partial(_sum_of_grad, posterior, theta, variances, bends)
    grad = sum_in_threads(work, posterior._parts())
    if dtype is np.float32 and not issparse(posterior.X):
        H = rounded_gram(posterior, bends)
    else:
        H = sum_in_threads(partial(_sum_of_gram, posterior, bends), posterior.gram_parts())
    posterior.add_prior_curvature(H, theta)
    return grad + posterior.grad_log_prior(theta[None])[0], H, bends


def _sum_of_grad(
    posterior: _LinearModel, theta: Array, variances: Array, bends: Array, blocks: list[slice]
) -> Array:
    """Gradient of the log likelihood; the rows' curvatures are written to ``bends``."""
    grad = np.zeros(theta.size)
    for rows in blocks:
        design = posterior.design(rows)
        score, bend = posterior.likelihood.averaged(
            design @ theta, variances[rows], posterior.y[rows]
        )
        weight = 1.0 if posterior.weight is None else posterior.weight[rows]
        bends[rows] = bend * weight
        grad += (score * weight) @ design
    return grad


def _sum_of_gram(posterior: _LinearModel, bends: Array, blocks: list[slice]) -> Array:
    H = np.zeros((posterior.n_params, posterior.n_params))
    for rows in blocks:
        H += weighted_gram(posterior.design(rows), bends[rows])
    return H
