"""The parameters of linear predictors, in theta and as they are reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.posterior.likelihoods import Likelihood

Array = NDArray[Any]


class LinearParameters:
    """Theta of K linear predictors, and the parameters that are reported.

    ``theta`` holds the coefficients and the intercept of each linear predictor in turn, and last
    the coordinates of the likelihood's own parameters. ``center (d,)`` is the row at which the
    intercept is that of theta, in place of X = 0: the mean of X.
    """

    coords: Mapping[str, Sequence[str]]

    def __init__(
        self,
        n_features: int,
        likelihood: Likelihood,
        fit_intercept: bool,
        center: Array | None,
    ) -> None:
        self.n_features, self.n_predictors = n_features, likelihood.n_predictors
        self.likelihood, self.n_own = likelihood, len(likelihood.own)
        self._infers_noise = likelihood.infers_noise
        self.fit_intercept, self.center = fit_intercept, center
        self._width = n_features + fit_intercept
        self._n_linear = self.n_predictors * self._width
        self.n_params = self._n_linear + self.n_own

    def _linear(self, theta: Array) -> Array:
        return theta[:, : self._n_linear].reshape(theta.shape[0], self.n_predictors, self._width)

    def _own(self, theta: Array) -> Array:
        """Coordinates of the own parameters ``(C, n_own)``."""
        return theta[:, self.n_params - self.n_own :]

    def _gamma(self, theta: Array) -> Array | None:
        return theta[:, self.n_params - self.n_own] if self._infers_noise else None

    def _constrain(self, theta: Array) -> Array:
        """Reported parameters ``(S, P)`` at ``theta (S, P)``, in the same order.

        Intercepts are those at X = 0, the noise is a variance, and with several predictors
        coefficients and intercepts sum to zero over them.
        """
        values = self._reported_moves(theta)
        if self.n_own:
            self._own(values)[...] = self.likelihood.constrain_own(self._own(theta))
        self.likelihood.report(values, self.fit_intercept)
        return values

    def _reported_moves(self, moves: Array) -> Array:
        """Moves of theta ``(M, P)``: reported linear parameters, and own ones' coordinates."""
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
        values = values.copy()
        self.likelihood.unreport(values, self.fit_intercept)
        theta = self._about_center(values)
        if self.n_own:
            self._own(theta)[...] = self.likelihood.unconstrain_own(self._own(values))
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
        return names + [own.coordinate for own in self.likelihood.own]
