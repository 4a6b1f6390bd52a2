"""Targets that are totals: numbers of successes among trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Binomial, as_totals
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.rows.arguments import values_brought
from skbayes_sgld.rows.checks import one_a_row, trials_of
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets.base import Target
from skbayes_sgld.rows.targets.numbers import check_sizes


@dataclass(frozen=True, kw_only=True, eq=False)
class Totals(Target):
    """Numbers of successes, each among ``n_trials`` trials."""

    def encode(self, rows: Rows) -> tuple[Self, Rows]:
        """Target of these rows, and the rows with trials and a positive weight."""
        others = dict(rows.values.others)
        totals = totals_of(rows.X, rows.y, others.pop("trials"))
        weight, none = rows.weight, totals["trials"] == 0
        if none.any():  # rows without trials carry no information
            weight = np.where(none, 0.0, 1.0 if weight is None else weight)
        return self, rows.having(y=totals, others=others).having_weight(weight)

    def with_arguments(self, arguments: tuple[str, ...]) -> Self:
        """Target of rows that have these arguments by row; raise if trials are not among them."""
        if "n_trials" not in arguments:
            raise ValueError(
                "n_trials is None; give the trials of each row, of which y were successes: "
                "fit(X, y, n_trials=n), or blocks of (X, y, weight, n_trials)."
            )
        return super().with_arguments(arguments)

    def of_block(self, values: RowValues) -> RowValues:
        """Values as the likelihood takes them: for y records of successes and trials."""
        others = self.named(values.others)
        assert values.y is not None
        # by the names of arguments here, and by those of values in encode
        totals = as_totals(values.y, others.pop("n_trials", 1.0))
        return super().of_block(replace(values, y=totals, others=others))

    def check_by_row(self, X: Any, by_row: Mapping[str, Any]) -> dict[str, Array]:
        """Checked arguments by row; trials are 1 if they are not given."""
        numbers = super().check_by_row(X, by_row)
        return numbers if "n_trials" in numbers else numbers | {"n_trials": trials_of(1, X)}

    def observed(self, rows: Rows) -> tuple[Array, Array, RowValues]:
        """X, numbers of successes, and what the rows bring besides, trials among it."""
        X, totals, values = super().observed(rows)
        trials = RowValues(others={"trials": totals["trials"]})
        return X, totals["successes"], values.beside(trials)

    def encode_before_fit(self, y: Any, n_rows: int) -> tuple[Self, Array]:
        """Target, and NaN for y, which no scale depends on."""
        return self, np.full(n_rows, np.nan)

    def encode_y(self, y: Array) -> Array:
        """Numbers of successes; :meth:`encode_later` checks them with their trials."""
        check_sizes(y, *self.likelihood.sizes)
        return y

    def encode_later(
        self, X: Any, y: Array, by_row: Mapping[str, Array]
    ) -> tuple[Array, RowValues]:
        """Numbers of successes, and what these arguments by row bring, trials among it."""
        totals = totals_of(X, y, by_row.get("n_trials", 1))
        return totals["successes"], values_brought({**by_row, "n_trials": totals["trials"]})


@dataclass(frozen=True, kw_only=True, eq=False)
class TotalsOfLabels(Totals):
    """Totals of a classifier: of two labels, 0 and a success, 1.

    Attributes
    ----------
    class_weight : dict, str or None, default=None
        Parameter of the estimator, which has no meaning here.
    """

    likelihood: Any = Binomial()
    class_weight: Any = None

    numeric = False

    check_by_row = Target.check_by_row  # None stands for one trial, which is a label

    def with_arguments(self, arguments: tuple[str, ...]) -> Self:
        """Target of rows that have these arguments by row; raise where classes have weights."""
        if self.class_weight is not None:
            raise ValueError(
                f"class_weight={self.class_weight!r} has no meaning for totals; leave it None, and "
                "weigh rows by sample_weight."
            )
        return replace(super().with_arguments(arguments), classes=np.arange(2))


def totals_of(X: Any, y: Array, n_trials: Any) -> Array:
    """Checked records of successes and trials."""
    if y.dtype.kind not in "biuf":
        raise TypeError(
            f"y has dtype {y.dtype}; with n_trials, y is the number of successes of each row."
        )
    totals = Binomial().check_target(as_totals(y, one_a_row(n_trials, "n_trials", X)))
    if not totals["trials"].any():
        raise ValueError("n_trials is 0 in every row; at least one row must have trials.")
    return totals
