"""Coordinates in which the log noise variance has mean 0 and sd 1, or is nearly standard normal.

With many rows its posterior is nearly normal, and a linear map is enough. With few rows under a
wide prior it is broad, and falls off like ``exp(-exp(-gamma))`` towards small noise: no step size
suits both its bulk and this wall, at which chains stand still. The coordinate is then the normal
quantile of its distribution function.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.interpolate import CubicSpline, PchipInterpolator, PPoly
from scipy.special import ndtri_exp

from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.parameterizations.base import Affine, Expanded, Map
from skbayes_sgld.posterior.propriety import ImproperPosteriorError

Density = Callable[[Array], Array]

# grid of gamma about its level; double precision allows no lower values
_GRID = np.linspace(-20.0, 20.0, 400)
_HIGHEST = 600.0  # gamma beyond which noise variances, or their squares, overflow


class NormalQuantiles(Map):
    """Gamma as its quantile at the standard normal probability of x.

    A cubic spline interpolates the quantiles, with straight lines beyond 6 sds. Its errors do not
    matter, since the density uses the spline's derivative.

    Parameters
    ----------
    spline : CubicSpline
        Increasing, at equidistant knots, with second derivatives of 0 at the ends.
    """

    def __init__(self, spline: CubicSpline) -> None:
        ends = spline.x[[0, -1]]
        # straight pieces beyond both ends
        straight = np.stack([np.zeros(2), np.zeros(2), spline(ends, 1), spline(ends)])
        straight[3, 0] -= straight[2, 0]
        pieces = np.hstack([straight[:, :1], spline.c, straight[:, 1:]])
        self.knots, orders = spline.x, [pieces]
        for _ in range(3):  # highest powers first
            powers = np.array([[0.0], [3.0], [2.0], [1.0]])
            orders.append(powers * np.vstack([np.zeros_like(pieces[:1]), orders[-1][:-1]]))
        breaks = np.r_[ends[0] - 1.0, spline.x, ends[1] + 1.0]
        self.pieces = PPoly(np.stack(orders, axis=-1), breaks)

    def derivatives(self, x: Array) -> Array:
        """Value at x and its first three derivatives ``(4, ...)``."""
        return np.moveaxis(self.pieces(x), -1, 0)

    def expand(self, phi: Array) -> Expanded:
        """Log noise variance ``(C, 1)`` at ``phi (C, 1)``, the log Jacobian and the chain rule."""
        gamma, slope, bend, _ = self.derivatives(phi)

        def pull_back(grad: Array, tau: float) -> Array:
            return slope * grad + tau * bend / slope

        return Expanded(gamma, np.log(slope[:, 0]), pull_back)

    def inverse(self, theta: Array) -> Array:
        """Coordinate of the log noise variance, by Newton steps from the knots."""
        x = np.interp(theta, self.derivatives(self.knots)[0], self.knots)
        for _ in range(20):
            at = self.expand(x)
            x = x - (at.theta - theta) / np.exp(at.log_jacobian)[:, None]
        return x


def straight_line(
    log_density: Density, around: float, total_weight: float, temperature: float
) -> Affine:
    """Mean and sd of gamma at temperature 1, from a log density on a grid about a value.

    Raises
    ------
    ImproperPosteriorError
        If the density does not fall towards large gamma.
    """
    grid, peak = _GRID + around, around
    while True:
        with np.errstate(all="ignore"):
            value = log_density(grid)
        weight = np.exp((value - np.nanmax(value)) / temperature)
        weight = np.where(np.isfinite(weight), weight, 0.0)
        if weight[-1] > 1e-6:  # at the upper end the density has not fallen far below the peak
            before, peak = peak, float(grid[np.nanargmax(value)])
            if before < peak < _HIGHEST:  # such as under a prior of noise far above that of y
                grid = _GRID + peak
                continue
            hot = f"at temperature={temperature:g} " * (temperature != 1.0)
            remedy = "lower the temperature" if hot else "check sample_weight, which may be small"
            raise ImproperPosteriorError(
                f"{hot}the posterior of the noise variance has no upper end: it is improper, "
                f"or nearly. The rows count as {total_weight:g} in all; {remedy}, "
                "or give the noise a prior with more weight, such as noise_prior='half_normal'."
            )
        weight /= weight.sum()
        mean = float(weight @ grid)
        sd = float(np.sqrt(weight @ np.square(grid - mean)))
        step = grid[1] - grid[0]
        if sd > 4 * step:
            return Affine(np.array([mean]), np.array([[sd / np.sqrt(temperature)]]))
        # too narrow for this grid: refine it
        grid = mean + 0.5 * (sd + step) * _GRID


def normal_quantiles(
    log_density: Density, line: Affine, temperature: float
) -> NormalQuantiles | Affine:
    """Quantiles of gamma at a temperature; the line if the grid does not determine them.

    The log density is interpolated linearly between the grid points, and integrated exactly: a sum
    of heights would be far off if it falls by many nats between points.
    """
    heat = np.sqrt(temperature)
    grid = _GRID + line.level[0]
    with np.errstate(all="ignore"):
        value = log_density(grid) / temperature
        high = grid[value > np.nanmax(value) - 60.0]  # within 60 nats of the peak
        grid = np.linspace(high[0], high[-1], 2000)
        value = log_density(grid) / temperature
    value -= np.nanmax(value)
    rise = np.maximum(np.abs(np.diff(value)), 1e-9)
    mass = np.maximum(value[1:], value[:-1]) + np.log(-np.expm1(-rise) / rise)
    below, above = np.logaddexp.accumulate(mass), np.logaddexp.accumulate(mass[::-1])[::-1]
    below, above = below[:-1] - below[-1], above[1:] - above[0]
    x = np.where(below < above, ndtri_exp(below), -ndtri_exp(above))
    last = min(6.0, -x[0], x[-1])  # beyond, the map is linear
    if not (np.all(np.diff(x) > 0) and last > 3.0):
        return line
    interpolant = PchipInterpolator(x, grid[1:-1])
    # the spline of quantiles may turn beside a second peak, which may be too low to matter
    for end in (last, min(last, 4.0)):
        knots = np.linspace(-end, end, 121)
        spline = CubicSpline(heat * knots, interpolant(knots), bc_type="natural")
        if np.all(spline(heat * np.linspace(-end, end, 2000), 1) > 0):
            return NormalQuantiles(spline)
    return line


def cubic(powers: Array, x: Array) -> tuple[Array, Array, Array]:
    """Cubic polynomials and their first two derivatives; ``powers[0]`` is of the third power."""
    first = powers[0] * x
    value = first + powers[1]
    slope = first + value
    bend = 2.0 * (first + slope)
    value = value * x + powers[2]
    slope = slope * x + value
    return value * x + powers[3], slope, bend
