"""Scores of whole distributions, from draws, densities or distribution functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from skbayes_sgld._checks import as_array, as_weights, check_lengths, check_size
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._typing import Array

REACH = 6.0  # sds around the mean beyond which a distribution function is 0 or 1


@numpy_defaults
def log_predictive_density(
    log_likelihood: ArrayLike, *, draw_weights: Any = None, sample_weight: Any = None
) -> float:
    """Mean over rows of the log of the likelihood's mean over draws; greater is better.

    Parameters
    ----------
    log_likelihood : array-like of shape (n_samples, n_draws)
        Log density of every row under every draw, from an estimator's ``log_likelihood(X, y)``.
    draw_weights : array-like of shape (n_draws,), default=None
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    score : float

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.metrics import log_predictive_density
    >>> round(log_predictive_density(np.log([[0.2, 0.4], [0.5, 0.5]])), 3)
    -0.949
    """
    each = as_array(log_likelihood, "log_likelihood", (2,), ensure_all_finite=False)
    if not np.all(each < np.inf):
        raise ValueError(
            f"log_likelihood has the value {each[~(each < np.inf)][0]:g}; log densities must be "
            "below infinity and not NaN."
        )
    weights = as_weights(draw_weights, "draw_weights", each.shape[1])
    mixed = logsumexp(each, axis=1, b=weights / weights.sum())
    return mean_of_rows(mixed, sample_weight)


@numpy_defaults
def crps(
    y_true: ArrayLike,
    y_draws: ArrayLike,
    *,
    draw_weights: Any = None,
    sample_weight: Any = None,
) -> float:
    """Continuous ranked probability score of draws; in the units of y, smaller is better.

    The score is exact for the empirical distribution of the draws. With S draws it exceeds the
    score of the distribution that they come from, by a relative error of order 1 / S. With one draw
    it is the absolute error.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_draws : array-like of shape (n_samples, n_draws)
        Draws of every row, as from ``sample_y``.
    draw_weights : array-like of shape (n_draws,), default=None
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    score : float

    References
    ----------
    Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation, eq. 21.

    Examples
    --------
    >>> from skbayes_sgld.metrics import crps
    >>> crps([0.0, 1.0], [[-1.0, 1.0], [1.0, 1.0]])
    0.25
    """
    y, draws = check_target(y_true), as_array(y_draws, "y_draws", (2,))
    check_lengths(y_true=y, y_draws=draws)
    check_size(float(np.abs(draws).max()), "y_draws", low=0.0)
    weights = as_weights(draw_weights, "draw_weights", draws.shape[1])
    share = weights / weights.sum()
    error = np.abs(draws - y[:, None]) @ share
    order = draws.argsort(axis=1)
    below = np.cumsum(share[order], axis=1)[:, :-1]
    gaps = np.diff(np.take_along_axis(draws, order, axis=1), axis=1)
    spread = (below * (1.0 - below) * gaps).sum(axis=1)
    return mean_of_rows(error - spread, sample_weight)


def mean_of_rows(values: Array, sample_weight: Any) -> Any:
    """Weighted mean over the rows: a float if ``values`` is a vector, otherwise an array."""
    weights = as_weights(sample_weight, "sample_weight", len(values))
    some = weights > 0.0  # infinity times a weight of 0 would be nan
    mean = np.average(values[some], axis=0, weights=weights[some])
    return float(mean) if mean.ndim == 0 else mean


def check_target(y_true: ArrayLike) -> Array:
    """Observations ``(n,)`` as floats."""
    y = as_array(y_true, "y_true")
    check_size(float(np.abs(y).max()), "y_true", low=0.0)
    return y


# ---- from a distribution function ---------------------------------------------------------------


def integrated_crps(
    cdf: Callable[[Array], Array],
    y: Array,
    mean: Array,
    sd: Array,
    slope: Callable[[Array], Array],
    lowest: float = -np.inf,
) -> Array:
    """CRPS of each row by quadrature of its distribution function.

    The error is 3e-5 sds, and with very heavy tails or a density that is infinite at its end 2e-4.
    Gauss rules stand between the ends, one sd about the mean, and y: over the whole range they
    would miss the core of a distribution with heavy tails.

    Parameters
    ----------
    cdf : callable
        Function from points ``(n, m)`` to probabilities of their shape.
    y, mean, sd : ndarray of shape (n,)
        Observations, and moments of the distributions.
    slope : callable
        Function from points ``(n, m)`` to the absolute derivative of the transformation into the
        units of the score.
    lowest : float, default=-inf
        Least number that can be observed; the distribution function has a bend there.
    """
    low, high = np.maximum(mean - REACH * sd, lowest), mean + REACH * sd
    middle = np.clip(y, low, high)
    core = mean - (mean - low) / REACH, mean + sd
    edges = np.sort([low, *core, high, middle], axis=0)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    nodes, weights = 0.5 + 0.5 * nodes, 0.5 * weights
    # in the first part they are squared: a density may be infinite at the lowest number
    rules = [(nodes**2, 2.0 * nodes * weights), *[(nodes, weights)] * 3]
    lengths = np.diff(edges, axis=0)
    parts = zip(edges, lengths, rules, strict=False)
    t = np.hstack([start[:, None] + np.outer(length, x) for start, length, (x, _) in parts])
    weight = np.hstack([np.outer(length, w) for length, (_, w) in zip(lengths, rules, strict=True)])
    below = cdf(t)
    below = np.where(t < middle[:, None], below, 1.0 - below)
    away = (y - middle)[:, None]  # there one side is 1
    beyond = slope(middle[:, None] + away * nodes) @ weights * np.abs(away[:, 0])
    integral: Array = (np.square(below) * slope(t) * weight).sum(axis=1) + beyond
    return integral


def summed_crps(
    cdf: Callable[[Array], Array], y: Array, mean: Array, sd: Array, top: ArrayLike = np.inf
) -> Array:
    """CRPS of each row's distribution of whole numbers from 0 to ``top``, within 1e-4 sds.

    The sum over the numbers of a panel is that of the parabola through the values at its ends and
    its middle. Panels are as wide as a fourth of the distance from 0 and from the top, where
    probabilities may rise steeply, and at most two fifths of an sd; of two numbers they are exact.
    """
    reach = np.ceil(REACH * sd) + REACH
    low = np.maximum(np.floor(mean - reach), 0.0)
    high = np.minimum(np.ceil(mean + reach), top)
    middle = np.clip(y, low, high)
    at, knots, weights = low, [low], []
    while np.any(at < high):
        left = np.where(at < middle, middle, high) - at  # y belongs to the upper side
        half = np.floor(np.minimum(np.minimum(at, top - at) / 8.0, sd / 5.0))
        # beyond 2^53 neighbouring floats are further apart than 1
        half = np.maximum(np.minimum(half, left // 2.0), np.maximum(np.spacing(at), 1.0))
        n = np.minimum(2.0 * half, left)
        # sums of 1, x and x^2 over x = 0 ... n - 1
        first, second = 0.5 * n * (n - 1.0), (n - 1.0) * n * (2.0 * n - 1.0) / 6.0
        inner = (2.0 * half * first - second) / np.square(half)
        outer = 0.5 * (second - half * first) / np.square(half)
        weights.append([n - inner - outer, inner, outer])
        knots += [at + half, at + n]
        at = at + n
    total: Array = np.abs(y - middle)  # beyond the numbers, where one side is 1
    below = cdf(np.column_stack(knots))
    for number, three in enumerate(weights):
        side = below[:, 2 * number : 2 * number + 3]
        is_lower = (knots[2 * number] < middle)[:, None]
        side = np.square(np.where(is_lower, side, 1.0 - side))
        total = total + np.einsum("kn,nk->n", three, side)
    return total
