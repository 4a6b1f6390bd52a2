"""Predictions of rows in blocks: one block after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Protocol, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld.blocks.files import block_slices, check_whole
from skbayes_sgld.blocks.source import RowSource, kind_of

Array = NDArray[Any]


class LazyRows(Protocol):
    """Rows that are computed later, whose predictions are too: of Dask."""

    def __dask_graph__(self) -> Any:
        """Tasks that make the rows."""

    def compute(self, **kwargs: Any) -> Any:
        """The rows, in memory."""


class OfRows(Protocol):
    """A bound method that takes rows, and ``out``; its result is of the kind of the rows."""

    @overload
    def __call__(self, X: LazyRows) -> Any: ...
    @overload
    def __call__(self, X: RowSource) -> Iterator[Array]: ...
    @overload
    def __call__(self, X: ArrayLike, *, out: Array | None = None) -> Array: ...


def _of_dask(model: Any, method: str, X: Any, given: dict[str, Any]) -> Any:
    from skbayes_sgld.blocks.dask_predictions import predict_lazily

    return predict_lazily(model, method, X, given)


LAZY: dict[str, Callable[[Any, str, Any, dict[str, Any]], Any]] = {
    "dask.Array": _of_dask,
    "dask.DataFrame": _of_dask,
    "dask.Series": _of_dask,
}
"""Functions of a model, a prediction's name, X and the other arguments, by ``kind_of(X)``."""


def by_block(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of predictions, which then take rows in blocks, and ``out`` for the result.

    Of rows in blocks the method returns a generator of the predictions of each block. Where
    ``out`` is given, rows are read and written block by block, and ``out`` is returned.
    """

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        def predict(rows: Any) -> Any:
            return method(self, rows, *args, **kwargs)

        lazy = LAZY.get(kind_of(X))
        if out is None and lazy is None and not isinstance(X, RowSource):
            return predict(X)
        check_is_fitted(self)
        if out is not None:
            return _write(predict, X, out, method.__name__)
        if lazy is None:
            return _each(predict, X)
        given = known.bind(self, X, *args, **kwargs).arguments
        others = {name: value for name, value in given.items() if name not in ("self", "X")}
        return lazy(self, method.__name__, X, others)

    known = signature(method)
    more = Parameter("out", Parameter.KEYWORD_ONLY, default=None)
    call.__signature__ = known.replace(  # type: ignore[attr-defined]
        parameters=[*known.parameters.values(), more]
    )
    call.__doc__ = _documented(method.__doc__ or "")
    return call


def of_rows(method: Callable[[Any, ArrayLike], Array]) -> OfRows:
    """Decorator as :func:`by_block`, of a method that takes rows and nothing else."""
    return cast(OfRows, by_block(method))


_OUT = """        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. Where X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
"""


def _documented(doc: str) -> str:
    """Docstring with the parameter ``out`` at the end of its parameters."""
    head, returns, rest = doc.partition("\n        Returns\n")
    return head.rstrip() + "\n" + _OUT + returns + rest if returns else doc


def _each(predict: Callable[[Any], Any], source: RowSource) -> Iterator[Any]:
    for rows in source.columns():
        yield predict(rows)


def _write(predict: Callable[[Any], Any], X: Any, out: Any, name: str) -> Any:
    if isinstance(X, RowSource) or np.ndim(X) != 2 or not isinstance(X, np.ndarray):
        raise TypeError(
            f"out is for arrays and memory maps of rows, and X is {type(X).__name__}; leave it "
            "None."
        )
    if not isinstance(out, np.ndarray) or not len(out) == len(X):
        raise ValueError(
            f"out is {type(out).__name__} of shape {np.shape(out)}; give an array of {len(X)} rows."
        )
    for rows in block_slices(*X.shape):
        check_whole(X)
        found = predict(X[rows])
        if isinstance(found, tuple) or found.shape[1:] != out.shape[1:]:
            shape = "several arrays" if isinstance(found, tuple) else (len(X), *found.shape[1:])
            raise ValueError(f"out has shape {out.shape}; {name} returns {shape}.")
        out[rows] = found
    return out
