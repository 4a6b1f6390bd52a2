"""Maps from rows to their predictors under every draw.

Conventions
-----------
A :class:`Predictor` maps n rows to their K predictors under each of S draws, ``(K, n, S)``;
``share (S,)`` holds the probabilities of the draws.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from skbayes_sgld._linalg import MAX_DENSE

Array = NDArray[Any]

_FEW = 200  # columns; beyond, the draws are factored only for more rows than columns
_LARGEST = 1e15  # largest deviation whose square single precision holds


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

    def moments(self, share: Array, n_rows: int) -> Callable[[Array], Array]:
        """Function from rows to mean and variance of the first predictor over draws ``(n, 2)``.

        ``n_rows`` is the total number of rows to come, which decides how it is computed.
        """

        def moments_of(X: Array) -> Array:
            values = self(X)[0]
            mean = values @ share
            return np.column_stack([mean, np.square(values - mean[:, None]) @ share])

        return moments_of

    def deviations(
        self, share: Array, unit: Array, n_rows: int
    ) -> Callable[[Array], tuple[Array, Array]]:
        """Function from rows to the centre and the deviations of their mixtures.

        The centre ``(n,)`` is the mean of the first predictor over the draws; the deviations
        ``(n, S)`` are each draw's predictor minus the centre, over its ``unit (S,)``, in single
        precision where that holds them.
        """

        def deviations_of(X: Array) -> tuple[Array, Array]:
            values = self(X)[0]
            mean = values @ share
            deviation = (values - mean[:, None]) / unit
            return mean, deviation if _is_large(deviation) else deviation.astype(np.float32)

        return deviations_of


class LinearPredictor(Predictor):
    """Linear predictors under the draws ``coef (S, K, d)`` and ``intercept (S, K)``."""

    def __init__(self, coef: Array, intercept: Array) -> None:
        self.n_draws, self.n_predictors, self._width = coef.shape
        self._coef, self._intercept = coef, intercept

    def __call__(self, X: Array) -> Array:
        """Linear predictors ``(K, n, S)``."""
        slopes, levels = self._by_draw
        eta = X @ slopes
        eta += levels
        return eta

    @cached_property
    def _by_draw(self) -> tuple[Array, Array]:
        """Slopes ``(K, d, S)`` and levels ``(K, 1, S)``, contiguous along the draws."""
        slopes = np.ascontiguousarray(self._coef.transpose(1, 2, 0))
        return slopes, np.ascontiguousarray(self._intercept.T)[:, None]

    def moments(self, share: Array, n_rows: int) -> Callable[[Array], Array]:
        """Function from rows to mean and variance of the first predictor over draws ``(n, 2)``."""
        if not self._is_factored(n_rows):
            return super().moments(share, n_rows)
        slope, level, _, R = self._factor(share)

        def moments_of(X: Array) -> Array:
            return np.column_stack([X @ slope + level, np.square(_rotate(X, R)).sum(axis=1)])

        return moments_of

    def deviations(
        self, share: Array, unit: Array, n_rows: int
    ) -> Callable[[Array], tuple[Array, Array]]:
        """Function from rows to the centre and the deviations of their mixtures."""
        if not self._is_factored(n_rows):
            return super().deviations(share, unit, n_rows)
        slope, level, Q, R = self._factor(share)
        size = float(np.sqrt(share @ np.square(unit / unit.max()))) * unit.max()
        root = np.sqrt(share)
        z = np.divide(size, root * unit, where=root > 0, out=np.zeros_like(root))
        directions = (Q * z[:, None]).T
        single = directions.astype(np.float32)

        def deviations_of(X: Array) -> tuple[Array, Array]:
            rotated = _rotate(X, R) / size  # before the cast: single precision ends at 1e38
            center = X @ slope + level
            if _is_large(rotated):
                return center, rotated @ directions
            return center, rotated.astype(np.float32) @ single

        return deviations_of

    def _is_factored(self, n_rows: int) -> bool:
        return self._width <= max(_FEW, min(n_rows, MAX_DENSE))

    def _factor(self, share: Array) -> tuple[Array, Array, Array, Array]:
        """Means of slope and level, and factors Q and R of the draws' deviations from them.

        The predictors of a row x, with a one appended, deviate by ``Q (R x) / sqrt(share)``. The
        columns of Q are orthonormal, so cancellation between columns of X, or between them and
        the intercept, happens in the d numbers of ``R x``, in double precision.
        """
        slope, level = share @ self._coef[:, 0], share @ self._intercept[:, 0]
        deviation = np.empty((self.n_draws, self._width + 1))
        np.subtract(self._coef[:, 0], slope, out=deviation[:, :-1])
        np.subtract(self._intercept[:, 0], level, out=deviation[:, -1])
        deviation *= np.sqrt(share)[:, None]
        Q, R = linalg.qr(deviation, mode="economic", overwrite_a=True, check_finite=False)
        return slope, level, Q, R


def _rotate(X: Array, R: Array) -> Array:
    return X @ R[:, :-1].T + R[:, -1]


def _is_large(values: Array) -> bool:
    return bool(values.size) and not max(values.max(), -values.min()) < _LARGEST
