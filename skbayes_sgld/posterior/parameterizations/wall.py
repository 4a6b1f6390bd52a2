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
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from skbayes_sgld._linalg import GROUP
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import UnequalNormalNoise
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


class Funnel(Map):
    r"""The map :math:`\theta = \phi + (T - s) V` with :math:`s = U (\phi - c)`, for a row's noise.

    :math:`T_1` and :math:`T_2` are the mean of a normal row and its log noise variance, in sds
    without the row. The variance follows its distribution with the mean integrated out,
    :math:`T_2 = Q(s_2)`, and given it the mean is normal, :math:`T_1 = r g + \sqrt{1 - g} s_1`,
    with g the share of the row in the precision of the mean, and r its residual at c.

    The log likelihood of the row counts as part of the Jacobian: where its noise is e^-60, no
    predictor is exact enough for its residual, which is known in these coordinates.

    Parameters
    ----------
    center : ndarray of shape (P,)
        c, the mode without the row.
    across : ndarray of shape (2, P)
        U, which takes theta to the row's mean and log noise variance in sds.
    along : ndarray of shape (2, P)
        V, the moves of theta with these two; ``U V'`` is the identity.
    row : NormalRow
    quantiles : NormalQuantiles
        Q.
    """

    def __init__(
        self, center: Array, across: Array, along: Array, row: NormalRow, quantiles: NormalQuantiles
    ) -> None:
        self._center, self._across, self._along = center, across, along
        self._row, self._quantiles = row, quantiles

    def expand(self, phi: Array) -> Expanded:
        """Theta at phi, the log Jacobian times the row's likelihood, and the chain rule."""
        row, (s1, s2) = self._row, self._in_sds(phi)
        t2, slope, bend, _ = self._quantiles.derivatives(s2)
        share, rest = row.shares(t2)
        sd, change = np.sqrt(rest), row.rate * share  # twice the slope of the log sd
        error = row.residual * sd - s1  # of the mean, in sds given the noise
        density = np.log(slope * sd) - 0.5 * (row.weight * row.rate * t2 + share * error**2)

        def pull_back(grad: Array, tau: float) -> Array:
            first, second = (np.vecdot(grad, each) for each in self._along)
            in_mean = change * (0.5 * sd * s1 - row.residual * rest)
            in_density = (
                change
                - row.weight * row.rate
                + change * error * (rest * error - row.residual * share * sd)
            )
            in_s1 = first * (sd - 1.0) + tau * share * error
            in_s2 = second * (slope - 1.0) + slope * (first * in_mean + 0.5 * tau * in_density)
            in_s2 += tau * bend / slope
            out: Array = grad + in_s1[:, None] * self._across[0]
            out += in_s2[:, None] * self._across[1]
            return out

        theta = self._moved(phi, row.residual * share + (sd - 1.0) * s1, t2 - s2)
        return Expanded(theta, density, pull_back)

    def inverse(self, theta: Array) -> Array:
        """Phi at theta."""
        t1, t2 = self._in_sds(theta)
        share, rest = self._row.shares(t2)
        s1 = (t1 - self._row.residual * share) / np.sqrt(rest)
        s2 = self._quantiles.inverse(t2[:, None])[:, 0]
        return self._moved(theta, s1 - t1, s2 - t2)

    def _in_sds(self, theta: Array) -> tuple[Array, Array]:
        # a product of each position with a vector: its rounding depends on no other position
        first, second = (np.vecdot(theta - self._center, each) for each in self._across)
        return first, second

    def _moved(self, phi: Array, first: Array, second: Array) -> Array:
        theta: Array = phi + first[:, None] * self._along[0]
        theta += second[:, None] * self._along[1]
        return theta


class NormalRow(NamedTuple):
    """A normal row in sds of its mean and its log noise variance without it.

    Attributes
    ----------
    residual : float
        Observation less the mean at the centre.
    log_precision : float
        Log precision of the observation at the centre.
    rate : float
        Sd of the log noise variance.
    weight : float
    """

    residual: float
    log_precision: float
    rate: float
    weight: float

    @classmethod
    def at(cls, score: Array, curvature: Array, sds: Array) -> NormalRow:
        """Row by the derivatives of its log likelihood in mean and log variance at the centre."""
        precision = curvature[0, 0]
        residual = score[0] / precision
        weight = score[0] * residual - 2.0 * score[1]
        log_precision = np.log(precision) + 2.0 * np.log(sds[0])
        return cls(*map(float, (residual / sds[0], log_precision, sds[1], weight)))

    def shares(self, t: Array) -> tuple[Array, Array]:
        """Shares of the row and of the others in the precision of the mean, at log variances t."""
        log_precision = self.log_precision - self.rate * t
        return expit(log_precision), expit(-log_precision)

    def log_density(self, t: Array) -> Array:
        """Log density of log noise variances t, with the mean integrated out."""
        value = np.square(t) + self.weight * self.rate * t
        value += np.square(self.residual) * self.shares(t)[0]
        return -0.5 * (value + np.logaddexp(0.0, self.log_precision - self.rate * t))


class BehindWall(Reparameterized):
    """Posterior of a generalised linear model in coordinates without a wall or a funnel."""

    def __init__(
        self, posterior: GLMPosterior, coordinates: Wall | Funnel, temperature: float
    ) -> None:
        super().__init__(posterior, coordinates, temperature)
        self._facts = replace(
            posterior.facts, condensable=False, likely_normal=False, prior_slope=None
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
    unequal = isinstance(posterior.likelihood, UnequalNormalNoise)
    in_theta, at_center = both[:-1, : 1 + unequal].T, both[-1]
    sds = np.sqrt(np.einsum("kp,pq,kq->k", in_theta, covariance, in_theta))
    across = in_theta / sds[:, None]
    along = np.linalg.solve(across @ covariance @ across.T, across @ covariance)

    def log_density(t: Array) -> Array:
        u = np.tile(at_center[:, None], (len(t), 1, 1))
        u[:, 0, 0] += sds[0] * t
        return rows.kernel.derivatives(u, 0)[0][:, 0] - 0.5 * np.square(t)

    if unequal:
        score, curvature = rows.kernel.derivatives(at_center[None, :, None], 1, 2)
        normal = NormalRow.at(score[0, :, 0], curvature[0, ..., 0], sds)
        log_density = normal.log_density
        posterior = posterior.take(np.delete(np.arange(posterior.n_samples), row))
    quantiles = normal_quantiles(log_density, Affine(np.zeros(1), np.eye(1)), 1.0)
    if not isinstance(quantiles, NormalQuantiles):
        return None
    if unequal:
        return BehindWall(posterior, Funnel(center, across, along, normal, quantiles), 1.0)
    return BehindWall(posterior, Wall(center, across[0], along[0], quantiles), 1.0)
