"""Predictions of rows so far out that their mean under some draw, or its square, overflows.

Under a log link, a row with a value ten times as large as those of the fit may have a mean of
exp(400) under some draw. Its predicted mean and the ends of its intervals may then be infinite. All
other rows are predicted as if it were not there. :func:`predict_apart` is called if such a row has
been found.

The variance of noise that depends on the row may overflow, too, or underflow. It is taken to be at
the end of its range there.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.likelihoods.base import HIGHEST
from skbayes_sgld.likelihoods.row_values import NO_VALUES, RowValues
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.order_statistics import draw_quantiles

# least log mean of a far row; 1 below the limit, as the search may round differently
_FAR = HIGHEST - 1.0
_LARGEST = np.exp(345.0)  # beyond it a quantile is infinite
_PER_ROW = "row_values", "y", "t"


def predict_apart(predictive: Any, method: str, X: Array, arguments: dict[str, Any]) -> Any:
    """Result of a method of ``predictive``; far rows are computed on their own, with a warning.

    ``arguments`` are the method's by name, without X.
    """
    far = find_far_rows(predictive, X, arguments.get("row_values", NO_VALUES))
    of_far = OfFarRows.like(predictive)
    parts = []
    for law, rows in ((predictive, ~far), (of_far, far)):
        own = {
            name: value[rows] if name in _PER_ROW else value for name, value in arguments.items()
        }
        parts.append(getattr(law, method)(X[rows], **own) if rows.any() else None)
    near, values = parts
    if near is None:
        return values
    together = np.empty((len(far), *near.shape[1:]))
    together[~far], together[far] = near, values
    return together


def far_rows(predictive: Any, X: Array, row_values: RowValues) -> tuple[Array, Array]:
    """Mask ``(n,)`` of the far rows of X, and the largest log mean of each row ``(n,)``."""
    if not predictive.likelihood.log_link:
        return predictive._far_noise(X), np.zeros(X.shape[0])
    largest = predictive._by_blocks(
        lambda X, row_values: predictive.predictors(X, row_values)[0].max(axis=1), 2, X, row_values
    )
    return largest > _FAR, largest


def find_far_rows(predictive: Any, X: Array, row_values: RowValues) -> Array:
    """Mask ``(n,)`` of the far rows of X, which a warning names."""
    far, largest = far_rows(predictive, X, row_values)
    if not predictive.likelihood.log_link:
        warn(
            f"{named(far)} a noise variance beyond exp({HIGHEST:.3g}), or below its inverse, under "
            "a draw, and has this variance there: an interval may be infinite, or have no width. "
            "Check the units of its columns.",
            UserWarning,
        )
        return far
    what, columns = predictive.likelihood.log_link
    them = "it" if far.sum() == 1 else "them"
    warn(
        f"{named(far)} a {what} of up to exp({largest.max():.3g}) under a draw, whose square is "
        "out of the range of floating point numbers: a prediction or an end of an interval may be "
        f"infinite there. The other rows are predicted as without {them}. Check {columns}.",
        UserWarning,
    )
    return far


def named(rows: Array) -> str:
    """Beginning of a sentence about the rows of X in a mask, up to "has" or "have"."""
    first, number = int(rows.argmax()), int(rows.sum())
    if number == 1:
        return f"Row {first} of X (from 0) has"
    return f"{number} rows of X, of which row {first} (from 0) is the first, have"


@dataclass(frozen=True)
class OfFarRows(PredictiveDistribution):
    """Predictive distribution of rows that are all far, whose means and quantiles may be infinite.

    What needs local parameters, such as a density, takes the largest predictor that they allow.
    """

    @classmethod
    def like(cls, predictive: PredictiveDistribution) -> OfFarRows:
        """Distribution with the draws of another."""
        return cls(**{each.name: getattr(predictive, each.name) for each in fields(predictive)})

    @property
    def allows_quadrature(self) -> bool:
        """A quadrature is centred at the mean, which is infinite."""
        return False

    def local(self, X: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Local parameters ``(n, n_local, S)`` of the rows, as the likelihood takes them."""
        eta = self.predictors(X, row_values)
        if self.likelihood.log_link:
            np.minimum(eta, HIGHEST, out=eta)
        else:
            np.clip(eta[1], -HIGHEST, HIGHEST, out=eta[1])
        return self.at_predictors(eta, row_values)

    def _far_noise(self, X: Array) -> Array:
        """Far rows are not looked for among themselves."""
        return np.zeros(X.shape[0], bool)

    def _has_units(self, row_values: RowValues) -> bool:
        """Single precision cannot hold variances of far rows."""
        return False

    def mean_draws(self, X: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Mean of an observation under every draw ``(n, S)``; infinite beyond exp(709)."""
        return np.asarray(self._by_blocks(self._means, 2, X, row_values))

    def mean(self, X: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Mean of an observation ``(n,)``."""
        share = self.share
        some = share > 0.0  # infinity times a weight of 0 is nan

        def mean_of(X: Array, row_values: RowValues) -> Array:
            with np.errstate(over="ignore"):
                return np.asarray(self._means(X, row_values)[:, some] @ share[some])

        return np.asarray(self._by_blocks(mean_of, 2, X, row_values))

    def moments(self, X: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Mean and variance of an observation ``(n, 2)``."""
        mean, share = self.mean(X, row_values), self.share
        if self.likelihood.log_link:
            return np.column_stack([mean, np.full_like(mean, np.inf)])
        some = share > 0.0  # infinity times a weight of 0 is nan

        def variance_of(X: Array, row_values: RowValues) -> Array:
            u = self.local(X, row_values)[..., some]
            away = u[:, 0] - (u[:, 0] @ share[some])[:, None]
            variance = self.likelihood.variance(u) + np.square(away)
            return np.asarray(variance @ share[some])

        variance = self._by_blocks(variance_of, 4, X, row_values)
        return np.column_stack([mean, np.where(variance < _LARGEST, variance, np.inf)])

    def mean_quantiles(self, X: Array, q: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Posterior quantiles of the mean of an observation ``(n, len(q))``."""

        def quantiles_of(X: Array, row_values: RowValues) -> Array:
            eta = draw_quantiles(self.predictors(X, row_values)[0], q, self.weights)
            with np.errstate(over="ignore"):
                return np.asarray(self.likelihood.mean(eta[:, None]))

        return np.asarray(self._by_blocks(quantiles_of, 1, X, row_values))

    def quantiles(self, X: Array, q: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Quantiles of an observation under the mixture over all draws ``(n, len(q))``."""
        values = super().quantiles(X, q, row_values)
        largest = _LARGEST if self.likelihood.log_link else np.sqrt(_LARGEST)  # of a noise's sd
        return np.where(np.abs(values) < largest, values, np.copysign(np.inf, values))

    def _means(self, X: Array, row_values: RowValues) -> Array:
        eta = self.predictors(X, row_values)
        with np.errstate(over="ignore"):
            return np.asarray(self.likelihood.mean(eta.swapaxes(0, 1)))
