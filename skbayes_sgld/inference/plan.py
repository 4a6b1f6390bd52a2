"""The plan of a run: every ``"auto"`` resolved, with the figure behind each choice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skbayes_sgld.inference.choices import Choice, as_line, as_table
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.tuning.mode import Center, Mode
from skbayes_sgld.sampling.tuning.noise import NoiseLevel
from skbayes_sgld.sampling.tuning.parts import FarPart, KnownMode


@dataclass(frozen=True, repr=False, kw_only=True)
class Plan:
    """Everything that a run of chains needs; ``print`` gives a table of settings and reasons.

    Attributes
    ----------
    posterior : BasePosterior
        Posterior in the coordinates that are sampled.
    run : Run
        Sampler, gradient, metric, step size, schedule and temperature.
    start : ndarray of shape (n_chains * n_walkers, n_params)
        Starting points of the chains, in the coordinates that are sampled.
    seed : int
    n_draws, n_burnin, thin : int
    choices : dict of str to Choice
        Every setting, resolved.
    settings : Settings
        Settings as given by the user.
    mode : Mode or None
        Mode of the posterior and the curvature there; None if no mode is needed. With few rows,
        most of the posterior is far from its mode: the tuning then finds another centre, and the
        mode is known only to about 0.1 sds of each parameter (root mean square).
    center : Center or None
        Centre and metric from the tuning: those of the mode, or of a pilot's draws.
    bias : tuple of float
        Largest bias of the step size (means in sds, sds relative), with twice its standard error;
        nan if it is measured after the run: without a mode, or under a schedule.
    noise : NoiseLevel or None
        Noise of minibatches in the metric of the run, if it was measured.
    n_walkers : int, default=1
        Number of walkers whose concatenated draws are the draws of a chain. A step of 32 positions
        costs little more than one of four.
    modes : tuple of KnownMode
        Modes found by searches, if several have some of the mass.
    far : FarPart or None
        Part of a user's own model that is far from its mode, if there is one.
    still : str
        Finding of a pilot whose chains hardly moved; empty if they moved.
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
    center: Center | None = None
    bias: tuple[float, float] = (np.nan, np.nan)
    noise: NoiseLevel | None = None
    n_walkers: int = 1
    modes: tuple[KnownMode, ...] = ()
    far: FarPart | None = None
    still: str = ""

    def without_data(self) -> Plan:
        """Plan as a record of the choices, without data."""
        nothing: Any = None
        mode = None if self.mode is None else Mode(self.mode.theta, self.mode.metric.stored())
        return replace(self, posterior=nothing, run=nothing, mode=mode, center=None)

    @property
    def has_data(self) -> bool:
        """Whether ``posterior`` and ``run``, which hold the data, are not None."""
        return self.posterior is not None

    @property
    def n_each(self) -> int:
        """Draws of each walker."""
        return -(-self.n_draws // self.n_walkers)

    @property
    def n_hot(self) -> int:
        """Steps before the final temperature."""
        continues = self.choices["init"].value == "last positions"  # its chains have cooled already
        return 0 if continues else self.settings.n_hot

    @property
    def n_steps(self) -> int:
        """Steps of each chain, including those before the first draw."""
        return self.n_burnin + self.n_each * self.thin

    def center_of(self, draws: Array) -> Center:
        """Centre and metric from the tuning; without tuning, those of the draws ``(C, S, P)``."""
        if self.center is not None:
            return self.center
        flat = draws.reshape(-1, draws.shape[2])
        variances = np.maximum(flat.var(axis=0), np.finfo(float).tiny) / self.settings.tau
        return Center(flat.mean(axis=0), Diagonal(variances))

    def __str__(self) -> str:
        """Table of settings, values and reasons."""
        return as_table(self.choices)

    def __repr__(self) -> str:
        """Every setting; ``print`` gives the reasons."""
        return f"Plan({as_line(self.choices)})"
