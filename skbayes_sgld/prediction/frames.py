"""Predictions as tables: the index of X, and named columns for ends, levels, classes or draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn import get_config

from skbayes_sgld._checks import check_flag
from skbayes_sgld._typing import Array

Axis = tuple[str, Sequence[Any]]
"""Name and labels of an axis of predictions."""

ENDS: Axis = ("end", ("lower", "upper"))


def levels_of(name: str, levels: Any) -> list[Axis]:
    """Axis of levels; a single level has no axis."""
    return [(name, np.asarray(levels, dtype=float).tolist())] if np.ndim(levels) else []


def shown(values: Array, X: Any, as_frame: bool, axes: Sequence[Axis]) -> Any:
    """Predictions ``(n, ...)``, unchanged or as a frame.

    Parameters
    ----------
    values : ndarray of shape (n, ...)
    X : array-like
        Rows, whose index the frame has if they are of pandas.
    as_frame : bool
    axes : sequence of (str, list)
        Names and labels of the axes after that of the rows. With several of them the columns are
        a MultiIndex.

    Returns
    -------
    predictions : ndarray, or a frame
        The frame is one of pandas, unless ``sklearn.set_config(transform_output="polars")`` was
        called. Polars has
        no index, and no columns of several levels: their labels are joined by underscores.
    """
    if not check_flag(as_frame, "as_frame"):
        return values
    if not isinstance(values, np.ndarray):
        raise TypeError(
            f"as_frame=True is for rows in memory, and X is {type(X).__name__}; leave it False, "
            "and make a frame of each block."
        )
    names, labels = zip(*axes, strict=True)
    if len(axes) == 1:
        columns = pd.Index(labels[0])
    else:
        columns = pd.MultiIndex.from_product(labels, names=names)
    flat = values.reshape(len(values), -1)
    if get_config()["transform_output"] == "polars":
        import polars

        joined = columns if len(axes) == 1 else ["_".join(map(str, each)) for each in columns]
        return polars.DataFrame(flat, schema=[str(each) for each in joined])
    index = getattr(X, "index", None)
    return pd.DataFrame(flat, index if isinstance(index, pd.Index) else None, columns)
