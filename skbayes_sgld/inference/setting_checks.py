"""Checks of settings: functions of a value and the setting's name that return the used value."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Final

import numpy as np

from skbayes_sgld._checks import check_choice, check_number, check_path, out_of_range
from skbayes_sgld._components import Component, Registry, resolve
from skbayes_sgld._memory import check_memory
from skbayes_sgld.sampling import (
    SCHEDULES,
    Preconditioner,
    Schedule,
)
from skbayes_sgld.sampling.preconditioners import preconditioner_of

PARAMETERIZATION_NAMES = (  # that a user may give
    "auto",
    "centered",
    "noncentered",
    "row_space",
    "quantiles",
    "integrated",
    "standardised",
)
_INITS = ("auto", "mode", "prior", "zeros")

_TEMPERATURES = 1e-15, 1e15  # beyond, draws equal the mode or overflow

Check = Callable[[Any, str], Any]  # from a value and the setting's name to the used value


class Auto(Enum):
    """Type of :data:`AUTO`."""

    AUTO = "auto"


AUTO: Final = Auto.AUTO
"""Value of a setting that the user leaves to the plan: the checked form of ``"auto"``."""

# skops makes an instance without a value before it gives it its state
Auto.__new__ = lambda cls, value="auto": AUTO  # type: ignore[method-assign, assignment, misc]


def given_or(value: Any, automatic: Any) -> Any:
    """Value that the user gave, or ``automatic`` in place of :data:`AUTO`."""
    return automatic if value is AUTO else value


def is_auto(value: Any) -> bool:
    """Whether the user wrote ``"auto"``; an array is not compared."""
    return isinstance(value, str) and value == "auto"


def component(registry: Registry[Any], *, auto: bool = False) -> Check:
    """Check of a component from a registry, or with ``auto`` of ``"auto"``."""
    also = ("auto",) if auto else ()

    def check(value: Any, name: str) -> Any:
        return AUTO if auto and is_auto(value) else resolve(value, registry, name, also)

    return check


def optional(check: Check) -> Check:
    """Check of a value that may be None."""
    return lambda value, name: None if value is None else check(value, name)


def number(low: float = 0, *, auto: bool = False, **bounds: Any) -> Check:
    """Check of a number, or with ``auto`` of ``"auto"``."""

    def check(value: Any, name: str) -> Any:
        if auto:
            return number_or_auto(value, name, low=low, **bounds)
        check_number(value, name, low=low, **bounds)
        return int(value) if bounds.get("integer") else value  # a small NumPy integer may overflow

    return check


def whole(low: int, **kind: Any) -> Check:
    """Check of a whole number of at least ``low``."""
    return number(low, closed="left", integer=True, **kind)


def checked(check: Callable[..., Any]) -> Check:
    """Check of a value that is used unchanged."""

    def keep(value: Any, name: str) -> Any:
        check(value)
        return value

    return keep


def parameterization(value: Any, name: str) -> str | Auto:
    """Check of the name of coordinates."""
    check_choice(value, name, PARAMETERIZATION_NAMES)
    return AUTO if is_auto(value) else value


def processes(value: Any, name: str) -> int:
    """Check of a number of processes, as joblib counts them."""
    check_number(value, name, integer=True)
    if value == 0:
        raise ValueError("n_jobs=0 is out of range; give None, a positive number, or -1 for all.")
    return int(value)


def file_path(value: Any, name: str) -> Path:
    """Check of the path of a file, which need not exist yet."""
    check_path(value, name)
    path = Path(value)
    if path.is_dir():
        raise IsADirectoryError(
            f"{name}={str(path)!r} is a folder; give the path of a file, or None."
        )
    return path


def resolve_preconditioner(value: Any) -> Preconditioner | Auto:
    """Preconditioner as a component, which for None is the identity."""
    return AUTO if is_auto(value) else preconditioner_of(value, ("auto",))


def check_temperature(value: Any) -> None:
    """Raise unless 1e-15 <= temperature <= 1e15."""
    low, high = _TEMPERATURES
    check_number(value, "temperature", low=low, high=high, closed="both")


def resolve_temperature(value: float | str | Schedule) -> tuple[float, Schedule | None]:
    """Final temperature of a number, or of a schedule by name or as an instance; and the schedule.

    Raises
    ------
    ValueError, TypeError
        If it is neither, or a schedule that never becomes constant: its draws would not come
        from one distribution.
    """
    if not isinstance(value, (str, Component)):
        check_temperature(value)
        return float(value), None
    if isinstance(value, str) and value not in SCHEDULES:
        settling = (n for n, schedule in SCHEDULES.items() if np.isfinite(schedule().settles_at))
        names = ", ".join(map(repr, sorted(settling)))
        raise ValueError(
            f"temperature={value!r} is not accepted; it must be a number in [{_TEMPERATURES[0]:g}, "
            f"{_TEMPERATURES[1]:g}], or a schedule that settles, by name ({names}) or as an "
            "instance."
        )
    schedule = resolve(value, SCHEDULES, "temperature")
    if not np.isfinite(schedule.settles_at):
        raise ValueError(
            f"temperature={value!r} never settles, and draws at a temperature that goes on "
            "changing are of no one distribution; give a positive number, 'cooling', or another "
            "schedule that ends in a constant, such as FlatDecayFlat."
        )
    if schedule.settles_at > 1e9:
        raise ValueError(
            f"temperature={value!r} settles after {schedule.settles_at:.3g} steps, and draws are "
            f"made from there on; give a schedule that settles within 1e+09."
        )
    final = float(schedule(schedule.settles_at))
    check_temperature(final)
    return final, schedule if schedule.settles_at > 0 else None


def check_init(value: Any, names: tuple[str, ...] = _INITS, n_dims: int = 2) -> Any:
    """Starting point as a name, or as a new array of finite numbers of at most ``n_dims`` axes."""
    if isinstance(value, str):
        check_choice(value, "init", names)
        return AUTO if is_auto(value) else value
    accepted = f"give one of {', '.join(map(repr, names))}, or an array of finite numbers"
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"init={value!r} is not accepted; {accepted}.") from None
    if not 1 <= array.ndim <= n_dims:
        either = " or (n_chains, n_params)" * (n_dims == 2)
        raise ValueError(f"init has shape {array.shape}; it must be (n_params,){either}.")
    wrong = ~np.isfinite(array)
    if wrong.any():
        raise ValueError(f"{out_of_range(value, 'init', wrong)}; {accepted}.")
    return array


def number_or_auto(value: Any, argument: str, **bounds: Any) -> Any:
    """Checked number, or :data:`AUTO`."""
    if is_auto(value):
        return AUTO
    if isinstance(value, str):
        raise ValueError(f"{argument}={value!r} is not accepted; give 'auto' or a number.")
    check_number(value, argument, **bounds)
    return int(value) if bounds.get("integer") else float(value)


def check_room(n_chains: int, n_draws: int, n_params: int) -> None:
    """Raise MemoryError if the draws do not fit in memory."""
    check_memory(
        8 * n_chains * n_draws * n_params,
        f"n_draws={n_draws} of {n_params} parameters from {n_chains} chains",
        "give fewer draws, with a larger thin if the steps between them are to add up to as many",
    )


def check_verbose(value: Any) -> None:
    """Raise unless ``verbose`` is a bool or a whole number from 0 on."""
    if not isinstance(value, (bool, np.bool_)):
        check_number(value, "verbose", low=0, closed="left", integer=True)
