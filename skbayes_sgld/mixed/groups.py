"""Effects that vary by group: ``{"Subject": ["intercept", "Days"]}``, and their terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from skbayes_sgld._checks import column_position
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.mixed.labels import POPULATION, Labels, pair_codes, pair_numbers
from skbayes_sgld.mixed.term import Term, column_of
from skbayes_sgld.priors.group import GroupPrior

_FAR = 10.0  # standard deviations of a column from 0, from which intercepts are far from all rows
_ACCEPTED = (
    "'intercept', the name or position of a column of numbers, or a list of these, such as "
    "['intercept', 'Days']"
)


@dataclass(frozen=True)
class GroupColumns:
    """The columns that an entry of ``group_effects`` names, before their labels are known.

    Attributes
    ----------
    name : str
        Name of the column, or of both: ``"Subject"``, ``"batch:cask"``.
    columns : tuple of int
        Positions of the columns of labels in X.
    intercept : bool
        Whether each label has an intercept.
    slopes : tuple of int
        Positions in X of the columns whose slopes vary.
    effects : tuple of str
        Names of the effects of a label, the intercept first: ``("intercept", "Days")``.
    """

    name: str
    columns: tuple[int, ...]
    intercept: bool
    slopes: tuple[int, ...]
    effects: tuple[str, ...]


def resolve_groups(
    group_effects: Mapping[Any, Any] | None, d: int, names: Sequence[str] | None
) -> tuple[tuple[GroupColumns, ...], dict[int, str]]:
    """Columns of each term, and names of the columns of labels by their positions in X.

    X has d columns, which may have names.

    Raises
    ------
    TypeError, ValueError
        If a column is not there, or is a label and a number; the error names it.
    """
    if group_effects is None:
        return (), {}
    if not isinstance(group_effects, Mapping):
        raise TypeError(
            f"group_effects={group_effects!r} is no dict; give one of columns of labels to what "
            "varies with them, such as {'Subject': ['intercept', 'Days']}."
        )
    if not group_effects:
        raise ValueError(
            f"group_effects={group_effects!r} has no term; set it to None, or give one, such "
            "as {'Subject': 'intercept'}."
        )
    terms = [_term(key, value, d, names) for key, value in group_effects.items()]
    labels = {j for term in terms for j in term.columns}
    for term in terms:
        for j, effect in zip(term.slopes, term.effects[term.intercept :], strict=True):
            if j in labels:
                raise ValueError(
                    f"group_effects[{term.name!r}] has the slope {effect!r}, whose column holds "
                    "labels; slopes are of columns of numbers."
                )
    if len({frozenset(term.columns) for term in terms}) < len(terms):
        raise ValueError(
            f"group_effects names a column twice: {[term.name for term in terms]}; give all that "
            "varies with its labels in one list."
        )
    return tuple(terms), {j: _called(j, names) for j in sorted(labels)}


def _term(key: Any, value: Any, d: int, names: Sequence[str] | None) -> GroupColumns:
    argument = f"group_effects[{key!r}]"
    columns = tuple(column_position(each, d, names, "group_effects") for each in _pair(key, names))
    if len(columns) > 2 or len(set(columns)) < len(columns):
        raise ValueError(
            f"group_effects has the key {key!r}; give a column, or 'a:b' for the pairs of labels "
            "of two columns."
        )
    listed = list(value) if isinstance(value, (list, tuple)) else [value]
    if not listed:
        raise ValueError(f"{argument} is empty; give {_ACCEPTED}.")
    for each in listed:
        if isinstance(each, bool) or not isinstance(each, (str, Integral)):
            raise TypeError(f"{argument}={value!r} is not accepted; give {_ACCEPTED}.")
    slopes = [each for each in listed if each != "intercept"]
    level = "; 'intercept' is the level of each label"
    at = tuple(column_position(each, d, names, argument, level) for each in slopes)
    if len(set(listed)) < len(listed) or len(set(at)) < len(at):
        raise ValueError(f"{argument}={value!r} names an effect twice.")
    if any(_called(j, names) == "intercept" for j in at):
        raise ValueError(
            f"{argument}={value!r} has the slope of a column named 'intercept', which is the name "
            "of the intercept; rename the column."
        )
    intercept = "intercept" in listed
    effects = ("intercept",) * intercept + tuple(_called(j, names) for j in at)
    name = ":".join(_called(j, names) for j in columns)
    return GroupColumns(name, columns, intercept, at, effects)


def _pair(key: Any, names: Sequence[str] | None) -> tuple[Any, ...]:
    """Columns that a key names: itself, or the two parts of ``"a:b"``."""
    if isinstance(key, tuple):
        return key
    if not isinstance(key, str) or key in (names or ()) or key.count(":") != 1:
        return (key,)
    return tuple(key.split(":"))


def _called(j: int, names: Sequence[str] | None) -> str:
    return f"x{j}" if names is None else str(names[j])


@dataclass(frozen=True, eq=False)
class GroupEffects(Term):
    """Effects of the labels in one column, or of pairs of labels in two.

    Attributes
    ----------
    given : GroupColumns
    pairs : ndarray or None
        Numbers of the pairs that the fit saw, for two columns.
    n_second : int
        Number of labels in the second column.
    """

    given: GroupColumns
    pairs: Array | None = None
    n_second: int = 0

    by_label = True

    @classmethod
    def learned(cls, given: GroupColumns, labels: Labels, X: Any) -> GroupEffects:
        """Term of the labels in the encoded rows X of a fit."""
        each = [list(labels.of_columns[j]) for j in given.columns]
        if len(each) == 1:
            return cls(given.name, given.effects, each[0], given)
        n_second = len(each[1])
        first, second = (column_of(X, j) for j in given.columns)
        pairs = pair_numbers(first, second, n_second)
        named = [f"{each[0][int(k // n_second)]}:{each[1][int(k % n_second)]}" for k in pairs]
        if len(set(named)) < len(named):
            twice = next(k for k in named if named.count(k) > 1)
            raise ValueError(
                f"X has two pairs of labels {twice!r} in columns {given.name!r}; leave ':' out of "
                "their labels."
            )
        return cls(given.name, given.effects, named, given, pairs, n_second)

    @property
    def reads(self) -> set[int]:
        """Columns of its labels, and those with slopes."""
        return {*self.given.columns, *self.given.slopes}

    def codes(self, X: Any) -> Array:
        """Code of the label of each row."""
        first, *second = (column_of(X, j) for j in self.given.columns)
        if self.pairs is None:
            return first
        return pair_codes(first, second[0], self.pairs, self.n_second)

    def values(self, X: Any) -> Array:
        """Ones for the intercept, and the columns with slopes."""
        ones = [np.ones(X.shape[0])] * self.given.intercept
        return np.column_stack([*ones, *(column_of(X, j) for j in self.given.slopes)])

    def unit(self, X: Any, weight: Array | None) -> Array:
        """1 for the intercept, and for a slope 1 / sd of its column.

        Warn of a column that is constant, or so far from 0 that intercepts are beyond all rows.
        """
        units = [1.0] * self.given.intercept
        names = self.effects[self.given.intercept :]
        for j, effect in zip(self.given.slopes, names, strict=True):
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
            elif self.given.intercept and abs(mean) > _FAR * sd:
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
        seen = slice(None) if known.all() else known  # a mask of all takes twice as long
        at = codes[seen].astype(np.int64)
        for effect, value in zip(effects, values[seen].T, strict=True):
            part = effect[at]
            part *= value[:, None]
            eta[seen] += part
        for code in np.unique(codes[codes < POPULATION]):
            rows = codes == code
            eta[rows] += values[rows] @ drawn(code)

    def sums(self, X: Any, weight: Array, effects: Array, drawn: Callable[[float], Array]) -> Array:
        """Sums of the effects of the rows' labels."""
        codes, values = self.codes(X), self.values(X)
        of_label = np.zeros((values.shape[1], weight.shape[1], effects.shape[1]))
        known = codes >= 0
        at = codes[known].astype(np.int64)
        for of_effect, value in zip(of_label, values[known].T, strict=True):
            for total, w in zip(of_effect, weight[known].T, strict=True):
                total[:] = np.bincount(at, w * value, effects.shape[1])
        sums = np.einsum("qml,qls->ms", of_label, effects, optimize=True)
        for code in np.unique(codes[codes < POPULATION]):
            rows = codes == code
            sums += weight[rows].T @ values[rows] @ drawn(code)
        return sums

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
