"""Rows of any kind that ``fit`` takes: arrays, or what an annex reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from skbayes_sgld._doors import Door
from skbayes_sgld.rows.arrays import Arrays

BLOCKS = Door("skbayes_sgld.blocks.rows", "read_blocks")
# Doors to functions of (X, y, sample_weight, by_row, estimator) by the class of X, or its library.
# They return rows, or None for ordinary arrays. An annex adds the classes of its own.
READERS: dict[Any, Door] = {"dask": BLOCKS, np.memmap: BLOCKS}


def read_rows(X: Any, y: Any, sample_weight: Any, by_row: Mapping[str, Any], estimator: Any) -> Any:
    """Rows of a known kind, not yet checked; they have ``given`` and ``encode``."""
    read = reader_of(X)
    rows = None if read is None else read(X, y, sample_weight, by_row, estimator)
    return Arrays(X, y, sample_weight, by_row) if rows is None else rows


def reader_of(X: Any) -> Callable[..., Any] | None:
    """Reader of an annex for rows of this type; None for arrays, frames and sparse matrices."""
    for kind in (*type(X).__mro__, type(X).__module__.partition(".")[0]):
        if kind in READERS and READERS[kind].is_there:
            reader: Callable[..., Any] = READERS[kind].open()
            return reader
    return None


def live_elsewhere(X: Any) -> bool:
    """Whether rows are not in this process: in blocks, or on the workers of a cluster."""
    return not isinstance(X, np.ndarray) and reader_of(X) is not None
