"""Observations of ordered classes: the cumulative logit model.

    P(y > k) = 1 / (1 + exp(c_k - eta)),    c_0 < c_1 < ... < c_{K-2}

(McCullagh 1980). The predictor's intercept is ``-c_0``. The own parameters are the gaps between
neighbouring cut points; their logs need no constraint (Albert & Chib 2001).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit, log_expit

from skbayes_sgld.likelihoods.base import Array, LabelLikelihood
from skbayes_sgld.likelihoods.bernoulli import STEEPEST_BEND
from skbayes_sgld.likelihoods.kernel import RowKernel
from skbayes_sgld.likelihoods.own import OwnParameter, first_if_equal

_LARGEST = 80.0  # largest gap, or log of it, whose exponential is finite in single precision


class OrdinalKernel(RowKernel):
    """Rows of ordered classes, by the cut points below and above each row's class.

    With ``low`` and ``high`` the predictor minus these cut points, and ``width = low - high``,

        log P = log expit(low) + log expit(-high) + log(1 - exp(-width)),

    where an outermost class has only the term of its one cut point. Nothing cancels.
    """

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Log density, and its derivatives in the predictor and the logs of the gaps."""
        y, k = self.y[..., None, :], np.arange(1, u.shape[1])[:, None]
        gap = np.exp(np.clip(u[:, 1:], -_LARGEST, _LARGEST))
        below, own = gap * (k < y), gap * (k == y)  # gaps below each row's class, and its own
        low, width = u[:, 0] - below.sum(axis=1), own.sum(axis=1)
        high = low - width
        # whether a cut point is below each row's class, and above it
        lower, upper = self.y > 0, self.y < self.likelihood.n_classes - 1
        values = []
        if 0 in orders:
            inner = np.log(-np.expm1(-np.where(lower & upper, width, 1.0)))
            value = np.where(lower, log_expit(low), 0.0) + np.where(upper, log_expit(-high), 0.0)
            values.append(value + np.where(lower & upper, inner, 0.0))
        if 1 in orders:
            p_below, p_above = np.where(lower, expit(-low), 0.0), np.where(upper, expit(high), 0.0)
            net = (p_above - p_below)[:, None]
            # slope of log(1 - exp(-width)) in the logs of the gaps
            held = np.where(own > 0.0, np.minimum(width, _LARGEST)[:, None], 1.0)
            ratio = np.where(own > 0.0, own / np.expm1(held), 0.0)
            in_gaps = below * net + own * p_above[:, None] + ratio
            values.append(np.concatenate([-net, in_gaps], axis=1))
        if 2 in orders:  # p (1 - p) of each end times the squares of its slopes
            H, one = np.zeros((len(u), *u.shape[1:2] * 2, u.shape[2])), np.ones_like(net)
            for has, at, gaps in ((lower, low, below), (upper, high, below + own)):
                slope = np.concatenate([one, -gaps], axis=1)
                bend = np.where(has, expit(at) * expit(-at), 0.0)
                H += bend[:, None, None] * slope[:, :, None] * slope[:, None]
            H[:, k[:, 0], k[:, 0]] += ratio * (ratio + own) - in_gaps
            values.append(H)
        return [each.astype(low.dtype) for each in values]


@dataclass(eq=False, repr=False)
class Ordinal(LabelLikelihood):
    r"""Observations of K ordered classes, cumulative logit; y holds codes 0 ... K - 1.

    .. math:: P(y > k) = \frac{1}{1 + e^{c_k - \eta}}, \quad c_0 < c_1 < \dots < c_{K - 2}.

    The intercept and the gaps are reported together as cut points.

    Parameters
    ----------
    n_classes : int, default=3
        Number of classes K.
    """

    n_classes: int = 3
    bounded_curvature = False  # in the logs of the gaps
    exponential = "odds"
    kernel = OrdinalKernel

    @property
    def own(self) -> tuple[OwnParameter, ...]:  # type: ignore[override]
        """Gaps between neighbouring cut points, one fewer than these.

        The default unit suits equal shares: gaps are then 4 / K in the middle, and larger at the
        ends.
        """
        gaps, unit = range(1, self.n_classes - 1), min(1.0, 6.0 / self.n_classes)
        return tuple(
            OwnParameter(f"gap[{k}]", "gap_prior", "log_normal", unit=unit, transform="positive")
            for k in gaps
        )

    # ---- reported parameters ------------------------------------------------------------------

    def reported_names(self, names: list[str], labels: Sequence[str] | None) -> list[str]:
        """Cut points in place of intercept and gaps."""
        classes = list(labels or map(str, range(self.n_classes)))
        cut_points = [f"cut_point[{a}|{b}]" for a, b in pairwise(classes)]
        return cut_points[len(cut_points) - len(names) :]  # without a level the first is 0

    def to_reported(self, values: Array, has_level: bool) -> None:
        """Replace intercept and gaps ``(S, m)`` by cut points, from 0 without a level."""
        values[:, :has_level] *= -1.0
        np.cumsum(values, axis=1, out=values)

    def from_reported(self, values: Array, has_level: bool) -> None:
        """Replace cut points ``(S, m)`` by intercept and gaps."""
        values[...] = np.diff(values, axis=1, prepend=0.0)
        values[:, :has_level] *= -1.0

    # ---- the data -----------------------------------------------------------------------------

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Intercept and log gaps for the shares above each class, with half a row added to each."""
        rows = np.bincount(y.astype(np.intp), weight, self.n_classes) + 0.5
        above = np.cumsum(rows[::-1])[:-1][::-1]
        cut_points = -np.log(above / (rows.sum() - above))
        return np.append(-cut_points[0] * has_level, np.log(np.diff(cut_points)))

    def level_weight(self, y: Array, weight: Array | None = None) -> float:
        """Weight of the rows above the lowest class, or of those below the highest if smaller."""
        rows = np.bincount(y.astype(np.intp), weight, self.n_classes)
        return float(rows.sum() - max(rows[0], rows[-1]))

    def gains(self, design: Array, y: Array) -> Array:
        """Rows of the design, signed by the bounds of their class; a middle class has both."""
        return np.vstack([-design[y < self.n_classes - 1], design[y > 0]])

    # ---- predictions --------------------------------------------------------------------------

    def _ends(self, u: Array) -> tuple[Array, Array]:
        """Predictor minus each cut point ``(C, K - 1, B)``, and the gaps ``(C, K - 2, B)``."""
        gap = np.exp(np.minimum(u[:, 1:], _LARGEST))
        below = np.cumsum(np.concatenate([np.zeros_like(u[:, :1]), gap], axis=1), axis=1)
        return u[:, :1] - below, gap

    def probabilities(self, u: Array) -> tuple[Array, Array]:
        """Probability of each class, and of all other classes together."""
        at, gap = self._ends(u)
        above, below, one = expit(at), expit(-at), np.ones_like(u[:, :1])
        inner = np.concatenate([one, -np.expm1(-gap), one], axis=1)
        p = np.concatenate([one, above], axis=1) * np.concatenate([below, one], axis=1)
        p *= inner[:, : self.n_classes]
        zero = np.zeros_like(one)
        rest = np.concatenate([zero, below], axis=1) + np.concatenate([above, zero], axis=1)
        return p, rest

    def decided(self, mean: Array, variance: Array, own: Array, share: Array) -> Array:
        """Class whose probability is above all others, within the bounds of these."""
        gap = np.exp(np.minimum(own, _LARGEST))
        cuts = np.cumsum(np.column_stack([np.zeros(len(gap)), gap]), axis=1)
        center = share @ cuts
        sd = np.sqrt(share @ np.square(cuts - center))
        away = 0.5 * STEEPEST_BEND * np.square(np.sqrt(variance[0])[:, None] + sd)
        above = expit(mean[0][:, None] - center)
        ends = np.column_stack([np.ones(len(above)), above, np.zeros(len(above))])
        reach = np.pad(away, ((0, 0), (1, 1)))
        p, bound = -np.diff(ends, axis=1), reach[:, 1:] + reach[:, :-1]
        label = p.argmax(axis=1)[:, None]
        least = np.take_along_axis(p - bound, label, axis=1)
        most = p + bound
        np.put_along_axis(most, label, -np.inf, axis=1)
        return np.where(least[:, 0] > most.max(axis=1), label[:, 0], -1)

    def mean_probabilities(self, eta: Array, own: Array, share: Array) -> Array:
        """Averages of the probabilities over the draws, by one exponential for each draw.

        With the odds ``o_k`` of a class above k, ``P(y = k)`` is the product of
        ``o_{k-1} / (1 + o_{k-1})``, ``1 / (1 + o_k)`` and ``1 - o_k / o_{k-1}``.
        """
        dtype, gap = eta.dtype, np.exp(np.minimum(own.T, _LARGEST))
        falls = np.exp(-np.cumsum(np.vstack([np.zeros_like(share), gap]), axis=0))
        between = falls[:-1] * -np.expm1(-gap) * share  # times the odds of a class above 0
        largest = np.log(np.finfo(dtype).max) - 8.0
        odds = np.exp(np.minimum(eta[:, 0], dtype.type(largest)))
        means, before = np.empty((len(odds), self.n_classes)), None
        for k, fall in enumerate(falls.astype(dtype)):
            below = odds * fall
            below += dtype.type(1)
            np.reciprocal(below, out=below)
            if before is None:
                means[:, 0] = below @ share.astype(dtype)
            else:
                before *= below
                means[:, k] = before @ between[k - 1].astype(dtype)
            before = below
            before *= odds
        means[:, -1] = before @ (falls[-1] * share).astype(dtype)
        return means

    def probability_draws(self, eta: Array, own: Array) -> Array:
        """Probabilities as in :meth:`mean`."""
        return self.mean(self._beside_own(eta, own))

    def log_probability_draws(self, eta: Array, own: Array, codes: Array) -> Array:
        """Log probabilities by one exponential and one logarithm for each draw.

        With the odds o of a class above the cut point below, and the width w of the class,
        ``P = (1 - exp(-w)) / ((1 + 1 / o) (1 + o exp(-w)))``.
        """
        dtype, gap = eta.dtype, np.exp(np.minimum(own.T, _LARGEST))
        cuts = np.cumsum(np.vstack([np.zeros(eta.shape[2]), gap]), axis=0)
        values = np.empty((len(eta), eta.shape[2]), dtype)
        for code in np.unique(codes.astype(np.intp)):
            rows, last = np.flatnonzero(codes == code), self.n_classes - 1
            at = eta[rows, 0] - cuts[max(code - 1, 0)].astype(dtype)
            far = np.abs(at).max(axis=1) > _LARGEST
            odds = np.exp(np.clip(at, -_LARGEST, _LARGEST, out=at), out=at)
            if code == 0:
                total, inner = odds, dtype.type(0.0)
            elif code == last:
                total, inner = np.reciprocal(odds, out=odds), dtype.type(0.0)
            else:
                fall = np.exp(-gap[code - 1])
                total, inner = np.reciprocal(odds), np.log(-np.expm1(-gap[code - 1]))
                inner = inner.astype(dtype)
                odds *= fall.astype(dtype)
                total += odds
                total += fall.astype(dtype)
            total += dtype.type(1.0)
            values[rows] = inner - np.log(total, out=total)
            if far.any():
                of_far = super().log_probability_draws(eta[rows[far]], own, codes[rows[far]])
                values[rows[far]] = of_far
        return values

    def total_probabilities(self, eta: Array, own: Array, weight: Array) -> Array:
        """Differences between sums of the probabilities below each cut point.

        They take one exponential for each draw: these probabilities are ``1 / (1 + o_k)``, and the
        odds ``o_k`` fall from cut point to cut point by a factor that is the same in all rows.
        """
        gap = np.exp(np.minimum(own.T, _LARGEST))
        falls = np.exp(-np.cumsum(np.vstack([np.zeros(eta.shape[2]), gap]), axis=0))
        falls, share = falls.astype(eta.dtype), weight.T.astype(eta.dtype)
        odds = np.exp(np.minimum(eta[:, 0], np.log(np.finfo(eta.dtype).max) - 1.0))
        totals = np.zeros((self.n_classes + 1, weight.shape[1], eta.shape[2]))
        for fall, total in zip(falls, totals[1:-1], strict=True):
            below = odds * fall
            below += 1
            np.reciprocal(below, out=below)
            total[:] = share @ below
        totals[-1] = weight.sum(axis=0)[:, None]
        return np.diff(totals, axis=0).swapaxes(0, 1)

    def log_probabilities(self, u: Array) -> tuple[Array, Array]:
        """Logs of the probabilities, from the log odds."""
        at, gap = self._ends(u)
        above, below, zero = log_expit(at), log_expit(-at), np.zeros_like(u[:, :1])
        inner = np.concatenate([zero, np.log(-np.expm1(-gap)), zero], axis=1)
        log_p = np.concatenate([zero, above], axis=1) + np.concatenate([below, zero], axis=1)
        nothing = np.full_like(zero, -np.inf)
        log_rest = np.logaddexp(
            np.concatenate([nothing, below], axis=1), np.concatenate([above, nothing], axis=1)
        )
        return log_p + inner[:, : self.n_classes], log_rest

    def mean(self, u: Array) -> Array:
        """Probability of every class ``(C, K, B)``, as in :meth:`mean_probabilities`."""
        if u[:, 0].max(initial=0.0) > np.log(np.finfo(u.dtype).max) - 1.0:  # odds would overflow
            return self.probabilities(u)[0]
        gap = np.exp(np.minimum(first_if_equal(u[:, 1:], axis=0), _LARGEST))
        nothing = np.zeros_like(gap, shape=(len(gap), 1, gap.shape[2]))  # two classes have no gap
        below_gaps = np.cumsum(np.concatenate([nothing, gap], axis=1), axis=1)
        falls, between = np.exp(-below_gaps), -np.expm1(-gap)
        p = np.empty((len(u), self.n_classes, u.shape[2]), u.dtype)
        odds, before = np.exp(u[:, 0]), None
        for k in range(self.n_classes - 1):
            above = odds * falls[:, k]
            below = above + 1.0
            np.reciprocal(below, out=below)
            if before is None:
                p[:, 0] = below
            else:
                np.multiply(before, below, out=p[:, k])
                p[:, k] *= between[:, k - 1]
            before = np.multiply(above, below, out=above)
        p[:, -1] = before
        return p
