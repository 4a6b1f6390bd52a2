"""Likelihoods with several modes, such as that of t-distributed noise: chains jump between modes.

Searches from further starts, which the model names, find the modes. A pilot of HMC within each mode
adapts its centre and metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import start_normals
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.plans import draft
from skbayes_sgld.inference.planning.rows_read import all_rows, needs_mode
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.strategies.accept_reject import AdaptedRun, finish_adapted
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers import SGLD
from skbayes_sgld.sampling.samplers.hmc import HMC
from skbayes_sgld.sampling.samplers.jumping import JumpingHMC
from skbayes_sgld.sampling.tuning.adaptation import (
    FIRST_CHAIN,
    Adaptation,
    adapt,
    affordable,
    recentred,
)
from skbayes_sgld.sampling.tuning.mode import Center, Mode
from skbayes_sgld.sampling.tuning.mode_survey import survey
from skbayes_sgld.sampling.tuning.parts import KnownMode

_STARTS = 64  # starting points, distributed over the modes by mass
_GOLDEN = 0.6180339887498949  # fractional parts of its multiples fill the unit interval evenly


class SeveralModes(Strategy):
    """HMC that jumps between modes; with a single mode, the next strategy plans."""

    only = ("has_other_starts",)

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether a mode is needed, of a model that is not a user's own."""
        return needs_mode(task) and not task.facts.user_defined

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan of chains that jump, if several modes have some of the mass."""
        mode, modes, finding = survey(task.posterior, task.mode, task.settings.tau)
        task = task.found(mode=mode, modes=modes)
        if finding:
            further = {"modes": Choice(max(1, len(modes)), finding)}
            task = task.found(choices=task.choices | further)
        if not modes or not task.settings.left_to_tuning:
            return task
        rows_read = all_rows("several modes", task.posterior, mode)
        run = draft(task, SGLD(), rows_read, mode)
        return finish_adapted(task, rows_read, tune_jumps(run, modes, task.seed))


def tune_jumps(draft: Run, modes: Sequence[KnownMode], seed: int) -> AdaptedRun:
    """Run that jumps between modes, each with the metric of a pilot within it."""
    posterior, tau = draft.dynamics.gradient.posterior, float(draft.dynamics.temperature)
    places, ends, pilots = [], [], []
    for known in modes:
        mode = Mode.from_curvature(known.theta, tau * known.precision)
        pilot = replace(draft, sampler=HMC(), dynamics=recentred(draft.dynamics, mode))
        adapted = adapt(pilot, mode, seed)
        normals = start_normals(seed, range(FIRST_CHAIN, FIRST_CHAIN + _STARTS), mode.theta.size)
        own = adapted.ends[:_STARTS]
        if not len(own):
            own = mode.theta + np.sqrt(tau) * mode.metric.sqrt(normals)
        places.append((adapted.center.theta, adapted.center.metric))
        ends.append(own)
        pilots.append(adapted)
    sampler = JumpingHMC.between(tuple(places))
    # with rates a and b of leaving two states, the autocorrelation time is 2 / (a + b) - 1
    with one_blas_thread(), np.errstate(all="ignore"):
        rate = sum(
            sampler.acceptance(posterior.log_density, own, k, tau) for k, own in enumerate(ends)
        )
    shares = np.cumsum([known.share for known in modes])
    share_of = np.arange(1, _STARTS + 1) * _GOLDEN % 1.0 * shares[-1]
    mode_of = np.minimum(np.searchsorted(shares, share_of), len(modes) - 1)
    starts = np.array([ends[k][j % len(ends[k])] for j, k in enumerate(mode_of)])
    best = int(np.argmax([known.share for known in modes]))
    center = Center(*places[best])
    step_size = min(adapted.step_size for adapted in pilots)
    run = replace(
        draft, sampler=sampler, step_size=step_size, dynamics=recentred(draft.dynamics, center)
    )
    time = max(adapted.autocorrelation for adapted in pilots)
    acceptance = min(adapted.acceptance for adapted in pilots)
    why = ", ".join(f"{known.share:.0%}" for known in modes)
    n_settling = max(adapted.n_settling for adapted in pilots)
    return AdaptedRun(
        run,
        Adaptation(center, step_size, acceptance, time, starts, n_settling),
        max(1.0, time - 1.0, 2.0 / max(rate, 1e-3) - 1.0),
        affordable(run),
        f"several modes, of {why} of the mass by the curvature",
        f"pilot acceptance {acceptance:.0%} near this step size",
    )
