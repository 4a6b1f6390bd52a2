"""Inverse curvature of a posterior, without a matrix of parameters by parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.metric import Diagonal, LowRank, Metric

Array = NDArray[Any]


def structured_metric(posterior: BasePosterior, theta: Array) -> Metric:
    """Inverse curvature at ``theta (P,)``: a diagonal, and a term for each of a few rows.

    It is exact where the posterior can tell a diagonal and a factor of few rows, and the inverse
    of the curvature's diagonal elsewhere.
    """
    diagonal, factor = posterior.curvature_factor(theta)
    if factor is not None:
        return LowRank(diagonal, factor)
    return inverse_diagonal(diagonal)


def inverse_diagonal(diagonal: Array) -> Diagonal:
    """Inverse of a diagonal; where that is not positive, the median of the others stands in."""
    positive = diagonal > 0
    usual = np.median(diagonal[positive]) if positive.any() else 1.0
    return Diagonal(1.0 / np.where(positive, diagonal, usual))
