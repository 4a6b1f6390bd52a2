r"""Coefficients given their scales, in coordinates that are standard normal.

With the log likelihood expanded to :math:`t (g' \beta - \beta' H \beta / 2)`, with t the ratio
of a reference noise variance to the noise variance, and the log prior to
:math:`r (q' \beta - \beta' \Lambda \beta / 2)`, the coefficients are normal with the precision
:math:`P = t H + r \Lambda` and the mean :math:`P^{-1} (t g + r q)`. The coordinates are z with
:math:`\beta = P^{-1} (t g + r q) + R z` and :math:`R R' = P^{-1}`. If one factor r changes all
prior precisions, P is diagonal in one basis for all t and r (:class:`EigenScales`). If the
precisions change separately, P has a Cholesky factor at each point (:class:`CholeskyScales`), or
the coefficients are standardised one by one (:class:`ColumnScales`).

Conventions
-----------
``z, beta (C, L)``, ``log_t (C,)``. ``log_r`` is ``(C,)`` or None if r is 1; for
:class:`CholeskyScales` it holds the logs of all prior precisions ``(C, L)``, minus infinity if the
prior is flat. ``eta (C, m)`` are the scales: hyperparameters and, if inferred, the log noise
variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from skbayes_sgld._linalg import GROUP, inverse_factors, matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.parameterizations.base import Expanded, Map, Reparameterized


class EigenScales:
    """Coefficients whose precision is diagonal in one basis U, with entries ``t a + r (1 - a)``.

    Parameters
    ----------
    basis : ndarray of shape (L, L)
        U; ``U U'`` is the inverse of ``H + Lambda``.
    prior : ndarray of shape (L,) or (1,)
        Shares ``1 - a`` of the prior; one number counts for all.
    pull_rows, pull_prior : ndarray of shape (L,) or float
        ``U' g`` and ``U' q``.
    power : float, default=0.0
        The information of the rows is assumed to change as this power of r; for a classifier it
        falls as coefficients grow.
    """

    def __init__(
        self,
        basis: Array,
        prior: Array,
        pull_rows: Array | float,
        pull_prior: Array | float = 0.0,
        power: float = 0.0,
    ) -> None:
        self.basis, self.power = basis, power
        self.back = np.ascontiguousarray(basis.T)
        # shares and pulls (2, 1, L)
        self._rows = np.stack(np.broadcast_arrays(1.0 - prior, pull_rows))[:, None]
        self._prior = np.stack(np.broadcast_arrays(prior, pull_prior))[:, None]

    def rounded(self) -> EigenScales:
        """Copy whose products are in single precision."""
        other = copy(self)
        for name in ("basis", "back", "_rows", "_prior"):
            setattr(other, name, getattr(self, name).astype(np.float32))
        return other

    def parts(self, log_r: Array | None, log_t: Array) -> tuple[Array, Array, Array, Array]:
        """D ``(C, L)``, the mean, and the parts ``(2, C, L)`` of the rows and of the prior in them.

        The parts are those of D, and of D times the mean.
        """
        dtype = self._rows.dtype
        t, prior = np.exp(log_t)[:, None].astype(dtype, copy=False), self._prior
        if log_r is not None:
            r = np.exp(log_r)[:, None].astype(dtype, copy=False)
            t = t * r**self.power if self.power else t
            prior = r * prior
        rows = t * self._rows
        D, pull = rows + prior
        return D, pull / D, rows, prior

    def in_basis(
        self, z: Array, parts: tuple[Array, Array, Array, Array]
    ) -> tuple[Array, Array, Callable[[Array, float], tuple[Array, Array, Array]]]:
        """Coefficients ``w = U^-1 beta`` at z, the root of D, and the chain rule."""
        D, mean, *_ = parts
        root = np.sqrt(D)
        w = mean + z.astype(D.dtype, copy=False) / root

        def pull_back(in_w: Array, in_log_det: float) -> tuple[Array, Array, Array]:
            in_log_D = -0.5 * (in_w * (w + mean) + in_log_det)
            return in_w / root, *self._in_scales(in_w, in_log_D, parts)

        return w, root, pull_back

    def expand(self, z: Array, log_r: Array | None, log_t: Array, group: int = GROUP) -> Expanded:
        """Coefficients at z, the log determinant of R, and the chain rule to z, log r and log t.

        A product takes ``group`` positions at a time.
        """
        w, root, in_basis = self.in_basis(z, self.parts(log_r, log_t))

        def pull_back(in_beta: Array, in_log_det: float) -> tuple[Array, Array, Array]:
            in_beta = in_beta.astype(self.basis.dtype, copy=False)
            return in_basis(matmul_rows(in_beta, self.basis, group), in_log_det)

        return Expanded(matmul_rows(w, self.back, group), -self.total(np.log(root)), pull_back)

    def forward(self, z: Array, log_r: Array | None, log_t: Array, group: int = GROUP) -> Array:
        """Coefficients at z."""
        D, mean, *_ = self.parts(log_r, log_t)
        return matmul_rows(mean + z / np.sqrt(D), self.back, group)

    def standardise(self, beta: Array, log_r: Array | None, log_t: Array) -> Array:
        """Coordinates z of coefficients."""
        D, mean, *_ = self.parts(log_r, log_t)
        w = np.linalg.solve(self.basis, beta.T).T
        return np.sqrt(D) * (w - mean)

    def _in_scales(
        self, in_w: Array, in_log_D: Array, parts: tuple[Array, ...]
    ) -> tuple[Array, Array]:
        """Derivatives in log r and log t, from those in w and in log D."""
        D, _, rows, prior = parts
        in_log_t = self.total((in_log_D * rows[0] + in_w * rows[1]) / D)
        if prior is self._prior:  # r is 1
            return np.zeros(len(D)), in_log_t
        in_log_r = self.total((in_log_D * prior[0] + in_w * prior[1]) / D)
        return in_log_r + self.power * in_log_t, in_log_t

    def marginal(
        self, log_r: Array | None, log_t: Array, in_log_det: float
    ) -> tuple[Array, Array, Array]:
        """Log of the integral over beta, with its derivatives, if the expansion is exact."""
        parts = self.parts(log_r, log_t)
        D, mean, *_ = parts
        in_w = D * mean
        fit = in_w * mean
        value = 0.5 * self.total(fit - in_log_det * np.log(D))
        return value, *self._in_scales(in_w, -0.5 * (fit + in_log_det), parts)

    def log_integral(self, log_r: Array | None, log_t: Array, in_log_det: float) -> Array:
        """Log of the integral over beta, if the expansion is exact."""
        D, mean, *_ = self.parts(log_r, log_t)
        return 0.5 * self.total(D * mean * mean - in_log_det * np.log(D))

    def total(self, each: Array) -> Array:
        """Sum over the basis of ``each (C, L)``, or of equal terms ``(C, 1)``."""
        total: Array = np.add.reduce(each, axis=1)
        return total if each.shape[1] == len(self.basis) else total * len(self.basis)


@dataclass(frozen=True, eq=False)
class CholeskyScales:
    """Coefficients with a separate prior precision each, about 0.

    Attributes
    ----------
    H : ndarray of shape (L, L)
    g : ndarray of shape (L,)
    dtype : type, default=float64
        Dtype of products with factors.
    """

    H: Array
    g: Array
    dtype: Any = np.float64

    def rounded(self) -> CholeskyScales:
        """Copy whose products with factors are in single precision; factors and means are not."""
        return replace(self, dtype=np.float32)

    @cached_property
    def _lower(self) -> Array:
        """Ones below the diagonal, and halves on it."""
        L = len(self.g)
        return (np.tri(L) - 0.5 * np.eye(L)).astype(self.dtype)

    def _parts(self, precision: Array, t: Array) -> tuple[Array, Array, Array]:
        """Inverse of P's factor, the mean, and the log determinant of R."""
        P = t[:, None, None] * self.H
        at = np.arange(len(self.g))
        P[:, at, at] += precision
        A, log_det = inverse_factors(P)
        mean = _rows_times(A @ self.g, A) * t[:, None]
        return A, mean, log_det

    def expand(self, z: Array, log_r: Array, log_t: Array, group: int = GROUP) -> Expanded:
        """Coefficients at z, the log determinant of R, and the chain rule to z, log r and log t."""
        precision, t = np.exp(log_r), np.exp(log_t)
        A, mean, log_det = self._parts(precision, t)
        A, z = A.astype(self.dtype, copy=False), z.astype(self.dtype, copy=False)

        def pull_back(in_beta: Array, in_log_det: float) -> tuple[Array, Array, Array]:
            in_beta = in_beta.astype(self.dtype, copy=False)
            q = (A @ in_beta[..., None])[..., 0]
            v = _rows_times(q, A)
            # derivative in the log of A: products, as running sums take three times as long
            in_A = z[:, :, None] * self._lower
            in_A *= q[:, None, :]
            at = np.arange(len(self.g))
            in_A[:, at, at] += 0.5 * in_log_det
            own = v * mean + np.einsum("cij,cij->cj", A, in_A @ A)
            in_log_r = -precision * own
            # if all log r and log t grow by delta, the mean stays, and A shrinks by exp(-delta / 2)
            in_all = -0.5 * (np.vecdot(q, z) + in_log_det * z.shape[1])
            return q, in_log_r, in_all - in_log_r.sum(axis=1)

        return Expanded(mean + _rows_times(z, A), log_det, pull_back)

    def forward(self, z: Array, log_r: Array, log_t: Array, group: int = GROUP) -> Array:
        """Coefficients at z."""
        return self.expand(z, log_r, log_t, group).theta

    def standardise(self, beta: Array, log_r: Array, log_t: Array) -> Array:
        """Coordinates z of coefficients."""
        A, mean, _ = self._parts(np.exp(log_r), np.exp(log_t))
        return np.linalg.solve(A.swapaxes(1, 2), (beta - mean)[..., None])[..., 0]

    def marginal(self, log_r: Array, log_t: Array, in_log_det: float) -> tuple[Array, Array, Array]:
        """Log of the integral over beta, with its derivatives, if the expansion is exact."""
        precision, t = np.exp(log_r), np.exp(log_t)
        A, mean, log_det = self._parts(precision, t)
        fit = t * (mean @ self.g)
        variances = np.einsum("cij,cij->cj", A, A)
        in_log_r = -0.5 * precision * (np.square(mean) + in_log_det * variances)
        # the derivative of P's log determinant in log t, from that in the precisions
        trace = (precision * variances).sum(axis=1)
        square = (precision * np.square(mean)).sum(axis=1)  # mean' P mean is fit
        in_log_t = fit - 0.5 * (fit - square) - 0.5 * in_log_det * (len(self.g) - trace)
        return 0.5 * fit + in_log_det * log_det, in_log_r, in_log_t

    def log_integral(self, log_r: Array, log_t: Array, in_log_det: float) -> Array:
        """Log of the integral over beta, if the expansion is exact."""
        t = np.exp(log_t)
        _, mean, log_det = self._parts(np.exp(log_r), t)
        return 0.5 * (t * (mean @ self.g)) + in_log_det * log_det

    def by_columns(self, log_r: Array, log_t: Array) -> ColumnScales:
        """Coordinates of single columns that agree with these at ``log_r (L,)`` and one log t."""
        r, t = np.exp(log_r), np.exp(log_t)
        A, mean, _ = self._parts(r[None], t[None])
        precision = 1.0 / np.square(A[0]).sum(axis=0)
        return ColumnScales(np.maximum(precision - r, 0.0) / t, precision * mean[0] / t)

    def correlation(self, log_r: Array, log_t: Array) -> Array:
        """Correlation matrix ``(L, L)`` of the coefficients at ``log_r (L,)`` and one log t."""
        A = self._parts(np.exp(log_r)[None], np.exp(log_t)[None])[0][0]
        A = A / np.sqrt(np.square(A).sum(axis=0))
        return A.T @ A


def _rows_times(x: Array, A: Array) -> Array:
    """``x A`` of each row of ``x (C, L)`` and each matrix; einsum takes twice as long."""
    return (x[:, None] @ A)[:, 0]


class ColumnScales:
    """Coefficients with a separate prior precision each, standardised one by one.

    Given all scales, a coefficient has the precision ``t rows + r`` and the mean ``t pull`` over
    it. This is exact for one column if the scales of all others, whose coefficients are integrated
    out, stay at a reference. The coefficients are then correlated; a metric takes care of that. A
    gradient takes no factor of a matrix: with 60 columns a tenth of the time.

    Parameters
    ----------
    rows, pull : ndarray of shape (L,)
    """

    def __init__(self, rows: Array, pull: Array) -> None:
        self._rows, self._pull = rows, pull

    def rounded(self) -> ColumnScales:
        """These coordinates: without products, single precision saves nothing."""
        return self

    def _parts(self, log_r: Array, log_t: Array) -> tuple[Array, Array, Array]:
        """Shares of the prior in the precisions, sds and means."""
        r, t = np.exp(log_r), np.exp(log_t)[:, None]
        precision = t * self._rows + r
        return r / precision, 1.0 / np.sqrt(precision), t * self._pull / precision

    def expand(self, z: Array, log_r: Array, log_t: Array, group: int = GROUP) -> Expanded:
        """Coefficients at z, the log Jacobian, and the chain rule to z, log r and log t."""
        share, sd, mean = self._parts(log_r, log_t)
        deviation = z * sd

        def pull_back(in_beta: Array, in_log_det: float) -> tuple[Array, Array, Array]:
            own = in_beta * deviation + in_log_det
            own *= 0.5
            along = in_beta * mean
            in_log_r = -share * (along + own)
            # if all log r and log t grow alike, the means stay and the sds shrink
            return in_beta * sd, in_log_r, -own.sum(axis=1) - in_log_r.sum(axis=1)

        return Expanded(mean + deviation, np.log(sd).sum(axis=1), pull_back)

    def forward(self, z: Array, log_r: Array, log_t: Array, group: int = GROUP) -> Array:
        """Coefficients at z."""
        return self.expand(z, log_r, log_t, group).theta

    def standardise(self, beta: Array, log_r: Array, log_t: Array) -> Array:
        """Coordinates z of coefficients."""
        _, sd, mean = self._parts(log_r, log_t)
        return (beta - mean) / sd


class NormalGivenScales(Map):
    """Map from ``phi = (z, x)``: coefficients standardised given scales, and scales by a map.

    Parameters
    ----------
    origin : ndarray of shape (L,)
        Coefficients at the point of the expansion.
    coefficients : EigenScales, CholeskyScales or ColumnScales
    scales : object
        Object with ``at(eta)``, log r and log t; ``pull_back(eta, in_log_r, in_log_t)``, the
        gradient in eta; and, for :meth:`marginal`, ``value_and_grad(eta)``, the log density of
        theta at the origin and its gradient in eta.
    scale_map : Map
        Map from x to eta.
    """

    group: int | None = GROUP

    def __init__(self, origin: Array, coefficients: Any, scales: Any, scale_map: Map) -> None:
        self.origin, self.coefficients = origin, coefficients
        self.scales, self.scale_map = scales, scale_map

    def rounded(self) -> NormalGivenScales:
        """Map whose coefficients are in single precision."""
        return NormalGivenScales(
            self.origin, self.coefficients.rounded(), self.scales, self.scale_map
        )

    def in_groups_of(self, size: int | None) -> NormalGivenScales:
        """Map whose products take ``size`` positions at once: 16 in two thirds of the time of 4."""
        other = copy(self)
        other.group = size
        return other

    def split(self, phi: Array) -> tuple[Array, Expanded]:
        """Coordinates z, and the scales."""
        L = len(self.origin)
        return phi[:, :L], self.scale_map.expand(phi[:, L:])

    def forward(self, phi: Array) -> Array:
        """Theta at phi; larger products make a whole fit with 200 columns 1.1 times as fast."""
        z, at = self.split(phi)
        beta = self.coefficients.forward(z, *self.scales.at(at.theta), 64)
        return np.hstack([self.origin + beta, at.theta])

    def expand(self, phi: Array) -> Expanded:
        """Theta at phi, the log Jacobian and the chain rule."""
        z, at = self.split(phi)
        beta = self.coefficients.expand(z, *self.scales.at(at.theta), self.group or len(z))
        L = len(self.origin)

        def pull_back(grad: Array, tau: float) -> Array:
            in_z, *in_scales = beta.pull_back(grad[:, :L], tau)
            return np.hstack([in_z, self.in_x(at, grad[:, L:], in_scales, tau)])

        theta = np.hstack([self.origin + beta.theta, at.theta])
        return Expanded(theta, beta.log_jacobian + at.log_jacobian, pull_back)

    def in_x(self, at: Expanded, in_eta: Array, in_scales: Sequence[Array], tau: float) -> Array:
        """Gradient in x of a function of eta, log r and log t, and of tau log Jacobians."""
        return at.pull_back(in_eta + self.scales.pull_back(at.theta, *in_scales), tau)

    def inverse(self, theta: Array) -> Array:
        """Phi at theta."""
        L = len(self.origin)
        eta = theta[:, L:]
        z = self.coefficients.standardise(theta[:, :L] - self.origin, *self.scales.at(eta))
        return np.hstack([z, self.scale_map.inverse(eta)])

    def marginal(self, x: Array, tau: float) -> tuple[Array, Array]:
        """Log density of x with the coefficients integrated out, and its gradient.

        It is exact for a normal likelihood and normal priors.
        """
        at = self.scale_map.expand(x)
        scales = self.scales.at(at.theta)
        value, *in_scales = self.coefficients.marginal(*scales, tau)
        at_origin, in_eta = self.scales.value_and_grad(at.theta)
        value = value + at_origin + tau * at.log_jacobian
        return value, self.in_x(at, in_eta, in_scales, tau)

    def log_marginal(self, x: Array, tau: float) -> Array:
        """Log density of :meth:`marginal` alone."""
        at = self.scale_map.expand(x)
        value = self.coefficients.log_integral(*self.scales.at(at.theta), tau)
        return value + self.scales.value_and_grad(at.theta)[0] + tau * at.log_jacobian


class NormalCoefficients(Reparameterized):
    """Posterior in which z is exactly standard normal at all scales.

    The likelihood and the priors of the coefficients are normal. The log density is then
    ``-z'z / 2`` plus the log marginal density of the other coordinates, the map's method
    ``marginal``.
    """

    def value_and_grad(self, phi: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        L, grad = len(self.coordinates.origin), -phi
        z, x = phi[:, :L], phi[:, L:]
        value, grad[:, L:] = self.coordinates.marginal(x, self.temperature)
        return value - 0.5 * np.vecdot(z, z), grad

    def log_density(self, phi: Array) -> Array:
        """Log posterior density of phi up to a constant ``(C,)``."""
        L = len(self.coordinates.origin)
        z, x = phi[:, :L], phi[:, L:]
        return self.coordinates.log_marginal(x, self.temperature) - 0.5 * np.vecdot(z, z)

    def grad(self, phi: Array) -> Array:
        """Gradient of the log posterior ``(C, P)``."""
        return self.value_and_grad(phi)[1]

    bind_grad = BasePosterior.bind_grad
    bind_value_and_grad = BasePosterior.bind_value_and_grad
