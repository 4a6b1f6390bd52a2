"""Marginal effects, comparisons and partial dependence on the scale of the response.

Each is a function of weighted sums over rows of the response under every draw,

    F_s(X, w) = sum_i w_i mu_s(x_i),    mu_s(x) = E[y | x, theta_s],

whatever the model, its link and the transformers before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from scipy import sparse

from skbayes_sgld._checks import (
    as_array,
    as_numbers,
    check_choice,
    check_lengths,
    check_number,
    naming,
)
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.diagnostics import tails
from skbayes_sgld.prediction.wrappers import unwrap, unwrap_for

_LONG = 5e9  # predictions of a row under a draw; a logistic model makes 1e9 in 45 s
_NUMBERS = 2**23  # of the response that are held at once: 64 megabytes


@dataclass(frozen=True)
class Response:
    """Expected response of a fitted model at the rows X, under every draw.

    Attributes
    ----------
    estimator : estimator
        Model, or wrappers around it.
    X : DataFrame, csr_array or ndarray of float
        Rows as the outermost wrapper takes them.
    exposure : ndarray of shape (n,) or None
        Of counts.
    """

    estimator: Any
    X: Any
    exposure: Array | None = None

    @classmethod
    def of(cls, caller: str, estimator: Any, X: Any, exposure: Any) -> Self:
        """Response at checked rows."""
        params = () if exposure is None else ("exposure",)
        unwrap_for(caller, "posterior_mean_draws", estimator, params=params)
        X = X.to_pandas() if hasattr(X, "to_pandas") else X  # of Polars and Arrow
        if not isinstance(X, pd.DataFrame):
            numbers = {"dtype": np.float64, "accept_sparse": "csr"}
            X = as_array(X, "X", (2,), ensure_all_finite="allow-nan", **numbers)
        if not X.shape[0]:
            raise ValueError("X has no rows; give one at least.")
        if exposure is not None:
            exposure = as_numbers(exposure, "exposure")
            exposure = exposure if exposure.ndim else np.full(X.shape[0], exposure)
            check_lengths(X=X, exposure=exposure)
        return cls(estimator, X, exposure)

    def averaged(self, kind: Any) -> Self:
        """Response at the rows, or at one row: means of numbers, most frequent levels of others."""
        check_choice(kind, "kind", ("average", "at_mean"))
        if kind == "average":
            return self
        with np.errstate(over="ignore", invalid="ignore"):  # the model refuses infinities
            exposure = None if self.exposure is None else self.exposure.mean(keepdims=True)
            return replace(self, X=_typical(self.X), exposure=exposure)

    @property
    def names(self) -> list[Any]:
        """Names of the columns, or x0, x1, ...."""
        is_frame = isinstance(self.X, pd.DataFrame)
        return list(self.X.columns) if is_frame else [f"x{j}" for j in range(self.X.shape[1])]

    def position(self, column: Any, argument: str) -> int:
        """Position of the column that has this name or position."""
        names = self.names
        if isinstance(column, (str, int, np.integer, tuple)) and column in names:
            return names.index(column)
        whole = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
        if whole and -len(names) <= column < len(names):
            return int(column) % len(names)
        listed = ", ".join(map(repr, names[:8])) + ", ..." * (len(names) > 8)
        raise ValueError(f"{argument}={column!r} is not a column of X, which has {listed}.")

    def column(self, j: int) -> Any:
        """Column of the rows, a series or an array."""
        X = self.X
        if isinstance(X, pd.DataFrame):
            return X.iloc[:, j]
        return X[:, [j]].toarray().ravel() if sparse.issparse(X) else X[:, j]

    def levels(self, j: int) -> list[Any] | None:
        """Levels of a factor, the reference first; None of a column of numbers."""
        column = pd.Series(self.column(j))
        if isinstance(column.dtype, pd.CategoricalDtype):
            return list(column.cat.remove_unused_categories().cat.categories)
        if is_bool_dtype(column):
            return [False, True]
        levels = column.dropna().unique()
        if is_numeric_dtype(column):
            return [0, 1] if np.isin(levels, (0, 1)).all() else None
        if len(levels) > 50:  # names or dates
            raise ValueError(
                f"X has {len(levels)} different values in the column {self.names[j]!r}, which is "
                "not of numbers; name the columns of interest in columns=."
            )
        with naming("X"):
            return sorted(levels)

    def at(self, j: int, values: Any) -> Self:
        """Response at the rows with other values in a column."""
        X = self.X
        if isinstance(X, pd.DataFrame):
            X = X.copy(deep=False)
            X.isetitem(j, values)
        elif sparse.issparse(X):
            column = sparse.csr_array(np.reshape(values, (-1, 1)))
            X = sparse.hstack([X[:, :j], column, X[:, j + 1 :]], format="csr")
        else:
            X = X.copy()
            X[:, j] = values
        return replace(self, X=X)

    def at_level(self, j: int, level: Any) -> Self:
        """Response at the rows with one value in a column."""
        column = self.column(j)
        return self.at(j, _constant(level, column, len(column)))

    def without_gaps(self, j: int) -> tuple[Self, Array]:
        """Response at the rows whose number in a column is not missing, and these numbers."""
        x = np.asarray(self.column(j), dtype=float)
        rows = np.flatnonzero(np.isfinite(x))
        if len(rows) == len(x):
            return self, x
        exposure = None if self.exposure is None else self.exposure[rows]
        return replace(self, X=_rows(self.X, rows), exposure=exposure), x[rows]

    def mean(self) -> Array:
        """Mean over the rows under every draw ``(S,)``, or ``(S, K)`` of classes and outputs."""
        n = self.X.shape[0]
        return self.total(np.full(n, 1.0 / n))

    def total(self, weight: Array) -> Array:
        """Weighted sum over the rows under every draw ``(S,)`` or ``(S, K)``."""
        model, total = unwrap(self.estimator).model, 0.0
        n_chains, n_draws, _ = model.posterior_.values.shape
        size = max(1, _NUMBERS // (n_chains * n_draws * len(components(model)[1])))
        for start in range(0, self.X.shape[0], size):
            rows = np.arange(start, min(start + size, self.X.shape[0]))
            row_data = {} if self.exposure is None else {"exposure": self.exposure[rows]}
            core = unwrap(self.estimator, _rows(self.X, rows))
            draws = core.from_model(core.model.posterior_mean_draws(core.X, **row_data))
            total = total + np.einsum("sn...,n->s...", draws, weight[rows], optimize=True)
        return np.asarray(total)

    def slope(self, j: int, spread: float) -> Array:
        """Mean over the rows of the derivative by a column of a spread, under every draw."""
        some, x = self.without_gaps(j)
        # the error of the difference is below that of rounding, 1e-8, and no value of a column of
        # positive numbers becomes negative, unless it is a ten millionth of the range
        width = np.clip(1e-4 * np.abs(x), 1e-7 * spread, 1e-4 * spread)
        low, high = x - width, x + width
        weight = 1.0 / (high - low) / len(x)
        return some.at(j, high).total(weight) - some.at(j, low).total(weight)


def _rows(X: Any, rows: Array) -> Any:
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def _typical(X: Any) -> Any:
    """One row: means of columns of numbers, the most frequent levels of others."""
    if not isinstance(X, pd.DataFrame):
        mean = X.mean(axis=0) if sparse.issparse(X) else np.nanmean(X, axis=0)
        return np.reshape(mean, (1, -1))
    row = X.iloc[:1].copy()
    for j in range(X.shape[1]):
        column = X.iloc[:, j]
        numeric = is_numeric_dtype(column) and not is_bool_dtype(column)
        value = column.mean() if numeric else column.mode(dropna=False).iloc[0]
        row.isetitem(j, _constant(value, column, 1))
    return row


def _constant(value: Any, column: Any, n: int) -> Any:
    """Column of one value; text and categories keep their type."""
    if not isinstance(column, pd.Series) or is_numeric_dtype(column):
        return np.full(n, value)
    dtype: Any = column.dtype
    return pd.array([value] * n, dtype=dtype)


def components(model: Any) -> tuple[str | None, list[Any]]:
    """Kind and names of the response's components: classes, outputs, or one without a name."""
    if hasattr(model, "classes_"):
        return "class", list(model.classes_)
    outputs = vars(model).get("output_names_")
    return (None, [None]) if outputs is None else ("output", list(outputs))


@numpy_defaults
def effects(
    estimator: Any,
    X: Any,
    columns: Any = None,
    kind: str = "average",
    *,
    step: float | None = None,
    coverage: float = 0.9,
    exposure: ArrayLike | None = None,
) -> pd.DataFrame:
    r"""Marginal effects of columns on the response, with credible intervals, through wrappers.

    Under every draw :math:`\theta_s` the effect of a column of numbers is the mean of the
    derivative of the expected response, and that of a level of a factor is the mean difference from
    its first level, all other columns as they are:

    .. math::

        \frac{1}{n} \sum_i \frac{\partial}{\partial x_{ij}} E[y \mid x_i, \theta_s]
        \qquad \text{and} \qquad
        \frac{1}{n} \sum_i \left(E[y \mid x_i, x_{ij} = b, \theta_s]
        - E[y \mid x_i, x_{ij} = a, \theta_s]\right).

    These are ``avg_slopes`` of marginaleffects (Arel-Bundock, Greifer & Heiss 2024) and
    ``get_margeff(dummy=True)`` of statsmodels. The table summarises their posterior.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator of this package, or a ``Pipeline``, a search, a
        ``TransformedTargetRegressor`` or a classifier of a chosen threshold around one, in any
        order. Of a transformed target the response is the inverse of the transformed mean, as
        ``predict`` gives it: for a log of the target the median of y.
    X : array-like of shape (n_samples, n_features)
        Rows to average over, as the outermost wrapper takes them; those of ``fit``, usually. The
        time grows with rows, draws and columns; of many rows give a random part.
    columns : str, int or list of these, default=None
        Columns of X by name, or by position. None: all.
    kind : {"average", "at_mean"}, default="average"
        ``"average"``: the mean effect over the rows. ``"at_mean"``: the effect in one row, of the
        mean of every column of numbers and the most frequent level of every other.
    step : float or None, default=None
        For columns of numbers: None is the derivative, by central differences; a number is the
        mean difference between the response at ``x + step`` and at ``x``.
    coverage : float, default=0.9
        Probability of the equal-tailed credible interval, in (0, 1).
    exposure : array-like of shape (n_samples,) or float, default=None
        Of counts: time, area or population of each row. None: 1, so that effects are on the rate.

    Returns
    -------
    table : pandas.DataFrame
        One row for each column of numbers and for each level of a factor but the first; of a
        classifier for each class, of several outputs for each output.

        ``column``
            Name of the column; ``x0``, ``x1``, ... of an array.
        ``contrast``
            ``dy/dx``, ``+step``, or ``b - a`` for the levels b and a.
        ``class`` or ``output``
            Of a classifier, or of several outputs. Effects on the probabilities of all classes add
            up to 0.
        ``estimate``, ``sd``, ``lower``, ``upper``
            Posterior mean and sd, and the ends of the interval.

    Raises
    ------
    ValueError
        For columns that X does not have, or that have no effect to measure: one level, or more than
        50 of them.

    Notes
    -----
    A factor is a column of a data frame that holds no numbers: text, categories or truth values. A
    column of numbers that are all 0 or 1 is a factor too. The levels are those in X, in the order
    of their categories, or sorted; for another reference reorder the categories of ``X``. Rows in
    which a number is missing have no derivative by it and are left out of its mean.

    The interval is that of the mean over these very rows. That other rows could have been drawn is
    not part of it.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sgld import SGLDLogisticRegression, effects
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = make_pipeline(StandardScaler(), SGLDLogisticRegression(random_state=0))
    >>> table = effects(model.fit(X, y > 200), X, columns=["bmi", "bp"])
    >>> print(table[table["class"]].round(3))
      column contrast  class  estimate     sd  lower  upper
    1    bmi    dy/dx   True     0.024  0.004  0.017  0.030
    3     bp    dy/dx   True     0.006  0.001  0.004  0.008
    """
    check_number(coverage, "coverage", low=0, high=1)
    if step is not None:
        check_number(step, "step")
        if step == 0:
            raise ValueError("step=0 is out of range; give a number that is not 0, or None.")
    rows = Response.of("effects", estimator, X, exposure)
    at, names = rows.averaged(kind), rows.names
    listed = names if columns is None else columns
    if isinstance(listed, np.ndarray):
        listed = np.atleast_1d(listed)
    elif not isinstance(listed, (list, pd.Index)):
        listed = [listed]
    positions = [rows.position(column, "columns") for column in listed]
    _warn_of_time(at, len(positions))
    by_column = {j: _contrasts(rows, at, j, step) for j in positions}
    for j, contrasts in by_column.items():
        if not contrasts and (columns is not None or not any(by_column.values())):
            raise ValueError(
                f"X has one level in the column {names[j]!r}; a comparison needs rows of two."
            )
    return _table(
        {(names[j], name): draws for j, each in by_column.items() for name, draws in each.items()},
        *components(unwrap(estimator).model),
        coverage,
    )


def _warn_of_time(at: Response, n_columns: int) -> None:
    """Warn of effects that take minutes, of very many rows."""
    draws = getattr(getattr(unwrap(at.estimator).model, "posterior_", None), "values", None)
    n_rows, n_draws = at.X.shape[0], 0 if draws is None else draws.shape[0] * draws.shape[1]
    if 2 * n_rows * n_draws * n_columns > _LONG:
        warn(
            f"effects predicts {n_rows:,} rows under {n_draws:,} draws twice for each of "
            f"{n_columns} columns, which takes minutes or more; give a random part of the rows, "
            "such as 2,000, or one column by columns=.",
            UserWarning,
        )


def dependence(
    estimator: Any, X: Any, column: Any, kind: Any, n_points: int, exposure: Any
) -> tuple[str, Array, Array]:
    """Name of a column, a grid of its values, and the mean response there ``(G, S[, K])``.

    The grid of a column of numbers is equidistant over its range, and that of a factor holds its
    levels, as objects.
    """
    rows = Response.of("PartialDependenceDisplay", estimator, X, exposure)
    at, j = rows.averaged(kind), rows.position(column, "column")
    levels = rows.levels(j)
    if levels is None:
        x = rows.without_gaps(j)[1]
        grid = np.linspace(x.min(), x.max(), n_points)
    else:
        grid = np.array(levels, dtype=object)
    draws = np.array([at.at_level(j, value).mean() for value in grid])
    return str(rows.names[j]), grid, draws


def _contrasts(rows: Response, at: Response, j: int, step: float | None) -> dict[str, Array]:
    """Draws of the effects of a column by the contrasts' names.

    ``rows`` have the levels and the spread of the column; effects are averaged over ``at``.
    """
    levels = rows.levels(j)
    if levels is not None:
        reference = at.at_level(j, levels[0]).mean() if len(levels) > 1 else 0.0
        return {f"{b} - {levels[0]}": at.at_level(j, b).mean() - reference for b in levels[1:]}
    if step is not None:
        some, x = at.without_gaps(j)
        with naming("step"):
            return {f"{step:+g}": some.at(j, x + step).mean() - some.mean()}
    x = rows.without_gaps(j)[1]
    return {"dy/dx": at.slope(j, float(np.ptp(x) or np.abs(x).max() or 1.0))}


def _table(
    draws: dict[tuple[Any, str], Array], kind: str | None, names: list[Any], coverage: float
) -> pd.DataFrame:
    """Summary of the draws of contrasts, one row for each component of the response."""
    table = []
    for (column, contrast), values in draws.items():
        for name, each in zip(names, np.reshape(values, (len(values), -1)).T, strict=True):
            lower, upper = np.quantile(each, tails(coverage))
            of = {} if kind is None else {kind: name}
            row = {"column": column, "contrast": contrast, **of, "estimate": each.mean()}
            table.append(row | {"sd": each.std(), "lower": lower, "upper": upper})
    return pd.DataFrame(table)
