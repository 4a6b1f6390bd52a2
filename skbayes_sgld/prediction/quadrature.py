"""Means of smooth functions of one predictor, from a few nodes a row in place of all draws.

A quadrature has the Chebyshev moments of the draws of a row's predictor. Its mean
``E f(eta) = sum_j w_j f(eta_j)`` is exact for polynomials of lower degree than the number of nodes,
and nearly so for functions whose Chebyshev coefficients fall off. The last coefficients of a
function estimate the error; rows with a larger error are averaged over all draws.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Function = Callable[[Array], Array]

_ERROR = 1e-6  # of a mean, relative to the function's largest value: single precision has no more
_MOST = 24  # largest degree; beyond it, all draws cost less


class Quadrature:
    """Means over the draws of functions of one predictor, for several rows.

    Parameters
    ----------
    center : ndarray of shape (n,)
    deviation : ndarray of shape (n, S)
        Each draw's predictor minus the centre; overwritten.
    share : ndarray of shape (S,)
        Probabilities of the draws.
    rate : ndarray of shape (n,)
        How fast functions of the predictor change: as the normal distribution function of the
        predictor times the rate.
    exact : callable
        Function from positions of rows to their predictors under all draws ``(len(rows), S)``.
    """

    def __init__(
        self,
        center: Array,
        deviation: Array,
        share: Array,
        rate: Array,
        exact: Callable[[Array], Array],
    ) -> None:
        reach = np.maximum(deviation.max(axis=1), -deviation.min(axis=1)).astype(float)
        degree = _degree(float((reach * rate).max()))
        angle = np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)
        orders = np.arange(degree + 1)
        values = np.cos(np.outer(orders, angle))  # of the polynomials at the nodes
        to_coefficients = values * np.where(orders > 0, 2.0, 1.0)[:, None] / (degree + 1)
        moments = _moments(deviation, np.where(reach > 0, reach, 1.0), share, degree)
        self.nodes = center[:, None] + reach[:, None] * values[1]
        self.weights = moments @ to_coefficients
        self._last = to_coefficients[-2:].T
        self._share, self._exact = share, exact

    def mean(self, function: Callable[[Array, Array], Array], rows: Array) -> Array:
        """Means ``(len(rows),)`` of a function of predictors ``(r, m)`` and positions ``(r,)``."""
        whole = len(rows) == len(self.nodes)
        nodes, weights = (each if whole else each[rows] for each in (self.nodes, self.weights))
        at_nodes = function(nodes, rows)
        mean = (at_nodes * weights).sum(axis=1)
        error = np.abs(at_nodes @ self._last).sum(axis=1)
        far = ~(error <= _ERROR * np.abs(at_nodes).max(axis=1))
        if far.any():
            mean[far] = function(self._exact(rows[far]), rows[far]) @ self._share
        return mean


def _degree(extent: float) -> int:
    """Degree above which the Chebyshev coefficients of a normal distribution function are small.

    On ``[-extent, extent]`` they are below ``(extent / 2)^k / sqrt(k!)``, by Cramer's inequality.
    """
    for k in range(3, _MOST):
        if k * np.log(max(extent, 1e-300) / 2.0) - 0.5 * lgamma(k + 1) < np.log(0.1 * _ERROR):
            return k
    return _MOST


def _moments(deviation: Array, reach: Array, share: Array, degree: int) -> Array:
    """Chebyshev moments ``(n, degree + 1)`` of the deviations over their reach."""
    weight = share.astype(deviation.dtype)
    deviation /= reach[:, None].astype(deviation.dtype)
    moments = np.ones((len(deviation), degree + 1))
    moments[:, 1] = deviation @ weight
    twice = deviation + deviation
    before, last, product = deviation, twice * deviation, np.empty_like(deviation)
    last -= 1
    for k in range(2, degree + 1):
        moments[:, k] = last @ weight
        np.multiply(twice, last, out=product)
        np.subtract(product, before, out=before)  # its polynomial is used up
        before, last = last, before
    return moments
