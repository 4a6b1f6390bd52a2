"""A likelihood whose own parameters are known."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from skbayes_sgld.posterior.likelihoods.base import Array, Likelihood
from skbayes_sgld.posterior.likelihoods.kernel import RowKernel


class GivenOwnKernel(RowKernel):
    """Kernel of rows whose own parameters are known, of a kernel that takes them last in u."""

    def __init__(self, kernel: RowKernel, own: Array) -> None:
        self.kernel, self.own = kernel, own

    def __getitem__(self, at: Any) -> Self:
        """Kernel of some of the rows."""
        return type(self)(self.kernel[at], self.own)

    def _with_own(self, u: Array) -> Array:
        C, _, B = u.shape
        return np.concatenate([u, np.broadcast_to(self.own, (C, len(self.own), B))], axis=1)

    def log_density(self, u: Array) -> Array:
        """Log density of each row."""
        return self.kernel.log_density(self._with_own(u))

    def score(self, u: Array) -> Array:
        """Score in the linear predictors."""
        return self.kernel.score(self._with_own(u))[:, : u.shape[1]]

    def value_and_score(self, u: Array) -> tuple[Array, Array]:
        """Log density, and score in the linear predictors."""
        value, score = self.kernel.value_and_score(self._with_own(u))
        return value, score[:, : u.shape[1]]

    def score_and_curvature(self, u: Array) -> tuple[Array, Array]:
        """Score and curvature in the linear predictors."""
        score, curvature = self.kernel.score_and_curvature(self._with_own(u))
        K = u.shape[1]
        return score[:, :K], curvature[:, :K, :K]


class GivenOwn(Likelihood):
    """A likelihood as a function of its linear predictors alone.

    Parameters
    ----------
    likelihood : Likelihood
    known : ndarray of shape (n_own,)
        Coordinates of its own parameters.
    """

    kernel: ClassVar[type[GivenOwnKernel]] = GivenOwnKernel

    def __init__(self, likelihood: Likelihood, known: Array) -> None:
        self.likelihood, self.known = likelihood, known
        self.n_predictors = likelihood.n_predictors
        self.bounded_curvature = likelihood.bounded_curvature
        self.totals = likelihood.totals

    def _kernel(self, y: Array, dtype: type) -> RowKernel:
        return self.kernel(self.likelihood.bind(y, dtype=dtype), self.known.astype(dtype)[:, None])

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Linear predictors where a search begins."""
        return self.likelihood.start(y, weight, has_level)[: self.n_predictors]

    def trial_weight(self, y: Array, weight: Array | None) -> Array | None:
        """Weights with which a column has its mean and spread."""
        return self.likelihood.trial_weight(y, weight)

    def rare(self, y: Array) -> Array | None:
        """Rows with rare observations."""
        return self.likelihood.rare(y)
