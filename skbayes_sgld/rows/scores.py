"""Scores of predictions: for arrays as in scikit-learn, for blocks from one pass over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import column_or_1d

from skbayes_sgld._checks import check_lengths
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.rows.checks import check_weight, first_fraction
from skbayes_sgld.rows.targets.totals import totals_of


@dataclass(frozen=True)
class Tally:
    """Sums over rows that a score depends on.

    Attributes
    ----------
    total : float
        Weight of the rows.
    loss : float
        Weight of the correct labels, or half the deviance of the predictions.
    mean, squares : float
        Mean of y, and the sum of squares about it.
    saturated : float
        Sum of ``saturated(y)``, a function of the score.
    """

    total: float
    loss: float
    mean: float = 0.0
    squares: float = 0.0
    saturated: float = 0.0

    def plus(self, other: Tally) -> Tally:
        """Tally of the rows of both (Chan, Golub & LeVeque 1983, eq. 2.1)."""
        total, apart = self.total + other.total, other.mean - self.mean
        share = other.total / total if total > 0 else 0.0
        return Tally(
            total,
            self.loss + other.loss,
            self.mean + share * apart,
            self.squares + other.squares + self.total * share * apart**2,
            self.saturated + other.saturated,
        )


@dataclass(frozen=True)
class Score:
    """Accuracy, or the share of a deviance that the predictions explain.

    Attributes
    ----------
    loss : callable
        From y and its predictions ``(n,)``: 1 if the label is predicted, else 0; or half the
        deviance.
    saturated : callable or None
        Half the deviance of the best constant prediction is the sum of ``saturated(y)`` minus that
        of ``saturated`` at the mean of y. None: it is the sum of squares about the mean.
    reference : callable or None
        scikit-learn's score, if it has one, from ``(y, predicted, sample_weight=)``.
    numeric : bool
        Whether y is a number.
    per_unit : callable or None
        Function from y, made over sizes such as exposures, and the sizes ``(n,)`` to y on the scale
        of predictions; None if y is on that scale, as averages are.
    """

    loss: Callable[[Array, Array], Array]
    saturated: Callable[[Any], Any] | None = None
    reference: Callable[..., float] | None = None
    numeric: bool = True
    per_unit: Callable[[Array, Array], Array] | None = None

    def on_scale(self, y: Array, size: Array) -> Array:
        """Numbers y on the scale of predictions, given the sizes that they were made over."""
        return y if self.per_unit is None else self.per_unit(y, size)

    def score_arrays(self, y: Any, predicted: Array, sample_weight: Any) -> float:
        """Score of predictions in memory."""
        if self.numeric:
            predicted = within_squares(predicted)
        if self.reference is not None:
            return float(self.reference(y, predicted, sample_weight=sample_weight))
        y = column_or_1d(y)
        check_lengths(y=y, X=predicted)
        weight = np.ones(len(y)) if sample_weight is None else check_weight(sample_weight, y)
        return self.score_tally(self.tally(y, predicted, weight))

    def tally(self, y: Array, predicted: Array, weight: Array) -> Tally:
        """Sums over rows in memory."""
        total, loss = float(weight.sum()), float(weight @ self.loss(y, predicted))
        if not self.numeric:
            return Tally(total, loss)
        mean = float(weight @ y / total) if total > 0 else 0.0
        squares = float(weight @ np.square(y - mean))
        saturated = 0.0 if self.saturated is None else float(weight @ self.saturated(y))
        return Tally(total, loss, mean, squares, saturated)

    def score_tally(self, tally: Tally) -> float:
        """Score from the sums over all rows."""
        if not self.numeric:
            return tally.loss / tally.total
        alone = tally.squares
        if self.saturated is not None:
            alone = tally.saturated - tally.total * float(self.saturated(tally.mean))
        return 1.0 - tally.loss / alone if alone > 0 else float(tally.loss == 0)


def within_squares(predicted: Array) -> Array:
    """Predictions, clipped so that sums of squares are finite: a far row's may be infinite."""
    return np.clip(np.asarray(predicted, dtype=float), -1e150, 1e150)


def share_of_hits(share: Array, predicted: Array) -> Array:
    """Share of each row's trials that ended as predicted; a prediction of 1 is success."""
    return np.where(predicted == 1, share, 1.0 - share)


def are_rates(likelihood: Likelihood, y: Array, weight: Any) -> bool:
    """Whether y holds rates: with their exposures as weights they are counts."""
    return likelihood.takes_rates and weight is not None and first_fraction(y) is not None


def _shares(successes: Array, trials: Array) -> Array:
    totals = totals_of(trials, np.ravel(successes), trials)
    found: Array = totals["successes"] / np.maximum(totals["trials"], 1.0)
    return found


def _divergence(y: Array, mean: Array) -> Array:
    return xlogy(y, y / np.maximum(mean, np.finfo(float).tiny))


ACCURACY = Score(lambda y, predicted: y == predicted, reference=accuracy_score, numeric=False)
"""Share of the labels that are predicted."""
R2 = Score(lambda y, m: np.square(y - m), reference=r2_score)
"""Share of the variance that is explained."""
D2_POISSON = Score(
    lambda y, m: _divergence(y, m) - y + m,
    lambda y: xlogy(y, y),
    per_unit=lambda y, exposure: y / exposure,
)
"""Share of the Poisson deviance that is explained."""
D2_GAMMA = Score(lambda y, m: y / m - 1.0 - np.log(y / m), lambda y: -np.log(y))
"""Share of the gamma deviance that is explained."""
D2_BINOMIAL = Score(
    lambda y, m: _divergence(y, m) + _divergence(1.0 - y, 1.0 - m),
    lambda y: xlogy(y, y) + xlogy(1.0 - y, 1.0 - y),
    per_unit=_shares,
)
"""Share of the binomial deviance of shares that is explained."""
