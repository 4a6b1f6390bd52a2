"""Means of smooth functions of one predictor and of own parameters, from a few nodes for each row.

The weights of a quadrature are made from the Chebyshev moments of the draws of a row's predictor.
Its mean ``E f(eta) = sum_j w_j f(eta_j)`` is exact for polynomials of lower degree than the number
of nodes, and nearly so for functions whose Chebyshev coefficients fall off. The last coefficients
of a function estimate the error; rows with a larger error are averaged over all draws. The
likelihood's own parameters have nodes too, the same for all rows; the moments are then those of
products of polynomials.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.base import Average

_ERROR = 1e-6  # of a mean, relative to the function's largest value: about that of single precision
# Nodes for each draw; with more, sums over all draws cost less: for 40 rows with t-distributed
# noise 7,125 nodes took 10 times as long as 4,000 draws, for 200 rows 1,920 nodes 1.1 times, for
# 600 rows 1,089 nodes half.
_NODES = 0.4
_MOST = 24  # largest degree; beyond it, sums over all draws cost less


def quadrature(
    center: Array,
    deviation: Array,
    share: Array,
    rate: Array,
    exact: Callable[[Array], Array],
    own: OwnNodes,
) -> Average:
    """Function that gives means over the draws of functions of one predictor, for several rows.

    Parameters
    ----------
    center : ndarray of shape (n,)
    deviation : ndarray of shape (n, S)
        Each draw's predictor minus the centre; overwritten.
    share : ndarray of shape (S,)
        Probabilities of the draws.
    rate : ndarray of shape (n,)
        How fast functions of the predictor change: like the normal distribution function of the
        predictor times the rate.
    exact : callable
        Function from positions of rows to their local parameters under all draws
        ``(len(rows), n_local, S)``.
    own : OwnNodes
        Nodes of the own parameters.

    Returns
    -------
    mean : callable
        From a function of local parameters ``(r, n_local, m)`` and of the rows' positions
        ``(r,)``, and from these positions, its means over the draws ``(r,)``.
    """
    low, high = deviation.min(axis=1).astype(float), deviation.max(axis=1).astype(float)
    middle, reach = 0.5 * (low + high), 0.5 * (high - low)
    deviation -= middle[:, None].astype(deviation.dtype)
    degree = _degree(float((reach * rate).max()))
    at, to_coefficients = _chebyshev(degree)
    n, J = len(center), len(own.nodes)
    if len(at) * J > _NODES * len(share):  # own parameters that vary much, and few rows
        every = exact(np.arange(n))
        return lambda function, rows: (
            function(every if len(rows) == n else every[rows], rows) @ share
        )
    weight = share[:, None] * own.values
    moments = _moments(deviation, np.where(reach > 0, reach, 1.0), weight, degree)
    eta = (center + middle)[:, None] + reach[:, None] * at
    nodes = np.empty((n, 1 + own.nodes.shape[1], len(at) * J))
    nodes[:, 0] = np.repeat(eta, J, axis=1)
    nodes[:, 1:] = np.tile(own.nodes.T, len(at))
    weights = np.swapaxes(moments @ own.to_coefficients, 1, 2) @ to_coefficients
    weights = np.swapaxes(weights, 1, 2).reshape(n, -1)
    both = np.kron(to_coefficients, own.to_coefficients)
    last = both[np.add.outer(np.arange(degree + 1) >= degree - 1, own.last).ravel()].T

    def mean(function: Callable[[Array, Array], Array], rows: Array) -> Array:
        part = slice(None) if len(rows) == n else rows
        at_nodes = function(nodes[part], rows)
        mean = (at_nodes * weights[part]).sum(axis=1)
        error = np.abs(at_nodes @ last).sum(axis=1)
        far = ~(error <= _ERROR * np.abs(at_nodes).max(axis=1))
        if far.any():
            mean[far] = function(exact(rows[far]), rows[far]) @ share
        return mean

    return mean


class OwnNodes:
    """Nodes of the likelihood's own parameters, on a grid between the least and largest draws.

    Parameters
    ----------
    own : ndarray of shape (S, m)
        Coordinates under every draw.

    Attributes
    ----------
    nodes : ndarray of shape (J, m)
    values : ndarray of shape (S, J)
        Products of Chebyshev polynomials at the draws.
    to_coefficients : ndarray of shape (J, J)
        Matrix from values at the nodes to coefficients of these products.
    last : ndarray of bool of shape (J,)
        Which products have a polynomial of one of the two largest degrees.
    """

    def __init__(self, own: Array) -> None:
        self.nodes: Array = np.zeros((1, 0))
        self.values: Array = np.ones((len(own), 1))
        self.to_coefficients: Array = np.ones((1, 1))
        self.last: Array = np.zeros(1, bool)
        for each in own.T:
            low, high = each.min(), each.max()
            middle, reach = 0.5 * (low + high), max(0.5 * (high - low), 1e-12)
            degree = _degree(reach)  # densities change at most as fast as these coordinates
            at, to_coefficients = _chebyshev(degree)
            n_nodes, J = len(self.nodes), len(at)
            column = np.tile(middle + reach * at, n_nodes)
            self.nodes = np.column_stack([np.repeat(self.nodes, J, axis=0), column])
            draw_basis = np.polynomial.chebyshev.chebvander((each - middle) / reach, degree)
            self.values = (self.values[:, :, None] * draw_basis[:, None]).reshape(len(own), -1)
            self.to_coefficients = np.kron(self.to_coefficients, to_coefficients)
            self.last = np.logical_or.outer(self.last, np.arange(J) >= J - 2).ravel()


def _chebyshev(degree: int) -> tuple[Array, Array]:
    """Nodes in (-1, 1), and the matrix from values there to Chebyshev coefficients."""
    angle = np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)
    orders = np.arange(degree + 1)
    values = np.cos(np.outer(orders, angle))  # values of the polynomials at the nodes
    return np.cos(angle), values * np.where(orders > 0, 2.0, 1.0)[:, None] / (degree + 1)


def _degree(extent: float) -> int:
    """Degree above which the Chebyshev coefficients of a normal distribution function are small.

    On ``[-extent, extent]`` they are below ``(extent / 2)^k / sqrt(k!)``, by Cramer's inequality.
    """
    for k in range(3, _MOST):
        if k * np.log(max(extent, 1e-300) / 2.0) - 0.5 * lgamma(k + 1) < np.log(0.1 * _ERROR):
            return k
    return _MOST


def _moments(deviation: Array, reach: Array, weight: Array, degree: int) -> Array:
    """Chebyshev moments ``(n, degree + 1, J)`` of the deviations over their reach.

    ``weight (S, J)`` are several weights of the draws.
    """
    moments = np.empty((len(deviation), degree + 1, weight.shape[1]))
    moments[:, 0] = weight.sum(axis=0)
    weight = weight.astype(deviation.dtype)
    deviation /= reach[:, None].astype(deviation.dtype)
    moments[:, 1] = deviation @ weight
    twice = deviation + deviation
    before, last, product = deviation, twice * deviation, np.empty_like(deviation)
    last -= 1
    for k in range(2, degree + 1):
        moments[:, k] = last @ weight
        np.multiply(twice, last, out=product)
        np.subtract(product, before, out=before)  # into memory that is not needed any more
        before, last = last, before
    return moments
