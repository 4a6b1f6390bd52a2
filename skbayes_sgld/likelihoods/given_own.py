"""A likelihood whose own parameters are known."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from skbayes_sgld.likelihoods.base import Array, Likelihood
from skbayes_sgld.likelihoods.kernel import GivenKernel, RowKernel, with_offset_and_weight
from skbayes_sgld.likelihoods.row_values import RowValues


class GivenOwn(Likelihood):
    """A likelihood as a function of its linear predictors alone.

    Parameters
    ----------
    likelihood : Likelihood
    own : ndarray of shape (n_own,)
        Coordinates of the own parameters.
    """

    kernel: ClassVar[type[GivenKernel]] = GivenKernel

    def __init__(self, likelihood: Likelihood, own: Array) -> None:
        self.likelihood, self.own_values = likelihood, own
        self.n_predictors = likelihood.n_predictors
        self.bounded_curvature = likelihood.bounded_curvature
        self.totals, self.spread_at = likelihood.totals, likelihood.spread_at

    def bind(self, values: RowValues, dtype: type = np.float64) -> RowKernel:
        """Kernel of rows; sizes of averages change own parameters."""
        assert values.y is not None
        *stack, n = values.y.shape
        own: Array = self.own_values.astype(dtype)[:, None]
        known = np.broadcast_to(own, (*stack, len(own), n))
        kernel = self.kernel(self.likelihood.bind(replace(values, weight=None), dtype), known)
        return with_offset_and_weight(kernel, None, values.weight, dtype)

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Linear predictors from which a search begins."""
        return self.likelihood.start(y, weight, has_level)[: self.n_predictors]

    def trial_weight(self, y: Array, weight: Array | None) -> Array | None:
        """Weights of the rows in observations."""
        return self.likelihood.trial_weight(y, weight)

    def rare(self, y: Array) -> Array | None:
        """Rows with rare observations."""
        return self.likelihood.rare(y)
