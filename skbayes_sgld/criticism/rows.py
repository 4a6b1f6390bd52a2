"""Rows of a fit that are left out: a random part, seen through wrappers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sgld._checks import as_weights, check_number
from skbayes_sgld._random import as_random_state
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.criticism.leave_one_out import LeftOut, leave_out_of
from skbayes_sgld.prediction.wrappers import Core, unwrap_for

Array = NDArray[Any]


@dataclass(frozen=True)
class FittedRows:
    """Rows that a fitted estimator has seen, as its innermost model takes them.

    Attributes
    ----------
    core : Core
        The model, its rows as given, and the transformers of its target.
    data : tuple of ndarray
        X, y and the offset, if any, of the rows whose weight is above 0.
    weight : ndarray of shape (n,)
        Weights of these rows.
    counted : ndarray of shape (n,)
        Their positions.
    log_slope : ndarray of shape (n,)
        Log derivative, at each row, of the inverse transformation of the target.
    """

    core: Core
    data: tuple[Array, ...]
    weight: Array
    counted: Array
    log_slope: Array

    def choose(self, n_rows: int | None, random_state: Any) -> Array:
        """Positions, among the rows with a weight, of those to leave out; increasing."""
        n = len(self.counted)
        if n_rows is None:
            return np.arange(n)
        check_number(n_rows, "n_rows", low=2, closed="left", integer=True)
        return np.sort(as_random_state(random_state).choice(n, min(n_rows, n), replace=False))

    def leave_out(self, rows: Array, n_draws: int | None = None) -> LeftOut:
        """Distributions of the model's target in the chosen rows, each without that row.

        ``n_draws`` is the most draws to use; None: all.
        """
        chosen = tuple(each[rows] for each in self.data)
        return leave_out_of(self.core.model, chosen, np.minimum(self.weight[rows], 1.0), n_draws)


def rows_of_fit(
    caller: str, estimator: Any, X: Any, y: ArrayLike, sample_weight: Any, params: dict[str, Any]
) -> FittedRows:
    """Rows of a fit; errors name the function that the user called.

    Parameters
    ----------
    caller : str
    estimator : estimator
        Fitted; or wrappers around one.
    X, y, sample_weight
        Of the fit, as the outermost wrapper takes them.
    params : dict
        Further arguments of the model's ``log_likelihood``, such as ``exposure``.
    """
    if isinstance(X, RowSource):
        raise TypeError(
            f"X is {type(X).__name__}, and {caller} takes arrays or memory maps; give a random "
            "part of the rows as an array."
        )
    core = unwrap_for(caller, "log_likelihood", estimator, X, params)
    if y is None:
        raise ValueError("y is None; give an array with the observation of each row of X.")
    if hasattr(core.model, "estimators_"):
        raise ValueError(
            f"y has {len(core.model.estimators_)} outputs, and {caller} takes one; call it for "
            "each of the models in estimators_, with its column of y."
        )
    if getattr(core.model, "_exposed", False) and params.get("exposure") is None:
        raise ValueError(
            "exposure is None, and the model was fitted to counts with exposures; give those of "
            f"the rows: {caller}(..., exposure=exposure)."
        )
    z = core.to_model(np.asarray(y, dtype=float)) if core.transformers else y
    data = core.model._observed(core.X, z, **params)
    weight = as_weights(sample_weight, "sample_weight", len(data[1]))
    if core.model._likelihood().totals:
        weight = weight * (data[2] > 0)  # rows without trials say nothing
    counted = np.flatnonzero(weight)
    if len(counted) < 2:
        raise ValueError(
            f"X has {len(counted)} rows with a sample_weight above 0; {caller} needs two."
        )
    if len(counted) < len(weight):
        weight, data = weight[counted], tuple(each[counted] for each in data)
    z = data[1]
    slope = np.log(core.slope(z, np.full(len(z), z.std()))) if core.transformers else 0.0
    return FittedRows(core, data, weight, counted, np.broadcast_to(slope, len(z)))
