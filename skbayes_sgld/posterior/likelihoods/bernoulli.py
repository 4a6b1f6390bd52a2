"""Binary observations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from skbayes_sgld.posterior.likelihoods.base import Array, LabelLikelihood, Likelihood
from skbayes_sgld.posterior.likelihoods.kernel import RowKernel

_LARGEST = 80.0  # predictor whose exponential single precision holds


class BernoulliKernel(RowKernel):
    """Binary rows, by the signs of their labels: v is the predictor times the sign."""

    @classmethod
    def bind(cls, likelihood: Likelihood, y: Array) -> BernoulliKernel:
        """Kernel of labels 0 and 1, held as signs ``(..., 1, B)``."""
        return cls(likelihood, 2.0 * y[..., None, :] - 1.0)

    def fold(self, design: Array) -> tuple[RowKernel, Array]:
        """Fold the signs into the rows: every label is 1 then."""
        return FoldedKernel(self.likelihood, np.ones_like(self.y)), design * self.y[0][:, None]

    def _signed(self, a: Array) -> Array:
        """Array times the signs, in place."""
        return np.multiply(a, self.y, out=a)

    def log_density(self, u: Array) -> Array:
        """``-log(1 + exp(-v))``."""
        return self.value_and_score(u)[0]  # numpy.logaddexp takes 2.4 times as long

    def score(self, u: Array) -> Array:
        """``sign / (1 + exp(v))``, in place: 0 where the exponential overflows."""
        v = self._signed(u)
        np.exp(v, out=v)
        v += 1.0
        return np.divide(self.y, v, out=v)

    def value_and_score(self, u: Array) -> tuple[Array, Array]:
        """``-log(1 + exp(-v))`` and the score, from one exponential that does not overflow."""
        v = self._signed(u)
        np.negative(v, out=v)
        beyond = None
        if v.max(initial=0.0) > _LARGEST:
            beyond = np.minimum(_LARGEST - v[:, 0], 0.0)
            np.minimum(v, _LARGEST, out=v)
        np.exp(v, out=v)
        total = v + 1.0
        lost = None
        if v.dtype == np.float64:
            # the digits of a small exponential that the sum loses matter under a large weight: with
            # them log is as exact as log1p, in half of the time
            lost = v - (total - 1.0)
            lost /= total
        v /= total
        value = np.log(total, out=total)[:, 0]
        if lost is not None:
            value += lost[:, 0]
        np.negative(value, out=value)
        if beyond is not None:
            value += beyond
        return value, self._signed(v)

    def score_and_curvature(self, u: Array) -> tuple[Array, Array]:
        """Score and ``p (1 - p)``."""
        score = self.score(u)
        other = np.abs(score)  # probability of the label that was not observed
        return score, (other * (1.0 - other))[:, None]


class FoldedKernel(BernoulliKernel):
    """Binary rows whose labels are all 1: a gradient of 2,000 rows takes a sixth less time."""

    def _signed(self, a: Array) -> Array:
        return a


@dataclass(eq=False, repr=False)
class Bernoulli(LabelLikelihood):
    """Binary observations, ``P(y = 1) = 1 / (1 + exp(-eta))``; y is 0 or 1."""

    averages = True
    increasing = True
    symmetric = True
    kernel = BernoulliKernel

    def gains(self, design: Array, y: Array) -> Array:
        """Rows of the design, with a minus sign for class 0.

        A direction along which no row loses separates the classes (Albert & Anderson 1984).
        """
        return design * (2.0 * y - 1.0)[:, None]

    def averaged(self, u: Array, variance: Array, y: Array) -> tuple[Array, Array]:
        """Score and curvature averaged over normal errors of the predictor ``u (..., B)``.

        The logistic function is approximated by a normal distribution function (MacKay 1992,
        eq. 10).
        """
        shrink = 1.0 / np.sqrt(1.0 + np.pi * variance / 8.0)
        p = expit(shrink * u)
        return y - p, shrink * p * expit(-shrink * u)

    def mean(self, u: Array) -> Array:
        """``p``, the probability of the second class."""
        return expit(u[:, 0])

    def variance(self, u: Array) -> Array:
        """``p (1 - p)``."""
        return expit(u[:, 0]) * expit(-u[:, 0])

    def probabilities(self, u: Array) -> tuple[Array, Array]:
        """``(1 - p, p)`` and ``(p, 1 - p)``, each element from its own exponential."""
        p = expit(np.concatenate([-u, u], axis=1))
        return p, p[:, ::-1]

    def mean_smaller(self, eta: Array, share: Array) -> Array:
        """Average of ``1 / (1 + exp(eta))``."""
        with np.errstate(over="ignore"):  # of a probability that is zero
            np.exp(eta, out=eta)
        eta += eta.dtype.type(1)
        np.reciprocal(eta, out=eta)
        return (eta @ share.astype(eta.dtype)).astype(float)

    def log_probabilities(self, u: Array) -> tuple[Array, Array]:
        """Logs of ``(1 - p, p)`` and of ``(p, 1 - p)``."""
        log_p = -np.logaddexp(0.0, np.concatenate([u, -u], axis=1))
        return log_p, log_p[:, ::-1]
