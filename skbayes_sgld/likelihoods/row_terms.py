"""Known numbers of rows that predictions take with their columns: offsets and trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skbayes_sgld._typing import Array


@dataclass(frozen=True)
class RowTerms:
    """Known numbers of some rows, which their distributions depend on besides X.

    Attributes
    ----------
    offset : ndarray of shape (n,) or None
        Number that is added to one local parameter of each row, ``Likelihood.offset_at``: the log
        of an exposure, or minus the log of the number of observations that an average is of.
    trials : ndarray of shape (n,) or None
        Number of trials of each row, if observations are totals; None: one trial each.
    """

    offset: Array | None = None
    trials: Array | None = None

    def __getitem__(self, rows: Any) -> RowTerms:
        """Numbers of some of the rows."""
        offset, trials = (None if v is None else v[rows] for v in (self.offset, self.trials))
        return RowTerms(offset, trials)


NO_TERMS = RowTerms()
