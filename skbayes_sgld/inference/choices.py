"""The choices of gradient, sampler and step size, each with its reason.

They depend on the posterior and on random numbers of the pilots' own, never on the chains that are
run with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import start_normals
from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld._warnings import warn
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import BasePosterior, require
from skbayes_sgld.sampling.chains import Run
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.gradients import ControlVariate, Full, Gradient
from skbayes_sgld.sampling.preconditioners.rates import preconditioned_eigenvalues
from skbayes_sgld.sampling.protocol import Sampler
from skbayes_sgld.sampling.samplers import HMC
from skbayes_sgld.sampling.tuning import bias as pilots
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN, adapt, around
from skbayes_sgld.sampling.tuning.energy import energy_error, n_trajectories
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.noise import (
    NoiseLevel,
    cheapest_gradient,
    choose_batch_size,
    measure_noise,
)
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS
from skbayes_sgld.sampling.tuning.trajectories import affordable, along_rows, averaged, soften

Array = NDArray[Any]

GIVEN = "given"
# What ends a run before the draws that were asked for, and what gives it more
EARLY_ENDS = {"max_time": "raise max_time", "callback": "let the callback stop later"}

_MANY, _ROWS_EACH = 300, 5  # parameters, and rows for each, below which a batch is noisy
_MANY_ACCEPTANCE = 0.65  # acceptance aimed at in many dimensions (Beskos et al. 2013)
# Walkers of a chain, and the share of its steps that the burn-in of so many may take: of 16
# positions a product costs half of what it does one by one, and of more little less
_WALKERS = (32, 0.1), (16, 0.2), (4, 0.1)
_TIME = 2.0  # steps of 1 to an independent draw
_PLACES = 4
_NO_ERROR = 0.01  # of a whitened gradient: the log of an acceptance ratio changes by as little
_NO_WEIGHT = 1e-3  # of a log density, which weights a draw
_NO_BIAS = 1e-3  # of one, where nothing accepts or rejects: means change by as many sds
_RANGE = 64.0  # of the steps, where a posterior has narrow parts
_SMALL_STEP = 0.2  # of the sampler's own; below it the bias is that on a normal target


class Choice(NamedTuple):
    """One resolved setting: its value, and the reason for it."""

    value: Any
    why: str

    @property
    def given(self) -> bool:
        """Whether the user gave it."""
        return self.why == GIVEN


class Fallback(NamedTuple):
    """A second plan of a run, after a chain of the first overflowed at an automatic step size.

    Attributes
    ----------
    why : str
        What overflowed.
    step_size : float or None
        A shorter step size, from starts around the mode; None takes HMC on all rows, which cannot
        overflow.
    """

    why: str
    step_size: float | None = None


def as_table(choices: dict[str, Choice]) -> str:
    """Text table of the choices: setting, value and reason."""
    rows = [(name, shown(choice.value), choice.why) for name, choice in choices.items()]
    name_width, value_width = (max(len(row[k]) for row in rows) for k in (0, 1))
    indent = " " * (name_width + value_width + 4)
    lines = []
    for name, value, why in rows:
        first, *rest = wrap(why, max(30, 98 - len(indent))) or [""]
        lines.append(f"{name:{name_width}s}  {value:{value_width}s}  {first}".rstrip())
        lines += [indent + line for line in rest]
    return "\n".join(lines)


def shown(value: Any) -> str:
    """Value of a setting as tables and reprs show it."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


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


def choose_gradient(
    posterior: BasePosterior,
    settings: Settings,
    reference: Mode,
    seed: int,
    fallback: Fallback | None = None,
) -> tuple[Gradient, int | None, NoiseLevel | None, dict[str, Choice]]:
    """Gradient, batch size (None: all rows) and minibatch noise, if measured."""
    gradient, batch_size = settings.gradient, settings.batch_size
    n, tau = posterior.n_samples, settings.tau
    if gradient is None and batch_size is None:
        if settings.sampler is not None and settings.sampler.full_gradient:
            gradient, why, noise = Full(), f"{settings.sampler} takes all rows", None
        elif fallback is not None and fallback.step_size is None:
            gradient, why, noise = Full(), f"{HMC()} takes all rows", None
        elif why := reason_for_all_rows(posterior):
            gradient, noise = Full(), None
        else:
            n_walkers = expected_walkers(settings, posterior)
            gradient, batch_size, why, noise = cheapest_gradient(
                posterior, reference, tau, seed, n_walkers
            )
        return gradient, batch_size, noise, _both(gradient, why, batch_size, why)
    why = GIVEN
    if gradient is None:
        # the second order takes a matrix of parameters by parameters
        gradient = ControlVariate(2 if posterior.n_params <= MAX_DENSE else 1)
        why = "the least noise that a batch of this size can have"
    if not gradient.minibatch:
        if batch_size is not None:
            raise ValueError(
                f"batch_size={batch_size!r} is not used by gradient={gradient!r}, which takes all "
                "rows; set gradient='minibatch' or batch_size='auto'."
            )
        return gradient, None, None, _both(gradient, why, None, "all rows at every step")
    if settings.gradient is None and n == 0:
        raise ValueError(
            f"batch_size={batch_size} needs a posterior with rows, and this one has none; set "
            "batch_size='auto'."
        )
    for ability in gradient.requires:
        require(posterior, ability, "gradient", gradient, gradient.remedy)
    if batch_size is not None and batch_size > n:
        raise ValueError(
            f"batch_size={batch_size} is larger than the {n} rows; give at most {n}, or "
            "gradient='full', which takes each of them once."
        )
    noise = None
    if batch_size is None or settings.step_size is None:
        noise = measure_noise(posterior, gradient, reference, tau, seed)
    why_size = GIVEN
    if batch_size is None:
        assert noise is not None
        batch_size = choose_batch_size(noise, n, tau)
        why_size = "adds less than 0.5 % to any standard deviation, or is all rows' worth"
        if batch_size == n > THRESHOLDS.few_rows:
            warn(
                f"gradient={gradient!r} would need batches of all {n:,} rows to add less than "
                "0.5 % to any standard deviation, and takes several times as long to gather them "
                "as gradient='full' does to read them; set gradient='auto', or give batch_size.",
                UserWarning,
            )
    return gradient, batch_size, noise, _both(gradient, why, batch_size, why_size)


def expected_walkers(settings: Settings, posterior: BasePosterior) -> int:
    """Walkers that a chain by steps of 1 has."""
    automatic = settings.sampler is None and settings.step_size is None and settings.uses_curvature
    if not (settings.allows_walkers and automatic and posterior.one_mode):
        return 1
    n_burnin, thin = choose_spacing(_TIME)
    n_steps = settings.n_draws * (settings.thin or thin)
    n_burnin = n_burnin if settings.n_burnin is None else settings.n_burnin
    return most_walkers(n_burnin, n_steps)


def most_walkers(n_burnin: int, n_steps: int, most: float = np.inf) -> int:
    """Walkers, at most so many, whose burn-in is a small share of a chain's steps."""
    return next((w for w, share in _WALKERS if w <= most and w * n_burnin <= share * n_steps), 1)


def choose_spacing(time: float) -> tuple[int, int]:
    """Burn-in and thinning of chains whose autocorrelation time is ``time`` steps.

    Draws spaced by it are nearly independent. Long times are halved: such draws are worth half as
    much at half of the cost. A burn-in of ten times it forgets the start.
    """
    time = round(max(time, 1.0), 6)  # rounding must not add a step
    thin = time if time <= THRESHOLDS.short_thin else max(THRESHOLDS.short_thin, 0.5 * time)
    n_burnin = min(np.ceil(THRESHOLDS.burnin * time), THRESHOLDS.max_burnin)
    return int(n_burnin), int(min(np.ceil(thin), THRESHOLDS.max_thin))


def _both(
    gradient: Gradient, why_gradient: str, batch_size: int | None, why_size: str
) -> dict[str, Choice]:
    return {
        "gradient": Choice(gradient, why_gradient),
        "batch_size": Choice(batch_size, why_size),
    }


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


def choose_step_size(
    draft: Run,
    mode: Mode | None,
    settings: Settings,
    noise: NoiseLevel | None,
    seed: int,
    fallback: Fallback | None = None,
) -> tuple[Tuned, dict[str, Choice]]:
    """Run with its sampler and step size, and what the tuning found."""
    automatic, given = settings.sampler is None, settings.step_size
    first = float(draft.schedule(0))
    why_sampler, why = GIVEN, GIVEN
    if automatic:
        why_sampler = "several modes" if draft.sampler.full_gradient else "the cheapest"
    if mode is None:
        assert given is not None
        tuned = Tuned(replace(draft, step_size=given), None, None)
    elif given is None and settings.uses_curvature:
        # a bound that fires moves no trajectory well
        spare = draft.batch_size is None and settings.clip is None and automatic
        why_again = fallback.why if fallback else ""
        chosen_for_it = settings.gradient is None and settings.batch_size is None
        tuned = tune(draft, mode, seed, [HMC()] * spare, why_again, chosen_for_it)
        why = tuned.why
        if tuned.run.sampler is not draft.sampler:
            why_sampler = f"{draft.sampler}: {tuned.found}"
        elif automatic:
            why_sampler = f"{why_sampler}; {tuned.found}" if tuned.found else why_sampler
        if noise is not None and draft.batch_size is not None and not chosen_for_it:
            # a sampler's own share of the noise; the thermostat's is none
            gain = max(draft.sampler.noise_gain, 1e-12)
            quiet = noise.step_size(draft.batch_size, settings.tau) / gain
            if quiet < tuned.run.step_size:
                step_size = max(quiet, pilots.step_sizes(draft.sampler)[-1])
                tuned.run.step_size, why = step_size, "a longer one needs a larger batch"
                tuned.time = draft.sampler.pace(np.ones(mode.theta.size), step_size)[1]
        tuned.run.step_size /= first
    else:
        rates = preconditioned_eigenvalues(draft.dynamics.preconditioner, mode.metric)
        with np.errstate(over="ignore", divide="ignore"):  # the time may be infinite
            eta, time = draft.sampler.pace(rates, None if given is None else given * first)
        tuned = Tuned(replace(draft, step_size=eta / first), mode, time)
        if given is None:
            why = "stable in the steepest direction at the mode"
    if fallback is not None and fallback.step_size is not None:
        tuned, why = shortened(tuned, fallback.step_size), f"shortened: {fallback.why}"
    # whose proposals are refused again and again is told by its draws
    tuned.run.stops_lost = not automatic or given is not None
    return tuned, {
        "sampler": Choice(tuned.run.sampler, why_sampler),
        "step_size": Choice(tuned.run.step_size, why),
        "preconditioner": Choice(
            settings.metric,
            "its steps have no unit, on any data" if settings.preconditioner is None else GIVEN,
        ),
    }


def shortened(tuned: Tuned, step_size: float) -> Tuned:
    """Tuned run at a shorter step size, at which chains take as many more steps."""
    longer = max(1.0, tuned.run.step_size / step_size)
    run, time = replace(tuned.run, step_size=tuned.run.step_size / longer), tuned.time
    return replace(tuned, run=run, time=None if time is None else longer * time)


def tune(
    run: Run,
    mode: Mode,
    seed: int,
    others: Sequence[Sampler] = (),
    overflowed: str = "",
    quiet: bool = False,
) -> Tuned:
    """Choose sampler and step size of a run in the metric of the curvature.

    The run's own sampler is taken where a pilot finds no error in it at the largest step size.
    Where it does, or where chains have ``overflowed``, the first of ``others``, which accepts or
    rejects, is adapted; without any the step size falls until the error is gone. ``quiet`` says
    that batches have no visible noise.
    """
    found = ""
    if run.batch_size is None:
        run = replace(run, dynamics=round_gradient(run.dynamics, mode, _NO_BIAS))
    posterior, center = run.dynamics.gradient.posterior, mode
    if posterior.far_from_mode and (others or run.sampler.adjusted):
        center = averaged(run, mode, collapse=bool(others))
    if not run.sampler.adjusted:
        if others and posterior.steep:
            found = "the noise is too uncertain for steps that are not accepted or rejected"
        elif others and center is not mode:
            found = "the posterior is far from its mode, with few rows per parameter"
            rows = center.whitened if run.dynamics.clip is None else None
            others = [along_rows(rows) if rows else HMC(target_acceptance=_MANY_ACCEPTANCE)]
        elif others and (jump := _jump(run, mode, seed)):
            found = f"the density jumps by {jump:.2g} nats, of which its gradient says nothing"
        elif others and overflowed:
            found = overflowed
        else:
            piloted = _on_all_rows(run, mode) if quiet else run
            chosen = pilots.choose_step_size(piloted, mode, seed, spare=bool(others))
            if chosen is None:
                found = f"a pilot's moments are off by more than {THRESHOLDS.max_bias:.1%}"
            elif others and not pilots.holds_far_out(run, mode, chosen[0], seed):
                found = f"a pilot's steps of {chosen[0]:g} overflow from far out"
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
    return _adapted(run, mode, center, seed, found, bool(others))


def _jump(run: Run, mode: Mode, seed: int) -> float:
    """Size of the jumps, in nats, of a user's own density around the mode; 0 if there are none."""
    posterior, tau = run.dynamics.gradient.posterior, float(run.dynamics.temperature)
    if not posterior.own:
        return 0.0
    chains = range(FIRST_CHAIN, FIRST_CHAIN + n_trajectories(posterior))
    moves = np.sqrt(tau) * mode.unwhiten(start_normals(seed, chains, mode.theta.size))
    return energy_error(posterior, mode, mode.theta + moves, tau, seed)[1]


def _on_all_rows(run: Run, mode: Mode) -> Run:
    """Run on all rows where that costs a pilot less: its chains share no batch."""
    posterior, B = run.dynamics.gradient.posterior, run.batch_size
    if B is None or not posterior.shares_batches or run.n_samples > B * pilots.n_chains(run):
        return run
    dynamics = replace(run.dynamics, gradient=Full().bind(posterior, None))
    return replace(run, batch_size=None, dynamics=round_gradient(dynamics, mode, _NO_BIAS))


def _time(sampler: Sampler, step_size: float, n_params: int, pilot: pilots.Bias) -> float:
    """Steps to an independent draw of a sampler that a pilot has run."""
    declared = sampler.pace(np.ones(n_params), step_size)[1]
    # a declared time has no Monte Carlo error, and is better unless it is wrong
    time = pilot.time if pilot.time > THRESHOLDS.distrust * declared else declared
    # steps of 1 keep 1 - 1/w where the variance is w: 2 w - 2 of them leave draws half of their
    # worth or more, as 2 do where w is 2
    return max(time, float(np.rint(time * (pilot.width - 1.0))))


def _adapted(run: Run, mode: Mode, center: Mode, seed: int, found: str, automatic: bool) -> Tuned:
    """Run by a sampler that accepts or rejects, whose metric and step size a pilot has adapted."""
    if center.whitened is None:
        dynamics = round_gradient(soften(run.dynamics, mode), center, _NO_ERROR)
        run = replace(run, dynamics=round_density(dynamics, center))
    adapted = adapt(run, center, seed)
    if automatic and center.whitened is None and adapted.lost > THRESHOLDS.max_lost:
        found += f"; {adapted.lost:.0%} of a pilot's trajectories entered parts too narrow for them"
        run = replace(run, sampler=replace(run.sampler, step_range=_RANGE))
        adapted = adapt(run, center, seed)
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
        most_spaced=affordable(run),
        share=share,
        found=found,
        why=why,
        places=adapted.places if led else None,
        n_settling=adapted.n_settling,
    )


def round_gradient(dynamics: Dynamics, mode: Mode, limit: float) -> Dynamics:
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
    theta = root.sqrt(normals) + mode.theta.astype(root.dtype)
    error = root.sqrt_t(rounded.grad(theta)) - exact
    if not float(np.square(error).sum(axis=1).max()) < tau * limit**2:
        return dynamics
    target = dynamics.target or posterior
    return replace(dynamics, gradient=Full().bind(rounded, None), target=target, rounded=True)


def round_density(dynamics: Dynamics, mode: Mode) -> Dynamics:
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


def spread(tuned: Tuned, n_draws: int, most: int) -> tuple[Tuned, int]:
    """Run with several draws a trajectory along rows, and how many.

    A trajectory may take seconds. Fewer of them than draws, ``most`` at the most, are enough for
    intervals where they mix as well as the pilot's.
    """
    rows = tuned.run.dynamics.whitened
    assert rows is not None and tuned.time is not None
    few = most < n_draws
    enough = most if few else THRESHOLDS.enough * tuned.autocorrelation
    n_points = int(np.clip(n_draws / enough, 1, THRESHOLDS.max_points[few]))
    if n_points == 1:
        return tuned, 1
    sampler = along_rows(rows, n_points)
    step_size = sampler.whole_steps(tuned.run.step_size)
    run, time = replace(tuned.run, sampler=sampler, step_size=step_size), n_points * tuned.time
    return replace(tuned, run=run, time=time, most_spaced=1), n_points


def measure_bias(
    run: Run, mode: Mode, eta: float, in_curvature: bool, seed: int
) -> tuple[float, float]:
    """Bias of a step of size eta, of a mean or an sd, and two standard errors of it."""
    if run.sampler.adjusted:
        return 0.0, 0.0
    if in_curvature and eta > _SMALL_STEP * run.sampler.pace(np.ones(1))[0]:
        return pilots.measure_bias(run, mode, eta, seed)[:2]
    rates = preconditioned_eigenvalues(run.dynamics.preconditioner, mode.metric)
    slowest, steepest = (eta * run.sampler.speed(rate) for rate in (rates[0], rates[-1]))
    # Euler errs most where it is steep, a metric that is learned on the way where it is flat
    P = run.dynamics.preconditioner.n_params
    at_ends = [pilots.normal_inflation(run.sampler, slowest, P)]
    at_ends.append(pilots.normal_inflation(run.sampler, steepest, P) if steepest < 2.0 else np.inf)
    wide = max(at_ends, key=lambda inflation: abs(inflation - 1.0))
    return abs(float(np.sqrt(wide)) - 1.0), 0.0
