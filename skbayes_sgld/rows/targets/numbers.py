"""Targets that are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skbayes_sgld._checks import check_size
from skbayes_sgld._typing import Array
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets.base import Target

_SQUARED = 1e150  # size of y whose square is still a number


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers(Target):
    """Numbers that the likelihood takes unchanged."""

    def encode(self, rows: Rows) -> tuple[Self, Rows]:
        """Target of these rows, and the rows of positive weight with numbers for y."""
        rows = rows.having_weight(rows.weight)
        return self, rows.having(y=self._of_fit(rows.y))

    def _of_fit(self, y: Array) -> Array:
        """Checked numbers for the likelihood, in a fit."""
        return self.encode_y(y)

    def encode_y(self, y: Array) -> Array:
        """Observations as numbers of the likelihood, checked."""
        check_sizes(y, *self.likelihood.sizes)
        checked: Array = self.likelihood.check_target(y)
        return checked


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurements(Numbers):
    """Numbers of any sign around a mean, or averages of several; at least two must differ.

    Attributes
    ----------
    standardised : bool, default=False
        Whether the fit standardises y first, so that only later calls take squares of it.
    fewest_rows : int, default=2
        1 for later batches of ``partial_fit``, whose numbers may all be equal.
    """

    standardised: bool = False
    fewest_rows: int = 2

    def of_stream(self, stream: Any) -> Self:
        """Target of a batch: only the first must have two different numbers."""
        return replace(self, fewest_rows=1) if stream.n_batches else self

    def _of_fit(self, y: Array) -> Array:
        low, high = (0.0, np.inf) if self.standardised else self.likelihood.sizes
        check_sizes(y, low, high)
        if self.fewest_rows < 2:
            return y.astype(float)
        checked: Array = self.likelihood.check_target(y)
        return checked

    def encode_y(self, y: Array) -> Array:
        """Observations as numbers of the likelihood, checked."""
        check_sizes(y, *((0.0, _SQUARED) if self.standardised else self.likelihood.sizes))
        return y.astype(float)

    def fitted_attributes(self, parts: dict[str, Array], names: list[str]) -> dict[str, Any]:
        """Fitted attributes, from the parts of one draw; a variance may be given."""
        found = super().fitted_attributes(parts, names)
        return found if names else found | {"noise_variance_": self.likelihood.sigma2}

    def encode_before_fit(self, y: Any, n_rows: int) -> tuple[Self, Array]:
        """Target, and numbers for y (NaN if not given)."""
        target, numbers = super().encode_before_fit(y, n_rows)
        if y is not None and self.likelihood.infers_noise:
            check_size(float(np.abs(numbers).max(initial=0.0)), "y")
        return target, numbers

    def with_arguments(self, arguments: tuple[str, ...]) -> Self:
        """Target of rows that have these arguments by row; raise for averages, if noise is t."""
        self._check_averages("n_averaged" in arguments)
        return super().with_arguments(arguments)

    def check_by_row(self, X: Any, by_row: Mapping[str, Any]) -> dict[str, Array]:
        """Checked arguments by row, of those that are given."""
        self._check_averages(by_row.get("n_averaged") is not None)
        return super().check_by_row(X, by_row)

    def _check_averages(self, given: bool) -> None:
        """Raise if averages are given and the noise is not normal."""
        if given and self.likelihood.spread_at is None:
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
