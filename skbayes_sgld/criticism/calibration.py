"""Shares of observations in predictive intervals, from their probability integral transforms.

The transform of an observation is an interval, ``(below, most)``: the probabilities of a smaller
observation and of one at most as large. The two are equal where y is continuous.
"""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc

Array = NDArray[Any]


def share_inside(below: Array, most: Array, coverage: float) -> Array:
    """Share ``(m,)`` of each observation's transform in the central interval of ``coverage``.

    0 or 1 where y is continuous. The mean of a count's shares is ``coverage`` under the true model,
    whereas an interval whose ends are whole counts holds more than it says.
    """
    low, high = 0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage
    width = most - below
    part = np.minimum(most, high) - np.maximum(below, low)
    whole = (low <= most) & (most <= high)
    return np.where(width > 0, np.clip(part, 0.0, None) / np.where(width > 0, width, 1.0), whole)


def binomial_p_value(total: float, n: int, p: float) -> float:
    """P-value of ``total`` of n rows inside, if each row is with probability p.

    Twice the probability of a number at least as far out. Fractions of a row, as the shares of
    counts have, make the spread smaller, and are rounded to the side of no departure.
    """
    least = floor(total)
    above = float(bdtrc(least - 1, n, p)) if least > 0 else 1.0
    return min(1.0, 2.0 * min(float(bdtr(ceil(total), n, p)), above))


def by_mean(mean: Array, n_groups: int = 3) -> list[Array]:
    """Positions of the rows in groups of equal size, by increasing predicted mean."""
    return np.array_split(np.argsort(mean, kind="stable"), n_groups)


def pearson(y: Array, mean: Array, variance: Array) -> Array:
    """Squared distance of each observation from its mean, over its variance ``(m,)``."""
    return np.square(y - mean) / variance
