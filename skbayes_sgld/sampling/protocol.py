"""What a run is composed of: the interface of each family, and its default member.

Gradients with the full one, preconditioners with the curvature's, schedules with the constant one,
algorithms, and samplers with SGLD. Gradient and preconditioner are bound to a posterior first, see
``sampling/dynamics.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sgld._components import Component, check_flag
from skbayes_sgld.posterior.base import BasePosterior, require
from skbayes_sgld.posterior.boundary import as_posterior
from skbayes_sgld.posterior.protocol import Expansion, Posterior
from skbayes_sgld.sampling.dynamics import Array, BoundGradient, Dynamics, Metric, State

_INTEGRATORS = ("euler", "leimkuhler_matthews")


class Gradient(Component):
    """A rule that estimates the gradient of the log posterior; subclasses define :meth:`make`.

    Attributes
    ----------
    requires : tuple of str
        Abilities that the posterior must have, by their names in
        :data:`~skbayes_sgld.posterior.protocol.ABILITIES`.
    remedy : str
        Advice for a posterior that lacks them, for the error.
    minibatch : bool
        Whether a step reads a batch of the rows rather than all of them.
    replacement : bool
        Whether a batch may hold a row twice.
    needs_mode : bool
        Whether the estimator is centred on the mode.
    """

    requires: tuple[str, ...] = ("rows",)
    remedy: str = "set gradient='full', which takes any posterior"
    minibatch: bool = True
    replacement: bool = True
    needs_mode: bool = False

    def check(self) -> None:
        """Raise where a parameter is out of range."""
        check_flag(self.replacement, "gradient.replacement")

    def bind(
        self,
        posterior: Posterior | BasePosterior,
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
        if not isinstance(posterior, BasePosterior):
            posterior = as_posterior(posterior)
        for ability in self.requires:
            require(posterior, ability, "gradient", self, self.remedy)
        if expansion is not None:
            return self.make_around(posterior, center, expansion)
        return self.make(posterior, center)

    def make(self, posterior: BasePosterior, center: Array | None) -> BoundGradient:
        """Estimator for a posterior that has what is required."""
        raise NotImplementedError

    def make_around(
        self, posterior: BasePosterior, center: Array | None, expansion: Expansion
    ) -> BoundGradient:
        """Estimator where an expansion is known; an estimator that needs none leaves it."""
        return self.make(posterior, center)


@dataclass(eq=False, repr=False)
class Full(Gradient):
    """The gradient from all rows; for a normal likelihood from its sufficient statistics.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(gradient="full")
    SGLDLogisticRegression(gradient='full')
    """

    requires = ()
    minibatch = False

    def make(self, posterior: BasePosterior, center: Array | None) -> BoundGradient:
        """Exact gradient."""
        return BoundGradient(posterior)


class Preconditioner(Component):
    """Choice of the metric G in which steps are taken."""

    uses_curvature = False

    def bind(self, n_params: int, metric: Metric | None) -> Metric:
        """Metric for ``n_params`` parameters; ``metric`` is that of the mode, if known."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class Curvature(Preconditioner):
    """The inverse curvature at the mode, ``G = H^{-1}``: Newton's metric.

    In it a step size has no unit: 0.2 moves a fifth of the way to the mode, on any data. Up to
    3,000 parameters it is a matrix. Above, it is diagonal; but where a single linear predictor
    has fewer rows than parameters, and no more than 3,000, it is exact: the prior's diagonal and
    a term for each row.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(preconditioner="curvature", step_size=0.2)
    SGLDLogisticRegression(preconditioner='curvature', step_size=0.2)
    """

    uses_curvature = True

    def bind(self, n_params: int, metric: Metric | None) -> Metric:
        """Metric of the mode."""
        assert metric is not None
        return metric


class Schedule(Component):
    """A positive number for each step; ``schedule(t)`` is vectorised over ``t``.

    As ``schedule`` of an estimator it multiplies the step size, as ``temperature`` it is the
    temperature itself, and must then settle.
    """

    @property
    def decay_power(self) -> float:
        """Power p of the decay ``t^-p``; 0 where the value does not vanish, nan where unknown."""
        return np.nan

    @property
    def settles_at(self) -> float:
        """The step from which the value stays the same; infinity where it never does."""
        return np.inf

    @property
    def satisfies_condition_27(self) -> bool | None:
        """Whether the step sizes have an infinite sum and their squares a finite one.

        Condition 27 of Karagiannis, Handout 6, under which SGLD's error vanishes; it holds where
        :attr:`decay_power` is in (0.5, 1]. None where that is unknown.
        """
        p = self.decay_power
        return None if np.isnan(p) else bool(0.5 < p <= 1.0)

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """Values at steps ``t`` (0 is the first), in the shape of ``t``."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class Constant(Schedule):
    """The same step size at every step; the default, since the chain is then stationary.

    Examples
    --------
    >>> from skbayes_sgld.sampling import Constant
    >>> Constant()([0, 10]).tolist()
    [1.0, 1.0]
    """

    @property
    def decay_power(self) -> float:
        """Zero: it does not decay."""
        return 0.0

    @property
    def settles_at(self) -> float:
        """The first step."""
        return 0.0

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """Ones in the shape of ``t``."""
        return np.ones_like(t, dtype=float)


class Algorithm(Component):
    """Rule that advances all chains by one step at a time: a sampler or an optimizer.

    ``init`` makes the state, ``prepare`` turns the normals of many steps into the noise that
    they add, ``step`` makes one step.
    """

    uses_noise = True
    full_gradient = False
    # whether a step is theta + eta G g(theta) + noise: where coordinates move each by its own
    # gradient, many steps are then made at once
    separate = False
    extra_normals = 0  # that a step takes besides one a parameter
    requires: tuple[str, ...] = ()  # abilities of the posterior, see posterior.protocol.ABILITIES
    remedy = "choose another sampler"  # of a posterior that lacks them, for the error

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Take ``separate`` from a base only where the step is the base's too."""
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls) and "separate" not in vars(cls):
            cls.separate = False

    def n_normals(self, n_params: int) -> int:
        """Standard normals that a step takes."""
        return n_params + self.extra_normals

    def init(self, theta: Array, noise: Array | None) -> State:
        """State at ``theta (C, P)``; ``noise`` holds each chain's first standard normals."""
        return {"theta": theta}

    def prepare(
        self, state: State, normals: Array | None, eta: Array, dynamics: Dynamics
    ) -> Array | None:
        """Noise that each step adds ``(T, C, P)``, made of ``normals (T, C, P)``."""
        return None

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Advance the state by one step of size eta."""
        raise NotImplementedError


def check_requirements(
    algorithm: Algorithm, posterior: BasePosterior, batch_size: int | None
) -> None:
    """Raise where an algorithm cannot run on a posterior, or on minibatches of its rows.

    Parameters
    ----------
    algorithm : Algorithm
        Declares ``requires`` and ``full_gradient``.
    posterior : BasePosterior
    batch_size : int or None
        None where every step takes all rows.

    Raises
    ------
    TypeError
        When the posterior lacks an ability.
    ValueError
        When the algorithm needs the gradient from all rows, and has that of a batch.
    """
    argument = "sampler" if isinstance(algorithm, Sampler) else "optimizer"
    for ability in algorithm.requires:
        require(posterior, ability, argument, algorithm, algorithm.remedy)
    if algorithm.full_gradient and batch_size is not None:
        raise ValueError(
            f"{argument}={algorithm!r} needs the gradient from all rows at every step; set "
            "gradient='full' and batch_size='auto'."
        )


class Sampler(Algorithm):
    """An algorithm whose positions are draws."""

    adjusted = False  # by accepting or rejecting, and so exact at any step size
    noise_gain = 1.0  # weight of minibatch noise beside the injected noise, relative to SGLD's

    def speed(self, rate: float) -> float:
        """Share of the way to the mode that a step of size 1 makes, at this curvature."""
        return rate

    def pace(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Step size, and the number of steps to an independent draw.

        They suit a normal distribution whose curvatures in the preconditioned space are ``rates``,
        ascending; ``step``, if given, is the step size.
        """
        step = step or 0.5 / self.speed(rates[-1])
        return step, 2.0 / (step * self.speed(rates[0]))

    def gradients(self, step: float) -> int:
        """Gradients that a step of this size takes."""
        return 1

    def settle(self, state: State, temperature: float) -> None:
        """Bring what the state remembers to where it is after long on a standard normal target.

        A pilot measures chains that have forgotten their start; what a sampler learns on the way
        (a metric, say) would be wrong for longer than a pilot runs. There is nothing to do, the
        default, where the state holds positions only or forgets as fast as they do.
        """

    def gaussian_inflation(self, eta: float) -> float | None:
        """Variance of the chain over the target's, on a normal target of precision 1.

        None, the default, has it measured by running the sampler on such a target; a closed form
        is exact, and costs nothing. An adjusted sampler's is 1.
        """
        return 1.0 if self.adjusted else None


@dataclass(eq=False, repr=False)
class SGLD(Sampler):
    """Stochastic gradient Langevin dynamics (Welling & Teh 2011).

    One step, with step size eta, preconditioner G, temperature tau and gradient estimate g::

        theta <- theta + eta G g(theta) + sqrt(2 eta tau) G^{1/2} noise

    (Karagiannis, Handout 6, eq. 3.4 and 3.9; Welling & Teh's epsilon is 2 eta.)

    Parameters
    ----------
    integrator : {"leimkuhler_matthews", "euler"}, default="leimkuhler_matthews"
        ``"euler"`` adds a fresh standard normal at every step: Algorithm 21 of the handout, to
        the letter. On a normal target of precision lambda its variance is too large by
        ``1 / (1 - eta lambda / 2)``. ``"leimkuhler_matthews"`` adds the mean of this step's
        normal and the next one's (Leimkuhler & Matthews 2013, eq. 1.4): the same cost, second
        order in eta, and no error at all on a normal target.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.sampling import SGLD
    >>> SGLDLinearRegression(sampler=SGLD(integrator="euler"))
    SGLDLinearRegression(sampler=SGLD(integrator='euler'))
    """

    integrator: str = "leimkuhler_matthews"
    separate = True

    def check(self) -> None:
        """Raise where the integrator is not known."""
        if self.integrator not in _INTEGRATORS:
            raise ValueError(
                f"sampler.integrator={self.integrator!r} is not known; choose one of "
                f"{', '.join(map(repr, _INTEGRATORS))}."
            )

    def gaussian_inflation(self, eta: float) -> float:
        """Variance of the chain over the target's, on a normal target of precision 1."""
        return 1.0 / (1.0 - eta / 2.0) if self.integrator == "euler" else 1.0

    def init(self, theta: Array, noise: Array | None) -> State:
        """State: positions, and each chain's latest standard normals."""
        assert noise is not None
        return {"theta": theta, "normal": noise}

    def prepare(
        self, state: State, normals: Array | None, eta: Array, dynamics: Dynamics
    ) -> Array | None:
        """``sqrt(2 eta tau) G^{1/2} noise`` of every step."""
        assert normals is not None
        # chains first, so that each chain's noise is a product of its own
        z = np.ascontiguousarray(normals.swapaxes(0, 1))
        scale = np.sqrt(2.0 * dynamics.temperature * eta)[:, None]
        if self.integrator == "leimkuhler_matthews":
            sums = np.empty_like(z)
            np.add(z[:, 0], state["normal"], out=sums[:, 0])
            np.add(z[:, 1:], z[:, :-1], out=sums[:, 1:])
            state["normal"] = z[:, -1].copy()
            z, scale = sums, 0.5 * scale
        noise = np.empty(normals.shape)  # of a step together in memory, where it is added
        np.multiply(dynamics.preconditioner.sqrt(z), scale, out=noise.swapaxes(0, 1))
        return noise

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Advance theta."""
        theta = state["theta"]
        if dynamics.bound_move is None:
            move = dynamics.drift(theta, batch, state) * eta
            move += theta
        else:  # of a new array
            move = dynamics.bound_move(theta, batch, eta)
        move += noise
        state["theta"] = move
