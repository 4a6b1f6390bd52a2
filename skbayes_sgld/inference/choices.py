"""Resolved settings, each with its value and the reason for it."""

from __future__ import annotations

from textwrap import wrap
from typing import Any, NamedTuple

from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.sampling.preconditioners import Curvature
from skbayes_sgld.sampling.schedules import Constant

GIVEN, DEFAULT = "given", "the default"
_ORDER = (
    "prior sampler step_size schedule temperature gradient batch_size preconditioner "
    "parameterization clip modes init n_draws n_burnin thin"
)


class Choice(NamedTuple):
    """One resolved setting: its value, the reason for it, and whether the user gave it."""

    value: Any
    why: str
    given: bool = False

    @classmethod
    def by_user(cls, value: Any, why: str = GIVEN) -> Choice:
        """Choice that the user made."""
        return cls(value, why, True)


Choices = dict[str, Choice]


def as_given(settings: Settings) -> Choices:
    """Choices of schedule, temperature, preconditioner and clipping."""
    temperature, tau = settings.temperature, settings.tau
    defaults = {
        "schedule": (settings.schedule, isinstance(settings.schedule, Constant)),
        "temperature": (temperature or tau, temperature is None and tau == 1),
        "clip": (settings.clip, settings.clip is None),
    }
    choices = {
        name: Choice(value, DEFAULT) if same else Choice.by_user(value)
        for name, (value, same) in defaults.items()
    }
    if settings.preconditioner is AUTO:
        choice = Choice(Curvature(), "its steps have no unit, on any data")
    else:
        choice = Choice.by_user(settings.preconditioner)
    return choices | {"preconditioner": choice}


def in_order(choices: Choices) -> Choices:
    """Choices in the order of the plan's table."""
    return {name: choices[name] for name in _ORDER.split() if name in choices}


def as_table(choices: Choices) -> str:
    """Text table of the choices: setting, value and reason."""
    rows = [(name, shown(choice.value), choice.why) for name, choice in choices.items()]
    name_width, value_width = (max(len(row[k]) for row in rows) for k in (0, 1))
    indent = " " * (name_width + value_width + 4)
    lines = []
    for name, value, why in rows:
        first, *rest = wrap(why, max(30, 98 - len(indent))) or [""]
        lines.append(f"{name:{name_width}s}  {value:{value_width}s}  {first}".rstrip())
        lines += [indent + line for line in rest]
    return "\n".join(lines)


def as_line(choices: Choices) -> str:
    """The choices as arguments of a call."""
    return ", ".join(f"{name}={shown(choice.value)}" for name, choice in choices.items())


def shown(value: Any) -> str:
    """Text of a setting's value for tables and reprs."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
