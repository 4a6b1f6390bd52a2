"""A likelihood whose own parameters are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from skbayes_sgld.likelihoods.base import Array, Likelihood
from skbayes_sgld.likelihoods.kernel import RowKernel, with_offset_and_weight


class GivenOwnKernel(RowKernel):
    """Kernel with known own parameters, from one that takes them last in u."""

    def __init__(self, kernel: RowKernel, own: Array) -> None:
        self.kernel, self.own = kernel, own

    def __getitem__(self, at: Any) -> Self:
        """Kernel of some of the rows."""
        return type(self)(self.kernel[at], self.own)

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Log density, and its derivatives in the linear predictors."""
        C, K, B = u.shape
        own = np.broadcast_to(self.own, (C, len(self.own), B))
        values = self.kernel.derivatives(np.concatenate([u, own], axis=1), *orders)
        linear = np.s_[:], np.s_[:, :K], np.s_[:, :K, :K]
        return [each[linear[order]] for each, order in zip(values, orders, strict=True)]


class GivenOwn(Likelihood):
    """A likelihood as a function of its linear predictors alone.

    Parameters
    ----------
    likelihood : Likelihood
    own : ndarray of shape (n_own,)
        Coordinates of the own parameters.
    """

    kernel: ClassVar[type[GivenOwnKernel]] = GivenOwnKernel

    def __init__(self, likelihood: Likelihood, own: Array) -> None:
        self.likelihood, self.own_values = likelihood, own
        self.n_predictors = likelihood.n_predictors
        self.bounded_curvature = likelihood.bounded_curvature
        self.totals, self.offset_at = likelihood.totals, likelihood.offset_at

    def bind(
        self,
        y: Array,
        weight: Array | None = None,
        dtype: type = np.float64,
        offset: Array | None = None,
    ) -> RowKernel:
        """Kernel of observations; offsets may be added to own parameters."""
        own: Array = self.own_values.astype(dtype)[:, None]
        kernel = self.kernel(self.likelihood.bind(y, None, dtype, offset), own)
        return with_offset_and_weight(kernel, None, weight, dtype)

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Linear predictors from which a search begins."""
        return self.likelihood.start(y, weight, has_level)[: self.n_predictors]

    def trial_weight(self, y: Array, weight: Array | None) -> Array | None:
        """Weights of the rows in observations."""
        return self.likelihood.trial_weight(y, weight)

    def rare(self, y: Array) -> Array | None:
        """Rows with rare observations."""
        return self.likelihood.rare(y)
