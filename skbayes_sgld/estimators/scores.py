"""Scores of predictions: of arrays as scikit-learn computes them, of blocks from one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import xlogy
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._checks import check_lengths
from skbayes_sgld.blocks.dask_predictions import without_rows
from skbayes_sgld.blocks.source import Array, Block, RowSource
from skbayes_sgld.estimators.validation import check_weight
from skbayes_sgld.prediction.wrappers import has_no_posterior

_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Tally:
    """Sums over rows that a score depends on.

    Attributes
    ----------
    total : float
        Weight of the rows.
    mean, squares : float
        Mean of y, and the sum of squares about it.
    observed, predicted : float
        Weighted sums of a function of y alone, and of y and its prediction.
    """

    total: float
    mean: float
    squares: float
    observed: float
    predicted: float

    def plus(self, other: Tally) -> Tally:
        """Tally of the rows of both (Chan, Golub & LeVeque 1983, eq. 2.1)."""
        total, apart = self.total + other.total, other.mean - self.mean
        share = other.total / total if total > 0 else 0.0
        return Tally(
            total,
            self.mean + share * apart,
            self.squares + other.squares + self.total * share * apart**2,
            self.observed + other.observed,
            self.predicted + other.predicted,
        )


@dataclass(frozen=True)
class Score:
    """A score that depends on sums over the rows alone.

    Attributes
    ----------
    of_arrays : callable
        Score from ``(y, predicted, sample_weight=)``.
    rows : callable
        From y and its predictions ``(n,)``: terms of ``observed`` and ``predicted`` of a
        :class:`Tally`.
    of_tally : callable
        Score from the tally of all rows.
    numeric : bool
        Whether y is a number.
    """

    of_arrays: Callable[..., float]
    rows: Callable[[Array, Array], tuple[Array, Array]]
    of_tally: Callable[[Tally], float]
    numeric: bool = True

    def of(self, model: Any, X: Any, y: Any, sample_weight: Any, source: RowSource | None) -> float:
        """Score of a fitted model's predictions, for rows ``source`` in blocks or for X and y.

        Raises
        ------
        ValueError, TypeError
            For rows that cannot be used, naming the block; where all weights are zero.
        """
        if has_no_posterior(model):
            return float("nan")
        if source is None:
            y = model._check_scored(y) if self.numeric else y
            return float(self.of_arrays(y, model.predict(X), sample_weight=sample_weight))
        check_is_fitted(model)
        work = partial(_tally, model=without_rows(model), score=self, names=source.feature_names)
        tally = source.reduce(work, Tally.plus)
        if not tally.total > 0:
            raise ValueError("the weights of all rows are zero; at least one must be positive.")
        return float(self.of_tally(tally))


def _tally(block: Block, model: Any, score: Score, names: list[str] | None) -> Tally:
    X = block.X if names is None else pd.DataFrame(block.X, columns=names, copy=False)
    predicted, y, where = model.predict(X), block.y, f"y of block {block.number}"
    if predicted.shape != y.shape:
        raise ValueError(
            f"{where} has shape {y.shape}, and the predictions have {predicted.shape}: outputs "
            "are scored one by one, or all together of arrays."
        )
    weight = np.ones(len(y)) if block.weight is None else block.weight
    total, mean, squares = weight.sum(), 0.0, 0.0
    if score.numeric:
        if y.dtype.kind not in "fiub":
            raise ValueError(f"{where} has dtype {y.dtype}; the target must be numeric.")
        try:
            y = model._check_scored(y)
        except ValueError as error:
            raise ValueError(f"block {block.number}: {error}") from None
        if block.exposure is not None:  # rates weighted by exposure, or shares by trials
            y, weight = model._shares(y, block.exposure), weight * block.exposure
            total = weight.sum()
        mean = float(weight @ y / total) if total > 0 else 0.0
        squares = float(weight @ np.square(y - mean))
    observed, both = score.rows(y, predicted)
    if block.exposure is not None and not score.numeric:  # totals
        weight, both = weight * block.exposure, _share_of_hits(y / block.exposure, predicted)
        total = weight.sum()
    return Tally(float(total), mean, squares, float(weight @ observed), float(weight @ both))


def _hits(y: Array, predicted: Array) -> tuple[Array, Array]:
    return np.ones(len(y)), (y == predicted).astype(float)


def _share_of_hits(share: Array, predicted: Array) -> Array:
    """Share of each row's trials that ended as predicted, 1 being a success."""
    return np.where(predicted == 1, share, 1.0 - share)


def accuracy_of_totals(
    successes: Array, trials: Array, predicted: Array, weight: Array | None
) -> float:
    """Share of all trials that ended as predicted."""
    hits = _share_of_hits(successes / np.maximum(trials, 1.0), predicted)
    return float(np.average(hits, weights=trials * (1.0 if weight is None else weight)))


def _squares(y: Array, predicted: Array) -> tuple[Array, Array]:
    return np.ones(len(y)), np.square(y - predicted)


def _explained(left: float, alone: float) -> float:
    return 1.0 - left / alone if alone > 0 else float(left == 0)


def _deviance_explained(tally: Tally, saturated: Callable[[Any], Any]) -> float:
    if tally.observed == 0.0 == saturated(tally.mean):  # rates that are all 0
        return 0.0
    return _explained(tally.predicted, tally.observed - tally.total * float(saturated(tally.mean)))


def _deviance(saturated: Callable[[Any], Any], deviances: Callable[[Array, Array], Array]) -> Score:
    """Share of a deviance that is explained.

    Half the deviance of a row is ``deviances(y, mean)``, and the best constant mean leaves the sum
    of ``saturated(y)`` less that of ``saturated`` at the mean of y.
    """

    def rows(y: Array, predicted: Array) -> tuple[Array, Array]:
        return np.asarray(saturated(y)), deviances(y, predicted)

    def of_arrays(y: Array, predicted: Array, sample_weight: Any = None) -> float:
        y = column_or_1d(y)
        check_lengths(y=y, X=predicted)
        weight = np.ones(len(y)) if sample_weight is None else check_weight(sample_weight, y)
        observed, left = rows(y, predicted)
        total = float(weight.sum())
        mean = float(weight @ y / total)
        return of_tally(Tally(total, mean, 0.0, float(weight @ observed), float(weight @ left)))

    def of_tally(tally: Tally) -> float:
        return _deviance_explained(tally, saturated)

    return Score(of_arrays, rows, of_tally)


def _divergence(y: Array, mean: Array) -> Array:
    return xlogy(y, y / np.maximum(mean, _TINY))


ACCURACY = Score(accuracy_score, _hits, lambda tally: tally.predicted / tally.total, numeric=False)
"""Share of the labels that are predicted."""
R2 = Score(r2_score, _squares, lambda tally: _explained(tally.predicted, tally.squares))
"""Share of the variance that is explained."""
D2_POISSON = _deviance(lambda y: xlogy(y, y), lambda y, m: _divergence(y, m) - y + m)
"""Share of the Poisson deviance that is explained."""
D2_GAMMA = _deviance(lambda y: -np.log(y), lambda y, m: y / m - 1.0 - np.log(y / m))
"""Share of the gamma deviance that is explained."""
D2_BINOMIAL = _deviance(
    lambda y: xlogy(y, y) + xlogy(1.0 - y, 1.0 - y),
    lambda y, m: _divergence(y, m) + _divergence(1.0 - y, 1.0 - m),
)
"""Share of the binomial deviance of shares that is explained."""
