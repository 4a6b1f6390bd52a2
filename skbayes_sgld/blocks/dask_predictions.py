"""Predictions for Dask collections: one task for each block, on the worker that has it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._typing import Array
from skbayes_sgld.blocks.dask_rows import align, check_columns, is_frame, joined_graph
from skbayes_sgld.rows.arguments import ROW_ARGUMENTS


def predict_lazily(model: Any, method: str, X: Any, given: dict[str, Any]) -> Any:
    """Dask array, or arrays, with the results of a method for the rows X.

    Parameters
    ----------
    model : estimator
        Fitted model; its draws go into the graph once, and to each worker once.
    method : str
    X : dask.array.Array or dask.dataframe.DataFrame
        Rows with any chunks; columns in several chunks are joined first.
    given : dict
        Further arguments; arguments by row, such as exposures, may be Dask collections.

    Returns
    -------
    values : dask.array.Array, or a tuple of them
        Chunked like the rows of X; sizes of chunks are known if those of X are.
    """
    import dask.array as da

    check_is_fitted(model)
    mixed = getattr(model._fitted, "mixed", None)
    X = check_columns(X, () if mixed is None else mixed.labels.of_columns)
    one_a_row = [k for k in ROW_ARGUMENTS if np.ndim(given.get(k, 0)) > 0]
    by_row = {k: align(given[k], X, k) for k in one_a_row}
    given = {k: value for k, value in given.items() if k not in by_row}
    slim = without_rows(model)
    # a prediction of one row shows type and shape of the results, and wrong arguments
    row = X._meta_nonempty.iloc[:1] if is_frame(X) else np.zeros((1, X.shape[1]), X.dtype)
    example = getattr(slim, method)(row, **given, **dict.fromkeys(by_row, np.ones(1)))
    empty = _joined(example)[:0]
    graph, keys = joined_graph([X, *by_row.values()])
    name = f"{method}-{uuid4().hex}"
    # separate nodes, which a worker fetches once
    node, given_node = f"model-of-{name}", f"arguments-of-{name}"
    graph |= {node: slim, given_node: given}
    for number, parts in enumerate(keys):
        key = (name, number, *[0] * (empty.ndim - 1))
        graph[key] = (_predict, method, list(by_row), empty, given_node, node, *parts)
    sizes = (np.nan,) * len(keys) if is_frame(X) else X.chunks[0]
    values = da.Array(graph, name, (sizes, *((n,) for n in empty.shape[1:])), meta=empty)
    if not isinstance(example, tuple):
        return values
    return tuple(values[..., k] for k in range(len(example)))


def _predict(
    method: str,
    names: list[str],
    empty: Array,
    given: dict[str, Any],
    model: Any,
    X: Any,
    *arrays: Any,
) -> Array:
    """Values of a method for the rows of a block."""
    if not len(X):
        return empty
    more = dict(zip(names, map(np.asarray, arrays), strict=True))
    return _joined(getattr(model, method)(X, **given, **more))


def _joined(values: Any) -> Array:
    """Several results joined to one array, so that the rows are read once."""
    return np.stack(values, axis=-1) if isinstance(values, tuple) else values


def without_rows(model: Any) -> Any:
    """Copy of the model for the workers, without attributes that predictions do not need."""
    slim = copy(model)
    vars(slim).pop("result_", None)  # not needed by predictions; may hold rows
    slim._fitted = replace(slim._fitted, stream=None, attributes={})
    if "estimators_" in vars(slim):
        slim.estimators_ = [without_rows(each) for each in slim.estimators_]
    return slim
