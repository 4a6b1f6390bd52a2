"""Doors to the annexes: what the core finds of them by name, imported where it is first needed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple


class Door(NamedTuple):
    """A function or a class of an annex.

    Attributes
    ----------
    module, name : str
        Where it is.
    only : tuple of str
        Facts of a posterior, one of which must hold for the door to be opened; empty for a door
        that a setting or an argument opens.
    """

    module: str
    name: str
    only: tuple[str, ...] = ()

    def open(self) -> Any:
        """The function or the class."""
        return getattr(import_module(self.module), self.name)

    @property
    def is_there(self) -> bool:
        """Whether the annex is installed: the core goes on without it."""
        folder = ".".join(self.module.split(".")[:2])
        return find_spec(folder) is not None
