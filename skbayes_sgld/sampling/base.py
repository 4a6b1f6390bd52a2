"""Interfaces of the parts of a run: gradients, preconditioners, schedules and samplers.

A gradient and a preconditioner are bound to a posterior first, see ``sampling/dynamics.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sgld._checks import check_flag
from skbayes_sgld._components import Component
from skbayes_sgld.posterior.base import BasePosterior, require
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.sampling.dynamics import Array, BoundGradient, Dynamics, State
from skbayes_sgld.sampling.metric import Metric


class Gradient(Component):
    """A rule that estimates the gradient of the log posterior; subclasses define :meth:`make`.

    Attributes
    ----------
    requires : tuple of str
        Abilities that the posterior must have, by their names in
        :data:`~skbayes_sgld.posterior.protocol.MEMBERS`.
    remedy : str
        Advice for a posterior that lacks them, for the error.
    minibatch : bool
        Whether a step reads a batch of the rows rather than all of them.
    replacement : bool
        Whether a batch may hold a row twice.
    needs_mode : bool
        Whether the estimator is centred on the mode.
    reads_always : bool
        Whether every batch reads the rows of high leverage, if the mode is known. The posterior
        then counts these rows as part of the prior, and batches are drawn from the others.
    """

    requires: tuple[str, ...] = ("rows",)
    remedy: str = "set gradient='full', which takes any posterior"
    minibatch: bool = True
    replacement: bool = True
    needs_mode: bool = False
    reads_always: bool = False

    def check(self) -> None:
        """Raise if a parameter is out of range."""
        check_flag(self.replacement, "gradient.replacement")

    def bind(
        self,
        posterior: BasePosterior,
        center: Array | None = None,
        expansion: Expansion | None = None,
    ) -> BoundGradient:
        """Estimator for this posterior.

        Parameters
        ----------
        posterior : Posterior
        center : ndarray of shape (P,), default=None
            Its mode, if known.
        expansion : Expansion, default=None
            Expansion of the log likelihood close to the mode, if known: it saves a pass over the
            rows.

        Raises
        ------
        TypeError
            When the posterior lacks what the estimator requires.
        """
        for ability in self.requires:
            require(posterior, ability, "gradient", self, self.remedy)
        return self.make(posterior, center, expansion)

    def make(
        self, posterior: BasePosterior, center: Array | None, expansion: Expansion | None
    ) -> BoundGradient:
        """Estimator for a posterior that has what is required."""
        raise self._undefined("make")


class Preconditioner(Component):
    """Choice of the metric G in which steps are taken."""

    uses_curvature = False

    def bind(self, n_params: int, metric: Metric | None) -> Metric:
        """Metric for ``n_params`` parameters; ``metric`` is that of the mode, if known."""
        raise self._undefined("bind")


class Schedule(Component):
    """A positive number for each step; ``schedule(t)`` is vectorised over ``t``.

    As ``schedule`` of an estimator it multiplies the step size. As ``temperature`` it is the
    temperature itself, and must become constant.

    Attributes
    ----------
    decay_power : float
        Power p of the decay ``t^-p``; 0 if the value does not vanish, nan if unknown.
    settles_at : float
        First step from which the value is constant; infinity if it never is.
    """

    decay_power = np.nan
    settles_at = np.inf

    def check_as(self, argument: str) -> None:
        """Check, with the argument's name in errors: ``schedule`` or ``temperature``."""
        self.check(argument)

    def check(self, argument: str = "schedule") -> None:
        """Raise if a parameter is out of range."""

    @property
    def satisfies_condition_27(self) -> bool | None:
        """Whether the step sizes have an infinite sum and their squares a finite one.

        Condition 27 of Karagiannis, Handout 6, under which SGLD's error vanishes; it holds if
        :attr:`decay_power` is in (0.5, 1]. None if that is unknown.
        """
        p = self.decay_power
        return None if np.isnan(p) else bool(0.5 < p <= 1.0)

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """Values at steps ``t`` (0 is the first), in the shape of ``t``."""
        raise self._undefined("__call__")


class Algorithm(Component):
    """Rule that advances all chains by one step at a time: a sampler or an optimizer.

    ``init`` makes the state, ``prepare`` turns the standard normals of many steps into the noise
    that each adds, ``step`` makes one step. An algorithm is a value: all that changes is in the
    state.
    """

    full_gradient = False
    extra_normals = 0  # normals of a step besides one per parameter
    at_once = False  # whether `make_at_once` makes many steps at the cost of one: see Direct
    requires: tuple[str, ...] = ()  # abilities of the posterior, see posterior.protocol.MEMBERS
    remedy = "choose another sampler"  # for a posterior that lacks them

    def n_normals(self, n_params: int) -> int:
        """Standard normals that a step takes."""
        return n_params + self.extra_normals

    def init(self, theta: Array) -> State:
        """State at ``theta (C, P)``: everything the next step needs."""
        return {"theta": theta}

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """Noise of each step ``(T, C, n)``, made of standard normals.

        Parameters
        ----------
        normals : ndarray of shape (T, C, n_normals)
        previous : ndarray of shape (C, n_normals)
            Normals of the step before.
        eta : ndarray of shape (T,)
            Step sizes.
        dynamics : Dynamics
            Its ``temperature`` is a number, or one for each step ``(T,)``.
        """
        return normals

    def step(self, state: State, eta: float, noise: Array, batch: Any, dynamics: Dynamics) -> None:
        """Advance the state by one step of size eta, which replaces its arrays.

        ``noise (C, n)`` is the noise that ``prepare`` made for this step.
        """
        raise self._undefined("step")

    def draw(self, state: State) -> Array:
        """Draw of each chain ``(C, P)`` after a step: its position."""
        return state["theta"]


def check_requirements(
    algorithm: Algorithm, posterior: BasePosterior, batch_size: int | None
) -> None:
    """Raise if an algorithm cannot run on a posterior, or on minibatches of its rows.

    Parameters
    ----------
    algorithm : Algorithm
        Declares ``requires`` and ``full_gradient``.
    posterior : BasePosterior
    batch_size : int or None
        None if every step takes all rows.

    Raises
    ------
    TypeError
        When the posterior lacks an ability.
    ValueError
        When the algorithm needs the gradient from all rows, and ``batch_size`` is a number.
    """
    argument = "sampler" if isinstance(algorithm, Sampler) else "optimizer"
    for ability in algorithm.requires:
        require(posterior, ability, argument, algorithm, algorithm.remedy)
    if algorithm.full_gradient and batch_size is not None:
        raise ValueError(
            f"{argument}={algorithm!r} needs the gradient from all rows at every step; set "
            "gradient='full', without a batch_size."
        )


class Sampler(Algorithm):
    """An algorithm whose positions are draws."""

    exact = False  # its draws have no bias at any step size
    adjusted = False  # accepts or rejects, and so is exact: see Adjusted
    independent = False  # draws from the posterior itself, wherever the chain is: see Direct
    noise_gain = 1.0  # ratio of minibatch noise to injected noise, relative to SGLD's

    def __init_subclass__(cls) -> None:
        """Raise if a class sets ``adjusted`` but does not define ``propose``."""
        super().__init_subclass__()
        if cls.adjusted and not hasattr(cls, "propose"):
            raise TypeError(
                f"{cls.__name__} sets adjusted=True; derive it from skbayes_sgld.sampling.Adjusted "
                "instead, which accepts or rejects what `propose` returns."
            )

    def speed(self, rate: float) -> float:
        """Share of the distance to the mode that a step of size 1 covers, at curvature ``rate``."""
        return rate

    def step_and_time(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Suitable step size, and the number of steps to an independent draw at it.

        Both are for a normal target whose curvatures in the preconditioned space are ``rates``,
        ascending. If ``step`` is given, it is the step size.
        """
        step = step or 0.5 / self.speed(rates[-1])
        return step, 2.0 / (step * self.speed(rates[0]))

    def gradients(self, step: float) -> int:
        """Number of gradients that a step of size ``step`` evaluates."""
        return 1

    def set_stationary(self, state: State, temperature: float) -> None:
        """Set the state's memory to its stationary value on a standard normal target.

        A pilot measures chains that have forgotten their start. A metric that a sampler learns on
        its way would be wrong for longer than a pilot runs. The default does nothing: the state
        holds positions only, or forgets as fast as they do.
        """

    def gaussian_inflation(self, eta: float) -> float | None:
        """Ratio of the chain's variance to the target's, on a normal target of precision 1.

        It is 1 for an adjusted sampler. For others None, the default, has it measured by running
        the sampler on such a target; a closed form is exact and costs nothing.
        """
        return 1.0 if self.adjusted else None
