"""Search for other modes and jumps of a user's own density, which its draws may hide.

Nothing promises that such a density has one mode. Chains that begin around one of two stay there
and agree, so that no figure of theirs shows the other. Climbs that begin far from the known mode,
or near it where the density is higher, end at others. The mass of a mode is estimated by Laplace's
approximation.

A sampler that accepts every step knows the gradient alone. Where the density jumps, the gradient
says nothing of it, and neither do the moments of the chain. Leapfrog steps keep the energy up to an
error that a step of half the size makes a quarter: what stays as it was is a jump of the density.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import start_normals
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.dynamics import Array
from skbayes_sgld.sampling.samplers.hmc import equal_kicks, kinetic, leapfrog
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.mode import Mode, climb_whitened

_STEEPEST = 1e-3  # slope at the end of a climb, in sds


class KnownMode(NamedTuple):
    """One of several modes: its place, the curvature there, and its share of all their mass."""

    theta: Array
    precision: Array
    share: float

    def falls(self, theta: Array) -> Array:
        """Minus the log of the normal density of this mode at ``theta (S, P)``, up to a constant.

        A draw belongs to the mode of which it is the least.
        """
        apart = theta - self.theta
        square = np.einsum("sp,sp->s", apart @ self.precision, apart)
        return np.asarray(0.5 * (square - np.linalg.slogdet(self.precision)[1]))


def find_modes(posterior: BasePosterior, mode: Mode, tau: float, seed: int) -> list[KnownMode]:
    """Modes of a posterior, the known one first; none where it is the only one.

    Parameters
    ----------
    posterior : BasePosterior
    mode : Mode
    tau : float
        Temperature, which flattens the masses.
    seed : int
        Seed of the starts.
    """
    P = mode.theta.size
    if P > 300:  # a climb and the curvature at its end cost more than the run
        return []
    # of mirrored pairs of starts, in sds of the known mode (root mean square over the coordinates)
    radii = np.geomspace(1.5, 40.0, 12)
    with one_blas_thread(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a user's functions far from where chains go
        half = start_normals(seed, range(FIRST_CHAIN, FIRST_CHAIN + len(radii)), P)
        lengths = np.sqrt(P) * radii[:, None]
        moves = lengths * half / np.linalg.norm(half, axis=1, keepdims=True)
        far = mode.theta + mode.metric.sqrt(np.concatenate([moves, -moves]))
        # a search may have found none, or a saddle
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
    """The two highest of many points around the mode, if they are 0.1 nats above it."""
    P = mode.theta.size
    size = min(4096, 2**19 // max(posterior.n_samples, P))  # points; and points times rows
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
    """End of a climb in coordinates of the known mode's sds; None if it ends at no mode."""
    z = mode.metric.whiten((start - mode.theta)[None])[0]
    for _ in range(20):  # halvings of the way to a start whose density is 0
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
    """Whether two ends of climbs are different modes."""
    z = mode.metric.whiten((a - b)[None])[0]
    return bool(np.abs(z).max() >= 1e-3) and are_apart(posterior, a, b, 0.5)


def are_apart(posterior: BasePosterior, a: Array, b: Array, fall: float) -> bool:
    """Whether the log density on the line between two places falls by ``fall`` below the lower."""
    way = b + np.linspace(0.0, 1.0, 33)[:, None] * (a - b)
    value = posterior.log_density(way)
    return not value.min() > min(value[0], value[-1]) - fall


def _with_shares(posterior: BasePosterior, ends: list[Array], tau: float) -> list[KnownMode]:
    """Modes with their shares of the mass, if two have some, of positive definite curvatures."""
    modes, logs = [], []
    for theta in ends:
        H = posterior.curvature(theta) / tau
        eigenvalues = np.linalg.eigvalsh(H)
        if eigenvalues[0] > 0.0:
            value = float(posterior.log_density(theta[None])[0]) / tau
            logs.append(value - 0.5 * float(np.log(eigenvalues).sum()))
            modes.append((theta, H))
    shares = softmax(logs) if logs else logs
    # a mode of less is not worth another sampler
    shared = [
        KnownMode(*mode, float(share))
        for mode, share in zip(modes, shares, strict=True)
        if share > 0.01
    ]
    return shared if len(shared) > 1 else []


def n_trajectories(posterior: BasePosterior) -> int:
    """Number of trajectories whose cost, 20,000 rows in all, is small beside a run's."""
    return int(np.clip(20_000 // max(posterior.n_samples, 1), 16, 64))


def energy_error(
    posterior: BasePosterior, mode: Mode, theta: Array, tau: float, seed: int
) -> tuple[float, float]:
    """Share of the trajectories from ``theta (C, P)`` whose energy jumps, and the median jump.

    Parameters
    ----------
    posterior : BasePosterior
    mode : Mode
        Its metric is that of the trajectories.
    theta : ndarray of shape (C, P)
        Draws, or nearly.
    tau : float
        Temperature.
    seed : int

    Returns
    -------
    share, size : float
        0 where the density is smooth.
    """
    metric = mode.metric
    momentum = np.sqrt(tau) * np.random.default_rng(seed).standard_normal(theta.shape)

    def gradient(z: Array) -> Array:
        return metric.sqrt_t(posterior.grad(theta + metric.sqrt(z)))

    start, errors = np.zeros_like(theta), []
    with one_blas_thread(), np.errstate(all="ignore"):
        energy = kinetic(momentum) - posterior.log_density(theta)
        for parts in (1, 2):  # a quarter of a period, nearly
            step, kicks = np.full((len(theta), 1), 0.25 / parts), equal_kicks(6 * parts)
            z, end = leapfrog(start, momentum, gradient(start), step, kicks, gradient)
            change = kinetic(end) - posterior.log_density(theta + metric.sqrt(z)) - energy
            errors.append(np.abs(change) / tau)
    whole, half = errors
    # of the error at twice the step a kink leaves half, a smooth density a quarter
    jumps = (half > 0.2) & (half > 0.6 * whole)
    share = float(jumps.mean())
    if share < 0.04:
        return 0.0, 0.0
    return share, float(np.median(half[jumps]))
