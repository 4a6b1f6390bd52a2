"""Rows in blocks: sources of data that are read in passes, and never held as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skbayes_sgld.blocks.row_blocks import RowBlocks, check_alone, source_of_map
from skbayes_sgld.blocks.source import RowSource

__all__ = ["SOURCES", "RowBlocks", "RowSource", "as_source", "kind_of"]

SOURCES: dict[str, Callable[[Any, Any, Any], RowSource | None]] = {
    "numpy.memmap": source_of_map,
}
"""Functions of X, y and sample_weight that make a source of them, or None where an array serves.

By :func:`kind_of` X.
"""


def kind_of(X: Any) -> str:
    """Library and name of the type of X: ``"numpy.memmap"``."""
    return f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}"


def as_source(X: Any, y: Any = None, sample_weight: Any = None) -> RowSource | None:
    """Source of the rows that ``fit`` is given; None where they are an array like any other.

    Raises
    ------
    TypeError, ValueError
        Where X is a source, and y or sample_weight do not go with it.
    """
    make = SOURCES.get(kind_of(X))
    if make is not None:
        return make(X, y, sample_weight)
    if not isinstance(X, RowSource):
        return None
    check_alone(X, y=y, sample_weight=sample_weight)
    return X
