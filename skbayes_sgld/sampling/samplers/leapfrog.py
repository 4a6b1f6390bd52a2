"""Leapfrog steps along a trajectory, and the lengths of their kicks and drifts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.special import eval_legendre, roots_jacobi

from skbayes_sgld._typing import Array

# Share of Gauss-Lobatto quadrature in the kicks. Shares of 0, 0.2, 0.35 and 0.5 accept 0.79, 0.83,
# 0.85 and 0.85 of trajectories of three steps (digits, 325 parameters), and 0.80, 0.80, 0.80 and
# 0.79 of six steps (breast cancer, 31 parameters, prior sd 10: steep walls)
_LOBATTO = 0.35


def leapfrog(
    z: Array,
    momentum: Array,
    force: Array,
    step: Array,
    parts: Array,
    gradient: Callable[[Array], Array],
    rotates: bool = False,
) -> tuple[Array, Array]:
    """Follow Hamilton's equations by leapfrog steps (Neal 2011, Section 5.2.3).

    With ``rotates`` the force ``-z`` of a standard normal distribution is followed exactly, by a
    rotation of position and momentum, and only the rest of the force kicks. If the posterior is
    nearly normal the rest is small, and steps may be longer (Shahbaba, Lan, Johnson & Neal 2014,
    Section 3).

    Parameters
    ----------
    z, momentum : ndarray of shape (C, P)
    force : ndarray of shape (C, P)
        Gradient of the log density at z.
    step : ndarray of shape (C, 1)
        Size of the steps of each chain.
    parts : ndarray of shape (2, n)
        Kicks, and the drifts after them, in steps. The gradient is taken between a drift and the
        next kick.
    gradient : callable
        Gradient of the log density at ``z (C, P)``.
    rotates : bool

    Returns
    -------
    z, momentum : ndarray of shape (C, P)
    """
    angles = parts[1].astype(z.dtype)[:, None, None] * step
    drifts = [np.cos(angles), np.sin(angles)] if rotates else [angles]
    # repeated per parameter: for few parameters broadcasting takes twice as long
    step, *drifts = (np.repeat(each, z.shape[1], axis=-1) for each in (step, *drifts))
    # kicks as Python numbers, which keep arrays in single precision
    for k, (kick, drift) in enumerate(parts.T.tolist()):
        if k:
            force = gradient(z)
        momentum = kicked(momentum, z, force, kick * step, rotates)
        if drift and rotates:
            cos, sin = (each[k] for each in drifts)
            z, momentum = cos * z + sin * momentum, cos * momentum - sin * z
        elif drift:
            z = z + drifts[0][k] * momentum
    return z, momentum


def kicked(momentum: Array, z: Array, force: Array, step: Array, rotates: bool) -> Array:
    """Momentum after a kick of size ``step``; if trajectories rotate, by the rest of the force."""
    push = step * (force + z) if rotates else step * force
    push += momentum
    return push


def equal_kicks(n_steps: int) -> Array:
    """Kicks and drifts ``(2, n_steps + 1)`` of plain leapfrog, in steps."""
    parts = np.ones((2, n_steps + 1))
    parts[0, [0, -1]], parts[1, -1] = 0.5, 0.0
    return parts


@cache
def unequal_kicks(n_steps: int) -> Array:
    """Kicks and drifts ``(2, n_steps + 1)`` between those of leapfrog and of a quadrature.

    Kicks along an exact rotation approximate an integral: to first order in the posterior's
    distance from a normal one, the error of the energy is that of a quadrature rule. Gauss-Lobatto
    quadrature has almost none. Errors of second order are smallest at equal distances.
    """
    inner = roots_jacobi(n_steps - 1, 1.0, 1.0)[0] if n_steps > 1 else np.empty(0)
    at = np.concatenate([[-1.0], inner, [1.0]])
    kicks = 1.0 / ((n_steps + 1) * eval_legendre(n_steps, at) ** 2)
    drifts = np.append(0.5 * n_steps * np.diff(at), 0.0)
    equal = equal_kicks(n_steps)
    return equal + _LOBATTO * (np.stack([kicks, drifts]) - equal)


def kinetic(momentum: Array) -> Array:
    """Kinetic energy ``(C,)``."""
    return 0.5 * np.vecdot(momentum, momentum)
