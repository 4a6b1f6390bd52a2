"""Error of a posterior that stands in for another, at draws near its mode."""

from __future__ import annotations

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import start_normals
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.mode import Center


def error_of(
    stand_in: BasePosterior, theta: Array, exact: Array, tau: float, weight: Array
) -> float:
    """Largest error of a mean, in sds, or of an sd, relative; over weighted draws ``(S, P)``.

    To first order, they are covariances with the error of the log density, which is ``exact``.
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


def exact_density(posterior: BasePosterior, theta: Array) -> Array:
    """Log density ``(C,)`` of all rows; of many rows, each to single precision."""
    return posterior.rounded(density=True).bind_log_density()(theta)


def normal_moves(center: Center, tau: float, seed: int, first: int, n_moves: int) -> Array:
    """Normal moves ``(n_moves, P)`` of the width of the metric."""
    chains = range(FIRST_CHAIN + first, FIRST_CHAIN + first + n_moves)
    normals = start_normals(seed, chains, center.theta.size)
    return np.sqrt(tau) * center.metric.sqrt(normals)
