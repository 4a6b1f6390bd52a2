"""Gradient, sampler, step size and spacing of a run in the metric of the curvature.

The choices depend on the posterior and on random numbers of the pilot's own, never on the chains
that are run with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import start_normals
from skbayes_sgld._linalg import MAX_DENSE, inverse_root
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.whitening import CollapsedPosterior, WhitenedPosterior
from skbayes_sgld.sampling.chains import Run
from skbayes_sgld.sampling.dynamics import Dense, Dynamics
from skbayes_sgld.sampling.gradients import ControlVariate, Full, Gradient
from skbayes_sgld.sampling.protocol import Sampler
from skbayes_sgld.sampling.samplers.collapsed import CollapsedHMC
from skbayes_sgld.sampling.samplers.hmc import HMC
from skbayes_sgld.sampling.tuning.adaptation import adapt, around
from skbayes_sgld.sampling.tuning.bias import STEP_SIZES, Bias, choose_step_size
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.noise import NoiseLevel, measure_noise
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

Array = NDArray[Any]

_FIRST_ROWS = 2048  # of a probe that settles it where the noise is far below what is accepted
_QUIETER = 5  # times less noise than is accepted, where a batch is of few rows
_MANY, _ROWS_EACH = 300, 5  # parameters, and rows for each, below which a batch is noisy
_MANY_ACCEPTANCE = 0.65  # acceptance aimed at in many dimensions (Beskos et al. 2013)
# Along whitened rows: 1,500 rows of 1,050 columns, nearly separated, give 0.85, 1.1 and 1.3
# effective draws of a mean, and 1.24, 0.95 and 0.46 of a square, for a gradient of 32 positions of
# paths of 1.5, 2 and 2.8
_ALONG_ROWS = {"path_length": 2.0, "target_acceptance": 0.8}
_PLACES = 4
_NO_ERROR = 0.01  # of a whitened gradient: the log of an acceptance ratio changes by as little
_NO_WEIGHT = 1e-3  # of a log density, which weights a draw
_NO_BIAS = 1e-3  # of one, where nothing accepts or rejects: means change by as many sds


def reason_for_all_rows(posterior: BasePosterior) -> str:
    """Reason why every step takes all rows, whatever their noise; empty where there is none."""
    n = posterior.n_samples
    if n == 0:
        return "a density without rows"
    if posterior.cheap_full_gradient:
        return "the rows are summed up once, into sufficient statistics"
    if n <= THRESHOLDS.few_rows:
        return f"{n:,} rows: all of them cost little more than a batch"
    if not posterior.abilities.issuperset(ControlVariate().requires):
        return "rows without local parameters: a batch would be noisy"
    if posterior.n_params > MAX_DENSE:
        return f"{posterior.n_params:,} parameters: the curvature at the mode is not formed"
    if posterior.n_params >= _MANY and n < _ROWS_EACH * posterior.n_params:
        return f"{n:,} rows of {posterior.n_params:,} parameters: a batch would be noisy"
    return ""


def cheapest_gradient(
    posterior: BasePosterior, mode: Mode, temperature: float, seed: int
) -> tuple[Gradient, int | None, str, NoiseLevel | None]:
    """Cheapest gradient estimator without visible noise, its batch size, why, and its noise.

    It takes all rows where minibatches have nothing to gain: few rows, sums known beforehand, a
    posterior that does not gather rows, or so many parameters that the curvature at the mode,
    which keeps the minibatches quiet, is not formed.
    """
    n, why = posterior.n_samples, reason_for_all_rows(posterior)
    if why:
        return Full(), None, why, None
    gradient = ControlVariate()
    level = measure_noise(posterior, gradient, mode, temperature, seed, most_rows=_FIRST_ROWS)
    if _QUIETER * level.batch_size(STEP_SIZES[0], temperature) > THRESHOLDS.cheap_batch:
        level = measure_noise(posterior, gradient, mode, temperature, seed)
    batch_size = _quiet_batch(level, temperature)
    if THRESHOLDS.gathered_cost * batch_size > n:
        taken = f"{batch_size:,} of {n:,}" if batch_size < n else f"more than all {n:,}"
        why = f"a batch without visible noise takes {taken} rows"
        return Full(), None, why, None
    why = f"batches of {batch_size:,} add less than 0.5 % to any standard deviation"
    return gradient, batch_size, why, level


def choose_batch_size(noise: NoiseLevel, n_samples: int, temperature: float) -> int:
    """Batch size without visible noise, at most the number of rows."""
    return min(_quiet_batch(noise, temperature), n_samples)


def _quiet_batch(level: NoiseLevel, temperature: float) -> int:
    """Batch size without visible noise; where few rows are enough, one with less than that."""
    wanted = level.batch_size(STEP_SIZES[0], temperature)
    quiet = max(THRESHOLDS.min_batch, min(_QUIETER * wanted, THRESHOLDS.cheap_batch))
    return max(wanted, quiet)


def choose_spacing(time: float) -> tuple[int, int]:
    """Burn-in and thinning of chains whose autocorrelation time is ``time`` steps.

    Draws spaced by it are nearly independent. Long times are halved: such draws are worth half as
    much at half of the cost. A burn-in of ten times it forgets the start.
    """
    time = round(max(time, 1.0), 6)  # rounding must not add a step
    thin = time if time <= THRESHOLDS.short_thin else max(THRESHOLDS.short_thin, 0.5 * time)
    n_burnin = min(np.ceil(THRESHOLDS.burnin * time), THRESHOLDS.max_burnin)
    return int(n_burnin), int(min(np.ceil(thin), THRESHOLDS.max_thin))


@dataclass
class Tuned:
    """A run whose sampler, metric and step size are chosen, with the pilot's findings.

    Attributes
    ----------
    run : Run
    mode : Mode or None
        The centre and the metric of the posterior: of the mode, or of a pilot's draws.
    time : float or None
        Steps to an independent draw, in the slowest direction; None where it is not known.
    bias : tuple of float or None
        Error by the step size and two standard errors of it, as of ``bias.measure_bias``; None
        where it was not measured.
    autocorrelation : float
        Integrated autocorrelation time of the pilot's slowest direction, in steps.
    most_spaced : int
        Steps from draw to draw that can be afforded.
    share : float
        Share of the draws that can be afforded, where a single step costs too much for all.
    found : str
        Finding of the pilot that ran the cheap sampler.
    why : str
        Reason for the step size.
    places : ndarray of shape (n_places, n_params) or None
        Positions at which chains of the run may begin, since a pilot's have forgotten their start
        there; None where there are none.
    n_settling : int
        Steps that the pilot's chains took to get there.
    """

    run: Run
    mode: Mode | None
    time: float | None
    bias: tuple[float, float] | None = None
    autocorrelation: float = 1.0
    most_spaced: int = THRESHOLDS.max_thin
    share: float = 1.0
    found: str = ""
    why: str = ""
    places: Array | None = None
    n_settling: int = 0


def tune(run: Run, mode: Mode, seed: int, others: Sequence[Sampler] = ()) -> Tuned:
    """Choose sampler and step size of a run in the metric of the curvature.

    The run's own sampler is taken where a pilot finds no error in it at the largest step size.
    Where it does, the first of ``others``, which accepts or rejects, is adapted; without any the
    step size falls until the error is gone.
    """
    found = ""
    if run.batch_size is None:
        run = replace(run, dynamics=_round(run.dynamics, mode, _NO_BIAS))
    averaged = mode
    if others or run.sampler.adjusted:
        averaged = _average(run, mode, collapse=bool(others))
    if not run.sampler.adjusted:
        if others and run.dynamics.gradient.posterior.steep:
            found = "the noise is too uncertain for steps that are not accepted or rejected"
        elif others and averaged is not mode:
            found = "the posterior is far from its mode, with few rows per parameter"
            rows = averaged.whitened if run.dynamics.clip is None else None
            others = [_along_rows(rows) if rows else HMC(target_acceptance=_MANY_ACCEPTANCE)]
        else:
            chosen = choose_step_size(run, mode, seed, spare=bool(others))
            if chosen is None:
                found = f"a pilot's moments are off by more than {THRESHOLDS.max_bias:.1%}"
            else:
                step_size, pilot = chosen
                bias, doubt, width, *_ = pilot
                found = f"a pilot's moments are off by {bias:.1%} +- {doubt:.1%} at {step_size:g}"
                if not others or width <= THRESHOLDS.max_width:
                    time = _time(run.sampler, step_size, mode.theta.size, pilot)
                    run = replace(run, step_size=step_size)
                    return Tuned(run, mode, time, (bias, doubt), found=found, why=found)
                found = f"a pilot's variances are {width:.1f} times those at the mode"
        run = replace(run, sampler=others[0])
    if averaged.whitened is None:
        dynamics = _round(_soften(run.dynamics, mode), averaged, _NO_ERROR)
        run = replace(run, dynamics=_round_density(dynamics, averaged))
    adapted = adapt(run, averaged, seed)
    dynamics = around(run.dynamics, adapted.mode)
    run = replace(run, dynamics=dynamics, step_size=adapted.step_size)
    known = run.sampler.pace(np.ones(mode.theta.size), adapted.step_size)[1]
    # a step may be expensive, and draws that are worth half of independent ones are the cheapest
    measured = adapted.autocorrelation - THRESHOLDS.spared
    most = THRESHOLDS.max_gradients / run.sampler.gradients(run.step_size)
    time = min(max(1.0, measured, 0.5 * known), max(1.0, most))
    why = f"a pilot accepted {adapted.acceptance:.0%} at about it"
    share = 1.0
    if dynamics.whitened is not None:
        work = dynamics.whitened.work_of(run.sampler.gradients(run.step_size))
        of_half, of_all = (most / work for most in THRESHOLDS.max_draw)
        share = min(1.0, max(of_all, min(0.5, of_half)))
    # where there may be several modes, chains that begin far apart tell more of them
    led = run.dynamics.posterior.log_concave and len(adapted.places) > 0
    return Tuned(
        run,
        adapted.mode,
        time,
        (0.0, 0.0),
        autocorrelation=adapted.autocorrelation,
        most_spaced=_affordable(run),
        share=share,
        found=found,
        why=why,
        places=adapted.places if led else None,
        n_settling=adapted.n_settling,
    )


def spread(tuned: Tuned, n_draws: int, most: int) -> tuple[Tuned, int]:
    """Run with several draws a trajectory along rows, and how many.

    A trajectory may take seconds. Fewer of them than draws, ``most`` at the most, are enough for
    intervals where they mix as well as the pilot's.
    """
    rows = tuned.run.dynamics.whitened
    if rows is None or rows.collapsed or tuned.time is None:
        return tuned, 1
    few = most < n_draws
    enough = most if few else THRESHOLDS.enough * tuned.autocorrelation
    n_points = int(np.clip(n_draws / enough, 1, THRESHOLDS.max_points[few]))
    if n_points == 1:
        return tuned, 1
    sampler = _along_rows(rows, n_points)
    step_size = sampler.whole_steps(tuned.run.step_size)
    run, time = replace(tuned.run, sampler=sampler, step_size=step_size), n_points * tuned.time
    return replace(tuned, run=run, time=time, most_spaced=1), n_points


def _along_rows(rows: WhitenedPosterior, n_points: int = 1) -> HMC:
    if isinstance(rows, CollapsedPosterior):
        sampler: HMC = CollapsedHMC.of(rows)
    else:
        sampler = HMC(**_ALONG_ROWS, n_points=n_points)
    sampler.most_steps = 1000  # whose length is known beforehand
    return sampler


def _average(run: Run, mode: Mode, collapse: bool) -> Mode:
    """Normal distribution nearest in expectation, where the posterior provides one.

    ``collapse`` says whether the sampler may be the one that a collapsed posterior needs.
    """
    posterior, tau = run.dynamics.gradient.posterior, float(run.dynamics.temperature)
    found = posterior.averaged_normal(mode.theta, tau)
    if found is None:
        return mode
    whitened = found.whitened
    if isinstance(whitened, CollapsedPosterior) and not collapse:
        whitened = whitened.uncollapsed()
        if whitened is None:
            return mode
    if whitened is not None:
        return Mode.of_whitened(whitened)
    return Mode(found.mean, Dense(inverse_root(found.precision), found.precision))


def _time(sampler: Sampler, step_size: float, n_params: int, pilot: Bias) -> float:
    """Steps to an independent draw of a sampler that a pilot has run."""
    declared = sampler.pace(np.ones(n_params), step_size)[1]
    # a declared time has no Monte Carlo error, and is better unless it is wrong
    time = pilot.time if pilot.time > THRESHOLDS.distrust * declared else declared
    return time * (pilot.width if pilot.width > THRESHOLDS.max_width else 1.0)


def _affordable(run: Run) -> int:
    """Most steps from draw to draw that can be afforded, however slowly the chain mixes.

    A gradient takes two products with the rows, and one with the metric where that is dense.
    """
    P = run.dynamics.preconditioner.n_params
    # the cost of a user's own gradient is not known
    rows = run.n_samples if "local_rows" in run.dynamics.gradient.posterior.abilities else 1
    work = 2 * rows * P + (P * P if P <= MAX_DENSE else P)
    return max(1, round(THRESHOLDS.max_work / work / run.sampler.gradients(run.step_size)))


def _round(dynamics: Dynamics, mode: Mode, limit: float) -> Dynamics:
    """Dynamics whose gradient is computed in single precision, where that is cheaper.

    Leapfrog steps along any deterministic field are reversible and keep volumes, so the draws of a
    chain that accepts or rejects are as exact as before; what rounding costs it is acceptance.
    Where rounding changes the whitened gradient by ``limit`` (on nearly collinear columns, whose
    coefficients cancel, or under huge weights) it stays in double precision.
    """
    posterior, tau = dynamics.gradient.posterior, float(dynamics.temperature)
    rounded = posterior.rounded()
    if rounded is posterior:
        return dynamics
    normals, root = start_normals(0, range(_PLACES), mode.theta.size), mode.metric.rounded()
    exact = mode.metric.sqrt_t(posterior.grad(mode.theta + mode.unwhiten(normals)))
    error = root.sqrt_t(rounded.grad(mode.theta + root.sqrt(normals))) - exact
    if not float(np.square(error).sum(axis=1).max()) < tau * limit**2:
        return dynamics
    target = dynamics.target or posterior
    return replace(dynamics, gradient=Full().bind(rounded, None), target=target, rounded=True)


def _round_density(dynamics: Dynamics, mode: Mode) -> Dynamics:
    """Dynamics whose densities accept or reject in single precision, too, where that is safe.

    It is where they agree with those of double precision to a thousandth: so much a draw's weight
    is off, at random.
    """
    target = dynamics.posterior
    rounded = target.rounded(density=True)
    if not dynamics.rounded or rounded is target:
        return dynamics
    theta = mode.theta + mode.unwhiten(start_normals(0, range(_PLACES), mode.theta.size))
    with np.errstate(over="ignore", invalid="ignore"):  # of exponentials that it cannot hold
        error = rounded.bind_value_and_grad(_PLACES)(theta)[0] - target.log_density(theta)
        if not float(np.ptp(error)) < _NO_WEIGHT * float(dynamics.temperature):
            return dynamics
    return replace(dynamics, target=rounded)


def _soften(dynamics: Dynamics, mode: Mode) -> Dynamics:
    """Dynamics whose trajectories follow a smoothed density, where the density has kinks.

    Every kink that a leapfrog step crosses costs an error of first order in the step; a gradient
    that is rounded there costs none, and the density itself still accepts or rejects.
    """
    posterior = dynamics.gradient.posterior
    smooth = posterior.softened(mode.marginal_sd)
    if smooth is posterior:
        return dynamics
    return replace(dynamics, gradient=Full().bind(smooth, None), target=posterior)
