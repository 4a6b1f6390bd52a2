"""Rows that ``fit`` is given, whatever they are: arrays, or what an annex reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from skbayes_sgld.rows.arrays import Arrays

# Functions of (X, y, sample_weight, by_row, estimator) by the class of X, or by its library. They
# return rows, or None for ordinary arrays. An annex adds its own when it is imported.
READERS: dict[Any, Callable[..., Any]] = {}
_ANNEXES = {"dask": "skbayes_sgld.blocks", np.memmap: "skbayes_sgld.blocks"}


def read_rows(X: Any, y: Any, sample_weight: Any, by_row: Mapping[str, Any], estimator: Any) -> Any:
    """Rows before any check but that of their kind; they have ``given`` and ``encode``."""
    read = reader_of(X)
    rows = None if read is None else read(X, y, sample_weight, by_row, estimator)
    return Arrays(X, y, sample_weight, by_row) if rows is None else rows


def reader_of(X: Any) -> Callable[..., Any] | None:
    """Reader of an annex for rows of this type; None for arrays, frames and sparse matrices."""
    kinds = [*type(X).__mro__, type(X).__module__.partition(".")[0]]
    for kind in kinds:
        if kind in _ANNEXES:
            import_module(_ANNEXES[kind])
    return next((READERS[kind] for kind in kinds if kind in READERS), None)


def live_elsewhere(X: Any) -> bool:
    """Whether rows are not in this process: in blocks, or on the workers of a cluster."""
    return not isinstance(X, np.ndarray) and reader_of(X) is not None
