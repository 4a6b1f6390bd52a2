"""Targets that are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from skbayes_sgld._checks import check_size
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets.base import OfFamily

_SQUARED = 1e150  # size of y whose square is still a number


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers(OfFamily):
    """Numbers that the likelihood takes unchanged."""

    def encode(self, rows: Rows) -> tuple[Self, Rows]:
        """Target of these rows, and the rows of positive weight with numbers for y."""
        rows = rows.weighing(rows.weight)
        return self, rows.having(y=self._of_fit(rows.y))

    def _of_fit(self, y: Array) -> Array:
        """Checked numbers for the likelihood, in a fit."""
        return self.numbers(y)

    def numbers(self, y: Array) -> Array:
        """Observations as numbers of the likelihood, checked."""
        check_sizes(y, *self.family.sizes)
        return self.family.check_target(y)

    def scored(self, y: Array) -> Array:
        """Numbers of y for a score; an error names y."""
        return self.numbers(y)


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurements(Numbers):
    """Numbers of any sign around a mean, or averages of several; at least two must differ.

    Attributes
    ----------
    standardised : bool, default=False
        Whether the fit standardises y first, so that only later calls take squares of it.
    """

    standardised: bool = False

    fewest_rows: ClassVar[int] = 2

    def _of_fit(self, y: Array) -> Array:
        low, high = (0.0, np.inf) if self.standardised else self.family.sizes
        check_sizes(y, low, high)
        return self.family.check_target(y) if self.first else y.astype(float)

    def numbers(self, y: Array) -> Array:
        """Observations as numbers of the likelihood, checked."""
        check_sizes(y, *((0.0, _SQUARED) if self.standardised else self.family.sizes))
        return y.astype(float)

    def attributes(self, parts: dict[str, Array], names: list[str]) -> dict[str, Any]:
        """Fitted attributes, from the parts of one draw; a variance may be given."""
        found = super().attributes(parts, names)
        return found if names else found | {"noise_variance_": self.family.sigma2}

    def before_fit(self, y: Any, n_rows: int) -> tuple[Array, Likelihood, Array | None]:
        """Numbers for y (NaN if not given), the likelihood, and no labels."""
        found = super().before_fit(y, n_rows)
        if y is not None and self.family.infers_noise:
            check_size(float(np.abs(found[0]).max(initial=0.0)), "y")
        return found

    def of_blocks(self, arguments: tuple[str, ...]) -> Self:
        """Target of rows in blocks, which may be averages."""
        self._check_averages("n_averaged" in arguments)
        return super().of_blocks(arguments)

    def numbers_by_row(self, X: Any, by_row: Mapping[str, Any]) -> dict[str, Array]:
        """Checked arguments by row that are given."""
        self._check_averages(by_row.get("n_averaged") is not None)
        return super().numbers_by_row(X, by_row)

    def _check_averages(self, given: bool) -> None:
        """Raise if averages are given and the noise is not normal."""
        if given and self.family.spread_at is None:
            raise ValueError(
                "n_averaged is given, and noise_distribution='student_t': a mean of several "
                "observations with t-distributed noise has another distribution, with lighter "
                "tails; set noise_distribution='normal'."
            )


def check_sizes(y: Array, low: float, high: float) -> None:
    """Raise unless y is numeric and the squares of its values are in range."""
    if y.dtype.kind not in "biuf":
        raise TypeError(f"y has dtype {y.dtype}; the target of a regression must be numeric.")
    check_size(float(np.abs(y).max()), "y", low, high)
