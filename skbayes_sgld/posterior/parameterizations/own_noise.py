"""Coordinates of rows with a noise that few rows determine.

With log-linear noise, the rows of a rare category have a mean and a noise of their own, and so has
a row far out. The smaller the noise, the narrower the mean: a funnel. Without these rows both are
nearly normal, and independent of all directions that are uncorrelated with them. Given the rows,
the log variance has a density in closed form, with the mean integrated out, and given the log
variance the mean is normal. The new coordinates are the normal quantiles of these two
distributions; the other directions stay. The posterior is then nearly as normal as without the
rows. Where a row with the weight of hundreds pulls its log variance far below the others' centre,
the coordinates are about the mode with this pull. With t noise the density of the log variance is
an integral, and the mean given it is only nearly normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit, logsumexp

from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.noise_models import LogLinearNoisePosterior
from skbayes_sgld.posterior.parameterizations.base import Affine, Expanded, Map
from skbayes_sgld.posterior.parameterizations.noise_coordinate import (
    Density,
    NormalQuantiles,
    cubic,
    normal_quantiles,
)
from skbayes_sgld.posterior.parameterizations.wall import BehindWall, Wall

# Variance of a log variance, without the rows, from which a group has coordinates of its own
_WIDE = 0.25
# Variance in the mean, in noise variances, and in the log variance, up to which two rows of a group
# may differ: that of other columns
_ALIKE = 0.1
_RELATED = 0.5  # largest correlation of two groups
_FAR = 30.0  # sds from the centre beyond which the other rows are no longer nearly normal
_HIGHEST = 600.0  # log precision, as floats know
_LOWEST = -60.0  # log variance of t noise, relative to the centre's, that predictors are exact for


@dataclass(frozen=True)
class Groups:
    """Groups of rows, in sds of their mean and of their log variance without them.

    All attributes have shape (K,).

    Attributes
    ----------
    residual : ndarray
        Weighted mean of the residuals at the centre.
    log_precision : ndarray
        Log of the sum of the rows' precisions at the centre; their information with t noise.
    rate : ndarray
        Sd of the log variance.
    weight : ndarray
        Number of the rows, or the sum of their weights.
    log_spread : ndarray
        Log of the weighted sum of squared residuals about their mean, in noise variances at the
        centre.
    equal : ndarray of bool
        Whether all rows of the group are normal, and copies of one but for their targets.
    slope : ndarray
        Slope of the other rows' log density in the log variance at the centre.
    """

    residual: Array
    log_precision: Array
    rate: Array
    weight: Array
    log_spread: Array
    equal: Array
    slope: Array

    def shares(self, t: Array) -> tuple[Array, Array]:
        """Shares of the rows and of all others in the precision of the mean, at log variances t."""
        log_precision = self.log_precision - self.rate * t
        return expit(log_precision), expit(-log_precision)

    def spreads(self, t: Array) -> Array:
        """Squared residuals about their mean, in noise variances, at log variances t."""
        return np.exp(self.log_spread - self.rate * t)

    def log_density(self, t: Array) -> Array:
        """Log density of log variances ``t (..., K)``, with the mean integrated out."""
        value = np.square(t) + (self.weight * self.rate - 2.0 * self.slope) * t + self.spreads(t)
        value += np.square(self.residual) * self.shares(t)[0]
        return -0.5 * (value + np.logaddexp(0.0, self.log_precision - self.rate * t))

    def densities(self) -> list[Density]:
        """:meth:`log_density` of each group."""
        table = np.array(list(vars(self).values()))
        return [Groups(*one[:, None]).log_density for one in table.T]


class NoiseQuantiles(Map):
    r"""Means and log variances of groups, in sds without their rows, from normal coordinates s.

    The variance of a group follows its distribution with the mean integrated out,
    :math:`T_2 = Q(s_2)`, and given it the mean is normal, :math:`T_1 = r g + \sqrt{1 - g} s_1`,
    with g the share of the rows in the precision of the mean, and r their residual at the centre.

    The log likelihood of equal rows counts as part of the Jacobian: where their noise is e^-60, no
    predictor is exact enough for their residual, which is known in these coordinates.

    Parameters
    ----------
    groups : Groups
    quantiles : list of NormalQuantiles
        Q, of each group.
    """

    def __init__(self, groups: Groups, quantiles: list[NormalQuantiles]) -> None:
        self._groups, self._quantiles = groups, quantiles
        self._pieces = _Pieces(quantiles)

    def expand(self, phi: Array) -> Expanded:
        """Means and then log variances, the log Jacobian times the likelihood, the chain rule."""
        of, (s1, s2) = self._groups, np.hsplit(phi, 2)
        t2, slope, bend = self._pieces.derivatives(s2)
        share, rest = of.shares(t2)
        sd, change = np.sqrt(rest), of.rate * share  # twice the slope of the log sd
        error = of.residual * sd - s1  # of the mean, in sds given the noise
        # the sd itself may be below floats
        density = np.log(slope) - 0.5 * np.logaddexp(0.0, of.log_precision - of.rate * t2)
        spread = of.spreads(t2)
        density -= 0.5 * of.equal * (of.weight * of.rate * t2 + share * error**2 + spread)

        def pull_back(grad: Array, tau: float) -> Array:
            first, second = np.hsplit(grad, 2)
            in_mean = change * (0.5 * sd * s1 - of.residual * rest)
            in_likelihood = change * error * (rest * error - of.residual * share * sd)
            in_likelihood = of.equal * (in_likelihood + (spread - of.weight) * of.rate)
            in_s1 = first * sd + tau * of.equal * share * error
            in_s2 = slope * (second + first * in_mean)
            in_s2 += tau * (0.5 * slope * (change + in_likelihood) + bend / slope)
            return np.hstack([in_s1, in_s2])

        theta = np.hstack([of.residual * share + sd * s1, t2])
        return Expanded(theta, density.sum(axis=1), pull_back)

    def inverse(self, theta: Array) -> Array:
        """Coordinates of means and log variances."""
        t1, t2 = np.hsplit(theta, 2)
        share, rest = self._groups.shares(t2)
        s1 = (t1 - self._groups.residual * share) / np.sqrt(rest)
        s2 = np.hstack([q.inverse(t2[:, [k]]) for k, q in enumerate(self._quantiles)])
        return np.hstack([s1, s2])

    def pull(self) -> Array:
        """Pull ``(K,)`` on log variances far below the centre's: the others' slope there.

        With its mean integrated out, a group of weight w and little noise has the log likelihood
        ``-(w - 1) / 2`` times its log variance.
        """
        of = self._groups
        far = of.equal * (self._pieces.derivatives(np.zeros((1, len(of.rate))))[0][0] < -_FAR)
        pull: Array = 0.5 * far * (of.weight - 1.0) * of.rate
        return pull


class _Pieces:
    """Quantiles of several groups at once."""

    def __init__(self, each: list[NormalQuantiles]) -> None:
        self._first = np.array([q.knots[0] for q in each])
        self._step = np.array([q.knots[1] - q.knots[0] for q in each])
        pieces = [q.pieces for q in each]
        self._breaks = np.concatenate([piece.x[:-1] for piece in pieces])
        self._powers = np.concatenate([piece.c[..., 0].T for piece in pieces])
        n_pieces = len(pieces[0].x) - 1
        self._last, self._begin = n_pieces - 1, n_pieces * np.arange(len(each))

    def derivatives(self, x: Array) -> tuple[Array, Array, Array]:
        """Values at ``x (C, K)`` and their first two derivatives."""
        at = np.fmax((x - self._first) / self._step + 1.0, 0.0)  # also of a chain that overflowed
        at = np.fmin(at, self._last).astype(int) + self._begin
        powers = np.moveaxis(self._powers.take(at, axis=0), -1, 0)
        return cubic(powers, x - self._breaks[at])


class BehindNoise(NamedTuple):
    """A posterior in coordinates without funnels.

    Attributes
    ----------
    posterior : BehindWall
    own : ndarray of int
        Rows with a noise of their own.
    together : ndarray of int
        Those of them that the posterior reads: they are not equal.
    pull : ndarray of shape (P,)
        Slope of all other rows at the mode of all, if rows pull far from the centre; else 0.
    """

    posterior: BehindWall
    own: Array
    together: Array
    pull: Array


def behind_own_noise(
    posterior: LogLinearNoisePosterior,
    rows: Array,
    center: Array,
    covariance: Array,
    slope: Array,
) -> BehindNoise | None:
    """Posterior in coordinates without funnels; None if there are none, or they are related.

    Parameters
    ----------
    posterior : LogLinearNoisePosterior
    rows : ndarray of int
        Rows that may have a noise of their own.
    center : ndarray of shape (P,)
        Mode of the posterior of all other rows, or a point nearer to that of all rows.
    covariance : ndarray of shape (P, P)
        Inverse of the others' curvature there.
    slope : ndarray of shape (P,)
        Gradient of the others' log density there.
    """
    part: Any = posterior.take(rows)
    sums = part.row_sum()
    x, maps = sums.design.block(slice(0, len(rows))), sums.coefficient_map
    x, copy = np.unique(x, axis=0, return_inverse=True)
    # how each row's mean and log variance depend on theta
    units = np.einsum("pkj,ij->kip", maps.coefficients(np.eye(len(center)))[:, :2], x)[:, copy]
    mean, log_variance = (maps.coefficients(center[None])[0, :2] @ x.T)[:, copy]
    weight = np.ones(len(rows)) if part.weight is None else part.weight
    size = np.ones(len(rows)) if part.n_averaged is None else part.n_averaged
    of_one = np.log(size) - log_variance  # log precision of a row that counts once
    nu = np.inf if posterior.n_own == 1 else float(np.exp(center[-1]))
    of_one += np.log(nu + 1.0) - np.log(nu + 3.0) if np.isfinite(nu) else 0.0  # its information
    labels = _alike(units, copy, covariance, of_one)
    n_groups = labels.max() + 1
    if n_groups == 0:
        return None
    members = labels == np.arange(n_groups)[:, None]  # (K, n_rows)
    across = np.concatenate([(members @ each) / members.sum(axis=1)[:, None] for each in units])
    sds = np.sqrt(np.einsum("kp,pq,kq->k", across, covariance, across))
    across /= sds[:, None]
    together = across @ covariance @ across.T
    if np.abs(together - np.eye(len(together))).max() > _RELATED:
        return None
    along = np.linalg.solve(together, across @ covariance)
    in_mean, rate = np.split(sds, 2)
    # a precision may be beyond floats
    log_precision = np.where(members, np.log(weight) + of_one, -np.inf)
    total = logsumexp(log_precision, axis=1)
    share = np.exp(log_precision - total[:, None])
    residual = (part.values.y_less_offset - mean) / in_mean[:, None]
    # about the residual of one row: equal residuals have no spread at all
    one = np.take_along_axis(residual, members.argmax(axis=1)[:, None], axis=1)
    apart = residual - one
    mean_apart = np.sum(share * apart, axis=1, keepdims=True)
    spread = np.sum(share * np.square(apart - mean_apart), axis=1)
    in_sds = total + 2.0 * np.log(in_mean)
    with np.errstate(divide="ignore"):
        log_spread = np.log(spread) + in_sds
    groups = Groups(
        residual=(one + mean_apart)[:, 0],
        log_precision=in_sds,
        rate=rate,
        weight=members @ weight,
        log_spread=log_spread,
        equal=np.array([np.isinf(nu) and np.ptp(copy[each]) == 0 for each in members]),
        slope=along[n_groups:] @ slope,
    )
    densities = groups.densities()
    if np.isfinite(nu):
        densities = [
            _heavy_density(nu, sd, r[each], of_one[each] + 2.0 * np.log(unit), weight[each])
            for sd, unit, r, each in zip(rate, in_mean, residual, members, strict=True)
        ]
    quantiles = _quantiles(densities, groups.weight * rate - 2.0 * groups.slope)
    if quantiles is None:
        return None
    lowest = [sd * q.derivatives(q.knots[0])[0] for sd, q in zip(rate, quantiles, strict=True)]
    if np.isfinite(nu) and min(lowest) < _LOWEST:
        return None
    equal = groups.equal @ members
    transport = NoiseQuantiles(groups, quantiles)
    wall = Wall(center, across, along, transport)
    return BehindNoise(
        BehindWall(posterior.without(rows[equal]), wall, 1.0),
        own=rows[labels >= 0],
        together=rows[(labels >= 0) & ~equal],
        pull=transport.pull() @ across[n_groups:],
    )


def _quantiles(densities: list[Density], most: Array) -> list[NormalQuantiles] | None:
    """Log variances by their normal quantiles; None if one of them is not determined.

    ``most`` are the numbers of rows times the sds of the log variances.
    """
    found = []
    for density, below in zip(densities, most, strict=True):
        # the noise of many rows of equal targets is far below that of the others
        grid = np.linspace(-0.5 * below - 10.0, 10.0, 1000)
        with np.errstate(over="ignore"):
            level = grid[np.argmax(density(grid))]
        quantiles = normal_quantiles(density, Affine(np.array([level]), np.eye(1)), 1.0)
        if not isinstance(quantiles, NormalQuantiles):
            return None
        found.append(quantiles)
    return found


def _heavy_density(
    nu: float, rate: float, residual: Array, log_precision: Array, weight: Array
) -> Density:
    """Log density of the log variance of rows with t noise, with the mean integrated out.

    The integral is a sum over nodes about the mean without the rows, and about some of the rows. A
    spline interpolates it. The tail of small noise is longer than that of normal rows.
    """
    below = 0.5 * rate * weight.sum()
    log_precision = log_precision + np.log((nu + 3.0) / (nu + 1.0))  # of the scale
    # a noise beyond the lowest is refused; floats know it for a row at 1e5 sds too
    grid = np.linspace(max(-below - 10.0, 2.0 * _LOWEST / rate), 10.0, 121)
    sd = np.exp(0.5 * (rate * grid[:, None] - log_precision))  # of each row's noise
    some = np.argsort(residual)[np.unique(np.linspace(0, len(residual) - 1, 6).astype(int))]
    # as far as the mean without the rows reaches, whatever the noise
    reach = np.arcsinh(12.0 / sd[:, some, None])
    about = residual[some, None] + sd[:, some, None] * np.sinh(reach * np.linspace(-1.0, 1.0, 81))
    usual = np.broadcast_to(np.linspace(-6.0, 6.0, 41), (len(grid), 41))
    nodes = np.sort(np.hstack([about.reshape(len(grid), -1), usual]), axis=1)
    z = (residual - nodes[..., None]) / sd[:, None]
    value = -0.5 * (nu + 1.0) * (np.log1p(np.square(z) / nu) @ weight) - 0.5 * np.square(nodes)
    integral = logsumexp(value, b=np.gradient(nodes, axis=1), axis=1)
    spline = CubicSpline(grid, integral - below * grid - 0.5 * np.square(grid))

    def log_density(t: Array) -> Array:
        inside = np.clip(t, grid[0], grid[-1])
        return spline(inside) + (t - inside) * spline(inside, 1)

    return log_density


def _alike(units: Array, copy: Array, covariance: Array, log_precision: Array) -> Array:
    """Group of each row ``(n,)``, by what its mean and log variance depend on; -1 without one."""
    roots = units @ np.linalg.cholesky(covariance)
    scale = np.stack([np.exp(np.minimum(log_precision, _HIGHEST)), np.ones(len(copy))])
    labels = np.full(len(copy), -1)
    wide = np.square(roots[1]).sum(axis=1) * (1.0 - 1e-12)
    number = 0
    while (wide > _WIDE).any():
        leader = int(np.argmax(wide))
        apart = np.square(roots - roots[:, [leader]]).sum(axis=2) * scale
        alike = (apart < _ALIKE).all(axis=0) | (copy == copy[leader])
        found = alike & (wide > _WIDE)
        labels[found], wide[found], number = number, 0.0, number + 1
    return labels
