"""Scores of class probabilities."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skbayes_sgld._checks import as_array, as_weights, check_choice, check_lengths, check_number
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._typing import Array
from skbayes_sgld.metrics.distributions import mean_of_rows

_ROUNDED = 0.01  # sum of a row's probabilities minus 1, if they are rounded
_MOST_BINS = 1e6


class Bins(NamedTuple):
    """Mean prediction and observed share in bins of the predicted probability.

    Attributes
    ----------
    predicted, observed : ndarray of shape (n_bins,)
        Mean predicted probability, and share of the rows in which the event happened.
    weight : ndarray of shape (n_bins,)
        Total weight of the rows in the bin.
    """

    predicted: Array
    observed: Array
    weight: Array


@numpy_defaults
def brier_score(
    y_true: ArrayLike, y_proba: ArrayLike, *, labels: Any = None, sample_weight: Any = None
) -> float:
    """Brier score: mean squared error of probabilities; smaller is better.

    With two classes it is the error of one probability, in [0, 1]. With more it is summed over the
    classes, in [0, 2], as in ``sklearn.metrics.brier_score_loss``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probability of the second label, or of each in the order of ``labels``.
    labels : array-like of shape (n_classes,), default=None
        The labels in their order, such as ``classes_``. None: the sorted values of ``y_true``.
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    score : float

    Examples
    --------
    >>> from skbayes_sgld.metrics import brier_score
    >>> print(round(brier_score(["no", "yes"], [0.2, 0.7]), 3))
    0.065
    """
    happened, proba = _one_hot(y_true, y_proba, labels)
    score = np.square(proba - happened).sum(axis=1)
    if proba.shape[1] == 2:
        score *= 0.5
    return mean_of_rows(score, sample_weight)


@numpy_defaults
def calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 10,
    strategy: str = "uniform",
    norm: str = "l1",
    labels: Any = None,
    sample_weight: Any = None,
) -> float:
    """Expected, or maximum, calibration error of probabilities.

    Rows are binned by their predicted probability, and the mean prediction in each bin is compared
    with the observed share. With two classes the event is the second class; with more, that the
    likeliest class was right.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probability of the second label, or of each in the order of ``labels``.
    n_bins : int, default=10
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or with equal numbers of rows.
    norm : {"l1", "max"}, default="l1"
        Mean error over the bins, weighted by their rows, or the largest.
    labels : array-like of shape (n_classes,), default=None
        The labels in their order, such as ``classes_``. None: the sorted values of ``y_true``.
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    error : float
        In [0, 1]. Chance alone makes it positive, more so with few rows in a bin.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks.

    Examples
    --------
    >>> from skbayes_sgld.metrics import calibration_error
    >>> print(round(calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.25, 0.95]), 4))
    0.075
    """
    check_choice(norm, "norm", ("l1", "max"))
    happened, proba = _one_hot(y_true, y_proba, labels)
    if proba.shape[1] == 2:
        event, p = happened[:, 1], proba[:, 1]
    else:
        event, p = happened[np.arange(len(proba)), proba.argmax(axis=1)], proba.max(axis=1)
    bins = bin_probabilities(event, p, n_bins, strategy, sample_weight)
    error = np.abs(bins.observed - bins.predicted)
    return float(np.average(error, weights=bins.weight) if norm == "l1" else error.max())


def bin_probabilities(
    event: Array, p: Array, n_bins: int, strategy: str, sample_weight: Any = None
) -> Bins:
    """Bins that are not empty, by probability ``p (n,)`` of the ``event (n,)``, which is 0 or 1."""
    check_number(n_bins, "n_bins", low=1, high=_MOST_BINS, closed="both", integer=True)
    check_choice(strategy, "strategy", ("quantile", "uniform"))
    levels = np.linspace(0.0, 1.0, n_bins + 1)
    edges = levels if strategy == "uniform" else np.quantile(p, levels)
    index = np.searchsorted(edges[1:-1], p)
    weight = as_weights(sample_weight, "sample_weight", len(p))
    total, predicted, observed = (
        np.bincount(index, weights=weight * values, minlength=n_bins)
        for values in (np.ones(len(p)), p, event)
    )
    some = total > 0
    return Bins(predicted[some] / total[some], observed[some] / total[some], total[some])


def _one_hot(y_true: ArrayLike, y_proba: ArrayLike, labels: Any) -> tuple[Array, Array]:
    """Indicators of the observed classes and their probabilities ``(n_samples, n_classes)``."""
    y = as_array(y_true, "y_true", dtype=None)
    proba = as_array(y_proba, "y_proba", (1, 2))
    check_lengths(y_true=y, y_proba=proba)
    if proba.ndim == 1:
        proba = np.column_stack([1.0 - proba, proba])
    if np.any((proba < 0) | (proba > 1)):
        raise ValueError("y_proba has values outside [0, 1]; it must be probabilities.")
    unequal = np.flatnonzero(np.abs(proba.sum(axis=1) - 1.0) > _ROUNDED)
    if len(unequal):
        row = int(unequal[0])
        raise ValueError(
            f"y_proba adds up to {proba[row].sum():g} in row {row}; the probabilities of a row's "
            "classes must add up to 1."
        )
    try:
        classes = np.unique(y) if labels is None else as_array(labels, "labels", dtype=None)
    except TypeError:
        raise TypeError(
            "y_true has labels of several types, which have no order; name all of them in labels."
        ) from None
    if len(classes) != proba.shape[1]:
        raise ValueError(
            f"y_proba has {proba.shape[1]} classes and there are {len(classes)} labels; name all "
            "of them, in the order of the columns, in labels."
        )
    if len(set(classes.tolist())) < len(classes):
        raise ValueError(f"labels={classes.tolist()} has a label twice; name each class once.")
    happened = y[:, None] == classes
    if not happened.any(axis=1).all():
        raise ValueError(f"y_true has a label that is not in labels={classes.tolist()}.")
    return happened.astype(float), proba
