"""Curvature from differences of gradients, for posteriors that do not define it.

``scipy.differentiate.jacobian`` is more accurate than needed here, at 5 to 13 times as many
gradients, and may not converge if columns have very unequal units.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skbayes_sgld._random import probe_generator
from skbayes_sgld._typing import Array

GradientFunction = Callable[[Array], Array]

_STEP = 6e-6  # cube root of the rounding error: the best step of a central difference
_SAFE = 0.003  # steps in sds
_BLOCK_NUMBERS = 2**20  # gradients computed at a time, times rows or parameters


def difference_curvature(grad: GradientFunction, theta: Array, n_samples: int) -> Array:
    """Minus the Hessian ``(P, P)`` at ``theta (P,)``, by central differences of the gradient.

    Blocks of coordinates are moved at once, each as a separate chain. The first steps are chosen
    without knowledge of the posterior's widths. A coordinate whose step was long relative to the
    width that it found is repeated with a shorter one.

    Parameters
    ----------
    grad : callable
        Function from parameters ``(C, P)`` to the gradient of the log density ``(C, P)``.
    theta : ndarray of shape (P,)
    n_samples : int
        Number of rows of data that a gradient reads, which bounds the size of a block.

    Returns
    -------
    curvature : ndarray of shape (P, P)
    """
    P = theta.size
    steps = _STEP * np.maximum(np.abs(theta), 1.0)
    H = np.empty((P, P))
    again = np.arange(P)
    for _ in range(4):
        size = max(1, _BLOCK_NUMBERS // max(P, n_samples) // 2)
        for start in range(0, len(again), size):
            j = again[start : start + size]
            H[j] = -_slopes(grad, theta, np.eye(P)[j] * steps[j, None]) / steps[j, None]
        diagonal = np.abs(np.diagonal(H))
        finite = np.isfinite(H).all(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            sds = np.where(finite, 1.0 / np.sqrt(diagonal), 1e-3 * steps)
        again = np.flatnonzero(steps > 0.03 * sds)
        if not len(again):
            break
        steps[again] = _SAFE * sds[again]
    return 0.5 * (H + H.T)


def probed_diagonal(grad: GradientFunction, theta: Array, n_samples: int) -> Array:
    """Estimate of the curvature's diagonal ``(P,)`` (Bekas, Kokiopoulou & Saad 2007, eq. 1).

    For random signs v the mean of ``v * H v`` is the diagonal of H. The parameters are those of
    :func:`difference_curvature`.
    """
    signs = probe_generator().choice([-1.0, 1.0], (64, theta.size))
    steps = _STEP * np.maximum(np.abs(theta), 1.0)
    diagonal = np.zeros_like(theta)
    for _ in range(2):  # the second time with steps proportional to the widths
        size = max(1, _BLOCK_NUMBERS // max(theta.size, n_samples) // 2)
        blocks = [signs[start : start + size] for start in range(0, len(signs), size)]
        total = sum((v * _slopes(grad, theta, steps * v)).sum(axis=0) for v in blocks)
        diagonal = -total / (len(signs) * steps)
        with np.errstate(divide="ignore", invalid="ignore"):
            sds = 1.0 / np.sqrt(np.abs(diagonal))
        # all coordinates move at once, so steps are shorter: together they stay within an sd
        steps = np.where(np.isfinite(sds) & (sds > 0), _SAFE / np.sqrt(theta.size) * sds, steps)
    return diagonal


def _slopes(grad: GradientFunction, theta: Array, moves: Array) -> Array:
    """Change of the gradient at ``theta (P,)`` along each of ``moves (M, P)``."""
    both = grad(np.concatenate([theta + moves, theta - moves]))
    return 0.5 * (both[: len(moves)] - both[len(moves) :])
