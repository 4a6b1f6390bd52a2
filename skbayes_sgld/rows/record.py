"""Rows in memory: one record of everything that each row of a fit has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skbayes_sgld._checks import escaped
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.rows.fingerprint import Fingerprint

_KEPT = 2**22  # numbers in X, up to which a fit keeps a copy: 32 megabytes


@dataclass(frozen=True)
class Rows:
    """Checked rows of a fit.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, d)
    y : ndarray of shape (n,)
        As the user gave it; once a target has encoded it, numbers as the likelihood takes them.
    weight : ndarray of shape (n,) or None, default=None
        Once a target has encoded the rows: positive, and None where all are 1.
    offset : ndarray of shape (n,) or None, default=None
        Known part of a local parameter of each row.
    by_row : dict of ndarray of shape (n,), default={}
        Arguments by row that were given, by their names; a target makes the offset of them.
    columns : tuple of two ndarrays of shape (d,) or None, default=None
        Mean and spread of each column, in place of those of X.
    names : list of str or None, default=None
        Names of the columns.
    """

    X: Any
    y: Array
    weight: Array | None = None
    offset: Array | None = None
    by_row: Mapping[str, Array] = field(default_factory=dict)
    columns: tuple[Array, Array] | None = None
    names: list[str] | None = None

    why_no_learned_scale = ""  # why no prior can learn its scale from these rows
    n_batches = 0  # of partial_fit before these rows

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def column_names(self) -> list[str] | None:
        """Names of the columns as parameters have them."""
        return None if self.names is None else [escaped(name) for name in self.names]

    @property
    def given(self) -> str:
        """Name of the argument by row that was given, or ""."""
        return next(iter(self.by_row), "")

    def weighing(self, weight: Array | None) -> Rows:
        """Rows with these weights, if they are positive; weights are None where all are 1."""
        if weight is None or np.all(weight == 1.0):
            return replace(self, weight=None)
        if weight.all():
            return replace(self, weight=weight)
        some = weight > 0
        by_row = {name: values[some] for name, values in self.by_row.items()}
        return replace(self, X=self.X[some], y=self.y[some], by_row=by_row).weighing(weight[some])

    def total(self, likelihood: Likelihood) -> float:
        """Number of observations that the rows count as."""
        weight = likelihood.trial_weight(self.y, self.weight)
        return float(len(self.y) if weight is None else weight.sum())

    def copied(self) -> Rows:
        """Copy of rows that the caller's arrays cannot change."""
        weight, offset = (None if v is None else v.copy() for v in (self.weight, self.offset))
        return replace(self, X=self.X.copy(), y=self.y.copy(), weight=weight, offset=offset)

    # ---- what rows in blocks and batches of partial_fit do in their own way ---------------------

    def kept(self) -> Rows:
        """Rows for a result that measures on them: a copy where they are few."""
        return self.copied() if self.X.size <= _KEPT else self

    def bind(self, model: Any) -> tuple[Any, Any]:
        """Posterior under a model, checked to be proper, and the rows that later calls need."""
        return model.checked(self), self

    @property
    def screened(self) -> Rows | None:
        """Rows that the screen of the model may leave out; None where not all are at hand."""
        return self

    def fingerprint(self, target: Any) -> Fingerprint | None:
        """Sums by which a later call finds out whether it is given the same rows."""
        y = target.among_all(self.y)
        return target.fingerprint(Fingerprint.of(self.X, y, self.offset, self.weight))

    def stream(self, posterior: Any, draws: Any, target: Any) -> Any:
        """State that the next call of ``partial_fit`` goes on from; None after ``fit``."""
        return None

    def workers(self, n_jobs: int | None) -> Any:
        """Workers that run chains where the rows are; None: processes of this machine."""
        return None
