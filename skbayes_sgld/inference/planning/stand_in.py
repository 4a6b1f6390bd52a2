"""Error of a posterior that stands in for another, at draws near its mode.

To first order, errors of means and sds are covariances with the error of the log density. Of few
parameters they are found from its values, which cost less than its slopes. Of many parameters the
largest of these covariances would be noise: 0.09 for 546 parameters, 120 draws and an error with an
sd of 0.3. For a normal distribution the covariances are means of slopes (Stein 1981), whose noise
does not grow with the number of parameters.
"""

from __future__ import annotations

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import start_normals
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.sampling.metric import Dense
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.mode import Center


def error_of(
    stand_in: BasePosterior, theta: Array, exact: Array, tau: float, weight: Array
) -> float:
    """Largest error of a mean, in sds, or of an sd, relative; by values of the log density.

    ``exact`` are those at weighted draws ``(S, P)``.
    """
    with one_blas_thread(), np.errstate(all="ignore"):
        off = (exact - stand_in.log_density(theta)) / tau
    if not np.isfinite(off).all():
        return np.inf
    weight = weight / weight.sum()
    z = theta - weight @ theta
    z /= np.sqrt(weight @ np.square(z))
    both = np.concatenate([z, 0.5 * (np.square(z) - 1.0)], axis=1)
    return float(np.abs((weight * (off - weight @ off)) @ both).max())


def error_of_slope(theta: Array, slope: Array, metric: Dense) -> float:
    """Largest error of a mean, in sds, or of an sd, relative; by the slopes of an error ``(S, P)``.

    ``metric`` is the covariance of the draws.
    """
    moves = metric.sqrt(metric.sqrt_t(slope)) / metric.marginal_sd
    z = (theta - theta.mean(axis=0)) / metric.marginal_sd
    both = np.concatenate([moves, 0.5 * z * moves], axis=1)
    return float(np.abs(both.mean(axis=0)).max(initial=0.0))


def exact_density(posterior: BasePosterior, theta: Array) -> Array:
    """Log density ``(C,)`` of all rows; of many rows, each to single precision."""
    return posterior.rounded(density=True).bind_log_density()(theta)


def normal_moves(center: Center, tau: float, seed: int, first: int, n_moves: int) -> Array:
    """Normal moves ``(n_moves, P)`` of the width of the metric."""
    chains = range(FIRST_CHAIN + first, FIRST_CHAIN + first + n_moves)
    normals = start_normals(seed, chains, center.theta.size)
    return np.sqrt(tau) * center.metric.sqrt(normals)
