"""Maps from rows to their predictors under every draw.

Conventions
-----------
A :class:`Predictor` maps n rows to their K predictors under each of S draws, ``(K, n, S)``. It
alone multiplies rows by coefficients: its callers take slices and masks of the rows, and ask for
``X.shape[0]``, so a predictor may take other rows than arrays and sparse arrays. ``share (S,)``
holds the probabilities of the draws. A :class:`Spread` has the same predictors as their mean over
the draws and each draw's deviation from it. It is made once for all rows, which are mapped block by
block: how much is computed beforehand depends on their number.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse import issparse

from skbayes_sgld._linalg import MAX_DENSE, gram_of_predictors
from skbayes_sgld._typing import Array

_FEWEST_ROWS = 200  # with fewer, factoring the draws costs more than it saves
_FEWEST_DRAWS = 50  # likewise
_ROWS_PER_COLUMN = 8  # likewise
_MOST_SQUARED = 500  # coefficients of a draw whose products are summed
_OF_MIDDLE = 50  # rows whose medians are in the middle of all

Weights = dict[tuple[int, int], Array]  # by the positions of two predictors


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

    def in_single(self, X: Array) -> Array:
        """Predictors in single precision."""
        return self(X).astype(np.float32)

    def along(self, columns: Array) -> Array | None:
        """Coefficients ``(S, K, m)`` of m columns, or None if predictors are not linear in them."""
        return None

    def sums(self, X: Array, weight: Array) -> Array:
        """Sums ``(K, M, S)`` over rows with weights ``(n, M)``, if there is :meth:`at_mean`."""
        raise NotImplementedError

    def squares(self, X: Array, weights: Weights, middle: Predictor) -> Array:
        """Sums ``(L, S)`` of squares and products of predictors minus those of ``middle``.

        ``weights`` holds the weights ``(L, n)`` of each two predictors ``a <= b``; others are left
        out. Zeros if predictors are not products of rows and coefficients.
        """
        return np.zeros((len(weights[0, 0]), self.n_draws))

    def bound(self, X: Array, k: int) -> Array:
        """Numbers ``(n,)`` that the size of the k-th predictor does not exceed under any draw."""
        return np.abs(self(X)[k]).max(axis=1)

    def at_mean(self, share: Array) -> Predictor | None:
        """Predictor at the mean of the draws; None if they are not linear in parameters."""
        return None

    def centered(self) -> Predictor:
        """Predictors of which the mean over the K classes may be subtracted, or may not be."""
        return self

    def contrasts(self) -> Predictor:
        """Differences of the other predictors from the last one."""
        return _Contrasts(self)

    def spread(self, share: Array, X: Array) -> Spread:
        """Mean and deviations of the predictors of rows X, which are mapped by parts."""
        return Spread(self, share)


class _Contrasts(Predictor):
    """Differences of the other predictors from the last one."""

    def __init__(self, predictor: Predictor) -> None:
        self.n_draws, self.n_predictors = predictor.n_draws, predictor.n_predictors - 1
        self._predictor = predictor

    def __call__(self, X: Array) -> Array:
        """Differences ``(K - 1, n, S)``."""
        eta = self._predictor(X)
        return eta[:-1] - eta[-1:]


class Spread:
    """Predictors as their mean over the draws, and the deviations of the draws from it.

    Both are linear functions of a row's *coordinates* ``(K, n, m + 1)``, the last of which is the
    mean. Here they are the deviations themselves.

    Attributes
    ----------
    n_coordinates : int
        ``K (m + 1)``.
    directions : ndarray of shape (K, m, S) or None
        Deviations of the draws along each of the first m coordinates; None if there are as many
        coordinates as draws.
    """

    directions: Array | None = None

    def __init__(self, predictor: Predictor, share: Array) -> None:
        self._predictor, self._share = predictor, share
        self.n_coordinates = predictor.n_predictors * (predictor.n_draws + 1)

    def coordinates(self, X: Array) -> Array:
        """Coordinates ``(K, n, m + 1)`` of the rows."""
        eta = self._predictor(X)
        mean = (eta @ self._share)[..., None]
        return np.concatenate([eta - mean, mean], axis=-1)

    def predictors(self, coordinates: Array, k: int = 0) -> Array:
        """Predictors ``(K, n, S)``, or the k-th ``(n, S)`` from its coordinates ``(n, m + 1)``."""
        eta: Array = coordinates[..., :-1] + coordinates[..., -1:]
        return eta

    def variance(self, coordinates: Array) -> Array:
        """Variance of the predictors over the draws ``(..., n)``."""
        variance: Array = np.square(coordinates[..., :-1]) @ self._share
        return variance

    def deviations(self, X: Array, unit: Array | float = 1.0) -> tuple[Array, Array]:
        """Mean ``(n,)`` of the first predictor, and its deviations ``(n, S)`` in units of ``unit``.

        ``unit`` is one number, or a number for each row ``(n,)``.
        """
        coordinates = self.coordinates(X)[0]
        mean = coordinates[:, -1].copy()
        coordinates[:, -1] = 0.0
        coordinates /= np.reshape(unit, (-1, 1))  # before the cast: single precision ends at 1e38
        return mean, self.predictors(coordinates)


class LinearPredictor(Predictor):
    """Linear predictors under the draws ``coef (S, K, d)`` and ``intercept (S, K)``."""

    def __init__(self, coef: Array, intercept: Array) -> None:
        self.n_draws, self.n_predictors, self._width = coef.shape
        self.coef, self._intercept = coef, intercept

    def __call__(self, X: Array) -> Array:
        """Linear predictors ``(K, n, S)``."""
        return _affine(X, *self._by_draw)

    def in_single(self, X: Array) -> Array:
        """Linear predictors in single precision, but for the middle of the rows."""
        if issparse(X):
            return super().in_single(X)
        slopes, levels = self._by_draw
        # of a few rows: a row far out would move a mean, and with it the rounding of all rows
        middle = np.median(X[:: len(X) // _OF_MIDDLE + 1], axis=0)
        away = (X - middle).astype(np.float32)
        return _affine(away, self._single_slopes, (middle @ slopes)[:, None] + levels)

    def along(self, columns: Array) -> Array:
        """Coefficients of some columns."""
        return self.coef[:, :, columns]

    def bound(self, X: Array, k: int) -> Array:
        """Sums of sizes, by the largest size of each coefficient."""
        return abs(X) @ np.abs(self.coef[:, k]).max(axis=0) + np.abs(self._intercept[:, k]).max()

    def sums(self, X: Array, weight: Array) -> Array:
        """Predictors of the sums of the rows."""
        slopes, levels = self._by_draw
        return (X.T @ weight).T @ slopes + weight.sum(axis=0)[:, None] * levels

    def squares(self, X: Array, weights: Weights, middle: Predictor) -> Array:
        """Quadratic forms, about the mean row."""
        K = self.n_predictors
        if K * (self._width + 1) > _MOST_SQUARED or not isinstance(middle, LinearPredictor):
            return super().squares(X, weights, middle)
        Z: Any = X
        Z = np.asarray(Z.toarray() if issparse(Z) else Z, dtype=float)
        center = Z.mean(axis=0)
        Z = np.column_stack([Z - center, np.ones(len(Z))])
        away = self.coef - middle.coef
        level = self._intercept - middle._intercept + away @ center
        flat = np.concatenate([away, level[..., None]], axis=2).reshape(self.n_draws, -1)
        unit = flat.std(axis=0)
        single = (flat / np.where(unit > 0.0, unit, 1.0)).astype(np.float32)
        sums = np.empty((len(weights[0, 0]), self.n_draws))
        for k in range(len(sums)):
            each = [[weights[min(a, b), max(a, b)][k] for b in range(K)] for a in range(K)]
            gram = gram_of_predictors(Z, np.array(each)) * unit[:, None] * unit
            sums[k] = np.einsum("si,si->s", single @ gram.astype(np.float32), single)
        return sums

    @cached_property
    def _single_slopes(self) -> Array:
        return self._by_draw[0].astype(np.float32)

    @cached_property
    def _by_draw(self) -> tuple[Array, Array]:
        """Slopes ``(K, d, S)`` and intercepts ``(K, 1, S)``, contiguous along the draws."""
        slopes = np.ascontiguousarray(self.coef.transpose(1, 2, 0))
        return slopes, np.ascontiguousarray(self._intercept.T)[:, None]

    def at_mean(self, share: Array) -> LinearPredictor:
        """Predictor of the means of coefficients and intercepts."""
        coef, intercept = (np.tensordot(share, each, 1) for each in (self.coef, self._intercept))
        return LinearPredictor(coef[None], intercept[None])

    def beside(self, effects: Array) -> LinearPredictor:
        """Predictors of further columns, too, with coefficients ``(m, S)`` in the first one."""
        further = np.zeros((self.n_draws, self.n_predictors, len(effects)))
        further[:, 0] = effects.T
        return LinearPredictor(np.concatenate([self.coef, further], axis=2), self._intercept)

    def centered(self) -> LinearPredictor:
        """Predictors minus their mean over the K classes, which a prior alone may determine."""
        coef, intercept = (
            each - each.mean(axis=1, keepdims=True) for each in (self.coef, self._intercept)
        )
        return LinearPredictor(coef, intercept)

    def contrasts(self) -> LinearPredictor:
        """Differences of the other predictors from the last one."""
        coef, intercept = (each[:, :-1] - each[:, -1:] for each in (self.coef, self._intercept))
        return LinearPredictor(coef, intercept)

    def spread(self, share: Array, X: Array) -> Spread:
        """Mean and deviations; for many rows the draws are factored."""
        enough = X.shape[0] >= max(_FEWEST_ROWS, _ROWS_PER_COLUMN * self._width)
        enough = enough and self._width <= MAX_DENSE and self.n_draws >= _FEWEST_DRAWS
        # a draw that weighs nothing beside another is lost to rounding in the factor
        if enough and share.min() > 1e-16 * share.max():
            return _Factored(self.coef, self._intercept, share)
        return Spread(self, share)


class _Factored(Spread):
    """Mean of slopes and intercepts, and the draws' deviations from them as a product.

    A row x, with a one appended, has the deviations ``directions^T (R x)``. The directions are of
    order 1, so cancellation between columns of X, or between them and the intercept, happens in the
    d numbers of ``R x``, in double precision. The product itself is in single precision, which
    halves the time of every prediction of many rows (``python -m benchmarks``, "predict").
    """

    def __init__(self, coef: Array, intercept: Array, share: Array) -> None:
        root = np.sqrt(share)
        rows, directions = [], []
        for k in range(coef.shape[1]):
            draws = np.column_stack([coef[:, k], intercept[:, k]])
            mean = share @ draws
            draws -= mean
            draws *= root[:, None]
            Q, R = linalg.qr(draws, mode="economic", overwrite_a=True, check_finite=False)
            rows.append(np.vstack([R, mean]).T)
            directions.append(np.vstack([Q.T / root, np.ones_like(root)]))
        each = np.stack(rows)
        self._slopes, self._levels = each[:, :-1], each[:, -1:]
        self._directions = np.stack(directions)  # (K, d + 2, S)
        self._single = self._directions.astype(np.float32)
        self.directions = self._directions[:, :-1]
        self.n_coordinates = self._levels.size

    def coordinates(self, X: Array) -> Array:
        """``R x`` of each row, and last the mean, ``(K, n, d + 2)``."""
        return _affine(X, self._slopes, self._levels)

    def predictors(self, coordinates: Array, k: int = 0) -> Array:
        """Predictors, in single precision if that can hold them."""
        size = max(coordinates.max(initial=0.0), -coordinates.min(initial=0.0))
        # single precision can hold the squares of such numbers
        directions = self._single if size < 1e15 else self._directions
        if coordinates.ndim == 2:
            directions = directions[k]
        eta: Array = coordinates.astype(directions.dtype, copy=False) @ directions
        return eta

    def variance(self, coordinates: Array) -> Array:
        """Variance of the predictors over the draws: the squares of ``R x``, summed."""
        rotated = coordinates[..., :-1]
        variance: Array = np.einsum("...i,...i->...", rotated, rotated)
        return variance


def _affine(X: Array, slopes: Array, levels: Array) -> Array:
    """Products ``(K, n, m)`` of rows with slopes ``(K, d, m)``, plus intercepts ``(K, 1, m)``."""
    # a sparse array's product takes one matrix
    product = np.stack([X @ slope for slope in slopes]) if issparse(X) else X @ slopes
    product += levels
    return product
