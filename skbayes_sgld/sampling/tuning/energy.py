"""Energy error of trajectories: whether a density changes as its gradient says.

A sampler that accepts every step knows the gradient alone. Where the density jumps, the gradient
says nothing of it, and neither do the moments of the chain. Leapfrog steps keep the energy up to an
error that a step of half the size makes a quarter: what stays as it was is a jump of the density.
"""

from __future__ import annotations

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.dynamics import Array
from skbayes_sgld.sampling.tuning.mode import Mode


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
    momentum = np.sqrt(tau) * np.random.default_rng(seed).standard_normal(theta.shape)
    with one_blas_thread(), np.errstate(all="ignore"):  # a quarter of a period, nearly
        whole, half = (
            np.abs(_change(posterior, mode, theta, momentum, 0.25 / parts, 6 * parts)) / tau
            for parts in (1, 2)
        )
    # of the error at twice the step a kink leaves half, a smooth density a quarter
    jumps = (half > 0.2) & (half > 0.6 * whole)
    share = float(jumps.mean())
    if share < 0.04:
        return 0.0, 0.0
    return share, float(np.median(half[jumps]))


def _change(
    posterior: BasePosterior, mode: Mode, theta: Array, momentum: Array, step: float, n_steps: int
) -> Array:
    """Changes ``(C,)`` of the energy along leapfrog trajectories in the metric of the mode."""
    energy = 0.5 * np.square(momentum).sum(axis=1) - posterior.log_density(theta)
    momentum = momentum + 0.5 * step * mode.metric.sqrt_t(posterior.grad(theta))
    for number in range(n_steps):
        theta = theta + step * mode.metric.sqrt(momentum)
        share = 1.0 if number < n_steps - 1 else 0.5
        momentum = momentum + share * step * mode.metric.sqrt_t(posterior.grad(theta))
    end = 0.5 * np.square(momentum).sum(axis=1) - posterior.log_density(theta)
    return np.asarray(end - energy)
