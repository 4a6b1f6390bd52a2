"""Weighted sums of the response over rows under every draw, expanded about the mean draw.

The response of a row is a function of its predictors, which are linear in the parameters, and of
the likelihood's own parameters. Its slopes and bends in these, at the posterior mean, are summed
over the rows: the sum under any draw is then a polynomial of second degree in the parameters. Only
a few draws predict the rows; they tell the mean of what the polynomial leaves out, and its size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import cast

import numpy as np
from scipy.special import expit, logit

from skbayes_sgld._typing import Array
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.predicted_rows import PredictedRows

_NUDGE = 1e-5  # in own parameters; in predictors, of their size if that is above 1
_BENT = 2000  # rows, chosen at random, whose bends stand for those of all
_REST = 0.015  # of the sd of a mean: largest sd of what the polynomial leaves out
_SKEWNESS = 0.25  # largest skewness of a mean


@dataclass(frozen=True)
class Expansion:
    """Polynomial of second degree in the parameters, for weighted sums over rows.

    Attributes
    ----------
    every : PredictiveDistribution
        Distribution under all draws, whose predictors are linear in the parameters.
    of_mean : callable
        Function of the mean whose sums are asked for.
    """

    every: PredictiveDistribution
    of_mean: Callable[[Array], Array]

    @cached_property
    def middle(self) -> PredictiveDistribution:
        """Distribution at the mean of the draws."""
        return cast(PredictiveDistribution, self.every.at_mean())

    def sums(self, rows: PredictedRows, weight: Array) -> Array:
        """Terms of weighted sums over rows, which add up over blocks of rows.

        Returns ``(L, 2 S + 1 + M)``: linear and quadratic terms under all draws, sums at the mean
        draw, and under M draws, of which ``rows`` have the distribution. L is the number of
        classes, or 1.
        """
        K, own = self.every.predictor.n_predictors, self._own
        each: list[tuple[int, ...]] = [(a,) for a in range(K + len(own))]
        (value, *moved), widths = self._moved(rows, [(), *each])
        slopes = [weight * (one - value) / width for one, width in zip(moved, widths, strict=True)]
        linear = self._of_predictors(rows.X, slopes[:K])
        for slope, away in zip(slopes[K:], own, strict=True):
            linear += slope.sum(axis=1)[:, None] * away
        terms = np.column_stack([linear, self._bent(rows, weight), value @ weight])
        if rows.classes is not None:  # the last probability follows from the others
            last = -terms.sum(axis=0)
            last[-1] += weight.sum()
            terms = np.vstack([terms, last])
        exact = rows.totals(rows.predictors(), weight[:, None], self.of_mean)
        return np.hstack([terms, exact.reshape(len(terms), -1)])

    def means(self, sums: Array, tried: Array) -> Array | None:
        """Means ``(S, L)`` under every draw, from sums with weights that add up to 1.

        ``tried (M,)`` are the draws that predicted the rows. None if what the polynomial leaves out
        of these is too much, or the means are skewed: it would then matter in the tails.
        """
        S = self.every.predictor.n_draws
        linear, bent, value, exact = np.split(sums, [S, 2 * S, 2 * S + 1], axis=1)
        likelihood, is_label = self.every.likelihood, len(sums) > 1
        with np.errstate(divide="ignore", invalid="ignore"):
            if is_label:  # log odds are nearer to a polynomial than rare labels' probabilities
                to, back = logit, expit
                first = 1.0 / (value * (1.0 - value))
                second = (2.0 * value - 1.0) * first**2
            elif likelihood.log_link:
                to, back = np.log, np.exp
                first, second = 1.0 / value, -1.0 / value**2
            else:
                to = back = np.asarray
                first, second = np.ones(1), np.zeros(1)
            found = to(value) + first * (linear + bent) + 0.5 * second * linear**2
            # a line through what is left out: its cubic part grows with the linear one
            near = found[:, tried]
            middle, rest = near.mean(axis=1, keepdims=True), to(exact) - near
            away, level = near - middle, rest.mean(axis=1, keepdims=True)
            size = np.square(away).sum(axis=1, keepdims=True)
            slope = (away * rest).sum(axis=1, keepdims=True) / np.maximum(size, 1e-300)
            found += level + slope * (found - middle)
            rest -= level + slope * away
            sd, away = found.std(axis=1), found - found.mean(axis=1, keepdims=True)
            is_near = (rest.std(axis=1, ddof=2) <= _REST * sd) & (
                np.abs(np.mean(away**3, axis=1)) <= _SKEWNESS * sd**3
            )
            means = back(found)
        if not is_near.all():
            return None
        return cast(Array, (means / means.sum(axis=0) if is_label else means).T)

    def _bent(self, rows: PredictedRows, weight: Array) -> Array:
        """Half the sums of bends times squares and products of differences from the mean draw."""
        n, K, own = len(weight), self.every.predictor.n_predictors, self._own
        if n > _BENT:
            some = np.sort(np.random.RandomState(0).choice(n, _BENT, replace=False))
            rows = replace(rows, X=rows.X[some], row_values=rows.row_values[some])
            weight = weight[some] * (n / _BENT)
        local = range(K + len(own))
        pairs = list(combinations_with_replacement(local, 2))
        (value, *moved), width = self._moved(rows, [(), *((a,) for a in local), *pairs])
        bends = {
            (a, b): weight * (both - moved[a] - moved[b] + value) / (width[a] * width[b])
            for (a, b), both in zip(pairs, moved[len(local) :], strict=True)
        }
        sums = 0.5 * self.every.predictor.squares(rows.X, bends, self.middle.predictor)
        if len(own):
            with_own = [np.vstack([bends[k, j] for j in local[K:]]) for k in range(K)]
            along = self._of_predictors(rows.X, with_own).reshape(len(own), len(sums), -1)
            for i in local[K:]:
                for j in local[i:]:
                    half = 0.5 if i == j else 1.0
                    along[i - K] += half * bends[i, j].sum(axis=1)[:, None] * own[j - K]
            sums += np.einsum("qls,qs->ls", along, own)
        return sums

    def _responses(self, rows: PredictedRows, eta: Array, own: Array | None) -> Array:
        """Responses ``(L, n, B)`` at predictors ``(K, n, B)`` and own parameters ``(B, q)``."""
        law = replace(self.middle, own=np.empty((eta.shape[2], 0)) if own is None else own)
        if rows.classes is not None:
            return law.probabilities_at(eta).swapaxes(0, 1)[:-1]
        u = law.at_predictors(eta, rows.row_values)
        return self.of_mean(law.likelihood.mean(u))[None]

    def _moved(
        self, rows: PredictedRows, moves: list[tuple[int, ...]]
    ) -> tuple[Array, list[Array | float]]:
        """Responses ``(B, L, n)`` at the mean draw with nudged parameters; widths of the nudges.

        Each move names local parameters, predictors before own ones.
        """
        at_middle = replace(rows, of_draws=lambda: self.middle).predictors()
        eta = np.repeat(at_middle, len(moves), axis=2)
        own = np.repeat(
            np.empty((1, 0)) if self.middle.own is None else self.middle.own, len(moves), axis=0
        )
        widths: list[Array | float] = list(_NUDGE * np.maximum(1.0, np.abs(at_middle[..., 0])))
        widths += [_NUDGE] * own.shape[1]
        for b, move in enumerate(moves):
            for a in move:
                if a < len(eta):
                    eta[a, :, b] += widths[a]
                else:
                    own[b, a - len(eta)] += widths[a]
        return np.moveaxis(self._responses(rows, eta, own), 2, 0), widths

    def _of_predictors(self, X: Array, slopes: list[Array]) -> Array:
        """Sums ``(L, S)`` of slopes ``(L, n)`` times differences from the mean predictors."""
        weight, L = np.vstack(slopes).T, len(slopes[0])
        each, middle = (law.predictor.sums(X, weight) for law in (self.every, self.middle))
        away = [(each - middle)[k, k * L : (k + 1) * L] for k in range(len(slopes))]
        return cast(Array, np.sum(away, axis=0))

    @cached_property
    def _own(self) -> Array:
        """Own parameters of each draw minus their mean ``(q, S)``."""
        if self.every.own is None or self.middle.own is None:
            return np.empty((0, self.every.predictor.n_draws))
        away: Array = (self.every.own - self.middle.own).T
        return away
