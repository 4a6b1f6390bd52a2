"""Counts, each over an exposure or among trials."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.estimators.base import Array, Rows
from skbayes_sgld.estimators.linear import LinearEstimator
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.regression import RegressionModel
from skbayes_sgld.estimators.scores import D2_BINOMIAL, D2_POISSON
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.rows.arguments import totals_of, totals_of_fit
from skbayes_sgld.rows.checks import trials_of, warn_of_fraction


@parameters
class CountRegressor(RegressionModel, LinearEstimator):
    """A regressor of counts, each over an exposure.

    The log of the exposure is an offset of the linear predictor. The scale of a column, which sets
    that of an automatic prior, depends on the weights alone.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    """

    _family = "poisson"
    _row_arguments = ("exposure",)
    _exponential = "rate"
    _score = D2_POISSON
    _positive = True
    _target = (
        "whole counts, 0 or more. Rates, counts over their exposure, are taken too where "
        "``sample_weight`` has the exposures, as of ``sklearn.linear_model.PoissonRegressor``; "
        "``exposure`` takes the counts themselves. Of other fractions ``fit`` warns."
    )
    _advice_on_columns = (
        "give one count a row. What the counts were made over is exposure; for several kinds of "
        "counts fit a model of each column, as sklearn.multioutput.MultiOutputRegressor does; its "
        "estimators_ have the intervals."
    )
    _argument_hints: ClassVar[dict[str, str]] = {
        **RegressionModel._argument_hints,
        "offset": "an offset is the log of an exposure: exposure=np.exp(offset)",
        "n_averaged": "for means of several counts give their sums as y, and how many as exposure",
    }
    _takes_rates = True  # the likelihood of rates weighted by exposures is that of the counts

    def _check_data(self, X: Any, y: Any, sample_weight: Any, by_row: dict[str, Any]) -> Rows:
        rows = super()._check_data(X, y, sample_weight, by_row)
        weighted_rates = rows.offset is None and sample_weight is not None
        if not (weighted_rates and self._takes_rates):
            warn_of_fraction(_first_fraction(rows.y), with_exposure=rows.offset is not None)
        return rows

    def _are_rates(self, y: Array, weight: Array | None) -> bool:
        return self._takes_rates and weight is not None and _first_fraction(y) is not None

    def _as_numbers(self, y: Array, fitting: bool = True) -> Array:
        numbers = super()._as_numbers(y, fitting)
        fraction = None if fitting else _first_fraction(y)
        if fraction is not None:
            raise ValueError(
                f"y has the value {fraction:g}; probabilities are of whole counts. Give the counts "
                "as y, and the time, area or population they were made over as exposure."
            )
        return numbers


@parameters
class TotalsRegressor(RegressionModel, LinearEstimator):
    """A regressor of numbers of successes among trials, by a logistic function of the columns.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    """

    _family = "beta_binomial"
    _row_arguments = ("n_trials",)
    _exponential = "odds"
    _score = D2_BINOMIAL
    _positive = True
    _target = "whole numbers of successes."
    _argument_hints: ClassVar[dict[str, str]] = {
        **RegressionModel._argument_hints,
        "n_averaged": "for shares of successes give the successes as y, and n_trials",
        "offset": "the log odds have no known part; give a column of X",
    }

    def _model_of_source(self, settings: Any, source: RowSource) -> GLMPosterior:
        if not source.has_exposure:
            raise ValueError("the blocks have no n_trials; let them be (X, y, weight, n_trials).")
        return super()._model_of_source(settings, source)

    def _target_of_fit(
        self, X: Any, y: Array, weight: Array | None, by_row: dict[str, Any]
    ) -> tuple[Array, Array | None, Array | None]:
        n_trials = by_row.get("n_trials")
        if n_trials is None:
            raise ValueError(
                "n_trials is None; give the trials of each row, of which y were successes: "
                "fit(X, y, n_trials=n)."
            )
        self._by_row = "n_trials"
        return *totals_of_fit(X, y, weight, n_trials), None

    def _as_numbers(self, y: Array, fitting: bool = True) -> Array:
        return y

    def _row_values(self, X: Any, by_row: dict[str, Any]) -> dict[str, Array]:
        return super()._row_values(X, by_row) or {"n_trials": trials_of(1, X)}

    def _shares(self, y: Array, exposure: Array) -> Array:
        totals = totals_of(exposure, np.ravel(y), exposure)
        return totals["successes"] / np.maximum(totals["trials"], 1.0)


def _first_fraction(y: Array) -> float | None:
    """The first number of y that is not whole; None without one."""
    broken = y[y != np.floor(y)]
    return float(broken[0]) if len(broken) else None
