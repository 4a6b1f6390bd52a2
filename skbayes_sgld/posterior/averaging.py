"""The normal distribution nearest to a posterior whose rows are averaged over it.

Where there are few rows a parameter, a classifier's posterior is far from its mode: most rows are
certain there, and what bends the density is the few that are not. The normal distribution that
matches the posterior best in expectation (Opper & Archambeau 2009, eq. 8 and 9) has its mean where
the averaged gradient vanishes, and the averaged curvature for precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from skbayes_sgld._linalg import row_slices

Array = NDArray[Any]

_MANY, _FEW_ROWS = 300, 5  # parameters, and rows of each, between which the mode tells little
_ROUNDS = 20
_DAMPING = 0.5, 0.7  # of the log variances' change: the first rounds overshoot most
_CHANGE = 0.15  # of a log variance, and of a mean in root mean squared sds: a metric asks no more


def averaged_normal(posterior: Any, theta: Array, temperature: float) -> tuple[Array, Array] | None:
    """Mean and precision at temperature 1 of that normal, from the mode ``theta (P,)``.

    None where the curvature at the mode serves as well, with few parameters or many rows of each,
    and where the rounds do not settle.
    """
    few = theta.size >= _MANY and posterior.n_samples < _FEW_ROWS * theta.size
    if not (few and posterior.likelihood.averages) or posterior.prior.nonsmooth:
        return None
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


def _slices(posterior: Any) -> Any:
    """Blocks of at least as many rows as parameters: a P by P matrix is added to by each."""
    return row_slices(posterior.n_samples, posterior.n_features, posterior.n_params)


def _row_variances(posterior: Any, lower: Array) -> Array:
    """Variance of each row's predictor where theta has the precision ``lower lower^T``."""
    variances = np.empty(posterior.n_samples)
    for rows in _slices(posterior):
        design = posterior.design(rows)
        seen = linalg.solve_triangular(lower, design.T, lower=True, check_finite=False)
        variances[rows] = np.einsum("pn,pn->n", seen, seen)
    return variances


def _averaged(posterior: Any, theta: Array, variances: Array) -> tuple[Array, Array]:
    """Gradient and curvature of the log posterior, the rows' averaged."""
    H = np.zeros((theta.size, theta.size))
    posterior.add_prior_curvature(H, theta)
    grad = posterior.grad_log_prior(theta[None])[0]
    for rows in _slices(posterior):
        design = posterior.design(rows)
        score, bend = posterior.likelihood.averaged(
            design @ theta, variances[rows], posterior.y[rows]
        )
        if posterior.weight is not None:
            score, bend = score * posterior.weight[rows], bend * posterior.weight[rows]
        grad += score @ design
        H += (design * bend[:, None]).T @ design
    return grad, H
