"""Tuning of the sampler that jumps between the modes of a posterior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import start_normals
from skbayes_sgld.inference.decisions import Tuned
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers.hmc import HMC
from skbayes_sgld.sampling.samplers.jumping import JumpingHMC
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN, adapt, affordable, recentred
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.own_models import KnownMode

_STARTS = 64  # starting points, shared between the modes by their masses
_GOLDEN = 0.6180339887498949  # multiples of it, less their whole parts, fill the unit interval


def may_jump(settings: Settings) -> bool:
    """Whether the settings leave sampler, steps and rows to the tuning."""
    return settings.automatic and settings.may_take_all_rows and settings.clip is None


def tune_jumps(draft: Run, modes: Sequence[KnownMode], seed: int) -> Tuned:
    """Run that jumps between modes, each with the metric that a pilot within it has adapted."""
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
        places.append((adapted.mode.theta, adapted.mode.metric))
        ends.append(own)
        pilots.append(adapted)
    sampler = JumpingHMC.between(tuple(places))
    # of two states that are left at rates a and b, the autocorrelation time is 2 / (a + b) - 1
    with one_blas_thread(), np.errstate(all="ignore"):
        rate = sum(
            sampler.acceptance(posterior.log_density, own, k, tau) for k, own in enumerate(ends)
        )
    shares = np.cumsum([known.share for known in modes])
    share_of = np.arange(1, _STARTS + 1) * _GOLDEN % 1.0 * shares[-1]
    of = np.minimum(np.searchsorted(shares, share_of), len(modes) - 1)
    starts = np.array([ends[k][j % len(ends[k])] for j, k in enumerate(of)])
    best = int(np.argmax([known.share for known in modes]))
    center = Mode(*places[best])
    step_size = min(adapted.step_size for adapted in pilots)
    run = replace(
        draft, sampler=sampler, step_size=step_size, dynamics=recentred(draft.dynamics, center)
    )
    time = max(adapted.autocorrelation for adapted in pilots)
    acceptance = min(adapted.acceptance for adapted in pilots)
    why = ", ".join(f"{known.share:.0%}" for known in modes)
    return Tuned(
        run,
        center,
        max(1.0, time - 1.0, 2.0 / max(rate, 1e-3) - 1.0),
        f"several modes, of {why} of the mass by the curvature",
        f"pilot acceptance {acceptance:.0%} near this step size",
        (0.0, 0.0),
        pilot_time=time,
        most_spaced=affordable(run),
        pilot_ends=starts,
        pilot_steps=max(adapted.n_settling for adapted in pilots),
    )
