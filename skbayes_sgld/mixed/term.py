"""Terms of a mixed model: blocks of effects whose scales are learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from scipy.sparse import issparse

from skbayes_sgld._typing import Array
from skbayes_sgld.priors.group import GroupPrior


@dataclass(frozen=True, eq=False)
class Term:
    """A term of a fit: a block of effects for each of its labels, whose covariance is learned.

    Attributes
    ----------
    name : str
    effects : tuple of str
        Names of the q effects of a label.
    labels : list
        The L labels that the fit saw, of their own types; pairs as text, ``"first:second"``.
    """

    name: str
    effects: tuple[str, ...]
    labels: list[Any]

    by_label: ClassVar[bool]  # whether a row has the effects of one label only

    @property
    def reads(self) -> set[int]:
        """Positions of the columns of X that its effects depend on."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Number of effects ``L q``."""
        return len(self.labels) * len(self.effects)

    def codes(self, X: Any) -> Array:
        """Code ``(n,)`` of the label of each row; of terms ``by_label``."""
        raise NotImplementedError

    def values(self, X: Any) -> Array:
        """Numbers ``(n, q)`` that multiply the effects of the row's label; ``by_label``."""
        raise NotImplementedError

    def matrix(self, X: Any) -> Any:
        """Columns of the effects ``(n, L q)``, those of a label side by side; dense or sparse."""
        raise NotImplementedError

    def unit(self, X: Any, weight: Array | None) -> Array:
        """Units ``(q,)`` of the effects per unit of the predictor."""
        raise NotImplementedError

    def prior(self, group_prior: GroupPrior) -> GroupPrior:
        """Prior of its covariance; ``group_prior`` is that of groups."""
        raise NotImplementedError

    def add(self, eta: Array, X: Any, effects: Array, drawn: Callable[[float], Array]) -> None:
        """Add the effects ``(q, L, S)`` to predictors ``(n, S)`` of encoded rows.

        ``drawn`` makes the effects ``(q, S)`` of a label that the fit did not see, given its code.
        """
        raise NotImplementedError

    def sums(self, X: Any, weight: Array, effects: Array, drawn: Callable[[float], Array]) -> Array:
        """Sums ``(M, S)`` over rows, with weights ``(n, M)``, of what :meth:`add` adds."""
        raise NotImplementedError

    @property
    def effect_names(self) -> list[str]:
        """Names of the effects, label by label."""
        raise NotImplementedError

    def scale_names(self, pairs: Sequence[tuple[int, int]]) -> list[str]:
        """Names of standard deviations, and of the correlations of pairs of effects."""
        raise NotImplementedError


def column_of(X: Any, j: int) -> Array:
    """Column of encoded rows, or of some of their columns by position."""
    if isinstance(X, dict):
        return X[j]
    column = X[:, [j]].toarray()[:, 0] if issparse(X) else X[:, j]
    return column.astype(float)
