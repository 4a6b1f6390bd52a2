"""Problems of draws from a posterior with several modes: too few jumps, or a missed mode."""

from __future__ import annotations

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.inference.diagnosis import describe_point
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.sampling.samplers import ParallelTempering
from skbayes_sgld.sampling.samplers.jumping import JumpingHMC

TO_CROSS = "raise the sampler's max_temperature and n_temperatures, or sample each mode alone"


def mode_problems(result: SamplingResult, flat: Array) -> list[str]:
    """Sentences on the shares that modes have of the draws ``(S, P)``."""
    if isinstance(result.plan.run.sampler, JumpingHMC):
        return crossing_problem(result)
    return missed_problem(result.plan, flat)


def crossing_problem(result: SamplingResult) -> list[str]:
    """Sentence on chains that jump between modes too rarely to estimate the modes' masses.

    If chains enter and leave a mode of mass p n times in total, the standard error of p is about
    ``p (1 - p) sqrt(2 / n)``.
    """
    plan, modes = result.plan, result.plan.modes
    C, S, P = result.theta.shape
    falls = [mode.falls(result.theta.reshape(-1, P)) for mode in modes]
    nearest = np.argmin(falls, axis=0).reshape(C, S)
    within = np.arange(1, S) % plan.n_each > 0  # not between the draws of two walkers
    n = int(np.sum((nearest[:, 1:] != nearest[:, :-1])[:, within]))
    share = float(np.mean(nearest == np.bincount(nearest.ravel()).argmax()))
    error = share * (1.0 - share) * np.sqrt(2.0 / max(n, 1))
    if error <= 0.05:
        return []
    return [
        f"chains jumped between modes {n} times in {C * S:,} draws, and {share:.0%} of the draws "
        f"are of the mode that has most of them: this share may be off by {2.0 * error:.0%}; raise "
        "n_draws"
    ]


def missed_problem(plan: Plan, flat: Array) -> list[str]:
    """Sentence on a mode that has too few of the draws ``(S, P)``."""
    nearest = np.argmin([mode.falls(flat) for mode in plan.modes], axis=0)
    shares = np.bincount(nearest, minlength=len(plan.modes)) / len(flat)
    missed = [
        k
        for k, mode in enumerate(plan.modes)
        if shares[k] < 0.25 * mode.share and mode.share > 0.01
    ]
    if not missed:
        return []
    worst = max(missed, key=lambda k: plan.modes[k].share)
    mode = plan.modes[worst]
    remedy = "set sampler='parallel_tempering'"
    if not plan.posterior.facts.user_defined:  # given settings keep "auto" from jumping
        names = "sampler", "step_size", "gradient", "batch_size", "preconditioner"
        given = [name for name in names if plan.choices[name].given]
        remedy = f"set {' and '.join(given) or 'every setting'} to 'auto'"
    elif isinstance(plan.run.sampler, ParallelTempering):
        remedy = TO_CROSS
    where = describe_point(plan.posterior, mode.theta)
    return [
        f"a mode at {where} has about {mode.share:.0%} of the posterior, by its "
        f"curvature, and {shares[worst]:.1%} of the draws: chains do not cross to it; {remedy}"
    ]
