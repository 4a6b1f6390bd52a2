"""Quantiles of mixtures, such as the predictive distribution of each row's observation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from skbayes_sgld._typing import Array

_BEND = 2.0  # relative change of a density over one sd: error of a Newton step


def solve_quantile(
    cdf: Callable[[Array, Array], Array],
    q: float,
    mean: Array,
    sd: Array,
    whole: bool = False,
    start: tuple[Array, Array, Array] | None = None,
    bounded: bool = True,
) -> Array:
    """Solve ``cdf(t) = q`` for each row, by the secant method kept inside a bracket.

    Parameters
    ----------
    cdf : callable
        Function from points ``t (m,)`` and the positions of their rows ``(m,)`` to the
        probabilities ``(m,)`` of at most t.
    q : float
        Level of the quantile, in (0, 1).
    mean, sd : ndarray of shape (n,)
        Mean and standard deviation of each row's distribution.
    whole : bool, default=False
        Whether the distribution is one of counts; the quantile is then the smallest t with
        ``cdf(t) >= q``.
    start : tuple of three ndarrays of shape (n,), or None
        Starting points, the density there and its relative error. None: the quantile of a normal
        distribution.
    bounded : bool, default=True
        Whether ``mean`` and ``sd`` are moments, which bound the quantiles. If not, they are the
        starting points and first steps of a search, with doubling steps, for bounds.

    Returns
    -------
    quantile : ndarray of shape (n,)
        Accurate to 1e-5 sds, and exact for whole numbers. Not finite if the moments are not.
    """
    if bounded:  # Cantelli's inequality bounds the quantile's distance from the mean
        reach = np.sqrt(1 - q) / np.sqrt(q)
        low, high = mean - sd * reach, mean + sd / reach
    else:
        low, high = _enclose(cdf, q, mean, sd)
    t = mean + sd * ndtri(q)
    slope = np.exp(-0.5 * ndtri(q) ** 2) / np.sqrt(2 * np.pi) / np.where(sd > 0, sd, 1.0)
    doubt = np.ones(len(t))  # relative error of the slope
    if start is not None:
        usable = (start[0] > low) & (start[0] < high) & (start[1] > 0) & (start[2] < 1.0)
        normal = (t, slope, doubt)
        t, slope, doubt = (np.where(usable, *each) for each in zip(start, normal, strict=True))
    if whole:
        low, high = np.maximum(np.floor(low) - 1.0, -1.0), np.ceil(high)
        t = np.minimum(np.ceil(t), high - 1.0)
    # far out, a density may fall by any factor over one sd
    far_out = min(q, 1.0 - q) < 1e-3
    active, previous = np.flatnonzero(np.isfinite(t) & (high > low + whole)), None
    for number in range(200):
        if not len(active):
            break
        at = t[active]
        excess = cdf(at, active) - q
        high[active] = np.where(excess >= 0, at, high[active])
        low[active] = np.where(excess < 0 if whole else excess <= 0, at, low[active])
        if previous is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                secant = (excess - previous[1]) / (at - previous[0])
            usable = np.isfinite(secant) & (secant > 0)
            change = np.abs(secant / slope[active] - 1.0) + np.abs(at - previous[0]) / sd[active]
            doubt[active] = np.where(usable, np.minimum(_BEND * change, 1.0), doubt[active])
            slope[active] = np.where(usable, secant, slope[active])
        below, above = low[active], high[active]
        proposal, middle = at - excess / slope[active], 0.5 * (below + above)
        if whole:  # a few draws of huge means may give an sd far above the quantile
            least = np.maximum(below, 1.0)
            middle = np.where(above > 4.0 * least, np.sqrt(least) * np.sqrt(above), middle)
            proposal = np.where(above > 1e9 * least, middle, proposal)
        if number > 30:  # bisection
            proposal = middle
        if whole:
            proposal = np.clip(np.ceil(proposal), below + 1.0, np.maximum(above, below + 2.0) - 1.0)
            far = above - below > np.maximum(1.0, 1e-15 * above)
        else:
            proposal = np.where((proposal > below) & (proposal < above), proposal, middle)
            step = np.abs(proposal - at) / sd[active]
            error = step if far_out else step * (doubt[active] + _BEND * step)
            # if nearly all mass is within a few sds, secants across it are not slopes
            reached = np.abs(excess) < 0.01 * min(q, 1.0 - q)
            far = np.where(reached, error > 1e-5, above - below > 1e-12 * sd[active])
        t[active] = proposal
        active, previous = active[far], (at[far], excess[far])
    return np.where(np.isfinite(t), high, t) + 0.0 if whole else t  # no -0.0


def _enclose(
    cdf: Callable[[Array, Array], Array], q: float, start: Array, unit: Array
) -> tuple[Array, Array]:
    """Points below and above each quantile, found from ``start`` by doubling steps of ``unit``."""
    ends = []
    for sign in (-1.0, 1.0):
        end, step, rows = start + sign * unit, unit.copy(), np.arange(len(start))
        while len(rows):
            rows = rows[sign * (cdf(end[rows], rows) - q) < 0]
            step[rows] *= 2.0
            end[rows] += sign * step[rows]
        ends.append(end)
    return ends[0], ends[1]
