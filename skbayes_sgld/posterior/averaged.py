"""Rows whose score and curvature are averaged over a nearly normal posterior.

Over a normal distribution of theta the predictor of a row is normal too. The average of its score
``s`` and of its curvature ``W`` is therefore an integral in one dimension. Expansions with averages
are the best quadratic approximation of a log likelihood over the posterior, rather than at a point
(Opper & Archambeau 2009, eq. 8): the normal distribution that they lead to has the posterior's
mean and covariance, up to the square of its skewness.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.row_sum import RowSum

_USUAL = 7  # nodes of an average
_quadrature = cache(hermegauss)


class AveragedRows(NamedTuple):
    """Averages over normal predictors of mean u, ``(n,)`` each.

    Attributes
    ----------
    u : ndarray
        Mean of each row's predictor.
    variance : ndarray
        Its variance.
    score : ndarray
        Mean score.
    curvature : ndarray
        Mean curvature.
    third : ndarray
        Mean third derivative of the log likelihood.
    """

    u: Array
    variance: Array
    score: Array
    curvature: Array
    third: Array

    @property
    def expansion(self) -> tuple[Array, Array]:
        """Expansion ``a - W u`` of each score: a and W, ``(n,)`` each."""
        return self.score + self.curvature * self.u, self.curvature


def predictor_variances(rows: RowSum, moves: Array) -> Array:
    """Variance ``(n,)`` of each row's predictor, if the covariance of theta is ``moves^T moves``.

    The rows have one predictor each.
    """
    return rows.variances(moves)[0].astype(rows.design.dtype)


def averaged_rows(
    rows: RowSum, theta: Array, variance: Array, n_nodes: int = _USUAL
) -> AveragedRows:
    """Averages of rows with one predictor each, for predictors of a known variance.

    Parameters
    ----------
    rows : RowSum
    theta : ndarray of shape (P,)
        Mean of the distribution.
    variance : ndarray of shape (n,)
        Variance of each predictor.
    n_nodes : int
        Nodes of the averages. If all variances are small, three are enough.
    """
    u = rows.predictors(theta[None])[0, 0]
    score, curvature, third = np.zeros((3, len(u)), u.dtype)
    for node, weight, at in _nodes(u, variance, n_nodes):
        at_node, curved = _derivatives(rows, at)
        score += weight * at_node
        curvature += weight * curved
        third -= weight * node * curved
    # the mean of a derivative, by parts
    third /= np.sqrt(np.maximum(variance, np.finfo(u.dtype).tiny))
    return AveragedRows(u, variance, score, curvature, third)


def squared_rests(
    rows: RowSum, theta: Array, variance: Array, expansion: tuple[Array, ...]
) -> Array:
    """Mean square ``(n,)`` of each row's score minus its ``expansion``, as in averaged_rows."""
    u = rows.predictors(theta[None])[0, 0]
    square, (at_zero, slope) = np.zeros_like(u), expansion
    for _, weight, at in _nodes(u, variance, _USUAL):
        rest = slope * at - at_zero
        rest += _derivatives(rows, at)[0]
        square += weight * np.square(rest)
    return square


def _nodes(u: Array, variance: Array, n_nodes: int) -> Iterator[tuple[float, float, Array]]:
    """Each node, its weight, and the predictors ``(n,)`` there."""
    sd = np.sqrt(variance)
    nodes, weights = _quadrature(n_nodes)
    for node, weight in zip(nodes.tolist(), (weights / weights.sum()).tolist(), strict=True):
        yield node, weight, u + node * sd


def _derivatives(rows: RowSum, u: Array) -> tuple[Array, Array]:
    """Score and curvature at predictors ``(n,)``, which may be overwritten."""
    with np.errstate(over="ignore"):
        score, curvature = rows.kernel.derivatives(u[None, None], 1, 2)
    return score[0, 0], curvature[0, 0, 0]
