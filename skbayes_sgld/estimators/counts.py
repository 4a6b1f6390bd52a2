"""Counts: a rate with a log link, and the exposure over which each count was made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from skbayes_sgld._checks import check_lengths
from skbayes_sgld.blocks import as_source
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.estimators.arviz import to_arviz
from skbayes_sgld.estimators.base import Array, Rows
from skbayes_sgld.estimators.block_predictions import LazyRows, by_block
from skbayes_sgld.estimators.linear import LinearEstimator
from skbayes_sgld.estimators.outputs import has_outputs
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.prior import draw_prior_predictive
from skbayes_sgld.estimators.regression import OverExposure, RegressionModel
from skbayes_sgld.estimators.scores import D2
from skbayes_sgld.estimators.validation import (
    check_exposure,
    check_weight,
    log_exposure,
    warn_of_fraction,
)


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
    _takes_rates = True  # the likelihood of rates weighted by exposures is that of the counts

    def _exponential(self) -> str:
        return "rate"

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: the target is not negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or RowBlocks
            Not copied, unless its type is not float64 or float32. Of rows in blocks y,
            sample_weight and exposure are in the blocks.
        y : array-like of shape (n_samples,)
            Whole counts, 0 or more. Rates, counts over their exposure, are taken too where
            ``sample_weight`` has the exposures, as of ``sklearn.linear_model.PoissonRegressor``;
            ``exposure`` takes the counts themselves.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative. A row of weight w counts as w rows.
        exposure : array-like of shape (n_samples,) or float, default=None
            Time, area or population over which each count was made; positive. The mean count is
            the exposure times the rate exp(X coef + intercept). None: 1 in every row.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            For data or parameters that cannot be used; the estimator stays as it was.

        Warns
        -----
        UserWarning
            Where y has fractions that no ``sample_weight`` makes counts of.
        """
        return self._fit(X, y, sample_weight, exposure=exposure)

    def _source(self, X: Any, y: Any, sample_weight: Any, exposure: Any = None) -> RowSource | None:
        return as_source(X, y, sample_weight, exposure)

    def _check_data(self, X: Any, y: Any, sample_weight: Any, **row_data: Any) -> Rows:
        _check_one_column(y)
        rows = super()._check_data(X, y, sample_weight, **row_data)
        weighted_rates = rows.offset is None and sample_weight is not None
        if not (weighted_rates and self._takes_rates):
            warn_of_fraction(_first_fraction(rows.y), with_exposure=rows.offset is not None)
        return rows

    def _with_row_data(
        self, X: Array, y: Array, exposure: Any = None
    ) -> tuple[Array, Array | None]:
        return y, None if exposure is None else log_exposure(exposure, X)

    @overload
    def predict(self, X: LazyRows, return_std: bool = ..., exposure: Any = ...) -> Any: ...
    @overload
    def predict(
        self, X: RowSource, return_std: Literal[False] = ..., exposure: Any = ...
    ) -> Iterator[Array]: ...
    @overload
    def predict(
        self, X: RowSource, return_std: Literal[True], exposure: Any = ...
    ) -> Iterator[tuple[Array, Array]]: ...
    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: Literal[False] = ...,
        exposure: Any = ...,
        *,
        out: Array | None = ...,
    ) -> Array: ...
    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[True], exposure: Any = ...
    ) -> tuple[Array, Array]: ...
    @by_block
    def predict(
        self, X: ArrayLike, return_std: bool = False, exposure: Any = None, *, out: Any = None
    ) -> Any:
        """Posterior mean of the rate, or of the count over an exposure.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Return the standard deviation of a new count too.
        exposure : array-like of shape (n_samples,) or float, default=None
            Exposures of the new rows. None: 1, which makes the prediction a rate, whatever ``fit``
            saw (as in statsmodels).

        Returns
        -------
        mean : ndarray of shape (n_samples,)
        std : ndarray of shape (n_samples,)
            Where ``return_std``.
        """
        return super().predict(_over(X, exposure), return_std)

    @by_block
    def predict_quantiles(
        self,
        X: ArrayLike,
        q: ArrayLike = (0.05, 0.5, 0.95),
        kind: str = "predictive",
        exposure: Any = None,
        *,
        out: Array | None = None,
    ) -> Array:
        """Quantiles of the posterior predictive distribution: of a mixture of Poisson counts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        q : array-like of shape (n_quantiles,), default=(0.05, 0.5, 0.95)
            Levels in (0, 1).
        kind : {"predictive", "mean"}, default="predictive"
            Quantiles of a new count, or of its mean.
        exposure : array-like of shape (n_samples,) or float, default=None
            As in :meth:`predict`.

        Returns
        -------
        quantiles : ndarray of shape (n_samples, n_quantiles)
            Whole numbers where ``kind="predictive"``: the least count of at least that
            probability.
        """
        return super().predict_quantiles(_over(X, exposure), q, kind)

    @by_block
    def predict_interval(
        self,
        X: ArrayLike,
        coverage: ArrayLike = 0.9,
        kind: str = "predictive",
        exposure: Any = None,
        *,
        out: Array | None = None,
    ) -> Array:
        """Equal-tailed intervals; of a count they cover at least ``coverage``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        coverage : float or array-like of shape (n_coverages,), default=0.9
            Probability of the interval, in (0, 1); or several.
        kind : {"predictive", "mean"}, default="predictive"
            Intervals of a new count, or of its mean.
        exposure : array-like of shape (n_samples,) or float, default=None
            As in :meth:`predict`.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, 2, n_coverages)
            With the coverages last where several are given.
        """
        return super().predict_interval(_over(X, exposure), coverage, kind)

    def posterior_mean_draws(
        self,
        X: ArrayLike,
        n_samples: int | None = None,
        random_state: Any = None,
        exposure: Any = None,
    ) -> Array:
        """Draws of the rate, or of the mean count over an exposure.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int or None, default=None
            Number of draws, chosen at random among those of the fit. None: all of them.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the choice; the estimator's own where None.
        exposure : array-like of shape (n_rows,) or float, default=None
            As in :meth:`predict`.

        Returns
        -------
        mean : ndarray of shape (n_draws, n_rows)
            Under the draws of :meth:`sample_posterior` for the same arguments, in their order.
        """
        return super().posterior_mean_draws(_over(X, exposure), n_samples, random_state)

    def predict_cdf(self, X: ArrayLike, y: ArrayLike, exposure: Any = None) -> Array:
        """Distribution function of the posterior predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_points)
            Counts, one or several a row.
        exposure : array-like of shape (n_samples,) or float, default=None
            As in :meth:`predict`.

        Returns
        -------
        probability : ndarray of the shape of y
            Probability of a count of at most ``y``. For 200 rows and more it is accurate to 3e-6,
            for fewer to rounding.
        """
        return super().predict_cdf(_over(X, exposure), y)

    def _as_observed(self, y: Array) -> Array:
        fraction = _first_fraction(y)
        if fraction is not None:
            raise ValueError(
                f"y has the value {fraction:g}; probabilities are of whole counts. Give the counts "
                "as y, and the time, area or population they were made over as exposure."
            )
        return super()._as_observed(y)

    def _observed(self, X: Any, y: Any, exposure: Any = None) -> tuple[Array, ...]:
        data = super()._observed(X, y)
        return data if exposure is None else (*data, log_exposure(exposure, X))

    def log_likelihood(self, X: ArrayLike, y: ArrayLike, exposure: Any = None) -> Array:
        """Log probability of every count under every draw.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        exposure : array-like of shape (n_samples,) or float, default=None
            As in :meth:`predict`.

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws_of_all_chains, n_samples)
            In the order of ``posterior_.flat``. Under a decaying schedule the draws have weights,
            ``posterior_.flat_weights``.
        """
        return self._predictive().log_likelihood(*self._observed(X, y, exposure)).T

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike, exposure: Any = None) -> Array:
        """Log posterior predictive probability of every count.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        exposure : array-like of shape (n_samples,) or float, default=None
            As in :meth:`predict`.

        Returns
        -------
        log_probability : ndarray of shape (n_samples,)
            Log of the probability's mean over the draws.
        """
        return self._predictive().log_density(*self._observed(X, y, exposure))

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0, exposure: Any = None
    ) -> Array:
        """Draws of counts from the posterior predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=0
        exposure : array-like of shape (n_rows,) or float, default=None
            As in :meth:`predict`.

        Returns
        -------
        y : ndarray of shape (n_rows, n_samples)
        """
        return super().sample_y(_over(X, exposure), n_samples, random_state)

    def to_arviz(
        self,
        X: Any = None,
        y: Any = None,
        random_state: Any = 0,
        exposure: Any = None,
        *,
        groups: Any = None,
    ) -> Any:
        """Convert the fit to ArviZ; it needs the extra ``arviz``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None, default=None
            Rows to add: those of ``fit``, for leave-one-out cross-validation, or new ones.
        y : array-like of shape (n_samples,) or None, default=None
            Their counts.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws of counts.
        exposure : array-like of shape (n_samples,) or float, default=None
            As in :meth:`predict`; in ``constant_data`` where it is given.
        groups : sequence of str or None, default=None
            Groups to make. None: all of them.

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            With the groups of :meth:`SGLDLinearRegression.to_arviz
            <skbayes_sgld.SGLDLinearRegression.to_arviz>`.
        """
        offset = None if X is None or exposure is None else log_exposure(exposure, X)
        return to_arviz(self, X, y, random_state, groups, offset)

    def sample_prior(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: Any = 0,
        y: Any = None,
        exposure: Any = None,
    ) -> Array:
        """Draws of counts from the prior predictive distribution.

        They show what a prior says of data. Each column has parameters of its own, the same for
        all rows. All priors must be proper; that of the intercept is flat by default.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Before ``fit`` automatic scales are in the units of these columns; afterwards they are
            those of the fit.
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=0
        y : array-like of shape (n_rows,) or None, default=None
            Not used: no scale of a prior of rates depends on them.
        exposure : array-like of shape (n_rows,) or float, default=None
            As in :meth:`predict`.

        Returns
        -------
        y : ndarray of shape (n_rows, n_samples)

        Raises
        ------
        ValueError
            Naming ``prior`` or ``intercept_prior``, where nothing can be drawn from it.
        """
        offset = None if exposure is None else log_exposure(exposure, X)
        return draw_prior_predictive(self, X, n_samples, random_state, None, offset)

    def _check_scored(self, y: Any) -> Array:
        return self._likelihood().check_target(super()._check_scored(y))

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None
    ) -> float:
        """Share of the Poisson deviance that is explained, D^2.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), RowBlocks, or of Dask
            Rows in blocks are read once; the blocks of RowBlocks hold y and sample_weight too.
        y : array-like of shape (n_samples,)
            Counts.
        sample_weight : array-like of shape (n_samples,), default=None
        exposure : array-like of shape (n_samples,) or float, default=None
            Over which the counts were made; the model that explains nothing is one rate for all.

        Returns
        -------
        score : float
            The score of ``sklearn.linear_model.PoissonRegressor`` for rates weighted by exposure; 0
            for rows without an event. NaN, with a warning, where the chains have not left their
            starting points.
        """
        source = self._source(X, y, sample_weight, exposure)
        if source is None and exposure is not None:  # of rates, weighted by exposure
            weight, y = check_exposure(exposure, X), self._check_scored(y)
            check_lengths(X=weight, y=y)
            y = y / weight
            sample_weight = (
                weight if sample_weight is None else weight * check_weight(sample_weight, X)
            )
        return D2.of(self, X, y, sample_weight, source)


def _check_one_column(y: Any) -> None:
    """Raise where y has several columns; the error says how to give exposures."""
    if has_outputs(y) and np.asarray(y).shape[1] > 1:
        raise ValueError(
            f"y has shape {np.asarray(y).shape}; give one count a row. What the counts were made "
            "over is exposure; for several kinds of counts fit a model of each column, as "
            "sklearn.multioutput.MultiOutputRegressor does."
        )


def _first_fraction(y: Array) -> float | None:
    """The first number of y that is not whole; None without one."""
    broken = y[y != np.floor(y)]
    return float(broken[0]) if len(broken) else None


def _over(X: Any, exposure: Any) -> Any:
    """Rows to predict, over an exposure if it is given."""
    return X if exposure is None else OverExposure(X, exposure)
