"""Predictions of Dask's rows: one task a block, computed where the block is."""

from __future__ import annotations

from copy import copy
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld.blocks.dask_rows import align, check_columns, is_frame, joined_graph

Array = NDArray[Any]

_BY_ROW = ("exposure", "n_trials")  # arguments of one value a row
_OF_THE_FIT = ("result_", "_stream")  # which no prediction reads, and which may hold rows


def predict_lazily(model: Any, method: str, X: Any, given: dict[str, Any]) -> Any:
    """Array of Dask, or several, that a method returns for the rows X.

    Parameters
    ----------
    model : estimator
        Fitted; its draws go into the graph once, and to each worker once.
    method : str
    X : dask.array.Array or dask.dataframe.DataFrame
        Chunked anyhow along the rows; columns in several chunks are put together first.
    given : dict
        Further arguments; one a row, such as exposures, may be of Dask too.

    Returns
    -------
    values : dask.array.Array, or a tuple of them
        Chunked as X along the rows; sizes of chunks are known if those of X are.
    """
    from dask import delayed

    check_is_fitted(model)
    X = check_columns(X)
    by_row = {k: align(given[k], X, k) for k in _BY_ROW if np.ndim(given.get(k, 0)) > 0}
    given = {k: value for k, value in given.items() if k not in by_row}
    slim = without_rows(model)
    # the values of one row have the type and the shape of all, and find wrong arguments at once
    example = getattr(slim, method)(_one_row(X), **given, **dict.fromkeys(by_row, np.ones(1)))
    task = _Task(method, list(by_row), given, example)
    rows = list(by_row.values())
    if is_frame(X):
        values = _of_frame(task, X, rows, slim)
    else:
        values = _of_array(task, X, rows, delayed(slim, traverse=False))
    if not isinstance(example, tuple):
        return values
    return tuple(values[..., k] for k in range(len(example)))


class _Task:
    """A method of a model for the rows of a block."""

    def __init__(self, method: str, by_row: list[str], given: dict[str, Any], example: Any) -> None:
        self.method, self._by_row, self._given = method, by_row, given
        self._several = isinstance(example, tuple)
        self.empty = self._joined(example)[:0]

    def _joined(self, values: Any) -> Array:
        # one array, since the rows are read once
        return np.stack(values, axis=-1) if self._several else values

    def __call__(self, X: Any, *by_row: Any, model: Any) -> Array:
        if not len(X):
            return self.empty
        more = dict(zip(self._by_row, map(np.asarray, by_row), strict=True))
        return self._joined(getattr(model, self.method)(X, **self._given, **more))


def _of_array(task: _Task, X: Any, by_row: list[Any], model: Any) -> Any:
    import dask.array as da

    empty = task.empty
    new = {f"k{j}": size for j, size in enumerate(empty.shape[1:])}
    rows = [part for array in by_row for part in (array, "i")]
    return da.blockwise(
        task,
        ("i", *new),
        X,
        ("i", "j"),
        *rows,
        new_axes=new,
        concatenate=True,
        dtype=empty.dtype,
        meta=empty,
        token=task.method,
        model=model,
    )


def _of_frame(task: _Task, X: Any, by_row: list[Any], model: Any) -> Any:
    import dask.array as da

    # map_partitions has no arrays as results where a series goes in
    graph, keys = joined_graph([X, *by_row])
    name, empty = f"{task.method}-{uuid4().hex}", task.empty
    graph |= {f"model-of-{name}": model, f"task-of-{name}": task}
    zeros = (0,) * (empty.ndim - 1)
    for number, parts in enumerate(keys):
        graph[name, number, *zeros] = (_call, f"task-of-{name}", f"model-of-{name}", *parts)
    chunks = (np.nan,) * len(keys), *((size,) for size in empty.shape[1:])
    return da.Array(graph, name, chunks, meta=empty)


def _call(task: _Task, model: Any, *parts: Any) -> Array:
    return task(*parts, model=model)


def _one_row(X: Any) -> Any:
    return X._meta_nonempty.iloc[:1] if is_frame(X) else np.zeros((1, X.shape[1]), X.dtype)


def without_rows(model: Any) -> Any:
    """Copy of the model without attributes that only its fit needs: it goes to every worker."""
    slim = copy(model)
    for name in _OF_THE_FIT:
        vars(slim).pop(name, None)
    if "estimators_" in vars(slim):
        slim.estimators_ = [without_rows(each) for each in slim.estimators_]
    return slim
