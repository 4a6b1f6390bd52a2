"""The plan of a run: every ``"auto"`` resolved, with the figure behind each choice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import MAX_DENSE, inverse_root
from skbayes_sgld.inference.choices import GIVEN, Choice, as_table, shown
from skbayes_sgld.inference.lengths import choose_lengths, choose_number
from skbayes_sgld.inference.parameterization import reparameterize
from skbayes_sgld.inference.settings import Settings, check_memory
from skbayes_sgld.inference.start import choose_start, choose_walkers
from skbayes_sgld.posterior.base import BasePosterior, require
from skbayes_sgld.sampling.chains import Run
from skbayes_sgld.sampling.gradients import BoundGradient, ControlVariate, Full, Gradient
from skbayes_sgld.sampling.preconditioners.metric import Dense, Diagonal, preconditioned_eigenvalues
from skbayes_sgld.sampling.protocol import Dynamics, Sampler, check_requirements
from skbayes_sgld.sampling.samplers import HMC, SGLD, ParallelTempering
from skbayes_sgld.sampling.tuning import bias as pilots
from skbayes_sgld.sampling.tuning.mode import Mode, NoModeError, find_mode
from skbayes_sgld.sampling.tuning.noise import (
    NoiseLevel,
    choose_batch_size,
    choose_gradient,
    measure_noise,
    reason_for_all_rows,
)
from skbayes_sgld.sampling.tuning.tune import Tuned, tune

Array = NDArray[Any]

_SMALL_STEP = 0.2  # of the sampler's own; below it the bias is that on a normal target


@dataclass(frozen=True, repr=False)
class Plan:
    """Everything that a run of chains needs; ``print`` gives a table of settings and reasons.

    Attributes
    ----------
    posterior : BasePosterior
        Target, in the coordinates that are sampled.
    run : Run
        Sampler, gradient, metric, step size, schedule and temperature.
    start : ndarray of shape (n_chains * n_walkers, n_params)
        Starting points of the chains, in the coordinates that are sampled.
    seed : int
    n_draws, n_burnin, thin : int
    mode : Mode or None
        Mode of the posterior and the curvature there; None where nothing asks for it.
    center : Mode or None
        Centre and metric of the posterior by the tuning: those of the mode, or of a pilot's draws.
    bias : tuple of float
        Largest error that the step size makes in a mean, in sds, or in an sd, relative, and two
        standard errors of it; nan where it is measured from the draws.
    noise : NoiseLevel or None
        Noise of minibatches in the metric of the run, where it was measured.
    choices : dict of str to Choice
        Every setting, resolved.
    settings : Settings
        The settings as the user wrote them.
    has_data : bool
        Whether ``posterior`` and ``run`` are there, which hold the data; they are None otherwise.
    n_walkers : int, default=1
        Walkers that take turns in a chain's draws: 32 positions cost little more than four.
    """

    posterior: BasePosterior
    run: Run
    start: Array
    seed: int
    n_draws: int
    n_burnin: int
    thin: int
    mode: Mode | None
    center: Mode | None
    bias: tuple[float, float]
    noise: NoiseLevel | None
    choices: dict[str, Choice]
    settings: Settings
    has_data: bool = True
    n_walkers: int = 1

    def without_data(self) -> Plan:
        """The plan as a record of what was chosen, without what holds the data."""
        nothing: Any = None
        center = None if self.center is None else self.center._replace(whitened=None)
        return replace(self, posterior=nothing, run=nothing, center=center, has_data=False)

    @property
    def n_turns(self) -> int:
        """Draws of each walker."""
        return -(-self.n_draws // self.n_walkers)

    @property
    def n_hot(self) -> int:
        """Steps before the final temperature."""
        goes_on = self.choices["init"].value == "last positions"  # of chains that have cooled
        return 0 if goes_on else self.settings.temperature.n_hot

    @property
    def n_steps(self) -> int:
        """Steps of each chain, those before the first draw included."""
        return self.n_burnin + self.n_turns * self.thin

    def __str__(self) -> str:
        """Table of settings, values and reasons."""
        return as_table(self.choices)

    def __repr__(self) -> str:
        """Every setting; ``print`` gives the reasons."""
        return f"Plan({', '.join(f'{k}={shown(v.value)}' for k, v in self.choices.items())})"


def plan(
    posterior: BasePosterior,
    settings: Settings,
    seed: int,
    positions: Array | None = None,
) -> Plan:
    """Resolve every ``"auto"`` of a run.

    Parameters
    ----------
    posterior : BasePosterior
    settings : Settings
    seed : int
        Seed of the pilots and of the chains.
    positions : ndarray of shape (n_chains, n_params) or None
        Last positions of an earlier run's chains, in the user's parameters: the run continues from
        there, without burn-in.

    Returns
    -------
    plan : Plan

    Raises
    ------
    ValueError, TypeError
        Where settings do not go together, or the posterior lacks what one of them needs.
    """
    posterior, mode = posterior.tempered(settings.tau), None
    coordinates = ("centered", "the model's own coordinates")
    offered = posterior.parameterizations
    if (settings.parameterization or "centered") != "centered" or offered != ("centered",):
        posterior, mode, coordinates = reparameterize(posterior, settings)
    if mode is None and _needs_mode(posterior, settings):
        mode = _locate(posterior)
    reference = mode or Mode(posterior.start(), Diagonal(np.ones(posterior.n_params)))
    gradient, batch_size, noise, choices = _choose_gradient(posterior, settings, reference, seed)
    draft = Run(
        _first_choice(posterior, settings),
        Dynamics(
            _bind(gradient, posterior, mode),
            settings.metric.bind(posterior.n_params, mode),
            settings.clip,
            settings.tau,
            center=mode.theta if mode is not None and settings.uses_curvature else None,
        ),
        settings.schedule,
        pilots.STEP_SIZES[0],
        posterior.n_samples,
        batch_size,
        gradient.replacement,
    )
    check_requirements(draft.sampler, posterior, batch_size)
    tuned, chosen = _choose_step_size(draft, mode, settings, noise, seed)
    choices |= chosen
    may_share = settings.allows_walkers and positions is None
    n_draws, chosen = settings.n_draws, {}
    if may_share:
        n_draws, chosen = choose_number(tuned, settings, posterior)
    choices |= chosen
    check_memory(settings.n_chains, n_draws, posterior.n_params)
    n_burnin, thin, chosen = choose_lengths(tuned, settings, n_draws, positions is not None)
    choices |= chosen
    run = tuned.run
    bias = tuned.bias
    if mode is not None and bias is None:
        # what the last kept step costs: a schedule may have made it small by then
        eta = run.step_size * float(run.schedule(n_draws * thin))
        bias = measure_bias(run, mode, eta, settings.metric.uses_curvature, seed)
    n_walkers = choose_walkers(run, settings, n_draws, n_burnin, thin) if may_share else 1
    start, why_start = choose_start(posterior, settings, tuned, seed, positions, n_walkers)
    choices |= {"init": Choice(*why_start), "parameterization": Choice(*coordinates)}
    heat = settings.temperature
    for name, value in {
        "schedule": settings.schedule,
        "temperature": heat.schedule or heat.final,
        "clip": settings.clip,
    }.items():
        choices[name] = Choice(value, GIVEN)
    # everything so far is for the last temperature; chains that go on have cooled already
    cooling = None if positions is not None else heat.schedule
    return Plan(
        posterior,
        replace(run, temperature=cooling),
        start,
        seed,
        n_draws,
        n_burnin,
        thin,
        mode,
        tuned.mode,
        bias or (np.nan, 0.0),
        noise if settings.uses_curvature else None,
        {name: choices[name] for name in _ORDER if name in choices},
        settings,
        n_walkers=n_walkers,
    )


_ORDER = (
    "sampler",
    "step_size",
    "schedule",
    "temperature",
    "gradient",
    "batch_size",
    "preconditioner",
    "parameterization",
    "clip",
    "init",
    "n_draws",
    "n_burnin",
    "thin",
)


def _first_choice(posterior: BasePosterior, settings: Settings) -> Sampler:
    """Sampler to begin with; a pilot may find an automatic one in error."""
    if settings.sampler is not None:
        return settings.sampler
    return ParallelTempering() if posterior.multimodal else SGLD()


def _needs_mode(posterior: BasePosterior, settings: Settings) -> bool:
    """Whether anything asks for the mode; a published algorithm never does."""
    if settings.uses_curvature or settings.step_size is None or settings.starts_at_mode:
        return True
    if settings.gradient is not None:
        return settings.gradient.needs_mode
    return settings.batch_size is not None or not reason_for_all_rows(posterior)


def _locate(posterior: BasePosterior) -> Mode:
    """Mode and curvature there; for a posterior that may have no mode, the start alone."""
    known = posterior.centered_normal()
    if known is not None:
        center, precision = known
        return Mode(center, Dense(inverse_root(precision), precision))
    try:
        mode = find_mode(posterior, posterior.start())
    except NoModeError:
        if posterior.has_mode:
            raise
        return Mode(posterior.start(), Diagonal(np.ones(posterior.n_params)))
    posterior.check_mode(mode.theta)
    return mode


def _bind(gradient: Gradient, posterior: BasePosterior, mode: Mode | None) -> BoundGradient:
    if mode is None:
        return gradient.bind(posterior)
    return gradient.bind(posterior, mode.theta, mode.expansion)


def _choose_gradient(
    posterior: BasePosterior, settings: Settings, reference: Mode, seed: int
) -> tuple[Gradient, int | None, NoiseLevel | None, dict[str, Choice]]:
    """Gradient, batch size (None: all rows) and minibatch noise, if measured."""
    gradient, batch_size = settings.gradient, settings.batch_size
    n, tau = posterior.n_samples, settings.tau
    if gradient is None and batch_size is None:
        if settings.sampler is not None and settings.sampler.full_gradient:
            gradient, why, noise = Full(), f"{settings.sampler} takes all rows", None
        else:
            gradient, batch_size, why, noise = choose_gradient(posterior, reference, tau, seed)
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
    require(posterior, gradient.requires, "gradient", gradient, gradient.remedy)
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
    return gradient, batch_size, noise, _both(gradient, why, batch_size, why_size)


def _both(
    gradient: Gradient, why_gradient: str, batch_size: int | None, why_size: str
) -> dict[str, Choice]:
    return {
        "gradient": Choice(gradient, why_gradient),
        "batch_size": Choice(batch_size, why_size),
    }


def _choose_step_size(
    draft: Run, mode: Mode | None, settings: Settings, noise: NoiseLevel | None, seed: int
) -> tuple[Tuned, dict[str, Choice]]:
    """Run with its sampler and step size, and what the tuning found."""
    automatic, given = settings.sampler is None, settings.step_size
    why_sampler, why = GIVEN, GIVEN
    if automatic:
        why_sampler = "several modes" if draft.sampler.full_gradient else "the cheapest"
    if mode is None:
        assert given is not None
        tuned = Tuned(replace(draft, step_size=given), None, None)
    elif given is None and settings.uses_curvature:
        # a bound that fires moves no trajectory well
        spare = draft.batch_size is None and settings.clip is None and automatic
        tuned = tune(draft, mode, seed, [HMC()] * spare)
        why = tuned.why
        if tuned.run.sampler is not draft.sampler:
            why_sampler = f"{draft.sampler}: {tuned.found}"
        elif automatic:
            why_sampler = f"{why_sampler}; {tuned.found}" if tuned.found else why_sampler
        chosen_for_it = settings.gradient is None and settings.batch_size is None
        if noise is not None and draft.batch_size is not None and not chosen_for_it:
            # a sampler's own share of the noise; the thermostat's is none
            gain = max(draft.sampler.noise_gain, 1e-12)
            quiet = noise.step_size(draft.batch_size, settings.tau) / gain
            if quiet < tuned.run.step_size:
                step_size = max(quiet, pilots.step_sizes(draft.sampler)[-1])
                tuned.run.step_size, why = step_size, "a longer one needs a larger batch"
                tuned.time = draft.sampler.pace(np.ones(mode.theta.size), step_size)[1]
        tuned.run.step_size /= float(draft.schedule(0))
    else:
        first = float(draft.schedule(0))
        rates = preconditioned_eigenvalues(draft.dynamics.preconditioner, mode.metric)
        eta, time = draft.sampler.pace(rates, None if given is None else given * first)
        tuned = Tuned(replace(draft, step_size=eta / first), mode, time)
        if given is None:
            why = "stable in the steepest direction at the mode"
    return tuned, {
        "sampler": Choice(tuned.run.sampler, why_sampler),
        "step_size": Choice(tuned.run.step_size, why),
        "preconditioner": Choice(
            settings.metric,
            "its steps have no unit, on any data" if settings.preconditioner is None else GIVEN,
        ),
    }


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
