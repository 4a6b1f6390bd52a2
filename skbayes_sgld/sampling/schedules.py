"""Schedules of the step size, ``eta_t = step_size * schedule(t)``, or the temperature.

``t`` counts steps from 0. The documents that define the decaying schedules count from 1, so
their ``t`` is ``t + 1`` here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sgld._checks import check_number
from skbayes_sgld._components import Registry
from skbayes_sgld.sampling.base import Schedule


def check_multipliers(schedule: Schedule, n_steps: int) -> None:
    """Raise unless a schedule is positive and finite at up to 10,000 steps of the run."""
    steps = np.unique(np.linspace(0, max(n_steps - 1, 0), 10_000).astype(int))
    values = np.asarray(schedule(steps))
    if values.shape != steps.shape:
        raise ValueError(
            f"schedule={schedule!r} returns an array of shape {values.shape} for steps of shape "
            f"{steps.shape}; it must return one number a step."
        )
    wrong = ~((values > 0) & (values < np.inf))
    if wrong.any():
        first = int(wrong.argmax())
        raise ValueError(
            f"schedule={schedule!r} is {values[first]:g} at step {steps[first]}; it must be "
            "positive and finite at every step."
        )


@dataclass(eq=False, repr=False)
class Constant(Schedule):
    """Constant step size, the default: the chain is then stationary.

    The steps do not vanish, so Condition 27 of Karagiannis, Handout 6, does not hold and a bias
    remains; ``diagnose()`` estimates it. An automatic step size keeps it below the Monte Carlo
    error of the draws.

    Examples
    --------
    >>> from skbayes_sgld.sampling import Constant
    >>> Constant()([0, 10]).tolist()
    [1.0, 1.0]
    """

    decay_power = settles_at = 0.0

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """Ones in the shape of ``t``."""
        return np.ones_like(t, dtype=float)


@dataclass(eq=False, repr=False)
class Harmonic(Schedule):
    """Multiplier ``t0 / t`` with t = 1, 2, ... (Karagiannis, Practical 2: eta_t = t0 / t).

    It meets Condition 27 of Karagiannis, Handout 6, but only just: after t steps the chain has
    advanced by a time of ``t0 log t``.

    Parameters
    ----------
    t0 : float, default=1.0
        The step at which the multiplier is 1. At 1 the first step is ``step_size`` itself.

    Examples
    --------
    >>> from skbayes_sgld.sampling import Harmonic
    >>> Harmonic(t0=10)([0, 9, 99]).tolist()
    [10.0, 1.0, 0.1]
    """

    t0: float = 1.0

    decay_power = 1.0

    def check(self, argument: str = "schedule") -> None:
        """Raise if t0 is not positive."""
        check_number(self.t0, f"{argument}.t0", low=0)

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """``t0 / (t + 1)``."""
        return self.t0 / (np.asarray(t, dtype=float) + 1.0)


@dataclass(eq=False, repr=False)
class Polynomial(Schedule):
    """Multiplier ``(offset + t)^-power`` with t = 1, 2, ... (Welling & Teh 2011).

    Chen, "Dive into Bayesian Learning via Stochastic Gradient Langevin Dynamics", Algorithm 1,
    writes it ``a (b + t)^gamma``; half of a is the step size here, b the offset.

    Parameters
    ----------
    offset : float, default=6.0
        Delays the decay. 6 is the published setting of the runs on the NBA rookies.
    power : float, default=0.55
        In (0.5, 1] the step sizes meet Condition 27 of Karagiannis, Handout 6: their sum
        diverges and the sum of their squares does not. Above 1 the chain advances by a finite
        time only, and stops wherever it is; at 0.5 or below the steps still vanish, and weighted
        averages still converge (Teh, Thiery & Vollmer 2016 find 1/3 the best power).
        ``diagnose()`` says if the condition does not hold.

    Examples
    --------
    >>> from skbayes_sgld.sampling import Polynomial
    >>> Polynomial(offset=0, power=1)([0, 1, 3]).tolist()
    [1.0, 0.5, 0.25]
    """

    offset: float = 6.0
    power: float = 0.55

    def check(self, argument: str = "schedule") -> None:
        """Raise if the multiplier would be infinite or grow."""
        check_number(self.offset, f"{argument}.offset", low=-1)
        check_number(self.power, f"{argument}.power", low=0, closed="left")
        with np.errstate(all="ignore"):
            first = self(0.0)
        if not 0.0 < first < np.inf:
            raise ValueError(
                f"{argument}.power={self.power!r} makes the first step {first:g} times step_size, "
                f"(offset + 1)^-power with offset={self.offset!r}; give a smaller one."
            )

    @property
    def decay_power(self) -> float:  # type: ignore[override]
        """The power."""
        return self.power

    @property
    def settles_at(self) -> float:  # type: ignore[override]
        """Infinity, or the first step where the power is zero."""
        return np.inf if self.power > 0 else 0.0

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """``(offset + t + 1) ** -power``."""
        return (self.offset + np.asarray(t, dtype=float) + 1.0) ** -self.power


@dataclass(eq=False, repr=False)
class FlatDecayFlat(Schedule):
    """1 for a while, then ``(hold / t)^power``, and at last a small constant.

    Long steps reach the posterior, a decay like :class:`Harmonic`'s follows, and the last step
    size is constant: "we can keep the step size constant once it has
    decreased below a critical level" (Karagiannis, Handout 6, Note 26; also Chen, "Dive into
    Bayesian Learning via Stochastic Gradient Langevin Dynamics", Section 2.2). The chain is
    stationary in the end, and its draws have equal weights. The steps do not vanish, so Condition
    27 of the handout does not hold and a bias remains; ``diagnose()`` estimates it.

    Parameters
    ----------
    hold : float, default=1000.0
        The last step, counted from 1, of the first regime.
    power : float, default=1.0
        Power of the decay.
    floor : float, default=0.1
        The multiplier that the decay ends at.

    Examples
    --------
    >>> from skbayes_sgld.sampling import FlatDecayFlat
    >>> FlatDecayFlat(hold=10)([0, 9, 19, 999]).tolist()
    [1.0, 1.0, 0.5, 0.1]
    """

    hold: float = 1000.0
    power: float = 1.0
    floor: float = 0.1

    decay_power = 0.0  # the decay ends

    def check(self, argument: str = "schedule") -> None:
        """Raise if a parameter is out of range."""
        check_number(self.hold, f"{argument}.hold", low=0)
        check_number(self.power, f"{argument}.power", low=0, closed="left")
        check_number(self.floor, f"{argument}.floor", low=0, high=1, closed="right")

    @property
    def settles_at(self) -> float:  # type: ignore[override]
        """The step at which the decay ends."""
        if self.power == 0 or self.floor == 1:
            return 0.0
        with np.errstate(over="ignore", divide="ignore"):
            return float(np.ceil(self.hold * np.float64(self.floor) ** (-1.0 / self.power))) - 1.0

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """Multipliers between ``floor`` and 1."""
        ratio = np.minimum(self.hold / (np.asarray(t, dtype=float) + 1.0), 1.0)
        return np.maximum(ratio**self.power, self.floor)


@dataclass(eq=False, repr=False)
class Cyclical(Schedule):
    """Cosine cycles from 1 to nearly 0 (Zhang, Li, Zhang, Chen & Wilson 2020, eq. 1).

    Each cycle begins with steps that are long enough to leave a mode and ends with steps that are
    short enough to sample one. Draws are weighted by their step sizes, like those of any
    schedule that is not constant. The steps do not vanish in the long run, so that Condition 27
    of Karagiannis, Handout 6, does not hold.

    Parameters
    ----------
    period : int, default=1000
        Steps per cycle.

    Examples
    --------
    >>> from skbayes_sgld.sampling import Cyclical
    >>> Cyclical(period=4)([0, 1, 2, 3, 4]).round(3).tolist()
    [1.0, 0.854, 0.5, 0.146, 1.0]
    """

    period: int = 1000

    decay_power = 0.0  # the cycles go on

    def check(self, argument: str = "schedule") -> None:
        """Raise if the period is not a positive whole number."""
        check_number(self.period, f"{argument}.period", low=1, closed="left", integer=True)

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """``(cos(pi (t mod period) / period) + 1) / 2``."""
        return 0.5 * (np.cos(np.pi * np.mod(t, self.period) / self.period) + 1.0)


@dataclass(eq=False, repr=False)
class Cooling(Schedule):
    """``high`` for ``hold`` steps, then a geometric decay to ``low``.

    As a temperature it is the advice of Karagiannis, Handout 6, Section 4: "a large tau at the
    beginning of the run [...] allows visiting different modes, and later on [...] tau = 1". The
    draws that are kept come after the temperature has reached ``low``. Each chain then stays in
    one mode. The share of the chains in a mode is its mass at the temperature below which chains
    no longer cross: near its mass at ``low``, but not equal to it.
    ``sampler="parallel_tempering"`` gives the exact masses.

    Parameters
    ----------
    high : float, default=10.0
        The first value. A barrier of k nats between two modes is low at a temperature of k.
    hold : int, default=500
        Steps at ``high``.
    decay : int, default=2000
        Steps from ``high`` to ``low``.
    low : float, default=1.0
        The last value.

    Examples
    --------
    >>> from skbayes_sgld.sampling import Cooling
    >>> Cooling(high=100.0, hold=1, decay=2)([0, 1, 2, 3, 4]).round(3).tolist()
    [100.0, 100.0, 10.0, 1.0, 1.0]
    """

    high: float = 10.0
    hold: int = 500
    decay: int = 2000
    low: float = 1.0

    decay_power = 0.0  # the decay ends

    def check(self, argument: str = "schedule") -> None:
        """Raise if a parameter is out of range or the schedule would heat."""
        check_number(self.low, f"{argument}.low", low=0)
        check_number(self.high, f"{argument}.high", low=0)
        if self.high < self.low:
            raise ValueError(
                f"{argument}.high={self.high!r} is below {argument}.low={self.low!r}; it cools, so "
                "that high must be at least low."
            )
        check_number(self.hold, f"{argument}.hold", low=0, closed="left", integer=True)
        check_number(self.decay, f"{argument}.decay", low=1, closed="left", integer=True)

    @property
    def settles_at(self) -> float:  # type: ignore[override]
        """The step at which ``low`` is reached."""
        return float(self.hold) + float(self.decay)

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """``low (high / low)^share``, the share falling from 1 to 0."""
        share = 1.0 - (np.asarray(t, dtype=float) - self.hold) / self.decay
        return self.low * (self.high / self.low) ** np.clip(share, 0.0, 1.0)


SCHEDULES: Registry[Schedule] = Registry(
    Schedule,
    constant=Constant,
    harmonic=Harmonic,
    polynomial=Polynomial,
    flat_decay_flat=FlatDecayFlat,
    cyclical=Cyclical,
    cooling=Cooling,
)
