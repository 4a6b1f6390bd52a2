"""Predictions as functions of the draws, by blocks of rows.

Conventions
-----------
``coef`` is ``(S, K, d)`` and ``intercept`` ``(S, K)`` for S draws of K linear predictors;
``weights`` is ``(S,)`` or None. Nothing here draws random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp, ndtr

from skbayes_sgld.diagnostics import quantiles

Array = NDArray[Any]

_BLOCK = 2**21  # numbers a temporary of a block may hold
_MAX_NEWTON = 60


def row_blocks(n_rows: int, n_numbers: int) -> Iterator[slice]:
    """Yield slices of rows such that ``n_numbers`` a row fit a block."""
    size = max(1, _BLOCK // max(n_numbers, 1))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def linear_predictor(X: Array, coef: Array, intercept: Array) -> Array:
    """Return the linear predictors ``(K, n, S)`` of every row under every draw."""
    return X @ coef.transpose(1, 2, 0) + intercept.T[:, None]


def mean_log_probability(X: Array, coef: Array, intercept: Array, weights: Array | None) -> Array:
    """Return log of the posterior mean of each class's probability, and of its complement.

    Returns
    -------
    log_probability : ndarray of shape (2, n, n_classes)
        Of the class, and of all others together: neither is lost where the other is near 1.
    """
    K = coef.shape[1]
    n_classes = max(K, 2)
    result = np.empty((2, X.shape[0], n_classes))
    for rows in row_blocks(X.shape[0], len(coef) * n_classes * 2):
        eta = linear_predictor(X[rows], coef, intercept)
        if K == 1:
            log_p = -np.logaddexp(0.0, np.stack([eta[0], -eta[0]]))
            both = _log_mean(log_p, weights)
            result[0, rows], result[1, rows] = both.T, both[::-1].T
        else:
            log_p = log_softmax(eta, axis=0)
            result[0, rows] = _log_mean(log_p, weights).T
            for k in range(K):
                others = logsumexp(np.delete(log_p, k, axis=0), axis=0)
                result[1, rows, k] = _log_mean(others, weights)
    return result


def _log_mean(log_values: Array, weights: Array | None) -> Array:
    if weights is None:
        return logsumexp(log_values, axis=-1) - np.log(log_values.shape[-1])
    return logsumexp(log_values, b=weights / weights.sum(), axis=-1)


def mean_probability(X: Array, coef: Array, intercept: Array, weights: Array | None) -> Array:
    """Return the posterior mean of each class's probability ``(n, n_classes)``."""
    K = coef.shape[1]
    result = np.empty((X.shape[0], max(K, 2)))
    for rows in row_blocks(X.shape[0], len(coef) * K * 2):
        p = _probabilities(linear_predictor(X[rows], coef, intercept))
        mean = p.mean(axis=-1) if weights is None else p @ (weights / weights.sum())
        result[rows, -K:] = mean.T
    if K == 1:
        result[:, 0] = 1.0 - result[:, 1]
    else:
        result /= result.sum(axis=1, keepdims=True)
    return result


def _probabilities(eta: Array) -> Array:
    """Return the probability of the positive class ``(1, ...)``, or of all ``(K, ...)``."""
    if len(eta) == 1:
        return 0.5 + 0.5 * np.tanh(0.5 * eta)
    return np.exp(log_softmax(eta, axis=0))


def class_probabilities(X: Array, coef: Array, intercept: Array) -> Array:
    """Return the probability of every class ``(n_classes, n, S)`` under every draw."""
    p = _probabilities(linear_predictor(X, coef, intercept))
    return np.concatenate([1.0 - p, p]) if len(p) == 1 else p


def probability_quantiles(
    X: Array, coef: Array, intercept: Array, weights: Array | None, q: Array
) -> Array:
    """Return the quantiles over the draws of each class's probability ``(n, K or 2, len(q))``."""
    K = coef.shape[1]
    result = np.empty((X.shape[0], max(K, 2), len(q)))
    for rows in row_blocks(X.shape[0], len(coef) * K):
        p = _probabilities(linear_predictor(X[rows], coef, intercept))
        for k in range(K):
            result[rows, k - K] = quantiles(p[k], q, weights)
        if K == 1:
            result[rows, 0] = quantiles(1.0 - p[0], q, weights)
    return result


def mean_quantiles(
    X: Array, coef: Array, intercept: Array, weights: Array | None, q: Array
) -> Array:
    """Return the quantiles over the draws of the regression function ``(n, len(q))``."""
    result = np.empty((X.shape[0], len(q)))
    for rows in row_blocks(X.shape[0], len(coef)):
        result[rows] = quantiles(linear_predictor(X[rows], coef, intercept)[0], q, weights)
    return result


def predictive_quantiles(
    X: Array, coef: Array, intercept: Array, variance: Array, weights: Array | None, q: Array
) -> Array:
    """Return the quantiles of the posterior predictive mixture ``(n, len(q))``.

    Each draw contributes a normal law; the quantile solves F(t) = q for their mixture's
    distribution function F, by Newton's method kept inside a bracket.
    """
    share = np.full(len(coef), 1.0 / len(coef)) if weights is None else weights / weights.sum()
    sd = np.sqrt(variance)
    result = np.empty((X.shape[0], len(q)))
    for rows in row_blocks(X.shape[0], len(coef) * 4):
        mean = linear_predictor(X[rows], coef, intercept)[0]
        for j, level in enumerate(q):
            result[rows, j] = _mixture_quantile(mean, sd, share, level)
    return result


def _mixture_quantile(mean: Array, sd: Array, share: Array, q: float) -> Array:
    center = mean @ share
    width = np.sqrt(np.square(mean - center[:, None]) @ share + np.square(sd) @ share)
    # Cantelli's inequality: no quantile is further from the mean
    low = center - width * np.sqrt((1 - q) / q)
    high = center + width * np.sqrt(q / (1 - q))
    t, active = center.copy(), np.arange(len(center))
    for _ in range(_MAX_NEWTON):
        z = (t[active, None] - mean[active]) / sd
        excess = ndtr(z) @ share - q
        density = np.exp(-0.5 * np.square(z)) @ (share / sd) / np.sqrt(2 * np.pi)
        high[active] = np.where(excess > 0, t[active], high[active])
        low[active] = np.where(excess < 0, t[active], low[active])
        with np.errstate(divide="ignore", invalid="ignore"):
            proposal = t[active] - excess / density
        inside = (proposal > low[active]) & (proposal < high[active])
        moved = np.where(inside, proposal, 0.5 * (low[active] + high[active]))
        step, t[active] = np.abs(moved - t[active]), moved
        active = active[step > 1e-7 * width[active]]
        if not len(active):
            break
    return t
