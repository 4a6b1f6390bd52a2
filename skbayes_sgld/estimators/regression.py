"""Regression: the target, the posterior and the predictions of models of a numeric y."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._checks import as_array, check_choice, check_flag, check_lengths
from skbayes_sgld.estimators.base import Array, BayesianEstimator
from skbayes_sgld.estimators.outputs import SeveralOutputs
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.prediction_methods import LazyRows, RowsInBlocks, prediction_method
from skbayes_sgld.likelihoods import (
    LIKELIHOODS,
    FixedNormalNoise,
    Likelihood,
    NormalNoise,
)
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.intervals import check_levels, equal_tailed
from skbayes_sgld.prediction.predictors import LinearPredictor
from skbayes_sgld.prediction.random_walks import unless_random_walks
from skbayes_sgld.rows.arguments import beside_size, check_by_row_given, check_names, size_argument
from skbayes_sgld.rows.arrays import Arrays
from skbayes_sgld.rows.checks import check_weight
from skbayes_sgld.rows.reading import UnreadRows, read_rows
from skbayes_sgld.rows.scores import R2, Score, are_rates
from skbayes_sgld.rows.targets import Measurements, Numbers, Target


class RegressionModel(RegressorMixin, BayesianEstimator):
    """Observations that are numbers: data and predictions, whatever the likelihood."""

    _family: ClassVar[str]  # name of the likelihood
    _score: ClassVar[Score] = R2
    _positive: ClassVar[bool] = False  # whether y is not negative

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: whether y is not negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._positive
        return tags

    def _target(self, rows: UnreadRows) -> Target:
        return Numbers(likelihood=self._likelihood())

    def _likelihood(self) -> Likelihood:
        return LIKELIHOODS[self._family]()

    # ---- predictions --------------------------------------------------------------------------

    @overload
    def predict(self, X: LazyRows, return_std: bool = ..., **by_row: Any) -> Any: ...
    @overload
    def predict(
        self, X: RowsInBlocks, return_std: Literal[False] = ..., **by_row: Any
    ) -> Iterator[Array]: ...
    @overload
    def predict(
        self, X: RowsInBlocks, return_std: Literal[True], **by_row: Any
    ) -> Iterator[tuple[Array, Array]]: ...
    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: Literal[False] = ...,
        *,
        out: Array | None = ...,
        **by_row: Any,
    ) -> Array: ...
    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[True], **by_row: Any
    ) -> tuple[Array, Array]: ...
    # here and below `prediction_method` writes into `out`; a body is only called without it
    @prediction_method
    def predict(
        self, X: ArrayLike, return_std: bool = False, *, out: Any = None, **by_row: Any
    ) -> Any:
        """Mean of the posterior predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Also return its standard deviation. It includes the noise, like that of
            ``sklearn.linear_model.BayesianRidge``.
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. If X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        std : ndarray of the shape of mean
            Only if ``return_std``.
        """
        check_flag(return_std, "return_std")
        predictions = self._predictions(X, by_row)
        mean = predictions.mean()
        return (mean, predictions.sd()) if return_std else mean

    @prediction_method
    def predict_quantiles(
        self,
        X: ArrayLike,
        q: ArrayLike = (0.05, 0.5, 0.95),
        kind: str = "predictive",
        *,
        out: Array | None = None,
        **by_row: Any,
    ) -> Array:
        """Quantiles of the posterior predictive distribution.

        They are quantiles of the mixture of the draws' distributions, computed without random
        numbers. Quantiles of counts are whole: the least count of at least that probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        q : array-like of shape (n_quantiles,), default=(0.05, 0.5, 0.95)
            Levels in (0, 1).
        kind : {"predictive", "mean"}, default="predictive"
            Quantiles of a new observation, or of the regression function.
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. If X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        quantiles : ndarray of shape (n_samples, n_quantiles) or (n_samples, n_outputs, n_quantiles)
        """
        levels = check_levels(q)
        return self._quantiles(X, kind, by_row)(levels)

    def _quantiles(self, X: Any, kind: str, by_row: dict[str, Any]) -> Callable[[Array], Array]:
        """Function from levels to quantiles of observations, or of their means."""
        check_choice(kind, "kind", ("mean", "predictive"))
        predictions = self._predictions(X, by_row)
        return predictions.mean_quantiles if kind == "mean" else predictions.quantiles

    @prediction_method
    def predict_interval(
        self,
        X: ArrayLike,
        coverage: ArrayLike = 0.9,
        kind: str = "predictive",
        *,
        out: Array | None = None,
        **by_row: Any,
    ) -> Array:
        """Equal-tailed intervals; those of counts hold at least ``coverage``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        coverage : float or array-like of shape (n_coverages,), default=0.9
            Probability of the interval, in (0, 1); or several.
        kind : {"predictive", "mean"}, default="predictive"
            Intervals of a new observation, or of the regression function.
        out : ndarray or None, default=None
            Array that the result is written into, block by block: X may be a memory map, and so
            may ``out``. If X is :class:`~skbayes_sgld.RowBlocks`, the method returns a
            generator of the results of its blocks.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, 2, n_coverages)
            Several coverages are the last axis. Of several outputs the ends come after
            the outputs, ``(n_samples, n_outputs, 2)``.
        """
        return equal_tailed(self._quantiles(X, kind, by_row), coverage)

    def posterior_mean_draws(
        self,
        X: ArrayLike,
        n_samples: int | None = None,
        random_state: Any = 0,
        **by_row: Any,
    ) -> Array:
        """Draws of the regression function: the mean of y under draws of the parameters.

        Their quantiles are the intervals of ``predict_interval(X, kind="mean")``; a new
        observation varies more, by the noise (:meth:`sample_y`).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int or None, default=None
            Number of draws, chosen at random among those of the fit. None: all of them.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the choice.
        **by_row : array-like of shape (n_rows,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        mean : ndarray of shape (n_rows, n_samples) or (n_rows, n_outputs, n_samples)
            One entry for each draw of :meth:`sample_posterior` with the same arguments, in its
            order.
        """
        selection = self._choose_draws(n_samples, random_state)
        return self._predictions(X, by_row, selection).mean_draws()

    def predict_cdf(self, X: ArrayLike, y: ArrayLike, **by_row: Any) -> Array:
        """Distribution function of the posterior predictive distribution.

        At the observations themselves it is their probability integral transform: uniform on
        (0, 1) if the predictions are calibrated.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_points)
            Points, one or several for each row.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        probability : ndarray of the shape of y
            Probability of an observation of at most ``y``. For 200 or more rows it is accurate to
            3e-6, or with more than 16 points a row to 1e-4, and for fewer rows up to rounding.
        """
        check_by_row_given(self, by_row, "predict_cdf")
        predictions, points = self._predictions(X, by_row), as_array(y, "y", (1, 2))
        return predictions.cdf(points)

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike, **by_row: Any) -> Array:
        """Log posterior predictive density of every observation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        log_density : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Log of the density's mean over the draws.
        """
        return self._predictions_of_observed(X, y, by_row).log_density()

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **by_row: Any) -> float:
        """Share of the deviance of y that the predictions explain, D^2.

        The deviance is that of the family; for a normal model it is the squared residual, and the
        score is R^2. For counts over exposures, or totals of trials, it is the deviance of rates
        or shares, weighted by exposures or trials; averages are weighted by their sizes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), RowBlocks, or of Dask
            Rows in blocks are read once; the blocks of RowBlocks hold y and sample_weight too.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        score : float
            NaN, with a warning, if the chains are no better than random walks.
        """
        check_names(self, by_row)
        rows = read_rows(X, y, sample_weight, by_row, self)
        if not isinstance(rows, Arrays):
            return unless_random_walks(self, rows.score(self, self._score))
        check_is_fitted(self)
        target: Target = self._fitted.target
        y = target.encode_y(as_array(y, "y", (1, 2)))
        if not are_rates(target.likelihood, y, sample_weight):
            check_by_row_given(self, by_row, "score", in_search=True)
        numbers = target.check_by_row(X, by_row)
        name = size_argument(numbers)
        if name:
            size = numbers[name]
            check_lengths(X=size, y=y)
            weight = 1.0 if sample_weight is None else check_weight(sample_weight, X)
            y, sample_weight = self._score.on_scale(y, size), size * weight
        predicted = self.predict(X, **beside_size(by_row))
        score = self._score.score_arrays(y, predicted, sample_weight)
        return unless_random_walks(self, score)


@parameters
class NormalModel(RegressionModel):
    """Normal observations around a regression function, with inferred or known variance.

    Parameters
    ----------
    noise_prior : str or NoisePrior, default="inverse_gamma"
        Prior of the noise: ``"inverse_gamma"`` on its variance, ``"flat"`` on its standard
        deviation, or an instance. The default has almost no weight and follows the units of y.
    noise_variance : "infer" or float, default="infer"
        A number fixes the noise variance, in squared units of y.
    """

    noise_prior: Any = "inverse_gamma"
    noise_variance: Any = "infer"

    def _target(self, rows: UnreadRows) -> Target:
        return Measurements(likelihood=self._likelihood())

    def _likelihood(self) -> Likelihood:
        if not isinstance(self.noise_variance, str):
            FixedNormalNoise(self.noise_variance).check()
            return FixedNormalNoise(float(self.noise_variance))
        if self.noise_variance != "infer":
            raise ValueError(
                f"noise_variance={self.noise_variance!r} is not accepted; give 'infer' or a "
                "positive number."
            )
        return NormalNoise()


@parameters
class NormalRegressor(NormalModel, SeveralOutputs):
    """A linear regression with normal noise; several outputs are fitted one by one.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), or (n_outputs, n_features) if y has columns
    intercept_, noise_variance_ : float, or ndarray of shape (n_outputs,)
    estimators_, output_names_ : list
        Only if y has columns: the model of each, and their names. The attributes below are then
        those of these models, except ``posterior_``, the draws of all outputs.
    """

    _row_arguments = ("n_averaged",)

    def _predictive(self, selection: Any = slice(None)) -> PredictiveDistribution:
        likelihood, own = self._fitted.target.likelihood, self._own_draws(selection)
        if self._fitted.noise_columns is not None:
            unequal = self._mean_and_log_variance(self._fitted.noise_columns, selection)
            return self._mixture(unequal, likelihood.with_unequal_noise(), own, selection)
        predictor = self._predictor(selection)
        if own is None:  # a known variance is an own parameter whose draws are all equal
            own = np.full((predictor.n_draws, 1), np.log(self.noise_variance_))
            likelihood = likelihood.with_inferred_noise()
        return self._mixture(predictor, likelihood, own, selection)

    def _mean_and_log_variance(self, noise_columns: Array, selection: Any) -> LinearPredictor:
        """Predictors of the mean, and of the log variance, whose slopes are of some columns."""
        parts = self._draws(selection)
        slopes = np.zeros_like(parts["coef"])
        slopes[:, 0, noise_columns] = 2.0 * parts["noise_coef"]
        coef = np.concatenate([parts["coef"], slopes], axis=1)
        level = np.column_stack([parts["intercept"], 2.0 * parts["noise_intercept"]])
        return LinearPredictor(coef, level)

    def _point_predictive(self) -> PredictiveDistribution:
        """Distribution whose mean is by ``coef_`` and ``intercept_``; its variance is not used."""
        point: Any = LinearPredictor(self.coef_[None, None], np.full((1, 1), self.intercept_))
        if self._fitted.mixed is not None:
            share = self.posterior_.flat_weights
            S = len(self.posterior_.flat)
            point = self._predictor().at_mean(np.full(S, 1.0 / S) if share is None else share)
        likelihood = self._fitted.target.likelihood.with_inferred_noise()
        return PredictiveDistribution(point, likelihood, np.zeros((1, len(likelihood.own))))
