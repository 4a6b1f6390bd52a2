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
_ERROR = 5e-6  # largest estimated error, relative to sizes of values beyond 1; true ones are 5e-5
_SUM = 100.0  # largest sum of coefficients, relative likewise: rounding is 1e-7 of it
_AT_ONCE = 64  # rows whose polynomials are computed together


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

    @property
    def pays(self) -> bool:
        """Whether there are enough draws for any polynomials."""
        return bool(self._sizes)

    def __call__(
        self, center: Array, away: Array, function: Callable[[Array, Array], Array]
    ) -> Array:
        """Values ``(n, S)`` of the function, in the precision of the predictors.

        They are nan in rows where the function is no such polynomial.

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
        left, values = np.arange(len(away)), np.empty_like(away)
        for size in self._sizes if len(away) else ():
            polynomials = self._of_size(size)
            at = (center + middle)[left]
            powers, enough = polynomials.fit(at, half[left], left, function)
            done = left[enough]
            polynomials.write(powers[enough], away, middle, half, done, values)
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
        for each in ((own - middle) / _or_one(half)).T:
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
            total = absolute.sum(axis=(1, 2))
            size_of = np.maximum(1.0, 2.0 * absolute[:, 0, 0] - total)  # at most that of any value
            enough = (error <= _ERROR * size_of) & (total <= _SUM * size_of)
        kept = (self._total < size) & enough[:, None, None]
        return self._to_powers @ np.where(kept, found, 0.0), enough

    def write(
        self, powers: Array, away: Array, middle: Array, half: Array, rows: Array, values: Array
    ) -> None:
        """Write values of some rows at the draws, whose intervals have these middles and halves.

        Horner's rule takes some rows at once, so that its arrays stay in cache.
        """
        dtype, last = away.dtype, len(self._x) - 1
        at_draws, powers = self._at_draws.astype(dtype, copy=False), powers.astype(dtype)
        middle, scale = middle.astype(dtype), (1.0 / _or_one(half)).astype(dtype)
        of_own: Array = np.empty((min(_AT_ONCE, len(rows)), away.shape[1]), dtype)
        for first in range(0, len(rows), _AT_ONCE):
            part = rows[first : first + _AT_ONCE]
            c, z, own = powers[first : first + _AT_ONCE], away[part], of_own[: len(part)]
            z -= middle[part, None]
            z *= scale[part, None]
            v = c[:, last, :1] * z
            for degree in range(last - 1, -1, -1):
                count = self._counts[degree]
                if count == 1:
                    v += c[:, degree, :1]
                else:
                    v += np.matmul(c[:, degree, :count], at_draws[:count], out=own)
                if degree:
                    v *= z
            values[part] = v


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


def _or_one(half: Array) -> Array:
    """Half the lengths of intervals, and 1 for those of length 0."""
    return np.where(half > 0.0, half, 1.0)
