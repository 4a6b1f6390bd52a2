"""The parameters that a posterior reports: their names, and the maps from and to theta."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
_Map = Callable[[Array], Array]


def _same(values: Array) -> Array:
    return values


@dataclass(frozen=True)
class Reported:
    """The reported parameters; by default theta itself.

    Attributes
    ----------
    names : list of str
    values : callable
        Function from ``theta (C, P)`` to the parameters ``(C, n_reported)``.
    theta : callable
        Function from the parameters to theta.
    moves : callable
        Function from moves of theta ``(M, P)`` to moves of the parameters in which distances are
        measured.
    coords : mapping of str to sequence of str
        Labels of what the parameters belong to, by dimension: ``"feature"``, ``"class"``.
    """

    names: list[str]
    values: _Map = _same
    theta: _Map = _same
    moves: _Map = _same
    coords: Mapping[str, Sequence[str]] = field(default_factory=dict)
