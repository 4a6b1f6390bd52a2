"""Shares of observations in predictive intervals, from their probability integral transforms.

The transform of an observation is an interval, ``(below, most)``: the probabilities of a smaller
observation and of one at most as large. The two are equal where y is continuous.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def held(below: Array, most: Array, coverage: float) -> Array:
    """Whether the equal-tailed interval of ``coverage`` holds each observation ``(m,)``."""
    return (most >= 0.5 - 0.5 * coverage) & (below < 0.5 + 0.5 * coverage)


def thirds(mean: Array) -> list[Array]:
    """Positions of the rows in the lowest, middle and highest third of the predicted means."""
    return np.array_split(np.argsort(mean, kind="stable"), 3)


def pearson(y: Array, mean: Array, variance: Array) -> Array:
    """Squared distance of each observation from its mean, over its variance ``(m,)``."""
    return np.square(y - mean) / variance
