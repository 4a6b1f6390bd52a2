"""The plan of a run: every ``"auto"`` resolved, with the figure behind each choice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skbayes_sgld._random import start_normals
from skbayes_sgld.inference import decisions
from skbayes_sgld.inference.decisions import Batches, Choice, Fallback
from skbayes_sgld.inference.ensemble import choose_ensemble, is_ensemble
from skbayes_sgld.inference.jumps import may_jump, tune_jumps
from skbayes_sgld.inference.parameterization import reparameterize
from skbayes_sgld.inference.settings import Settings, check_room
from skbayes_sgld.inference.starts import choose_start
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.posterior.propriety import check_mode
from skbayes_sgld.sampling.base import check_requirements
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers import SGLD, ParallelTempering
from skbayes_sgld.sampling.schedules import Constant, check_multipliers
from skbayes_sgld.sampling.tuning.adaptation import recentred
from skbayes_sgld.sampling.tuning.leverage import Reading
from skbayes_sgld.sampling.tuning.mode import TOLERANCE, Mode, NoModeError, newton_mode
from skbayes_sgld.sampling.tuning.noise import NoiseLevel
from skbayes_sgld.sampling.tuning.own_models import KnownMode, find_modes
from skbayes_sgld.sampling.tuning.several_modes import survey
from skbayes_sgld.sampling.tuning.widths import FarPart, find_far_part, with_widths


@dataclass(frozen=True, repr=False, kw_only=True)
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
    choices : dict of str to Choice
        Every setting, resolved.
    settings : Settings
        The settings as the user wrote them.
    mode : Mode or None
        Mode of the posterior and the curvature there; None where nothing asks for it. Where rows
        are few, so that most of the posterior is far from its mode, the tuning looks for another
        centre, and the mode is known to about 0.1 sds of each parameter (root mean square).
    center : Mode or None
        Centre and metric of the posterior by the tuning: the mode's, or of a pilot's draws.
    bias : tuple of float
        Largest bias of the step size (means in sds, sds relative), with twice its standard error;
        nan where it is measured once draws are made: without a mode, or under a schedule.
    noise : NoiseLevel or None
        Noise of minibatches in the metric of the run, where it was measured.
    n_walkers : int, default=1
        Number of walkers whose draws, one after the other, are the draws of a chain. A step of many
        positions costs little more than a step of four.
    modes : tuple of KnownMode
        Modes that searches have found, where several have a part of the mass.
    far : FarPart or None
        Part of a user's own model that is far from its mode, whose curvature shows nothing of it.
    n_training : int, default=0
        Steps of Adam, before the burn-in, that lead each chain of an ensemble from ``start`` to a
        mode of its own. In the plan of a result it is 0: the training is over.
    """

    posterior: BasePosterior
    run: Run
    start: Array
    seed: int
    n_draws: int
    n_burnin: int
    thin: int
    choices: dict[str, Choice]
    settings: Settings
    mode: Mode | None = None
    center: Mode | None = None
    bias: tuple[float, float] = (np.nan, np.nan)
    noise: NoiseLevel | None = None
    n_walkers: int = 1
    modes: tuple[KnownMode, ...] = ()
    far: FarPart | None = None
    n_training: int = 0

    def without_data(self) -> Plan:
        """The plan as a record of what was chosen, without the data and what needs them."""
        nothing: Any = None
        mode = None if self.mode is None else Mode(self.mode.theta, self.mode.metric.stored())
        return replace(self, posterior=nothing, run=nothing, mode=mode, center=None)

    @property
    def has_data(self) -> bool:
        """Whether ``posterior`` and ``run``, which hold the data, are there rather than None."""
        return self.posterior is not None

    @property
    def n_each(self) -> int:
        """Draws of each walker."""
        return -(-self.n_draws // self.n_walkers)

    @property
    def n_hot(self) -> int:
        """Steps before the final temperature."""
        continues = self.choices["init"].value == "last positions"  # its chains have cooled
        return 0 if continues else self.settings.n_hot

    @property
    def n_steps(self) -> int:
        """Steps of each chain, those before the first draw included."""
        return self.n_training + self.n_burnin + self.n_each * self.thin

    def center_of(self, draws: Array) -> Mode:
        """Centre and metric by the tuning; of the draws ``(C, S, P)`` without one."""
        if self.center is not None:
            return self.center
        flat = draws.reshape(-1, draws.shape[2])
        variances = np.maximum(flat.var(axis=0), np.finfo(float).tiny) / self.settings.tau
        return Mode(flat.mean(axis=0), Diagonal(variances))

    def __str__(self) -> str:
        """Table of settings, values and reasons."""
        return decisions.as_table(self.choices)

    def __repr__(self) -> str:
        """Every setting; ``print`` gives the reasons."""
        return f"Plan({decisions.as_line(self.choices)})"


def make_plan(
    posterior: BasePosterior,
    settings: Settings,
    seed: int,
    positions: Array | None = None,
    fallback: Fallback | None = None,
) -> Plan:
    """Plan of a run, in which every ``"auto"`` is resolved.

    Parameters
    ----------
    posterior : BasePosterior
    settings : Settings
    seed : int
        Seed of the pilots and of the chains.
    positions : ndarray of shape (n_chains, n_params) or None
        Last positions of an earlier run's chains, in the user's parameters: the run continues from
        there, with a burn-in only where the settings give one.
    fallback : Fallback or None
        Change of the plan, since a chain overflowed by the one that was made without it.

    Raises
    ------
    ValueError, TypeError
        Where settings do not go together, or the posterior lacks what one of them needs.
    """
    if is_ensemble(posterior, settings):
        return _plan_ensemble(posterior, settings, seed)
    # model: coordinates and mode
    if "tempered" in posterior.abilities:
        posterior = posterior.tempered(settings.tau)
    posterior, mode, coordinates = reparameterize(posterior, settings)
    if mode is None and _needs_mode(posterior, settings):
        mode = _locate(posterior, settings)
    modes, found, far = tuple[KnownMode, ...](), "", None
    if posterior.facts.user_defined and not posterior.facts.multimodal and mode is not None:
        mode = with_widths(posterior, mode, settings.tau)
        modes = tuple(find_modes(posterior, mode, settings.tau, seed))
        far = None if modes else find_far_part(posterior, mode, settings.tau, seed)
    elif posterior.facts.has_other_starts and mode is not None:
        mode, modes, found = survey(posterior, mode, settings.tau)
    # algorithm: gradient, sampler and step size
    jumps = bool(found and modes) and may_jump(settings)
    if jumps:
        assert mode is not None
        made, reading, noise = Batches(
            decisions.all_rows("several modes"), Reading(posterior, mode)
        )
    else:
        made, reading, noise = decisions.choose_gradient(posterior, settings, mode, seed, fallback)
    choices = decisions.as_given(settings) | made | {"parameterization": coordinates}
    if found:
        choices["modes"] = Choice(max(1, len(modes)), found)
    draft = _draft(posterior, settings, mode, choices, reading, bool(modes) and not found)
    reach = far if settings.automatic and draft.batch_size is None else None
    if reach is not None:
        mode = reach.as_mode
        sampler = ParallelTempering(step_range=max(64.0, 10.0 * reach.distance))
        draft = replace(draft, sampler=sampler, dynamics=recentred(draft.dynamics, mode))
    if jumps:
        tuned = tune_jumps(draft, modes, seed)
    else:
        tuned = decisions.choose_sampler(draft, mode, settings, noise, seed, fallback)
    if reach is not None:
        # a step finds a part that is so narrow by chance
        time = max(tuned.autocorrelation_time or 1.0, min(60.0, 0.06 * reach.distance))
        why = f"{reach.share:.0%} of the mass is some {reach.distance:.3g} sds from the mode"
        tuned = replace(tuned, autocorrelation_time=time, why_sampler=why)
    if draft.batch_size is not None and tuned.run.batch_size is None:
        choices |= decisions.all_rows(tuned.why_all_rows or f"{tuned.run.sampler} takes all rows")
    # lengths: draws, burn-in, thinning and walkers
    continues, n_draws, n_walkers = positions is not None, settings.n_draws, 1
    may_have_walkers = settings.allows_walkers and not continues
    if may_have_walkers:
        tuned, choice = decisions.choose_n_draws(tuned, settings, len(posterior.reported.names))
        n_draws = choice.value
        choices |= {} if choice.given else {"n_draws": choice}
    check_room(settings.n_chains, n_draws, posterior.n_params)
    choices["thin"] = decisions.choose_thin(tuned, settings)
    thin = choices["thin"].value
    choices["n_burnin"] = decisions.choose_burnin(tuned, settings, n_draws, thin, continues)
    n_burnin = choices["n_burnin"].value
    if not isinstance(settings.schedule, Constant):
        check_multipliers(settings.schedule, n_burnin + n_draws * thin)
    if may_have_walkers:
        n_walkers = decisions.choose_walkers(tuned, settings, n_draws, n_burnin, thin)
    run, bias = tuned.run, tuned.bias
    if not isinstance(settings.schedule, Constant):
        bias = None  # it is that of the draws' steps, once they are made
    elif mode is not None and bias is None:
        bias = decisions.step_bias(run, mode, run.step_size, settings.uses_curvature, seed)
    start, choices["init"] = choose_start(
        posterior, settings, tuned, seed, positions, n_walkers, fallback is not None
    )
    choices["sampler"] = Choice(run.sampler, tuned.why_sampler)
    choices["step_size"] = Choice(run.step_size, tuned.why_step_size)
    # the walkers of a chain share each batch, unless the user asked for minibatches
    share_batches = settings.may_take_all_rows and run.batch_size is not None
    share_batches = share_batches and posterior.facts.shares_batches
    run = replace(
        run,
        dynamics=run.dynamics.for_walkers(n_walkers, share_batches),
        # everything else is for the last temperature; chains that continue have cooled already
        temperature=None if continues else settings.temperature,
    )
    return Plan(
        posterior=posterior,
        run=run,
        start=start,
        seed=seed,
        n_draws=n_draws,
        n_burnin=n_burnin,
        thin=thin,
        choices=_in_order(choices),
        settings=settings,
        mode=mode,
        center=tuned.center,
        bias=bias or (np.nan, np.nan),
        noise=noise if settings.uses_curvature else None,
        n_walkers=n_walkers,
        modes=modes,
        far=far,
    )


def _draft(
    posterior: BasePosterior,
    settings: Settings,
    mode: Mode | None,
    choices: dict[str, Choice],
    reading: Reading,
    several_modes: bool,
) -> Run:
    """Run before its step size is chosen; a pilot may still find an automatic sampler in error."""
    gradient, batch_size = choices["gradient"].value, choices["batch_size"].value
    at_mode = expansion = metric = None
    if mode is not None:
        at_mode, expansion, metric = mode.theta, reading.mode.expansion, mode.metric
    tempers = posterior.facts.multimodal or (several_modes and batch_size is None)
    sampler = settings.sampler or (ParallelTempering() if tempers else SGLD())
    check_requirements(sampler, posterior, batch_size)
    return Run(
        sampler,
        Dynamics(
            gradient.bind(reading.posterior, at_mode, expansion),
            choices["preconditioner"].value.bind(posterior.n_params, metric),
            settings.clip,
            settings.tau,
            target=None if reading.posterior is posterior else posterior,
            center=at_mode if settings.uses_curvature else None,
        ),
        settings.schedule,
        1.0,  # until the step size is chosen
        reading.posterior.n_samples,
        batch_size,
        gradient.replacement,
        # under "auto" a chain that accepts nothing shows in the diagnosis of its draws instead
        stops_lost=settings.sampler is not None or settings.step_size is not None,
    )


def _plan_ensemble(posterior: Any, settings: Settings, seed: int) -> Plan:
    """Plan of chains that are trained, each from random weights, before they sample."""
    check_room(settings.n_chains, settings.n_draws, posterior.n_params)
    run, choices = choose_ensemble(posterior, settings)
    n_burnin = choices["n_burnin"].value
    normals = start_normals(seed, range(settings.n_chains), posterior.n_params)
    return Plan(
        posterior=posterior,
        run=run,
        start=posterior.random_start(normals),
        seed=seed,
        n_draws=settings.n_draws,
        n_burnin=n_burnin,
        thin=choices["thin"].value,
        choices=_in_order(choices),
        settings=settings,
        n_training=n_burnin,
    )


def _in_order(choices: dict[str, Choice]) -> dict[str, Choice]:
    """Choices in the order of the table."""
    names = (
        "prior sampler step_size schedule temperature gradient batch_size preconditioner "
        "parameterization clip modes init n_draws n_burnin thin"
    )
    return {name: choices[name] for name in names.split() if name in choices}


def _needs_mode(posterior: BasePosterior, settings: Settings) -> bool:
    """Whether anything asks for the mode; a published algorithm never does."""
    if settings.uses_curvature or settings.step_size is None or settings.init_is("mode"):
        return True
    if settings.gradient is not None:
        return settings.gradient.needs_mode
    return settings.batch_size is not None or not decisions.reason_for_all_rows(posterior)


def _locate(posterior: BasePosterior, settings: Settings) -> Mode:
    """Mode and curvature there; for a posterior that may have no mode, the start alone."""
    moments = posterior.centered_normal()
    if moments is not None:
        return Mode.from_curvature(*moments)
    tolerance = TOLERANCE
    moves_on = settings.may_take_all_rows and settings.clip is None
    if settings.sampler is not None:
        moves_on = settings.sampler.adjusted
    moves_on = moves_on and settings.step_size is None and settings.uses_curvature
    if moves_on and posterior.facts.far_from_mode:
        # the tuning moves on to a centre far from the mode: of 3,000 rows and 2,100 columns at a
        # squared distance of 5.0 a parameter. The search takes 3 s rather than 8 s
        tolerance = 0.01 * posterior.n_params
    try:
        mode = newton_mode(posterior, posterior.start(), tolerance=tolerance)
    except NoModeError:
        moments = posterior.centered_normal(anyway=True)
        if moments is not None:
            return Mode.from_curvature(*moments)
        if posterior.facts.has_mode:
            raise
        return Mode(posterior.start(), Diagonal(np.ones(posterior.n_params)))
    check_mode(posterior, mode.theta)
    return mode
