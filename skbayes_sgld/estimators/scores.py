"""Scores of rows in blocks, from sums that one pass adds up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import xlogy
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._arrays import as_array, check_size
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.blocks import as_source
from skbayes_sgld.blocks.dask_predictions import without_rows
from skbayes_sgld.blocks.source import Array, Block, RowSource, without_exposure
from skbayes_sgld.prediction.wrappers import has_no_posterior

_TINY = np.finfo(float).tiny
_SQUARED = 1e150  # number whose square still is one


@dataclass(frozen=True)
class Tally:
    """What a score takes of some rows.

    Attributes
    ----------
    total : float
        Weight of the rows.
    mean, squares : float
        Mean of y, and the sum of squares about it.
    observed, predicted : float
        Sums of what each row adds for its y alone, and for its y and what is predicted.
    """

    total: float
    mean: float
    squares: float
    observed: float
    predicted: float

    def plus(self, other: Tally) -> Tally:
        """That of the rows of both (Chan, Golub & LeVeque 1983, eq. 2.1)."""
        total, apart = self.total + other.total, other.mean - self.mean
        share = other.total / total if total > 0 else 0.0
        return Tally(
            total,
            self.mean + share * apart,
            self.squares + other.squares + self.total * share * apart**2,
            self.observed + other.observed,
            self.predicted + other.predicted,
        )


Rows = Callable[[Array, Array], tuple[Array, Array]]


@dataclass(frozen=True)
class Score:
    """A score that depends on sums over the rows alone.

    Attributes
    ----------
    rows : callable
        Of y and of what is predicted ``(n,)``: what each row adds to ``observed`` and
        ``predicted`` of a :class:`Tally`.
    value : callable
        Of the tally of all rows: the score.
    numeric : bool
        Whether y is a number.
    """

    rows: Rows
    value: Callable[[Tally], float]
    numeric: bool = True

    def of(self, model: Any, source: RowSource) -> float:
        """Score of the predictions of a fitted model for rows in blocks, in one pass.

        Raises
        ------
        ValueError, TypeError
            For rows that cannot be used, naming the block; where all weights are zero.
        """
        check_is_fitted(model)
        work = partial(_tally, model=without_rows(model), score=self, names=source.feature_names)
        tally = source.reduce(work, Tally.plus)
        if not tally.total > 0:
            raise ValueError("the weights of all rows are zero; at least one must be positive.")
        return float(self.value(tally))


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
        mean = float(weight @ y / total) if total > 0 else 0.0
        squares = float(weight @ np.square(y - mean))
    observed, both = score.rows(y, predicted)
    return Tally(float(total), mean, squares, float(weight @ observed), float(weight @ both))


def _hits(y: Array, predicted: Array) -> tuple[Array, Array]:
    return np.ones(len(y)), (y == predicted).astype(float)


def _squares(y: Array, predicted: Array) -> tuple[Array, Array]:
    return np.ones(len(y)), np.square(y - predicted)


def _deviances(y: Array, predicted: Array) -> tuple[Array, Array]:
    rate = np.maximum(predicted, _TINY)
    return xlogy(y, y), xlogy(y, y / rate) - y + rate


def _explained(left: float, alone: float) -> float:
    return 1.0 - left / alone if alone > 0 else float(left == 0)


def _deviance_explained(tally: Tally) -> float:
    alone = tally.observed - xlogy(tally.total * tally.mean, tally.mean)
    return _explained(tally.predicted, alone)


ACCURACY = Score(_hits, lambda tally: tally.predicted / tally.total, numeric=False)
"""Share of the labels that are predicted."""
R2 = Score(_squares, lambda tally: _explained(tally.predicted, tally.squares))
"""Share of the variance that is explained."""
D2 = Score(_deviances, _deviance_explained)
"""Share of the Poisson deviance that is explained."""


@numpy_defaults
class ScoredByBlock:
    """An estimator whose score is that of scikit-learn's mixin, and takes rows in blocks too."""

    _score: ClassVar[Score]
    _check_size: Callable[[Array], None]

    def _check_scored(self, y: Any) -> Array:
        """Numbers of y, or an error that names it."""
        values = as_array(y, "y", (1, 2))
        self._check_size(values)
        check_size(float(np.abs(values).max()), "y", 0.0, _SQUARED)  # networks fit any other size
        return values

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Score of the predictions: accuracy of labels, R^2 of numbers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), RowBlocks, or of Dask
            Rows in blocks are read once; y and sample_weight of RowBlocks are in its blocks.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
            NaN, with a warning, where the chains have not left where they began.
        """
        if has_no_posterior(self):
            return float("nan")
        source = without_exposure(as_source(X, y, sample_weight))
        if source is not None:
            return self._score.of(self, source)
        if self._score.numeric:
            y = self._check_scored(y)
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]
