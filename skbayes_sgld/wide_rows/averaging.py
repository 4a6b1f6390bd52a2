"""The normal distribution nearest to a posterior, by rows that are averaged over it.

With few rows per parameter, the bulk of a classifier's posterior lies far from its mode: at the
mode most rows are classified with certainty, and the curvature comes from the few that are not. The
same holds for counts: at the mode, rows of 0 have hardly any curvature. The normal distribution
nearest to the posterior in expectation (Opper & Archambeau 2009, eq. 8 and 9) has its mean where
the averaged gradient vanishes, and the averaged curvature as its precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.sparse import issparse

from skbayes_sgld._linalg import MAX_DENSE, equal_slices, in_threads, one_blas_thread
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood, RowKernel, with_offset_and_weight
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.row_sum import RowSum
from skbayes_sgld.posterior.sparse_design import as_array
from skbayes_sgld.posterior.whitening import WhitenedPosterior
from skbayes_sgld.wide_rows.collapsed_rows import collapsed_rows
from skbayes_sgld.wide_rows.predictors import MOST_ROWS
from skbayes_sgld.wide_rows.whitened import sparse_rows, whiten_rows

# Root mean square of the log variances' change, and of the mean's in sds: enough for the metric of
# a pilot. With 3,000 rows and 2,100 columns five rounds end 0.1 from the posterior mean, and ten
# 0.16 (root mean square): the averages are approximations
_CHANGE = 0.35


class AveragedNormal(NamedTuple):
    """Normal distribution nearest to a posterior in expectation.

    Attributes
    ----------
    mean : ndarray of shape (P,)
    precision : ndarray of shape (P, P), or (P,) if it is diagonal
        At temperature 1.
    whitened : WhitenedPosterior or None
        The posterior in the coordinates of this distribution, if trajectories there are cheaper.
    """

    mean: Array
    precision: Array
    whitened: WhitenedPosterior | None


class AveragedKernel(RowKernel):
    """Score and curvature of rows, averaged over normal errors of their predictors."""

    def __init__(self, likelihood: Likelihood, y: Array, variance: Array) -> None:
        super().__init__(likelihood, y)
        self.variance = variance

    def __getitem__(self, at: Any) -> AveragedKernel:
        """Kernel of some of the rows."""
        return AveragedKernel(self.likelihood, self.y[at], self.variance[at])

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Averaged score and curvature; the log density, which is not needed, is nan."""
        score, curvature = self.likelihood.error_averaged(u, self.variance, self.y)
        return np.full_like(score[:, 0], np.nan), score, curvature[:, None]


def averaged_normal(
    posterior: GLMPosterior, theta: Array, temperature: float, collapse: bool = True
) -> AveragedNormal | None:
    """Normal distribution nearest in expectation.

    Parameters
    ----------
    posterior : GLMPosterior
        A posterior whose mass is far from its mode, because it has few rows.
    theta : ndarray of shape (P,)
        Mode of the posterior, or a point near it, from which the rounds begin.
    temperature : float
    collapse : bool, default=True
        Whether rows may have their own noise integrated out (``collapsed_rows.py``).

    Returns
    -------
    normal : AveragedNormal or None
        None if the rounds do not converge.
    """
    rows: WhitenedPosterior | None = None
    # at another temperature the tempered likelihood would have to be integrated
    large = issparse(posterior.X) and posterior.n_samples > MOST_ROWS
    if collapse and temperature == 1.0 and large:
        rows = collapsed_rows(posterior, theta)
    if rows is None and theta.size > MAX_DENSE and issparse(posterior.X):
        rows = sparse_rows(posterior, theta)
    if rows is not None or theta.size > MAX_DENSE:
        return None if rows is None else AveragedNormal(theta, rows.inverse, rows)
    # single precision is enough for a metric, in a third of the time
    for dtype in (np.float32, np.float64):
        with one_blas_thread(), suppress(linalg.LinAlgError):
            return _rounds(posterior, theta, temperature, dtype)
    return None


def _rounds(
    posterior: GLMPosterior, theta: Array, temperature: float, dtype: type
) -> AveragedNormal | None:
    """Normal distribution nearest in expectation, by rounds from ``theta (P,)``."""
    variances = _row_variances(posterior, _factor(posterior.curvature(theta), dtype)) * temperature
    # A row's variance times its curvature is below 1 in the end. With labels it does not reach 10
    # at first, but the average of a rate grows exponentially with the variance
    while True:
        with np.errstate(over="ignore", invalid="ignore"):
            grad, H, weights = _error_averaged(posterior, theta, variances, dtype)
            wide = variances * weights > 10.0
        if not wide.any():
            break
        variances[wide] *= 0.5
    for number in range(20):
        lower = _factor(H, dtype)
        step = linalg.cho_solve((lower, True), grad, check_finite=False)
        moves = np.log(_row_variances(posterior, lower) * temperature / variances)
        theta = theta + step
        variances = variances * np.exp((0.7 if number > 3 else 0.5) * moves)  # the first overshoot
        far = float(grad @ step) > _CHANGE**2 * theta.size * temperature
        if not far and np.square(moves).mean() < _CHANGE**2:
            return AveragedNormal(theta, H, whiten_rows(posterior, theta, weights))
        grad, H, weights = _error_averaged(posterior, theta, variances, dtype)
    return None


def _factor(H: Array, dtype: type) -> Array:
    return linalg.cholesky(H.astype(dtype), lower=True, check_finite=False)


def _row_variances(posterior: GLMPosterior, lower: Array) -> Array:
    """Variance of each row's predictor, if the precision of theta is ``lower lower^T``."""

    def block_variances(rows: slice) -> Array:
        design = as_array(posterior.design_rows(rows)).astype(lower.dtype)
        whitened = linalg.solve_triangular(lower, design.T, lower=True, check_finite=False)
        return np.einsum("pn,pn->n", whitened, whitened)

    n, P = posterior.n_samples, posterior.n_params
    parts = equal_slices(n, 2 * max(1, round(n / (2 * P))))  # two threads take equally many rows
    return np.concatenate(in_threads(block_variances, parts)).astype(float)


def _error_averaged(
    posterior: GLMPosterior, theta: Array, variances: Array, dtype: type
) -> tuple[Array, Array, Array]:
    """Gradient and curvature of the log posterior, averaged over the rows' predictors.

    The last array is the curvature of each row ``(n,)``.
    """
    y: Array = posterior.y if posterior.likelihood.totals else posterior.y.astype(dtype)
    averaged = AveragedKernel(posterior.likelihood, y, variances.astype(dtype))
    kernel = with_offset_and_weight(averaged, posterior.offset, posterior.weight, dtype)
    sums = posterior.row_sum(dtype)
    rows = RowSum(sums.design, kernel, sums.coefficient_map).expand(theta)
    both = posterior.with_prior_part(rows)
    return both.grad, both.curvature, both.of_rows[1]
