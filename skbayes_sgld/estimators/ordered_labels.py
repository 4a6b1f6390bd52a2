"""Ordered categories of pandas, polars and Arrow, as plain labels and their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skbayes_sgld._typing import Array


def plain(y: Any) -> Any:
    """Labels as scikit-learn takes them: of a frame its one column, and intervals by their text."""
    column = _column(y)
    dtype = getattr(column, "dtype", None)
    kind = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
    if not isinstance(kind, pd.IntervalDtype):
        return column
    # a gap stays a gap, whose error names the row
    return np.array([each if pd.isna(each) else str(each) for each in column], dtype=object)


def order_of(y: Any) -> Array | None:
    """Categories, from the lowest, of labels whose type has an order; None of other labels."""
    categories = _categories(_column(y))
    if categories is None:
        return None
    order: Array = np.asarray(plain(categories))
    return order


def _column(y: Any) -> Any:
    """The column of a frame or a table that has one; other labels as they are."""
    names: Any = getattr(y, "column_names", getattr(y, "columns", ()))  # Arrow's, or a frame's
    return y if callable(names) or len(names) != 1 else y[names[0]]


def _categories(y: Any) -> Any:
    """Categories of an ordered column; None of others."""
    dtype: Any = getattr(y, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype):
        return dtype.categories if dtype.ordered else None
    if isinstance(dtype, pd.ArrowDtype):
        return _categories(y.array.__arrow_array__())
    if type(dtype).__name__ == "Enum":  # of polars, whose Categorical has no order
        return dtype.categories
    if getattr(getattr(y, "type", None), "ordered", False):  # of Arrow
        chunks = y.unify_dictionaries().chunks if hasattr(y, "chunks") else [y]
        return chunks[0].dictionary if chunks else None
    return None


def in_order(classes: Array, order: Array | None) -> Array:
    """Sorted classes in a given order, if there is one."""
    if order is None:
        return classes
    return np.asarray(order[np.isin(order, classes)], dtype=classes.dtype)
