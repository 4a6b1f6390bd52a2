"""Predictors of rows with effects of groups and curves, under every draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skbayes_sgld._typing import Array
from skbayes_sgld.prediction.predictors import LinearPredictor, Predictor, Spread

_MOST_COLUMNS = 150  # of effects: products with more take as long as reading those of labels
_ROWS_PER_EFFECT = 8


class MixedPredictor(Predictor):
    """Linear predictors with the effects of each row's labels, and with bends of curves.

    A label that the fit did not see has, under each draw, effects drawn from the population: they
    depend on the label and the draws alone.

    Parameters
    ----------
    linear : LinearPredictor
        Of the columns of numbers.
    columns : MixedColumns
    effects : sequence of ndarray of shape (S, L, q)
        Effects of the labels of each term.
    roots : sequence of ndarray of shape (S, q, q)
        Factor of the covariance of the effects of each term.
    """

    def __init__(
        self,
        linear: LinearPredictor,
        columns: Any,
        effects: Sequence[Array],
        roots: Sequence[Array],
    ) -> None:
        self.n_draws, self.n_predictors = linear.n_draws, linear.n_predictors
        self._linear, self._columns, self._roots = linear, columns, roots
        self._effects = [np.ascontiguousarray(each.transpose(2, 1, 0)) for each in effects]

    def __call__(self, X: Array) -> Array:
        """Predictors ``(1, n, S)`` of encoded rows."""
        eta = self._linear(X[:, self._columns.fixed])
        for k, term in enumerate(self._columns.terms):
            term.add(eta[0], X, self._effects[k], partial(self._drawn, k))
        return eta

    def spread(self, share: Array, X: Array) -> Spread:
        """Mean and deviations; with few effects those of linear predictors of columns of theirs.

        Predictions of many rows take a third of the time.
        """
        effects = [each.reshape(-1, self.n_draws) for each in self._effects]
        if issparse(X) or X.shape[0] < _ROWS_PER_EFFECT * sum(map(len, effects)):
            return super().spread(share, X)
        new: list[dict[float, Array]] = [{} for _ in self.terms]
        for k, term in enumerate(self.terms):

            def noted(code: float, k: int = k) -> Array:
                new[k][code] = self._drawn(k, code)
                return np.zeros((len(self._effects[k]), 1))

            nothing = np.zeros((*self._effects[k].shape[:2], 1))
            term.add(np.zeros((X.shape[0], 1)), X, nothing, noted)
        effects += [each for drawn in new for each in drawn.values()]
        width = sum(map(len, effects))
        if width > _MOST_COLUMNS:
            return super().spread(share, X)
        inner = self._linear.beside(np.vstack(effects)).spread(share, X)
        columns = partial(self._as_columns, width, [list(codes) for codes in new])
        return Spread(self, share) if inner.directions is None else _OfColumns(inner, columns)

    def _as_columns(self, width: int, new: Sequence[list[float]], X: Array) -> Array:
        """Columns of numbers, and those ``(n, width)`` that multiply the effects."""
        beside, first = np.zeros((X.shape[0], width)), 0
        after = sum(each.shape[0] * each.shape[1] for each in self._effects)
        identity = np.eye(width)
        for k, term in enumerate(self.terms):
            q, L, _ = self._effects[k].shape
            at = {code: identity[after + q * i :][:q] for i, code in enumerate(new[k])}
            term.add(
                beside, X, identity[first : first + q * L].reshape(q, L, width), at.__getitem__
            )
            first, after = first + q * L, after + q * len(new[k])
        return np.column_stack([X[:, self._columns.fixed], beside])

    def along(self, columns: Array) -> Array | None:
        """Coefficients of columns that no term reads."""
        if any(term.reads.intersection(columns.tolist()) for term in self.terms):
            return None
        return self._linear.along(np.searchsorted(self._columns.fixed, columns))

    def bound(self, X: Array, k: int) -> Array:
        """Bound of the linear predictor, if it is not the first, which alone has effects."""
        return self._linear.bound(X[:, self._columns.fixed], k) if k else super().bound(X, k)

    def sums(self, X: Array, weight: Array) -> Array:
        """Sums of the linear predictors, and of the effects of each row's labels."""
        sums = self._linear.sums(X[:, self._columns.fixed], weight)
        for k, term in enumerate(self.terms):
            sums[0] += term.sums(X, weight, self._effects[k], partial(self._drawn, k))
        return sums

    def _drawn(self, term: int, code: float) -> Array:
        """Effects ``(q, S)`` of a label that the fit did not see."""
        root = self._roots[term]
        rng = np.random.default_rng([term, int(-code)])
        return np.einsum("sij,sj->is", root, rng.standard_normal(root.shape[:2]))

    @property
    def terms(self) -> Sequence[Any]:
        """Terms of the model."""
        terms: Sequence[Any] = self._columns.terms
        return terms

    @property
    def roots(self) -> Sequence[Array]:
        """Factor ``(S, q, q)`` of the covariance of the effects of each term."""
        return self._roots

    def without(self, term: int) -> MixedPredictor:
        """Predictor without the effects of a term."""
        other = copy(self)
        other._roots, other._effects = list(self._roots), list(self._effects)
        other._roots[term] = np.zeros_like(self._roots[term])
        other._effects[term] = np.zeros_like(self._effects[term])
        return other

    def without_labels(self, labels: Sequence[Array]) -> MixedPredictor:
        """Predictor without the effects of new labels, and of those in a mask for each term."""
        other = copy(self)
        other._roots = [np.zeros_like(root) for root in self._roots]
        other._effects = [
            np.where(without[:, None], 0.0, each) if without.any() else each
            for each, without in zip(self._effects, labels, strict=True)
        ]
        return other

    def at_mean(self, share: Array) -> MixedPredictor:
        """Predictor of the means of coefficients and effects; a new label has none."""
        effects = [np.einsum("s,qls->lq", share, each)[None] for each in self._effects]
        roots = [np.zeros((1, *root.shape[1:])) for root in self._roots]
        return MixedPredictor(self._linear.at_mean(share), self._columns, effects, roots)


class _OfColumns(Spread):
    """Spread of linear predictors of columns that rows are turned into."""

    def __init__(self, inner: Spread, columns: Callable[[Array], Array]) -> None:
        self._inner, self._columns = inner, columns
        self.directions, self.n_coordinates = inner.directions, inner.n_coordinates

    def predictors(self, coordinates: Array, k: int = 0) -> Array:
        """Predictors ``(K, n, S)``, or the k-th."""
        return self._inner.predictors(coordinates, k)

    def variance(self, coordinates: Array) -> Array:
        """Variance of the predictors over the draws."""
        return self._inner.variance(coordinates)

    def coordinates(self, X: Array) -> Array:
        """Coordinates of the rows."""
        return self._inner.coordinates(self._columns(X))
