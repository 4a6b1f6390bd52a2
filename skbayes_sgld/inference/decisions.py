"""The choices of prior, gradient, sampler, step size, lengths and walkers, each with its reason.

Settings that depend on each other are chosen together, by one function. The choices depend on
the posterior and on random numbers of the pilots' own, never on the chains that are run with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

from skbayes_sgld._checks import check_batch_size
from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld._random import start_normals
from skbayes_sgld._warnings import warn
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.posterior.averaging import averaged_normal
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.posterior.boundary import require
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.gradients import ControlVariate, Full
from skbayes_sgld.sampling.metric import Diagonal, preconditioned_eigenvalues
from skbayes_sgld.sampling.preconditioners import Curvature
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers import HMC
from skbayes_sgld.sampling.schedules import Constant
from skbayes_sgld.sampling.tuning import bias as pilots
from skbayes_sgld.sampling.tuning.adaptation import (
    FIRST_CHAIN,
    adapt,
    affordable,
    hmc_along,
    recentred,
    soften,
)
from skbayes_sgld.sampling.tuning.leverage import Reading, read_always
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.noise import (
    NoiseLevel,
    batch_pays,
    cheapest_gradient,
    choose_batch_size,
    measure_noise,
    step_costs,
)
from skbayes_sgld.sampling.tuning.own_models import energy_error, n_trajectories
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

GIVEN, DEFAULT = "given", "the default"
# Reasons for a run to end before its last draw, and the remedy of each
EARLY_ENDS = {"max_time": "raise max_time", "callback": "let the callback stop later"}

_NO_BIAS = 1e-3  # error of a whitened gradient without accept or reject: means move as many sds
_POSITIONS = 4  # at which single and double precision are compared


class Choice(NamedTuple):
    """One resolved setting: its value, and the reason for it."""

    value: Any
    why: str

    @property
    def given(self) -> bool:
        """Whether the user gave it."""
        return self.why.partition(";")[0] == GIVEN


class Fallback(NamedTuple):
    """Change of a second plan, after a chain overflowed at an automatic step size.

    Attributes
    ----------
    why : str
        Chain, step and step size of the overflow.
    step_size : float or None
        Shorter step size, from starts around the mode; None: HMC on all rows, which cannot
        overflow.
    """

    why: str
    step_size: float | None = None


@dataclass(frozen=True)
class Tuned:
    """A run whose sampler, metric and step size are chosen, with the pilot's findings.

    Attributes
    ----------
    run : Run
    center : Mode or None
        Centre and metric of the posterior: the mode's, or of a pilot's draws.
    autocorrelation_time : float or None
        Steps to an independent draw, in the slowest direction, from which thinning and burn-in
        follow: the integrated autocorrelation time. Of a sampler that accepts or rejects it is what
        a pilot measured, less 1, so that a time of 1.6 makes every step a draw. None if it is not
        known.
    why_sampler, why_step_size : str
        Reasons for the two.
    why_all_rows : str
        Reason why a run takes all rows that began with batches.
    bias : tuple of float or None
        Largest bias of the step size, with twice its standard error; None where not measured.
    pilot_time : float
        Autocorrelation time that a pilot measured, in steps, whatever a step costs; 1 without one.
    most_spaced : int
        Largest affordable number of steps from draw to draw.
    share : float
        Affordable share of the draws, where steps are expensive.
    pilot_ends : ndarray of shape (n_ends, n_params) or None
        Positions at which the pilot's chains have forgotten their start, so that chains of the run
        may begin there; None where there are none.
    pilot_steps : int
        Steps that the pilot's chains took to get there.
    """

    run: Run
    center: Mode | None
    autocorrelation_time: float | None
    why_sampler: str = GIVEN
    why_step_size: str = GIVEN
    bias: tuple[float, float] | None = None
    pilot_time: float = 1.0
    most_spaced: int = THRESHOLDS.max_thin
    share: float = 1.0
    pilot_ends: Array | None = None
    pilot_steps: int = 0
    why_all_rows: str = ""

    def at(self, step_size: float, why: str, time: float | None) -> Tuned:
        """Copy with another step size, its reason and its autocorrelation time."""
        run = replace(self.run, step_size=step_size)
        return replace(self, run=run, why_step_size=why, autocorrelation_time=time)


# ---- settings that are used as they are given ---------------------------------------------------


def as_given(settings: Settings) -> dict[str, Choice]:
    """Choices of schedule, temperature, preconditioner, clipping and, if there is one, prior."""
    temperature, tau = settings.temperature, settings.tau
    defaults = {
        "schedule": (settings.schedule, isinstance(settings.schedule, Constant)),
        "temperature": (temperature or tau, temperature is None and tau == 1),
        "clip": (settings.clip, settings.clip is None),
    }
    choices = {name: Choice(v, DEFAULT if same else GIVEN) for name, (v, same) in defaults.items()}
    why = "its steps have no unit, on any data" if settings.preconditioner is None else GIVEN
    choices["preconditioner"] = Choice(settings.preconditioner or Curvature(), why)
    return choices if settings.prior is None else choices | {"prior": settings.prior}


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


def as_line(choices: dict[str, Choice]) -> str:
    """The choices as arguments of a call."""
    return ", ".join(f"{name}={shown(choice.value)}" for name, choice in choices.items())


def shown(value: Any) -> str:
    """Value of a setting as tables and reprs show it."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


# ---- prior --------------------------------------------------------------------------------------


_TOO_FEW = 2.5  # rows, or their weights: level and noise leave no upper end to a learned scale


def choose_prior(
    shape: tuple[int, int], likelihood: Likelihood, weight: float, obstacle: str = ""
) -> Choice:
    """Name of the prior of the coefficients: with few rows a column its scale is learned.

    Parameters
    ----------
    shape : tuple of int
        Numbers of rows and columns.
    likelihood : Likelihood
    weight : float
        Sum of the weights of the rows; of trials, their number.
    obstacle : str, default=""
        Setting that a learned scale does not go with; empty if there is none.
    """
    several = max(likelihood.n_predictors - 1, 1)  # one of the predictors of classes is redundant
    each, of = weight / (shape[1] * several), "column" if several == 1 else "free coefficient"
    why = f"{each:{'.3g' if each < 1000 else ',.0f'}} rows a {of}"
    fewest = THRESHOLDS.few_rows_each * (2.0 if getattr(likelihood, "n_classes", 2) > 2 else 1.0)
    if each >= fewest:
        return Choice("normal", why)
    if weight < _TOO_FEW:
        obstacle = obstacle or f"no scale is learned from {weight:.3g} rows in all"
    if likelihood.infers_noise and not likelihood.quadratic:
        # 15 rows of 30 columns with t-distributed noise take minutes, under a known scale seconds
        obstacle = obstacle or "chains mix slowly where the tails of the noise are inferred too"
    n_values = min(shape) * likelihood.n_predictors
    if n_values > (MAX_DENSE if likelihood.quadratic else THRESHOLDS.learned_parameters):
        obstacle = obstacle or "learning a scale takes long"
    if obstacle:
        return Choice("normal", f"{why}, but {obstacle}")
    return Choice("hierarchical_normal", f"{why}: its scale is learned from them")


# ---- gradient and batch size --------------------------------------------------------------------


class Batches(NamedTuple):
    """How a run's gradients are made.

    Attributes
    ----------
    choices : dict of str to Choice
        Gradient and batch size; None takes all rows.
    reading : Reading
        Rows that batches are drawn of, those that are in every batch, and the mode.
    noise : NoiseLevel or None
        Noise of minibatches, where it was measured.
    """

    choices: dict[str, Choice]
    reading: Reading
    noise: NoiseLevel | None = None


def choose_gradient(
    posterior: BasePosterior,
    settings: Settings,
    mode: Mode | None,
    seed: int,
    fallback: Fallback | None,
) -> Batches:
    """Gradient and batch size, and the rows that are in every batch."""
    gradient, batch_size = settings.gradient, settings.batch_size
    n, tau = posterior.n_samples, settings.tau
    reading = Reading(
        posterior, mode or Mode(posterior.start(), Diagonal(np.ones(posterior.n_params)))
    )
    if gradient is None and batch_size is None:
        n_walkers = expected_walkers(settings, posterior)
        overflowed = fallback is not None and fallback.step_size is None
        sampler = HMC() if overflowed else settings.sampler
        if sampler is not None and sampler.full_gradient:
            return Batches(all_rows(f"{sampler} takes all rows"), reading)
        if why := reason_for_all_rows(posterior, n_walkers):
            return Batches(all_rows(why), reading)
        gradient, batch_size, why, reading, noise = cheapest_gradient(
            posterior, reading.mode, tau, seed, n_walkers
        )
        size = Choice(batch_size, why + reading.told)
        return Batches({"gradient": Choice(gradient, why), "batch_size": size}, reading, noise)
    why = why_size = GIVEN
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
        size = Choice(None, "all rows at every step")
        return Batches({"gradient": Choice(gradient, why), "batch_size": size}, reading)
    if settings.gradient is None and n == 0:
        raise ValueError(
            f"batch_size={batch_size} needs a posterior with rows, and this one has none; set "
            "batch_size='auto'."
        )
    for ability in gradient.requires:
        require(posterior, ability, "gradient", gradient, gradient.remedy)
    check_batch_size(batch_size, n, "or gradient='full', which takes each of them once")
    if gradient.reads_always and mode is not None:
        reading = read_always(posterior, mode)
    n_sampled, noise = reading.posterior.n_samples, None
    if batch_size is None or settings.step_size is None:
        noise = measure_noise(
            reading.posterior, gradient, reading.mode, tau, seed, surely=reading.next_rows
        )
    if batch_size is None:
        assert noise is not None
        batch_size = min(choose_batch_size(noise, tau), n_sampled)
        why_size = "adds less than 0.5 % to any standard deviation, or is all rows' worth"
        if batch_size == n_sampled > THRESHOLDS.few_rows:
            warn(
                f"gradient={gradient!r} would need batches of all {n:,} rows to add less than "
                "0.5 % to any standard deviation, and takes several times as long to gather them "
                "as gradient='full' does to read them; set gradient='auto', or give batch_size.",
                UserWarning,
            )
    size = Choice(min(batch_size, n_sampled), why_size + reading.told)
    return Batches({"gradient": Choice(gradient, why), "batch_size": size}, reading, noise)


def all_rows(why: str) -> dict[str, Choice]:
    """Choices of a run whose every step takes all rows."""
    return {"gradient": Choice(Full(), why), "batch_size": Choice(None, why)}


def expected_walkers(settings: Settings, posterior: BasePosterior) -> int:
    """Number of walkers of a chain that can share a batch, were its steps of size 1."""
    facts = posterior.facts
    shared = settings.automatic and settings.allows_walkers
    if not (shared and facts.one_mode and facts.shares_batches):
        return 1
    time = 2.0  # autocorrelation time of steps of size 1
    n_burnin = usual_burnin(time) if settings.n_burnin is None else settings.n_burnin
    return most_walkers(n_burnin, settings.n_draws * (settings.thin or usual_thin(time)))


def most_walkers(n_burnin: int, n_steps: int, most: float = np.inf) -> int:
    """Largest number of walkers, up to ``most``, whose burn-in is a small share of the steps."""
    # a product with 16 positions costs half of 16 products with one; more positions gain little
    largest_share = {32: 0.1, 16: 0.2, 4: 0.1}
    usable = (
        k for k, share in largest_share.items() if k <= most and k * n_burnin <= share * n_steps
    )
    return next(usable, 1)


def reason_for_all_rows(posterior: BasePosterior, n_walkers: int = 1) -> str:
    """Reason why every step takes all rows, whatever a batch's noise; empty if there is none."""
    n, P = posterior.n_samples, posterior.n_params
    if n == 0:
        return "a density without rows"
    if posterior.facts.cheap_full_gradient:
        return "the rows are summed up once, into sufficient statistics"
    if not batch_pays(posterior, THRESHOLDS.min_batch, n_walkers):
        return f"{n:,} rows: all of them cost little more than a batch"
    if not posterior.abilities.issuperset(ControlVariate().requires):
        return "rows without local parameters: a batch would be noisy"
    if P > MAX_DENSE:
        return f"{P:,} parameters: the curvature at the mode is not formed"
    if P >= 300 and n < 5 * P:
        return f"{n:,} rows of {P:,} parameters: a batch would be noisy"
    return ""


# ---- sampler and step size ----------------------------------------------------------------------


def choose_sampler(
    draft: Run,
    mode: Mode | None,
    settings: Settings,
    noise: NoiseLevel | None,
    seed: int,
    fallback: Fallback | None,
) -> Tuned:
    """Run with its sampler and step size, their reasons, and the findings of the pilots."""
    step_size, why = settings.step_size, GIVEN
    if settings.sampler is None:
        why = "several modes" if draft.sampler.full_gradient else "the cheapest"
    if mode is None:
        assert step_size is not None
        return Tuned(replace(draft, step_size=step_size), None, None, why)
    first = float(draft.schedule(0))  # by which the step size is multiplied at the first step
    if step_size is None and settings.uses_curvature:
        free_batches = settings.gradient is None and settings.batch_size is None
        # steps on few rows are cheap: HMC on all of them beats shorter steps on batches
        few = free_batches and draft.n_samples <= THRESHOLDS.few_rows
        # clipped gradients move no trajectory of HMC well
        may_switch = settings.sampler is None and settings.clip is None
        may_switch = may_switch and (few or draft.batch_size is None)
        overflowed = fallback.why if fallback else ""
        automatic = free_batches and settings.sampler is None and settings.clip is None
        least = _least_step(draft) if automatic and draft.batch_size and not may_switch else 0.0
        tuned = tune(draft, mode, seed, may_switch, overflowed, free_batches, least)
        finding = tuned.why_sampler
        if tuned.run.sampler is not draft.sampler:
            why = f"{draft.sampler}: {finding}"
        elif settings.sampler is None and finding:
            why = f"{why}; {finding}"
        tuned = replace(tuned, why_sampler=why)
        if noise is not None and draft.batch_size is not None and not free_batches:
            # a sampler's own share of the noise; the thermostat's is none
            gain = max(draft.sampler.noise_gain, 1e-12)
            largest = noise.step_size(draft.batch_size, settings.tau) / gain
            if largest < tuned.run.step_size:
                shorter = max(largest, pilots.step_sizes(draft.sampler)[-1])
                time = draft.sampler.step_and_time(np.ones(mode.theta.size), shorter)[1]
                tuned = tuned.at(shorter, "a longer one needs a larger batch", time)
    else:
        rates = preconditioned_eigenvalues(draft.dynamics.metric, mode.metric)
        with np.errstate(over="ignore", divide="ignore"):  # the time may be infinite
            eta, time = draft.sampler.step_and_time(
                rates, None if step_size is None else step_size * first
            )
        stable = "stable in the steepest direction at the mode"
        why_step_size = stable if step_size is None else GIVEN
        tuned = Tuned(replace(draft, step_size=eta), mode, time, why, why_step_size)
    tuned = replace(tuned, run=replace(tuned.run, step_size=tuned.run.step_size / first))
    if fallback is None or fallback.step_size is None:
        return tuned
    longer = max(1.0, tuned.run.step_size / fallback.step_size)
    time = None if tuned.autocorrelation_time is None else longer * tuned.autocorrelation_time
    return tuned.at(tuned.run.step_size / longer, f"shortened: {fallback.why}", time)


def tune(
    run: Run,
    mode: Mode,
    seed: int,
    may_switch: bool = False,
    overflowed: str = "",
    quiet: bool = False,
    least: float = 0.0,
) -> Tuned:
    """Choose sampler and step size of a run in the metric of the curvature.

    The run keeps its sampler if a pilot finds no error in it at the largest step size. If the pilot
    finds one, or chains have ``overflowed``, there are two cases: HMC takes over and is adapted if
    the sampler ``may_switch``; otherwise the step size falls until the error is gone. ``quiet``
    says that batches have no visible noise. If ``least`` is not 0 and no step down to it is without
    error on batches, the run takes all rows instead. The result's ``why_sampler`` is the pilot's
    finding.
    """
    if run.batch_size is None:
        run = replace(run, dynamics=round_gradient(run.dynamics, mode, _NO_BIAS))
    posterior, center = run.dynamics.gradient.posterior, mode
    if posterior.facts.far_from_mode and (may_switch or run.sampler.adjusted):
        center = _nearest_normal(run, mode, collapse=may_switch)
    if run.sampler.adjusted:
        return _adapted(run, mode, center, seed, "", may_switch)
    exact: Sampler = HMC()
    if may_switch and posterior.facts.steep:
        finding = "the noise is too uncertain for steps that are not accepted or rejected"
    elif may_switch and center is not mode:
        finding = "the posterior is far from its mode, with few rows per parameter"
        # acceptance aimed at in many dimensions: Beskos et al. (2013)
        exact = hmc_along(center.whitened) if center.whitened else HMC(target_acceptance=0.65)
    elif may_switch and (jump := _density_jump(run, mode, seed)):
        finding = f"the density jumps by {jump:.2g} nats, of which its gradient says nothing"
    elif may_switch and overflowed:
        finding = overflowed
    else:
        # all rows may cost a pilot less than batches, which its chains do not share
        on_all_rows = quiet and run.n_samples <= (run.batch_size or 0) * pilots.n_chains(run)
        on_all_rows = on_all_rows and posterior.facts.shares_batches
        piloted = _on_all_rows(run, mode) if on_all_rows else run
        choice = pilots.choose_step_size(piloted, mode, seed, may_switch, least)
        if choice is None and least:
            wrong = f"on batches a pilot's moments are off by more than {THRESHOLDS.max_bias:.1%}"
            tuned = tune(_on_all_rows(run, mode), mode, seed, may_switch=True)
            finding = f"{wrong}; {tuned.why_sampler}"
            return replace(tuned, why_sampler=finding, why_all_rows=wrong)
        if choice is None:
            finding = f"a pilot's moments are off by more than {THRESHOLDS.max_bias:.1%}"
        elif may_switch and not pilots.holds_far_out(run, mode, choice[0], seed):
            finding = f"a pilot's steps of {choice[0]:g} overflow from far out"
        else:
            step_size, pilot = choice
            bias, doubt, width, *_ = pilot
            finding = f"a pilot's moments are off by {bias:.1%} +- {doubt:.1%} at {step_size:g}"
            # heavy tails and nearly separated classes are wider: steps in the mode's metric are
            # then too short to cross them. At 2, draws two steps of 1 apart are worth a half each
            if not may_switch or width <= 2.0:
                time = _time(run.sampler, step_size, mode.theta.size, pilot)
                run = replace(run, step_size=step_size)
                return Tuned(run, mode, time, finding, finding, (bias, doubt))
            finding = f"a pilot's variances are {width:.1f} times those at the mode"
    run = replace(_on_all_rows(run, mode), sampler=exact)
    return _adapted(run, mode, center, seed, finding, may_switch)


def _least_step(run: Run) -> float:
    """Step size below which steps on batches cost more than HMC on all rows."""
    of_batch, of_all = step_costs(run.dynamics.gradient.posterior, run.batch_size or 0)
    # chains of short steps have few walkers, so that a step's own overhead is 10 microseconds a
    # position; a draw takes HMC 15 gradients or so
    return min(0.5, 2.0 * (of_batch + 10_000.0) / (15.0 * of_all))


def _density_jump(run: Run, mode: Mode, seed: int) -> float:
    """Size of the jumps, in nats, of a user's own density around the mode; 0 if there are none."""
    posterior, tau = run.dynamics.gradient.posterior, float(run.dynamics.temperature)
    if not posterior.facts.user_defined:
        return 0.0
    chains = range(FIRST_CHAIN, FIRST_CHAIN + n_trajectories(posterior))
    moves = np.sqrt(tau) * mode.metric.sqrt(start_normals(seed, chains, mode.theta.size))
    return energy_error(posterior, mode, mode.theta + moves, tau, seed)[1]


def _on_all_rows(run: Run, mode: Mode) -> Run:
    """Run whose steps take all rows."""
    if run.batch_size is None:
        return run
    posterior = run.dynamics.posterior  # rather than one whose batches leave out some rows
    dynamics = replace(run.dynamics, gradient=Full().bind(posterior), target=None)
    dynamics = round_gradient(dynamics, mode, _NO_BIAS)
    return replace(run, batch_size=None, n_samples=posterior.n_samples, dynamics=dynamics)


def _time(sampler: Sampler, step_size: float, n_params: int, pilot: pilots.Bias) -> float:
    """Steps to an independent draw of a sampler that a pilot has run."""
    declared = sampler.step_and_time(np.ones(n_params), step_size)[1]
    # a declared time has no Monte Carlo error, and is better unless it is wrong
    # (for one parameter it is measured to a quarter)
    time = pilot.time if pilot.time > 2.0 * declared else declared
    # steps of 1 keep 1 - 1/w where the variance is w: 2 w - 2 of them leave draws half of their
    # worth or more, as 2 do where w is 2
    return max(time, float(np.rint(time * (pilot.width - 1.0))))


def _adapted(run: Run, mode: Mode, center: Mode, seed: int, finding: str, may_vary: bool) -> Tuned:
    """Run by a sampler that accepts or rejects, whose metric and step size a pilot has adapted.

    ``may_vary`` lets its steps vary in length, where the posterior has narrow parts.
    """
    if center.whitened is None:
        # log acceptance ratios change by about as much as the whitened gradient
        dynamics = round_gradient(soften(run.dynamics, mode), center, 0.01)
        run = replace(run, dynamics=round_density(dynamics, center))
    adapted = adapt(run, center, seed)
    # log-linear noise of 17 to 45 rows with three for each column: 4 to 7 % of the trajectories had
    # an acceptance probability of 0, and a chain stood still for 40 to 160 of them; with steps of
    # varied size for 20
    if may_vary and center.whitened is None and adapted.lost > 0.03:
        finding += (
            f"; {adapted.lost:.0%} of a pilot's trajectories entered parts too narrow for them"
        )
        run = replace(run, sampler=replace(run.sampler, step_range=64.0))  # longest over shortest
        adapted = adapt(run, center, seed)
    dynamics = recentred(run.dynamics, adapted.mode)
    run = replace(run, dynamics=dynamics, step_size=adapted.step_size)
    n_gradients = run.sampler.gradients(run.step_size)
    expected = run.sampler.step_and_time(np.ones(mode.theta.size), run.step_size)[1]
    # a step may be expensive, and draws that are worth half of independent ones are the cheapest.
    # With a time of 1.6 every step is a draw, worth 0.62; with 2.6 every second step, worth 0.67. A
    # Laplace prior on 60 columns of 40 rows so keeps every draw: effective sample sizes of 1,200 to
    # 1,800 of 4,000, the worst of 62 sds off by 5 to 9 %, and no bias over 20 seeds
    measured = adapted.autocorrelation - 1.0
    most = 400 / n_gradients  # slower mixing is reported instead
    share = 1.0
    if dynamics.whitened is not None:
        work = dynamics.whitened.work_of(n_gradients)
        half_share, full_share = (limit / work for limit in THRESHOLDS.max_draw)
        share = min(1.0, max(full_share, min(0.5, half_share)))
    # where there may be several modes, chains that begin far apart find more of them
    begins_at_ends = run.dynamics.posterior.facts.log_concave and len(adapted.ends) > 0
    return Tuned(
        run,
        adapted.mode,
        min(max(1.0, measured, 0.5 * expected), max(1.0, most)),
        finding,
        f"pilot acceptance {adapted.acceptance:.0%} near this step size",
        (0.0, 0.0),
        pilot_time=adapted.autocorrelation,
        most_spaced=affordable(run),
        share=share,
        pilot_ends=adapted.ends if begins_at_ends else None,
        pilot_steps=adapted.n_settling,
    )


def _nearest_normal(run: Run, mode: Mode, collapse: bool) -> Mode:
    """Normal distribution nearest in expectation to a posterior far from its mode.

    ``collapse`` says whether the sampler may be the one that a collapsed posterior needs.
    """
    posterior = run.dynamics.gradient.posterior
    assert isinstance(posterior, GLMPosterior)
    normal = averaged_normal(posterior, mode.theta, float(run.dynamics.temperature), collapse)
    if normal is None:
        return mode
    if normal.whitened is not None:
        return Mode.from_whitened(normal.whitened)
    return Mode.from_curvature(normal.mean, normal.precision)


def round_gradient(dynamics: Dynamics, mode: Mode, limit: float) -> Dynamics:
    """Dynamics whose gradient is computed in single precision, where that is cheaper.

    Leapfrog steps along any deterministic field are reversible and keep volumes, so the draws of a
    chain that accepts or rejects are as exact as before; what rounding costs it is acceptance. The
    means of other chains move by as many sds as rounding changes the whitened gradient. Where this
    is ``limit`` or more (on nearly collinear columns, whose coefficients cancel, or under huge
    weights) the gradient stays in double precision.
    """
    posterior, tau = dynamics.gradient.posterior, float(dynamics.temperature)
    rounded = posterior.rounded()
    if rounded is posterior:
        return dynamics
    normals, root = start_normals(0, range(_POSITIONS), mode.theta.size), mode.metric.rounded()
    exact = mode.metric.sqrt_t(posterior.grad(mode.theta + mode.metric.sqrt(normals)))
    theta = root.sqrt(normals) + mode.theta.astype(root.dtype)
    error = root.sqrt_t(rounded.grad(theta)) - exact
    if not float(np.square(error).sum(axis=1).max()) < tau * limit**2:
        return dynamics
    target = dynamics.target or posterior
    return replace(dynamics, gradient=Full().bind(rounded, None), target=target, rounded=True)


def round_density(dynamics: Dynamics, mode: Mode) -> Dynamics:
    """Dynamics whose densities accept or reject in single precision too, where that is safe.

    It is safe where they agree with double precision to a thousandth: a draw's weight is then off
    by as much, at random.
    """
    target = dynamics.posterior
    rounded = target.rounded(density=True)
    if not dynamics.rounded or rounded is target:
        return dynamics
    theta = mode.theta + mode.metric.sqrt(start_normals(0, range(_POSITIONS), mode.theta.size))
    with np.errstate(over="ignore", invalid="ignore"):  # exponentials beyond single precision
        error = rounded.bind_value_and_grad()(theta)[0] - target.log_density(theta)
        if not float(np.ptp(error)) < 1e-3 * float(dynamics.temperature):
            return dynamics
    return replace(dynamics, target=rounded)


def step_bias(
    run: Run, mode: Mode, etas: Array | float, in_curvature: bool, seed: int
) -> tuple[float, float]:
    """Largest bias of draws (means in sds, sds relative), with twice its standard error.

    ``etas`` are the step sizes at the draws, which weigh the draws. A pilot measures the bias of a
    step where the metric is the curvature's. In other metrics, and at steps shorter than a fifth of
    the sampler's own, it is the bias on a normal target.
    """
    sampler, P = run.sampler, run.dynamics.metric.n_params
    if sampler.adjusted:
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
    # variances average over the draws, whether steps change slowly or within the time in which the
    # chain forgets
    variance = np.average(np.square(1.0 + biases), weights=counts)
    return float(np.sqrt(variance)) - 1.0, float(np.average(doubts, weights=counts))


def _typical_steps(etas: Array | float) -> tuple[Array, Array]:
    """Step sizes in the middle of eighths of their sum, ascending, and the number of each."""
    etas = np.sort(np.atleast_1d(etas))
    weight = etas / etas[-1]  # the sum of the largest steps overflows
    middle = np.cumsum(weight) - 0.5 * weight
    at = np.interp((np.arange(8) + 0.5) / 8, middle / weight.sum(), etas)
    return np.unique(at, return_counts=True)


def _bias_on_normal(sampler: Sampler, eta: float, rates: Array, n_params: int) -> float:
    """Largest relative error of an sd, on a normal target whose curvatures are ``rates``."""
    slowest, steepest = (eta * sampler.speed(rate) for rate in (rates[0], rates[-1]))
    # Euler errs most where it is steep, a metric that is learned on the way where it is flat
    at_ends = [pilots.normal_inflation(sampler, slowest, n_params)]
    stable = steepest < 2.0
    at_ends.append(pilots.normal_inflation(sampler, steepest, n_params) if stable else np.inf)
    wide = max(at_ends, key=lambda inflation: abs(inflation - 1.0))
    return abs(float(np.sqrt(wide)) - 1.0)


# ---- lengths and numbers ------------------------------------------------------------------------


def choose_n_draws(tuned: Tuned, settings: Settings, n_params: int) -> tuple[Tuned, Choice]:
    """Number of draws of a chain, and the run, which may make several of them a trajectory.

    Trajectories along rows may take seconds. Fewer of them than draws are enough for intervals
    where they mix as well as the pilot's.
    """
    n_asked, n_chains = settings.n_draws, settings.n_chains
    if n_chains * n_asked > THRESHOLDS.max_numbers:
        raise ValueError(
            f"n_draws={n_asked}: of {n_chains} chains, even with one parameter, these are "
            f"more than the {THRESHOLDS.max_numbers:,.0f} numbers that a run keeps; give at most "
            f"{THRESHOLDS.max_numbers // n_chains:.0f}."
        )
    in_memory = int(THRESHOLDS.max_numbers // (n_chains * n_params))
    in_time = ceil(tuned.share * n_asked)
    rows = tuned.run.dynamics.whitened
    if rows and not rows.collapsed and settings.sampler is None and settings.thin is None:
        few = in_time < n_asked
        # 200 effective draws a chain are twice the limit of the warning
        enough = in_time if few else 200.0 * tuned.pilot_time
        n_points = int(np.clip(n_asked / enough, 1, 4 if few else 2))
        if n_points > 1:
            assert tuned.autocorrelation_time is not None
            sampler = hmc_along(rows, n_points)
            step_size = sampler.whole_steps(tuned.run.step_size)
            run = replace(tuned.run, sampler=sampler, step_size=step_size)
            time = n_points * tuned.autocorrelation_time
            tuned = replace(tuned, run=run, autocorrelation_time=time, most_spaced=1)
            in_time *= n_points
    fewest = 16  # draws, however long they take
    n_draws = max(min(n_asked, in_memory, in_time), min(n_asked, fewest))
    limit = "memory" if in_memory < in_time else "time"
    why = f"{n_asked:,} of {n_params:,} parameters would take too much {limit}"
    return tuned, Choice(n_draws, GIVEN if n_draws == n_asked else why)


def usual_thin(time: float) -> int:
    """Steps from draw to draw of chains whose autocorrelation time is ``time`` steps.

    Draws spaced by ``time`` are nearly independent. Long times are halved: draws are then worth
    half as much, at half the cost.
    """
    time = round(max(time, 1.0), 6)  # rounding must not add a step
    thin = time if time <= THRESHOLDS.short_thin else max(THRESHOLDS.short_thin, 0.5 * time)
    return int(min(np.ceil(thin), THRESHOLDS.max_thin))


def usual_burnin(time: float) -> int:
    """Burn-in of ten autocorrelation times, after which the start is forgotten."""
    time = round(max(time, 1.0), 6)
    return int(min(np.ceil(10.0 * time), 10_000))


def choose_thin(tuned: Tuned, settings: Settings) -> Choice:
    """Steps from draw to draw."""
    if settings.thin is not None:
        return Choice(settings.thin, GIVEN)
    if tuned.autocorrelation_time is None:
        return Choice(10, "nothing is known of the posterior's widths")
    thin, time = usual_thin(tuned.autocorrelation_time), f"{tuned.autocorrelation_time:.3g}"
    why = f"autocorrelation time of {time} step{'s' * (time != '1')}"
    if tuned.most_spaced < thin:
        return Choice(tuned.most_spaced, f"{why}, and more steps a draw would take too long")
    return Choice(
        thin, f"{why}; closer draws cost less" if thin + 1 <= tuned.autocorrelation_time else why
    )


def choose_burnin(
    tuned: Tuned, settings: Settings, n_draws: int, thin: int, continues: bool
) -> Choice:
    """Steps before the first draw; by default none where chains continue those of the last fit."""
    if settings.n_burnin is not None:
        return Choice(settings.n_burnin, GIVEN)
    if continues:
        return Choice(0, "chains continue those of the last fit")
    n_burnin, why = n_draws * thin, "half of the run"
    if tuned.autocorrelation_time is not None:
        n_burnin = min(usual_burnin(tuned.autocorrelation_time), n_burnin)
        why = "ten independent draws' worth, at most half of the run"
        if tuned.run.dynamics.whitened is not None:
            n_burnin = min(ceil(0.5 * n_burnin), ceil(0.06 * n_draws) * thin)
            why = "five independent draws' worth, after the pilot's trajectories"
        elif settings.init_is("auto") and tuned.pilot_ends is not None:
            # the correlation between walkers from one pilot chain falls to 10 %
            least = min(n_burnin, ceil(2.0 * tuned.autocorrelation_time))
            n_burnin, why = n_burnin - tuned.pilot_steps, f"{why}, with the pilot's part"
            if n_burnin < least:
                n_burnin, why = least, "two independent draws' worth, after those of the pilot"
    if settings.n_hot:
        n_burnin += settings.n_hot
        why += " after the temperature has settled"
    return Choice(n_burnin, why)


def choose_walkers(tuned: Tuned, settings: Settings, n_draws: int, n_burnin: int, thin: int) -> int:
    """Number of walkers whose draws are a chain's.

    A step of many positions costs little more than one of four, but each walker has a burn-in.
    """
    dynamics = tuned.run.dynamics
    if dynamics.whitened is not None:
        most = (4,) if dynamics.whitened.collapsed else (16, 8, 4)
        return next((w for w in most if n_draws >= w**2), 4)
    posterior = dynamics.posterior
    # where a whole block of steps is made at once, walkers save nothing
    diagonal = dynamics.metric.diagonal
    one_by_one = diagonal is None or posterior.facts.slope_of_last is None
    if not (settings.automatic and one_by_one and posterior.facts.one_mode):
        return 1
    # at least three chains have walkers that all begin at pilot ends of their own
    ends = np.inf if tuned.pilot_ends is None else len(tuned.pilot_ends) / 3
    return most_walkers(n_burnin, n_draws * thin, ends)
