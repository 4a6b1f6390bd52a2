"""The temperature of a run: a number, or a schedule that settles at one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skbayes_sgld._components import Component, check_number, resolve
from skbayes_sgld.sampling.schedules import SCHEDULES, Schedule


class Temperature(NamedTuple):
    """What the ``temperature`` of a user comes to.

    Everything automatic (metric, step size, batch size, starting points) is chosen for ``final``.

    Attributes
    ----------
    final : float
        tau of the distribution that the draws are of.
    schedule : Schedule or None
        tau at every step; None where it is ``final`` throughout.
    """

    final: float
    schedule: Schedule | None = None

    @property
    def n_hot(self) -> int:
        """How many steps pass before the final temperature."""
        return 0 if self.schedule is None else int(self.schedule.settles_at)


def resolve_temperature(value: Any) -> Temperature:
    """Return the temperature that a number, or a schedule's name or instance, stands for.

    Raises
    ------
    ValueError, TypeError
        Where it is neither, or is a schedule that never settles: draws at a temperature that
        goes on changing are of no one distribution.
    """
    if not isinstance(value, (str, Component)):
        check_number(value, "temperature", low=0)
        return Temperature(float(value))
    if isinstance(value, str) and value not in SCHEDULES:
        names = ", ".join(map(repr, sorted(SCHEDULES)))
        raise ValueError(
            f"temperature={value!r} is not accepted; it must be a number in (0, inf), or a "
            f"schedule that settles, by name ({names}) or as an instance."
        )
    schedule = resolve(value, SCHEDULES, "temperature")
    if not np.isfinite(schedule.settles_at):
        raise ValueError(
            f"temperature={value!r} never settles, and draws at a temperature that goes on "
            "changing are of no one distribution; give a positive number, 'cooling', or another "
            "schedule that ends in a constant, such as FlatDecayFlat."
        )
    final = float(schedule(schedule.settles_at))
    return Temperature(final, schedule if schedule.settles_at > 0 else None)
