"""Rows in blocks: sources of data that are read in passes, and never held as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skbayes_sgld.blocks.row_blocks import RowBlocks, check_alone, source_of_map
from skbayes_sgld.blocks.source import RowSource, kind_of

__all__ = ["RowBlocks"]


def _of_dask(X: Any, *beside: Any) -> RowSource:
    from skbayes_sgld.blocks.dask_rows import DaskRows

    return DaskRows(X, *beside)


SOURCES: dict[str, Callable[[Any, Any, Any, Any], RowSource | None]] = {
    "dask.Array": _of_dask,
    "dask.DataFrame": _of_dask,
    "dask.Series": _of_dask,
    "numpy.memmap": source_of_map,
}
"""Functions of X, y, sample_weight and exposure that make a source, or None where an array serves.

By :func:`kind_of` X.
"""


def as_source(
    X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None
) -> RowSource | None:
    """Source of the rows that ``fit`` is given; None where they are an array like any other.

    Raises
    ------
    TypeError, ValueError
        Where X is a source, and what is beside it does not go with it.
    """
    make = SOURCES.get(kind_of(X))
    if make is not None:
        return make(X, y, sample_weight, exposure)
    if not isinstance(X, RowSource):
        return None
    check_alone(X, y=y, sample_weight=sample_weight, exposure=exposure)
    return X
