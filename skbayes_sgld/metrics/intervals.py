"""Scores of predictive intervals and quantiles.

With several coverages, these are the last axis of ``interval``, as from ``predict_interval``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skbayes_sgld._checks import as_array, as_weights, check_choice, check_lengths
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._typing import Array
from skbayes_sgld.criticism.groups import groups_given
from skbayes_sgld.metrics.distributions import check_target, mean_of_rows
from skbayes_sgld.prediction.intervals import check_levels


@numpy_defaults
def interval_score(
    y_true: ArrayLike, interval: ArrayLike, coverage: Any = 0.9, *, sample_weight: Any = None
) -> Any:
    """Interval score: width plus a penalty for each observation outside; smaller is better.

    The penalty is 2 / (1 - coverage) times the distance to the interval. The expected score is
    smallest for the interval between the true quantiles.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    interval : array-like of shape (n_samples, 2) or (n_samples, 2, n_coverages)
        Lower and upper ends.
    coverage : float or array-like of shape (n_coverages,), default=0.9
        Nominal probability of the interval, in (0, 1).
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    score : float or ndarray of shape (n_coverages,)
        Mean over the rows, in the units of y.

    References
    ----------
    Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation, eq. 43.

    Examples
    --------
    >>> from skbayes_sgld.metrics import interval_score
    >>> print(round(interval_score([1.0, 2.5], [[0.0, 2.0], [0.0, 2.0]], coverage=0.9), 2))
    7.0
    """
    levels = check_levels(coverage, "coverage")
    y, low, high = _ends(y_true, interval)
    if low.ndim == 2 and low.shape[1] != len(levels):
        raise ValueError(
            f"interval has shape {np.shape(interval)}, of {low.shape[1]} coverages; coverage has "
            f"{len(levels)}."
        )
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    penalty = 2.0 / (1.0 - (levels if low.ndim == 2 else levels[0]))
    return mean_of_rows(_widths(low, high) + penalty * outside, sample_weight)


@numpy_defaults
def interval_coverage(
    y_true: ArrayLike, interval: ArrayLike, *, sample_weight: Any = None, groups: Any = None
) -> Any:
    """Share of the observations inside their intervals, ends included.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    interval : array-like of shape (n_samples, 2) or (n_samples, 2, n_coverages)
        Lower and upper ends.
    sample_weight : array-like of shape (n_samples,), default=None
    groups : array-like of shape (n_samples,), default=None
        Labels of the rows. The shares are then those of each group.

    Returns
    -------
    share : float, ndarray of shape (n_coverages,) or pandas.DataFrame
        With ``groups`` a frame with a row for each group, in the order of the labels: ``coverage``,
        its standard error ``se`` and the number ``n`` of its rows; with several coverages a row for
        each, numbered in a second level of the index. The error takes the share with one more row
        inside and one outside, so that a group wholly inside has an error, too.

    Examples
    --------
    >>> from skbayes_sgld.metrics import interval_coverage
    >>> print(interval_coverage([1.0, 2.5], [[0.0, 2.0], [0.0, 2.0]]))
    0.5
    >>> groups = ["a", "a", "b"]
    >>> table = interval_coverage([1.0, 2.5, 1.0], [[0.0, 2.0]] * 3, groups=groups)
    >>> table.reset_index().round(2)
      group  coverage    se  n
    0     a       0.5  0.35  2
    1     b       1.0  0.47  1
    """
    y, low, high = _ends(y_true, interval)
    inside = (low <= y) & (y <= high)
    if groups is None:
        return mean_of_rows(inside, sample_weight)
    given = groups_given(groups, None, len(inside))
    weight = np.ones(len(inside))
    if sample_weight is not None:
        weight = as_weights(sample_weight, "sample_weight", len(inside))
    codes, inside = given.codes, inside.reshape(len(inside), -1)
    total, squares = np.bincount(codes, weight), np.bincount(codes, np.square(weight))
    with np.errstate(invalid="ignore", divide="ignore"):  # a group without weight has no share
        sums = [np.bincount(codes, weight * one) for one in inside.T]
        share = np.column_stack(sums).astype(float) / total[:, None]
        n = np.square(total) / squares  # as many equal weights say as much
    wider = (share * n[:, None] + 1.0) / (n[:, None] + 2.0)
    se = np.sqrt(wider * (1.0 - wider) / n[:, None])
    index, counts = pd.Index(given.labels, name="group"), np.bincount(codes)
    if low.ndim == 2:
        index = pd.MultiIndex.from_product(
            [index, range(inside.shape[1])], names=["group", "interval"]
        )
        counts = np.repeat(counts, inside.shape[1])
    table = {"coverage": share.ravel(), "se": se.ravel(), "n": counts}
    return _sorted(pd.DataFrame(table, index))


def _sorted(table: pd.DataFrame) -> pd.DataFrame:
    """The table by label; in the order of the rows if labels have no order."""
    try:
        return table.sort_index()
    except TypeError:
        return table


@numpy_defaults
def interval_width(interval: ArrayLike, *, sample_weight: Any = None) -> Any:
    """Mean width of intervals. Among calibrated intervals the narrowest are best.

    Parameters
    ----------
    interval : array-like of shape (n_samples, 2) or (n_samples, 2, n_coverages)
        Lower and upper ends.
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    width : float or ndarray of shape (n_coverages,)
        In the units of y.
    """
    _, low, high = _ends(None, interval)
    return mean_of_rows(_widths(low, high), sample_weight)


@numpy_defaults
def pinball_loss(
    y_true: ArrayLike, y_quantiles: ArrayLike, q: ArrayLike, *, sample_weight: Any = None
) -> float:
    """Pinball loss, or quantile score, averaged over rows and levels; smaller is better.

    With one level it equals ``sklearn.metrics.mean_pinball_loss``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_quantiles : array-like of shape (n_samples, n_quantiles)
        Quantiles, as from ``predict_quantiles``.
    q : array-like of shape (n_quantiles,)
        Their levels, in (0, 1).
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    loss : float
        In the units of y.

    Examples
    --------
    >>> from skbayes_sgld.metrics import pinball_loss
    >>> print(pinball_loss([1.0, 2.0], [[0.0, 3.0], [0.0, 3.0]], q=[0.1, 0.9]))
    0.15
    """
    y, quantiles, levels = _quantiles(y_true, y_quantiles, q)
    error = y[:, None] - quantiles
    loss = np.maximum(levels * error, (levels - 1.0) * error)
    return float(mean_of_rows(loss, sample_weight).mean())


@numpy_defaults
def quantile_calibration_error(
    y_true: ArrayLike,
    y_quantiles: ArrayLike,
    q: ArrayLike,
    *,
    sample_weight: Any = None,
    norm: str = "l1",
) -> float:
    """Difference between the levels of quantiles and the observed shares below them.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_quantiles : array-like of shape (n_samples, n_quantiles)
        Quantiles, as from ``predict_quantiles``.
    q : array-like of shape (n_quantiles,)
        Their levels, in (0, 1).
    sample_weight : array-like of shape (n_samples,), default=None
    norm : {"l1", "max"}, default="l1"
        Mean difference over the levels, or the largest.

    Returns
    -------
    error : float
        In [0, 1]. Chance alone gives about 0.3 / sqrt(n) for n observations and calibrated
        quantiles.

    References
    ----------
    Kuleshov, Fenner & Ermon (2018), Accurate uncertainties for deep learning using calibrated
    regression.
    """
    check_choice(norm, "norm", ("l1", "max"))
    y, quantiles, levels = _quantiles(y_true, y_quantiles, q)
    error = np.abs(mean_of_rows(y[:, None] <= quantiles, sample_weight) - levels)
    return float(error.mean() if norm == "l1" else error.max())


def bounds_of(value: ArrayLike, argument: str, n_dims: tuple[int, ...]) -> Array:
    """Ends of intervals, or quantiles: numbers of any size, infinite for far rows."""
    bounds = as_array(value, argument, n_dims, ensure_all_finite=False)
    if np.isnan(bounds).any():
        raise ValueError(f"{argument} contains NaN; give numbers, or infinity for an open end.")
    return bounds


def check_order(ends: Array) -> None:
    """Raise if the lower end of one of the intervals ``(n, 2, ...)`` is above the upper one."""
    wrong = np.argwhere(ends[:, 0] > ends[:, 1])
    if len(wrong):
        row, *which = wrong[0]
        low, high = ends[(row, slice(None), *which)]
        raise ValueError(
            f"interval has the lower end {low:g} above the upper end {high:g} in row {row}; give "
            "the lower end first."
        )


def _widths(low: Array, high: Array) -> Array:
    """Widths of intervals; infinite if an end is."""
    with np.errstate(invalid="ignore", over="ignore"):
        widths = high - low
    return np.where(np.isfinite(low) & np.isfinite(high), widths, np.inf)


def _ends(y_true: ArrayLike | None, interval: ArrayLike) -> tuple[Array, Array, Array]:
    """Observations and the ends of their intervals, with a last axis for several coverages."""
    ends = bounds_of(interval, "interval", (2, 3))
    if ends.shape[1] != 2:
        raise ValueError(
            f"interval has shape {ends.shape}; it must be (n_samples, 2) or (n_samples, 2, "
            "n_coverages)."
        )
    check_order(ends)
    target = np.zeros(len(ends)) if y_true is None else y_true
    y = check_target(target)
    check_lengths(y_true=y, interval=ends)
    return y.reshape((-1,) + (1,) * (ends.ndim - 2)), ends[:, 0], ends[:, 1]


def _quantiles(
    y_true: ArrayLike, y_quantiles: ArrayLike, q: ArrayLike
) -> tuple[Array, Array, Array]:
    y, quantiles = check_target(y_true), bounds_of(y_quantiles, "y_quantiles", (2,))
    check_lengths(y_true=y, y_quantiles=quantiles)
    levels = check_levels(q)
    if levels.shape != quantiles.shape[1:]:
        n_levels = quantiles.shape[1]
        raise ValueError(
            f"q has {levels.size} levels, and y_quantiles {n_levels} columns; give one for each."
        )
    return y, quantiles, levels
