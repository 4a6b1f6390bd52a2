"""Terms of effects that vary by group: ``{"Subject": ["intercept", "Days"]}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from skbayes_sgld._checks import column_position

_ACCEPTED = (
    "'intercept', the name or position of a column of numbers, or a list of these, such as "
    "['intercept', 'Days']"
)


@dataclass(frozen=True)
class GroupTerm:
    """Effects that each label of one column, or each pair of labels of two columns, has.

    Attributes
    ----------
    name : str
        Name of the column, or of both: ``"Subject"``, ``"batch:cask"``.
    columns : tuple of int
        Positions of the columns of labels in X.
    intercept : bool
        Whether each label has an intercept.
    slopes : tuple of int
        Positions in X of the columns whose slopes vary.
    effects : tuple of str
        Names of the effects of a label, the intercept first: ``("intercept", "Days")``.
    """

    name: str
    columns: tuple[int, ...]
    intercept: bool
    slopes: tuple[int, ...]
    effects: tuple[str, ...]


def resolve_groups(
    group_effects: Mapping[Any, Any], d: int, names: Sequence[str] | None
) -> tuple[GroupTerm, ...]:
    """Terms of the model, for d columns of X, which may have names.

    Raises
    ------
    TypeError, ValueError
        If a column is not there, or is a label and a number; the error names it.
    """
    if not isinstance(group_effects, Mapping):
        raise TypeError(
            f"group_effects={group_effects!r} is no dict; give one of columns of labels to what "
            "varies with them, such as {'Subject': ['intercept', 'Days']}."
        )
    terms = [_term(key, value, d, names) for key, value in group_effects.items()]
    labels = {j for term in terms for j in term.columns}
    for term in terms:
        for j, effect in zip(term.slopes, term.effects[term.intercept :], strict=True):
            if j in labels:
                raise ValueError(
                    f"group_effects[{term.name!r}] has the slope {effect!r}, whose column holds "
                    "labels; slopes are of columns of numbers."
                )
    if len({frozenset(term.columns) for term in terms}) < len(terms):
        raise ValueError(
            f"group_effects names a column twice: {[term.name for term in terms]}; give all that "
            "varies with its labels in one list."
        )
    return tuple(terms)


def _term(key: Any, value: Any, d: int, names: Sequence[str] | None) -> GroupTerm:
    argument = f"group_effects[{key!r}]"
    columns = tuple(column_position(each, d, names, "group_effects") for each in _pair(key, names))
    if len(columns) > 2 or len(set(columns)) < len(columns):
        raise ValueError(
            f"group_effects has the key {key!r}; give a column, or 'a:b' for the pairs of labels "
            "of two columns."
        )
    listed = list(value) if isinstance(value, (list, tuple)) else [value]
    if not listed:
        raise ValueError(f"{argument} is empty; give {_ACCEPTED}.")
    for each in listed:
        if isinstance(each, bool) or not isinstance(each, (str, Integral)):
            raise TypeError(f"{argument}={value!r} is not accepted; give {_ACCEPTED}.")
    slopes = [each for each in listed if each != "intercept"]
    at = tuple(column_position(each, d, names, argument) for each in slopes)
    if len(set(listed)) < len(listed) or len(set(at)) < len(at):
        raise ValueError(f"{argument}={value!r} names an effect twice.")
    if any(_called(j, names) == "intercept" for j in at):
        raise ValueError(
            f"{argument}={value!r} has the slope of a column named 'intercept', which is the name "
            "of the intercept; rename the column."
        )
    intercept = "intercept" in listed
    effects = ("intercept",) * intercept + tuple(_called(j, names) for j in at)
    name = ":".join(_called(j, names) for j in columns)
    return GroupTerm(name, columns, intercept, at, effects)


def _pair(key: Any, names: Sequence[str] | None) -> tuple[Any, ...]:
    """Columns that a key names: itself, or the two parts of ``"a:b"``."""
    if isinstance(key, tuple):
        return key
    if not isinstance(key, str) or key in (names or ()) or key.count(":") != 1:
        return (key,)
    return tuple(key.split(":"))


def _called(j: int, names: Sequence[str] | None) -> str:
    return f"x{j}" if names is None else str(names[j])
