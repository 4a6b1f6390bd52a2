"""Noise of minibatches, measured at the mode, and batches without visible noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import ChainStreams, start_normals
from skbayes_sgld._linalg import MAX_DENSE, largest_eigenvalue, largest_eigenvalue_of
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.dynamics import Metric
from skbayes_sgld.sampling.gradients import BoundGradient, ControlVariate, Full, Gradient
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.bias import STEP_SIZES
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

Array = NDArray[Any]

_PROBE_ROWS = 20_000
_PROBE_WORK = 5e8  # multiplications of a probe at most
_PROBE_DRAWS = 16
_FEW_ROWS = 1000  # of a model whose rows are evaluated one gradient at a time
_FIRST_ROWS = 2048  # of a probe that settles it where the noise is far below what is accepted
_QUIETER = 5  # times less noise than is accepted, where a batch is of few rows


@dataclass
class NoiseLevel:
    """Noise that a minibatch of one row adds to the gradient, near the mode.

    Attributes
    ----------
    variance : float
        Largest eigenvalue of its covariance in the metric of the curvature.
    common : float
        The same of what independent positions have in common of it, where they share the row.
    """

    variance: float
    common: float = 0.0

    def inflation(self, step_size: float, batch_size: int, temperature: float) -> float:
        """Largest relative inflation of a posterior variance.

        Minibatch noise of covariance S / B adds eta^2 S / B to the 2 eta tau of a step's injected
        noise; their ratio is what the stationary variance grows by.
        """
        # a floor, since the step size and the batch size divide by it
        return step_size * max(self.variance, 1e-12) / (2.0 * temperature * batch_size)

    def batch_size(self, step_size: float, temperature: float, n_walkers: int = 1) -> int:
        """Batch size at which the inflation falls to 1 %.

        Where ``n_walkers`` of a chain share it, the variance of their mean grows by 8 % at most: by
        as many times what their noise has in common.
        """
        size = self.inflation(step_size, 1, temperature) / THRESHOLDS.max_noise
        if n_walkers > 1:
            of_mean = step_size * n_walkers * self.common / (2.0 * temperature)
            size = max(size, of_mean / THRESHOLDS.max_common_noise)
        return int(np.ceil(size))

    def step_size(self, batch_size: int, temperature: float) -> float:
        """Step size at which the inflation falls to 1 %."""
        return THRESHOLDS.max_noise / self.inflation(1.0, batch_size, temperature)


def measure_noise(
    posterior: BasePosterior,
    gradient: Gradient,
    mode: Mode,
    temperature: float,
    seed: int,
    metric: Metric | None = None,
    most_rows: int = _PROBE_ROWS,
) -> NoiseLevel:
    """Measure the noise of one-row minibatches at draws from the Laplace approximation.

    ``metric`` is that of the preconditioner, by default of the curvature; up to ``most_rows`` rows
    are read.
    """
    n = posterior.n_samples
    stream = ChainStreams(seed, FIRST_CHAIN)
    size = min(most_rows, max(1000, int(_PROBE_WORK / _PROBE_DRAWS / posterior.n_params**2)))
    idx = np.arange(n) if n <= size else stream.rows(1, n, size, True)[0]
    normals = start_normals(
        seed, range(FIRST_CHAIN, FIRST_CHAIN + _PROBE_DRAWS), posterior.n_params
    )
    draws = mode.theta + np.sqrt(temperature) * mode.unwhiten(normals)
    bound = gradient.bind(posterior, mode.theta, mode.expansion)
    metric = mode.metric if metric is None else metric
    if "local_rows" not in posterior.abilities:
        rests = np.concatenate([_row_rests(bound, theta, idx[:_FEW_ROWS]) for theta in draws])
        return NoiseLevel(_largest_variance(metric.sqrt_t(rests)))
    rows = posterior.take(idx[None])
    batch = bound.prepare(idx[None, None])[0]
    scores = np.concatenate([bound.row_score(theta[None], batch) for theta in draws])
    second = np.einsum("sai,sbi->abi", scores, scores) / len(draws)
    means = np.concatenate([posterior.pullback(score[None], rows) for score in scores])
    means /= len(idx) * np.sqrt(len(draws))
    if posterior.n_params <= MAX_DENSE and "row_curvature" in posterior.abilities:
        whole = metric.in_groups_of(None)

        def largest(second: Array, means: Array) -> float:
            covariance = posterior.gram(rows.design[0], second) / len(idx) - means.T @ means
            return n**2 * largest_eigenvalue(whole.sqrt_t(whole.sqrt_t(covariance).T))

        level = NoiseLevel(largest(second, means))
        if posterior.shares_batches:
            # of the products of two different draws
            total, S = scores.sum(axis=0), len(draws)
            pairs = (np.einsum("ai,bi->abi", total, total) - S * second) / (S * (S - 1))
            level.common = max(0.0, largest(pairs, means.sum(axis=0, keepdims=True) / np.sqrt(S)))
        return level

    def product(z: Array) -> Array:
        x = metric.sqrt(z.reshape(1, -1))
        seen = np.einsum("abi,sbi->sai", second, posterior.local(x, rows))
        moved = posterior.pullback(seen, rows) / len(idx) - (x @ means.T) @ means
        return metric.sqrt_t(moved)[0]

    return NoiseLevel(n**2 * largest_eigenvalue_of(product, posterior.n_params))


def _row_rests(bound: BoundGradient, theta: Array, idx: Array) -> Array:
    """One-row estimates at ``theta (P,)`` less their mean, each row as a chain."""
    batch = bound.prepare(idx[None, :, None])[0]
    estimates = bound(np.tile(theta, (len(idx), 1)), batch)
    return estimates - estimates.mean(axis=0)


def _largest_variance(rests: Array) -> float:
    """Largest eigenvalue of ``rests' rests / N``, rests being ``(N, P)``."""
    small = rests if rests.shape[1] <= rests.shape[0] else rests.T
    return largest_eigenvalue(small.T @ small) / len(rests)


def cheapest_gradient(
    posterior: BasePosterior, mode: Mode, temperature: float, seed: int, n_walkers: int = 1
) -> tuple[Gradient, int | None, str, NoiseLevel | None]:
    """Cheaper of minibatches without visible noise and all rows: batch size, why, and its noise.

    ``n_walkers`` positions of a chain share a batch where the posterior allows it.
    """
    n, gradient = posterior.n_samples, ControlVariate()
    if not posterior.shares_batches:
        n_walkers = 1
    level = measure_noise(posterior, gradient, mode, temperature, seed, most_rows=_FIRST_ROWS)
    if _QUIETER * level.batch_size(STEP_SIZES[0], temperature, n_walkers) > THRESHOLDS.cheap_batch:
        level = measure_noise(posterior, gradient, mode, temperature, seed)
    batch_size = _quiet_batch(level, temperature, n_walkers)
    if cost_of_a_row(posterior, n_walkers) * batch_size > n:
        taken = f"{batch_size:,} of {n:,}" if batch_size < n else f"more than all {n:,}"
        why = f"a batch without visible noise takes {taken} rows"
        return Full(), None, why, None
    why = f"batches of {batch_size:,} add less than 0.5 % to any standard deviation"
    if n_walkers > 1:
        why += f", and {n_walkers} walkers share each"
    return gradient, batch_size, why, level


def cost_of_a_row(posterior: BasePosterior, n_walkers: int) -> float:
    """Times that a row of a batch costs what a row of all costs, for a position."""
    if n_walkers == 1:
        return THRESHOLDS.gathered_cost
    K = posterior.n_predictors
    numbers = np.array([posterior.n_params, K, K * (K - 1)])
    return float(numbers @ THRESHOLDS.shared_row / (numbers @ THRESHOLDS.row_of_all))


def choose_batch_size(noise: NoiseLevel, n_samples: int, temperature: float) -> int:
    """Batch size without visible noise, at most the number of rows."""
    return min(_quiet_batch(noise, temperature), n_samples)


def _quiet_batch(level: NoiseLevel, temperature: float, n_walkers: int = 1) -> int:
    """Batch size without visible noise; where few rows are enough, one with less than that."""
    wanted = level.batch_size(STEP_SIZES[0], temperature, n_walkers)
    quiet = max(THRESHOLDS.min_batch, min(_QUIETER * wanted, THRESHOLDS.cheap_batch))
    return max(wanted, quiet)
