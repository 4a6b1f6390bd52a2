"""Rows in memory: everything that the rows of a fit have, in one record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter, methodcaller
from typing import Any, Self

import numpy as np

from skbayes_sgld._checks import escaped
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.rows.arguments import ROW_ARGUMENTS
from skbayes_sgld.rows.fingerprint import Fingerprint

_COPIED = 2**22  # up to this many numbers in X a fit keeps a copy: 32 megabytes


@dataclass(frozen=True)
class Rows:
    """Checked rows of a fit.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, d)
    y : ndarray of shape (n,)
        As given by the user; after a target has encoded it, numbers as the likelihood takes them.
    weight : ndarray of shape (n,) or None, default=None
        After a target has encoded the rows: positive, or None if all are 1.
    offset : ndarray of shape (n,) or None, default=None
        Number added to one of the local parameters of each row, as the log of an exposure is added
        to the linear predictor; ``Likelihood.offset_at`` tells which one.
    by_row : dict of ndarray of shape (n,), default={}
        Arguments by row that were given, by their names. A target turns one into the offset, or
        into y, and it is then left out.
    columns : tuple of two ndarrays of shape (d,) or None, default=None
        Mean and spread of each column, if they are not those of X.
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

    def changed(self, change: Callable[[Any], Any]) -> Rows:
        """Rows whose arrays with a value for each row are all changed in one way, as by a slice."""
        weight, offset = (None if v is None else change(v) for v in (self.weight, self.offset))
        by_row = {name: change(values) for name, values in self.by_row.items()}
        X, y = change(self.X), change(self.y)
        return replace(self, X=X, y=y, weight=weight, offset=offset, by_row=by_row)

    def with_offset(self, offset: Array | None) -> Rows:
        """Rows with this offset, and without the argument by row that it was made of."""
        others = {name: v for name, v in self.by_row.items() if not ROW_ARGUMENTS[name].offset}
        return replace(self, offset=offset, by_row=others)

    def weighing(self, weight: Array | None) -> Rows:
        """Rows with a positive weight, with these weights, which are None if all are 1."""
        if weight is None or np.all(weight == 1.0):
            return replace(self, weight=None)
        if weight.all():
            return replace(self, weight=weight)
        some = replace(self, weight=weight).changed(itemgetter(weight > 0))
        return some.weighing(some.weight)

    def total(self, likelihood: Likelihood) -> float:
        """Number of observations that the rows stand for."""
        weight = likelihood.trial_weight(self.y, self.weight)
        return float(len(self.y) if weight is None else weight.sum())

    def copied(self) -> Rows:
        """Copy of rows that does not share memory with the caller's arrays."""
        return self.changed(methodcaller("copy"))

    # ---- what rows in blocks and batches of partial_fit do in their own way ---------------------

    def kept(self) -> Rows:
        """Rows for a result that uses them later: a copy, if they are few."""
        return self.copied() if self.X.size <= _COPIED else self

    def bind(self, model: Any) -> tuple[Any, Any]:
        """Posterior under a model (raise if it is improper), and the rows that later calls need."""
        return model.checked(self), self

    @property
    def screened(self) -> Rows | None:
        """Rows that the check of the model may leave out; None if not all are in memory."""
        return self

    def fingerprint(self, target: Any) -> Fingerprint | None:
        """Sums by which a later call recognises the same rows."""
        y = target.among_all(self.y)
        return target.fingerprint(Fingerprint.of(self.X, y, self.offset, self.weight))

    def stream(self, posterior: Any, draws: Any, target: Any) -> Any:
        """State from which the next call of ``partial_fit`` continues; None after ``fit``."""
        return None

    def workers(self, n_jobs: int | None) -> Any:
        """Workers that run chains at the place of the rows; None: processes of this machine."""
        return None


@dataclass(frozen=True)
class RowsInPart:
    """Base of rows of which a part is in memory: blocks, and batches of ``partial_fit``.

    Attributes
    ----------
    rows : Rows
        Rows in memory.
    """

    rows: Rows

    n_batches = 0
    screened = None

    @property
    def X(self) -> Any:
        """Columns of the rows in memory."""
        return self.rows.X

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.rows.n_features

    @property
    def names(self) -> list[str] | None:
        """Names of the columns."""
        return self.rows.names

    def total(self, likelihood: Likelihood) -> float:
        """Number of observations that the rows in memory stand for."""
        return self.rows.total(likelihood)

    def kept(self) -> Self:
        """These rows, which share no memory with the caller's arrays once they are bound."""
        return self

    def workers(self, n_jobs: int | None) -> Any:
        """None: chains run in processes of this machine."""
        return None
