"""Search for other modes and for jumps of a user's own density, which draws may not show.

Such a density may have several modes. Chains that start near one of them stay there and agree, so
that no diagnostic shows the others. Climbs from starts far from the known mode, or from points of
higher density near it, find others. Laplace's approximation estimates the mass of each mode.

A sampler that accepts every step uses only the gradient, which does not show a jump of the density;
neither do the moments of the chain. The energy error of leapfrog steps falls to a quarter at half
the step size, unless the density jumps.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import softmax

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import start_normals
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.dynamics import Array
from skbayes_sgld.sampling.samplers.leapfrog import equal_kicks, kinetic, leapfrog
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.mode import Center, Mode, climb_whitened
from skbayes_sgld.sampling.tuning.parts import KnownMode, are_apart

_STEEPEST = 1e-3  # largest slope at a mode, in units of 1 / sd


def find_modes(posterior: BasePosterior, mode: Mode, tau: float, seed: int) -> list[KnownMode]:
    """Modes of a posterior, the known one first; an empty list if it is the only one.

    Parameters
    ----------
    posterior : BasePosterior
    mode : Mode
    tau : float
        Temperature: the masses are those of the tempered posterior.
    seed : int
        Seed of the starts.
    """
    P = mode.theta.size
    if P > 300:  # climbs and curvatures would cost more than the run
        return []
    # of the mirrored pairs of starts: root mean square of the coordinates, in sds of the known mode
    radii = np.geomspace(1.5, 40.0, 12)
    with one_blas_thread(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a user's functions may warn far from the posterior
        half = start_normals(seed, range(FIRST_CHAIN, FIRST_CHAIN + len(radii)), P)
        lengths = np.sqrt(P) * radii[:, None]
        moves = lengths * half / np.linalg.norm(half, axis=1, keepdims=True)
        far = mode.theta + mode.metric.sqrt(np.concatenate([moves, -moves]))
        # a search may have ended at no mode, or at a saddle
        slope = np.abs(mode.metric.sqrt_t(posterior.grad(mode.theta[None]))).max()
        flat = slope < 0.1 * np.sqrt(tau)
        is_mode = flat and np.linalg.eigvalsh(posterior.curvature(mode.theta))[0] > 0.0
        ends = [mode.theta] if is_mode else []
        for start in (*far, *_higher(posterior, mode, tau, seed)):
            try:
                end = _climb(posterior, mode, start)
            except Exception:  # a user's function may raise where its density is 0
                continue
            if end is not None and all(_apart(posterior, mode, end, other) for other in ends):
                ends.append(end)
        return _with_shares(posterior, ends, tau) if len(ends) > 1 else []


def _higher(posterior: BasePosterior, mode: Mode, tau: float, seed: int) -> Array:
    """The two points of highest density around the mode, if 0.1 nats above it."""
    P = mode.theta.size
    size = min(4096, 2**19 // max(posterior.n_samples, P))  # points; fewer with many rows
    normals = np.random.default_rng([seed, FIRST_CHAIN]).standard_normal((size, P))
    points = mode.theta + mode.metric.sqrt(1.5 * np.sqrt(tau) * normals)
    try:
        values = np.nan_to_num(posterior.log_density(points), nan=-np.inf)
    except Exception:
        return points[:0]
    order = np.argsort(values)[::-1][:2]
    least = float(posterior.log_density(mode.theta[None])[0]) + 0.1 * tau
    return points[order[values[order] > least]]


def _climb(posterior: BasePosterior, mode: Mode, start: Array) -> Array | None:
    """Mode at the end of a climb, whitened by the known mode; None if it ends at no mode."""
    z = mode.metric.whiten((start - mode.theta)[None])[0]
    for _ in range(20):  # halve the distance of a start whose density is 0
        if np.isfinite(posterior.log_density(mode.theta + mode.metric.sqrt(z[None]))).all():
            break
        z *= 0.5
    options = {"maxiter": 200, "gtol": 0.1 * _STEEPEST, "ftol": 1e-12}
    z = climb_whitened(posterior.value_and_grad, mode.theta, mode.metric, z, **options)
    theta = mode.theta + mode.metric.sqrt(z[None])
    value, grad = posterior.value_and_grad(theta)
    slope = np.abs(mode.metric.sqrt_t(grad)).max()
    return theta[0] if np.isfinite(value[0]) and slope < _STEEPEST else None


def _apart(posterior: BasePosterior, mode: Mode, a: Array, b: Array) -> bool:
    """Whether the ends of two climbs are different modes."""
    z = mode.metric.whiten((a - b)[None])[0]
    return bool(np.abs(z).max() >= 1e-3) and are_apart(posterior, a, b, 0.5)


def _with_shares(posterior: BasePosterior, ends: list[Array], tau: float) -> list[KnownMode]:
    """Modes of positive definite curvature with their shares, if two have some of the mass."""
    modes, logs = [], []
    for theta in ends:
        H = posterior.curvature(theta) / tau
        eigenvalues = np.linalg.eigvalsh(H)
        if eigenvalues[0] > 0.0:
            value = float(posterior.log_density(theta[None])[0]) / tau
            logs.append(value - 0.5 * float(np.log(eigenvalues).sum()))
            modes.append((theta, H))
    shares = softmax(logs) if logs else logs
    # a mode of less mass is not worth another sampler
    shared = [
        KnownMode(*mode, float(share))
        for mode, share in zip(modes, shares, strict=True)
        if share > 0.01
    ]
    return shared if len(shared) > 1 else []


def n_trajectories(posterior: BasePosterior) -> int:
    """Number of trajectories that read 20,000 rows in all: little compared with a run."""
    return int(np.clip(20_000 // max(posterior.n_samples, 1), 16, 64))


def energy_error(
    posterior: BasePosterior, center: Center, theta: Array, tau: float, seed: int
) -> tuple[float, float]:
    """Share of trajectories from ``theta (C, P)`` whose energy jumps, and the median jump in nats.

    Parameters
    ----------
    posterior : BasePosterior
    center : Center
        Its metric is that of the trajectories.
    theta : ndarray of shape (C, P)
        Draws, or points close to the posterior.
    tau : float
        Temperature.
    seed : int

    Returns
    -------
    share, size : float
        Both 0 if the density is smooth.
    """
    metric = center.metric
    momentum = np.sqrt(tau) * np.random.default_rng(seed).standard_normal(theta.shape)

    def gradient(z: Array) -> Array:
        return metric.sqrt_t(posterior.grad(theta + metric.sqrt(z)))

    start, errors = np.zeros_like(theta), []
    with one_blas_thread(), np.errstate(all="ignore"):
        energy = kinetic(momentum) - posterior.log_density(theta)
        for parts in (1, 2):  # step sizes; a trajectory is nearly a quarter of a period
            step, kicks = np.full((len(theta), 1), 0.25 / parts), equal_kicks(6 * parts)
            z, end = leapfrog(start, momentum, gradient(start), step, kicks, gradient)
            change = kinetic(end) - posterior.log_density(theta + metric.sqrt(z)) - energy
            errors.append(np.abs(change) / tau)
    whole, half = errors
    # at half the step, the error falls to a half at a kink, to a quarter if the density is smooth
    jumps = (half > 0.2) & (half > 0.6 * whole)
    share = float(jumps.mean())
    if share < 0.04:
        return 0.0, 0.0
    return share, float(np.median(half[jumps]))
