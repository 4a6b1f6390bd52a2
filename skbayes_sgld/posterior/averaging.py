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
from skbayes_sgld.posterior.base import AveragedNormal
from skbayes_sgld.posterior.collapsed_rows import collapsed_rows
from skbayes_sgld.posterior.likelihoods import Likelihood
from skbayes_sgld.posterior.priors import CoefficientPrior
from skbayes_sgld.posterior.sparse_design import as_array
from skbayes_sgld.posterior.sparse_rows import sparse_rows
from skbayes_sgld.posterior.whitened import whiten_rows
from skbayes_sgld.posterior.whitening import WhitenedPosterior

Array = NDArray[Any]

_FEW_ROWS = 5  # per parameter at most, to average
_ROUNDS = 20
_DAMPING = 0.5, 0.7  # factors on the log variances' change: the first rounds overshoot most
_CHANGE = 0.15  # tolerance of a log variance, and of the mean in sds: enough for a metric


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
    theta : ndarray of shape (P,)
        Mode of the posterior, from which the rounds begin.
    temperature : float

    Returns
    -------
    normal : AveragedNormal or None
        None where the curvature at the mode serves as well
        (many rows per parameter) and where the rounds do not converge.
    """
    few = posterior.n_samples < _FEW_ROWS * theta.size
    if not (few and posterior.likelihood.averages) or posterior.prior.nonsmooth:
        return None
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
    lower = _factor(posterior.curvature(theta), dtype)
    variances = _row_variances(posterior, lower) * temperature
    for number in range(_ROUNDS):
        grad, H, weights = _averaged(posterior, theta, variances, dtype)
        lower = _factor(H, dtype)
        step = linalg.cho_solve((lower, True), grad, check_finite=False)
        moves = np.log(_row_variances(posterior, lower) * temperature / variances)
        theta = theta + step
        variances = variances * np.exp(_DAMPING[number > 3] * moves)
        far = float(grad @ step) > _CHANGE**2 * theta.size * temperature
        if not far and np.abs(moves).max() < _CHANGE:
            return AveragedNormal(theta, H, whiten_rows(posterior, theta, weights))
    return None


def _factor(H: Array, dtype: type) -> Array:
    return linalg.cholesky(H.astype(dtype), lower=True, check_finite=False)


def _row_variances(posterior: _LinearModel, lower: Array) -> Array:
    """Variance of each row's predictor where the precision of theta is ``lower lower^T``."""

    def of_rows(blocks: list[slice]) -> Array:
        found = []
        for rows in blocks:
            design = as_array(posterior.design(rows)).astype(lower.dtype)
            seen = linalg.solve_triangular(lower, design.T, lower=True, check_finite=False)
            found.append(np.einsum("pn,pn->n", seen, seen))
        return np.concatenate(found)

    return np.concatenate(in_threads(of_rows, posterior.gram_parts()))


def _averaged(
    posterior: _LinearModel, theta: Array, variances: Array, dtype: type
) -> tuple[Array, Array, Array]:
    """Gradient and curvature of the log posterior, averaged over the rows' predictors.

    The last array is each row's curvature ``(n,)``.
    """
    # the gradient as a last row: both are sums over the same rows
    bends = np.empty(posterior.n_samples)
    work = partial(_sums, posterior, theta, variances, dtype, bends)
    sums = sum_in_threads(work, posterior.gram_parts())
    grad, H = sums[-1], sums[:-1]
    posterior.add_prior_curvature(H, theta)
    return grad + posterior.grad_log_prior(theta[None])[0], H, bends


def _sums(
    posterior: _LinearModel,
    theta: Array,
    variances: Array,
    dtype: type,
    bends: Array,
    blocks: list[slice],
) -> Array:
    sums = np.zeros((theta.size + 1, theta.size))
    for rows in blocks:
        design = posterior.design(rows)
        score, bend = posterior.likelihood.averaged(
            design @ theta, variances[rows], posterior.y[rows]
        )
        if posterior.weight is not None:
            score, bend = score * posterior.weight[rows], bend * posterior.weight[rows]
        bends[rows] = bend
        sums[-1] += score @ design
        narrow: Any = design.astype(dtype) if isinstance(design, np.ndarray) else design
        sums[:-1] += weighted_gram(narrow, bend.astype(dtype))
    return sums
