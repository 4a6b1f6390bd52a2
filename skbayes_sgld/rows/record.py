"""Rows in memory: everything that the rows of a fit have, in one record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter, methodcaller
from typing import Any, Self

import numpy as np
from scipy import sparse

from skbayes_sgld._checks import escaped
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.rows.fingerprint import Fingerprint

MOST_KEPT = 2**22  # numbers in X up to which a fit and its result keep a copy: 32 megabytes


@dataclass(frozen=True)
class Rows:
    """Checked rows of a fit.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, d)
    values : RowValues
        Everything that the rows bring besides their columns. Observations and weights are as the
        user gives them; after a target has encoded the rows, they are numbers as the likelihood
        takes them, and positive weights, or None if all are 1.
    moments : tuple of two ndarrays of shape (d,) or None, default=None
        Mean and spread of each column, if they are not those of X.
    names : list of str or None, default=None
        Names of the columns.
    is_copy : bool, default=False
        Whether the arrays are a copy, which no caller can change.
    """

    X: Any
    values: RowValues
    moments: tuple[Array, Array] | None = None
    names: list[str] | None = None
    is_copy: bool = False

    mixed = None  # what the columns of X are, in a mixed model
    why_no_learned_scale = ""  # why no prior can learn its scale from these rows
    n_batches = 0  # of partial_fit before these rows

    @property
    def y(self) -> Array:
        """Observations ``(n,)``."""
        assert self.values.y is not None
        return self.values.y

    @property
    def weight(self) -> Array | None:
        """Weights ``(n,)``; None if all are 1."""
        return self.values.weight

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def with_coefficients(self) -> tuple[int, list[str] | None, Mapping[Any, int] | None]:
        """Number and names of the columns that have coefficients: all."""
        return self.n_features, self.names, None

    @property
    def column_names(self) -> list[str] | None:
        """Names of the columns as parameters have them."""
        return None if self.names is None else [escaped(name) for name in self.names]

    def changed(self, change: Callable[[Any], Any]) -> Rows:
        """Rows whose arrays with a value for each row are all changed in one way, as by a slice."""
        return replace(self, X=change(self.X), values=self.values.changed(change))

    def followed_by(self, other: Rows) -> Rows:
        """These rows and then the other's."""
        X: Any = (
            sparse.csr_array(sparse.vstack([self.X, other.X]))
            if sparse.issparse(self.X) or sparse.issparse(other.X)
            else np.concatenate([self.X, other.X])
        )
        return replace(other, X=X, values=self.values.followed_by(other.values))

    def weighted(self, factor: float) -> Rows:
        """Rows whose weights are multiplied by a factor."""
        return self if factor == 1.0 else replace(self, values=self.values.weighted(factor))

    def having(self, **values: Any) -> Rows:
        """Rows some of whose values are replaced."""
        return replace(self, values=replace(self.values, **values))

    def having_weight(self, weight: Array | None) -> Rows:
        """Rows with these weights in place of their own; rows of weight 0 are left out.

        They are None if all are 1.
        """
        if weight is None or np.all(weight == 1.0):
            return self.having(weight=None)
        if weight.all():
            return self.having(weight=weight)
        some = self.having(weight=weight).changed(itemgetter(weight > 0))
        return some.having_weight(some.weight)

    def total(self, likelihood: Likelihood) -> float:
        """Number of observations that the rows stand for."""
        weight = likelihood.trial_weight(self.y, self.weight)
        return float(len(self.y) if weight is None else weight.sum())

    def copied(self) -> Rows:
        """Copy of rows that does not share memory with the caller's arrays."""
        return replace(self.changed(methodcaller("copy")), is_copy=True)

    # ---- what rows in blocks and batches of partial_fit do in their own way ---------------------

    def kept(self) -> Rows:
        """Rows for a result that uses them later: a copy, if they are few."""
        return self.copied() if self.X.size <= MOST_KEPT else self

    def bind(self, model: Any) -> tuple[Any, Any]:
        """Posterior under a model (raise if it is improper), and the rows that later calls need."""
        posterior = model.posterior(self)
        model.check(posterior)
        return posterior, self

    @property
    def screened(self) -> Rows | None:
        """Rows that the check of the model may leave out; None if not all are in memory."""
        return self

    def fingerprint(self, target: Any) -> Fingerprint | None:
        """Sums by which a later call recognises the same rows."""
        found: Fingerprint = target.fingerprint(self.X, self.values)
        return found

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
    is_copy = False
    screened = None
    mixed = None

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

    @property
    def with_coefficients(self) -> tuple[int, list[str] | None, Mapping[Any, int] | None]:
        """Number and names of the columns that have coefficients: all."""
        return self.rows.with_coefficients

    def total(self, likelihood: Likelihood) -> float:
        """Number of observations that the rows in memory stand for."""
        return self.rows.total(likelihood)

    def kept(self) -> Self:
        """These rows, which share no memory with the caller's arrays once they are bound."""
        return self

    def workers(self, n_jobs: int | None) -> Any:
        """None: chains run in processes of this machine."""
        return None
