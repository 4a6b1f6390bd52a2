"""The columns of X in a mixed model: numbers with coefficients, and labels of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skbayes_sgld._checks import printable
from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.groups import GroupColumns, GroupEffects, resolve_groups
from skbayes_sgld.mixed.labels import Labels
from skbayes_sgld.mixed.predictor import MixedPredictor
from skbayes_sgld.mixed.smooth import learn_bends
from skbayes_sgld.mixed.term import Term, column_of
from skbayes_sgld.prediction.predictors import LinearPredictor
from skbayes_sgld.priors.group import LearnedCovariance


@dataclass(frozen=True, eq=False)
class MixedColumns:
    """The columns of X in a mixed model.

    Attributes
    ----------
    fixed : ndarray of int
        Positions of the columns of numbers, which have coefficients.
    labels : Labels
        Labels in the other columns.
    terms : tuple of Term
    covariances : sequence of LearnedCovariance
        Covariance of the effects of each term; empty before they are known.
    """

    fixed: Array
    labels: Labels
    terms: tuple[Term, ...]
    covariances: Sequence[LearnedCovariance] = ()

    @classmethod
    def learned(
        cls, X: Any, group_effects: Mapping[Any, Any], names: Sequence[str] | None
    ) -> tuple[MixedColumns, Any]:
        """Columns of the rows X of a fit, and these rows with codes in place of labels.

        Without groups rows stay as they are, and :meth:`with_bends` counts their columns.
        """
        if group_effects is None:
            return cls(np.arange(0), Labels({}, {}), ()), X
        groups, called = resolve_groups(group_effects, n_columns(X), names)
        labels = Labels.learned(X, called)
        encoded = labels.encoded(X)
        return cls.given_labels(labels, groups, _array(encoded)), encoded

    @classmethod
    def given_labels(cls, labels: Labels, groups: Sequence[GroupColumns], X: Any) -> MixedColumns:
        """Columns of the encoded rows X of a fit."""
        at = list(labels.of_columns)
        columns = {j: column_of(X, j) for j in at}
        terms = tuple(GroupEffects.learned(term, labels, columns) for term in groups)
        return cls(np.setdiff1d(np.arange(X.shape[1]), at), labels, terms)

    def with_bends(
        self,
        smooth_effects: Mapping[Any, Any],
        X: Any,
        weight: Array | None,
        names: Sequence[str] | None,
    ) -> MixedColumns:
        """These columns with the bends of curves, over the checked rows X of a fit."""
        bends = learn_bends(smooth_effects, X, weight, names, self.labels.of_columns)
        fixed = np.setdiff1d(np.arange(X.shape[1]), list(self.labels.of_columns))
        return replace(self, fixed=fixed, terms=(*self.terms, *bends))

    def encoded(self, X: Any, groups: Any = None) -> Any:
        """Later rows, with codes in place of labels; ``groups="population"``: without effects."""
        if groups is not None and not (isinstance(groups, str) and groups == "population"):
            raise ValueError(
                f"groups={printable(repr(groups))} is not accepted; give 'population' to leave the "
                "effects of groups out, or nothing."
            )
        found, d = n_columns(X), len(self.fixed) + len(self.labels.of_columns)
        if found != d:
            raise ValueError(f"X has {found} features, and the fit had {d}; give the same ones.")
        return self.labels.encoded(X, groups is not None)

    def decide_alone(self, X: Any, weight: Array | None = None) -> Array:
        """Mask ``(n,)`` of encoded rows without which nothing is known of an effect of their own.

        Their label has no more rows than effects. All draws of such an effect are near the row, and
        none is near those without the row: weights cannot leave it out. A row of weight w counts
        as w rows.
        """
        alone = np.zeros(X.shape[0], bool)
        counted = None if weight is None else np.where(weight > 0, np.maximum(weight, 1.0), 0.0)
        for term in self.terms:
            if term.by_label:
                codes = term.codes(X).astype(np.int64)
                n_rows = np.bincount(codes, counted, minlength=len(term.labels))
                alone |= n_rows[codes] <= len(term.effects)
        return alone

    def numbers(self, X: Any) -> Any:
        """Columns of numbers of later rows."""
        encoded = self.labels.encoded(X, population=True)
        return encoded[:, self.fixed] if issparse(encoded) else _array(encoded)[:, self.fixed]

    def predictor(self, linear: LinearPredictor, parts: dict[str, Array]) -> MixedPredictor:
        """Predictors under the draws of all parts of a model."""
        return MixedPredictor(linear, self, *self.effects_and_roots(parts))

    def effects_and_roots(self, parts: dict[str, Array]) -> tuple[list[Array], list[Array]]:
        """Effects ``(S, L, q)`` and factor ``(S, q, q)`` of each term, from the draws by part."""
        effects, roots, first, sds, pairs = [], [], 0, 0, 0
        S = len(parts["effect"])
        scales, correlations = (
            parts[name].reshape(S, -1) if name in parts else np.empty((S, 0))
            for name in ("sd", "correlation")
        )
        for term, covariance in zip(self.terms, self.covariances, strict=True):
            L, q, k = len(term.labels), len(term.effects), len(covariance.pairs)
            some = parts["effect"][:, first : first + L * q]
            effects.append(some.reshape(S, L, q))
            n_scales = covariance.n_hyper - k
            own = scales[:, sds : sds + n_scales], correlations[:, pairs : pairs + k]
            roots.append(covariance.root(covariance.from_reported(np.hstack(own))))
            first, sds, pairs = first + L * q, sds + n_scales, pairs + k
        return effects, roots


def n_columns(X: Any) -> int:
    """Number of columns of rows as they are given, some of labels.

    Raises
    ------
    ValueError
        If it is none, or if X is not of two dimensions, or complex: in scikit-learn's words, which
        sees codes alone.
    """
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    if len(shape) != 2:
        raise ValueError(f"X has shape {shape}; give rows and columns, (n_samples, n_features).")
    if shape[1] == 0:
        raise ValueError(f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise ValueError(f"Complex data not supported: X has dtype {X.dtype}.")
    return int(shape[1])


def _array(X: Any) -> Any:
    return X.to_numpy() if hasattr(X, "to_numpy") else X
