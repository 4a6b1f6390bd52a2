"""Rows that ``fit`` is given, whatever they are: arrays, or what an annex reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from skbayes_sgld.rows.arrays import Arrays

# functions of (X, y, sample_weight, by_row, estimator) that return rows, or None for others' rows;
# an annex that reads rows out of memory adds its own when it is imported
READERS: list[Callable[..., Any]] = []
# types of rows that such an annex also predicts, block by block
ELSEWHERE: list[type] = []
_ANNEXES = {"dask": "skbayes_sgld.blocks", "numpy.memmap": "skbayes_sgld.blocks"}


def read_rows(X: Any, y: Any, sample_weight: Any, by_row: Mapping[str, Any], estimator: Any) -> Any:
    """Rows before any check but that of their kind; they have ``given`` and ``encode``."""
    kind = type(X)
    library = kind.__module__.partition(".")[0]
    for name in (library, f"{library}.{kind.__name__}"):
        if name in _ANNEXES:
            import_module(_ANNEXES[name])
    for read in READERS:
        rows = read(X, y, sample_weight, by_row, estimator)
        if rows is not None:
            return rows
    return Arrays(X, y, sample_weight, by_row)


def live_elsewhere(X: Any) -> bool:
    """Whether rows are not in memory: in blocks, or Dask's."""
    return type(X).__module__.startswith("dask.") or isinstance(X, tuple(ELSEWHERE))
