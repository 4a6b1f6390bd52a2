"""Many rows of which few matter: trajectories follow these, and an expansion of the others.

With nearly separated classes, a rare class or outlying rows, steps without rejections are biased,
and trajectories on all rows are expensive. But most rows have a log likelihood that is quadratic
over the posterior, up to a small remainder: their sum is one expansion. Rows are drawn in
proportion to their remainders, and stand for those of all.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import ChainStreams, start_normals
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.strategies.accept_reject import (
    adapt_run,
    draft_adjusted,
    finish_adapted,
)
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.posterior.condensed import CondensedPosterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.sampling.samplers import HMC
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.mode import Center

# Standard deviation of the error of the log density over the posterior. By Cauchy and Schwarz a
# mean is off by at most as many sds; it is aimed at, and the largest that a pilot may find
_AIM, _LIMIT = 0.01, 0.03
_MOST = 0.25  # largest share of the rows
_MOVES, _TESTS = 8, 32  # draws at which remainders are measured, and at which the error is


class Condensed(Strategy):
    """HMC on the rows that matter and an expansion of the others."""

    only = ("condensable",)

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether there is a finding against Langevin steps, and no rows are asked for."""
        settings = task.settings
        left = settings.left_to_tuning and settings.gradient is AUTO
        return left and task.finding is not None

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan of trajectories on the rows that matter, if they are few."""
        posterior, center = task.posterior, Center(task.mode.theta, task.mode.metric)
        tau, n = task.settings.tau, task.posterior.n_samples
        assert isinstance(posterior, GLMPosterior) and task.finding is not None
        choices = {k: v for k, v in task.choices.items() if k not in ("gradient", "batch_size")}
        # the second time about the pilot's centre, since rows far from the mode may matter
        for number in range(2):
            few = condensed(posterior, center, tau, task.seed + number)
            if few is None:
                break
            inner = replace(task, posterior=few, choices=choices)
            run, rows_read = draft_adjusted(inner, HMC())
            tuned = adapt_run(inner, run, center, task.finding.why)
            center = tuned.found.center
            theta = tuned.found.ends
            if len(theta) < _TESTS:
                theta = center.theta + _moves(center, tau, task.seed, _MOVES, _TESTS)
            off = error_of(posterior, few, theta, tau)
            if off < _LIMIT:
                why = f"{few.n_samples:,} of {n:,} rows matter; the others by their expansion, "
                why += f"which moves means by {off:.1%} of an sd at most"
                read = {name: each._replace(why=why) for name, each in rows_read.choices.items()}
                rows_read = rows_read._replace(choices=read)
                plan = finish_adapted(inner, rows_read, tuned)
                return replace(plan, posterior=posterior, bias=(off, 0.0))
        return task


def condensed(
    posterior: GLMPosterior, center: Center, tau: float, seed: int
) -> CondensedPosterior | None:
    """Posterior by the rows that matter; None if they are too many.

    A row is drawn with a probability in proportion to its remainder, at most 1.
    """
    size = remainders(posterior, center, tau, seed) / tau
    if not np.isfinite(size).all():
        return None
    chance = _chances(size)
    if chance.sum() > _MOST * len(chance):
        return None
    uniform = ndtr(ChainStreams(seed, FIRST_CHAIN).normals(1, len(chance))[0])
    rows = np.flatnonzero(uniform < chance)
    return CondensedPosterior(posterior, rows, 1.0 / chance[rows], center.theta)


def remainders(posterior: GLMPosterior, center: Center, tau: float, seed: int) -> Array:
    """Root mean square ``(n,)`` of the remainder of each row, over moves from the centre.

    Of the cubic and the quartic term, from differences of the log likelihood at moves of both signs
    and half the length.
    """
    moves = _moves(center, tau, seed, 0, _MOVES)
    total = np.zeros(posterior.n_samples)
    with one_blas_thread(), np.errstate(all="ignore"):
        (at_center,) = posterior.log_likelihood(center.theta[None])
        for move in moves:
            steps = np.outer([1.0, -1.0, 0.5, -0.5], move)
            ahead, back, near, near_back = posterior.log_likelihood(center.theta + steps)
            odd = 0.5 * (ahead - back) - (near - near_back)
            even = 0.5 * (ahead + back) - 2.0 * (near + near_back) + 3.0 * at_center
            # three quarters of the terms
            total += np.square(odd / 0.75) + np.square(even / 0.75)
    return np.sqrt(total / len(moves))


def error_of(posterior: GLMPosterior, few: CondensedPosterior, theta: Array, tau: float) -> float:
    """Standard deviation of the error of the log density over draws ``theta (S, P)``."""
    with one_blas_thread(), np.errstate(all="ignore"):
        off = (posterior.log_density(theta) - few.log_density(theta)) / tau
    return float(off.std()) if np.isfinite(off).all() else np.inf


def _moves(center: Center, tau: float, seed: int, first: int, n_moves: int) -> Array:
    """Normal moves ``(n_moves, P)`` of the width of the metric."""
    chains = range(FIRST_CHAIN + first, FIRST_CHAIN + first + n_moves)
    normals = start_normals(seed, chains, center.theta.size)
    return np.sqrt(tau) * center.metric.sqrt(normals)


def _chances(size: Array) -> Array:
    """Probabilities in proportion to the sizes, at most 1, of an error of the aimed variance."""
    low, high = 0.0, 60.0  # logarithms of the factor, in units of the largest size
    unit = size / max(float(size.max()), 1e-300)
    for _ in range(40):
        middle = 0.5 * (low + high)
        chance = np.minimum(np.exp(middle) * unit, 1.0)
        with np.errstate(all="ignore"):
            variance = float(np.nansum(np.square(size) * (1.0 / chance - 1.0)))
        low, high = (middle, high) if variance > _AIM**2 else (low, middle)
    return np.minimum(np.exp(high) * unit, 1.0)
