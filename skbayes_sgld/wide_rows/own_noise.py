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

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, erfcx, expit, log_ndtr, ndtr, ndtri, polygamma

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
# Distance of v from a row that contradicts it, in sds of the noise, beyond which the envelope draws
_FAR = 4.0
_LEAST_SHAPE = 0.05  # of a tilted gamma variable: log variables of smaller shapes have long tails
_HALVINGS = 60  # of an interval; each takes 10 us
_MOST_ROUNDS = 30  # of proposals; half of them are accepted, and the envelope draws the rest


class Latent(NamedTuple):
    """Latent variables t of rows: logs of gamma variables, less others for totals.

    Attributes
    ----------
    side : ndarray of shape (n,)
        1 if t is below u, -1 if t is above u, 0 if t is u.
    shape : ndarray of shape (n,)
    other : ndarray of shape (n,) or None
        Shape of the variable that is taken off; None for counts.
    successes : ndarray of shape (n,)
        Successes or counts.
    failures : ndarray of shape (n,) or None
        None for counts.
    mean, variance : ndarray of shape (n,)
    """

    side: Array
    shape: Array
    other: Array | None
    successes: Array
    failures: Array | None
    mean: Array
    variance: Array

    @property
    def least_noise(self) -> Array:
        """Least variance of noise that makes its sum with t nearly normal."""
        third = polygamma(2, self.shape)
        if self.other is not None:
            third = third - polygamma(2, self.other)
        return _LEAST_SD**2 * np.maximum(1.0, np.abs(third / polygamma(2, 1.0)))

    def value(self, u: Array, rows: Array) -> Array:
        """Log likelihood of predictors u of some rows, up to a constant."""
        successes = self.successes[rows]
        with np.errstate(over="ignore"):
            if self.failures is None:
                return successes * u - np.exp(u)
            of_failures = self.failures[rows] * np.logaddexp(0.0, u)
        return -successes * np.logaddexp(0.0, -u) - of_failures

    def score(self, u: Array, rows: Array) -> Array:
        """Derivative of the log likelihood of some rows."""
        successes = self.successes[rows]
        if self.failures is None:
            with np.errstate(over="ignore"):
                return successes - np.exp(u)
        return successes * expit(-u) - self.failures[rows] * expit(u)

    def within_reach(self, slope: Array, rows: slice) -> Array:
        """Whether shapes that are tilted by a slope are large enough for :meth:`tilted`."""
        held = self.shape[rows] + slope > _LEAST_SHAPE
        return held if self.other is None else held & (self.other[rows] - slope > _LEAST_SHAPE)

    def tilted(self, slope: Array, rows: Array, rng: np.random.Generator) -> Array:
        """Draws of t at some rows, from its density times ``exp(slope t)``."""
        t = np.log(rng.standard_gamma(self.shape[rows] + slope))
        if self.other is None:
            return t
        return t - np.log(rng.standard_gamma(self.other[rows] - slope))


def latent_of(y: Array) -> Latent:
    """Latent variables of rows with totals or counts y."""
    if y.dtype.names is None:
        shape = np.where(y > 0, y, 1.0)
        return Latent(-1.0 * (y == 0), shape, None, y, None, digamma(shape), polygamma(1, shape))
    successes, trials = split_totals(y)
    failures = trials - successes
    shape, other = (np.where(number > 0, number, 1.0) for number in (successes, failures))
    mean, variance = digamma(shape) - digamma(other), polygamma(1, shape) + polygamma(1, other)
    side = 1.0 * (failures == 0) - (successes == 0)
    return Latent(side, shape, other, successes, failures, mean, variance)


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
        far = self.side[:k] * (v[:k] - self.mean[:k]) < -_FAR * self.total[:k]
        left = self._skewed[~far[self._skewed]]
        for _ in range(_MOST_ROUNDS):
            if not len(left):
                break
            left = left[~self._accepted(u[left], left, rng)]
            propose(left, len(left))
        if len(left) or far.any():
            left = np.append(left, np.flatnonzero(far))
            u[left] = self._draw_below_envelope(v[left], left, rng)
        if k < len(v):
            u[k:] = self._draw_at_latent(v[k:], rng)
        return u

    def _accepted(self, u: Array, rows: Array, rng: np.random.Generator) -> Array:
        """Whether u of some rows is accepted under the likelihood itself."""
        latent, at = self._latent, u + self._offset[rows]
        normal = self.side[rows] * (at - latent.mean[rows]) / np.sqrt(latent.variance[rows])
        with np.errstate(over="ignore"):
            ratio = np.exp(latent.value(at, rows) - log_ndtr(normal))
        return rng.random(len(u)) * _LARGEST_RATIO < ratio

    def _draw_at_latent(self, v: Array, rng: np.random.Generator) -> Array:
        """Predictors of rows with t = u.

        The density of t times that of the noise is the density of t with other shapes, times a
        factor near 1.
        """
        k, latent = self.n_sided, self._latent
        mean, variance, offset = latent.mean[k:], self._variance[k:], self._offset[k:]
        slope = (v + offset - mean) / variance
        u, near = np.empty_like(v), latent.within_reach(slope, slice(k, None))
        left = np.flatnonzero(near)
        for _ in range(_MOST_ROUNDS):
            if not len(left):
                break
            u[left] = latent.tilted(slope[left], k + left, rng)
            far = np.square(u[left] - mean[left]) / (2.0 * variance[left])
            left = left[rng.standard_exponential(len(left)) < far]
        u -= offset
        if len(left) or not near.all():
            left = np.append(left, np.flatnonzero(~near))
            u[left] = self._draw_below_envelope(v[left], k + left, rng)
        return u

    def _draw_below_envelope(self, v: Array, rows: Array, rng: np.random.Generator) -> Array:
        """Predictors of some rows, however far v is from their y.

        The log density is concave. It is below its maximum between two points, and below the lines
        from the maximum through each of them beyond. Where it is lower by 1 at both, at least 46 %
        of the proposals are accepted.
        """
        latent, variance = self._latent, self._variance[rows]
        v = v + self._offset[rows]

        def slope(u: Array) -> Array:
            return latent.score(u, rows) - (u - v) / variance

        def value(u: Array) -> Array:
            return latent.value(u, rows) - 0.5 * np.square(u - v) / variance

        other_end = v + variance * latent.score(v, rows)
        low, high = np.minimum(v, other_end), np.maximum(v, other_end)
        if latent.failures is None:  # where rates are at most 1 the slope is above 0
            low = np.maximum(low, np.minimum(v, 0.0) - variance)
        mode = _last_where(lambda u: slope(u) > 0.0, low, high)
        top = value(mode)
        width = np.sqrt(2.0 * variance)  # the noise alone lowers the log density by 1 there
        ends = mode + np.array([[-1.0], [1.0]]) * width
        ends = _last_where(lambda u: value(u) > top - 1.0, np.stack([mode, mode]), ends)
        reach = np.abs(ends - mode)
        falls = (top - value(ends)) / reach  # slopes of the lines
        tails = np.exp(-falls * reach) / falls
        mass = reach + tails
        u, left = np.full(len(v), np.nan), np.arange(len(v))
        for _ in range(4 * _MOST_ROUNDS):
            if not len(left):
                break
            uniform = rng.random((3, len(left)))
            side = np.where(uniform[0] * mass.sum(axis=0)[left] < mass[0, left], 0, 1)
            to, fall = reach[side, left], falls[side, left]
            beyond = uniform[1] * mass[side, left] > to
            away = np.where(
                beyond, to + rng.standard_exponential(len(left)) / fall, uniform[2] * to
            )
            at = mode.copy()
            at[left] += (2 * side - 1) * away
            fallen = top[left] - value(at)[left] - np.where(beyond, fall * away, 0.0)
            taken = rng.standard_exponential(len(left)) > fallen
            u[left[taken]] = at[left[taken]]
            left = left[~taken]
        return u - self._offset[rows]  # NaN where v is not finite: such a chain overflows


def _last_where(holds: Callable[[Array], Array], first: Array, last: Array) -> Array:
    """Last points, on the way from ``first`` to ``last``, until which a condition holds."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (first + last)
        held = holds(middle)
        first, last = np.where(held, middle, first), np.where(held, last, middle)
    return first


def may_collapse(posterior: GLMPosterior) -> bool:
    """Whether the coefficients' priors are independent and normal, and the intercept's flat."""
    prior = posterior.prior
    separate = isinstance(prior, Normal) and prior.covariance is None and prior.proper
    return separate and posterior.linear_prior.intercept.flat


def inverse_mills(x: Array) -> Array:
    """Ratio of the normal density to the normal distribution function at x."""
    dtype = x.dtype.type
    return dtype(np.sqrt(2.0 / np.pi)) / erfcx(x * dtype(-np.sqrt(0.5)))
