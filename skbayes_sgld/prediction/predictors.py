"""Predictions as functions of the draws, by blocks of rows.

Conventions
-----------
A :class:`Predictor` takes rows to their K predictors under each of S draws; ``weights`` is
``(S,)`` or None. Nothing here draws random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from skbayes_sgld._linalg import MAX_DENSE, one_blas_thread
from skbayes_sgld.diagnostics import quantiles
from skbayes_sgld.prediction.mixture import mixture_quantile

Array = NDArray[Any]

_BLOCK = 2**20  # numbers that the temporaries of a block may hold


def _map_blocks(function: Callable[[slice], Array], n_rows: int, n_numbers: int) -> Array:
    """Return ``function`` of blocks of rows, put together; blocks share the cores.

    A block is of so many rows that ``n_numbers`` a row stay in cache: memory does not grow with
    the rows, and threads help, since NumPy lets go of the interpreter inside a block.
    """
    size = max(1, _BLOCK // max(n_numbers, 1))
    blocks = [slice(a, min(a + size, n_rows)) for a in range(0, n_rows, size)]
    workers = min(effective_n_jobs(-1), len(blocks))
    if workers <= 1:
        return np.concatenate([function(rows) for rows in blocks])
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        return np.concatenate(list(pool.map(function, blocks)))


class Predictor:
    """What takes rows to their predictors under every draw.

    Attributes
    ----------
    n_draws, n_predictors : int
    """

    n_draws: int
    n_predictors: int

    def __call__(self, X: Array) -> Array:
        """Return the predictors ``(K, n, S)`` of the rows ``X (n, d)``."""
        raise NotImplementedError

    def deviations(self, share: Array, scale: Array) -> Callable[[Array], tuple[Array, Array]]:
        """Return what takes rows to the centre and the deviations of their mixtures.

        They are the mean ``(n,)`` of the first predictor over draws of weight ``share (S,)``, and
        every draw's own less that, over its ``scale (S,)``, in single precision ``(n, S)``.
        """

        def deviations_of(X: Array) -> tuple[Array, Array]:
            values = self(X)[0]
            mean = values @ share
            return mean, ((values - mean[:, None]) / scale).astype(np.float32)

        return deviations_of


class LinearPredictor(Predictor):
    """The linear predictors of ``coef (S, K, d)`` and ``intercept (S, K)``."""

    def __init__(self, coef: Array, intercept: Array) -> None:
        self.n_draws, self.n_predictors, _ = coef.shape
        self._coef, self._intercept = coef, intercept
        self._slopes = np.ascontiguousarray(coef.transpose(1, 2, 0))
        self._levels = np.ascontiguousarray(intercept.T)[:, None]

    def __call__(self, X: Array) -> Array:
        """Return the linear predictors ``(K, n, S)``."""
        eta = X @ self._slopes
        eta += self._levels
        return eta

    def deviations(self, share: Array, scale: Array) -> Callable[[Array], tuple[Array, Array]]:
        """Return what takes rows to the centre and the deviations of their mixtures.

        Rows are seen from where the regression function is known best, so that what is left is
        small against the noise and a product in single precision holds it.
        """
        slope, level = self._coef[:, 0], self._intercept[:, 0]
        if slope.shape[1] > MAX_DENSE:
            return super().deviations(share, scale)
        mean_slope, mean_level = share @ slope, share @ level
        pivot = _pivot(slope - mean_slope, level - mean_level, share)
        level_left = (level - mean_level + (slope - mean_slope) @ pivot) / scale
        slope_left = ((slope - mean_slope) / scale[:, None]).T

        def deviations_of(X: Array) -> tuple[Array, Array]:
            centred = X - pivot
            deviation = centred.astype(np.float32) @ slope_left.astype(np.float32)
            deviation += level_left.astype(np.float32)
            return X @ mean_slope + mean_level, deviation

        return deviations_of


def _pivot(slope: Array, level: Array, share: Array) -> Array:
    """Return the point at which the regression function varies least from draw to draw."""
    weighted = slope * share[:, None]
    return -np.linalg.lstsq(weighted.T @ slope, weighted.T @ level, rcond=1e-12)[0]


def mean_log_probability(X: Array, predictor: Predictor, weights: Array | None) -> Array:
    """Return log of the posterior mean of each class's probability, and of its complement.

    Returns
    -------
    log_probability : ndarray of shape (n, n_classes, 2)
        Of the class, and of all others together: neither is lost where the other is near 1.
    """
    K = predictor.n_predictors

    def block(rows: slice) -> Array:
        eta = predictor(X[rows])
        if K == 1:
            both = [_log_mean(-np.logaddexp(0.0, sign * eta[0]), weights) for sign in (1, -1)]
            return np.stack([np.stack(both, axis=1), np.stack(both[::-1], axis=1)], axis=2)
        log_p = log_softmax(eta, axis=0)
        others = [_log_mean(logsumexp(np.delete(log_p, k, 0), axis=0), weights) for k in range(K)]
        return np.stack([_log_mean(log_p, weights).T, np.stack(others, axis=1)], axis=2)

    return _map_blocks(block, X.shape[0], predictor.n_draws * max(K, 2) * 4)


def _log_mean(log_values: Array, weights: Array | None) -> Array:
    if weights is None:
        return logsumexp(log_values, axis=-1) - np.log(log_values.shape[-1])
    return logsumexp(log_values, b=weights / weights.sum(), axis=-1)


def mean_probability(X: Array, predictor: Predictor, weights: Array | None) -> Array:
    """Return the posterior mean of each class's probability ``(n, n_classes)``."""
    K = predictor.n_predictors
    share = None if weights is None else weights / weights.sum()

    def block(rows: slice) -> Array:
        p = _probabilities(predictor(X[rows]))
        mean = (p.mean(axis=-1) if share is None else p @ share).T
        if K == 1:
            return np.hstack([1.0 - mean, mean])
        return mean / mean.sum(axis=1, keepdims=True)

    return _map_blocks(block, X.shape[0], predictor.n_draws * K * 2)


def _probabilities(eta: Array) -> Array:
    """Return the probability of the positive class ``(1, ...)``, or of all; eta is used up."""
    if len(eta) == 1:
        eta *= 0.5
        np.tanh(eta, out=eta)
        eta *= 0.5
        eta += 0.5
        return eta
    eta -= eta.max(axis=0)
    np.exp(eta, out=eta)
    eta /= eta.sum(axis=0)
    return eta


def class_probabilities(X: Array, predictor: Predictor) -> Array:
    """Return the probability of every class ``(n_classes, n, S)`` under every draw."""
    p = _probabilities(predictor(X))
    return np.concatenate([1.0 - p, p]) if len(p) == 1 else p


def probability_quantiles(X: Array, predictor: Predictor, weights: Array | None, q: Array) -> Array:
    """Return the quantiles over the draws of each class's probability ``(n, K or 2, len(q))``."""
    K = predictor.n_predictors

    def block(rows: slice) -> Array:
        p = _probabilities(predictor(X[rows]))
        if K == 1:
            return np.stack([quantiles(1.0 - p[0], q, weights), quantiles(p[0], q, weights)], 1)
        return np.stack([quantiles(p_k, q, weights) for p_k in p], axis=1)

    return _map_blocks(block, X.shape[0], predictor.n_draws * K * 2)


def mean_quantiles(X: Array, predictor: Predictor, weights: Array | None, q: Array) -> Array:
    """Return the quantiles over the draws of the regression function ``(n, len(q))``."""

    def block(rows: slice) -> Array:
        return quantiles(predictor(X[rows])[0], q, weights)

    return _map_blocks(block, X.shape[0], predictor.n_draws * 2)


def predictive_quantiles(
    X: Array, predictor: Predictor, variance: Array, weights: Array | None, q: Array
) -> Array:
    """Return the quantiles of the posterior predictive mixture ``(n, len(q))``.

    Each draw contributes a normal law; the quantile solves F(t) = q for their mixture's
    distribution function F.
    """
    share, scale = _shares(predictor, weights), np.sqrt(variance)
    deviations_of = predictor.deviations(share, scale)

    def quantiles_of(rows: slice) -> Array:
        mean, deviation = deviations_of(X[rows])
        return np.column_stack([mean + mixture_quantile(deviation, scale, share, p) for p in q])

    return _map_blocks(quantiles_of, X.shape[0], predictor.n_draws * 4)


def _shares(predictor: Predictor, weights: Array | None) -> Array:
    n = predictor.n_draws
    return np.full(n, 1.0 / n) if weights is None else weights / weights.sum()


def mean_and_variance(X: Array, predictor: Predictor, weights: Array | None) -> Array:
    """Return mean and variance over the draws of the regression function ``(n, 2)``."""
    share = _shares(predictor, weights)

    def block(rows: slice) -> Array:
        values = predictor(X[rows])[0]
        mean = values @ share
        return np.column_stack([mean, np.square(values - mean[:, None]) @ share])

    return _map_blocks(block, X.shape[0], predictor.n_draws * 2)
