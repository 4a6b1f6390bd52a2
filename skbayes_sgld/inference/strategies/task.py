"""The task of a strategy: model, settings, and the findings of earlier strategies."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

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


@dataclass(eq=False)
class Task:
    """Task of planning a run.

    Attributes
    ----------
    model : BasePosterior
        Posterior in the model's own coordinates.
    settings : Settings
    seed : int
        Seed of the pilots and of the chains.
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
    """

    model: BasePosterior
    settings: Settings
    seed: int
    positions: Array | None = None
    finding: Finding | None = None
    choices: Choices = field(default_factory=dict)
    modes: tuple[KnownMode, ...] = ()
    far: FarPart | None = None
    _mode: Mode | None = field(default=None, init=False, repr=False)

    def found(self, mode: Mode | None = None, **findings: Any) -> Task:
        """Task with further findings for the next strategy, and perhaps another mode.

        Coordinates are kept, and the mode unless another is given.
        """
        task = copy(self)
        for name, value in findings.items():
            setattr(task, name, value)
        task._mode = mode or self._mode
        return task

    @cached_property
    def _coordinates(self) -> tuple[BasePosterior, Mode | None, Choice]:
        """Posterior in the sampled coordinates, its mode if known, and the choice."""
        posterior, name = self.model, self.settings.parameterization
        if "tempered" in posterior.abilities:
            posterior = posterior.tempered(self.settings.tau)
        if posterior.facts.parameterizations != ("centered",) or name not in (AUTO, "centered"):
            return reparameterize(posterior, self.settings)
        own = Choice("centered", "the model's own coordinates")
        return posterior, None, own if name is AUTO else Choice.by_user(name)

    @property
    def posterior(self) -> BasePosterior:
        """Posterior in the sampled coordinates."""
        return self._coordinates[0]

    @property
    def parameterization(self) -> Choice:
        """Name of the coordinates, and its reason."""
        return self._coordinates[2]

    @cached_property
    def facts(self) -> Facts:
        """Facts about the posterior in these coordinates."""
        return self.posterior.facts

    @property
    def mode(self) -> Mode:
        """Mode of the posterior and the curvature there, found when first used."""
        if self._mode is None:
            self._mode = self._coordinates[1] or self.mode_within(TOLERANCE)
        return self._mode

    def mode_within(self, tolerance: float) -> Mode:
        """Mode to a squared distance; the start if the posterior may have no mode."""
        posterior = self.posterior
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

    @property
    def continues(self) -> bool:
        """Whether chains continue those of an earlier run."""
        return self.positions is not None

    @property
    def may_have_walkers(self) -> bool:
        """Whether several walkers may share the draws of a chain."""
        return self.settings.allows_walkers and not self.continues


def start_as_mode(posterior: BasePosterior) -> Mode:
    """Start of a posterior with the identity as metric, in place of an unknown mode."""
    return Mode(posterior.start(), Diagonal(np.ones(posterior.n_params)))
