"""Rows in blocks: sources of data that are read in passes, and never held as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skbayes_sgld.blocks.row_blocks import RowBlocks, check_alone
from skbayes_sgld.blocks.source import RowSource

__all__ = ["SOURCES", "RowBlocks", "RowSource", "as_source"]

SOURCES: dict[str, Callable[[Any, Any, Any], RowSource | None]] = {}
"""Functions of X, y and sample_weight that make a source of them, or None where an array serves.

By library and name of the type of X, such as ``"numpy.memmap"``.
"""


def as_source(X: Any, y: Any = None, sample_weight: Any = None) -> RowSource | None:
    """Source of the rows that ``fit`` is given; None where they are an array like any other.

    Raises
    ------
    TypeError, ValueError
        Where X is a source, and y or sample_weight do not go with it.
    """
    kind = type(X)
    make = SOURCES.get(f"{kind.__module__.partition('.')[0]}.{kind.__name__}")
    if make is not None:
        return make(X, y, sample_weight)
    if not isinstance(X, RowSource):
        return None
    check_alone(X, y=y, sample_weight=sample_weight)
    return X
