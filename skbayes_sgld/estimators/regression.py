"""Regression: the target, the posterior and the predictions of models of a numeric y."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._arrays import as_array, check_lengths, check_size
from skbayes_sgld._components import as_random_state, check_flag, check_number, parameters
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.estimators.base import Array, BayesianEstimator
from skbayes_sgld.estimators.by_block import LazyRows, by_block
from skbayes_sgld.estimators.multi_output import by_output
from skbayes_sgld.estimators.outputs import IndependentOutputs
from skbayes_sgld.estimators.prior import PriorPredictive
from skbayes_sgld.estimators.scores import R2, ScoredByBlock
from skbayes_sgld.estimators.validation import check_numeric, warn_of_few_rows
from skbayes_sgld.posterior import (
    LIKELIHOODS,
    CoefficientPrior,
    ConstantNoise,
    FixedGaussian,
    Gaussian,
    GLMPosterior,
    HeteroscedasticGaussian,
    Likelihood,
    NoiseModel,
    NoisePrior,
)
from skbayes_sgld.prediction.intervals import check_quantiles, equal_tailed
from skbayes_sgld.prediction.predictive import Predictive
from skbayes_sgld.prediction.predictors import LinearPredictor

_KINDS = ("predictive", "mean")


class RegressionModel(ScoredByBlock, RegressorMixin, BayesianEstimator):
    """Observations that are numbers: data and predictions, whatever the likelihood."""

    _y_checks: ClassVar[dict[str, Any]] = {"y_numeric": True}
    _score = R2
    prior: Any

    _family: ClassVar[str]  # name of the likelihood

    def _likelihood(self) -> Likelihood:
        """Distribution of an observation, as the parameters of the estimator say."""
        return LIKELIHOODS[self._family]()

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Array | None]:
        check_numeric(y)
        return super()._validate(X, y, sample_weight)

    def _encode(
        self, X: Array, y: Array, weight: Array | None
    ) -> tuple[Array, Array, Array | None]:
        return X, self._likelihood().check_target(y), weight

    def _label(self, y: Array, weight: Array | None) -> tuple[Array, Array | None]:
        self._check_size(y)
        return y, weight

    def _check_size(self, y: Array) -> None:
        """Raise where y holds no numbers, or some whose squares are out of range."""
        if y.dtype.kind not in "biuf":
            raise TypeError(f"y has dtype {y.dtype}; the target of a regression must be numeric.")
        check_size(float(np.abs(y).max()), "y", *self._likelihood().sizes)

    @overload
    def predict(self, X: LazyRows, return_std: bool = ...) -> Any: ...
    @overload
    def predict(self, X: RowSource, return_std: Literal[False] = ...) -> Iterator[Array]: ...
    @overload
    def predict(self, X: RowSource, return_std: Literal[True]) -> Iterator[tuple[Array, Array]]: ...
    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[False] = ..., *, out: Array | None = ...
    ) -> Array: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[Array, Array]: ...
    @by_block
    @by_output(1)
    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Mean of the posterior predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Return its standard deviation too. It includes the noise, as that of
            ``sklearn.linear_model.BayesianRidge`` does.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
        std : ndarray of shape (n_samples,)
            Where ``return_std``.
        """
        return self._predict(self._check_rows(X), return_std)

    def _predict(self, X: Array, return_std: bool, offset: Array | None = None) -> Any:
        check_flag(return_std, "return_std")
        mean = self._mean(X, offset)
        if not return_std:
            return mean
        return mean, np.sqrt(self._predictive().moments(X, offset)[:, 1])

    def _mean(self, X: Array, offset: Array | None = None) -> Array:
        return self._predictive().mean(X, offset)

    @overload
    def predict_quantiles(self, X: LazyRows, q: ArrayLike = ..., kind: str = ...) -> Any: ...
    @overload
    def predict_quantiles(
        self, X: RowSource, q: ArrayLike = ..., kind: str = ...
    ) -> Iterator[Array]: ...
    @overload
    def predict_quantiles(
        self, X: ArrayLike, q: ArrayLike = ..., kind: str = ..., *, out: Array | None = ...
    ) -> Array: ...
    @by_block
    @by_output(1)
    def predict_quantiles(
        self, X: ArrayLike, q: ArrayLike = (0.05, 0.5, 0.95), kind: str = "predictive"
    ) -> Array:
        """Quantiles of the posterior predictive distribution.

        They are quantiles of the mixture of the draws' distributions, computed without random
        numbers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        q : array-like of shape (n_quantiles,), default=(0.05, 0.5, 0.95)
            Levels in (0, 1).
        kind : {"predictive", "mean"}, default="predictive"
            Of a new observation, or of the regression function.

        Returns
        -------
        quantiles : ndarray of shape (n_samples, n_quantiles)
        """
        return self._quantiles(self._check_rows(X), check_quantiles(q), kind)

    def _quantiles(self, X: Array, levels: Array, kind: str, offset: Array | None = None) -> Array:
        if not isinstance(kind, str) or kind not in _KINDS:
            raise ValueError(f"kind={kind!r} is not known; choose one of 'mean', 'predictive'.")
        predictive = self._predictive()
        of = predictive.mean_quantiles if kind == "mean" else predictive.quantiles
        return of(X, levels, offset)

    @overload
    def predict_interval(self, X: LazyRows, coverage: ArrayLike = ..., kind: str = ...) -> Any: ...
    @overload
    def predict_interval(
        self, X: RowSource, coverage: ArrayLike = ..., kind: str = ...
    ) -> Iterator[Array]: ...
    @overload
    def predict_interval(
        self, X: ArrayLike, coverage: ArrayLike = ..., kind: str = ..., *, out: Array | None = ...
    ) -> Array: ...
    @by_block
    @by_output(1)
    def predict_interval(
        self, X: ArrayLike, coverage: ArrayLike = 0.9, kind: str = "predictive"
    ) -> Array:
        """Equal-tailed intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        coverage : float or array-like of shape (n_coverages,), default=0.9
            Probability of the interval, in (0, 1); or several.
        kind : {"predictive", "mean"}, default="predictive"
            For a new observation, or for the regression function.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, 2, n_coverages)
            With the coverages last where several are given.
        """
        X = self._check_rows(X)
        return equal_tailed(lambda levels: self._quantiles(X, levels, kind), coverage)

    @by_output(2)
    def posterior_mean_draws(
        self, X: ArrayLike, n_samples: int | None = None, random_state: Any = None
    ) -> Array:
        """Draws of the regression function: the mean of y under draws of the parameters.

        Their quantiles are the intervals of ``predict_interval(X, kind="mean")``; a new
        observation varies more, by the noise (:meth:`sample_y`).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int or None, default=None
            Number of draws, chosen at random among those of the fit. None: all of them.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the choice; the estimator's own where None.

        Returns
        -------
        mean : ndarray of shape (n_draws, n_rows)
            Under the draws of :meth:`sample_posterior` for the same arguments, in their order.
        """
        return self._mean_draws(self._check_rows(X), n_samples, random_state)

    def _mean_draws(
        self, X: Array, n_samples: int | None, random_state: Any, offset: Array | None = None
    ) -> Array:
        chosen = self._choose_draws(n_samples, random_state)
        return self._predictive(chosen).mean_draws(X, offset).T

    @by_output(1)
    def predict_cdf(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Distribution function of the posterior predictive distribution.

        At the observations themselves it is their probability integral transform: uniform on
        (0, 1) where the predictions are calibrated.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_points)
            Points, one or several a row.

        Returns
        -------
        probability : ndarray of the shape of y
            Of an observation of at most ``y``. For 200 rows and more it is accurate to 3e-6, for
            fewer to rounding.
        """
        return self._cdf(self._check_rows(X), y)

    def _cdf(self, X: Array, y: ArrayLike, offset: Array | None = None) -> Array:
        t = as_array(y, "y", (1, 2))
        check_lengths(X=X, y=t)
        return self._predictive().cdf(X, t.reshape(len(t), -1), offset).reshape(t.shape)

    @by_output(2)
    def log_likelihood(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Log density of every observation under every draw.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws_of_all_chains, n_samples)
            In the order of ``posterior_.flat``. Under a decaying schedule the draws have weights,
            ``posterior_.flat_weights``.
        """
        rows, observed = self._check_observed(X, y)
        return self._predictive().log_likelihood(rows, observed).T

    @by_output(1)
    def log_predictive_density(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Log posterior predictive density of every observation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log of the density's mean over the draws.
        """
        rows, observed = self._check_observed(X, y)
        return self._predictive().log_density(rows, observed)

    def _check_observed(self, X: Any, y: Any) -> tuple[Array, Array]:
        """Rows and their observations, checked as those of ``fit``."""
        check_is_fitted(self)
        X, y = self._validate_rows(X, y, reset=False, y_numeric=True)
        self._check_new_rows(X, self)
        self._check_size(y)
        return X, self._check_values(y)

    def _check_values(self, y: Array) -> Array:
        return self._likelihood().check_target(y)

    @by_output(1, one_stream=True)
    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draws from the posterior predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=0

        Returns
        -------
        y : ndarray of shape (n_rows, n_samples)
        """
        return self._sample_y(self._check_rows(X), n_samples, random_state)

    def _sample_y(
        self, X: Array, n_samples: int, random_state: Any, offset: Array | None = None
    ) -> Array:
        check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
        rng = as_random_state(random_state)
        return self._predictive(self.posterior_.choose(n_samples, rng)).sample(X, rng, offset)


@parameters
class NormalModel(RegressionModel):
    """Normal observations around a regression function, of inferred or known variance."""

    noise_prior: Any = "inverse_gamma"
    noise_variance: Any = "infer"
    noise_model = "constant"
    _y_checks: ClassVar[dict[str, Any]] = {"y_numeric": True, "ensure_min_samples": 2}

    def _likelihood(self) -> Likelihood:
        if isinstance(self.noise_variance, str):
            if self.noise_variance != "infer":
                raise ValueError(
                    f"noise_variance={self.noise_variance!r} is not accepted; give 'infer' or a "
                    "positive number."
                )
            return Gaussian()
        likelihood = FixedGaussian(self.noise_variance)
        likelihood.check()
        return likelihood

    def _check_values(self, y: Array) -> Array:
        return y.astype(float)  # a single one may be asked about

    def _noise_draws(self) -> Array:
        """Noise variance of every draw ``(S,)``."""
        raise NotImplementedError

    def _predictive(self, chosen: Any = slice(None)) -> Predictive:
        gamma, weights = np.log(self._noise_draws()[chosen]), self._weights_of(chosen)
        return Predictive(self._predictor(chosen), Gaussian(), gamma, weights)


class LinearRegressor(RegressionModel, PriorPredictive):
    """A regressor with one linear predictor."""

    def _target_before_fit(
        self, y: Array | None, n_rows: int
    ) -> tuple[Array, Likelihood, Array | None]:
        likelihood = self._likelihood()
        known = np.full(n_rows, np.nan) if y is None else likelihood.check_target(y)
        return known, likelihood, None

    def _noise(self) -> NoiseModel:
        """How the noise depends on the row."""
        return ConstantNoise()

    def _make_posterior(
        self, X: Array, y: Array, weight: Array | None, center: bool, **known: Any
    ) -> GLMPosterior:
        prior, noise_prior = self._components(y, weight)
        if prior.scaled_by_noise and prior.automatic and noise_prior is not None:
            warn_of_few_rows(weight, *X.shape)
        return self._noise().bind(
            X,
            y,
            self._likelihood(),
            prior,
            noise_prior,
            intercept_prior=self._resolve_intercept_prior(),
            sample_weight=weight,
            fit_intercept=self.fit_intercept,
            center=center,
            feature_names=self._feature_names(),
            **known,
        )

    def _set_point(self, values: Array) -> None:
        super()._set_point(values)
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])

    def _predictive(self, chosen: Any = slice(None)) -> Predictive:
        weights = self._weights_of(chosen)
        return Predictive(self._predictor(chosen), self._likelihood(), None, weights)


@parameters
class BayesianRegressor(IndependentOutputs, NormalModel, LinearRegressor):
    """A regressor with one linear predictor and normal noise, or with several such outputs."""

    prior: Any = "conjugate_normal"

    def _components(self, y: Array, weight: Array | None) -> tuple[Any, NoisePrior | None]:
        prior = self._resolve("prior")
        if prior.hierarchical:
            prior = prior.conditional()
        if not isinstance(self.noise_variance, str):
            return prior, None
        level = np.average(y, weights=weight)
        variance = float(np.average(np.square(y - level), weights=weight))
        return prior, self._resolve("noise_prior").for_data(variance)

    def _resolve_intercept_prior(self) -> CoefficientPrior:
        return self._resolve("intercept_prior")

    def _noise(self) -> NoiseModel:
        return self._resolve("noise_model")

    def _set_layout(self, posterior: GLMPosterior) -> None:
        super()._set_layout(posterior)
        self._noise_columns = posterior.noise_columns

    def _sample_prior(
        self, X: Any, n_samples: int, random_state: Any, y: Any, offset: Array | None = None
    ) -> Array:
        if not self._noise().constant:
            raise ValueError(
                f"noise_model={self.noise_model!r} cannot be drawn from before data are seen; set "
                "noise_model='constant'."
            )
        return super()._sample_prior(X, n_samples, random_state, y, offset)

    def _set_others(self, parts: dict[str, Any]) -> None:
        if self._noise_columns is not None:
            self.noise_coef_, self.noise_intercept_ = parts["noise_coef"], parts["noise_intercept"]
        else:
            self.noise_variance_ = float(parts.get("noise_variance", self.noise_variance))

    def _noise_draws(self) -> Array:
        parts, _ = self._draws()
        fixed = np.full(len(parts["coef"]), self.noise_variance_)
        return parts.get("noise_variance", fixed)

    def _predictive(self, chosen: Any = slice(None)) -> Predictive:
        if self._noise_columns is None:
            return super()._predictive(chosen)
        parts, _ = self._draws()
        slopes = np.zeros_like(parts["coef"])
        slopes[:, 0, self._noise_columns] = 2.0 * parts["noise_coef"]
        level = np.column_stack([parts["intercept"], 2.0 * parts["noise_intercept"]])
        coef = np.concatenate([parts["coef"], slopes], axis=1)
        predictor = LinearPredictor(coef[chosen], level[chosen])
        return Predictive(predictor, HeteroscedasticGaussian(), None, self._weights_of(chosen))

    def _mean(self, X: Array, offset: Array | None = None) -> Array:
        return X @ self.coef_ + self.intercept_
