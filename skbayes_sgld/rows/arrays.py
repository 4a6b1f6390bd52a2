"""Rows in arrays, frames and sparse matrices: how they are checked and encoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_y,
    _get_feature_names,
    check_consistent_length,
)

from skbayes_sgld._checks import check_readable, naming
from skbayes_sgld._sparse import as_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.rows.arguments import given, values_brought
from skbayes_sgld.rows.checks import (
    FLOATS,
    check_no_gap,
    check_numeric,
    check_real,
    check_weight,
    warn_of_light_rows,
)
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets.base import Target


@dataclass(frozen=True)
class Arrays:
    """Rows as ``fit`` is given them, before any check.

    Attributes
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y, sample_weight : array-like of shape (n,), or None
    by_row : dict
        Arguments by row; None if they are not given.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    by_row: Mapping[str, Any] = field(default_factory=dict)

    first = True  # a fit begins with these rows; others must have the columns of the fit

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments by row that are given."""
        return tuple(given(self.by_row))

    def encode(self, target: Target, estimator: Any) -> tuple[Target, Rows]:
        """Target of the rows, and the rows as the model takes them, both checked."""
        _check_one_column(self.y, estimator._advice_on_columns)
        target, y = target.read_type(self.y)
        X, names = checked_X(estimator, self.X, target.fewest_rows, first=self.first)
        y = checked_y(estimator, y, X, target.numeric)
        estimator._check_values(X, names, fitting=True)
        weight = None if self.sample_weight is None else check_weight(self.sample_weight, X)
        target = target.with_arguments(self.arguments)
        brought = values_brought(target.check_by_row(X, self.by_row))
        values = RowValues(y, weight).beside(brought)
        target, rows = target.encode(Rows(X, values, names=names))
        if weight is not None and rows.weight is not None:
            warn_of_light_rows(float(rows.weight.sum()), *rows.X.shape)
        return target, rows


def _check_one_column(y: Any, advice: str) -> None:
    """Raise if y has several columns, with the estimator's advice on what to give instead."""
    if advice and has_outputs(y) and np.asarray(y).shape[1] > 1:
        raise ValueError(f"y has shape {np.asarray(y).shape}; {advice}")


def has_outputs(y: Any) -> bool:
    """Whether y is two-dimensional, with one column for each output."""
    if type(y).__module__.startswith("dask."):  # making an array of it would compute it
        return False
    try:
        return np.asarray(y).ndim == 2
    except ValueError:  # lists of unequal lengths: the validation raises later
        return False


def checked_X(
    estimator: Any, X: Any, fewest_rows: int = 1, *, first: bool = False
) -> tuple[Any, list[str] | None]:
    """Rows checked by scikit-learn, sparse ones in compressed form; and the columns' names.

    ``first`` says whether a fit begins with these rows; others must have the columns of the fit.
    Values may still be infinite, or missing.
    """
    if not first:
        check_readable(X, "X")
        with naming("X"):  # before the values: another column of text is none to encode
            _check_feature_names(estimator, X, reset=False)
    check_real(X)
    checks = {
        "dtype": FLOATS,
        "accept_sparse": "csr" if estimator._takes_sparse else False,
        "ensure_all_finite": False,
        "ensure_min_samples": fewest_rows,
    }
    with np.errstate(all="ignore"), naming("X"):  # numbers are summed, some infinite
        names = _get_feature_names(X) if first else getattr(estimator, "feature_names_in_", None)
        rows = check_array(X, estimator=estimator, input_name="X", **checks)
        if not first:
            _check_n_features(estimator, rows, reset=False)
    return as_rows(rows) if issparse(rows) else rows, None if names is None else list(names)


def check_fitted_columns(estimator: Any, X: Any) -> None:
    """Raise if columns with names are not those of a fit that had names."""
    with naming("X"):
        if _get_feature_names(X) is not None and hasattr(estimator, "feature_names_in_"):
            _check_feature_names(estimator, X, reset=False)


def checked_y(estimator: Any, y: Any, X: Any, numeric: bool) -> Array:
    """Observations, one for each row of X."""
    check_readable(y, "y")
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; give "
            "the observation of each row of X."
        )
    if numeric:
        check_numeric(y)
    with np.errstate(all="ignore"), naming("y"):
        check_no_gap(y)
        checked: Array = _check_y(y, y_numeric=numeric, estimator=estimator)
    with naming("X", "y"):
        check_consistent_length(X, checked)
    return checked
