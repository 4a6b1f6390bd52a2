"""Maps from rows to their predictors under every draw.

Conventions
-----------
A :class:`Predictor` maps n rows to their K predictors under each of S draws, ``(K, n, S)``;
``share (S,)`` holds the probabilities of the draws. A method that is told ``n_rows``, the number
of rows to come, returns the function that maps them, block by block: what is worth computing
beforehand depends on that number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse import issparse

from skbayes_sgld._linalg import MAX_DENSE

Array = NDArray[Any]
Deviations = Callable[[slice | Array], tuple[Array, Array]]

_FEWEST_ROWS = 200  # with fewer, factoring the draws costs more than it saves
_FEWEST_DRAWS = 50  # likewise
_ROWS_PER_COLUMN = 8  # likewise
_LARGEST = 1e15  # largest number whose square single precision holds
_LEAST_ROOT = 1e-8  # of the largest: draws of less weight have no digits in the factor


class Predictor:
    """Map from rows to their predictors under every draw.

    Attributes
    ----------
    n_draws, n_predictors : int
    """

    n_draws: int
    n_predictors: int

    def __call__(self, X: Array) -> Array:
        """Predictors ``(K, n, S)`` of the rows ``X (n, d)``."""
        raise NotImplementedError

    def at_mean(self, share: Array) -> Predictor | None:
        """Predictor of the mean of the draws; None where the mean of parameters means nothing."""
        return None

    def rounded(self, share: Array, n_rows: int) -> Callable[[Array], Array]:
        """Function from rows to predictors, in single precision where that costs less."""
        return self

    def upward(self, share: Array, n_rows: int) -> Callable[[Array], tuple[Array, Array]]:
        """Function from rows to the signs of their first predictors, and these times the signs.

        A sign ``(n,)`` is that of the mean over the draws; the predictors ``(n, S)`` are in single
        precision where that costs less.
        """
        predictors_of = self.rounded(share, n_rows)

        def upward_of(X: Array) -> tuple[Array, Array]:
            eta = predictors_of(X)[0]
            sign = _sign(eta @ share.astype(eta.dtype))
            eta *= sign[:, None]
            return sign, eta

        return upward_of

    def moments(self, share: Array, n_rows: int) -> Callable[[Array], Array]:
        """Function from rows to mean and variance of the first predictor over draws ``(n, 2)``."""

        def moments_of(X: Array) -> Array:
            values = self(X)[0]
            mean = values @ share
            return np.column_stack([mean, np.square(values - mean[:, None]) @ share])

        return moments_of

    def deviations(self, share: Array, unit: float, n_rows: int) -> Callable[[Array], Deviations]:
        """Function from rows to a function from some of them to centres and deviations.

        The latter takes a slice or positions. The centre ``(n,)`` is the mean of the first
        predictor over the draws; the deviations ``(n, S)`` are each draw's predictor minus the
        centre, over ``unit``, in single precision where that holds them.
        """

        def deviations_of(X: Array) -> Deviations:
            def of_rows(rows: slice | Array) -> tuple[Array, Array]:
                values = self(X[rows])[0]
                mean = values @ share
                values -= mean[:, None]
                values /= unit
                return mean, _round(values)

            return of_rows

        return deviations_of


class LinearPredictor(Predictor):
    """Linear predictors under the draws ``coef (S, K, d)`` and ``intercept (S, K)``."""

    def __init__(self, coef: Array, intercept: Array) -> None:
        self.n_draws, self.n_predictors, self._width = coef.shape
        self._coef, self._intercept = coef, intercept

    def __call__(self, X: Array) -> Array:
        """Linear predictors ``(K, n, S)``."""
        slopes, levels = self._by_draw
        # a product of sparse rows is of one predictor
        eta = np.stack([X @ slope for slope in slopes]) if issparse(X) else X @ slopes
        eta += levels
        return eta

    def at_mean(self, share: Array) -> LinearPredictor:
        """Predictor of the means of coefficients and intercepts."""
        coef, intercept = (np.tensordot(share, each, 1) for each in (self._coef, self._intercept))
        return LinearPredictor(coef[None], intercept[None])

    @cached_property
    def _by_draw(self) -> tuple[Array, Array]:
        """Slopes ``(K, d, S)`` and levels ``(K, 1, S)``, contiguous along the draws."""
        slopes = np.ascontiguousarray(self._coef.transpose(1, 2, 0))
        return slopes, np.ascontiguousarray(self._intercept.T)[:, None]

    def rounded(self, share: Array, n_rows: int) -> Callable[[Array], Array]:
        """Function from many rows to predictors in single precision, where that holds them."""
        if not self._is_factored(n_rows):
            return super().rounded(share, n_rows)
        factors = [self._factor(share, k) for k in range(self.n_predictors)]
        directions = [each.with_center() for each in factors]

        def values_of(X: Array) -> Array:
            parts = [each.rotate_with_center(X) for each in factors]
            if any(map(_is_large, parts)):
                return self(X)
            eta = np.empty((len(parts), X.shape[0], self.n_draws), dtype=np.float32)
            for part, direction, out in zip(parts, directions, eta, strict=True):
                np.matmul(part.astype(np.float32), direction, out=out)
            return eta

        return values_of

    def upward(self, share: Array, n_rows: int) -> Callable[[Array], tuple[Array, Array]]:
        """Function from rows to the signs of their first predictors, and these times the signs."""
        if not self._is_factored(n_rows):
            return super().upward(share, n_rows)
        factor = self._factor(share)
        directions = factor.with_center()

        def upward_of(X: Array) -> tuple[Array, Array]:
            part = factor.rotate_with_center(X)
            sign = _sign(part[:, -1])
            part *= sign[:, None]  # d + 2 numbers a row in place of S
            if _is_large(part):
                return sign, sign[:, None] * self(X)[0]
            return sign, part.astype(np.float32) @ directions

        return upward_of

    def moments(self, share: Array, n_rows: int) -> Callable[[Array], Array]:
        """Function from rows to mean and variance of the first predictor over draws ``(n, 2)``."""
        if not self._is_factored(n_rows):
            return super().moments(share, n_rows)
        factor = self._factor(share)

        def moments_of(X: Array) -> Array:
            return np.column_stack([factor.center(X), np.square(factor.rotate(X)).sum(axis=1)])

        return moments_of

    def deviations(self, share: Array, unit: float, n_rows: int) -> Callable[[Array], Deviations]:
        """Function from rows to a function from some of them to centres and deviations."""
        if not self._is_factored(n_rows):
            return super().deviations(share, unit, n_rows)
        factor = self._factor(share)
        single = factor.directions.astype(np.float32)

        def deviations_of(X: Array) -> Deviations:
            center = factor.center(X)
            rotated = factor.rotate(X) / unit  # before the cast: single precision ends at 1e38
            large = _is_large(rotated)
            directions = factor.directions if large else single
            rotated = rotated.astype(directions.dtype, copy=False)
            return lambda rows: (center[rows], rotated[rows] @ directions)

        return deviations_of

    def _is_factored(self, n_rows: int) -> bool:
        enough = n_rows >= max(_FEWEST_ROWS, _ROWS_PER_COLUMN * self._width)
        return enough and self._width <= MAX_DENSE and self.n_draws >= _FEWEST_DRAWS

    def _factor(self, share: Array, k: int = 0) -> _Factor:
        """The draws of predictor k, factored."""
        slope, level = share @ self._coef[:, k], share @ self._intercept[:, k]
        deviation = np.empty((self.n_draws, self._width + 1))
        np.subtract(self._coef[:, k], slope, out=deviation[:, :-1])
        np.subtract(self._intercept[:, k], level, out=deviation[:, -1])
        root = np.sqrt(share)
        deviation *= root[:, None]
        Q, R = linalg.qr(deviation, mode="economic", overwrite_a=True, check_finite=False)
        some = root > _LEAST_ROOT * root.max()
        inverse = np.divide(1.0, root, where=some, out=np.zeros_like(root))
        return _Factor(slope, level, R, Q.T * inverse)


class _Factor:
    """Mean of slope and level, and the draws' deviations from them as a product.

    The predictor of a row x, with a one appended, deviates by ``directions^T (R x)``. The
    directions are of order 1, so cancellation between columns of X, or between them and the
    intercept, happens in the d numbers of ``R x``, in double precision.
    """

    def __init__(self, slope: Array, level: Array, R: Array, directions: Array) -> None:
        self._rows, self.directions = np.vstack([R, np.append(slope, level)]), directions

    def center(self, X: Array) -> Array:
        """Mean of the predictor over the draws ``(n,)``."""
        return X @ self._rows[-1, :-1] + self._rows[-1, -1]

    def rotate(self, X: Array) -> Array:
        """``R x`` of each row ``(n, d + 1)``; its squares sum to the predictor's variance."""
        return X @ self._rows[:-1, :-1].T + self._rows[:-1, -1]

    def rotate_with_center(self, X: Array) -> Array:
        """``R x`` of each row, and last its centre, ``(n, d + 2)``."""
        return X @ self._rows[:, :-1].T + self._rows[:, -1]

    def with_center(self) -> Array:
        """What the predictors are the products of with :meth:`rotate_with_center`, ``(d + 2, S)``.

        In single precision.
        """
        ones = np.ones((1, self.directions.shape[1]))
        return np.vstack([self.directions, ones], dtype=np.float32)


def _round(values: Array) -> Array:
    return values if _is_large(values) else values.astype(np.float32)


def _sign(center: Array) -> Array:
    return np.where(center < 0, -1, 1).astype(center.dtype)


def _is_large(values: Array) -> bool:
    return bool(values.size) and not max(values.max(), -values.min()) < _LARGEST
