"""Priors on the coefficients.

Conventions
-----------
``coef`` is ``(C, K, d)``: chains, linear predictors (one, or one a class), columns of X.
``gamma`` is ``(C,)``, the log noise variance, or None where the model has no noise to infer.
The priors act on the coefficients of the X that the model sees, as the penalty of ``Ridge``
does; the intercept is not theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import Component, check_array_or_number

Array = NDArray[np.float64]


class CoefficientPrior(Component):
    """A density on the coefficients, the same for each linear predictor."""

    proper = True
    flat = False
    normal = False  # given the noise
    scaled_by_noise = False
    nonsmooth = False  # somewhere its gradient jumps

    def check(self, n_features: int | None = None, argument: str = "prior") -> None:
        """Raise where a parameter is out of range or not one number a column of X."""
        for name, value in self._by_column().items():
            positive = name == "scale"
            check_array_or_number(value, f"{argument}.{name}", n_features, positive=positive)

    def _by_column(self) -> dict[str, Any]:
        """Return the parameters that are numbers, or one number a column of X."""
        return self.get_params(deep=False)

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """Return the log density up to a constant ``(C,)``."""
        raise NotImplementedError

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Return the gradient in the coefficients ``(C, K, d)`` and in gamma ``(C,)``."""
        raise NotImplementedError

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Return minus the Hessian at one ``coef (K, d)``.

        Returns
        -------
        of_coef : ndarray of shape (K, d) or (1, d, d)
            The diagonal where the columns are independent, else the matrix of each predictor.
        cross : ndarray of shape (K, d) or None
            With gamma.
        corner : float
            Of gamma with itself.
        """
        raise NotImplementedError

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Coefficients ``(K, d)`` drawn from the prior; zeros where it is no distribution."""
        return np.zeros(shape)

    def given_noise(self, variance: float) -> CoefficientPrior:
        """Return the prior where the noise variance is known."""
        return self

    def smoothed(self, spread: Array | None) -> CoefficientPrior:
        """Return the prior averaged over normal errors of sd ``spread (K, d)``.

        The curvature of a prior with a kink says nothing at a point; averaged over the width of
        the posterior it does. None stands for the width of the prior itself. A smooth prior is
        its own average to the order that matters.
        """
        return self
