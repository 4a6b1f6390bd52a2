"""Totals: numbers of successes among known numbers of trials."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.estimators.base import Array
from skbayes_sgld.estimators.linear import LinearEstimator
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.regression import RegressionModel
from skbayes_sgld.estimators.row_arguments import totals_of, totals_of_fit
from skbayes_sgld.estimators.scores import D2_BINOMIAL
from skbayes_sgld.estimators.validation import check_trials


@parameters
class TotalsRegressor(RegressionModel, LinearEstimator):
    """A regressor of numbers of successes among trials, by a logistic function of the columns.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    """

    _family = "beta_binomial"
    _row_argument = "n_trials"
    _score = D2_BINOMIAL
    _positive = True
    _target = "Whole numbers of successes."

    def _exponential(self) -> str:
        return "odds"

    def _source(self, X: Any, y: Any, sample_weight: Any, **row_data: Any) -> RowSource | None:
        source = super()._source(X, y, sample_weight, **row_data)
        if source is not None and not source.has_exposure:
            raise ValueError("the blocks have no n_trials; let them be (X, y, weight, n_trials).")
        return source

    def _target_of_fit(
        self, X: Any, y: Array, weight: Array | None, n_trials: Any = None
    ) -> tuple[Array, Array | None, Array | None]:
        if n_trials is None:
            raise ValueError(
                "n_trials is None; give the trials of each row, of which y were successes: "
                "fit(X, y, n_trials=n)."
            )
        return *totals_of_fit(X, y, weight, n_trials), None

    def _as_numbers(self, y: Array, fitting: bool = True) -> Array:
        return y

    def _given(self, X: Any, row_data: dict[str, Any]) -> Array:
        given = super()._given(X, row_data)
        return check_trials(1, X) if given is None else given

    def _shares(self, y: Array, given: Array) -> Array:
        totals = totals_of(given, np.ravel(y), given)
        return totals["successes"] / np.maximum(totals["trials"], 1.0)
