r"""Predictors of a row whose own class has the largest, as functions of independent normals.

A row far out of K classes has K - 1 differences u between the predictors of the other classes and
its own. Without the row they are nearly normal, with sds of tens; given the row nearly all of them
are below 0. The probability of its own class is a product,

.. math:: \frac{1}{1 + \sum_k e^{u_k}} = \prod_k \sigma(L_{k-1} - u_k),
   \quad L_k = \log(1 + e^{u_1} + \dots + e^{u_k}).

Given those before it, each difference thus follows a normal distribution times one logistic
function: a family with one parameter, whose quantiles are tabulated. What is left are the
probabilities of the differences to come. They move means and covariances of the coordinates, which
a linear map takes off: the log density of seven differences is then normal up to an sd of 0.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import log_expit, ndtri_exp

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld._random import probe_generator
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.parameterizations.base import Expanded, Map
from skbayes_sgld.posterior.parameterizations.noise_coordinate import cubic

_KNOTS = np.linspace(-6.0, 6.0, 61)  # normal quantiles; beyond, the map is linear
_LEVELS = 33  # values of the parameter
_EVEN, _NEAR = np.linspace(-9.0, 9.0, 361), 241  # points of a grid of t
_DRAWS = 1000
_WIDER = 1.5  # sds of the draws whose parameters the tables have room for
_LEAST_SHARE = 0.5  # share of effective draws, below which the coordinates are not nearly normal


def others_less_own(contrasts: Array, own: int) -> Array:
    """Predictors ``(..., K - 1)`` of the other classes less those of a class.

    ``contrasts (..., K - 1)`` are the predictors of all classes but the last, less the last.
    """
    all_classes = np.concatenate([contrasts, np.zeros_like(contrasts[..., :1])], axis=-1)
    difference: Array = np.delete(all_classes, own, axis=-1) - all_classes[..., own, None]
    return difference


class Place(NamedTuple):
    """Place of numbers among equidistant knots.

    Attributes
    ----------
    interval : ndarray of int
        The nearest interval.
    distance : ndarray
        Distance from its lower end, at most its length.
    beyond : ndarray
        Distance from the outer knots of a number beyond them.
    inside : ndarray of bool
    """

    interval: Array
    distance: Array
    beyond: Array
    inside: Array

    @classmethod
    def of(cls, x: Array, knots: Array = _KNOTS) -> Place:
        """Places of numbers."""
        at = np.minimum(np.maximum(x, knots[0]), knots[-1])
        interval = ((at - knots[0]) / (knots[1] - knots[0])).astype(np.intp)
        interval = np.minimum(interval, len(knots) - 2)
        return cls(interval, at - knots.take(interval), x - at, at == x)

    def of_one(self, j: int) -> Place:
        """Places of the numbers ``x[j]``."""
        return Place(self.interval[j], self.distance[j], self.beyond[j], self.inside[j])


class LogisticQuantiles:
    r"""Quantiles of t with density :math:`N(t) \sigma(b - \kappa t)^w`, by a table.

    Parameters
    ----------
    scale : float
        kappa.
    weight : float
        w.
    least, most : float
        Range of b; values beyond count as its ends.
    """

    def __init__(self, scale: float, weight: float, least: float, most: float) -> None:
        self._b = np.linspace(least, most, _LEVELS)
        table = CubicSpline(self._b, _quantiles(scale, weight, self._b)).c
        pieces = CubicSpline(_KNOTS, table, axis=2).c.transpose(1, 3, 2, 0)
        # of each rectangle of s and b: powers of b, and of s, the highest first
        self._pieces = np.ascontiguousarray(pieces).reshape(-1, 16)

    def __call__(self, s: Place, b: Array) -> tuple[Array, Array, Array]:
        """Value and slope in s, and their slopes in b, ``(2, n)`` each; the second derivative in s.

        ``s`` are places among the knots.
        """
        level = Place.of(b, self._b)
        pieces = self._pieces.take(s.interval * (_LEVELS - 1) + level.interval, axis=0)
        by_power = np.empty((4, 2, len(b)))
        by_power[:, 0], by_power[:, 1], _ = cubic(pieces.T.reshape(4, 4, -1), level.distance)
        by_power[:, 1] *= level.inside
        value, slope, bend = cubic(by_power, s.distance)
        value += s.beyond * slope  # straight lines beyond the knots
        return value, slope, bend[0] * s.inside

    def inverse(self, t: Array, b: Array) -> Array:
        """Coordinate s of quantiles t, by bisection and Newton steps."""
        low, high = np.full_like(t, _KNOTS[0]), np.full_like(t, _KNOTS[-1])
        for _ in range(20):
            middle = 0.5 * (low + high)
            below = self(Place.of(middle), b)[0][0] < t
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        s = 0.5 * (low + high)
        for _ in range(4):
            value, slope, _ = self(Place.of(s), b)
            s = s + (t - value[0]) / slope[0]
        return s

    @property
    def increases(self) -> bool:
        """Whether the quantiles increase everywhere."""
        halves = np.linspace(_KNOTS[0], _KNOTS[-1], 2 * len(_KNOTS) - 1)
        s, b = np.meshgrid(halves, self._b)
        return bool(np.all(self(Place.of(s.ravel()), b.ravel())[1][0] > 0.0))


def _quantiles(scale: float, weight: float, b: Array) -> Array:
    """Quantiles ``(len(b), len(_KNOTS))`` at the knots.

    The log density is interpolated linearly between the points of a grid, and integrated exactly.
    The grid is fine where the logistic function falls.
    """
    fall = (b[:, None] - np.log(weight)) / scale
    near = np.sinh(np.linspace(-1.0, 1.0, _NEAR) * np.arcsinh(40.0 * scale)) / scale
    t = np.sort(np.hstack([fall + near, np.tile(_EVEN, (len(b), 1))]), axis=1)
    value = weight * log_expit(b[:, None] - scale * t) - 0.5 * np.square(t)
    value -= value.max(axis=1, keepdims=True)
    rise = np.maximum(np.abs(np.diff(value)), 1e-9)
    mass = np.exp(np.maximum(value[:, 1:], value[:, :-1])) * (-np.expm1(-rise) / rise)
    mass *= np.diff(t)
    below, above = np.cumsum(mass, axis=1), np.cumsum(mass[:, ::-1], axis=1)[:, ::-1]
    below, above = below[:, :-1] / below[:, -1:], above[:, 1:] / above[:, :1]
    with np.errstate(divide="ignore"):
        x = ndtri_exp(np.log(np.minimum(below, above)))
    x = np.where(below < above, x, -x)
    return np.stack([np.interp(_KNOTS, *row) for row in zip(x, t[:, 1:-1], strict=True)])


class OwnClassLargest(Map):
    """Differences in sds, ``t (C, K - 1)``, from nearly independent normal coordinates.

    The log likelihood of the row counts as part of the Jacobian.

    Parameters
    ----------
    level : ndarray of shape (K - 1,)
        Differences u at t = 0.
    root : ndarray of shape (K - 1, K - 1)
        Lower triangular: ``u = level + root t``.
    weight : float
        Weight of the row.
    tables : list of LogisticQuantiles
        One for each difference.
    shift : ndarray of shape (K - 1,)
        Means of the normal quantiles, which are 0 in the coordinates.
    spread : ndarray of shape (K - 1, K - 1)
        Root of their covariance, which is the identity in the coordinates.
    """

    def __init__(
        self,
        level: Array,
        root: Array,
        weight: float,
        tables: list[LogisticQuantiles],
        shift: Array,
        spread: Array,
    ) -> None:
        self._level, self._root, self._weight = level, root, weight
        self._tables, self._shift, self._spread = tables, shift, spread

    def expand(self, phi: Array) -> Expanded:
        """Differences in sds, the log Jacobian times the row's likelihood, and the chain rule."""
        s = matmul_rows(phi, self._spread.T) + self._shift
        places = Place.of(s.T)
        t, total = np.empty(phi.T.shape), np.zeros(len(phi))
        slopes, shares, found = np.empty_like(t), np.empty_like(t), []
        for j, table in enumerate(self._tables):
            known, before = self._known(t, j), total
            value, slope, bend = table(places.of_one(j), before - known)
            t[j], slopes[j] = value[0], slope[0]
            u = known + self._root[j, j] * t[j]
            total = np.logaddexp(before, u)
            shares[j] = np.exp(u - total)
            found.append((value[1], bend / slope[0], slope[1] / slope[0]))

        def pull_back(grad: Array, tau: float) -> Array:
            in_t, in_total = grad.T.copy(), -tau * self._weight
            in_s = np.empty_like(in_t)
            for j in reversed(range(len(in_t))):
                by_level, bend, slope_by_level = found[j]
                in_u = in_total * shares[j]
                in_t[j] += self._root[j, j] * in_u
                in_s[j] = slopes[j] * in_t[j] + tau * bend
                in_level = by_level * in_t[j] + tau * slope_by_level
                in_known = in_u - in_level
                in_total = in_total - in_known
                in_t[:j] += self._root[j, :j, None] * in_known
            return matmul_rows(np.ascontiguousarray(in_s.T), self._spread)

        density = np.add.reduce(np.log(slopes), axis=0) - self._weight * total
        return Expanded(t.T, density, pull_back)

    def inverse(self, theta: Array) -> Array:
        """Coordinates of differences in sds."""
        t, total, s = theta.T, np.zeros(len(theta)), np.empty_like(theta)
        for j, table in enumerate(self._tables):
            known = self._known(t, j)
            s[:, j] = table.inverse(t[j], total - known)
            total = np.logaddexp(total, known + self._root[j, j] * t[j])
        coordinates: Array = np.linalg.solve(self._spread, (s - self._shift).T).T
        return coordinates

    def _known(self, t: Array, j: int) -> Array:
        """Difference j, as far as the sds before it determine it."""
        known: Array = np.add.reduce(self._root[j, :j, None] * t[:j], axis=0) + self._level[j]
        return known


def own_class_largest(level: Array, root: Array, weight: float) -> OwnClassLargest | None:
    """Coordinates for a row's differences; None if its log density in them is not nearly normal."""
    half = probe_generator().standard_normal((_DRAWS, len(level)))
    normals = np.concatenate([half, -half])
    normals = np.linalg.solve(np.linalg.cholesky(np.cov(normals.T, bias=True)), normals.T).T
    tables: list[LogisticQuantiles] = []
    t, total = np.empty(normals.T.shape), np.zeros(len(normals))
    for j, own in enumerate(root):
        known = level[j] + own[:j] @ t[:j]
        b = total - known
        tables.append(LogisticQuantiles(own[j], weight, b.min() - 1.0, b.max() + 1.0))
        t[j] = tables[j](Place.of(_WIDER * normals[:, j]), b)[0][0]
        total = np.logaddexp(total, known + own[j] * t[j])
    if not all(table.increases for table in tables):
        return None
    shift, spread = np.zeros(len(level)), np.eye(len(level))
    for _ in range(2):
        found = OwnClassLargest(level, root, weight, tables, shift, spread)
        at = found.expand(normals)
        value = at.log_jacobian + 0.5 * (np.square(normals) - np.square(at.theta)).sum(axis=1)
        weights = np.exp(value - value.max())
        weights /= weights.sum()
        shift = shift + spread @ (weights @ normals)
        off = normals - weights @ normals
        spread = spread @ np.linalg.cholesky((weights * off.T) @ off)
    share = 1.0 / (len(weights) * np.square(weights).sum())
    if share < _LEAST_SHARE:
        return None
    return OwnClassLargest(level, root, weight, tables, shift, spread)
