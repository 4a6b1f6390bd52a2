r"""Likelihoods of rows whose predictor has wide normal noise, which is integrated out.

The likelihood of a label or a count is, up to a constant, a statement about the predictor u and a
latent variable t: a label of 1 has the probability ``P(t < u)``, t logistic; a count of 0 has
``exp(-e^u) = P(t > u)``, t the log of an exponential variable; a count y above 0 has the density of
t at u, t the log of a gamma variable of shape y. If u = v + e, with normal noise e several times as
wide as t, then e - t is nearly normal, and the likelihood of v is a normal distribution function or
a normal density.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, erfcx, log_ndtr, ndtr, ndtri, polygamma

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Bernoulli, Likelihood, Poisson
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.priors import Normal

KINDS = Bernoulli, Poisson
# Least sd of the noise, in logits or log rates. The normal approximation moves the mean of v by
# about skewness / (6 sd^2) of the latent variable: for a count of 0, whose t is skewed, by 0.003.
# Predictors of labels that contradict v by two sds are off by 0.02 sds
LEAST_SD = 8.0
LOGISTIC = np.pi**2 / 3.0  # variance of the logistic distribution
_LARGEST_RATIO = 1.16  # of the likelihood of a count of 0 to its normal approximation


class Latent(NamedTuple):
    """Latent variables t of rows.

    Attributes
    ----------
    side : ndarray of shape (n,)
        1 if t is below u, -1 if t is above u, 0 if t is u.
    mean, variance : ndarray of shape (n,)
    """

    side: Array
    mean: Array
    variance: Array


def latent_of(likelihood: Likelihood, y: Array) -> Latent:
    """Latent variables of rows with labels or counts y."""
    if type(likelihood) is Bernoulli:
        return Latent(2.0 * y - 1.0, np.zeros(len(y)), np.full(len(y), LOGISTIC))
    shape = np.maximum(y, 1.0)
    return Latent(-1.0 * (y == 0), digamma(shape), polygamma(1, shape))


class OwnNoise:
    """Rows with normal noise of given variances; those with t = u come last.

    Parameters
    ----------
    likelihood : Bernoulli or Poisson
    y : ndarray of shape (n,)
    variance : ndarray of shape (n,)
        Variance of the noise.
    offset : ndarray of shape (n,)
        Part of the predictor that is known; v excludes it.
    """

    def __init__(self, likelihood: Likelihood, y: Array, variance: Array, offset: Array) -> None:
        latent = latent_of(likelihood, y)
        self._counts, self._y = type(likelihood) is Poisson, y
        self._variance, self._latent = variance, latent
        self.n_sided = int(np.count_nonzero(latent.side))
        self.mean, self.side = latent.mean - offset, latent.side
        self.total = np.sqrt(variance + latent.variance)

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
        k, mean, total = self.n_sided, self.mean, self.total
        x = self.side * (v - mean) / total
        u = np.empty_like(v)
        left = np.arange(len(v) if not self._counts else k)
        while len(left):
            uniform, normal = rng.random(len(left)), rng.standard_normal(len(left))
            # both noises together: e - t, given the side of u
            both = -ndtri(uniform * ndtr(x[left]))
            both = self.side[left] * np.where(np.isfinite(both), both, -x[left])
            share = self._variance[left] / np.square(total[left])
            rest = np.sqrt(share * self._latent.variance[left])
            u[left] = v[left] + total[left] * share * both + rest * normal
            if not self._counts:
                return u
            left = left[~self._accepted(u[left] - mean[left], rng)]
        if self._counts:
            u[k:] = self._draw_positive(v[k:], rng)
        return u

    @staticmethod
    def _accepted(u: Array, rng: np.random.Generator) -> Array:
        """Rows of count 0 whose u, minus the mean of t, is accepted under the likelihood itself."""
        mean, sd = digamma(1.0), np.sqrt(polygamma(1, 1.0))
        with np.errstate(over="ignore"):
            ratio = np.exp(-np.exp(u + mean) - log_ndtr(-u / sd))
        return rng.random(len(u)) * _LARGEST_RATIO < ratio

    def _draw_positive(self, v: Array, rng: np.random.Generator) -> Array:
        """Predictors of rows with counts above 0.

        The density of t = u times that of the noise is a log gamma density of another shape, times
        a factor near 1.
        """
        k = self.n_sided
        mean, variance, shape = self._latent.mean[k:], self._variance[k:], self._y[k:]
        offset = mean - self.mean[k:]
        shape = np.maximum(shape + (v + offset - mean) / variance, 0.05)
        u, left = np.empty_like(v), np.arange(len(v))
        while len(left):
            u[left] = np.log(rng.standard_gamma(shape[left]))
            far = np.square(u[left] - mean[left]) / (2.0 * variance[left])
            left = left[rng.standard_exponential(len(left)) < far]
        return u - offset


def may_collapse(posterior: GLMPosterior) -> bool:
    """Whether rows are few and have no weights, and priors are independent and normal.

    The prior of the intercept is flat.
    """
    prior, n = posterior.prior, posterior.n_samples
    separate = isinstance(prior, Normal) and prior.covariance is None and prior.proper
    few = 2 < n <= posterior.n_params and posterior.weight is None
    return few and separate and posterior.linear_prior.intercept.flat


def inverse_mills(x: Array) -> Array:
    """Ratio of the normal density to the normal distribution function at x."""
    dtype = x.dtype.type
    return dtype(np.sqrt(2.0 / np.pi)) / erfcx(x * dtype(-np.sqrt(0.5)))
