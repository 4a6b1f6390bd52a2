"""Widths of a user's own density that the curvature at its mode does not show.

The curvature describes a single point. At the kink of a Laplace density differences give an
arbitrary one, and on the flat top of ``exp(-x^20)`` it is 0, so the widths are measured by the
density itself. A density may also have parts of very different widths, such as a narrow spike on a
wide normal distribution. Steps that suit the spike never leave it, and its draws do not show the
rest.
"""

from __future__ import annotations

import warnings

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import start_normals
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.metric import Dense
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.parts import FAR, FarPart

_MOST = 300  # parameters, beyond which the points cost more than the run
_FALL = 2.0  # nats: fall of a normal log density over two sds
_LEAST = 0.1  # least share of the mass; a Cauchy density of one parameter has 0.06 so far out


def with_widths(posterior: BasePosterior, mode: Mode, tau: float) -> Mode:
    """Mode whose metric has measured widths where those of the curvature are wrong.

    A width is half the distance over which the log density falls by 2 nats along an axis of the
    metric; on a normal posterior it is one sd. An axis whose width is right to a factor of 2 does
    not change.
    """
    P = mode.theta.size
    if P > _MOST:
        return mode
    with one_blas_thread(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a user's functions may warn far from the posterior
        axes = np.concatenate([mode.metric.root.T, -mode.metric.root.T])
        top = _values(posterior, mode.theta[None])[0]

        def has_fallen(distance: Array) -> Array:
            theta = mode.theta + distance[:, None] * axes
            return ~(top - _values(posterior, theta) < _FALL * tau)

        near, far = np.ones(2 * P), np.full(2 * P, 4.0)
        if not np.isfinite(top) or not (has_fallen(near) | ~has_fallen(far)).any():
            return mode
        low, high = np.full((2, 2 * P), [[1e-60], [1e30]])
        known = has_fallen(high)
        for _ in range(60):
            middle = np.sqrt(low * high)
            fallen = has_fallen(middle)
            low, high = np.where(fallen, low, middle), np.where(fallen, middle, high)
    widths = np.where(known, 0.5 * high, 1.0).reshape(2, P)
    width = np.sqrt(widths[0] * widths[1])
    width[(width > 0.5) & (width < 2.0)] = 1.0
    if (width == 1.0).all():
        return mode
    return Mode(mode.theta, Dense(mode.metric.root * width))


def find_far_part(posterior: BasePosterior, mode: Mode, tau: float, seed: int) -> FarPart | None:
    """Part of the posterior far from the mode that has at least a tenth of the mass, or None.

    The mass between spheres about the mode is estimated from the density in random directions; for
    one parameter it is exact. If few directions lead to mass, the estimate is a lower bound.
    """
    P = mode.theta.size
    radii = np.sqrt(P) * np.geomspace(0.02, 2e8, 228)
    n_pairs = min(16, 2**19 // (2 * len(radii) * max(posterior.n_samples, P)))
    n_pairs = min(n_pairs, 1) if P == 1 else n_pairs
    if P > _MOST or not n_pairs:
        return None
    normals = start_normals(seed, range(FIRST_CHAIN, FIRST_CHAIN + n_pairs), P)
    unit = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    moves = np.outer(radii, np.concatenate([unit, -unit])).reshape(-1, P)
    with one_blas_thread(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above
        values = _values(posterior, mode.theta + mode.metric.sqrt(moves)) / tau
        log_mass = np.logaddexp.reduce(values.reshape(len(radii), -1), axis=1) + P * np.log(radii)
    largest = float(log_mass.max())
    if not np.isfinite(largest) or log_mass[-1] > largest - 5.0:  # the mass goes on outwards
        return None
    mass = np.exp(log_mass - largest)
    far = radii > FAR * np.sqrt(P)
    share = float(mass[far].sum() / mass.sum())
    if share < _LEAST:
        return None
    return FarPart(share, float(radii[far][mass[far].argmax()] / np.sqrt(P)), mode)


def _values(posterior: BasePosterior, theta: Array) -> Array:
    """Log densities ``(n,)``; -inf if a user's function fails or returns nan."""
    try:
        values = posterior.log_density(theta)
    except Exception:  # a user's function may raise where its density is 0
        return np.full(len(theta), -np.inf)
    return np.nan_to_num(values, nan=-np.inf)
