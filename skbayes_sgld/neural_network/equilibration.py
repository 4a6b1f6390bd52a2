"""A diagonal metric from gradients alone, for posteriors of many modes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skbayes_sgld._random import start_normals
from skbayes_sgld._typing import Array
from skbayes_sgld.sampling.metric import Diagonal

_PROBES = 10


def row_norms(gradient: Callable[[Array], Array], theta: Array, spread: Array, seed: int) -> Array:
    """Norms of the Hessian's rows at ``theta (C, P)``, in units of the spread.

    They are the equilibration ``sqrt(E (H v)^2)`` over standard normal v (Dauphin, de Vries &
    Bengio 2015, Section 5). They are positive, and no smaller than the diagonal's size, even if
    the Hessian is indefinite. Differences of gradients give the products H v.

    Parameters
    ----------
    gradient : callable
        Takes ``theta (C, P)`` to the gradient of the log density ``(C, P)``.
    theta : ndarray of shape (C, P)
    spread : ndarray of shape (P,)
        The farthest that a parameter may move, such as the prior's scale: no norm is below 1.
    seed : int
        Seed of the random vectors v.

    Returns
    -------
    norms : ndarray of shape (C, P)
    """
    n_chains, n_params = theta.shape
    normals = start_normals(seed, range(n_chains), _PROBES * n_params)
    probes = normals.reshape(n_chains, _PROBES, n_params).swapaxes(0, 1)
    square = sum(np.square(_product(gradient, theta, spread, v)) for v in probes)
    return np.maximum(np.sqrt(square / _PROBES), 1.0)


def equilibrate(
    gradient: Callable[[Array], Array], theta: Array, spread: Array, norms: Array
) -> Diagonal:
    """Metric ``spread^2 / norms``, scaled so that the largest curvature in it is 1.

    That curvature is taken at ``theta (C, P)``, by power iteration. A step size then has no unit,
    and is stable below 2 on a normal distribution.
    """
    roots = 1.0 / np.sqrt(norms)
    v = np.ones_like(theta) * np.where(np.arange(theta.shape[1]) % 2, 1.0, -1.0)
    for _ in range(12):  # enough for a relative error of a tenth
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        v = roots * _product(gradient, theta, spread, roots * v)
        largest = np.linalg.norm(v, axis=1, keepdims=True)
    return Diagonal(np.square(spread) / norms / largest)


def _product(gradient: Callable[[Array], Array], theta: Array, spread: Array, v: Array) -> Array:
    """Minus the Hessian's product with ``v (C, P)``, both in units of the spread."""
    h = 1e-4 / np.sqrt(np.mean(np.square(v), axis=1, keepdims=True))
    move = h * v * spread
    return spread * (gradient(theta - move) - gradient(theta + move)) / (2.0 * h)
