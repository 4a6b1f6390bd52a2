"""The normal distribution that matches a posterior's moments, by expectation propagation.

With few rows per parameter, the bulk of a classifier's posterior lies far from its mode: at the
mode most rows are classified with certainty, and the curvature comes from the few that are not. The
same holds for counts: at the mode, rows of 0 have hardly any curvature. Expectation propagation
(Minka 2001) replaces each row's likelihood by a normal one, its *site*: given the other rows, the
*cavity*, a row's predictor then has the same mean and variance under the site as under the
likelihood. With many columns cavities are nearly normal, by the central limit theorem, and so mean
and covariance are nearly those of the posterior: with 5,000 rows of 1,000 and of 3,000 columns the
variances of draws are 0.99 and 1.02 of the matched ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.sparse import issparse

from skbayes_sgld._linalg import MAX_DENSE, one_blas_thread
from skbayes_sgld._random import probe_generator
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import RowKernel
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.row_sum import RowSum
from skbayes_sgld.posterior.whitening import WhitenedPosterior
from skbayes_sgld.wide_rows.collapsed_rows import collapsed_rows
from skbayes_sgld.wide_rows.whitened import sparse_rows, whiten_rows

# Change of the sites' log precisions, and of the mean in sds, both root mean squares, at which the
# rounds end
_CHANGE = 0.3, 0.12
_ROUNDS = 40
_NODES = 48  # of the quadrature over a row's predictor
_MOVES = 256  # random moves that estimate variances, with an error of 9 %

# Rows up to which the predictors are sampled: three matrices of rows by rows take 430 megabytes
MOST_ROWS = 6000


class MatchedNormal(NamedTuple):
    """Normal distribution that matches a posterior's moments.

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


class SiteKernel(RowKernel):
    """Sites as scores and curvatures of rows, each matched to the likelihood in its cavity.

    Parameters
    ----------
    kernel : RowKernel
        Likelihood of the rows, in double precision.
    temperature : float
    variance, precision, shift : ndarray of shape (n,)
        Variance of each row's predictor, and the row's site so far: its log density is
        ``shift u - precision u^2 / 2`` at temperature 1.
    """

    def __init__(
        self, kernel: RowKernel, temperature: float, variance: Array, precision: Array, shift: Array
    ) -> None:
        self.kernel, self.temperature = kernel, temperature
        self.variance, self.precision, self.shift = variance, precision, shift

    def __getitem__(self, at: Any) -> SiteKernel:
        """Kernel of some of the rows."""
        arrays = self.variance[at], self.precision[at], self.shift[at]
        return SiteKernel(self.kernel[at], self.temperature, *arrays)

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Score and curvature of the new sites; the log density, which is not needed, is nan."""
        at, tau = u[0, 0].astype(float), self.temperature
        own = self.precision / tau
        # without its site, a row's predictor has a positive variance; estimates may say otherwise
        variance = np.minimum(self.variance, 0.95 / own)
        rest = 1.0 / variance - own
        cavity = (at / variance - self.shift / tau) / rest
        mean, spread = site_moments(self.kernel, tau, cavity, rest)
        precision = np.maximum(1.0 / spread - rest, 1e-3 * own)
        score = (precision + rest) * mean - rest * cavity - precision * at
        score = (tau * score).astype(u.dtype)[None, None]
        curvature = (tau * precision).astype(u.dtype)[None, None, None]
        return np.full_like(score[:, 0], np.nan), score, curvature


def site_moments(
    kernel: RowKernel, temperature: float, cavity: Array, precision: Array
) -> tuple[Array, Array]:
    """Mean and variance ``(n,)`` of each row's predictor, by its cavity and the likelihood.

    The density is log-concave: Newton's method finds its mode. Nodes are dense about the mode, as
    the curvature there asks for, and reach as far as the cavity.
    """

    def derivatives(u: Array, *orders: int) -> list[Array]:
        return [each / temperature for each in kernel.derivatives(u[:, None].copy(), *orders)]

    mode, sd = cavity.copy(), 1.0 / np.sqrt(precision)
    low, high, last = cavity - 40.0 * sd, cavity + 40.0 * sd, np.full_like(sd, np.inf)
    with np.errstate(all="ignore"):
        for _ in range(60):
            score, curvature = derivatives(mode[None], 1, 2)
            slope = score[0, 0] - precision * (mode - cavity)
            low, high = np.where(slope > 0.0, mode, low), np.where(slope > 0.0, high, mode)
            step = slope / (precision + curvature[0, 0, 0])
            # a rate far beyond its count falls by one power of e a step: halve the bracket instead
            new, short = mode + step, np.abs(step) < 0.5 * last
            step = np.where(short & (new >= low) & (new <= high), step, 0.5 * (low + high) - mode)
            mode, last = mode + step, np.abs(step)
            if np.all(last * np.sqrt(precision + curvature[0, 0, 0]) < 1e-2):
                break
        width = 1.0 / np.sqrt(precision + derivatives(mode[None], 1, 2)[1][0, 0, 0])
        reach = np.arcsinh(8.0 * sd / width)
        at = np.linspace(-1.0, 1.0, _NODES)[:, None] * reach
        nodes = mode + width * np.sinh(at)
        value = derivatives(nodes, 0)[0] - 0.5 * precision * np.square(nodes - cavity)
        density = np.cosh(at) * np.exp(value - value.max(axis=0))
    density /= density.sum(axis=0)
    mean = np.einsum("qn,qn->n", density, nodes)
    return mean, np.einsum("qn,qn->n", density, np.square(nodes - mean))


def matched_normal(
    posterior: GLMPosterior, theta: Array, temperature: float, collapse: bool = True
) -> MatchedNormal | None:
    """Normal distribution that matches the posterior's moments.

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
    normal : MatchedNormal or None
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
        return None if rows is None else MatchedNormal(theta, rows.inverse, rows)
    # single precision is enough for a metric, in a third of the time
    for dtype in (np.float32, np.float64):
        with one_blas_thread(), suppress(linalg.LinAlgError):
            return _rounds(posterior, theta, temperature, dtype)
    return None


def _rounds(
    posterior: GLMPosterior, theta: Array, temperature: float, dtype: type
) -> MatchedNormal | None:
    """Matched normal distribution, by rounds from ``theta (P,)``, in each of which all sites move.

    The first sites are the expansion of the log likelihood at theta.
    """
    sums = posterior.row_sum(dtype)
    kernel = posterior.likelihood.bind(posterior.values)
    rows = sums.expand(theta)
    for _ in range(_ROUNDS):
        at = posterior.with_prior_part(rows)
        lower = linalg.cholesky(at.curvature.astype(dtype), lower=True, check_finite=False)
        step = linalg.cho_solve((lower, True), at.grad, check_finite=False)
        theta = theta + step
        shift, precision = at.of_rows[0], np.maximum(at.of_rows[1], 1e-9)
        variance = sums.variances(_moves(lower))[0].astype(float) * temperature
        sites = SiteKernel(kernel, temperature, variance, precision, shift)
        rows = RowSum(sums.design, sites, sums.coefficient_map).expand(theta)
        far = float(at.grad @ step) / (theta.size * temperature)
        change = np.square(np.log(rows.of_rows[1] / precision)).mean()
        if change < _CHANGE[0] ** 2 and far < _CHANGE[1] ** 2:
            precision = rows.of_rows[1]
            curvature = posterior.with_prior_part(rows).curvature
            return MatchedNormal(theta, curvature, whiten_rows(posterior, theta, precision))
    return None


def _moves(lower: Array) -> Array:
    """Moves ``M (k, P)`` whose ``M^T M`` is the inverse of ``lower lower^T``, or nearly."""
    P = len(lower)
    if P <= 2 * _MOVES:
        return linalg.lapack.get_lapack_funcs("trtri", (lower,))(lower, lower=1)[0]
    normals = probe_generator().standard_normal((P, _MOVES), dtype=lower.dtype)
    moves = linalg.solve_triangular(lower, normals, lower=True, trans=1, check_finite=False)
    return moves.T / np.sqrt(lower.dtype.type(_MOVES))
