"""Coordinates of a posterior that one row, or a few unrelated ones, bound on one side.

The label of an outlying row is nearly certain on one side of a plane through the posterior, and
nearly impossible on the other. Without the row the predictors of the row are nearly normal, and
independent of all directions that are uncorrelated with them. Given the row they follow this normal
distribution times the likelihood of the row. The new coordinates are nearly independent normal
numbers that a *transport* takes to that distribution: the quantiles of one predictor, or
:class:`OwnClassLargest`. All other directions stay. The posterior is then nearly as normal as
without the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from skbayes_sgld._linalg import GROUP, matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Categorical, RowKernel
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.parameterizations.base import Affine, Expanded, Map, Reparameterized
from skbayes_sgld.posterior.parameterizations.noise_coordinate import (
    NormalQuantiles,
    normal_quantiles,
)
from skbayes_sgld.posterior.parameterizations.own_class import (
    others_less_own,
    own_class_largest,
)
from skbayes_sgld.posterior.sparse_design import as_array

_RELATED = 0.3  # largest correlation of the predictors of two rows, without them


class Wall(Map):
    r"""The map :math:`\theta = \phi + V' (T(s) - s)` with :math:`s = U (\phi - c)`.

    Parameters
    ----------
    center : ndarray of shape (P,)
        c, the mode without the row.
    across : ndarray of shape (m, P)
        U, which takes theta to what the row determines, in sds without it.
    along : ndarray of shape (m, P)
        V, the moves of theta with these. ``U V'`` is the identity.
    transport : Map
        T.
    """

    def __init__(self, center: Array, across: Array, along: Array, transport: Map) -> None:
        self._center, self._across, self._along = center, across, along
        self._transport = transport

    def expand(self, phi: Array) -> Expanded:
        """Theta at phi, the log Jacobian and the chain rule."""
        s = self._in_sds(phi)
        at = self._transport.expand(s)

        def pull_back(grad: Array, tau: float) -> Array:
            in_t = matmul_rows(grad, self._along.T)
            return grad + matmul_rows(at.pull_back(in_t, tau) - in_t, self._across)

        return Expanded(phi + matmul_rows(at.theta - s, self._along), at.log_jacobian, pull_back)

    def inverse(self, theta: Array) -> Array:
        """Phi at theta."""
        t = self._in_sds(theta)
        return theta + matmul_rows(self._transport.inverse(t) - t, self._along)

    def _in_sds(self, theta: Array) -> Array:
        return matmul_rows(theta - self._center, self._across.T)


class SideBySide(Map):
    """Transports of several rows, each of equally many of the coordinates."""

    def __init__(self, transports: list[Map]) -> None:
        self._transports = transports

    def expand(self, phi: Array) -> Expanded:
        """Values of the transports, side by side, and the sum of their log Jacobians."""
        each = [t.expand(part) for t, part in self._parts(phi)]

        def pull_back(grad: Array, tau: float) -> Array:
            parts = np.split(grad, len(each), axis=1)
            return np.hstack([at.pull_back(g, tau) for at, g in zip(each, parts, strict=True)])

        jacobian = np.add.reduce([at.log_jacobian for at in each])
        return Expanded(np.hstack([at.theta for at in each]), jacobian, pull_back)

    def inverse(self, theta: Array) -> Array:
        """Coordinates of each transport, side by side."""
        return np.hstack([t.inverse(part) for t, part in self._parts(theta)])

    def _parts(self, values: Array) -> Iterator[tuple[Map, Array]]:
        return zip(self._transports, np.split(values, len(self._transports), axis=1), strict=True)


class BehindWall(Reparameterized):
    """Posterior of a generalised linear model in coordinates without walls."""

    def __init__(self, posterior: GLMPosterior, coordinates: Map, temperature: float) -> None:
        super().__init__(posterior, coordinates, temperature)
        self._facts = replace(
            posterior.facts,
            condensable=False,
            unequal_noise=False,
            has_other_starts=False,
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
    posterior: GLMPosterior, rows: Array, center: Array, covariance: Array
) -> BehindWall | None:
    """Posterior in coordinates without the walls of rows; None if they are not determined.

    Parameters
    ----------
    posterior : GLMPosterior
        Of one linear predictor, or of classes. Own parameters of its likelihood count at their
        values in ``center`` for the quantiles, and as they are in the density.
    rows : ndarray of int
        One row, or several of classes.
    center : ndarray of shape (P,)
        Mode of the posterior of all other rows.
    covariance : ndarray of shape (P, P)
        Inverse of the curvature there.
    """
    part = posterior.take(rows)
    sums: Any = part.row_sum()
    x = as_array(sums.design.block(slice(0, len(rows))))
    units = np.vstack([np.eye(len(center)), center])
    linear = sums.coefficient_map.coefficients(units) @ x.T
    classes = isinstance(posterior.likelihood, Categorical)
    transports: list[Map] = []
    across_all = []
    for row, of_row in enumerate(np.moveaxis(linear, -1, 0)):
        if classes:
            of_row = others_less_own(of_row, int(part.y[row]))
        in_theta, at_center = (of_row[:-1] if classes else of_row[:-1, :1]).T, of_row[-1]
        root = np.linalg.cholesky(in_theta @ covariance @ in_theta.T)
        across_all.append(np.linalg.solve(root, in_theta))
        weight = 1.0 if part.weight is None else float(part.weight[row])
        transport: Map | None
        if classes:
            transport = own_class_largest(at_center, root, weight)
        else:
            transport = _quantiles(sums.kernel, at_center, float(root[0, 0]))
        if transport is None:
            return None
        transports.append(transport)
    across = np.concatenate(across_all)
    together = across @ covariance @ across.T
    if np.abs(together - np.eye(len(together))).max() > _RELATED:
        return None
    along = np.linalg.solve(together, across @ covariance)
    if classes:  # the transport has the likelihood of the rows
        posterior = posterior.without(rows)
    transport = transports[0] if len(rows) == 1 else SideBySide(transports)
    return BehindWall(posterior, Wall(center, across, along, transport), 1.0)


def _quantiles(kernel: RowKernel, at_center: Array, sd: float) -> NormalQuantiles | None:
    """Normal quantiles of a row's predictor in sds; None if they are not determined."""

    def log_density(t: Array) -> Array:
        u = np.tile(at_center[:, None], (len(t), 1, 1))
        u[:, 0, 0] += sd * t
        of_row: Array = kernel.derivatives(u, 0)[0][:, 0]
        return of_row - 0.5 * np.square(t)

    quantiles = normal_quantiles(log_density, Affine(np.zeros(1), np.eye(1)), 1.0)
    return quantiles if isinstance(quantiles, NormalQuantiles) else None
