"""Totals whose variance exceeds a binomial one: probabilities that vary from row to row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit, fdtr, logit

from skbayes_sgld.likelihoods.base import Array
from skbayes_sgld.likelihoods.binomial import (
    Binomial,
    BinomialKernel,
    as_totals,
    split_totals,
)
from skbayes_sgld.likelihoods.kernel import RowKernel, as_matrices
from skbayes_sgld.likelihoods.own import OwnParameter, clip_log
from skbayes_sgld.likelihoods.stirling import rise
from skbayes_sgld.transforms import Interval

_STRETCH = 64  # probabilities computed from one by ratios: if it underflows, so does their sum
_SUMMED = 150  # successes, or failures, up to which a sum of probabilities costs less
# Nodes and weights of averages over a beta variable, with an error of 1e-8: a few suffice if the
# distribution function that is averaged is at least twice as wide
_FEW_NODES, _NODES = ((z, w * np.exp(0.5 * z * z)) for z, w in map(hermegauss, (9, 17)))


class BetaBinomialKernel(BinomialKernel):
    """Totals, in terms of ``a = p r`` and ``b = (1 - p) r`` with ``r = (1 - rho) / rho``.

    The log density is that of a binomial total plus ``f(y, a) + f(n - y, b) - f(n, r)``, where
    ``f(m, x) = log Gamma(x + m) - log Gamma(x) - m log x`` falls to 0 as x grows. Everything is in
    float64, since the special functions are no faster in float32.
    """

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Log density, and its derivatives in eta and in the log odds of rho."""
        eta, log_r = u[:, 0].astype(float), -clip_log(u[:, 1].astype(float))
        rest = log_r - np.log1p(np.exp(-np.abs(eta)))
        log_a, log_b = rest + np.minimum(eta, 0.0), rest - np.maximum(eta, 0.0)
        p, q = np.exp(log_a - log_r), np.exp(log_b - log_r)
        counts = (self.y, log_a), (self.trials - self.y, log_b), (self.trials, log_r)
        values = []
        if 0 in orders:
            success_term, failure_term, trial_term = (_growth(*count) for count in counts)
            (binomial,) = super().derivatives(u[:, :1].astype(float), 0)
            values.append(binomial + success_term + failure_term - trial_term)
        if 1 in orders:
            slopes = [_slope(*count) for count in counts]
            A, B, R = ((m > 0) + slope for (m, _), slope in zip(counts, slopes, strict=True))
            values.append(np.stack([q * A - p * B, R - A - B], axis=1))
        if 2 in orders:
            bends = (_bend(*count) for count in counts)
            a, b, r = (slope + bend for slope, bend in zip(slopes, bends, strict=True))
            cross = q * a - p * b
            in_eta = p * q * (A + B) - q * q * a - p * p * b
            values.append(as_matrices([[in_eta, cross], [cross, r - a - b]]))
        return [each.astype(u.dtype) for each in values]


def _growth(m: Array, log_x: Array) -> Array:
    """Function f of the kernel, for whole numbers m.

    It is computed as ``log x + log Gamma(x + m) - log Gamma(x + 1)``, which has no pole at x = 0.
    """
    k = np.maximum(m - 1.0, 0.0)
    return k * np.logaddexp(0.0, -log_x) + rise(k, 1.0 + np.exp(log_x))


def _slope(m: Array, log_x: Array) -> Array:
    """Derivative in log x of ``log Gamma(x + m) - log Gamma(x + 1)``; of f without ``m log x``.

    ``m > 0`` is to be added, the derivative of log x.
    """
    x = np.exp(log_x)
    return x * rise(np.maximum(m - 1.0, 0.0), 1.0 + x, 1)


def _bend(m: Array, log_x: Array) -> Array:
    """Derivative of the slope in log x, minus the slope."""
    x = np.exp(log_x)
    return np.square(x) * rise(np.maximum(m - 1.0, 0.0), 1.0 + x, 2)


@dataclass(eq=False, repr=False)
class BetaBinomial(Binomial):
    r"""Successes among trials whose probability varies over the rows, with a beta distribution.

    The mean of the probability is :math:`p = 1 / (1 + e^{-\eta})`. Two trials of a row have the
    correlation :math:`\rho`, and the variance of a total is :math:`n p (1 - p) (1 + (n - 1) \rho)`.
    The coordinate is the log odds of :math:`\rho`. The odds, :math:`\rho / (1 - \rho)`, are the
    inverse of the beta distribution's precision.
    """

    own = (
        OwnParameter(
            "correlation", "correlation_prior", "exponential", transform=Interval(), has_limit=True
        ),
    )
    kernel = BetaBinomialKernel
    has_sites = False

    def _kernel(self, y: Array, dtype: type) -> RowKernel:
        return super()._kernel(y, np.float64)

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Log odds of the share of successes, and of the correlation by moments."""
        level = super().start(y, weight, has_level)
        successes, trials = split_totals(y)
        w, p = np.ones(len(y)) if weight is None else weight, expit(level)
        square = np.square(successes - trials * p) / (trials * p * (1.0 - p))
        pairs = max(float(w @ (trials - 1.0)), 1e-9 * float(w.sum()))
        return np.append(level, logit(np.clip(w @ (square - 1.0) / pairs, 0.01, 0.9)))

    def level_weight(self, y: Array, weight: Array | None = None) -> float:
        """Smaller of two weights: of the rows with a success, and of those with a failure."""
        successes, trials = split_totals(y)
        w = np.ones(len(y)) if weight is None else weight
        return float(min(w @ (successes > 0), w @ (successes < trials)))

    def pseudo_variance(self, y: Array, weight: Array | None) -> float:
        """Inverse of the mean over the rows of ``n p (1 - p) / (1 + (n - 1) rho)``."""
        trials, (p, rho) = split_totals(y)[1], expit(self.start(y, weight, True))
        worth = trials * p * (1.0 - p) / (1.0 + (trials - 1.0) * rho)
        return 1.0 / float(np.average(worth, weights=weight))

    # ---- predictions --------------------------------------------------------------------------

    def variance(self, u: Array) -> Array:
        """``n p (1 - p) (1 + (n - 1) rho)``."""
        return super().variance(u) * (1.0 + (self._trials(u) - 1.0) * expit(u[:, 1]))

    def cdf(self, u: Array, y: Array) -> Array:
        """Probability of at most y successes."""
        u, trials = u.astype(float), self._trials(u).astype(float)
        whole = np.clip(np.floor(y), -1.0, trials)
        upper = 2.0 * whole >= trials  # then sum over the failures, which are fewer
        u[:, 0] = np.where(upper, -u[:, 0], u[:, 0])
        k = np.where(upper, trials - 1.0 - whole, whole)
        few = (k < _SUMMED).any(axis=1)
        out = np.empty(k.shape)
        for rows, function in ((few, self._cdf_by_sum), (~few, self._cdf_by_quadrature)):
            if rows.any():
                out[rows] = function(u[rows], trials[rows], k[rows])
        return np.where(upper, 1.0 - out, out)

    def ratios(self, u: Array) -> Callable[[float, int], Array]:
        """``(n - k) (a + k) / ((k + 1) (b + n - 1 - k))``; 0 from n on."""
        (a, b), trials = self._shapes(u), self._trials(u)[:, :1]

        def ratio(k: float, rows: int) -> Array:
            left = np.maximum(trials[:rows] - k, 0.0)
            return left / (k + 1.0) * (a[:rows] + k) / (b[:rows] + np.maximum(left - 1.0, 0.0))

        return ratio

    def _shapes(self, u: Array) -> tuple[Array, Array]:
        """Shapes a and b of the beta distribution."""
        r = np.exp(-clip_log(u[:, 1]))
        return r * expit(u[:, 0]), r * expit(-u[:, 0])

    def _cdf_by_sum(self, u: Array, trials: Array, k: Array) -> Array:
        """Probability of at most k successes, by summation; k is less than half of the trials."""
        (a, b), out = self._shapes(u), np.zeros(k.shape)
        most = int(k.max())
        for first in range(0, most + 1, _STRETCH):
            totals = as_totals(np.minimum(float(first), trials[:, :1]), trials[:, :1])
            term = np.exp(self.log_density(u[:, :2], totals))
            out += np.where(first <= k, term, 0.0)
            for j in range(first, min(first + _STRETCH - 1, most)):
                step = (trials - j) * (a + j) / ((j + 1.0) * np.maximum(b + trials - 1.0 - j, 1.0))
                term = np.where(j < k, term * step, 0.0)
                out += term
        return np.minimum(out, 1.0)

    def _cdf_by_quadrature(self, u: Array, trials: Array, k: Array) -> Array:
        """Probability of at most k successes, by quadrature, for large k and n - k.

        It is the probability of ``P < Q``, for independent beta variables P of shapes a, b and Q of
        shapes k + 1, n - k. The quadrature is over the narrower of the two, and averages the
        distribution function of the other one.
        """
        p_shapes = np.maximum(self._shapes(u), np.finfo(float).tiny)
        q_shapes = np.stack([k + 1.0, trials - k])
        wide = p_shapes.sum(axis=0) < trials
        s, t = np.where(wide, q_shapes, p_shapes)
        first, second = np.where(wide, p_shapes, q_shapes)
        mean, sd = np.log(s / t), np.sqrt(1.0 / s + 1.0 / t)
        total, out = np.zeros(k.shape), np.zeros(k.shape)
        narrow = np.all(np.square(2.0 * sd) < 1.0 / first + 1.0 / second)
        for node, share in zip(*(_FEW_NODES if narrow else _NODES), strict=True):
            at = mean + sd * node
            move = np.log1p(s / (s + t) * np.expm1(sd * node))
            weight = share * np.exp(s * sd * node - (s + t) * move)
            total += weight
            out += weight * fdtr(2.0 * first, 2.0 * second, second / first * np.exp(at))
        out /= total
        return np.where(wide, out, 1.0 - out)

    def sample(self, u: Array, rng: np.random.RandomState) -> Array:
        """Draws of a number of successes: binomial, with a probability drawn for each."""
        a, b = (np.maximum(shape, np.finfo(float).tiny) for shape in self._shapes(u))
        return rng.binomial(self._trials(u).astype(np.int64), rng.beta(a, b))
