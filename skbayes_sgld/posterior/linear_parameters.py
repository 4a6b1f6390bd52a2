"""The parameters of linear predictors, in theta and as they are reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class LinearParameters:
    """Theta of K linear predictors, and the parameters that are reported.

    ``theta`` holds the coefficients and the intercept of each linear predictor in turn, and last
    ``gamma = log sigma^2`` where the noise is inferred. ``center (d,)`` is the row at which the
    intercept is that of theta, in place of X = 0: the mean of X.
    """

    coords: Mapping[str, Sequence[str]]

    def __init__(
        self,
        n_features: int,
        n_predictors: int,
        infers_noise: bool,
        fit_intercept: bool,
        center: Array | None,
    ) -> None:
        self.n_features, self.n_predictors = n_features, n_predictors
        self.fit_intercept, self._infers_noise = fit_intercept, infers_noise
        self._width = n_features + fit_intercept
        self._n_linear = n_predictors * self._width
        self.n_params = self._n_linear + infers_noise
        self.center = center

    def _linear(self, theta: Array) -> Array:
        return theta[:, : self._n_linear].reshape(theta.shape[0], self.n_predictors, self._width)

    def _gamma(self, theta: Array) -> Array | None:
        return theta[:, -1] if self._infers_noise else None

    def _constrain(self, theta: Array) -> Array:
        """Reported parameters ``(S, P)`` at ``theta (S, P)``, in the same order.

        Intercepts are those at X = 0, the noise is a variance, and with several predictors
        coefficients and intercepts sum to zero over them.
        """
        values = self._reported_moves(theta)
        if self._infers_noise:
            values[:, -1] = np.exp(values[:, -1])
        return values

    def _reported_moves(self, moves: Array) -> Array:
        """Moves of theta ``(M, P)`` as moves of the reported parameters and the log noise."""
        values = moves.copy()
        linear = self._linear(values)
        if self.n_predictors > 1:
            linear -= linear.mean(axis=1, keepdims=True)
        if self.center is not None:
            # einsum, unlike matmul, is one call whatever the number of draws
            linear[..., -1] -= np.einsum("skd,d->sk", linear[..., :-1], self.center)
        return values

    def _unconstrain(self, values: Array) -> Array:
        """Theta ``(S, P)`` at the reported parameters."""
        theta = self._about_center(values)
        if self._infers_noise:
            theta[:, -1] = np.log(theta[:, -1])
        return theta

    def _about_center(self, values: Array) -> Array:
        """Copy of ``values (S, P)`` whose intercepts are those at the centre of the columns."""
        theta = values.copy()
        if self.center is not None:
            linear = self._linear(theta)
            linear[..., -1] += linear[..., :-1] @ self.center
        return theta

    def _name_params(
        self, feature_names: Sequence[str] | None, class_names: Sequence[str] | None
    ) -> list[str]:
        """Names of the parameters, from those of the columns and of the classes."""
        features = list(feature_names or (f"x{j}" for j in range(self.n_features)))
        self.coords = {"feature": features}
        if self.n_predictors == 1:
            names = [f"coef[{f}]" for f in features] + ["intercept"] * self.fit_intercept
        else:
            names, classes = [], list(class_names or map(str, range(self.n_predictors)))
            self.coords = {"class": classes, "feature": features}
            for k in classes:
                names += [f"coef[{k}, {f}]" for f in features]
                names += [f"intercept[{k}]"] * self.fit_intercept
        return names + ["log_noise_variance"] * self._infers_noise
