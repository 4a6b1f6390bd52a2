"""Rates at which the steps of a metric move to the mode."""

from __future__ import annotations

import numpy as np

from skbayes_sgld._linalg import MAX_DENSE, largest_eigenvalue_of
from skbayes_sgld.sampling.dynamics import Array, Metric


def preconditioned_eigenvalues(metric: Metric, curvature: Metric) -> Array:
    """Rates at which a step of size 1 moves to the mode, by direction, ascending ``(P,)``.

    They are the eigenvalues of G H, H being the inverse of the second metric: a step of size eta
    is stable on a normal distribution while eta times the largest is below 2, and forgets at
    eta times the smallest. Above 3,000 parameters only these two are found, and values evenly
    spaced in the logarithm are put between them.
    """
    if metric.n_params <= MAX_DENSE:
        whitened = curvature.whiten(metric.root.T)
        return np.linalg.eigvalsh(whitened @ whitened.T)
    slowest = 1.0 / _largest_width(curvature, metric)
    return np.geomspace(slowest, _largest_width(metric, curvature), metric.n_params)


def _largest_width(metric: Metric, beside: Metric) -> float:
    """Largest variance of the one metric's normal distribution in units of the other's."""

    def product(z: Array) -> Array:
        x = beside.whiten(metric.sqrt(z.reshape(1, -1)))
        return metric.sqrt_t(beside.whiten_t(x))[0]

    return largest_eigenvalue_of(product, metric.n_params)
