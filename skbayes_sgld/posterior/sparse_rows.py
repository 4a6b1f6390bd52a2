"""Sparse rows in the coordinates of a diagonal metric, for classifiers of thousands of columns.

With centre m, ``theta = m + r z``, r a number a parameter. Few rows a column hardly narrow the
posterior of any of them, which is a prior's cut by a soft wall a row: the metric is nearly the
prior's, and a leapfrog step as long as the walls are soft.
"""

from __future__ import annotations

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.whitening import WhitenedPosterior


class SparseRows(WhitenedPosterior):
    """The posterior of z; sums over rows are in single precision.

    Parameters
    ----------
    posterior : GLMPosterior
        Of sparse rows, with one linear predictor and independent normal priors.
    center : ndarray of shape (P,)
        m.
    of_rows : ndarray of shape (P,)
        What the rows add to the prior's precisions in the metric, ``1 / r^2``.
    """

    def __init__(self, posterior: GLMPosterior, center: Array, row_curvature: Array) -> None:
        self.center, self._posterior = center, posterior
        self.n_params = posterior.n_params
        # rounding, or a column of zeros, may leave none
        row_curvature = np.maximum(row_curvature, 1e-6 * max(row_curvature.max(), 1.0))
        self.inverse = posterior.prior_diagonal(center) + row_curvature
        self.inverse_t = np.sqrt(self.inverse)
        self.root = 1.0 / self.inverse_t
        self._rows = posterior.row_sum(np.float32)
        squares = self._rows.design.lengths(self.root[: posterior.n_features])
        self.softness = float(1.0 / np.sqrt(np.median(squares)))
        # a multiplication of a sparse product takes 14 times one of a dense one, 16 columns wide
        self.work = 14.0 * 2.0 * posterior.X.nnz

    def log_density(self, z: Array) -> Array:
        """Log density ``(C,)``."""
        theta = self.locate(z)
        return self._rows.value(theta) + self._posterior.log_prior(theta)

    def grad(self, z: Array) -> Array:
        """Gradient at ``z (C, P)``."""
        theta = self.locate(z)
        grad = self._rows.grad(theta, None)
        grad += self._posterior.grad_log_prior(theta)
        grad *= self.root
        return grad

    def matched(self, draws: Array, temperature: float) -> SparseRows:
        """Rows about the mean of ``draws (S, P)`` of theta, in a metric that fits these.

        What the rows add is in proportion to their mean curvature, and such that the mean variance
        of the whitened draws is the temperature.
        """
        posterior, center = self._posterior, draws.mean(axis=0)
        own, variance = posterior.prior_diagonal(center), draws.var(axis=0, ddof=1)
        bends = posterior.row_sum().hessian_diagonal(draws[-1])
        share = (self.n_params * temperature - own @ variance) / (bends @ variance)
        return SparseRows(posterior, center, np.clip(share, 1e-6, 1.0) * bends)


def sparse_rows(posterior: GLMPosterior, center: Array) -> SparseRows | None:
    """Sparse rows in the metric of the curvature's diagonal; None where rounding shows."""
    if not posterior.facts.light_tailed or posterior.n_predictors > 1:
        return None
    rows = SparseRows(posterior, center, posterior.row_sum().hessian_diagonal(center))
    return rows if rows.rounding(posterior) < 0.05 * np.sqrt(posterior.n_params) else None
