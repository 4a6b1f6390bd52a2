"""The choice behind each ``"auto"``: value, reason, and the table of all of them."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import start_generators, start_normals
from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import BasePosterior, require
from skbayes_sgld.sampling.chains import Run
from skbayes_sgld.sampling.gradients import ControlVariate, Full, Gradient
from skbayes_sgld.sampling.preconditioners.rates import preconditioned_eigenvalues
from skbayes_sgld.sampling.samplers import HMC
from skbayes_sgld.sampling.tuning.adaptation import leave_dead_ends, nearer_to_mode, settle
from skbayes_sgld.sampling.tuning.bias import step_sizes
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.noise import NoiseLevel, measure_noise
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS
from skbayes_sgld.sampling.tuning.tune import (
    Tuned,
    cheapest_gradient,
    choose_batch_size,
    choose_spacing,
    spread,
    tune,
)

Array = NDArray[Any]

GIVEN = "given"
# What ends a run before the draws that were asked for, and what gives it more
EARLY_ENDS = {"max_time": "raise max_time", "callback": "let the callback stop later"}

_PUBLISHED_THIN = 10  # steps from draw to draw where nothing is known of the posterior
_SETTLED, _MOST_SETTLED = 0.5, 0.06  # of the burn-in and of a chain's draws: of settled walkers
# Independent draws' worth of burn-in from where the pilot's chains have led: of what chains that
# begin at neighbouring places of one have in common they leave a tenth
_LED = 2.0
_FEWEST_DRAWS = 16  # that a chain makes, whatever they cost
_WHITENED_WALKERS = 16, 8, 4  # of a chain, see Plan
# The same elsewhere, and the share of a chain's steps that the burn-in of so many may take: of 16
# positions a product costs half of what it does one by one, and of more little less
_WALKERS = (32, 0.1), (16, 0.2), (4, 0.1)
_OWN_PLACES = 3  # chains whose walkers begin at places of the pilot that no other begins at
_REACH = 2.0  # as in Stan: unconstrained parameters begin within it


class Choice(NamedTuple):
    """One resolved setting: its value, and the reason for it."""

    value: Any
    why: str

    @property
    def given(self) -> bool:
        """Whether the user gave it."""
        return self.why == GIVEN


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


def choose_gradient(
    posterior: BasePosterior, settings: Settings, reference: Mode, seed: int
) -> tuple[Gradient, int | None, NoiseLevel | None, dict[str, Choice]]:
    """Gradient, batch size (None: all rows) and minibatch noise, if measured."""
    gradient, batch_size = settings.gradient, settings.batch_size
    n, tau = posterior.n_samples, settings.tau
    if gradient is None and batch_size is None:
        if settings.sampler is not None and settings.sampler.full_gradient:
            gradient, why, noise = Full(), f"{settings.sampler} takes all rows", None
        else:
            gradient, batch_size, why, noise = cheapest_gradient(posterior, reference, tau, seed)
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
    return gradient, batch_size, noise, _both(gradient, why, batch_size, why_size)


def _both(
    gradient: Gradient, why_gradient: str, batch_size: int | None, why_size: str
) -> dict[str, Choice]:
    return {
        "gradient": Choice(gradient, why_gradient),
        "batch_size": Choice(batch_size, why_size),
    }


def choose_step_size(
    draft: Run, mode: Mode | None, settings: Settings, noise: NoiseLevel | None, seed: int
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
                step_size = max(quiet, step_sizes(draft.sampler)[-1])
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
    return tuned, {
        "sampler": Choice(tuned.run.sampler, why_sampler),
        "step_size": Choice(tuned.run.step_size, why),
        "preconditioner": Choice(
            settings.metric,
            "its steps have no unit, on any data" if settings.preconditioner is None else GIVEN,
        ),
    }


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
    if settings.sampler is None and settings.thin is None:
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
    return next(
        (w for w, share in _WALKERS if w <= most and w * n_burnin <= share * n_draws * thin), 1
    )


def choose_start(
    posterior: BasePosterior,
    settings: Settings,
    tuned: Tuned,
    seed: int,
    positions: Array | None,
    n_walkers: int = 1,
) -> tuple[Array, tuple[str, str]]:
    """Starting points ``(C, P)``, or those of all walkers, with their name and the reason.

    Raises
    ------
    ValueError, TypeError
        Where ``init`` is an array of another shape, or a prior that cannot be drawn from.
    """
    if positions is not None:
        return posterior.unconstrain(positions), ("last positions", "warm_start=True")
    walkers = f", {n_walkers} walkers a chain" * (n_walkers > 1)
    n_starts, places = n_walkers * settings.n_chains, tuned.places
    if settings.chooses_start and places is not None:
        why = f"where a pilot's chains have led{walkers}"
        return places[np.arange(n_starts) % len(places)], ("pilot", why)
    start, (name, why) = _first_positions(posterior, settings, tuned, seed, range(n_starts))
    why += walkers
    if tuned.run.sampler.adjusted and tuned.mode is not None:
        settled = settle(tuned.run, start, tuned.mode, seed)
        if name != "mode":
            settled = nearer_to_mode(tuned.run, settled, tuned.mode)
        if tuned.mode.whitened is None:
            settled = leave_dead_ends(tuned.run, settled, tuned.mode, seed)
        if name != "mode" and not np.array_equal(settled, start):
            why += "; moved towards the mode, as trajectories from so far out are not accepted"
        start = settled
    return start, (name, why)


def _first_positions(
    posterior: BasePosterior, settings: Settings, tuned: Tuned, seed: int, chains: range
) -> tuple[Array, tuple[str, str]]:
    """Points ``(C, P)`` that ``init`` names, before chains settle, with name and reason."""
    init, why = settings.init, GIVEN
    if not isinstance(init, str):
        return _given(posterior, np.asarray(init, dtype=float), settings.n_chains), ("array", why)
    if init == "auto":
        init = "mode" if settings.uses_curvature else "prior"
        why = "overdispersed around the mode" if init == "mode" else "no mode is looked for"
    if init == "mode":
        center = tuned.mode
        assert center is not None
        width = THRESHOLDS.overdispersion * np.sqrt(settings.tau)
        normals = start_normals(seed, chains, posterior.n_params)
        return center.theta + width * center.unwhiten(normals), ("mode", why)
    if init == "zeros":
        return np.tile(posterior.zeros(), (len(chains), 1)), ("zeros", why)
    generators = start_generators(seed, chains)
    draws = posterior.draw_prior(generators)
    if draws is not None:
        return posterior.unconstrain(draws), ("prior", why)
    if settings.init == "prior":
        raise TypeError(
            f"init='prior' needs a posterior that can draw from its prior; "
            f"{type(posterior).__name__} has no draw_prior. Set init='zeros', or give an array."
        )
    moves = [g.uniform(-_REACH, _REACH, posterior.n_params) for g in generators]
    return posterior.start() + np.array(moves), ("uniform", f"within {_REACH:g} of the start")


def _given(posterior: BasePosterior, init: Array, n_chains: int) -> Array:
    """Starting points ``(C, P)`` at the user's values."""
    n_params = len(posterior.constrained_names)
    if init.shape not in ((n_params,), (n_chains, n_params)):
        names = posterior.constrained_names
        listed = ", ".join(names if n_params <= 6 else [*names[:3], "...", names[-1]])
        raise ValueError(
            f"init has shape {init.shape}; it must be ({n_params},) or ({n_chains}, {n_params}): "
            f"{listed}."
        )
    with np.errstate(all="ignore"):
        start = posterior.unconstrain(np.broadcast_to(init, (n_chains, n_params)).copy())
    if not np.all(np.isfinite(start)):
        raise ValueError(_out_of_range(posterior, np.atleast_2d(init)))
    return np.asarray(start)


def _out_of_range(posterior: BasePosterior, init: Array) -> str:
    """Message that names the first value of ``init (C, P)`` that has no coordinate."""
    inside = posterior.constrain(posterior.start()[None])
    for chain, values in enumerate(init):
        for j, name in enumerate(posterior.constrained_names):
            probe = inside.copy()
            probe[0, j] = values[j]
            with np.errstate(all="ignore"):
                if not np.all(np.isfinite(posterior.unconstrain(probe))):
                    return (
                        f"init has the value {values[j]:g} for {name} in chain {chain}, which is "
                        "out of its range; scales and variances must be above 0."
                    )
    return f"init is out of range for {', '.join(posterior.constrained_names)} together."
