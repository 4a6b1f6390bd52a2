"""The mode of a likelihood's own parameters, the coefficients integrated out.

With few rows per column the joint mode is far from most of the mass: some rows are fitted so
closely that the noise goes to zero, at a point of high density and little mass. Laplace's
approximation integrates out the coefficients b given own parameters o,

    f(o) = max_b log p(b, o) - log |H(o)| / 2,

with H minus the Hessian in b at the maximum (Tierney & Kadane 1986). Newton's method finds the mode
of f by differences, and the normal distribution about it has the precision of f in o and H in b.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skbayes_sgld._timings import beat
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.sampling.tuning.mode import Mode, NoModeError

_STEP = 0.1  # step of the differences, in logs of own parameters
_LONGEST = 1.0  # largest move of an own parameter in a step
_INNER = 1e-4  # tolerance of the inner search: squared distance to the mode, in sds
_OUTER = 0.02  # tolerance of the outer search: any centre near the mode is good enough
_CENTRAL = 9.0  # squared distance, in sds, beyond which a joint mode is too far from the mass
_MARGIN = 2.0  # nats by which f at the model's start may exceed f at a valid mode
_MOST = 25  # largest number of steps of either search


class _Point(NamedTuple):
    """Mode of the coefficients given own parameters, with f and the expansion there."""

    value: float
    coef: Array
    at: Expansion
    H: Array


def marginal_mode(
    posterior: BasePosterior, start: Array, n_own: int, known: Sequence[Mode] = ()
) -> Mode:
    """Mode and metric; the last ``n_own`` entries of ``start (P,)`` are the own parameters.

    A search that comes near a ``known`` mode ends with it.

    Raises
    ------
    NoModeError
        When there is no mode within reach.
    """
    L = len(start) - n_own
    best, own = _given(posterior, start[:L], start[L:]), start[L:].astype(float)
    for _ in range(_MOST):
        theta = np.append(best.coef, own)
        for mode in known:
            if mode.squared_distance(theta) < 1.0:
                return mode
        grad, H = _differences(posterior, best, own)
        eigenvalues, vectors = np.linalg.eigh(H)
        sizes = np.maximum(np.abs(eigenvalues), 1e-2)
        step = vectors @ ((vectors.T @ grad) / sizes)
        if float(grad @ step) < _OUTER and eigenvalues[0] > 0.0:
            return Mode.from_curvature(theta, _joined(best, H, L))
        step *= min(1.0, _LONGEST / np.abs(step).max())
        for fraction in 0.5 ** np.arange(8):
            new = _given(posterior, best.coef, own + fraction * step)
            if new.value > best.value:
                break
        else:
            break
        best, own = new, own + fraction * step
    raise NoModeError(f"the mode of the own parameters was not found in {_MOST} steps.")


def is_central(posterior: BasePosterior, mode: Mode, n_own: int) -> bool:
    """Whether a joint mode is within three sds of the mode of the own parameters.

    If rows are fitted exactly, f may have another mode, far below its value at the start.
    """
    L = mode.theta.size - n_own
    coef, own = np.split(mode.theta, [L])
    best = _given(posterior, coef, own)
    grad, H = _differences(posterior, best, own)
    if not (np.isfinite(H).all() and np.linalg.eigvalsh(H)[0] > 0.0):
        return False
    start = np.split(posterior.start(), [L])
    near = float(grad @ np.linalg.solve(H, grad)) < _CENTRAL
    return near and _given(posterior, *start).value < best.value + _MARGIN


def _joined(point: _Point, F: Array, L: int) -> Array:
    """Joint precision of coefficients and own parameters; F is the own ones' marginal precision."""
    H = point.at.curvature.copy()
    cross = H[:L, L:]
    H[L:, L:] = F + cross.T @ np.linalg.solve(point.H, cross)
    return H


def _differences(posterior: BasePosterior, point: _Point, own: Array) -> tuple[Array, Array]:
    """Gradient of f and minus its Hessian at own parameters, by central differences."""
    m = len(own)
    moves = _STEP * np.eye(m)

    def f(move: Array) -> float:
        return _given(posterior, point.coef, own + move).value

    up, down = ([f(sign * move) for move in moves] for sign in (1.0, -1.0))
    grad, H = np.subtract(up, down) / (2.0 * _STEP), np.zeros((m, m))
    for j in range(m):
        H[j, j] = -(up[j] + down[j] - 2.0 * point.value) / _STEP**2
        for k in range(j):
            both = f(moves[j] + moves[k]) - up[j] - up[k] + point.value
            H[j, k] = H[k, j] = -both / _STEP**2
    return grad, H


def _given(posterior: BasePosterior, coef: Array, own: Array) -> _Point:
    """Mode of the coefficients given own parameters, from a start nearby; value -inf if none."""
    L, last, step = len(coef), -np.inf, np.zeros_like(coef)
    nothing = np.eye(L)
    for _ in range(_MOST):
        beat()
        at = posterior.expand(np.append(coef, own))
        if not at.value >= last - 1e-9 * (abs(last) + 1.0):  # too far: go back by half of the step
            step = 0.5 * step
            coef = coef - step
            continue
        H, grad, last = at.curvature[:L, :L], at.grad[:L], at.value
        try:
            root = np.linalg.cholesky(H)
            step = np.linalg.solve(H, grad)
        except np.linalg.LinAlgError:
            eigenvalues, vectors = np.linalg.eigh(H)
            sizes = np.maximum(np.abs(eigenvalues), 1e-3 * np.abs(eigenvalues).max())
            step = vectors @ ((vectors.T @ grad) / sizes)
        else:
            decrement = float(grad @ step)
            if decrement < _INNER:
                value = at.value + 0.5 * decrement - float(np.log(np.diagonal(root)).sum())
                return _Point(value, coef, at, H)
        coef = coef + step
    return _Point(-np.inf, coef, at, nothing)
