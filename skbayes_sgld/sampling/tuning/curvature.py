"""A log density near a point: value, gradient and curvature, from what a posterior offers.

Every posterior has the four functions of the protocol. What else it has costs less:
``log_density``, ``grad`` and ``value_and_grad``; ``curvature`` (a matrix), ``curvature_factor``
(a diagonal and a few rows) or ``curvature_diagonal``. What it has not is computed from gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.sampling.preconditioners.metric import Diagonal, LowRank, Metric

Array = NDArray[Any]

_STEP = 6e-6  # the cube root of the rounding error: what a central difference loses least at
_LONGEST, _SAFE = 0.03, 0.003  # of an sd: a step beyond the one is replaced by the other
_ROUNDS = 4
_BLOCK_NUMBERS = 2**20
_PROBES = 64


def log_density(posterior: Any, theta: Array) -> Array:
    """Return the log posterior density ``(C,)`` up to a constant."""
    if hasattr(posterior, "log_density"):
        return posterior.log_density(theta)
    return posterior.log_likelihood(theta).sum(axis=1) + posterior.log_prior(theta)


def gradient(posterior: Any, theta: Array) -> Array:
    """Return the gradient of the log posterior density ``(C, P)``."""
    if hasattr(posterior, "grad"):
        return posterior.grad(theta)
    return posterior.grad_log_likelihood(theta) + posterior.grad_log_prior(theta)


def value_and_gradient(posterior: Any, theta: Array) -> tuple[Array, Array]:
    """Return both."""
    if hasattr(posterior, "value_and_grad"):
        return posterior.value_and_grad(theta)
    return log_density(posterior, theta), gradient(posterior, theta)


def curvature(posterior: Any, theta: Array) -> Array:
    """Return minus the Hessian of the log posterior at one ``theta (P,)``, as ``(P, P)``."""
    if hasattr(posterior, "curvature"):
        return posterior.curvature(theta)
    return _difference_curvature(posterior, theta)


def structured_metric(posterior: Any, theta: Array) -> Metric:
    """Return the inverse curvature at ``theta (P,)`` without a matrix of P by P.

    It is exact where the posterior can tell a diagonal and a factor of few rows, and the inverse
    of the curvature's diagonal elsewhere.
    """
    if hasattr(posterior, "curvature_factor"):
        diagonal, factor = posterior.curvature_factor(theta)
        if factor is not None:
            return LowRank(diagonal, factor)
    elif hasattr(posterior, "curvature_diagonal"):
        diagonal = posterior.curvature_diagonal(theta)
    else:
        diagonal = _probed_diagonal(posterior, theta)
    positive = diagonal > 0
    # where the curvature is none or the wrong way round, that of the others must do
    usual = np.median(diagonal[positive]) if positive.any() else 1.0
    return Diagonal(1.0 / np.where(positive, diagonal, usual))


def _difference_curvature(posterior: Any, theta: Array) -> Array:
    """Central differences of the gradient, all coordinates side by side as chains, in blocks.

    A first step knows nothing of the parameters' widths; where it was long against the width
    that came out, the coordinate is taken again.
    """
    P = theta.size
    steps = _STEP * np.maximum(np.abs(theta), 1.0)
    H = np.empty((P, P))
    again = np.arange(P)
    for _ in range(_ROUNDS):
        size = max(1, _BLOCK_NUMBERS // max(P, posterior.n_samples) // 2)
        for start in range(0, len(again), size):
            j = again[start : start + size]
            H[j] = -_slopes(posterior, theta, np.eye(P)[j] * steps[j, None]) / steps[j, None]
        diagonal = np.abs(np.diagonal(H))
        finite = np.isfinite(H).all(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            sds = np.where(finite, 1.0 / np.sqrt(diagonal), 1e-3 * steps)
        again = np.flatnonzero(steps > _LONGEST * sds)
        if not len(again):
            break
        steps[again] = _SAFE * sds[again]
    return 0.5 * (H + H.T)


def _slopes(posterior: Any, theta: Array, moves: Array) -> Array:
    """Return how the gradient changes along each of ``moves (M, P)``, at ``theta (P,)``."""
    both = gradient(posterior, np.concatenate([theta + moves, theta - moves]))
    return 0.5 * (both[: len(moves)] - both[len(moves) :])


def _probed_diagonal(posterior: Any, theta: Array) -> Array:
    """Return an estimate of the curvature's diagonal (Bekas, Kokiopoulou & Saad 2007, eq. 1).

    For random signs v the mean of ``v * H v`` is the diagonal of H.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (_PROBES, theta.size))
    steps = _STEP * np.maximum(np.abs(theta), 1.0)
    diagonal = np.zeros_like(theta)
    for _ in range(2):  # the second time with steps that know of the parameters' widths
        size = max(1, _BLOCK_NUMBERS // max(theta.size, posterior.n_samples) // 2)
        blocks = [signs[start : start + size] for start in range(0, _PROBES, size)]
        total = sum((v * _slopes(posterior, theta, steps * v)).sum(axis=0) for v in blocks)
        diagonal = -total / (_PROBES * steps)
        with np.errstate(divide="ignore", invalid="ignore"):
            sds = 1.0 / np.sqrt(np.abs(diagonal))
        # all coordinates move at once: each by so little that all together stay within an sd
        steps = np.where(np.isfinite(sds) & (sds > 0), _SAFE / np.sqrt(theta.size) * sds, steps)
    return diagonal
