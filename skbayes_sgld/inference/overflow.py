"""The error that explains an overflow: where it happened, and a step size that held."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._random import start_normals
from skbayes_sgld.inference.diagnosis import describe_point, firmer_priors
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.chains import run_chains
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.run import Chains, Run, constrained_draws

Array = NDArray[Any]

_SHORTER, _FAR_SHORTER = 0.25, 1e-3  # next step size tried, over the last
_ABSURD = 1e12  # step size beyond which its square root is tried next
_SHARES = 20  # steps of the run over those of a trial
_FEWEST = 200  # least number of steps of a trial, if the run has as many
_TRIALS = 8  # number of such trials that are affordable
_GRADIENTS = 6_000  # affordable number of gradients of all trials: a second on few rows
_BLOCK = 32  # steps from one check for an overflow to the next: far too long steps overflow at once
_FAR = 1e6  # distance, over the size of the start, from which a chain is about to overflow
_LEAST = 1e-12  # least step size tried, over that of the run or over 1
_POINTS = 200  # around the start, where the gradient is computed
_AT_ONCE = 10  # steps; an overflow within them comes of a far too long step size
_MOVES = 0.01  # share of proposals accepted, below which another seed may see none
_FIRST = 50  # steps of a trial from zeros


def explain_overflow(error: ChainOverflowError, plan: Plan) -> ChainOverflowError:
    """Error that names step, parameter and chain, and a smaller step size that did not overflow.

    Smaller step sizes are tried, all together for about as many gradients as the run was to take
    steps, or a few thousand where it was short. None is tried of a network, whose chains take their
    metric from a long burn-in.
    """
    posterior, run, start, seed = plan.posterior, plan.run, plan.start, plan.seed
    n_steps, given = plan.n_steps, plan.choices["step_size"].given
    who = f"chain {error.chain}" if run.sampler.uses_noise else "the optimizer"
    head = (
        f"step_size={run.step_size:.3g}: {who} overflowed at step {error.step} in "
        f"{posterior.param_names[error.parameter]}"
    )
    if posterior.facts.ensemble:
        remedy = "set step_size='auto'" if given else "set a smaller step_size, or rescale y"
        return error.explained(f"{head}; {remedy}.")
    if error.rejected:
        head += f", where {error.rejected} proposals in a row could never be accepted"
    undefined = _without_gradient(posterior, run, start, seed)
    length = max(1, min(n_steps, _FEWEST), n_steps // _SHARES)
    far = _FAR * max(1.0, float(np.abs(start).max()))
    left, size, after = max(n_steps, _TRIALS * length, _GRADIENTS), run.step_size, error.step
    while left > 0 and size > _LEAST * min(run.step_size, 1.0):
        shorter = size * (_FAR_SHORTER if after < _AT_ONCE else _SHORTER)
        size = float(f"{np.sqrt(size) if size > _ABSURD else shorter:.2g}")
        try:
            tried = _try(posterior, replace(run, step_size=size), start, length, seed)
        except ChainOverflowError as again:
            after = again.step
            left -= (after + 1 + again.rejected) * run.sampler.gradients(size)
            continue
        after = length
        left -= after * run.sampler.gradients(size)
        if not _stays(tried, far):
            continue
        advice = "set step_size='auto' and preconditioner='auto', or " if given else ""
        firmer = (
            ""
            if given
            else firmer_priors(posterior.facts.total_weight, posterior.constrained_names)
        )
        nearer = ", or begin nearer to the mode with init='mode'" if error.rejected else ""
        if error.step < _AT_ONCE and start.any() and _holds_at_zero(posterior, run, start, seed):
            nearer = (
                f", or keep it and set init='zeros': from there {_FIRST} steps of "
                f"{run.step_size:.3g} did not overflow"
            )
        return error.explained(
            f"{head}. With step_size={size:g} a run of {length} steps did not overflow; "
            f"{advice}give a smaller step_size{nearer}{firmer}.{undefined}",
            size,
        )
    remedy = (
        "The data hardly bound the posterior, or not at all: check the units of X and y and what "
        "sample_weight sums to, or give proper priors, of the intercept too."
        if posterior.facts.full_support
        else "Check that the log density and its gradient are finite where the chains begin, or "
        "begin elsewhere with init."
    )
    return error.explained(
        f"{head}, and so did all shorter steps that were tried, down to {size:g}. "
        f"{remedy}{undefined}"
    )


def _try(posterior: BasePosterior, run: Run, start: Array, length: int, seed: int) -> Chains:
    """Chains after so many steps; an error where they overflow."""
    tried = run_chains(run, start, n_draws=1, thin=length, seed=seed, block_size=_BLOCK)
    constrained_draws(posterior, tried.draws, 0, length)
    return tried


def _holds_at_zero(posterior: BasePosterior, run: Run, start: Array, seed: int) -> bool:
    """Whether chains that begin at zeros, not at far draws from the prior, do not overflow."""
    try:
        tried = _try(posterior, run, np.zeros_like(start), _FIRST, seed)
    except ChainOverflowError:
        return False
    return _stays(tried, _FAR)


def _stays(tried: Chains, far: float) -> bool:
    """Whether chains move, and not towards an overflow."""
    moves = tried.acceptance is None or tried.acceptance >= _MOVES
    return bool(np.abs(tried.draws).max() <= far) and moves


def _without_gradient(posterior: BasePosterior, run: Run, start: Array, seed: int) -> str:
    """Sentence on a point around the start where a user's gradient is not finite, if any."""
    if posterior.facts.full_support:
        return ""
    normals = start_normals(seed, range(_POINTS), posterior.n_params)
    with np.errstate(all="ignore"):
        points = np.concatenate([start, start[:1] + run.dynamics.preconditioner.sqrt(normals)])
        bad = ~np.isfinite(posterior.grad(points)).all(axis=1)
        if not bad.any():
            return ""
        where = describe_point(posterior, points[bad.argmax()])
    return (
        f" The gradient is not finite at {where}: it must be finite wherever the log density is; "
        "mend it, or give the range of a parameter (transforms={'s': 'positive'})."
    )
