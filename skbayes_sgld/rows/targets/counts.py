"""Targets that are counts, each over an exposure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.rows.checks import first_fraction, warn_of_fraction
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets.numbers import Numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts(Numbers):
    """Whole counts, each over an exposure of 1 or of another size."""

    def encode(self, rows: Rows) -> tuple[Self, Rows]:
        """Target of these rows, and the rows of positive weight with numbers for y."""
        exposed = bool(self.size_argument)
        weighted_rates = self.likelihood.takes_rates and not exposed and rows.weight is not None
        target, rows = super().encode(rows)
        if not weighted_rates:
            warn_of_fraction(first_fraction(rows.y), with_exposure=exposed)
        return target, rows

    def encode_later(
        self, X: Any, y: Array, by_row: Mapping[str, Array]
    ) -> tuple[Array, RowValues]:
        """Whole counts, checked, and what these checked arguments by row bring."""
        fraction = first_fraction(self.encode_y(y))
        if fraction is not None:
            raise ValueError(
                f"y has the value {fraction:g}; probabilities are of whole counts. Give the counts "
                "as y, and the time, area or population they were made over as exposure."
            )
        return super().encode_later(X, y, by_row)
