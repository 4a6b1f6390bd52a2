"""The plan of a run: every ``"auto"`` resolved, with the figure behind each choice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import start_normals
from skbayes_sgld._linalg import inverse_root
from skbayes_sgld.diagnostics import least_ess
from skbayes_sgld.inference.choices import (
    GIVEN,
    Choice,
    Fallback,
    Tuned,
    as_table,
    choose_gradient,
    choose_spacing,
    choose_step_size,
    measure_bias,
    most_walkers,
    reason_for_all_rows,
    shown,
    spread,
)
from skbayes_sgld.inference.parameterization import reparameterize
from skbayes_sgld.inference.settings import Settings, check_memory
from skbayes_sgld.inference.starts import settle_down, start_elsewhere
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.chains import Run, constrained_draws
from skbayes_sgld.sampling.dynamics import Dense, Diagonal, Dynamics
from skbayes_sgld.sampling.protocol import Constant, check_requirements
from skbayes_sgld.sampling.samplers import SGLD, ParallelTempering
from skbayes_sgld.sampling.schedules import check_multipliers
from skbayes_sgld.sampling.tuning import bias as pilots
from skbayes_sgld.sampling.tuning.mode import TOLERANCE, Mode, NoModeError, find_mode
from skbayes_sgld.sampling.tuning.noise import NoiseLevel
from skbayes_sgld.sampling.tuning.other_modes import KnownMode, find_modes
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

Array = NDArray[Any]

# Squared distance from the mode, in sds and for each parameter, that a search may leave where the
# tuning moves on to a centre far from the mode. Of 3,000 rows and 2,100 columns that centre is at a
# squared distance of 5.0 a parameter, and the search takes 3 s rather than 8 s
_BESIDE = 0.01
_PUBLISHED_THIN = 10  # steps from draw to draw where nothing is known of the posterior
_SETTLED, _MOST_SETTLED = 0.5, 0.06  # of the burn-in and of a chain's draws: of settled walkers
# Independent draws' worth of burn-in from where the pilot's chains have led: of what chains that
# begin at neighbouring places of one have in common they leave a tenth
_LED = 2.0
_FEWEST_DRAWS = 16  # that a chain makes, whatever they cost
_WHITENED_WALKERS = 16, 8, 4  # of a chain, see Plan
_OWN_PLACES = 3  # chains whose walkers begin at places of the pilot that no other begins at


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
        Mode of the posterior and the curvature there; None where nothing asks for it. Where most of
        the posterior is far from its mode, for lack of rows, and the tuning is to find another
        centre, it is known to about 0.1 sds of each parameter (root mean square).
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
    modes : tuple of KnownMode
        Modes of a user's own model where there are several, the one of ``mode`` first.
    n_walkers : int, default=1
        Walkers whose draws, one after the other, are a chain's: many positions cost little more
        than four.
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
    modes: tuple[KnownMode, ...] = ()

    def without_data(self) -> Plan:
        """The plan as a record of what was chosen, without what holds the data."""
        nothing: Any = None
        center = None if self.center is None else self.center._replace(whitened=None)
        return replace(self, posterior=nothing, run=nothing, center=center, has_data=False)

    @property
    def n_each(self) -> int:
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
        return self.n_burnin + self.n_each * self.thin

    def effective_size(self, draws: Array) -> tuple[float, str]:
        """Least bulk effective sample size of any parameter, and a clause that names it."""
        ess, worst = least_ess(constrained_draws(self.posterior, draws, self.n_burnin, self.thin))
        name = self.posterior.constrained_names[worst]
        return ess, f"the least bulk effective sample size is {ess:.0f}, of {name}"

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
    fallback: Fallback | None = None,
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
    fallback : Fallback or None
        What to do otherwise, since a chain overflowed by the plan that was made without it.

    Returns
    -------
    plan : Plan

    Raises
    ------
    ValueError, TypeError
        Where settings do not go together, or the posterior lacks what one of them needs.
    """
    mode: Mode | None = None
    if "tempered" in posterior.abilities:
        posterior = posterior.tempered(settings.tau)
    coordinates = ("centered", "the model's own coordinates")
    offered = posterior.parameterizations
    if (settings.parameterization or "centered") != "centered" or offered != ("centered",):
        posterior, mode, coordinates = reparameterize(posterior, settings)
    if mode is None and _needs_mode(posterior, settings):
        mode = _locate(posterior, settings)
    reference = mode or Mode(posterior.start(), Diagonal(np.ones(posterior.n_params)))
    gradient, batch_size, noise, choices = choose_gradient(
        posterior, settings, reference, seed, fallback
    )
    center = expansion = metric = None
    if mode is not None:
        center, expansion, metric = mode.theta, mode.expansion, mode.metric
    modes = _several(posterior, mode, settings, seed)
    several = posterior.multimodal or (bool(modes) and batch_size is None)
    draft = Run(
        # a pilot may find an automatic one in error
        settings.sampler or (ParallelTempering() if several else SGLD()),
        Dynamics(
            gradient.bind(posterior, center, expansion),
            settings.metric.bind(posterior.n_params, metric),
            settings.clip,
            settings.tau,
            center=center if settings.uses_curvature else None,
        ),
        settings.schedule,
        pilots.STEP_SIZES[0],
        posterior.n_samples,
        batch_size,
        gradient.replacement,
    )
    check_requirements(draft.sampler, posterior, batch_size)
    tuned, chosen = choose_step_size(draft, mode, settings, noise, seed, fallback)
    choices |= chosen
    may_share = settings.allows_walkers and positions is None
    n_draws, chosen = settings.n_draws, {}
    if may_share:
        tuned, n_draws, chosen = choose_number(tuned, settings, posterior)
    for name in ("sampler", "step_size"):  # it may have become one of several draws a trajectory
        choices[name] = choices[name]._replace(value=getattr(tuned.run, name))
    choices |= chosen
    check_memory(settings.n_chains, n_draws, posterior.n_params)
    n_burnin, thin, chosen = choose_lengths(tuned, settings, n_draws, positions is not None)
    choices |= chosen
    if not isinstance(settings.schedule, Constant):
        check_multipliers(settings.schedule, n_burnin + n_draws * thin)
    run = tuned.run
    bias = tuned.bias
    if mode is not None and bias is None:
        # what the last kept step costs: a schedule may have made it small by then
        eta = float(run.step_sizes(n_draws * thin))
        bias = measure_bias(run, mode, eta, settings.metric.uses_curvature, seed)
    n_walkers = choose_walkers(tuned, settings, n_draws, n_burnin, thin) if may_share else 1
    # batches that were chosen beside all rows are those of all walkers of a chain
    chosen_for_it = run.batch_size is not None and settings.takes_all_rows
    share = chosen_for_it and posterior.shares_batches
    run = replace(run, dynamics=run.dynamics.of_walkers(n_walkers, share))
    again = fallback is not None
    start, why_start = choose_start(posterior, settings, tuned, seed, positions, n_walkers, again)
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
        modes=modes,
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


def _several(
    posterior: BasePosterior, mode: Mode | None, settings: Settings, seed: int
) -> tuple[KnownMode, ...]:
    """Modes of a user's own model, if climbs find several."""
    if not posterior.own or posterior.multimodal or mode is None:
        return ()
    return tuple(find_modes(posterior, mode, settings.tau, seed))


def _needs_mode(posterior: BasePosterior, settings: Settings) -> bool:
    """Whether anything asks for the mode; a published algorithm never does."""
    if settings.uses_curvature or settings.step_size is None or settings.starts_at_mode:
        return True
    if settings.gradient is not None:
        return settings.gradient.needs_mode
    return settings.batch_size is not None or not reason_for_all_rows(posterior)


def _looks_for_center(settings: Settings) -> bool:
    """Whether the tuning looks for a centre of its own where most is far from the mode."""
    if settings.step_size is not None or not settings.uses_curvature:
        return False
    if settings.sampler is not None:
        return settings.sampler.adjusted
    return settings.takes_all_rows and settings.clip is None


def _locate(posterior: BasePosterior, settings: Settings) -> Mode:
    """Mode and curvature there; for a posterior that may have no mode, the start alone."""
    known = posterior.centered_normal() if posterior.has_center else None
    if known is not None:
        return _mode_of(*known)
    tolerance = TOLERANCE
    if posterior.far_from_mode and _looks_for_center(settings):
        tolerance = _BESIDE * posterior.n_params
    try:
        mode = find_mode(posterior, posterior.start(), tolerance=tolerance)
    except NoModeError:
        known = posterior.centered_normal(anyway=True) if posterior.has_center else None
        if known is not None:
            return _mode_of(*known)
        if posterior.has_mode:
            raise
        return Mode(posterior.start(), Diagonal(np.ones(posterior.n_params)))
    posterior.check_mode(mode.theta)
    return mode


def _mode_of(center: Array, precision: Array) -> Mode:
    """Centre and metric of a normal distribution near the posterior."""
    return Mode(center, Dense(inverse_root(precision), precision))


def choose_number(
    tuned: Tuned, settings: Settings, posterior: BasePosterior
) -> tuple[Tuned, int, dict[str, Choice]]:
    """Run with as many draws a trajectory as suit, and the number of draws of each chain.

    The number is a choice only where it is not what was asked for.
    """
    wanted, size = settings.n_draws, settings.n_chains * len(posterior.constrained_names)
    if settings.n_chains * wanted > THRESHOLDS.max_numbers:
        raise ValueError(
            f"n_draws={wanted}: of {settings.n_chains} chains, even with one parameter, these are "
            f"more than the {THRESHOLDS.max_numbers:,.0f} numbers that a run keeps; give at most "
            f"{THRESHOLDS.max_numbers // settings.n_chains:.0f}."
        )
    held, made = int(THRESHOLDS.max_numbers // size), ceil(tuned.share * wanted)
    automatic = settings.sampler is None and settings.thin is None
    rows = tuned.run.dynamics.whitened if automatic else None
    if rows is not None and not rows.collapsed:
        tuned, n_points = spread(tuned, wanted, made)
        made *= n_points
    n_draws = max(min(wanted, held, made), min(wanted, _FEWEST_DRAWS))
    if n_draws == wanted:
        return tuned, wanted, {}
    limit = "memory" if held < made else "time"
    why = (
        f"{wanted:,} of {len(posterior.constrained_names):,} parameters would take too much {limit}"
    )
    return tuned, n_draws, {"n_draws": Choice(n_draws, why)}


def choose_lengths(
    tuned: Tuned, settings: Settings, n_draws: int, goes_on: bool
) -> tuple[int, int, dict[str, Choice]]:
    """Burn-in and thinning, in steps."""
    n_burnin, thin = settings.n_burnin, settings.thin
    if tuned.time is None:
        spacing, why_thin = _PUBLISHED_THIN, "nothing is known of the posterior's widths"
        burnin, why_burnin = n_draws * (thin or spacing), "half of the run"
    else:
        burnin, spacing = choose_spacing(tuned.time)
        why_thin = f"{tuned.time:.3g} steps to an independent draw"
        if tuned.most_spaced < spacing:
            spacing = tuned.most_spaced
            why_thin += ", and more steps a draw would take too long"
        elif spacing + 1 <= tuned.time:
            why_thin += "; closer draws cost less"
        burnin = min(burnin, n_draws * (thin or spacing))
        why_burnin = "ten independent draws' worth, at most half of the run"
        if tuned.run.dynamics.whitened is not None:
            burnin = min(ceil(_SETTLED * burnin), ceil(_MOST_SETTLED * n_draws) * (thin or spacing))
            why_burnin = "five independent draws' worth, from where trajectories have led already"
        elif settings.chooses_start and tuned.places is not None:
            least = min(burnin, ceil(_LED * tuned.time))
            burnin, why_burnin = burnin - tuned.n_settling, f"{why_burnin}, with the pilot's part"
            if burnin < least:
                burnin, why_burnin = least, "two independent draws' worth, after those of the pilot"
    if settings.temperature.n_hot:
        burnin += settings.temperature.n_hot
        why_burnin += " after the temperature has settled"
    if goes_on:
        burnin, why_burnin = 0, "the chains of the last fit go on"
    return (
        burnin if n_burnin is None else n_burnin,
        thin or spacing,
        {
            "n_burnin": Choice(burnin, why_burnin) if n_burnin is None else Choice(n_burnin, GIVEN),
            "thin": Choice(spacing, why_thin) if thin is None else Choice(thin, GIVEN),
        },
    )


def choose_walkers(tuned: Tuned, settings: Settings, n_draws: int, n_burnin: int, thin: int) -> int:
    """Number of walkers that make a chain's draws, where that gives them sooner.

    A step of many positions costs little more than one of four; but each of them has a burn-in.
    """
    dynamics = tuned.run.dynamics
    if dynamics.whitened is not None:
        few = _WHITENED_WALKERS[-1:] if dynamics.whitened.collapsed else _WHITENED_WALKERS
        return next((w for w in few if n_draws >= w**2), few[-1])
    posterior = dynamics.posterior
    automatic = settings.sampler is None and settings.step_size is None and settings.uses_curvature
    # where a whole block of steps is made at once it costs the same
    diagonal = dynamics.preconditioner.diagonal
    alone = diagonal is None or posterior.slope_of_last() is None
    if not (automatic and alone and posterior.one_mode):
        return 1
    most = np.inf if tuned.places is None else len(tuned.places) / _OWN_PLACES
    return most_walkers(n_burnin, n_draws * thin, most)


def choose_start(
    posterior: BasePosterior,
    settings: Settings,
    tuned: Tuned,
    seed: int,
    positions: Array | None,
    n_walkers: int = 1,
    again: bool = False,
) -> tuple[Array, tuple[str, str]]:
    """Starting points ``(C, P)``, or those of all walkers, with their name and the reason.

    Chains of a run that begins ``again`` start around the mode, unless the user chose the start.
    """
    if positions is not None:
        return posterior.unconstrain(positions), ("last positions", "warm_start=True")
    walkers = f", {n_walkers} walkers a chain" * (n_walkers > 1)
    n_starts, places, mode = n_walkers * settings.n_chains, tuned.places, tuned.mode
    if settings.chooses_start and places is not None:
        why = f"where a pilot's chains have led{walkers}"
        return places[np.arange(n_starts) % len(places)], ("pilot", why)
    if settings.starts_at_mode or (settings.chooses_start and (settings.uses_curvature or again)):
        assert mode is not None
        name, why = "mode", GIVEN if settings.starts_at_mode else "overdispersed around the mode"
        width = THRESHOLDS.overdispersion * np.sqrt(settings.tau)
        normals = start_normals(seed, range(n_starts), posterior.n_params)
        start = mode.theta + width * mode.unwhiten(normals)
    else:
        start, (name, why) = start_elsewhere(posterior, settings, seed, range(n_starts))
    why += walkers
    if tuned.run.sampler.adjusted and mode is not None:
        start, moved = settle_down(tuned.run, start, mode, seed, name == "mode")
        why += moved
    return start, (name, why)
