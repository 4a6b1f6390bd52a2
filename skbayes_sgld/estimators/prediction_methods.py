"""The decorator of all methods that predict rows: types of results, and rows not in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from skbayes_sgld._doors import Door
from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld.rows.reading import live_elsewhere

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

_ELSEWHERE = Door("skbayes_sgld.blocks.block_predictions", "predict_elsewhere")


class LazyRows(Protocol):
    """Rows of Dask, which are computed later, as are their predictions."""

    def __dask_graph__(self) -> Any:
        """Tasks that make the rows."""

    def compute(self, **kwargs: Any) -> Any:
        """The rows, in memory."""


class RowsInBlocks(Protocol):
    """Rows that are read block by block, and so are their predictions: RowBlocks."""

    def columns(self) -> Iterator[Any]:
        """X of each block."""

    def reduce(self, function: Any, plus: Any) -> Any:
        """Sum over all blocks."""


class PredictionMethod(Protocol[P, R]):
    """A bound method that takes rows of any kind; the kind decides what it returns."""

    @overload
    def __call__(self, X: LazyRows, *args: P.args, **kwargs: P.kwargs) -> Any: ...
    @overload
    def __call__(self, X: RowsInBlocks, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]: ...
    @overload
    def __call__(self, X: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> R: ...


def prediction_method(
    method: Callable[Concatenate[Any, ArrayLike, P], R],
) -> PredictionMethod[P, R]:
    """Decorator of methods that predict rows; rows in memory go straight to the method.

    Predictions of float32 rows are float32, as scikit-learn's are; labels have the type of
    ``classes_``. Rows in blocks or of Dask, and an array ``out`` to write into, go through the door
    of ``blocks/block_predictions.py``, which calls the method with arrays.
    """

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None or live_elsewhere(X):
            given = signature(method).bind(self, X, *args, **kwargs).arguments
            return _ELSEWHERE.open()(self, method.__name__, X, out, given)
        with one_blas_thread():  # once, and not for each part of a prediction
            predictions = method(self, X, *args, **kwargs)
        are_labels = method.__name__ == "predict" and hasattr(self, "classes_")
        return _in_single(predictions) if _is_single(X) and not are_labels else predictions

    return cast("PredictionMethod[P, R]", call)


def _is_single(X: Any) -> bool:
    """Whether all numbers of the rows, an array or a table, are float32."""
    types = {str(each).lower() for each in getattr(X, "dtypes", [getattr(X, "dtype", None)])}
    return types == {"float32"}


def _in_single(predictions: Any) -> Any:
    if isinstance(predictions, tuple):
        return tuple(map(_in_single, predictions))
    with np.errstate(over="ignore", under="ignore"):
        single = predictions.astype(np.float32, copy=False)
    # numbers beyond its range, as for a y in tiny units, stay float64
    return single if np.isfinite(single).sum() == np.isfinite(predictions).sum() else predictions
