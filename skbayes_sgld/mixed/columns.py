"""The columns of X in a mixed model: numbers with coefficients, and labels of groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.mixed.base import Term, column_of
from skbayes_sgld.mixed.labels import POPULATION, Labels, pair_codes, pair_numbers
from skbayes_sgld.mixed.predictor import MixedPredictor
from skbayes_sgld.mixed.smooth import learn_bends
from skbayes_sgld.mixed.terms import GroupTerm, resolve_groups
from skbayes_sgld.prediction.predictors import LinearPredictor
from skbayes_sgld.priors.group import GroupPrior, LearnedCovariance

_FAR = 10.0  # standard deviations of a column from 0, from which intercepts are far from all rows


@dataclass(frozen=True, eq=False)
class GroupEffects(Term):
    """Effects of the labels in one column, or of pairs of labels in two.

    Attributes
    ----------
    term : GroupTerm
    pairs : ndarray or None
        Numbers of the pairs that the fit saw, for two columns.
    n_second : int
        Number of labels in the second column.
    """

    term: GroupTerm
    pairs: Array | None = None
    n_second: int = 0

    by_label = True

    @classmethod
    def learned(cls, term: GroupTerm, labels: Labels, X: Any) -> GroupEffects:
        """Term of the labels in the encoded rows X of a fit."""
        each = [list(labels.of_columns[j]) for j in term.columns]
        if len(each) == 1:
            return cls(term.name, term.effects, each[0], term)
        n_second = len(each[1])
        first, second = (column_of(X, j) for j in term.columns)
        pairs = pair_numbers(first, second, n_second)
        named = [f"{each[0][int(k // n_second)]}:{each[1][int(k % n_second)]}" for k in pairs]
        if len(set(named)) < len(named):
            twice = next(k for k in named if named.count(k) > 1)
            raise ValueError(
                f"X has two pairs of labels {twice!r} in columns {term.name!r}; leave ':' out of "
                "their labels."
            )
        return cls(term.name, term.effects, named, term, pairs, n_second)

    def codes(self, X: Any) -> Array:
        """Code of the label of each row."""
        first, *second = (column_of(X, j) for j in self.term.columns)
        if self.pairs is None:
            return first
        return pair_codes(first, second[0], self.pairs, self.n_second)

    def values(self, X: Any) -> Array:
        """Ones for the intercept, and the columns with slopes."""
        ones = [np.ones(X.shape[0])] * self.term.intercept
        return np.column_stack([*ones, *(column_of(X, j) for j in self.term.slopes)])

    def unit(self, X: Any, weight: Array | None) -> Array:
        """1 for the intercept, and for a slope 1 / sd of its column.

        Warn of a column that is constant, or so far from 0 that intercepts are beyond all rows.
        """
        units = [1.0] * self.term.intercept
        names = self.effects[self.term.intercept :]
        for j, effect in zip(self.term.slopes, names, strict=True):
            column = column_of(X, j)
            mean = np.average(column, weights=weight)
            sd = np.sqrt(np.average(np.square(column - mean), weights=weight))
            if not sd > 1e-12 * abs(mean):
                warn(
                    f"group_effects[{self.name!r}] has slopes of {effect!r}, which is constant "
                    f"({mean:.4g}), so that rows say nothing of them beside the intercepts; leave "
                    f"{effect!r} out.",
                    UserWarning,
                )
            elif self.term.intercept and abs(mean) > _FAR * sd:
                warn(
                    f"group_effects[{self.name!r}] has intercepts and slopes of {effect!r}, which "
                    f"has mean {mean:.4g} and standard deviation {sd:.3g}: intercepts are at "
                    f"{effect} = 0, far from all rows, and their prior keeps slopes small there; "
                    "subtract the mean, as sklearn.preprocessing's StandardScaler does.",
                    UserWarning,
                )
            units.append(1.0 / sd if sd > 0 else 1.0)
        return np.array(units)

    def matrix(self, X: Any) -> csr_array:
        """Columns of the effects, with q numbers in each row."""
        codes, values = self.codes(X).astype(np.int64), self.values(X)
        n, q = values.shape
        columns = codes[:, None] * q + np.arange(q)
        starts = np.arange(n + 1) * q
        return csr_array((values.ravel(), columns.ravel(), starts), shape=(n, self.size))

    def prior(self, group_prior: GroupPrior) -> GroupPrior:
        """Prior of groups."""
        return group_prior

    def add(self, eta: Array, X: Any, effects: Array, drawn: Callable[[float], Array]) -> None:
        """Add the effects of each row's label."""
        codes, values = self.codes(X), self.values(X)
        known = codes >= 0
        at = codes[known].astype(np.int64)
        for effect, value in zip(effects, values.T, strict=True):
            eta[known] += value[known, None] * effect[at]
        for code in np.unique(codes[codes < POPULATION]):
            rows = codes == code
            eta[rows] += values[rows] @ drawn(code)

    @property
    def effect_names(self) -> list[str]:
        """``effect[Subject=308, Days]``."""
        return [
            f"effect[{self.name}={label}, {effect}]"
            for label in self.labels
            for effect in self.effects
        ]

    def scale_names(self, pairs: Sequence[tuple[int, int]]) -> list[str]:
        """``sd[Subject, Days]``, ``correlation[Subject, intercept, Days]``."""
        name, effects = self.name, self.effects
        sds = [f"sd[{name}, {effect}]" for effect in effects]
        return sds + [f"correlation[{name}, {effects[j]}, {effects[i]}]" for i, j in pairs]


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
        groups, called = cls.of_labels(group_effects, n_columns(X), names)
        labels = Labels.learned(X, list(called), called)
        encoded = labels.encoded(X)
        return cls.given_labels(labels, groups, _array(encoded)), encoded

    @staticmethod
    def of_labels(
        group_effects: Mapping[Any, Any] | None, d: int, names: Sequence[str] | None
    ) -> tuple[tuple[GroupTerm, ...], dict[int, str]]:
        """Terms of groups, and names of the columns of labels by their positions; perhaps none."""
        if group_effects is None:
            return (), {}
        groups = resolve_groups(group_effects, d, names)
        if not groups:
            raise ValueError(
                f"group_effects={group_effects!r} has no term; set it to None, or give one, such "
                "as {'Subject': 'intercept'}."
            )
        at = sorted({j for term in groups for j in term.columns})
        return groups, {j: f"x{j}" if names is None else str(names[j]) for j in at}

    @classmethod
    def given_labels(cls, labels: Labels, groups: Sequence[GroupTerm], X: Any) -> MixedColumns:
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
                f"groups={groups!r} is not accepted; give 'population' to leave the effects of "
                "groups out, or nothing."
            )
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        d = len(self.fixed) + len(self.labels.of_columns)
        if len(shape) != 2:
            raise ValueError(f"X has shape {shape}; give rows and columns, (n_samples, {d}).")
        if shape[1] != d:
            raise ValueError(f"X has {shape[1]} features, and the fit had {d}; give the same ones.")
        return self.labels.encoded(X, groups is not None)

    def decide_alone(self, X: Any, weight: Array | None = None) -> Array:
        """Mask ``(n,)`` of encoded rows without which nothing is known of an effect of their own.

        Their label has no more rows than effects. All draws of such an effect are near the row, and
        none is near those without the row: weights cannot leave it out.
        """
        alone = np.zeros(X.shape[0], bool)
        for term in self.terms:
            if term.by_label:
                codes = term.codes(X).astype(np.int64)
                counted = None if weight is None else weight > 0
                n_rows = np.bincount(codes, counted, minlength=len(term.labels))
                alone |= n_rows[codes] <= len(term.effects)
        return alone

    def numbers(self, X: Any) -> Any:
        """Columns of numbers of later rows."""
        encoded = self.labels.encoded(X, population=True)
        return encoded[:, self.fixed] if issparse(encoded) else _array(encoded)[:, self.fixed]

    def predictor(self, linear: LinearPredictor, parts: dict[str, Array]) -> MixedPredictor:
        """Predictors under the draws of all parts of a model."""
        return MixedPredictor(linear, self, *self.split(parts))

    def split(self, parts: dict[str, Array]) -> tuple[list[Array], list[Array]]:
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
