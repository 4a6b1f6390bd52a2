"""Problems of a user's own model: modes that the draws have missed, and jumps of the density."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.sampling.dynamics import Diagonal
from skbayes_sgld.sampling.samplers import ParallelTempering
from skbayes_sgld.sampling.tuning.energy import energy_error, n_trajectories
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.other_modes import KnownMode

Array = NDArray[Any]

_MISSED = 0.25  # of a mode's share: with fewer draws there, chains have not crossed to it
_SHOWN = 5  # parameters that a message shows


def own_problems(result: SamplingResult) -> list[str]:
    """Sentences on modes and jumps that the draws of a user's own model do not show."""
    plan = result.plan
    if not plan.posterior.own:
        return []
    flat = result.theta.reshape(-1, result.theta.shape[2])
    if not np.isfinite(flat).all():
        return []
    return missed_problem(plan, flat) + jump_problem(plan, flat)


def missed_problem(plan: Plan, flat: Array) -> list[str]:
    """Sentence on the mode of several whose share of the draws ``(S, P)`` is too small."""
    if not plan.modes:
        return []
    nearest = np.argmin([mode.falls(flat) for mode in plan.modes], axis=0)
    seen = np.bincount(nearest, minlength=len(plan.modes)) / len(flat)
    missed = [k for k, mode in enumerate(plan.modes) if seen[k] < _MISSED * mode.share]
    if not missed:
        return []
    worst = max(missed, key=lambda k: plan.modes[k].share)
    mode = plan.modes[worst]
    remedy = "set sampler='parallel_tempering'"
    if isinstance(plan.run.sampler, ParallelTempering):
        remedy = "raise the sampler's max_temperature and n_temperatures, or sample each mode alone"
    return [
        f"a mode at {_where(plan, mode)} has about {mode.share:.0%} of the posterior, by its "
        f"curvature, and {seen[worst]:.1%} of the draws: chains do not cross to it; {remedy}"
    ]


def _where(plan: Plan, mode: KnownMode) -> str:
    values = plan.posterior.constrain(mode.theta[None])[0]
    listed = list(zip(plan.posterior.constrained_names, values, strict=True))
    return ", ".join(f"{name}={value:.3g}" for name, value in listed[:_SHOWN])


def jump_problem(plan: Plan, flat: Array) -> list[str]:
    """Sentence on jumps of a density whose draws ``(S, P)`` have followed the gradient alone."""
    settings = plan.settings
    automatic = settings.sampler is None and settings.step_size is None and settings.uses_curvature
    seen = automatic and plan.run.batch_size is None and settings.clip is None  # by a pilot
    if plan.run.sampler.adjusted or seen:
        return []
    posterior, tau = plan.posterior, settings.tau
    some = flat[np.linspace(0, len(flat) - 1, n_trajectories(posterior)).astype(int)]
    center = plan.center
    if center is None:
        spread = np.maximum(flat.var(axis=0), np.finfo(float).tiny) / tau
        center = Mode(flat.mean(axis=0), Diagonal(spread))
    share, size = energy_error(posterior, center, some, tau, plan.seed)
    if not share:
        return []
    return [
        f"the log density jumps by {size:.2g} on {share:.0%} of trajectories, and its gradient "
        "says nothing of it: this sampler follows the gradient alone; set sampler='hmc', which "
        "accepts or rejects by the density"
    ]
