"""Predictions of rows so far out that their mean under some draw, or its square, overflows.

Under a log link, a row with a value ten times as large as those of the fit may have a mean of
exp(400) under some draw. Its predicted mean and the ends of its intervals may then be infinite. All
other rows are predicted as if it were not there. :func:`predict_apart` is called if such a row has
been found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.likelihoods.base import HIGHEST
from skbayes_sgld.likelihoods.row_values import NO_VALUES, RowValues
from skbayes_sgld.prediction.order_statistics import draw_quantiles

# least log mean of a far row; 1 below the limit, as the search may round differently
_FAR = HIGHEST - 1.0
_LARGEST = np.exp(345.0)  # beyond it a quantile is infinite
_PER_ROW = "terms", "y", "t"


def predict_apart(predictive: Any, method: str, X: Array, arguments: dict[str, Any]) -> Any:
    """Result of a method of ``predictive``; far rows are computed on their own, with a warning.

    ``arguments`` are the method's by name, without X.
    """
    far = find_far_rows(predictive, X, arguments.get("terms", NO_VALUES))
    apart = replace(predictive, is_far=True)
    of_far = partial(_METHODS[method], apart) if method in _METHODS else getattr(apart, method)
    parts = []
    for predict, rows in ((getattr(predictive, method), ~far), (of_far, far)):
        own = {
            name: value[rows] if name in _PER_ROW else value for name, value in arguments.items()
        }
        parts.append(predict(X[rows], **own) if rows.any() else None)
    near, values = parts
    if near is None:
        return values
    together = np.empty((len(far), *near.shape[1:]))
    together[~far], together[far] = near, values
    return together


def far_rows(predictive: Any, X: Array, terms: RowValues) -> tuple[Array, Array]:
    """Mask ``(n,)`` of the far rows of X, and the largest log mean of each row ``(n,)``."""
    if not predictive.likelihood.log_link:
        return np.zeros(X.shape[0], dtype=bool), np.zeros(X.shape[0])
    largest = predictive._by_blocks(
        lambda X, terms: predictive.predictors(X, terms)[0].max(axis=1), 2, X, terms
    )
    return largest > _FAR, largest


def find_far_rows(predictive: Any, X: Array, terms: RowValues) -> Array:
    """Mask ``(n,)`` of the far rows of X, which a warning names."""
    far, largest = far_rows(predictive, X, terms)
    what, columns = predictive.likelihood.log_link
    them = "it" if far.sum() == 1 else "them"
    warn(
        f"{named(far)} a {what} of up to exp({largest.max():.3g}) under a draw, whose square is "
        "out of the range of floating point numbers: a prediction or an end of an interval may be "
        f"infinite there. The other rows are predicted as without {them}. Check {columns}.",
        UserWarning,
    )
    return far


def named(rows: Array) -> str:
    """Beginning of a sentence about the rows of X in a mask, up to "has" or "have"."""
    first, number = int(rows.argmax()), int(rows.sum())
    if number == 1:
        return f"Row {first} of X (from 0) has"
    return f"{number} rows of X, of which row {first} (from 0) is the first, have"


# ---- methods whose results may be infinite, of rows that are all far ----------------------------


def _means(predictive: Any, X: Array, terms: RowValues) -> Array:
    """Mean of an observation under every draw ``(n, S)``; infinite beyond exp(709)."""
    eta = predictive.predictors(X, terms)
    with np.errstate(over="ignore"):
        return np.asarray(predictive.likelihood.mean(eta.swapaxes(0, 1)))


def _mean(predictive: Any, X: Array, terms: RowValues = NO_VALUES) -> Array:
    share = predictive.share
    some = share > 0.0  # infinity times a weight of 0 is nan

    def mean_of(X: Array, terms: RowValues) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(_means(predictive, X, terms)[:, some] @ share[some])

    return np.asarray(predictive._by_blocks(mean_of, 2, X, terms))


def _moments(predictive: Any, X: Array, terms: RowValues = NO_VALUES) -> Array:
    mean = _mean(predictive, X, terms)
    return np.column_stack([mean, np.full_like(mean, np.inf)])


def _mean_draws(predictive: Any, X: Array, terms: RowValues = NO_VALUES) -> Array:
    means = partial(_means, predictive)
    return np.asarray(predictive._by_blocks(means, 2, X, terms))


def _mean_quantiles(predictive: Any, X: Array, q: Array, terms: RowValues = NO_VALUES) -> Array:
    def quantiles_of(X: Array, terms: RowValues) -> Array:
        eta = draw_quantiles(predictive.predictors(X, terms)[0], q, predictive.weights)
        with np.errstate(over="ignore"):
            return np.asarray(predictive.likelihood.mean(eta[:, None]))

    return np.asarray(predictive._by_blocks(quantiles_of, 1, X, terms))


def _quantiles(predictive: Any, X: Array, q: Array, terms: RowValues = NO_VALUES) -> Array:
    values = predictive.quantiles(X, q, terms)
    return np.where(values < _LARGEST, values, np.inf)


_METHODS: dict[str, Callable[..., Array]] = {
    "mean": _mean,
    "moments": _moments,
    "mean_draws": _mean_draws,
    "mean_quantiles": _mean_quantiles,
    "quantiles": _quantiles,
}
