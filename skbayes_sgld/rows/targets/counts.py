"""Targets that are counts, each over an exposure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.rows.checks import warn_of_fraction
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets.numbers import Numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts(Numbers):
    """Whole counts, each over an exposure of 1 or of another size."""

    def encode(self, rows: Rows) -> tuple[Self, Rows]:
        """Target of these rows, and the rows of positive weight with numbers for y."""
        exposed = "exposure" in self.arguments
        weighted_rates = self.likelihood.takes_rates and not exposed and rows.weight is not None
        target, rows = super().encode(rows)
        if not weighted_rates:
            warn_of_fraction(first_fraction(rows.y), with_exposure=exposed)
        return target, rows

    def _of_fit(self, y: Array) -> Array:
        return super().numbers(y)

    def numbers(self, y: Array) -> Array:
        """Observations as checked, whole numbers for the likelihood."""
        numbers, fraction = super().numbers(y), first_fraction(y)
        if fraction is not None:
            raise ValueError(
                f"y has the value {fraction:g}; probabilities are of whole counts. Give the counts "
                "as y, and the time, area or population they were made over as exposure."
            )
        return numbers

    def are_rates(self, y: Array, weight: Array | None) -> bool:
        """Whether y holds rates: with their exposures as weights they are counts."""
        return self.likelihood.takes_rates and weight is not None and first_fraction(y) is not None

    def scored(self, y: Array) -> Array:
        """Numbers of y for a score, which may be rates; an error names y."""
        return super().numbers(y)

    def shares(self, y: Array, size: Array) -> Array:
        """Rates: counts divided by their exposures."""
        return y / size


def first_fraction(y: Array) -> float | None:
    """The first number of y that is not whole; None if all are."""
    broken = y[y != np.floor(y)]
    return float(broken[0]) if len(broken) else None
