"""Observations of one of several classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import log_softmax, logsumexp

from skbayes_sgld.likelihoods.base import Array, LabelLikelihood, Likelihood
from skbayes_sgld.likelihoods.bernoulli import STEEPEST_BEND
from skbayes_sgld.likelihoods.kernel import RowKernel

# second derivative of the difference of two of K softmax probabilities: ``2 / (3 sqrt(3))``
STEEPEST_DIFFERENCE = 4.0 * STEEPEST_BEND
_LARGEST = 80.0  # predictor up to which a sum of 1,000 exponentials is finite in float32


class CategoricalKernel(RowKernel):
    """Softmax rows, by the contrasts of all classes but the last with the last.

    It takes one exponential and one product fewer than there are classes: 1.5x for three classes.
    """

    @classmethod
    def bind(cls, likelihood: Likelihood, y: Array) -> CategoricalKernel:
        """Kernel of codes, held as indicators of the first K - 1 classes ``(..., K - 1, B)``."""
        classes = np.arange(likelihood.n_products)[:, None]
        return cls(likelihood, (y[..., None, :] == classes).astype(y.dtype))

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """``u_y - log(1 + sum exp(u_k))``, ``[y = k] - p_k`` and ``diag(p) - p p^T``."""
        values, shift, last = list[Array](), np.zeros(1, u.dtype), np.ones(1, u.dtype)
        if 0 in orders:
            values.append(np.add.reduce(u * self.y, axis=1))
        if u.max(initial=0.0) > _LARGEST:
            # subtract a row's largest predictor only if its exponential would overflow: the
            # rounding of the other rows must not depend on other chains
            largest = u.max(axis=1)
            shift = np.where(largest > _LARGEST, largest, 0.0).astype(u.dtype)
            u -= shift[:, None]
            last = np.exp(-shift)
        np.exp(u, out=u)
        total: Array = np.add.reduce(u, axis=1)
        total += last
        u /= total[:, None]
        if 0 in orders:
            values[0] -= np.log(total)
            values[0] -= shift
        if 2 in orders:
            curvature = u[:, :, None] * u[:, None]
            np.negative(curvature, out=curvature)
            k = np.arange(u.shape[1])
            curvature[:, k, k] += u
            return [*values, np.subtract(self.y, u, out=u), curvature]
        if 1 in orders:
            values.append(np.subtract(self.y, u, out=u))
        return values


@dataclass(eq=False, repr=False)
class Categorical(LabelLikelihood):
    r"""Observations of K classes; y holds codes 0 ... K - 1.

    .. math:: P(y = k) = \frac{e^{\eta_k}}{\sum_l e^{\eta_l}}.

    Parameters
    ----------
    n_classes : int, default=3
        Number of classes K.
    """

    n_classes: int = 3
    shift_invariant = True
    kernel = CategoricalKernel

    @property
    def n_predictors(self) -> int:  # type: ignore[override]
        """K: one linear predictor per class."""
        return self.n_classes

    def gains(self, design: Array, y: Array) -> sparse.sparray:
        """Differences between the predictor of each row's own class and those of the others.

        A direction along which none of them falls separates the classes (Albert & Anderson 1984).
        """
        width, K, codes = design.shape[1], self.n_classes, y.astype(int)
        own, others = np.eye(K)[codes], []
        for k in range(K):
            difference = (own - np.eye(K)[k])[codes != k, :, None] * design[codes != k, None]
            others.append(sparse.csr_array(difference.reshape(-1, K * width)))
        return sparse.vstack(others)

    def mean(self, u: Array) -> Array:
        """Probability of every class ``(C, K, B)``."""
        p = u - u.max(axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        return p

    def probabilities(self, u: Array) -> tuple[Array, Array]:
        """Softmax probability of each class, and of the other classes together.

        ``1 - p_k`` loses digits only for the likeliest class; for it the others are summed.
        """
        p = self.mean(u)
        rest, first = 1.0 - p, p.argmax(axis=1)[:, None]
        small = p.copy()
        np.put_along_axis(small, first, 0.0, axis=1)
        np.put_along_axis(rest, first, small.sum(axis=1, keepdims=True), axis=1)
        return p, rest

    def decided(self, mean: Array, variance: Array, own: Array, share: Array) -> Array:
        """Class of the largest mean predictor, if it is far enough above the others.

        The second derivative of a difference of two probabilities, along a direction of length 1,
        is at most :data:`STEEPEST_DIFFERENCE`, which it has if there are no other classes.
        """
        p = self.mean(mean.T[:, :, None])[..., 0]
        largest = np.partition(p, self.n_classes - 2, axis=1)
        bound = 0.5 * STEEPEST_DIFFERENCE * variance.sum(axis=0)
        certain = largest[:, -1] - largest[:, -2] > bound
        return np.where(certain, p.argmax(axis=1), -1)

    def probability_draws(self, eta: Array, own: Array) -> Array:
        """Softmax probabilities, from contrasts."""
        last = _exponentials(eta)[0]
        p = np.empty((len(eta), self.n_classes, eta.shape[2]), eta.dtype)
        share = 1.0 / (eta.sum(axis=1) + last)
        np.multiply(eta, share[:, None], out=p[:, :-1])
        np.multiply(share, last, out=p[:, -1])
        return p

    def log_probability_draws(self, eta: Array, own: Array, codes: Array) -> Array:
        """Logs of the softmax probabilities, from contrasts."""
        of_y = np.zeros((len(eta), eta.shape[2]), eta.dtype)
        rows = np.flatnonzero(codes < self.n_classes - 1)
        of_y[rows] = eta[rows, codes[rows].astype(np.intp)]
        last, shift = _exponentials(eta)
        total = eta.sum(axis=1)
        total += last
        np.log(total, out=total)
        total += shift
        return np.subtract(of_y, total, out=total)

    def log_probabilities(self, u: Array) -> tuple[Array, Array]:
        """Log softmax, and the log probability of the other classes together."""
        log_p, first = log_softmax(u, axis=1), u.argmax(axis=1)[:, None]
        others = log_p.copy()
        np.put_along_axis(others, first, -np.inf, axis=1)
        rest = np.log1p(-np.minimum(np.exp(others), 0.5))  # no other class has more than half
        np.put_along_axis(rest, first, logsumexp(others, axis=1, keepdims=True), axis=1)
        return log_p, rest


def _exponentials(contrasts: Array) -> tuple[Array, Array]:
    """Replace contrasts ``(C, K - 1, B)`` by exponentials over a factor, lest one overflows.

    Returns the exponential of the last class, whose contrast is 0, and the log of the factor.
    """
    shift = np.zeros(1, contrasts.dtype)
    if contrasts.max(initial=0.0) > _LARGEST:
        shift = np.maximum(contrasts.max(axis=1), shift)
        contrasts -= shift[:, None]
    np.exp(contrasts, out=contrasts)
    return np.exp(-shift), shift
