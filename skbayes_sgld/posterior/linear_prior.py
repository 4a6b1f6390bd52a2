"""Forms of the prior of a linear model: parts that the noise scales, smooth ones, and draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.posterior.priors.flat import Flat
from skbayes_sgld.posterior.priors.normal import JointDensity, Proportional

Array = NDArray[Any]


@dataclass(frozen=True)
class LinearPrior(JointDensity):
    """Prior of the parameters of K linear predictors, with its parts and its other forms."""

    @property
    def follows_noise(self) -> bool:
        """Whether the noise scales every part that is not flat."""
        return self.coef.scaled_by_noise and (
            self.intercept is None or self.intercept.scaled_by_noise
        )

    @property
    def n_scaled(self) -> int:
        """Number of parameters of a predictor whose prior is scaled by the noise."""
        of_intercept = self.intercept is not None and self.intercept.scaled_by_noise
        return self.n_features * self.coef.scaled_by_noise + of_intercept

    def scaled_part(self) -> LinearPrior:
        """Prior whose parts that the noise does not scale are made flat."""
        intercept = self.intercept
        if intercept is not None and not intercept.scaled_by_noise:
            intercept = None
        return replace(
            self, coef=self.coef if self.coef.scaled_by_noise else Flat(), intercept=intercept
        )

    def unscaled_part(self) -> LinearPrior:
        """Prior whose parts that the noise scales are made flat."""
        intercept = self.intercept
        if intercept is not None and intercept.scaled_by_noise:
            intercept = None
        coef = Flat() if self.coef.scaled_by_noise else self.coef
        return replace(self, coef=coef, intercept=intercept)

    def given_noise(self, variance: float) -> LinearPrior:
        """Prior where the noise variance is known."""
        intercept = None if self.intercept is None else self.intercept.given_noise(variance)
        return replace(self, coef=self.coef.given_noise(variance), intercept=intercept)

    def smoothed(self, spread: Array | None) -> LinearPrior:
        """Prior averaged over normal errors of sd ``spread (K, width)``."""
        d, at_zero = self.n_features, None
        if spread is not None and self.intercept is not None:
            variance = np.square(spread[:, d:])
            if self.center is not None:  # without correlations: a rough width is enough here
                variance = variance + np.square(spread[:, :d] * self.center).sum(1, keepdims=True)
            at_zero = np.sqrt(variance)
        coef = self.coef.smoothed(None if spread is None else spread[:, :d])
        intercept = None if self.intercept is None else self.intercept.smoothed(at_zero)
        if coef is self.coef and intercept is self.intercept:
            return self
        return replace(self, coef=coef, intercept=intercept)

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Draw of the linear parameters ``(K, width)``, intercepts at X = 0; flat ones are 0."""
        linear = np.zeros(shape)
        d = self.n_features
        linear[:, :d] = self.coef.sample(rng, (shape[0], d), noise_variance)
        if self.intercept is not None:
            linear[:, d:] = self.intercept.sample(rng, (shape[0], 1), noise_variance)
        return linear

    def slope_of_flat(self, n_predictors: int, width: int) -> Array | None:
        """Factor ``(K * width,)`` of the parameters, where the gradient is such a product."""
        grad = self.bind_grad(np.zeros((n_predictors, width)))
        return grad.slope.ravel() if isinstance(grad, Proportional) else None

    def bind_grad_of_flat(self, n_predictors: int, width: int) -> Callable[[Array], Array]:
        """Gradient at ``theta (C, K * width)``, as one product where the prior is normal."""
        slope = self.slope_of_flat(n_predictors, width)
        if slope is not None:
            row = slope[None]  # of one chain: arrays of one shape take half of the time
            return lambda theta: theta * row
        grad = self.bind_grad(np.zeros((n_predictors, width)))
        shape = -1, n_predictors, width
        return lambda theta: grad(theta.reshape(shape)).reshape(theta.shape)

    def curvature(self, linear: Array, gamma: float | None) -> tuple[Array, Array, float]:
        """Minus the Hessian at one ``linear (K, width)``.

        Returns
        -------
        H : ndarray of shape (K * width, K * width)
        cross : ndarray of shape (K * width,)
            Minus the mixed derivatives with gamma.
        corner : float
            Minus the second derivative in gamma.
        """
        H = np.zeros((linear.size, linear.size))
        return H, *self.add_curvature(H, linear, gamma)
