"""Adaptation of the Metropolis-adjusted chain: metric, step size and spacing, on a short pilot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcinv

from skbayes_sgld._linalg import inverse_root, matmul_rows
from skbayes_sgld.sampling.chains import ChainOverflowError, Run, run_chains
from skbayes_sgld.sampling.mode import Mode
from skbayes_sgld.sampling.preconditioners import Curvature
from skbayes_sgld.sampling.randomness import start_normals

Array = NDArray[Any]

FIRST_CHAIN = 2**31  # chain numbers from here on are the pilots' own

_ACCEPTANCE = 0.65  # between the 0.574 of Roberts & Rosenthal 1998 and what few dimensions want
_ROUNDS = 6
_STEPS = 100  # a round
_MAX_STEP = 1.0
_SETTLE_STEP = 0.1
_LOST = 100.0  # sds from the mode at which a free chain has left the posterior
_SETTLE = 0x5E771E  # other random numbers than the run's own
_MIN_CHAINS, _MAX_CHAINS = 16, 64
_CHAIN_ROWS = 20_000  # chains times rows: what a step of the pilot may cost


@dataclass
class Adapted:
    """What the pilot found.

    Attributes
    ----------
    mode : Mode
        Centre and metric of the posterior as the pilot's draws have it.
    step_size : float
    acceptance : float
    autocorrelation : float
        Integrated autocorrelation time of the slowest parameter, in steps.
    """

    mode: Mode
    step_size: float
    acceptance: float
    autocorrelation: float


def adapt(run: Run, mode: Mode, entropy: int, rounds: int = _ROUNDS) -> Adapted:
    """Adapt a Metropolis-adjusted run from the mode and its curvature.

    Every round of the pilot goes on where the last one stopped. The metric becomes the draws'
    covariance, shrunk to the curvature's while the draws are few, and the step size the one whose
    acceptance is 0.65, by ``acceptance = erfc(c step^{3/2})`` (Roberts & Rosenthal 1998, eq. 4).
    """
    P, tau = mode.theta.size, run.dynamics.temperature
    n_chains = int(np.clip(_CHAIN_ROWS // run.n_samples, _MIN_CHAINS, _MAX_CHAINS))
    chains = range(FIRST_CHAIN, FIRST_CHAIN + n_chains)
    normals = start_normals(entropy, chains, P)
    position = mode.theta + np.sqrt(tau) * matmul_rows(normals, mode.root.T)
    position = settle(run, position, mode, entropy, FIRST_CHAIN)
    step_size, metric, kept = 0.4, mode, np.empty((n_chains, 0, P))
    for number in range(rounds):
        bound = Curvature().bind(P, metric)
        pilot = replace(
            run, dynamics=replace(run.dynamics, preconditioner=bound), step_size=step_size
        )
        part = run_chains(
            pilot, position, n_draws=_STEPS, entropy=entropy + number, first_chain=FIRST_CHAIN
        )
        position = part.draws[:, -1]
        acceptance = float(part.state.sampler_state["accepted"].mean() / _STEPS)
        last = number == rounds - 1
        if not last:
            step_size = _next_step(step_size, acceptance)
            if number > 0:  # the first round forgets the start
                kept = np.concatenate([kept, part.draws], axis=1)
                metric = _metric(kept[:, kept.shape[1] // 3 :], mode, tau)
    return Adapted(metric, step_size, acceptance, _autocorrelation(part.draws, metric))


def settle(run: Run, position: Array, mode: Mode, entropy: int, first_chain: int = 0) -> Array:
    """Return where chains that start at ``position (C, P)`` are once they have lost their start.

    A chain that accepts or rejects may stand still for long where it starts too far out
    (Christensen, Roberts & Rosenthal 2005); one that does not reject never does. Where free
    steps are not safe, the chains stay: the adjusted chain finds its own way.
    """
    if getattr(run.dynamics.gradient.posterior, "steep", False):
        return position
    free = replace(run, sampler=run.sampler.unadjusted(), step_size=_SETTLE_STEP)
    n_steps = int(np.ceil(10.0 / _SETTLE_STEP))
    seed = entropy ^ _SETTLE
    try:
        part = run_chains(
            free, position, n_draws=1, thin=n_steps, entropy=seed, first_chain=first_chain
        )
    except ChainOverflowError:
        return position
    settled = part.draws[:, -1]
    # chain by chain, so that none depends on the others
    lost = np.abs((settled - mode.theta) / mode.spread).max(axis=1) > _LOST
    return np.where(lost[:, None], position, settled)


def _next_step(step_size: float, acceptance: float) -> float:
    bounded = float(np.clip(acceptance, 0.02, 0.98))
    factor = float((erfcinv(_ACCEPTANCE) / erfcinv(bounded)) ** (2.0 / 3.0))
    return float(np.clip(step_size * np.clip(factor, 0.25, 2.0), 1e-4, _MAX_STEP))


def _metric(draws: Array, mode: Mode, tau: float) -> Mode:
    """Return centre and metric from draws, shrunk to the mode's by the draws' own worth."""
    n_chains, _, P = draws.shape
    flat = draws.reshape(-1, P)
    center = flat.mean(axis=0)
    whiten = mode.curvature @ mode.root  # its transpose takes theta - center to the mode's metric
    u = (draws - center) @ whiten / np.sqrt(tau)
    covariance = u.reshape(-1, P).T @ u.reshape(-1, P) / len(flat)
    # independent draws that the chains are worth, by the variance of their means
    between = u.mean(axis=1).var(axis=0, ddof=1)
    worth = n_chains * float(np.median(np.diagonal(covariance) / np.maximum(between, 1e-300)))
    share = worth / (worth + 5.0 * P)
    shrunk = share * covariance + (1.0 - share) * np.eye(P)
    try:
        root = mode.root @ np.linalg.cholesky(shrunk)
        inverse = inverse_root(root @ root.T)
    except np.linalg.LinAlgError:
        return mode
    return Mode(center, inverse @ inverse.T, root)


def _autocorrelation(draws: Array, metric: Mode) -> float:
    """Return the integrated autocorrelation time of the slowest direction, from batch means."""
    n_chains, n_steps, P = draws.shape
    u = (draws - metric.theta) @ (metric.curvature @ metric.root)
    worst = 1.0
    for values in (u, np.square(u - u.mean(axis=(0, 1)))):
        total = values.var(axis=(0, 1))
        between = values.mean(axis=1).var(axis=0, ddof=1)
        times = n_steps * between / np.maximum(total, 1e-300)
        worst = max(worst, float(times.max()))
    return worst
