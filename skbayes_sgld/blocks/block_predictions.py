"""Predictions of rows that live elsewhere: in blocks, in a memory map, on Dask's workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._checks import check_lengths
from skbayes_sgld.blocks.files import block_slices, check_whole
from skbayes_sgld.blocks.source import RowSource, kind_of
from skbayes_sgld.rows.arguments import ROW_ARGUMENTS


def predict_elsewhere(model: Any, name: str, X: Any, out: Any, given: Mapping[str, Any]) -> Any:
    """Predictions by a method of a fitted model, one block of rows after the other.

    Parameters
    ----------
    model : estimator
    name : str
        Method of the model.
    X : RowBlocks, Dask's rows, or ndarray
    out : ndarray or None
        Array that the predictions of an array are written into.
    given : dict
        Arguments of the method by name, ``self`` and X included.

    Returns
    -------
    predictions : generator, Dask's array, or ndarray
        Of rows in blocks a generator of the predictions of each block; ``out``, where it is given.
    """
    check_is_fitted(model)
    arguments = {key: value for key, value in given.items() if key not in ("self", "X")}
    arguments |= arguments.pop("by_row", {})
    predict = partial(getattr(model, name), **arguments)
    if out is not None:
        return _write(predict, X, out, name, arguments)
    if not kind_of(X).startswith("dask."):
        return (predict(rows) for rows in X.columns())
    from skbayes_sgld.blocks.dask_predictions import predict_lazily

    return predict_lazily(model, name, X, arguments)


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
    by_row = {key: v for key, v in given.items() if key in ROW_ARGUMENTS and np.ndim(v) > 0}
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
