"""Schedules: the multiplier of the step size at each step, ``eta_t = step_size * schedule(t)``.

``t`` counts steps from 0. The documents that define the decaying schedules count from 1, so
their ``t`` is ``t + 1`` here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sgld._components import Component, Registry, check_number


class Schedule(Component):
    """A positive multiplier of the step size; ``schedule(t)`` is vectorised over ``t``."""

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return the multipliers at steps ``t`` (0 is the first), in the shape of ``t``."""
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

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return ones in the shape of ``t``."""
        return np.ones_like(t, dtype=float)


@dataclass(eq=False, repr=False)
class Harmonic(Schedule):
    """Multiplier ``t0 / t`` with t = 1, 2, ... (Karagiannis, Practical 2: eta_t = t0 / t).

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

    def check(self) -> None:
        """Raise where t0 is not positive."""
        check_number(self.t0, "schedule.t0", low=0)

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return ``t0 / (t + 1)``."""
        return self.t0 / (np.asarray(t, dtype=float) + 1.0)


@dataclass(eq=False, repr=False)
class Polynomial(Schedule):
    """Multiplier ``(offset + t)^-power`` with t = 1, 2, ... (Welling & Teh 2011, Section 3).

    Parameters
    ----------
    offset : float, default=6.0
        Delays the decay. 6 is the published setting of the runs on the NBA rookies.
    power : float, default=0.55
        In (0.5, 1] the step sizes meet Condition 27 of Karagiannis, Handout 6: their sum
        diverges and the sum of their squares does not.

    Examples
    --------
    >>> from skbayes_sgld.sampling import Polynomial
    >>> Polynomial(offset=0, power=1)([0, 1, 3]).tolist()
    [1.0, 0.5, 0.25]
    """

    offset: float = 6.0
    power: float = 0.55

    def check(self) -> None:
        """Raise where the multiplier would be infinite or grow."""
        check_number(self.offset, "schedule.offset", low=-1)
        check_number(self.power, "schedule.power", low=0, closed="left")

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return ``(offset + t + 1) ** -power``."""
        return (self.offset + np.asarray(t, dtype=float) + 1.0) ** -self.power


@dataclass(eq=False, repr=False)
class FlatDecayFlat(Schedule):
    """1 for a while, then ``(hold / t)^power``, and at last a small constant.

    The three regimes of Karagiannis, Practical 2: long steps to reach the posterior, a decay as
    :class:`Harmonic`'s or :class:`Polynomial`'s, and a step that no longer vanishes, so that the
    chain is stationary in the end and its draws weigh the same.

    Parameters
    ----------
    hold : float, default=1000.0
        The last step, counted from 1, of the first regime.
    power : float, default=1.0
        Of the decay.
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

    def check(self) -> None:
        """Raise where a parameter is out of range."""
        check_number(self.hold, "schedule.hold", low=0)
        check_number(self.power, "schedule.power", low=0, closed="left")
        check_number(self.floor, "schedule.floor", low=0, high=1, closed="right")

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return the multipliers, between ``floor`` and 1."""
        ratio = self.hold / (np.asarray(t, dtype=float) + 1.0)
        return np.clip(ratio**self.power, self.floor, 1.0)


@dataclass(eq=False, repr=False)
class Cyclical(Schedule):
    """Cosine cycles from 1 to nearly 0 (Zhang, Li, Zhang, Chen & Wilson 2020, eq. 1).

    Each cycle begins with steps that are long enough to leave a mode and ends with steps that are
    short enough to sample one. Draws are weighted by their step sizes, like those of any
    schedule that is not constant.

    Parameters
    ----------
    period : int, default=1000
        Steps a cycle.

    Examples
    --------
    >>> from skbayes_sgld.sampling import Cyclical
    >>> Cyclical(period=4)([0, 1, 2, 3, 4]).round(3).tolist()
    [1.0, 0.854, 0.5, 0.146, 1.0]
    """

    period: int = 1000

    def check(self) -> None:
        """Raise where the period is no number of steps."""
        check_number(self.period, "schedule.period", low=1, closed="left", integer=True)

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return ``(cos(pi (t mod period) / period) + 1) / 2``."""
        return 0.5 * (np.cos(np.pi * np.mod(t, self.period) / self.period) + 1.0)


SCHEDULES: Registry[Schedule] = Registry(
    Schedule,
    constant=Constant,
    harmonic=Harmonic,
    polynomial=Polynomial,
    flat_decay_flat=FlatDecayFlat,
    cyclical=Cyclical,
)
