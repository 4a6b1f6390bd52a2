"""Bias of a step size in any metric: by a pilot, or in closed form on a normal target."""

from __future__ import annotations

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.metric import preconditioned_eigenvalues
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.tuning import pilots
from skbayes_sgld.sampling.tuning.mode import Mode


def step_bias(
    run: Run, mode: Mode, etas: Array | float, in_curvature: bool, seed: int
) -> tuple[float, float]:
    """Largest bias of draws (means in sds, sds relative), with twice its standard error.

    ``etas`` are the step sizes at the draws, and their weights. In the metric of the curvature a
    pilot measures the bias. In other metrics, and for steps shorter than a fifth of those that the
    sampler suggests, it is the bias on a normal target.
    """
    sampler, P = run.sampler, run.dynamics.metric.n_params
    if sampler.exact:
        return 0.0, 0.0
    shortest = 0.2 * sampler.step_and_time(np.ones(1))[0] if in_curvature else np.inf
    sizes, counts = _typical_steps(etas)
    rates = None
    if sizes[0] <= shortest:
        rates = preconditioned_eigenvalues(run.dynamics.metric, mode.metric)
    biases, doubts = np.empty((2, len(sizes)))
    for k, eta in enumerate(sizes.tolist()):
        if rates is None or eta > shortest:
            biases[k], doubts[k], *_ = pilots.measure_bias(run, mode, eta, seed)
        else:
            biases[k], doubts[k] = _bias_on_normal(sampler, eta, rates, P), 0.0
    # variances average over the draws, whether steps change slowly or quickly
    variance = np.average(np.square(1.0 + biases), weights=counts)
    return float(np.sqrt(variance)) - 1.0, float(np.average(doubts, weights=counts))


def _typical_steps(etas: Array | float) -> tuple[Array, Array]:
    """Step sizes in the middle of eighths of their sum, ascending, and the number of each."""
    etas = np.sort(np.atleast_1d(etas))
    weight = etas / etas[-1]  # relative, as the sum of the largest steps may overflow
    middle = np.cumsum(weight) - 0.5 * weight
    at = np.interp((np.arange(8) + 0.5) / 8, middle / weight.sum(), etas)
    return np.unique(at, return_counts=True)


def _bias_on_normal(sampler: Sampler, eta: float, rates: Array, n_params: int) -> float:
    """Largest relative error of an sd, on a normal target whose curvatures are ``rates``."""
    slowest, steepest = (eta * sampler.speed(rate) for rate in (rates[0], rates[-1]))
    # Euler's error is largest at the largest curvature, that of a learned metric at the smallest
    at_ends = [pilots.normal_inflation(sampler, slowest, n_params)]
    stable = steepest < 2.0
    at_ends.append(pilots.normal_inflation(sampler, steepest, n_params) if stable else np.inf)
    wide = max(at_ends, key=lambda inflation: abs(inflation - 1.0))
    return abs(float(np.sqrt(wide)) - 1.0)
