"""The error that explains an overflow: its place, and a step size that does not overflow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skbayes_sgld._random import start_normals
from skbayes_sgld.inference.diagnosis import describe_point, firmer_priors
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.run import Run, reported_draws

_AT_ONCE = 10  # steps within which an overflow means a far too long step size
_FAR = 1e6  # distance, relative to the start's, at which a chain is about to overflow


def explain_overflow(error: ChainOverflowError, plan: Plan) -> ChainOverflowError:
    """Error that names step, parameter and chain, and a smaller step size that did not overflow."""
    posterior, run, start, seed = plan.posterior, plan.run, plan.start, plan.seed
    is_given = plan.choices["step_size"].given
    head = place_of(error, plan)
    if error.rejected:
        head += f", where {error.rejected} proposals in a row could never be accepted"
    undefined = _without_gradient(posterior, run, start, seed)
    size, length, holds = _shorter_step(plan, error.step)
    if not holds:
        remedy = (
            "The data hardly bound the posterior, or not at all: check the units of X and y and "
            "what sample_weight sums to, or give proper priors, of the intercept too."
            if posterior.facts.full_support
            else "Check that the log density and its gradient are finite where the chains begin, "
            "or begin elsewhere with init."
        )
        return error.explained(
            f"{head}, and so did all shorter steps that were tried, down to {size:g}. "
            f"{remedy}{undefined}"
        )
    advice = "set step_size='auto' and preconditioner='auto', or " if is_given else ""
    names, n_rows = posterior.reported.names, posterior.facts.total_weight
    firmer = "" if is_given else firmer_priors(n_rows, names)
    nearer = ", or begin nearer to the mode with init='mode'" if error.rejected else ""
    if error.step < _AT_ONCE and start.any():
        # chains may start at distant draws from the prior
        from_zeros, n_first, _ = _trial(posterior, run, np.zeros_like(start), 50, seed, _FAR)
        if from_zeros:
            nearer = (
                f", or keep it and set init='zeros': from there {n_first} steps of "
                f"{run.step_size:.3g} did not overflow"
            )
    return error.explained(
        f"{head}. With step_size={size:g} a run of {length} steps did not overflow; "
        f"{advice}give a smaller step_size{nearer}{firmer}.{undefined}",
        size,
    )


def place_of(error: ChainOverflowError, plan: Plan) -> str:
    """Step size, chain, step and parameter of an overflow, as the beginning of a sentence."""
    return (
        f"step_size={plan.run.step_size:.3g}: chain {error.chain} overflowed at step {error.step} "
        f"in {plan.posterior.param_names[error.parameter]}"
    )


def _shorter_step(plan: Plan, after: int) -> tuple[float, int, bool]:
    """Last step size that was tried, the steps of its trial, and whether it did not overflow.

    ``after`` is the step at which the run overflowed. All trials together take about as many
    gradients as the run has steps, or a few thousand if it is short.
    """
    run, start = plan.run, plan.start
    length = max(1, min(plan.n_steps, 200), plan.n_steps // 20)
    far = _FAR * max(1.0, float(np.abs(start).max()))
    # gradients to spend: the run's, those of eight trials, or 6,000 (a second with few rows)
    budget, size, holds = max(plan.n_steps, 8 * length, 6000), run.step_size, False
    while not holds and budget > 0 and size > 1e-12 * min(run.step_size, 1.0):
        shorter = size * (1e-3 if after < _AT_ONCE else 0.25)
        size = float(f"{np.sqrt(size) if size > 1e12 else shorter:.2g}")
        trial = replace(run, step_size=size)
        holds, after, cost = _trial(plan.posterior, trial, start, length, plan.seed, far)
        budget -= cost * run.sampler.gradients(size)
    return size, length, holds


def _trial(
    posterior: BasePosterior, run: Run, start: Array, length: int, seed: int, far: float
) -> tuple[bool, int, int]:
    """Whether chains move but not beyond ``far``; the last step; and the number of steps made."""
    try:
        # far too long steps overflow at once, so checks are frequent
        made = run_chains(run, start, n_draws=1, thin=length, seed=seed, block_size=32)
        reported_draws(posterior, made.positions[:, None], 0, length)
    except ChainOverflowError as error:
        return False, error.step, error.step + 1 + error.rejected
    # with fewer accepted proposals, a run with another seed may accept none
    moves = made.acceptance is None or made.acceptance >= 0.01
    return bool(np.abs(made.positions).max() <= far) and moves, length, length


def _without_gradient(posterior: BasePosterior, run: Run, start: Array, seed: int) -> str:
    """Sentence on a point near the start at which a user's gradient is not finite, if any."""
    if posterior.facts.full_support:
        return ""
    normals = start_normals(seed, range(200), posterior.n_params)
    with np.errstate(all="ignore"):
        points = np.concatenate([start, start[:1] + run.dynamics.metric.sqrt(normals)])
        bad = ~np.isfinite(posterior.grad(points)).all(axis=1)
        if not bad.any():
            return ""
        where = describe_point(posterior, points[bad.argmax()])
    return (
        f" The gradient is not finite at {where}: it must be finite wherever the log density is; "
        "mend it, or give the range of a parameter (transforms={'s': 'positive'})."
    )
