"""Counts, each over an exposure or among trials."""

from __future__ import annotations

from typing import ClassVar

from skbayes_sgld.estimators.linear import LinearEstimator
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.regression import RegressionModel
from skbayes_sgld.rows.reading import UnreadRows
from skbayes_sgld.rows.scores import D2_BINOMIAL, D2_POISSON
from skbayes_sgld.rows.targets import Counts, Target, Totals


@parameters
class CountRegressor(RegressionModel, LinearEstimator):
    """A regressor of counts, each over an exposure.

    The log of the exposure is an offset of the linear predictor. The scale of a column, from which
    that of an automatic prior is computed, depends on the weights and not on the exposures.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    """

    _family = "poisson"
    _row_arguments = ("exposure",)
    _score = D2_POISSON
    _positive = True
    _y_holds = (
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

    def _target(self, rows: UnreadRows) -> Target:
        return Counts(likelihood=self._likelihood())


@parameters
class TotalsRegressor(RegressionModel, LinearEstimator):
    """A regressor of numbers of successes among trials, with a logistic link.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    """

    _family = "beta_binomial"
    _row_arguments = ("n_trials",)
    _score = D2_BINOMIAL
    _positive = True
    _y_holds = "whole numbers of successes."
    _argument_hints: ClassVar[dict[str, str]] = {
        **RegressionModel._argument_hints,
        "n_averaged": "for shares of successes give the successes as y, and n_trials",
        "offset": "the log odds have no known part; give a column of X",
    }

    def _target(self, rows: UnreadRows) -> Target:
        return Totals(likelihood=self._likelihood())
