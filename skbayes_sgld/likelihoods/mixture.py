"""Mixtures of one row's observation over draws or nodes, and their quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from skbayes_sgld._typing import Array

_BEND = 2.0  # relative change of the slope over one unit: error of a secant step
_SMALLEST = np.finfo(float).tiny
_EACH = 16  # every so many draws are a mixture whose quantiles are near those of all
_FEWEST = 50  # draws of such a mixture
_DOUBT = 0.1  # relative error of the slope at its quantiles


def log_normal(z: float) -> float:
    """Log density of a standard normal variable."""
    return float(-0.5 * (z * z + np.log(2.0 * np.pi)))


class Mixture:
    """Distributions of several rows' observations, each a mixture over m components.

    Attributes
    ----------
    u : ndarray of shape (n, n_local, m)
        Local parameters of every component.
    weights : ndarray of shape (m,)
        Probabilities of the components.
    origin, unit : ndarray of shape (n,) or float
        Local parameters are those of an observation minus its row's origin, over its unit.
    error : ndarray of shape (n,) or float
        Largest estimated error of each row's means, in units of the scale: 0 over the draws.
    scale : float
    last : ndarray or float
        Largest coefficient, in the last mean, of a polynomial of the last degree.
    estimates : bool
        Whether errors of the next means are estimated.
    """

    estimates = True

    error: Array | float = 0.0
    last: Array | float = 0.0
    scale = 1.0

    def __init__(
        self, u: Array, weights: Array, origin: Array | float = 0.0, unit: Array | float = 1.0
    ) -> None:
        self.u, self.weights, self.origin, self.unit = u, weights, origin, unit

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.u)

    def mean(self, function: Callable[[Array, Array], Array], rows: Array) -> Array:
        """Means ``(r,)`` over the components of a function, for the rows at some positions.

        The function takes local parameters ``(r, n_local, m)`` and the positions ``(r,)``, and
        returns ``(r, m)``.
        """
        u = self.u if len(rows) == len(self.u) else self.u[rows]
        return self.average(function(u, rows), rows)

    def average(self, values: Array, rows: Array | slice) -> Array:
        """Means ``(r,)`` over the components of values ``(r, m)`` of some of the rows."""
        means: Array = values @ self.weights
        return means

    def some(self, rows: Array) -> Mixture:
        """Mixtures of some of the rows."""
        return Mixture(self.u[rows], self.weights)

    def settle(self, error: Array | float, margin: Array) -> None:
        """Count the errors of means, unless they are far below the margin of a whole number."""

    def add_errors(self, rows: Array, some: Mixture) -> None:
        """Add the errors of mixtures of some of the rows to those of these rows."""

    def log_mean(self, function: Callable[[Array, Array], Array]) -> Array:
        """Logs ``(n,)`` of the means of exponentials of a function, as :meth:`mean` takes it."""
        top = np.zeros(len(self))

        def exponential(u: Array, rows: Array) -> Array:
            values = function(u, rows)
            largest = values.max(axis=1)
            top[rows] = np.where(largest > -np.inf, largest, 0.0)
            values -= top[rows, None]
            return np.exp(values, out=values)

        mean = self.mean(exponential, np.arange(len(self)))
        # not where the function is still large, beside its mean, at the ends of the nodes
        sure = mean > 3.0 * self.last
        self.error = np.divide(self.error, mean, where=sure, out=np.full(len(self), np.inf))
        with np.errstate(divide="ignore"):
            return top + np.log(np.maximum(mean, 0.0))

    def center(self) -> Array:
        """Mean local parameters ``(n, n_local, 1)``."""
        return (self.u @ self.weights)[..., None]

    def cdf(self, of: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
        """Distribution function: from points ``(r,)`` of rows at some positions, ``(r,)``.

        ``of`` is that of a component, from local parameters and points ``(r, 1)``.
        """

        def cdf(t: Array, rows: Array) -> Array:
            at = np.empty(len(self), self.u.dtype)
            with np.errstate(over="ignore"):  # far out in single precision
                at[rows] = t
            return self.mean(lambda u, some: of(u, at[some, None]), rows)

        return cdf

    def thinned(self) -> Mixture | None:
        """Mixture over every sixteenth component; None of few."""
        weights = self.weights[::_EACH]
        if len(weights) < _FEWEST or not weights.sum() > 0.0:
            return None
        return Mixture(self.u[..., ::_EACH], weights / weights.sum())

    def quantile(
        self,
        of: Callable[[Array, Array], Array],
        q: float,
        start: Array,
        unit: Array,
        whole: bool = False,
    ) -> Array:
        """Quantiles ``(n,)``, for the distribution function of a component as :meth:`cdf` takes it.

        They are searched from those of a thinned mixture, which are within a Monte Carlo error.
        The other arguments are those of :func:`solve_quantile`.
        """
        doubt = None
        few = self.thinned()
        if few is not None:
            near, slope, _ = solve_quantile(few.cdf(of), q, start, unit, whole)
            usable = np.isfinite(near) & np.isfinite(slope) & (slope > 0)
            start, unit = np.where(usable, near, start), np.where(usable, 1.0 / slope, unit)
            doubt = np.where(usable, _DOUBT, 1.0)
        return solve_quantile(self.cdf(of), q, start, unit, whole, doubt).quantile


class Solution(NamedTuple):
    """Quantiles as :func:`solve_quantile` finds them, each of shape (n,).

    Attributes
    ----------
    quantile : ndarray
    slope : ndarray
        Last slope of the normal score.
    margin : ndarray
        Least distance of the level from the probabilities at the ends of the bracket.
    """

    quantile: Array
    slope: Array
    margin: Array


def solve_quantile(
    cdf: Callable[[Array, Array], Array],
    q: float,
    start: Array,
    unit: Array,
    whole: bool = False,
    doubt: Array | None = None,
) -> Solution:
    """Solve ``cdf(t) = q`` for each row, by the secant method for the normal score of the cdf.

    The normal score, the normal quantile of ``cdf(t)``, is nearly linear in t. A bracket is kept
    as soon as there are points on both sides; until then steps are at most 2, 4, 16, 256 ... units.

    Parameters
    ----------
    cdf : callable
        Function from points ``t (m,)`` and the positions of their rows ``(m,)`` to the
        probabilities ``(m,)`` of at most t.
    q : float
        Level of the quantile, in (0, 1).
    start : ndarray of shape (n,)
        Where the search begins.
    unit : ndarray of shape (n,)
        Inverse slope of the normal score near the quantile: of a normal distribution its sd.
    whole : bool, default=False
        Whether the distribution is one of counts; the quantile is then the smallest t with
        ``cdf(t) >= q``.
    doubt : ndarray of shape (n,) or None, default=None
        Relative error of the unit; None: 1.

    Returns
    -------
    solution : Solution
        Quantiles accurate to 1e-5 units, and exact for whole numbers. Not finite if start or unit
        are not.
    """
    level, n = ndtri(q), len(start)
    unit = unit.astype(float)  # bounds of steps grow beyond the range of single precision
    over, under = np.full(n, 1.0 - q), np.full(n, q)  # distances of the level from the ends'
    low, high = np.full(n, -1.0 if whole else -np.inf), np.full(n, np.inf)
    t = np.maximum(np.ceil(start), 0.0) if whole else start.astype(float)
    begin = t.copy()
    slope, most = np.divide(1.0, unit, where=unit > 0, out=np.full(n, np.inf)), 2.0 * unit
    if whole:
        most = np.maximum(most, 1.0)
    doubt = np.ones(n) if doubt is None else doubt.astype(float)
    # far out, a density may fall by any factor over one unit
    far_out = min(q, 1.0 - q) < 1e-3
    factor = np.sqrt(2.0)  # by which the bound of the steps grows
    active, previous = np.flatnonzero(np.isfinite(t) & np.isfinite(unit)), None
    for number in range(200):
        if not len(active):
            break
        at, each = t[active], unit[active]
        p = cdf(at, active)
        excess = p - q
        score = ndtri(np.clip(p, _SMALLEST, 1.0 - 1e-16)) - level
        saturated = (p < 1e-15) | (p > 1.0 - 1e-15)  # its score says nothing
        over[active] = np.where(excess >= 0, excess, over[active])
        under[active] = np.where(excess < 0, -excess, under[active])
        high[active] = np.where(excess >= 0, at, high[active])
        low[active] = np.where(excess < 0 if whole else excess <= 0, at, low[active])
        if previous is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                secant = (score - previous[1]) / (at - previous[0])
                change = np.abs(secant / slope[active] - 1.0) + np.abs(at - previous[0]) * secant
            usable = np.isfinite(secant) & (secant > 0) & ~saturated & ~previous[2]
            doubt[active] = np.where(usable, np.minimum(_BEND * change, 1.0), doubt[active])
            slope[active] = np.where(usable, secant, slope[active])
        below, above = low[active], high[active]
        with np.errstate(invalid="ignore", over="ignore"):
            proposal = at - score / slope[active]
            middle = _between(below, above, begin[active], each)
            # without a bracket steps are bounded, and the bounds grow
            bracketed, limit = np.isfinite(below) & np.isfinite(above), most[active]
            factor = min(factor * factor, 1e100)
            most[active] = np.where(bracketed, limit, np.minimum(limit * factor, 1e300))
            proposal = np.where(bracketed, proposal, np.clip(proposal, at - limit, at + limit))
            middle = np.where(bracketed, middle, at - np.copysign(limit, excess))
        halved = saturated & bracketed | (number > 8 and number % 2 == 0)
        proposal = np.where(halved, middle, proposal)
        if whole:
            proposal = np.clip(np.ceil(proposal), below + 1.0, np.maximum(above, below + 2.0) - 1.0)
            far = ~bracketed | (above - below > np.maximum(1.0, 1e-15 * above))
        else:
            halved |= ~((proposal >= below) & (proposal <= above))
            proposal = np.where(halved, middle, proposal)
            step = np.abs(proposal - at) / each
            with np.errstate(over="ignore"):
                bend = _BEND * step * np.maximum(each * slope[active], 1.0)
                error = step if far_out else step * (doubt[active] + bend)
            # if nearly all mass is within a few units, secants across it are not slopes
            reached = ~halved & (np.abs(excess) < 0.01 * min(q, 1.0 - q))
            far = np.where(reached, error > 3e-5, above - below > 1e-12 * each)
        t[active] = proposal
        active, previous = active[far], (at[far], score[far], saturated[far])
    found = np.where(np.isfinite(t), high, t) + 0.0 if whole else t  # no -0.0
    return Solution(found, slope, np.minimum(over, under))


def _between(below: Array, above: Array, begin: Array, unit: Array) -> Array:
    """Middle of each bracket; of its distances from where the search began, if they differ much."""
    to_low, to_high = np.abs(below - begin), np.abs(above - begin)
    near, far = np.maximum(np.minimum(to_low, to_high), unit), np.maximum(to_low, to_high)
    beside = ((below >= begin) | (above <= begin)) & (far > 4.0 * near)
    away = np.sqrt(near) * np.sqrt(far)
    return np.where(
        beside, begin + np.where(below >= begin, away, -away), 0.5 * below + 0.5 * above
    )
