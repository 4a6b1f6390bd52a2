"""Predictions of rows in blocks, one block after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._checks import check_lengths
from skbayes_sgld.blocks.files import block_slices, check_whole
from skbayes_sgld.blocks.source import BY_ROW, RowSource, kind_of

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class LazyRows(Protocol):
    """Rows that are computed later, and so are their predictions: Dask's."""

    def __dask_graph__(self) -> Any:
        """Tasks that make the rows."""

    def compute(self, **kwargs: Any) -> Any:
        """The rows, in memory."""


class Prediction(Protocol[P, R]):
    """A bound method that takes rows of any kind; the kind decides what it returns."""

    @overload
    def __call__(self, X: LazyRows, *args: P.args, **kwargs: P.kwargs) -> Any: ...
    @overload
    def __call__(self, X: RowSource, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]: ...
    @overload
    def __call__(self, X: ArrayLike, *args: P.args, **kwargs: P.kwargs) -> R: ...


def by_block(method: Callable[Concatenate[Any, ArrayLike, P], R]) -> Prediction[P, R]:
    """Decorator of predictions with an argument ``out``, which then take rows in blocks too.

    The method itself is called with arrays, and without ``out``. For rows in blocks it returns a
    generator of the predictions of each block. Where ``out`` is given, rows are read and results
    written block by block, and ``out`` is returned. Predictions of float32 rows are float32, as
    scikit-learn's are; labels have the type of ``classes_``.
    """
    parameters = signature(method)

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        def predict(rows: Any, **of_rows: Any) -> Any:
            predictions = method(self, rows, *args, **{**kwargs, **of_rows})
            labels = method.__name__ == "predict" and hasattr(self, "classes_")
            return _in_single(predictions) if _is_single(rows) and not labels else predictions

        lazy = kind_of(X).startswith("dask.")
        if out is None and not lazy and not isinstance(X, RowSource):
            return predict(X)
        check_is_fitted(self)
        if out is not None:
            return _write(predict, X, out, method.__name__, kwargs)
        if not lazy:
            return (predict(rows) for rows in X.columns())
        from skbayes_sgld.blocks.dask_predictions import predict_lazily

        arguments = parameters.bind(self, X, *args, **kwargs).arguments
        others = {name: value for name, value in arguments.items() if name not in ("self", "X")}
        others |= others.pop("by_row", {})
        return predict_lazily(self, method.__name__, X, others)

    head, returns, rest = (method.__doc__ or "").partition("\n        Returns\n")
    before, by_row, last = head.partition("        **by_row : ")  # which stands last
    call.__doc__ = f"{before.rstrip()}\n{_OUT}{by_row}{last}{returns}{rest}"
    return cast("Prediction[P, R]", call)


_OUT = """        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. Where X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
"""


def _is_single(X: Any) -> bool:
    """Whether all numbers of the rows, an array or a table, are float32."""
    types = {str(each).lower() for each in getattr(X, "dtypes", [getattr(X, "dtype", None)])}
    return types == {"float32"}


def _in_single(predictions: Any) -> Any:
    if isinstance(predictions, tuple):
        return tuple(map(_in_single, predictions))
    with np.errstate(over="ignore", under="ignore"):
        single = predictions.astype(np.float32, copy=False)
    # numbers beyond its range, as those of a y in tiny units, stay float64
    return single if np.isfinite(single).sum() == np.isfinite(predictions).sum() else predictions


def _write(predict: Callable[..., Any], X: Any, out: Any, name: str, given: dict[str, Any]) -> Any:
    """Write predictions block by block; ``given`` may have arguments by row."""
    if isinstance(X, RowSource) or np.ndim(X) != 2 or not isinstance(X, np.ndarray):
        raise TypeError(
            f"out is for arrays and memory maps of rows, and X is {type(X).__name__}; leave it "
            "None."
        )
    if not isinstance(out, np.ndarray) or not len(out) == len(X):
        raise ValueError(
            f"out is {type(out).__name__} of shape {np.shape(out)}; give an array of {len(X)} rows."
        )
    if not out.flags.writeable:
        raise ValueError("out is read-only; give an array, or a memory map of mode 'r+'.")
    by_row = {key: v for key, v in given.items() if key in BY_ROW and np.ndim(v) > 0}
    check_lengths(X=X, **by_row)
    for rows in block_slices(*X.shape):
        check_whole(X)
        predictions = predict(X[rows], **{key: np.asarray(v)[rows] for key, v in by_row.items()})
        if isinstance(predictions, tuple) or predictions.shape[1:] != out.shape[1:]:
            single = not isinstance(predictions, tuple)
            shape = (len(X), *predictions.shape[1:]) if single else "several arrays"
            raise ValueError(f"out has shape {out.shape}; {name} returns {shape}.")
        if not np.can_cast(predictions.dtype, out.dtype, "same_kind"):
            raise TypeError(f"out has dtype {out.dtype}; {name} returns {predictions.dtype}.")
        out[rows] = predictions
    return out
