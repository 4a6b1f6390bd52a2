"""Log densities of rows under every draw, as polynomials in the predictor and own parameters.

The draws of a row's predictor lie in a short interval, and so do those of each own parameter. On
their product the log density of the row is nearly a polynomial, which its values at Chebyshev nodes
determine. Special functions are then computed at a few nodes rather than under every draw: the log
likelihood of a beta-binomial model takes a thirtieth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import product

import numpy as np
from numpy.polynomial.chebyshev import cheb2poly, chebvander

from skbayes_sgld._typing import Array

_SIZES = (5, 7, 9, 12)  # numbers of nodes of a coordinate, tried in turn
_NODES = 0.1  # nodes for each draw; with more, values under every draw cost less
_ERROR = 2e-6  # largest estimated error, relative to sizes of values beyond 1; true ones are 1e-5


class Interpolation:
    """Interpolation of functions of a row's predictor and of own parameters at their draws.

    Parameters
    ----------
    own : ndarray of shape (S, m)
        Own coordinates under every draw.
    """

    def __init__(self, own: Array) -> None:
        most = _NODES * len(own)
        self._sizes = [size for size in _SIZES if size ** (1 + own.shape[1]) <= most]
        self._of_size = cache(partial(_Polynomials, own))  # most rows need the first alone

    def __call__(
        self, center: Array, away: Array, function: Callable[[Array, Array], Array]
    ) -> Array:
        """Values ``(n, S)`` of the function; nan in rows whose values are no such polynomials.

        Parameters
        ----------
        center : ndarray of shape (n,)
        away : ndarray of shape (n, S)
            Distances of the predictors under every draw from the centers.
        function : callable
            Function from local parameters ``(r, 1 + m, J)`` of the rows at some positions ``(r,)``
            to values ``(r, J)``.
        """
        middle, half = _interval(away)
        x = np.subtract(away, middle[:, None], dtype=float)
        x *= _inverse(half)[:, None]
        middle, left = center + middle, np.arange(len(x))
        values = np.empty_like(x)
        for size in self._sizes if len(x) else ():
            polynomials = self._of_size(size)
            powers, enough = polynomials.fit(middle[left], half[left], left, function)
            if enough.all() and len(left) == len(x):
                return polynomials.values(powers, x)
            values[left[enough]] = polynomials.values(powers[enough], x[left[enough]])
            left = left[~enough]
            if not len(left):
                break
        values[left] = np.nan
        return values


class _Polynomials:
    """Products of Chebyshev polynomials whose total degree is below a size.

    Parameters
    ----------
    own : ndarray of shape (S, m)
    size : int
        Number of nodes of each coordinate.
    """

    def __init__(self, own: Array, size: int) -> None:
        degree, m = np.arange(size), own.shape[1]
        middle, half = _interval(own.T)
        angle = np.pi * (degree + 0.5) / size
        self._x, self._transform = np.cos(angle), np.cos(np.outer(degree, angle)) * (2.0 / size)
        self._transform[0] *= 0.5
        grid = np.array(list(product(self._x, repeat=m))).reshape(size**m, m)
        self._own_nodes = middle + half * grid
        own_transform, at_draws = np.ones((1, 1)), np.ones((1, len(own)))
        for each in ((own - middle) * _inverse(half)).T:
            own_transform = np.kron(own_transform, self._transform)
            of_this = chebvander(each, size - 1).T
            at_draws = (at_draws[:, None] * of_this).reshape(-1, len(own))
        own_degree = np.array([sum(each) for each in product(degree, repeat=m)], dtype=int)
        order = np.argsort(own_degree, kind="stable")
        self._own_transform = own_transform[order].T
        self._total = degree[:, None] + own_degree[order]
        self._counts = (self._total < size).sum(axis=1)
        self._at_draws = np.ascontiguousarray(at_draws[order[: self._counts[0]]])
        self._to_powers = _to_powers(size)

    def fit(
        self,
        middle: Array,
        half: Array,
        rows: Array,
        function: Callable[[Array, Array], Array],
    ) -> tuple[Array, Array]:
        """Coefficients ``(r, size, J)`` of powers of a predictor, and whether they suffice."""
        n, size, m = len(rows), len(self._x), self._own_nodes.shape[1]
        u = np.empty((n, 1 + m, size, len(self._own_nodes)))
        u[:, 0] = (middle[:, None] + half[:, None] * self._x)[..., None]
        u[:, 1:] = self._own_nodes.T[:, None]
        at_nodes = function(u.reshape(n, 1 + m, -1), rows).reshape(n, size, -1)
        with np.errstate(invalid="ignore"):  # of infinite values; they are never enough
            found = self._transform @ at_nodes @ self._own_transform
            # coefficients fall by a rate; of two neighbours one may be 0 by chance
            absolute = np.abs(found)
            by_degree = [absolute[:, self._total == d].sum(axis=1) for d in range(size - 3, size)]
            first, second, last = by_degree
            before, after = np.maximum(first, second), np.maximum(second, last)
            rate = np.divide(after, before, where=before > 0.0, out=np.zeros(n))
            # of rounding errors the rate may be above 1
            beyond = np.maximum(rate * second, last) * rate / (1.0 - np.minimum(rate, 0.9))
            error = beyond + absolute[:, self._total >= size].sum(axis=1)
            least = 2.0 * absolute[:, 0, 0] - absolute.sum(axis=(1, 2))  # below all sizes of values
            enough = error <= _ERROR * np.maximum(1.0, least)
        kept = (self._total < size) & enough[:, None, None]
        return self._to_powers @ np.where(kept, found, 0.0), enough

    def values(self, powers: Array, x: Array) -> Array:
        """Values ``(r, S)`` of polynomials at the draws, whose standardised predictors are x."""
        value = powers[:, -1, :1] * x
        for degree in range(len(self._x) - 2, -1, -1):
            count = self._counts[degree]
            if count == 1:
                value += powers[:, degree, :1]
            else:
                value += powers[:, degree, :count] @ self._at_draws[:count]
            if degree:
                value *= x
        return value


@cache
def _to_powers(size: int) -> Array:
    """Matrix from coefficients of Chebyshev polynomials to those of powers."""
    matrix = np.zeros((size, size))
    for k in range(size):
        matrix[: k + 1, k] = cheb2poly(np.eye(size)[k])
    return matrix


def _interval(values: Array) -> tuple[Array, Array]:
    """Middle and half of the length ``(n,)`` of the interval of values ``(n, S)``."""
    low, high = values.min(axis=1).astype(float), values.max(axis=1).astype(float)
    return 0.5 * (low + high), 0.5 * (high - low)


def _inverse(half: Array) -> Array:
    """Inverses of half the lengths, which are 1 for length 0."""
    return np.divide(1.0, half, where=half > 0.0, out=np.ones_like(half))
