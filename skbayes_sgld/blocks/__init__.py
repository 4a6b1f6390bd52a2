"""Rows in blocks: data that are read in passes, and never held in memory as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld.blocks.files import is_large
from skbayes_sgld.blocks.row_blocks import RowBlocks
from skbayes_sgld.blocks.source import RowSource, kind_of

__all__ = ["RowBlocks"]


def as_source(X: Any, y: Any = None, sample_weight: Any = None, **by_row: Any) -> RowSource | None:
    """Source of the rows that ``fit`` is given; None if they are an ordinary array.

    ``by_row`` has the exposures of counts, or the ``n_trials`` of totals.

    Raises
    ------
    TypeError, ValueError
        If X is a source that already has the other arguments, or these do not fit.
    """
    beside = {"y": y, "sample_weight": sample_weight, **by_row}
    if kind_of(X).startswith("dask."):
        from skbayes_sgld.blocks.dask_rows import DaskRows

        return DaskRows(X, y, sample_weight, **by_row)
    if isinstance(X, np.memmap) and y is not None and is_large(X):
        return RowBlocks._from_map(X, **beside)
    if not isinstance(X, RowSource):
        return None
    for name, value in beside.items():
        if value is not None:
            more = "".join(f", or (X, y, weight, {argument})" for argument in by_row)
            raise TypeError(
                f"{name} is given beside {type(X).__name__}, whose blocks hold it: leave it None, "
                f"and let the source yield (X, y, weight){more}."
            )
    if X.by_row and by_row and X.by_row not in by_row:
        (name,) = by_row
        raise TypeError(
            f"{X!r} was made with {X.by_row}=, and this model takes {name}; give it as {name}=."
        )
    return X
