"""Observations of several classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import log_softmax, logsumexp

from skbayes_sgld.posterior.likelihoods.base import Array, LabelLikelihood
from skbayes_sgld.posterior.likelihoods.rows import RowKernel, sum_log

_LARGEST = 80.0  # predictor whose exponential single precision holds, a thousand times


class _Rows(RowKernel):
    """Softmax of K classes from K - 1 predictors, the last class's being 0."""

    def __init__(self, y: Array, weight: Array | None, n_classes: int, dtype: type) -> None:
        self.pull = self.level = (y == np.arange(n_classes - 1)[:, None]).astype(float)
        if weight is not None:
            self.pull = self.level = self.pull * weight
        self._weight = weight
        self._numerator = dtype(-1.0) if weight is None else -weight.astype(dtype)

    def score(self, v: Array) -> None:
        """``-p_k``."""
        self._probabilities(v)

    def value_and_score(self, v: Array) -> Array:
        """``-log(1 + sum exp(v_k))``, beside the level, and the score."""
        total, shift = self._probabilities(v)
        value = -sum_log(total, self._weight)
        if shift is not None:
            weighted = shift if self._weight is None else shift * self._weight
            value -= weighted.sum(axis=1, dtype=float)
        return value

    def _probabilities(self, v: Array) -> tuple[Array, Array | None]:
        """Replace v by the score, and return ``1 + sum exp(v_k)`` of each row.

        Of a row whose largest exponential would overflow they are less that predictor, the second
        array, which is 0 of other rows: how these are rounded does not depend on any other chain.
        """
        shift: Array | None = None
        last: Any = 1.0
        if v.max(initial=0.0) > _LARGEST:
            largest = v.max(axis=1)
            shift = np.where(largest > _LARGEST, largest, 0.0)
            v -= shift[:, None]
            last = np.exp(-shift)
        np.exp(v, out=v)
        total = v[:, 0] + last
        for k in range(1, v.shape[1]):  # a sum over so short an axis takes three times as long
            total += v[:, k]
        v *= np.divide(self._numerator, total)[:, None]
        return total, shift


@dataclass(eq=False, repr=False)
class Categorical(LabelLikelihood):
    """Observations of K classes, ``P(y = k) = softmax(eta)_k``; y holds codes 0 ... K - 1.

    Parameters
    ----------
    n_classes : int, default=3
        Number of classes K.
    """

    n_classes: int = 3
    shift_invariant = True

    @property
    def n_predictors(self) -> int:  # type: ignore[override]
        """K: one linear predictor per class."""
        return self.n_classes

    def gains(self, design: Array, y: Array) -> sparse.sparray:
        """Differences between the predictor of each row's own class and those of the others.

        A direction along which none falls separates the classes (Albert & Anderson 1984).
        """
        width, K, codes = design.shape[1], self.n_classes, y.astype(int)
        own, others = np.eye(K)[codes], []
        for k in range(K):
            difference = (own - np.eye(K)[k])[codes != k, :, None] * design[codes != k, None]
            others.append(sparse.csr_array(difference.reshape(-1, K * width)))
        return sparse.vstack(others)

    def _observed(self, y: Array) -> Array:
        return y[..., None, :] == np.arange(self.n_classes)[:, None]

    def log_density(self, u: Array, y: Array) -> Array:
        """Log of the observed class's probability."""
        return np.where(self._observed(y), log_softmax(u, axis=1), 0.0).sum(axis=1)

    def score(self, u: Array, y: Array) -> Array:
        """``[y = k] - p_k``."""
        p = u - u.max(axis=1, keepdims=True)  # in place from here: large temporaries cost most
        np.exp(p, out=p)
        p *= -1.0 / p.sum(axis=1, keepdims=True)
        p += self._observed(y).astype(float)
        return p

    def value_and_score(self, u: Array, y: Array) -> tuple[Array, Array]:
        """Log density and score, from one exponential per class."""
        observed = self._observed(y).astype(float)
        shifted = u - u.max(axis=1, keepdims=True)
        exponential = np.exp(shifted)
        total = exponential.sum(axis=1)
        shifted *= observed
        value = shifted.sum(axis=1) - np.log(total)
        exponential *= -1.0 / total[:, None]
        exponential += observed
        return value, exponential

    def bind_rows(self, y: Array, weight: Array | None, dtype: type) -> RowKernel:
        """Rows whose exponentials are one fewer than the classes."""
        return _Rows(y, weight, self.n_classes, dtype)

    def curvature(self, u: Array, y: Array) -> Array:
        """``diag(p) - p p^T``."""
        return self.score_and_curvature(u, y)[1]

    def score_and_curvature(self, u: Array, y: Array) -> tuple[Array, Array]:
        """``[y = k] - p_k`` and ``diag(p) - p p^T``, from one exponential per class."""
        p = self.mean(u)
        outer = p[:, :, None] * p[:, None]
        np.negative(outer, out=outer)
        k = np.arange(self.n_classes)
        outer[:, k, k] += p
        return np.subtract(self._observed(y), p, out=p), outer

    def mean(self, u: Array) -> Array:
        """Probability of every class ``(C, K, B)``."""
        p = u - u.max(axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        return p

    def probabilities(self, u: Array) -> tuple[Array, Array]:
        """Softmax probability of each class, and of the other classes together.

        ``1 - p_k`` loses digits for the likeliest class alone; there the others are summed.
        """
        p = self.mean(u)
        rest, first = 1.0 - p, p.argmax(axis=1)[:, None]
        small = p.copy()
        np.put_along_axis(small, first, 0.0, axis=1)
        np.put_along_axis(rest, first, small.sum(axis=1, keepdims=True), axis=1)
        return p, rest

    def mean_probabilities(self, u: Array, share: Array) -> Array:
        """Averages of the softmax probabilities; normalised while they are averaged."""
        u -= u.max(axis=1, keepdims=True)
        np.exp(u, out=u)
        weight = share.astype(u.dtype) / u.sum(axis=1)
        return np.matmul(u, weight[:, :, None])[..., 0].astype(float)

    def log_probabilities(self, u: Array) -> tuple[Array, Array]:
        """Log softmax, and the log probability of the other classes together."""
        log_p, first = log_softmax(u, axis=1), u.argmax(axis=1)[:, None]
        others = log_p.copy()
        np.put_along_axis(others, first, -np.inf, axis=1)
        rest = np.log1p(-np.minimum(np.exp(others), 0.5))  # no other class has more than half
        np.put_along_axis(rest, first, logsumexp(others, axis=1, keepdims=True), axis=1)
        return log_p, rest
