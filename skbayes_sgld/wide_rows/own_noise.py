r"""Likelihoods of rows whose predictor has wide normal noise, which is integrated out.

The likelihood of a total or a count is, up to a constant, a statement about the predictor u and a
latent variable t. For counts t is the log of a gamma variable: a count of 0 has the probability
``exp(-e^u) = P(t > u)``, with a shape of 1, and a count y above 0 the density of t at u, with the
shape y. For totals t is the difference of two such logs: n successes in n trials have the
probability ``(1 + e^{-u})^{-n} = P(t < u)``, with the shapes n and 1 (one label has a logistic t),
and k of them the density of t at u, with the shapes k and n - k. If u = v + e, with normal noise e
several times as wide as t, then e - t is nearly normal, and the likelihood of v is a normal
distribution function or a normal density.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, erfcx, log_ndtr, ndtr, ndtri, polygamma

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Bernoulli, Binomial, Poisson
from skbayes_sgld.likelihoods.binomial import split_totals
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.priors import Normal

KINDS = Bernoulli, Binomial, Poisson
# Least sd of the noise, in logits or log rates. The normal approximation moves the mean of v by
# about a sixth of the latent variable's third cumulant over the variance: for a count of 0 by
# 0.006. Predictors of labels that contradict v by two sds are off by 0.02 sds
_LEAST_SD = 8.0
LOGISTIC = np.pi**2 / 3.0  # variance of the logistic distribution
# Largest ratio of the likelihood of a count of 0 to its normal approximation. That of totals is
# larger in one draw of 1,000
_LARGEST_RATIO = 1.16


class Latent(NamedTuple):
    """Latent variables t of rows: logs of gamma variables, less others for totals.

    Attributes
    ----------
    side : ndarray of shape (n,)
        1 if t is below u, -1 if t is above u, 0 if t is u.
    shape : ndarray of shape (n,)
    other : ndarray of shape (n,) or None
        Shape of the variable that is taken off; None for counts.
    mean, variance : ndarray of shape (n,)
    """

    side: Array
    shape: Array
    other: Array | None
    mean: Array
    variance: Array

    @property
    def least_noise(self) -> Array:
        """Least variance of noise that makes its sum with t nearly normal."""
        third = polygamma(2, self.shape)
        if self.other is not None:
            third = third - polygamma(2, self.other)
        return _LEAST_SD**2 * np.maximum(1.0, np.abs(third / polygamma(2, 1.0)))

    def tilted(self, slope: Array, rows: Array, rng: np.random.Generator) -> Array:
        """Draws of t at some rows, from its density times ``exp(slope t)``."""
        t = np.log(rng.standard_gamma(np.maximum(self.shape[rows] + slope, 0.05)))
        if self.other is None:
            return t
        return t - np.log(rng.standard_gamma(np.maximum(self.other[rows] - slope, 0.05)))


def latent_of(y: Array) -> Latent:
    """Latent variables of rows with totals or counts y."""
    if y.dtype.names is None:
        shape = np.where(y > 0, y, 1.0)
        return Latent(-1.0 * (y == 0), shape, None, digamma(shape), polygamma(1, shape))
    successes, trials = split_totals(y)
    failures = trials - successes
    shape, other = (np.where(number > 0, number, 1.0) for number in (successes, failures))
    mean, variance = digamma(shape) - digamma(other), polygamma(1, shape) + polygamma(1, other)
    return Latent(1.0 * (failures == 0) - (successes == 0), shape, other, mean, variance)


class OwnNoise:
    """Rows with normal noise of given variances; those with t = u come last.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Totals or counts.
    variance : ndarray of shape (n,)
        Variance of the noise.
    offset : ndarray of shape (n,)
        Part of the predictor that is known; v excludes it.
    """

    def __init__(self, y: Array, variance: Array, offset: Array) -> None:
        latent = latent_of(y)
        self._variance, self._offset, self._latent = variance, offset, latent
        k = self.n_sided = int(np.count_nonzero(latent.side))
        self.mean, self.side = latent.mean - offset, latent.side
        self.total = np.sqrt(variance + latent.variance)
        # given e - t, e is normal: a part of it, and the rest
        side, share = self.side[:k], variance[:k] / self.total[:k]
        self._unit, self._part = side / self.total[:k], side * share
        self._rest = np.sqrt(latent.variance[:k] * share / self.total[:k])
        # t of a single label is symmetric, and near enough to normal
        single = latent.other is not None and (latent.shape == 1.0) & (latent.other == 1.0)
        self._skewed = np.flatnonzero(np.broadcast_to(~np.asarray(single), len(y))[:k])

    def score_and_curvature(self, v: Array) -> tuple[Array, Array]:
        """Derivative of the log likelihood ``(..., n)``, and minus its derivative."""
        x = (v - self.mean) / self.total
        score, curvature = -x, np.ones_like(x)
        k = self.n_sided
        signed = self.side[:k] * x[..., :k]
        mills = inverse_mills(signed)
        score[..., :k], curvature[..., :k] = self.side[:k] * mills, mills * (mills + signed)
        return score / self.total, curvature / np.square(self.total)

    def draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Predictors u ``(n,)`` without the offset, given v and y."""
        k, u = self.n_sided, np.empty_like(v)
        x = self._unit * (v[:k] - self.mean[:k])
        below = ndtr(x)

        def propose(rows: Any, n_rows: int) -> None:
            uniform, normal = rng.random(n_rows), rng.standard_normal(n_rows)
            # both noises together: e - t, given the side of u
            both = -ndtri(uniform * below[rows])
            both = np.where(np.isfinite(both), both, -x[rows])
            u[rows] = v[rows] + self._part[rows] * both + self._rest[rows] * normal

        propose(slice(k), k)
        left = self._skewed
        while len(left):
            left = left[~self._accepted(u[left], left, rng)]
            propose(left, len(left))
        if k < len(v):
            u[k:] = self._draw_at_latent(v[k:], rng)
        return u

    def _accepted(self, u: Array, rows: Array, rng: np.random.Generator) -> Array:
        """Whether u of some rows is accepted under the likelihood itself."""
        latent, at = self._latent, u + self._offset[rows]
        normal = self.side[rows] * (at - latent.mean[rows]) / np.sqrt(latent.variance[rows])
        with np.errstate(over="ignore"):
            if latent.other is None:
                value = -np.exp(at)
            else:
                trials = latent.shape[rows] * latent.other[rows]  # one of them is 1
                value = -trials * np.logaddexp(0.0, -self.side[rows] * at)
            ratio = np.exp(value - log_ndtr(normal))
        return rng.random(len(u)) * _LARGEST_RATIO < ratio

    def _draw_at_latent(self, v: Array, rng: np.random.Generator) -> Array:
        """Predictors of rows with t = u.

        The density of t times that of the noise is the density of t with other shapes, times a
        factor near 1.
        """
        k, latent = self.n_sided, self._latent
        mean, variance, offset = latent.mean[k:], self._variance[k:], self._offset[k:]
        slope = (v + offset - mean) / variance
        u, left = np.empty_like(v), np.arange(len(v))
        while len(left):
            u[left] = latent.tilted(slope[left], k + left, rng)
            far = np.square(u[left] - mean[left]) / (2.0 * variance[left])
            left = left[rng.standard_exponential(len(left)) < far]
        return u - offset


def may_collapse(posterior: GLMPosterior) -> bool:
    """Whether the coefficients' priors are independent and normal, and the intercept's flat."""
    prior = posterior.prior
    separate = isinstance(prior, Normal) and prior.covariance is None and prior.proper
    return separate and posterior.linear_prior.intercept.flat


def inverse_mills(x: Array) -> Array:
    """Ratio of the normal density to the normal distribution function at x."""
    dtype = x.dtype.type
    return dtype(np.sqrt(2.0 / np.pi)) / erfcx(x * dtype(-np.sqrt(0.5)))
