"""The task of a strategy: posterior, settings, and the findings of earlier strategies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from skbayes_sgld._timings import stage
from skbayes_sgld.inference.choices import Choice, Choices
from skbayes_sgld.inference.parameterizations import reparameterize
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.posterior.propriety import check_mode
from skbayes_sgld.posterior.protocol import Facts
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning.mode import TOLERANCE, Mode, NoModeError, newton_mode
from skbayes_sgld.sampling.tuning.parts import FarPart, KnownMode


class Finding(NamedTuple):
    """Reason for the next strategy to plan: a pilot found a bias, or a chain overflowed.

    Attributes
    ----------
    why : str
        Sampler that would have been used, and the finding against it.
    step_size : float or None
        Shorter step size, if the settings exclude a sampler that accepts or rejects.
    """

    why: str
    step_size: float | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """Task of planning a run.

    Attributes
    ----------
    original : BasePosterior
        Posterior in its own coordinates.
    posterior : BasePosterior
        Posterior in the coordinates that are sampled.
    parameterization : Choice
        Name of these coordinates, and its reason.
    settings : Settings
    seed : int
        Seed of the pilots and of the chains.
    find : callable
        Function without arguments that returns the mode, which it looks for at the first call.
    positions : ndarray of shape (n_chains, n_params) or None
        Last positions of an earlier run's chains, in the user's parameters.
    finding : Finding or None
        Finding against earlier strategies.
    choices : dict of str to Choice
        Choices made before the run, and by earlier strategies.
    modes : tuple of KnownMode
        Modes found by searches, if several have some of the mass.
    far : FarPart or None
        Part of a user's own model that is far from its mode.
    rows_read : RowsRead or None
        Rows that a step would read, if they are many, or long steps on them biased.
    """

    original: BasePosterior
    posterior: BasePosterior
    parameterization: Choice
    settings: Settings
    seed: int
    find: Callable[[], Mode]
    positions: Array | None = None
    finding: Finding | None = None
    choices: Choices = field(default_factory=dict)
    modes: tuple[KnownMode, ...] = ()
    far: FarPart | None = None
    rows_read: Any = None  # a RowsRead, which is above this file

    @classmethod
    def of(cls, original: BasePosterior, settings: Settings, seed: int, **known: Any) -> Self:
        """Task of a posterior and settings, whose coordinates it chooses.

        ``known`` are further attributes that are not the default.
        """
        posterior, mode, parameterization = coordinates_of(original, settings)
        find = cache(lambda: mode or find_mode(posterior))
        return cls(original, posterior, parameterization, settings, seed, find, **known)

    def found(self, mode: Mode | None = None, **findings: Any) -> Self:
        """Task with further findings for the next strategy, and perhaps another mode."""
        return replace(self, find=self.find if mode is None else lambda: mode, **findings)

    def moved(self, posterior: Any) -> Self:
        """Task in other coordinates of the same posterior; the metric of the mode stays."""
        theta = posterior.moved_from(self.posterior, self.mode.theta[None])[0]
        mode = Mode(theta, self.mode.metric)
        return replace(self, posterior=posterior, find=lambda: mode)

    @property
    def mode(self) -> Mode:
        """Mode of the posterior and the curvature there, found when first used."""
        return self.find()

    @cached_property
    def facts(self) -> Facts:
        """Facts about the posterior in the coordinates that are sampled."""
        return self.posterior.facts

    @property
    def continues(self) -> bool:
        """Whether chains continue those of an earlier run."""
        return self.positions is not None

    @property
    def may_have_walkers(self) -> bool:
        """Whether several walkers may share the draws of a chain."""
        return self.settings.allows_walkers and not self.continues


def coordinates_of(
    posterior: BasePosterior, settings: Settings
) -> tuple[BasePosterior, Mode | None, Choice]:
    """Posterior in the sampled coordinates, its mode if known, and the choice."""
    name = settings.parameterization
    if "tempered" in posterior.abilities:
        posterior = posterior.tempered(settings.tau)
    if posterior.facts.parameterizations != ("centered",) or name not in (AUTO, "centered"):
        return reparameterize(posterior, settings)
    own = Choice("centered", "the model's own coordinates")
    return posterior, None, own if name is AUTO else Choice.by_user(name)


@stage("mode")
def find_mode(posterior: BasePosterior, tolerance: float = TOLERANCE) -> Mode:
    """Mode to a squared distance; the start if the posterior may have no mode."""
    moments = posterior.centered_normal()
    if moments is not None:
        return Mode.from_curvature(*moments)
    try:
        mode = newton_mode(posterior, posterior.start(), tolerance=tolerance)
    except NoModeError:
        moments = posterior.centered_normal(anyway=True)
        if moments is not None:
            return Mode.from_curvature(*moments)
        if posterior.facts.has_mode:
            raise
        return start_as_mode(posterior)
    check_mode(posterior, mode.theta)
    return mode


def start_as_mode(posterior: BasePosterior) -> Mode:
    """Start of a posterior with the identity as metric, in place of an unknown mode."""
    return Mode(posterior.start(), Diagonal(np.ones(posterior.n_params)))
