"""Regression: the target, the posterior and the predictions of models of a numeric y."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state

from skbayes_sgld._components import check_number
from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.estimators.base import (
    Array,
    BayesianEstimator,
    LinearEstimator,
    check_quantiles,
    interval_levels,
)
from skbayes_sgld.posterior import FixedGaussian, Gaussian, GLMPosterior
from skbayes_sgld.prediction import predictors as _predictive
from skbayes_sgld.prediction.predictors import LinearPredictor, Predictor

_KINDS = ("predictive", "mean")


class RegressionModel(RegressorMixin, BayesianEstimator):
    """Normal observations around a regression function: data and predictions."""

    _y_checks: ClassVar[dict[str, Any]] = {"y_numeric": True, "ensure_min_samples": 2}
    prior: Any
    noise_prior: Any
    noise_variance: Any

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Array | None]:
        is_text = y is not None and np.asarray(y).dtype.kind in "OSUT"
        for value in np.ravel(y) if is_text else ():
            try:
                float(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"y has the value {str(value)!r}, which is not a number; the target of a "
                    "regression must be numeric."
                ) from None
        return super()._validate(X, y, sample_weight)

    def _encode(
        self, X: Array, y: Array, weight: Array | None
    ) -> tuple[Array, Array, Array | None]:
        y = y.astype(float, copy=False)
        if isinstance(self.noise_variance, str):
            if self.noise_variance != "infer":
                raise ValueError(
                    f"noise_variance={self.noise_variance!r} is not accepted; give 'infer' or a "
                    "positive number."
                )
            if np.ptp(y) == 0:
                raise ValueError(
                    f"y is constant ({y[0]:g}): there is no noise to infer; give noise_variance a "
                    "positive number, or check the target."
                )
        return X, y, weight

    def _noise_draws(self) -> Array:
        """Return the noise variance of every draw ``(S,)``."""
        raise NotImplementedError

    def _mean(self, X: Array) -> Array:
        """Return the posterior mean of the regression function ``(n,)``."""
        return self._moments(X)[:, 0]

    def _predictive_variance(self, X: Array) -> Array:
        """Return the variance of a new observation ``(n,)``."""
        noise = np.average(self._noise_draws(), weights=self.posterior_.flat_weights)
        return self._moments(X)[:, 1] + noise

    def _moments(self, X: Array) -> Array:
        return _predictive.mean_and_variance(X, self._predictor(), self.posterior_.flat_weights)

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Return the mean of the posterior predictive distribution.

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
        X = self._check_rows(X)
        mean = self._mean(X)
        return (mean, np.sqrt(self._predictive_variance(X))) if return_std else mean

    def predict_quantiles(
        self, X: ArrayLike, q: ArrayLike = (0.05, 0.5, 0.95), kind: str = "predictive"
    ) -> Array:
        """Return quantiles of the posterior predictive distribution.

        They are those of the mixture of the draws' normal laws: deterministic, no fresh noise.

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
        if kind not in _KINDS:
            raise ValueError(f"kind={kind!r} is not known; choose one of 'mean', 'predictive'.")
        levels = check_quantiles(q)
        X = self._check_rows(X)
        predictor, weights = self._predictor(), self.posterior_.flat_weights
        if kind == "mean":
            return _predictive.mean_quantiles(X, predictor, weights, levels)
        variance = self._noise_draws()
        return _predictive.predictive_quantiles(X, predictor, variance, weights, levels)

    def predict_interval(
        self, X: ArrayLike, coverage: float = 0.9, kind: str = "predictive"
    ) -> Array:
        """Return equal-tailed intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        coverage : float, default=0.9
            The probability of the interval, in (0, 1).
        kind : {"predictive", "mean"}, default="predictive"
            For a new observation, or for the regression function.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2)
        """
        return self.predict_quantiles(X, interval_levels(coverage), kind)

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Return draws from the posterior predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int, default=1
        random_state : int, RandomState or None, default=0

        Returns
        -------
        y : ndarray of shape (n_rows, n_samples)
        """
        check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
        X, rng = self._check_rows(X), check_random_state(random_state)
        chosen = self.posterior_.choose(n_samples, rng)
        mean = self._predictor(chosen)(X)[0]
        return mean + rng.standard_normal(mean.shape) * np.sqrt(self._noise_draws()[chosen])


class BayesianRegressor(RegressionModel, LinearEstimator):
    """Normal linear model: what a regression estimator adds to the base."""

    def _make_posterior(
        self, X: Array, y: Array, weight: Array | None, center: bool
    ) -> GLMPosterior:
        prior, noise_prior, likelihood = self._resolve("prior"), None, Gaussian()
        if isinstance(self.noise_variance, str):
            level = np.average(y, weights=weight)
            noise_prior = self._resolve("noise_prior").for_data(
                float(np.average(np.square(y - level), weights=weight))
            )
        else:
            likelihood = FixedGaussian(self.noise_variance)
            likelihood.check()
            prior = prior.given_noise(self.noise_variance)
        return GLMPosterior(
            X,
            y,
            likelihood,
            prior,
            noise_prior,
            sample_weight=weight,
            fit_intercept=self.fit_intercept,
            center=center,
            feature_names=self._feature_names(),
        )

    def _set_point(self, values: Array) -> None:
        super()._set_point(values)
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])

    def _set_noise(self, noise_variance: Array | None) -> None:
        inferred = self.noise_variance if noise_variance is None else noise_variance[0]
        self.noise_variance_ = float(inferred)

    def _predictor(self, chosen: Any = slice(None)) -> Predictor:
        parts, _ = self._draws()
        return LinearPredictor(parts["coef"][chosen], parts["intercept"][chosen])

    def _noise_draws(self) -> Array:
        parts, _ = self._draws()
        fixed = np.full(len(parts["coef"]), self.noise_variance_)
        return parts.get("noise_variance", fixed)

    def _mean(self, X: Array) -> Array:
        return X @ self.coef_ + self.intercept_

    def _predictive_variance(self, X: Array) -> Array:
        """Return the variance of a new observation, from the covariance of the coefficients."""
        if X.shape[1] > MAX_DENSE:
            return super()._predictive_variance(X)
        values = self.posterior_.flat[:, : X.shape[1] + self._has_intercept]
        weights = self.posterior_.flat_weights
        covariance = np.atleast_2d(np.cov(values, rowvar=False, aweights=weights, ddof=0))
        d = X.shape[1]
        variance = np.einsum("nd,nd->n", X @ covariance[:d, :d], X) + self.noise_variance_
        if self._has_intercept:
            variance += 2.0 * X @ covariance[:d, d] + covariance[d, d]
        return variance
