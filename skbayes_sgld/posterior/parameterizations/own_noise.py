"""Coordinates of normal rows with a noise that few rows determine.

With log-linear noise, the rows of a rare category have a mean and a noise of their own, and so has
a row far out. The smaller the noise, the narrower the mean: a funnel. Without these rows both are
nearly normal, and independent of all directions that are uncorrelated with them. Given the rows,
the log variance has a density in closed form, with the mean integrated out, and given the log
variance the mean is normal. The new coordinates are the normal quantiles of these two
distributions; the other directions stay. The posterior is then nearly as normal as without the
rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.noise_models import LogLinearNoisePosterior
from skbayes_sgld.posterior.parameterizations.base import Affine, Expanded, Map
from skbayes_sgld.posterior.parameterizations.noise_coordinate import (
    NormalQuantiles,
    normal_quantiles,
)
from skbayes_sgld.posterior.parameterizations.wall import BehindWall

# Variance of a log variance, without the rows, from which a group has coordinates of its own
_WIDE = 0.25
# Variance in the mean, in noise variances, and in the log variance, up to which two rows of a group
# may differ: that of other columns
_ALIKE = 0.1
_RELATED = 0.5  # largest correlation of two groups


@dataclass(frozen=True)
class Groups:
    """Groups of normal rows, in sds of their mean and of their log variance without them.

    All attributes have shape (K,).

    Attributes
    ----------
    residual : ndarray
        Weighted mean of the residuals at the centre.
    log_precision : ndarray
        Log of the sum of the rows' precisions at the centre.
    rate : ndarray
        Sd of the log variance.
    weight : ndarray
        Number of the rows, or the sum of their weights.
    spread : ndarray
        Weighted sum of squared residuals about their mean, in noise variances at the centre.
    alone : ndarray of bool
        Whether the group is a single row.
    """

    residual: Array
    log_precision: Array
    rate: Array
    weight: Array
    spread: Array
    alone: Array

    def shares(self, t: Array) -> tuple[Array, Array]:
        """Shares of the rows and of all others in the precision of the mean, at log variances t."""
        log_precision = self.log_precision - self.rate * t
        return expit(log_precision), expit(-log_precision)

    def log_density(self, t: Array) -> Array:
        """Log density of log variances ``t (..., K)``, with the mean integrated out."""
        value = np.square(t) + self.weight * self.rate * t + self.spread * np.exp(-self.rate * t)
        value += np.square(self.residual) * self.shares(t)[0]
        return -0.5 * (value + np.logaddexp(0.0, self.log_precision - self.rate * t))

    def quantiles(self) -> list[NormalQuantiles] | None:
        """Log variances by their normal quantiles; None if one of them is not determined."""
        # the noise of a heavy row that is alone is far below that of the others
        levels = np.where(self.alone, -0.5 * self.rate * np.maximum(self.weight - 1.0, 0.0), 0.0)
        table = np.array(list(vars(self).values()))
        found = [
            normal_quantiles(Groups(*one[:, None]).log_density, Affine(level[None], np.eye(1)), 1.0)
            for one, level in zip(table.T, levels, strict=True)
        ]
        quantiles = [q for q in found if isinstance(q, NormalQuantiles)]
        return quantiles if len(quantiles) == len(found) else None


class OwnNoise(Map):
    r"""The map :math:`\theta = \phi + (T - s) V` with :math:`s = U (\phi - c)`.

    Of each group, :math:`T_1` and :math:`T_2` are the mean and the log variance in sds without its
    rows. The variance follows its distribution with the mean integrated out,
    :math:`T_2 = Q(s_2)`, and given it the mean is normal, :math:`T_1 = r g + \sqrt{1 - g} s_1`,
    with g the share of the rows in the precision of the mean, and r their residual at c.

    The log likelihood of a row that is alone counts as part of the Jacobian: where its noise is
    e^-60, no predictor is exact enough for its residual, which is known in these coordinates.

    Parameters
    ----------
    center : ndarray of shape (P,)
        c, the mode without the rows.
    across : ndarray of shape (2 K, P)
        U, which takes theta to the means and then the log variances of the groups, in sds.
    along : ndarray of shape (2 K, P)
        V, the moves of theta with these; ``U V'`` is the identity.
    groups : Groups
    quantiles : list of NormalQuantiles
        Q, of each group.
    alone : ndarray of int
        Rows that are alone in their group.
    """

    def __init__(
        self,
        center: Array,
        across: Array,
        along: Array,
        groups: Groups,
        quantiles: list[NormalQuantiles],
        alone: Array,
    ) -> None:
        self.alone = alone
        self._center, self._across, self._along = center, across, along
        self._groups, self._quantiles = groups, quantiles
        self._pieces = _Pieces(quantiles)

    def expand(self, phi: Array) -> Expanded:
        """Theta at phi, the log Jacobian times the likelihood of rows alone, and the chain rule."""
        of, (s1, s2) = self._groups, self._in_sds(phi)
        t2, slope, bend = self._pieces.derivatives(s2)
        share, rest = of.shares(t2)
        sd, change = np.sqrt(rest), of.rate * share  # twice the slope of the log sd
        error = of.residual * sd - s1  # of the mean, in sds given the noise
        density = np.log(slope * sd)
        density -= 0.5 * of.alone * (of.weight * of.rate * t2 + share * error**2)

        def pull_back(grad: Array, tau: float) -> Array:
            first, second = np.hsplit(matmul_rows(grad, self._along.T), 2)
            in_mean = change * (0.5 * sd * s1 - of.residual * rest)
            in_likelihood = change * error * (rest * error - of.residual * share * sd)
            in_likelihood = of.alone * (in_likelihood - of.weight * of.rate)
            in_s1 = first * (sd - 1.0) + tau * of.alone * share * error
            in_s2 = second * (slope - 1.0) + slope * first * in_mean
            in_s2 += tau * (0.5 * slope * (change + in_likelihood) + bend / slope)
            out: Array = grad + matmul_rows(np.hstack([in_s1, in_s2]), self._across)
            return out

        moves = np.hstack([of.residual * share + (sd - 1.0) * s1, t2 - s2])
        theta = phi + matmul_rows(moves, self._along)
        return Expanded(theta, density.sum(axis=1), pull_back)

    def inverse(self, theta: Array) -> Array:
        """Phi at theta."""
        t1, t2 = self._in_sds(theta)
        share, rest = self._groups.shares(t2)
        s1 = (t1 - self._groups.residual * share) / np.sqrt(rest)
        s2 = np.hstack([q.inverse(t2[:, [k]]) for k, q in enumerate(self._quantiles)])
        phi: Array = theta + matmul_rows(np.hstack([s1 - t1, s2 - t2]), self._along)
        return phi

    def _in_sds(self, theta: Array) -> list[Array]:
        return np.hsplit(matmul_rows(theta - self._center, self._across.T), 2)


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
        h, powers = x - self._breaks[at], self._powers.take(at, axis=0)
        a, b, c, d = (powers[..., k] for k in range(4))
        return ((a * h + b) * h + c) * h + d, (3.0 * a * h + 2.0 * b) * h + c, 6.0 * a * h + 2.0 * b


def behind_own_noise(
    posterior: LogLinearNoisePosterior, rows: Array, center: Array, covariance: Array
) -> tuple[BehindWall, Array] | None:
    """Posterior in coordinates without funnels, and the rows of these.

    None if there are none, or they are related.

    Parameters
    ----------
    posterior : LogLinearNoisePosterior
    rows : ndarray of int
        Rows that may have a noise of their own.
    center : ndarray of shape (P,)
        Mode of the posterior of all other rows.
    covariance : ndarray of shape (P, P)
        Inverse of the curvature there.
    """
    sums: Any = posterior.take(rows).row_sum()
    x, maps = sums.design.block(slice(0, len(rows))), sums.coefficient_map
    # how each row's mean and log variance depend on theta
    units = np.einsum("pkj,ij->kip", maps.coefficients(np.eye(len(center))), x)
    u = maps.coefficients(center[None]) @ x.T
    score, curvature = (each[0] for each in sums.kernel.derivatives(u, 1, 2))
    precision = curvature[0, 0]
    residual = score[0] / precision
    weight = score[0] * residual - 2.0 * score[1]
    labels = _alike(units, covariance, np.stack([precision / weight, np.ones(len(rows))]))
    n_groups = labels.max() + 1
    if n_groups == 0:
        return None
    members = (labels == np.arange(n_groups)[:, None]).astype(float)  # (K, n_rows)
    size = members.sum(axis=1)
    across = np.concatenate([(members / size[:, None]) @ each for each in units])
    sds = np.sqrt(np.einsum("kp,pq,kq->k", across, covariance, across))
    across /= sds[:, None]
    together = across @ covariance @ across.T
    if np.abs(together - np.eye(len(together))).max() > _RELATED:
        return None
    along = np.linalg.solve(together, across @ covariance)
    total = members @ precision
    mean = members @ (precision * residual) / total
    spread = members @ (precision * np.square(residual)) - total * np.square(mean)
    in_mean, rate = np.split(sds, 2)
    groups = Groups(
        residual=mean / in_mean,
        log_precision=np.log(total) + 2.0 * np.log(in_mean),
        rate=rate,
        weight=members @ weight,
        spread=np.where(size > 1, np.maximum(spread, 0.0), 0.0),
        alone=size == 1,
    )
    quantiles = groups.quantiles()
    if quantiles is None:
        return None
    alone = rows[np.isin(labels, np.flatnonzero(groups.alone))]
    others = posterior.take(np.delete(np.arange(posterior.n_samples), alone))
    map_ = OwnNoise(center, across, along, groups, quantiles, alone)
    return BehindWall(others, map_, 1.0), rows[labels >= 0]


def _alike(units: Array, covariance: Array, scale: Array) -> Array:
    """Group of each row ``(n,)``, by what its mean and log variance depend on; -1 without one."""
    roots = units @ np.linalg.cholesky(covariance)
    labels = np.full(units.shape[1], -1)
    wide = np.square(roots[1]).sum(axis=1) * (1.0 - 1e-12)
    number = 0
    while (wide > _WIDE).any():
        leader = int(np.argmax(wide))
        apart = np.square(roots - roots[:, [leader]]).sum(axis=2) * scale
        found = (apart < _ALIKE).all(axis=0) & (wide > _WIDE)
        labels[found], wide[found], number = number, 0.0, number + 1
    return labels
