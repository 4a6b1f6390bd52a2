"""Binary observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from skbayes_sgld.likelihoods.base import Array, LabelLikelihood, Likelihood
from skbayes_sgld.likelihoods.kernel import RowKernel

STEEPEST_BEND = 0.0963  # largest second derivative of the logistic function: 1 / (6 sqrt(3))
_LARGEST = 80.0  # largest predictor whose exponential is finite in single precision


class BernoulliKernel(RowKernel):
    """Binary rows as signs of their labels; v is the predictor times the sign."""

    @classmethod
    def bind(cls, likelihood: Likelihood, y: Array) -> BernoulliKernel:
        """Kernel of labels 0 and 1, held as signs ``(..., 1, B)``."""
        return cls(likelihood, 2.0 * y[..., None, :] - 1.0)

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """``-log(1 + exp(-v))``, ``sign / (1 + exp(v))`` and ``p (1 - p)``, by one exponential."""
        v = np.multiply(u, self.y, out=u)
        if 0 not in orders:
            np.exp(v, out=v)  # if it overflows the score is 0
            v += 1.0
            score = np.divide(self.y, v, out=v)
            if 2 not in orders:
                return (score,)
            other = np.abs(score)  # probability of the label that was not observed
            return score, (other * (1.0 - other))[:, None]
        np.negative(v, out=v)
        beyond = None
        if v.max(initial=0.0) > _LARGEST:
            beyond = np.minimum(_LARGEST - v[:, 0], 0.0)
            np.minimum(v, _LARGEST, out=v)
        np.exp(v, out=v)
        total = v + 1.0
        rounding = None
        if v.dtype == np.float64:
            # the sum loses digits of a small exponential, which matter under a large weight. With
            # them log is as exact as log1p, in half the time (logaddexp takes 2.4 times as long)
            rounding = v - (total - 1.0)
            rounding /= total
        v /= total
        value = np.log(total, out=total)[:, 0]
        if rounding is not None:
            value += rounding[:, 0]
        np.negative(value, out=value)
        if beyond is not None:
            value += beyond
        curvature = (v * (1.0 - v))[:, None] if 2 in orders else v
        return (value, np.multiply(v, self.y, out=v), curvature)[: len(orders)]


@dataclass(eq=False, repr=False)
class Bernoulli(LabelLikelihood):
    r"""Binary observations, :math:`P(y = 1) = 1 / (1 + e^{-\eta})`; y is 0 or 1."""

    has_sites = True
    increasing = True
    exponential = "odds"
    symmetric = True
    kernel = BernoulliKernel

    def gains(self, design: Array, y: Array) -> Array:
        """Rows of the design, with a minus sign for class 0.

        A direction along which no row's probability falls separates the classes (Albert &
        Anderson 1984).
        """
        return design * (2.0 * y - 1.0)[:, None]

    def mean(self, u: Array) -> Array:
        """``p``, the probability of the second class."""
        return expit(u[:, 0])

    def variance(self, u: Array) -> Array:
        """``p (1 - p)``."""
        return expit(u[:, 0]) * expit(-u[:, 0])

    def probabilities(self, u: Array) -> tuple[Array, Array]:
        """``(1 - p, p)`` and ``(p, 1 - p)``, each probability from its own exponential."""
        p = expit(np.concatenate([-u, u], axis=1))
        return p, p[:, ::-1]

    def total_probabilities(self, eta: Array, own: Array, weight: Array) -> Array:
        """Sums of p, and of all weights without them."""
        second = weight.T.astype(eta.dtype) @ expit(eta[:, 0])
        return np.stack([weight.sum(axis=0)[:, None] - second, second], axis=1)

    def decided(self, mean: Array, variance: Array, own: Array, share: Array) -> Array:
        """Class by the sign of the mean predictor, if the mean of ``p - 1/2`` has its sign."""
        certain = np.abs(expit(mean[0]) - 0.5) > 0.5 * STEEPEST_BEND * variance[0]
        return np.where(certain, mean[0] > 0.0, -1).astype(np.intp)

    def mean_smaller(self, eta: Array, share: Array) -> Array:
        """Average of ``1 / (1 + exp(eta))``."""
        with np.errstate(over="ignore"):  # if the probability is zero
            np.exp(eta, out=eta)
        eta += eta.dtype.type(1)
        np.reciprocal(eta, out=eta)
        return (eta @ share.astype(eta.dtype)).astype(float)

    def log_probabilities(self, u: Array) -> tuple[Array, Array]:
        """Logs of ``(1 - p, p)`` and of ``(p, 1 - p)``."""
        log_p = -np.logaddexp(0.0, np.concatenate([u, -u], axis=1))
        return log_p, log_p[:, ::-1]
