r"""A nearly normal posterior of many rows as a cubic polynomial.

With z the whitened distance of theta from a point, the log likelihood of n rows has terms of degree
k in z of order :math:`n^{1 - k/2}`. Its best cubic approximation over a standard normal z has
Hermite polynomials of up to three degrees, with averages of the rows' derivatives as coefficients.
What that leaves has no part of degree one or two: to first order it changes no mean or variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from skbayes_sgld._linalg import ALIKE, GROUP, matmul_rows, row_slices
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.averaged import averaged_rows
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Facts, Reported

_ROWS = 2500  # rows of the third derivatives
_BEYOND = 3.5  # sds from the typical distance, beyond which the cubic terms do not grow


class CubicPosterior(BasePosterior):
    """Posterior of rows with one predictor each, under a normal prior, as a cubic polynomial.

    Parameters
    ----------
    whole : GLMPosterior
        Posterior of all rows.
    theta : ndarray of shape (P,)
        Point near the mean.
    root : ndarray of shape (P, P)
        Moves of theta by 1 in each whitened coordinate.
    """

    def __init__(self, whole: Any, theta: Array, root: Array) -> None:
        self.n_params, self.param_names = whole.n_params, whole.param_names
        self.n_samples = whole.n_samples
        self._whole, self._theta, self._inverse = whole, theta, np.linalg.inv(root)
        rows, H = whole.row_sum(), np.zeros_like(root)
        z = rows.predictors(root)[:, 0]  # of the rows, in whitened coordinates (P, n)
        average = averaged_rows(rows, theta, np.einsum("pn,pn->n", z, z), 3)
        whole.add_prior_curvature(H, theta)
        self._curvature = root @ H @ root.T + (z * average.curvature) @ z.T
        some = np.sort(np.random.default_rng(0).permutation(self.n_samples)[:_ROWS])
        share = len(average.third[some]) / self.n_samples
        third = _sum_of_cubes(z[:, some], average.third[some] / share)
        self._third = third.reshape(self.n_params, -1)
        # mean slope, and slope of the polynomial at theta
        self._force = root @ whole.grad_log_prior(theta[None])[0] + z @ average.score
        self._slope = self._force - 0.5 * np.einsum("abb->a", third.astype(float))
        self._most = (np.sqrt(self.n_params) + _BEYOND) ** 2

    def normal(self) -> tuple[Array, Array]:
        """Mean and precision of the normal distribution near the posterior."""
        move = np.linalg.solve(self._curvature, self._force)
        mean = self._theta + np.linalg.solve(self._inverse.T, move)
        return mean, self._inverse @ self._curvature @ self._inverse.T

    def of_rows(self, theta: Array) -> Array:
        """Log density ``(C,)`` of the rows themselves, each to single precision.

        It takes half of the time of a design in single precision, which would be read once.
        """
        u = self._whole.row_sum().predictors(theta).astype(np.float32)
        kernel = self._whole.likelihood.bind(self._whole.values, np.float32)
        return kernel.total(u) + self._whole.log_prior(theta)

    @property
    def facts(self) -> Facts:
        """Facts about the whole posterior; no density reads its rows."""
        return replace(self._whole.facts, cheap_full_gradient=True)

    @property
    def reported(self) -> Reported:
        """Reported parameters of the whole posterior."""
        reported: Reported = self._whole.reported
        return reported

    def log_density(self, theta: Array) -> Array:
        """Log posterior density up to a constant ``(C,)``."""
        return self.bind_log_density(ALIKE)(theta)

    def bind_log_density(self, group: int | None = GROUP) -> Callable[[Array], Array]:
        """:meth:`log_density`, whose products take ``group`` positions."""

        def log_density(theta: Array) -> Array:
            z, _, bend = self._at(theta, group or len(theta))
            curved = matmul_rows(z, self._curvature, group or len(theta))
            return np.einsum("cp,cp->c", z, self._slope - 0.5 * curved + bend / 6.0)

        return log_density

    def grad(self, theta: Array) -> Array:
        """Gradient of the log posterior density ``(C, P)``."""
        z, outside, bend = self._at(theta, ALIKE)
        along = np.einsum("cp,cp->c", z, bend) / np.maximum(np.einsum("cp,cp->c", z, z), 1e-300)
        bend -= np.where(outside, along, 0.0)[:, None] * z
        slope = self._slope - matmul_rows(z, self._curvature, ALIKE) + 0.5 * bend
        return matmul_rows(slope, self._inverse.T, ALIKE)

    def _at(self, theta: Array, group: int) -> tuple[Array, Array, Array]:
        """Whitened z ``(C, P)``, whether it is beyond the radius, and products ``T z z (C, P)``.

        Beyond the radius the cubic term ``T z z z / 6`` depends on the direction alone.
        """
        z = matmul_rows(theta - self._theta, self._inverse, group)
        single = z.astype(np.float32)  # the cubic term is small
        by_pair = matmul_rows(single, self._third, group).reshape(len(z), -1, self.n_params)
        bend = np.matmul(by_pair, single[:, :, None])[:, :, 0].astype(float)
        square = np.einsum("cp,cp->c", z, z)
        outside = square > self._most
        bend[outside] *= (self._most / square[outside, None]) ** 1.5
        return z, outside, bend


def _sum_of_cubes(z: Array, weight: Array) -> Array:
    """Sum over rows of ``w z_a z_b z_c (P, P, P)``, in single precision, for ``z (P, n)``."""
    P, n = z.shape
    a, b = np.triu_indices(P)  # of the last two indices, half of the pairs
    single, weighted = z.astype(np.float32), (weight * z).astype(np.float32)
    half, total = np.zeros((P, len(a)), np.float32), np.empty((P, P, P), np.float32)
    for rows in row_slices(n, len(a)):
        some, at = single[:, rows], 0
        pairs = np.empty((len(a), some.shape[1]), np.float32)
        for k in range(P):
            np.multiply(some[k], some[k:], out=pairs[at : at + P - k])
            at += P - k
        half += weighted[:, rows] @ pairs.T
    total[:, a, b] = total[:, b, a] = half
    return total
