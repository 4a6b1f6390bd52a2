"""Coordinates of a posterior that one row bounds on one side.

The label of an outlying row is nearly certain on one side of a plane through the posterior, and
nearly impossible on the other. Without the row the predictor of the row is nearly normal, and
independent of all directions that are uncorrelated with it. Given the row it follows this normal
distribution times the likelihood of the row, a function of one variable. The new coordinate is the
normal quantile of that distribution; the other directions stay. The posterior is then nearly as
normal as without the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from skbayes_sgld._linalg import GROUP
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.parameterizations.base import Affine, Expanded, Map, Reparameterized
from skbayes_sgld.posterior.parameterizations.noise_coordinate import (
    NormalQuantiles,
    normal_quantiles,
)
from skbayes_sgld.posterior.sparse_design import as_array


class Wall(Map):
    r"""The map :math:`\theta = \phi + (Q(s) - s) v` with :math:`s = u' (\phi - c)`.

    Parameters
    ----------
    center : ndarray of shape (P,)
        c, the mode without the row.
    across : ndarray of shape (P,)
        u, which takes theta to the row's predictor in sds.
    along : ndarray of shape (P,)
        v, the move of theta with the predictor: the covariance times u. ``u' v`` is 1.
    quantiles : NormalQuantiles
        Q.
    """

    def __init__(
        self, center: Array, across: Array, along: Array, quantiles: NormalQuantiles
    ) -> None:
        self._center, self._across, self._along = center, across, along
        self._quantiles = quantiles

    def expand(self, phi: Array) -> Expanded:
        """Theta at phi, the log Jacobian and the chain rule."""
        # a product of each position with a vector: its rounding depends on no other position
        s = np.vecdot(phi - self._center, self._across)
        at, slope, bend, _ = self._quantiles.derivatives(s)

        def pull_back(grad: Array, tau: float) -> Array:
            in_s = (slope - 1.0) * np.vecdot(grad, self._along) + tau * bend / slope
            return grad + in_s[:, None] * self._across

        return Expanded(phi + (at - s)[:, None] * self._along, np.log(slope), pull_back)

    def inverse(self, theta: Array) -> Array:
        """Phi at theta."""
        at = np.vecdot(theta - self._center, self._across)
        s = self._quantiles.inverse(at[:, None])[:, 0]
        return theta + (s - at)[:, None] * self._along


class BehindWall(Reparameterized):
    """Posterior of a generalised linear model in coordinates without walls."""

    def __init__(self, posterior: GLMPosterior, coordinates: Map, temperature: float) -> None:
        super().__init__(posterior, coordinates, temperature)
        self._facts = replace(
            posterior.facts,
            condensable=False,
            unequal_noise=False,
            likely_normal=False,
            prior_slope=None,
        )

    def bind_log_density(self, group: int | None = GROUP) -> Callable[[Array], Array]:
        """:meth:`log_density` for one run in one thread."""
        in_theta, wall = self.inner.bind_log_density(group), self.coordinates

        def log_density(phi: Array) -> Array:
            at = wall.expand(phi)
            return in_theta(at.theta) + self.temperature * at.log_jacobian

        return log_density

    def rounded(self, density: bool = False) -> BasePosterior:
        """Posterior whose sums over rows are in single precision, or itself."""
        inner = self.inner.rounded(density)
        return self if inner is self.inner else self._with(inner=inner)


def behind_wall(
    posterior: GLMPosterior, row: int, center: Array, covariance: Array
) -> BehindWall | None:
    """Posterior in coordinates without a row's wall; None if they are not determined.

    Parameters
    ----------
    posterior : GLMPosterior
        Of one linear predictor. Own parameters of its likelihood count at their values in
        ``center`` for the quantiles, and as they are in the density.
    row : int
    center : ndarray of shape (P,)
        Mode of the posterior of all other rows.
    covariance : ndarray of shape (P, P)
        Inverse of the curvature there.
    """
    part = posterior.take(np.array([row]))
    rows: Any = part.row_sum()
    x = as_array(rows.design.block(slice(0, 1)))[0]
    both = rows.coefficient_map.coefficients(np.vstack([np.eye(len(center)), center])) @ x
    in_theta, at_center = both[:-1, 0], both[-1]
    sd = np.sqrt(in_theta @ covariance @ in_theta)
    across = in_theta / sd

    def log_density(t: Array) -> Array:
        u = np.tile(at_center[:, None], (len(t), 1, 1))
        u[:, 0, 0] += sd * t
        return rows.kernel.derivatives(u, 0)[0][:, 0] - 0.5 * np.square(t)

    quantiles = normal_quantiles(log_density, Affine(np.zeros(1), np.eye(1)), 1.0)
    if not isinstance(quantiles, NormalQuantiles):
        return None
    return BehindWall(posterior, Wall(center, across, covariance @ across, quantiles), 1.0)
