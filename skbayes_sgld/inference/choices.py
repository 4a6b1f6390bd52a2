"""Resolved settings, each with the reason for it, and their table."""

from __future__ import annotations

from textwrap import wrap
from typing import Any, NamedTuple

GIVEN = "given"
# What ends a run before the draws that were asked for, and what gives it more
EARLY_ENDS = {"max_time": "raise max_time", "callback": "let the callback stop later"}


class Choice(NamedTuple):
    """One resolved setting: its value, and the reason for it."""

    value: Any
    why: str

    @property
    def given(self) -> bool:
        """Whether the user gave it."""
        return self.why == GIVEN


def as_table(choices: dict[str, Choice]) -> str:
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


def shown(value: Any) -> str:
    """Value of a setting as tables and reprs show it."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
