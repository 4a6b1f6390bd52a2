"""Totals: numbers of successes among known numbers of trials."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld.blocks import as_source
from skbayes_sgld.blocks.moments import Moments
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.estimators.base import Array
from skbayes_sgld.estimators.linear import LinearEstimator
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.regression import RegressionModel
from skbayes_sgld.estimators.scores import D2_BINOMIAL
from skbayes_sgld.estimators.validation import check_trials
from skbayes_sgld.inference.passes import TOTALS, Encoding
from skbayes_sgld.posterior import Binomial, Likelihood
from skbayes_sgld.posterior.likelihoods import as_totals

_MISSING = "; give the trials of each row, of which y were successes: fit(X, y, n_trials=n)."


def totals_of(X: Any, y: Array, n_trials: Any) -> Array:
    """Checked records of successes and trials."""
    if y.dtype.kind not in "biuf":
        raise TypeError(
            f"y has dtype {y.dtype}; with n_trials, y is the number of successes of each row."
        )
    totals = Binomial().check_target(as_totals(y, check_trials(n_trials, X)))
    if not totals["trials"].any():
        raise ValueError("n_trials is 0 in every row; at least one row must have trials.")
    return totals


def weight_of_totals(totals: Array, weight: Array | None) -> Array | None:
    """Weights, 0 where there were no trials: such rows say nothing, and are left out."""
    none = totals["trials"] == 0
    return np.where(none, 0.0, 1.0 if weight is None else weight) if none.any() else weight


def shares_of(successes: Array, trials: Array) -> Array:
    """Shares of successes; 0 where there were no trials."""
    return successes / np.maximum(trials, 1.0)


def observed_totals(model: Any, X: Any, y: Any, row_data: dict[str, Any]) -> tuple[Array, ...]:
    """Rows, successes and trials; 1 where they are not given."""
    check_is_fitted(model)
    rows, y = model._validate_rows(X, y, reset=False)
    model._check_values(rows, fitting=False)
    given = model._given(rows, row_data)
    totals = totals_of(rows, y, 1 if given is None else given)
    return rows, totals["successes"], totals["trials"]


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

    def _source(self, X: Any, y: Any, sample_weight: Any, n_trials: Any = None) -> RowSource | None:
        source = as_source(X, y, sample_weight, n_trials=n_trials)
        if source is not None and not source.has_exposure:
            raise ValueError("the blocks have no n_trials; let them be (X, y, weight, n_trials).")
        return source

    def _encoding(self, moments: Moments) -> Encoding:
        return TOTALS

    def _with_row_data(
        self, X: Array, y: Array, n_trials: Any = None
    ) -> tuple[Array, Array | None]:
        if n_trials is None:
            raise ValueError(f"n_trials is None{_MISSING}")
        return totals_of(X, y, n_trials), None

    def _target_and_weight(self, y: Array, weight: Array | None) -> tuple[Array, Array | None]:
        return y, weight_of_totals(y, weight)

    def _given(self, X: Any, row_data: dict[str, Any]) -> Array:
        given = super()._given(X, row_data)
        return check_trials(1, X) if given is None else given

    def _observed(self, X: Any, y: Any, **row_data: Any) -> tuple[Array, ...]:
        return observed_totals(self, X, y, row_data)

    def _shares(self, y: Array, given: Array) -> Array:
        """Shares of successes."""
        totals = totals_of(given, np.ravel(y), given)
        return shares_of(totals["successes"], totals["trials"])

    def _target_before_fit(
        self, y: Array | None, n_rows: int
    ) -> tuple[Array, Likelihood, Array | None]:
        return np.full(n_rows, np.nan), self._likelihood(), None
