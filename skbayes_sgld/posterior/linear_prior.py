"""The joint prior of the coefficients and intercepts of a linear model.

The conventions are those of :mod:`~skbayes_sgld.priors.base`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

import numpy as np

from skbayes_sgld._linalg import column_moments, column_squares
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.priors.base import CoefficientPrior
from skbayes_sgld.priors.by_column import columns_where, scaled_part
from skbayes_sgld.priors.flat import Flat


@dataclass(frozen=True)
class LinearPrior:
    """Prior of the parameters ``linear (C, K, width)`` of K linear predictors.

    A row of ``linear`` holds the coefficients of one predictor and then its intercept.

    Attributes
    ----------
    coef : CoefficientPrior
        Prior of the first ``n_features`` columns.
    intercept : CoefficientPrior
        Prior of the intercept at X = 0; flat without an intercept.
    n_features, width : int
    x_mean : ndarray of shape (n_features,) or None
        Point of X at which the last column is the intercept; None means X = 0.
    from_data : bool
        Whether a scale of the coefficients' prior is in the units of the data.
    some_given : bool
        Whether a scale of the coefficients' prior was given by the user.
    pin : ndarray of shape (width,) or None
        Precision of the mean over the predictors, which leaves softmax probabilities unchanged.
    """

    coef: CoefficientPrior
    intercept: CoefficientPrior
    n_features: int
    width: int
    x_mean: Array | None = None
    from_data: bool = False
    some_given: bool = True
    pin: Array | None = None

    @classmethod
    def from_rows(
        cls,
        coef: CoefficientPrior,
        intercept: CoefficientPrior,
        likelihood: Likelihood,
        data: tuple[Array, Array, Array | None],
        spread: Array | None,
        x_mean: Array | None,
        has_intercept: bool,
    ) -> Self:
        """Prior of the linear parameters of a model of ``data``: X, y and weights.

        ``spread`` is as in :func:`in_units`; ``x_mean (d,)`` is the point of X at which theta has
        the intercept, or None.

        Raises
        ------
        ValueError, TypeError
            If a parameter of a prior is out of range, or is not one number per column of X.
        """
        (X, y, weight), K = data, likelihood.n_predictors
        coef.check(X.shape[1])
        some_given = columns_where(coef, X.shape[1], "automatic").size < X.shape[1]
        intercept.check(1, "intercept_prior")
        coef, intercept = in_units(coef, intercept, spread, likelihood, y, weight)
        intercept, d, pin = intercept if has_intercept else Flat(), X.shape[1], None
        if K > 1:
            free = has_intercept and not intercept.proper
            loose = columns_where(coef, d, "proper", False)
            pin = _shift_precision(X, weight, loose, free, has_intercept) / K
        width = d + has_intercept
        return cls(coef, intercept, d, width, x_mean, spread is not None, some_given, pin)

    @property
    def flat(self) -> bool:
        """Whether the density is constant."""
        return self.coef.flat and self.intercept.flat

    @property
    def normal(self) -> bool:
        """Whether the prior is normal, given the noise."""
        return self.coef.normal and self.intercept.normal

    @property
    def nonsmooth(self) -> bool:
        """Whether the gradient jumps somewhere."""
        return self.coef.nonsmooth or self.intercept.nonsmooth

    @property
    def follows_noise(self) -> bool:
        """Whether the noise scales every part that is not flat."""
        free = columns_where(self.coef, self.n_features, "scaled_by_noise", False)
        return not len(free) and (self.intercept.flat or self.intercept.scaled_by_noise)

    @property
    def n_scaled(self) -> int:
        """Number of parameters of a predictor whose prior the noise scales."""
        scaled = columns_where(self.coef, self.n_features, "scaled_by_noise")
        return len(scaled) + self.intercept.scaled_by_noise

    # ---- density and gradient -------------------------------------------------------------------

    def _at_zero(self, linear: Array) -> Array:
        """Intercepts at X = 0 ``(C, K, 1)``."""
        level = linear[..., self.n_features :]
        if self.x_mean is None:
            return level
        # einsum's rounding, unlike matmul's, does not depend on the number of chains
        return level - np.einsum("ckd,d->ck", linear[..., :-1], self.x_mean)[..., None]

    def log_density(self, linear: Array, gamma: Array | None) -> Array:
        """Log density up to a constant ``(C,)``."""
        value = self.coef.log_density(linear[..., : self.n_features], gamma)
        if not self.intercept.flat:
            value = value + self.intercept.log_density(self._at_zero(linear), gamma)
        if self.pin is not None:
            value = value - 0.5 * np.square(linear.sum(axis=1)) @ self.pin / linear.shape[1]
        return value

    def grad(self, linear: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Gradient in the parameters ``(C, K, width)`` and in gamma ``(C,)``."""
        if self.line is not None:
            slope, at_zero = self.line
            grad = linear * slope
            return grad if at_zero is None else grad + at_zero, None
        d, out = self.n_features, np.zeros(linear.shape)
        out[..., :d], in_gamma = self.coef.grad(linear[..., :d], gamma)
        if not self.intercept.flat:
            slope, more = self.intercept.grad(self._at_zero(linear), gamma)
            out[..., d:] = slope
            if self.x_mean is not None:
                out[..., :d] -= slope * self.x_mean
            if more is not None:
                in_gamma = more if in_gamma is None else in_gamma + more
        if self.pin is not None:
            out -= linear.sum(axis=1, keepdims=True) * self.pin / linear.shape[1]
        return out, in_gamma

    @cached_property
    def line(self) -> tuple[Array, Array | None] | None:
        """Slope of the gradient and its value at 0, if parameters are normal and independent.

        Without this, steps on small batches take 1.2 times as long.
        """
        coupled = self.pin is not None or not (self.intercept.flat or self.x_mean is None)
        if coupled or self.n_scaled or not self.normal:
            return None
        slope, at_zero = np.zeros((2, self.width))
        d = self.n_features
        for prior, at in ((self.coef, slice(d)), (self.intercept, slice(d, None))):
            zeros = np.zeros((1, len(slope[at])))
            curvature = prior.curvature(zeros, None)[0]
            if curvature.ndim > 2:
                return None
            slope[at], at_zero[at] = -curvature[0], prior.grad(zeros[None], None)[0][0, 0]
        return slope, at_zero if at_zero.any() else None

    # ---- curvature ------------------------------------------------------------------------------

    def intercept_curvature(
        self, linear: Array, gamma: float | None
    ) -> tuple[Array, Array, Array, float]:
        """Curvature of the intercept's prior, which has one direction per predictor.

        Returns
        -------
        direction : ndarray of shape (width,)
            Gradient of the intercept at X = 0 in a row of ``linear``.
        own : ndarray of shape (K,)
            Curvature along it.
        cross : ndarray of shape (K,)
            Mixed curvature with gamma.
        corner : float
            Curvature in gamma.
        """
        direction, K = np.zeros(linear.shape[1]), linear.shape[0]
        if self.intercept.flat:
            return direction, np.zeros(K), np.zeros(K), 0.0
        direction[-1] = 1.0
        if self.x_mean is not None:
            direction[:-1] = -self.x_mean
        at_zero = self._at_zero(linear[None])[0]
        own, cross, corner = self.intercept.curvature(at_zero, gamma)
        shared = np.zeros(K) if cross is None else cross[:, 0]
        return direction, np.broadcast_to(np.ravel(own), K), shared, corner

    def add_curvature(self, H: Array, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Add minus the Hessian at one ``linear (K, width)`` to ``H (K * width, K * width)``.

        Returns
        -------
        cross : ndarray of shape (K * width,)
            Minus the mixed derivatives with gamma.
        corner : float
            Minus the second derivative in gamma.
        """
        (K, width), d = linear.shape, self.n_features
        curvature, with_gamma, corner = self.coef.curvature(linear[:, :d], gamma)
        direction, own, shared, more = self.intercept_curvature(linear, gamma)
        cross = np.outer(shared, direction)
        if with_gamma is not None:
            cross[:, :d] += with_gamma
        for k, at in enumerate(np.arange(linear.size).reshape(K, width)):
            rows = slice(at[0], at[0] + width)
            H[rows, rows] += np.outer(own[k] * direction, direction)
            if curvature.ndim > 2:
                H[rows, rows][:d, :d] += curvature[min(k, len(curvature) - 1)]
            else:
                H[at[:d], at[:d]] += curvature[k]
        if self.pin is not None:
            at = np.arange(linear.size).reshape(K, width)
            H[at[:, None], at] += self.pin / K
        return cross.ravel(), corner + more

    def diagonal(self, linear: Array, gamma: float | None) -> tuple[Array, float]:
        """Diagonal of the curvature at one ``linear (K, width)``, and the curvature in gamma."""
        d = self.n_features
        curvature, _, corner = self.coef.curvature(linear[:, :d], gamma)
        direction, own, _, more = self.intercept_curvature(linear, gamma)
        diagonal = np.outer(own, np.square(direction))
        diagonal[:, :d] += np.einsum("kdd->kd", curvature) if curvature.ndim > 2 else curvature
        if self.pin is not None:
            diagonal += self.pin / len(linear)
        return diagonal, corner + more

    # ---- the prior in other forms ---------------------------------------------------------------

    def _with(self, coef: CoefficientPrior, intercept: CoefficientPrior) -> LinearPrior:
        """Prior with other parts; itself, with what it has computed, if they are the same."""
        if coef is self.coef and intercept is self.intercept:
            return self
        return replace(self, coef=coef, intercept=intercept)

    def part(self, scaled_by_noise: bool) -> LinearPrior:
        """Prior restricted to the parts with this ``scaled_by_noise``; other parts are flat."""
        parts = (scaled_part(each, scaled_by_noise) for each in (self.coef, self.intercept))
        return self._with(*parts)

    def given_noise(self, variance: float) -> LinearPrior:
        """Prior if the noise variance is known."""
        return self._with(self.coef.given_noise(variance), self.intercept.given_noise(variance))

    def averaged_over(self, spread: Array | None) -> LinearPrior:
        """Prior averaged over normal errors of sd ``spread (K, width)``, or the prior's own."""
        d, at_zero = self.n_features, None
        if spread is not None and not self.intercept.flat:
            variance = np.square(spread[:, d:])
            if self.x_mean is not None:  # ignores correlations, as a rough width is enough
                variance = variance + np.square(spread[:, :d] * self.x_mean).sum(1, keepdims=True)
            at_zero = np.sqrt(variance)
        coef = self.coef.averaged_over(None if spread is None else spread[:, :d])
        return self._with(coef, self.intercept.averaged_over(at_zero))

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Draw of the linear parameters ``(K, width)``, with intercepts at X = 0; 0 if flat."""
        (K, width), d = shape, self.n_features
        coef = self.coef.sample(rng, (K, d), noise_variance)
        return np.hstack([coef, self.intercept.sample(rng, (K, width - d), noise_variance)])


def in_units(
    prior: CoefficientPrior,
    intercept_prior: CoefficientPrior,
    spread: Array | None,
    likelihood: Likelihood,
    y: Array,
    weight: Array | None,
) -> tuple[CoefficientPrior, CoefficientPrior]:
    """Priors whose automatic scales are numbers, in units of the columns' spread and of y.

    ``spread (d,)`` is None if the prior of the coefficients has a given scale. If the noise
    variance is known, priors that it scales become priors in units of y.
    """
    typical_effect = partial(likelihood.typical_effect, y, weight)
    if spread is not None:
        prior = prior.for_data(typical_effect(), spread)
    if intercept_prior.automatic:
        level = np.asarray(intercept_prior.get_params()["location"], dtype=float).item()
        intercept_prior = intercept_prior.for_data(typical_effect(level=level), 1.0)
    if not likelihood.quadratic or likelihood.infers_noise:
        return prior, intercept_prior
    variance = float(likelihood.noise_variance(None))
    return prior.given_noise(variance), intercept_prior.given_noise(variance)


def _shift_precision(
    X: Array, weight: Array | None, loose: Array, intercept_is_free: bool, has_intercept: bool
) -> Array:
    """Precision ``(width,)`` of the classes' common shift; under flat priors from the data.

    ``loose`` are the columns with flat priors.
    """
    n, d = X.shape
    pin, w = np.zeros(d + has_intercept), np.ones(n) if weight is None else weight
    if loose.size:
        square = column_squares(X, column_moments(X, weight)[0], w)
        pin[loose] = np.where(square > 0, square, 1.0)[loose]
    if intercept_is_free:
        pin[-1] = w.sum()
    return pin
