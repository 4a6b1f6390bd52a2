"""Plan of kinetic Langevin dynamics along whitened rows, whose steps a pilot chooses.

The pilot measures the energy that steps add, without that of the noise. Friction takes this heat
away, at a kinetic energy that is too large by the heat per unit of time and parameter over the
friction. By the virial theorem the mean of ``-z . g`` is too large by the same share, with
whitened positions z and gradients g, and so are variances of nearly normal draws.

With 5,000 rows of 3,000 columns and a friction of 1 this share is 0.2, 0.6, 1.8 and 4.5 % at steps
of 0.12, 0.145, 0.17 and 0.2, and ``-z . g`` is too large by 0.0, 0.4, 1.6 and 4.3 %. Along the
worst of all directions, that of the centre, the mean is then off by 0.03, 0.13, 0.48 and 1.4 sds,
and means of coefficients by a fiftieth of that.

So the noise of the run is weaker by this heat, less what long steps take from the variances: with
steps of 0.16 the mean along the centre is off by 0.01 +- 0.06 sds instead of 0.7.

Smooth rows add no heat; there steps make variances too small, in proportion to the square of the
step and the steepness of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import ChainStreams, start_normals
from skbayes_sgld._typing import Array
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.lengths import (
    Lengths,
    choose_burnin,
    choose_n_draws,
    choose_thin,
    draws_in_time,
    walkers_along_rows,
)
from skbayes_sgld.inference.planning.plans import chosen, finish, with_first_step
from skbayes_sgld.inference.planning.rows_read import RowsRead
from skbayes_sgld.inference.planning.starts import walkers
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.strategies.accept_reject import accepted_start
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN, recentred
from skbayes_sgld.sampling.tuning.mode import Center
from skbayes_sgld.wide_rows.kinetic_langevin import KineticLangevin
from skbayes_sgld.wide_rows.pilot import PilotAlongRows
from skbayes_sgld.wide_rows.whitened import WhitenedRows

# First step, over the root of the steepness, and the longest if it spares a costly gradient. At a
# wall a kick moves the predictor of a row by the steepness times h^2, in sds, and the mean of the
# predictor by a hundredth of that
_FIRST_STEP, _STRETCHED, _LONGEST = 0.63, 0.8, 0.6
_MOST_BIAS = 0.004  # of the sds, on average
# Bias of the sds without heat, over the square of the step and the steepness, at most. Where it
# says that sds are too small by 0.24 %, long runs that reject find 0.18 +- 0.06 % (900 rows of 500
# columns, 99 of them one-hot), 0.23 +- 0.09 % (1,000 of 400, a prior of scale 3), 0.10 +- 0.07 %
# (2,400 of 600), and where heat is the larger part, -0.08 +- 0.05 % (1,500 of 500, 199 of them
# one-hot) and -0.10 +- 0.06 % (900 of 500, weights from 0.1 to 8). At the longest steps it says
# 0.38 %, and runs with steps a third as long find 0.5 +- 0.1 % (5,000 of 3,000)
_SHRINKAGE = 0.006
_UNEVEN = 0.15  # share of the heat that less noise does not make up for
_TRIES = 5
# Starts, in sds of the matched normal distribution, beyond which half of the rows of 5,000 x 3,000
# are on the wrong side of their wall. After two quarters mean squares are 0.89 to 1.03 of the
# posterior's, and 0.79 to 0.87 from starts at a tenth of an sd
_NEARER = 0.65
_QUARTER = 1.6  # time of a quarter of a period, after which a start near the centre is forgotten
_MEASURED = 2.0  # time for which walkers measure the heat, and until momenta are forgotten
_TIME = 2.3  # integrated autocorrelation time of a mean between steep walls, which add friction
# Effective draws of a chain, of which the worst parameter has a fifth fewer; and of one whose
# gradients take few multiplications
_ENOUGH, _MORE, _FEW = 138, 250, 4e6


class Settled(NamedTuple):
    """Result of the pilot.

    Attributes
    ----------
    step_size : float
    cooling : float
        Share of the noise that the heat of the steps replaces.
    ends : ndarray of shape (n_walkers, P)
        Positions of the pilot's walkers.
    bias, doubt : float
        Relative bias of the sds, on average, and twice the standard error of the part that is
        measured.
    """

    step_size: float
    cooling: float
    ends: Array
    bias: float
    doubt: float


def kinetic_plan(
    task: Task, run: Run, rows_read: RowsRead, center: Center, why: str
) -> Plan | None:
    """Plan of kinetic Langevin dynamics; None if even short steps are biased.

    ``run`` is a draft about another centre, and ``why`` the reason against SGLD.
    """
    rows = center.whitened
    assert isinstance(rows, WhitenedRows)
    run = replace(run, sampler=KineticLangevin(), dynamics=recentred(run.dynamics, center))
    enough = _MORE if rows.work_of(1) < _FEW else _ENOUGH
    apart = min(2.0, enough / task.settings.n_draws) * _TIME  # few draws are nearly independent
    temperature = float(run.dynamics.temperature)
    found = settle(rows, run.sampler, temperature, task.seed, apart)
    if found is None:
        return None
    n_kicks = ceil(apart / found.step_size)
    lengths = _lengths(task, rows, found.step_size, n_kicks)
    run = replace(run, sampler=KineticLangevin(n_kicks=n_kicks, cooling=found.cooling))
    run = with_first_step(run, found.step_size)
    reason = f"sds are off by about {found.bias:.1%}, by a pilot's heat and the steepest rows"
    return finish(
        task,
        run,
        rows_read.choices | chosen(task, run, why, reason),
        lengths,
        _starts(task, run, center, found.ends, lengths.n_walkers),
        mode=None,
        center=center,
        bias=(found.bias, found.doubt),
    )


def settle(
    rows: WhitenedRows, sampler: KineticLangevin, temperature: float, seed: int, apart: float
) -> Settled | None:
    """Step size whose bias is small, and walkers that have settled at it; None if there is none.

    ``apart`` is the time between draws, of which the first step is a whole part if possible.
    """
    chains = range(FIRST_CHAIN, FIRST_CHAIN + rows.n_together)
    streams, width = [ChainStreams(seed, c) for c in chains], np.sqrt(temperature)
    z = (_NEARER * width * start_normals(seed, chains, rows.n_params)).astype(np.float32)

    def draw() -> Array:
        normals = np.concatenate([s.normals(1, rows.n_params) for s in streams])
        return (width * normals).astype(np.float32)

    steepness, heat_of_one = rows.steepness(), rows.n_params * temperature * sampler.friction

    def bias_of(work: Array, step_size: float) -> float:
        """Bias of the sds, if noise makes up for the heat of the steps."""
        by_heat = _UNEVEN * 0.5 * abs(float(work.mean())) / heat_of_one
        return max(by_heat, _SHRINKAGE * step_size**2 * steepness)

    def cooled(work: Array, step_size: float) -> KineticLangevin:
        """Sampler whose noise makes up for the heat, but for what steps take from variances."""
        share = float(work.mean()) / heat_of_one - 2.0 * _SHRINKAGE * step_size**2 * steepness
        return replace(sampler, cooling=float(np.clip(share, 0.0, 0.1)))

    without_friction = replace(sampler, friction=0.0)
    with one_blas_thread(), np.errstate(all="ignore"):
        limits = _FIRST_STEP, _FIRST_STEP if rows.work_of(1) < _FEW else _STRETCHED
        step_size, most = (min(_LONGEST, limit / sqrt(steepness)) for limit in limits)
        step_size = max(step_size, apart / ceil(apart / most))
        for _ in range(2):
            z, _, work = _walk(rows, without_friction, z, draw(), draw, _QUARTER, step_size)
        step_size *= _shortening(bias_of(work, step_size))
        momentum = draw()
        sampler = cooled(work, step_size)
        for _ in range(_TRIES):
            z, momentum, work = _walk(rows, sampler, z, momentum, draw, _MEASURED, step_size)
            if not np.isfinite(z).all():
                return None
            bias = bias_of(work, step_size)
            if bias < _MOST_BIAS:
                doubt = float(work.std() / np.sqrt(len(z))) / heat_of_one
                cooling = cooled(work, step_size).cooling
                return Settled(step_size, cooling, rows.locate(z), bias, doubt)
            step_size *= _shortening(bias)
            sampler = replace(sampler, cooling=0.0)
    return None


def _shortening(bias: float) -> float:
    """Factor of a step with this bias, which grows with the sixth power of steps between walls."""
    if bias < _MOST_BIAS:
        return 1.0
    return float(np.clip((0.7 * _MOST_BIAS / bias) ** (1.0 / 6.0), 0.5, 0.9))


def _walk(
    rows: WhitenedRows,
    sampler: KineticLangevin,
    z: Array,
    momentum: Array,
    draw: Callable[[], Array],
    time: float,
    step_size: float,
) -> tuple[Array, Array, Array]:
    """Position, momentum, and the energy ``(C,)`` that steps have added per unit of time."""

    def rest(z: Array, momentum: Array) -> Array:
        """Energy ``(C,)`` that rotations and noise do not change, in the middle of a kick."""
        value, force = rows.value_and_grad(z)
        half = 0.5 * step_size * (force + z)
        return _dot(half, momentum + 0.5 * half) - value - 0.5 * _dot(z, z)

    work, n_kicks = -rest(z, momentum), ceil(time / step_size)
    for _ in range(n_kicks):
        before, at = momentum, z
        z, momentum, force = sampler.kicked(rows, z, momentum, step_size, draw())
        kick = step_size * (force + at)
        work += _dot(kick, before + 0.5 * kick)
    return z, momentum, (work + rest(z, momentum)) / (n_kicks * step_size)


def _dot(a: Array, b: Array) -> Array:
    """Products ``(C,)`` of the rows of two arrays, summed up in double precision."""
    return np.einsum("cp,cp->c", a, b, dtype=float)


def _lengths(task: Task, rows: WhitenedRows, step_size: float, n_kicks: int) -> Lengths:
    """Lengths of the run, by the kicks between draws."""
    n_asked = task.settings.n_draws
    n_draws = choose_n_draws(task, draws_in_time(n_asked, rows.work_of(n_kicks)))
    thin = choose_thin(task.settings, 1.0)
    automatic = ceil(_MEASURED / (step_size * n_kicks))
    n_burnin = choose_burnin(task, automatic, "an independent draw's worth, after the pilot")
    n_walkers = walkers_along_rows(task, n_draws.value)
    return Lengths(n_draws, n_burnin, thin, n_walkers)


def _starts(
    task: Task, run: Run, center: Center, ends: Array, n_walkers: int
) -> tuple[Array, Choice]:
    """Starting points: positions of the pilot, unless others are given."""
    if task.settings.init is not AUTO or task.continues:
        return accepted_start(task, run, center, n_walkers, PilotAlongRows())
    why = "final positions of the pilot's chains" + walkers(n_walkers)
    return ends[np.arange(n_walkers * task.settings.n_chains) % len(ends)], Choice("pilot", why)
