"""A diagonal metric for posteriors without one mode to rely on, from gradients alone."""

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
    Bengio 2015, Section 5): positive, and no smaller than the diagonal's size, where the Hessian
    is indefinite too. Products with it are differences of gradients.

    Parameters
    ----------
    gradient : callable
        Takes ``theta (C, P)`` to the gradient of the log density ``(C, P)``.
    theta : ndarray of shape (C, P)
    spread : ndarray of shape (P,)
        The furthest that a parameter may move, such as the prior's scale: no norm is below 1.
    seed : int
        Seeds the probes.

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
    """Metric ``spread^2 / norms``, over the largest eigenvalue that it leaves.

    In it the steepest direction at ``theta (C, P)`` has curvature 1: a step size has no unit, and
    is stable below 2 on a normal distribution. The eigenvalue is found by power iteration.
    """
    roots = 1.0 / np.sqrt(norms)
    v = np.ones_like(theta) * np.where(np.arange(theta.shape[1]) % 2, 1.0, -1.0)
    for _ in range(12):  # which find it to a tenth
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        v = roots * _product(gradient, theta, spread, roots * v)
        largest = np.linalg.norm(v, axis=1, keepdims=True)
    return Diagonal(np.square(spread) / norms / largest)


def _product(gradient: Callable[[Array], Array], theta: Array, spread: Array, v: Array) -> Array:
    """Minus the Hessian's product with ``v (C, P)``, both in units of the spread."""
    h = 1e-4 / np.sqrt(np.mean(np.square(v), axis=1, keepdims=True))
    move = h * v * spread
    return spread * (gradient(theta - move) - gradient(theta + move)) / (2.0 * h)
