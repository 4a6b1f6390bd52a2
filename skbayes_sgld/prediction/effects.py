"""Marginal effects, comparisons and partial dependence on the scale of the response.

Each is a function of weighted sums over rows of the response under every draw,

    F_s(X, w) = sum_i w_i mu_s(x_i),    mu_s(x) = E[y | x, theta_s],

whatever the model, its link and the transformers before it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import linalg, sparse

from skbayes_sgld._checks import (
    as_numbers,
    check_choice,
    check_lengths,
    check_number,
    naming,
    printable,
)
from skbayes_sgld._linalg import one_blas_thread, sum_in_threads
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._progress import stages
from skbayes_sgld._random import draw_seed
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.diagnostics import tails
from skbayes_sgld.prediction.factors import (
    Columns,
    close_by,
    different,
    numbers_of,
    reactions,
    spread_of,
)
from skbayes_sgld.prediction.tables import Table
from skbayes_sgld.prediction.wrappers import components, layers, unwrap, unwrap_for

# of the response in a part of the rows: with more, most of the time is spent on memory
_NUMBERS = 2**20
_FEWEST = 32  # draws that predict all rows if not all draws do, besides two for each parameter
_MOST_LEVELS = 50  # in a column that was not named; with more they are names, dates or codes


@dataclass(frozen=True)
class Response:
    """Expected response of a fitted model at the rows of a table, under every draw.

    Attributes
    ----------
    estimator : estimator
        Model, or wrappers around it.
    table : Table
        Rows as the outermost wrapper takes them.
    by_row : dict of str to ndarray of shape (n,)
        Arguments by row, such as exposures.
    n_rows : int or None
        Rows that are predicted under all draws, chosen at random; None: all.
    seed : int
        Seed of the choice of rows.
    to_all_draws : ndarray of shape (S, k) or None
        Matrix that maps corrections of the mean (all rows instead of a part of them) under some
        draws to corrections under all draws.
    rows : ndarray of int of shape (n,) or None
        Positions of the rows in the user's X; None: those of the table.
    groups : str or None
        ``"population"`` to leave effects of groups out.
    """

    estimator: Any
    table: Table
    by_row: dict[str, Array] = field(default_factory=dict)
    n_rows: int | None = None
    seed: int = 0
    to_all_draws: Array | None = None
    rows: Array | None = None
    groups: str | None = None

    @classmethod
    def of(
        cls,
        caller: str,
        estimator: Any,
        X: Any,
        by_row: dict[str, Any],
        n_rows: Any,
        random_state: Any,
        groups: Any = None,
    ) -> Self:
        """Response at checked rows."""
        if n_rows is not None:
            check_number(n_rows, "n_rows", low=1, closed="left", integer=True)
        by_row = {name: value for name, value in by_row.items() if value is not None}
        params = [*by_row, "groups"] if groups is not None else by_row
        unwrap_for(caller, "posterior_mean_draws", estimator, params=params)
        table = Table.of(X)
        if not table.n_rows:
            raise ValueError("X has no rows; give one at least.")
        for name, value in by_row.items():
            numbers = as_numbers(value, name)
            by_row[name] = numbers if numbers.ndim else np.full(table.n_rows, numbers)
            check_lengths(X=table.X, **{name: by_row[name]})
        is_part = n_rows is not None and table.n_rows > n_rows
        matrix = _to_all_draws(unwrap(estimator).model.posterior_) if is_part else None
        seed = draw_seed(random_state)
        return cls(estimator, table, by_row, n_rows, seed, matrix, groups=groups)

    def columns(self, factors: Any) -> Columns:
        """The columns: numbers or factors; ``factors`` names some of the latter."""
        prepared = any(layer.is_step and len(outer) > 1 for outer, layer in layers(self.estimator))
        # no encoder takes sparse rows
        see = self._seen if prepared and not sparse.issparse(self.table.X) else None
        if self._mixed is not None:
            see = self._encoded
        named = [] if factors is None else self.positions(factors, "factors")
        return Columns(self.table, see, frozenset(named))

    def _seen(self, table: Table) -> Any:
        return unwrap(self.estimator, table.X).X

    @property
    def _mixed(self) -> Any:
        """Columns of a mixed model; None of other models."""
        model = unwrap(self.estimator).model
        of_output = vars(model).get("estimators_", [model])[0]
        return getattr(vars(of_output).get("_fitted"), "mixed", None)

    def _encoded(self, table: Table) -> Any:
        """Rows as the model sees them, with codes in place of labels of groups."""
        return self._mixed.encoded(self._seen(table), self.groups)

    def labels(self, known: Columns) -> list[int]:
        """Positions of the columns that a mixed model sees as labels of groups alone."""
        mixed = self._mixed
        if mixed is None:
            return []
        numbers = replace(known, see=lambda table: mixed.numbers(self._seen(table)))
        labels = replace(known, see=lambda table: mixed.labels.marks(self._seen(table)))
        return [
            j
            for j in range(len(known.table.names))
            if numbers.is_left_out(j) and not labels.is_left_out(j)
        ]

    def by(self, column: Any, known: Columns) -> Iterator[tuple[Any, Self, Columns]]:
        """Rows of each value of a column, with the value and the columns there."""
        values = self.table.column(self.position(column, "by"))
        for j in range(len(self.table.names)):
            known.jumps(j)  # what the steps do to numbers is found from all rows
        for value in different(values):
            keep = (values == value).to_numpy(dtype=bool, na_value=False)
            if keep.any():
                some = self.some(keep)
                yield value, some, replace(known, table=some.table)

    def at_kind(self, kind: Any, columns: Columns) -> Self:
        """Response at the rows, or at one row of mean numbers and most frequent levels."""
        check_choice(kind, "kind", ("average", "at_mean"))
        if kind == "average":
            return self
        with np.errstate(over="ignore", invalid="ignore"):  # the model raises for infinities
            by_row = {name: value.mean(keepdims=True) for name, value in self.by_row.items()}
            if "n_trials" in by_row:  # trials are whole numbers
                by_row["n_trials"] = by_row["n_trials"].round()
            return replace(self, table=columns.typical(), by_row=by_row)

    def positions(self, columns: Any, argument: str) -> list[int]:
        """Positions of columns, given one or several by name or position."""
        if isinstance(columns, np.ndarray):
            columns = np.atleast_1d(columns)
        elif not isinstance(columns, (list, pd.Index)):
            columns = [columns]
        return [self.position(column, argument) for column in columns]

    def position(self, column: Any, argument: str) -> int:
        """Position of the column that has this name or position."""
        names = self.table.names
        if isinstance(column, (str, int, np.integer, tuple)) and column in names:
            return names.index(column)
        whole = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
        if whole and -len(names) <= column < len(names):
            return int(column) % len(names)
        listed = ", ".join(map(repr, names[:8])) + ", ..." * (len(names) > 8)
        several = isinstance(column, (list, tuple, np.ndarray, pd.Index))
        one = "; give the name or position of one column" * several
        raise ValueError(f"{argument}={column!r} is not a column of X, which has {listed}{one}.")

    def at(self, table: Table) -> Self:
        """Response at the same rows with other values in a column."""
        return replace(self, table=table)

    def at_level(self, j: int, level: Any) -> Self:
        """Response at the rows with one value in a column."""
        return self.at(self.table.replaced(j, [level] * self.table.n_rows))

    def at_number(self, j: int, number: float) -> Self:
        """Response at the rows with one number in a column."""
        return self.at(self.table.moved(j, np.full(self.table.n_rows, number)))

    def some(self, keep: Array) -> Self:
        """Response at the rows that a mask keeps."""
        if keep.all():
            return self
        rows = np.flatnonzero(keep)
        by_row = {name: value[rows] for name, value in self.by_row.items()}
        origin = rows if self.rows is None else self.rows[rows]
        return replace(self, table=self.table.take(rows), by_row=by_row, rows=origin)

    def without_gaps(self, j: int) -> tuple[Self, Array]:
        """Response at the rows whose number in a column is not missing, and these numbers."""
        x = numbers_of(self.table.column(j))
        known = np.isfinite(x)
        return self.some(known), x[known]

    def mean(self, scale: Array | None = None) -> Array:
        """Mean over the rows under every draw ``(S,)``, or ``(S, K)`` of classes and outputs.

        ``scale (n,)`` multiplies the rows' responses. If there are very many rows, all draws
        predict a part of them, and some of the draws predict all. The difference between the two
        means is nearly linear in the parameters, so it is known under every draw by least squares.
        """
        n, size, matrix = self.table.n_rows, self.n_rows, self.to_all_draws
        scale = np.ones(n) if scale is None else scale
        if size is None or n <= size or matrix is None:
            return self._total(np.arange(n), scale / n)
        part = np.sort(np.random.RandomState(self.seed).choice(n, size, replace=False))
        of_part = np.zeros(n)
        of_part[part] = scale[part] / size
        added = self._total(np.arange(n), scale / n - of_part, matrix.shape[1])
        return self._total(part, of_part[part]) + np.tensordot(matrix, added, 1)

    def _total(self, rows: Array, weight: Array, n_draws: int | None = None) -> Array:
        """Weighted sum over some rows ``(S,)`` or ``(S, K)``, under all draws or under a few."""
        unwrapped = unwrap(self.estimator, self.table.take(rows).X)
        seen, model = Table.of(unwrapped.X), unwrapped.model
        n_all = n_draws or len(model.posterior_.flat)
        size = max(1, _NUMBERS // (n_all * len(components(model)[1])))

        def total(start: int) -> Array:
            some = np.arange(start, min(start + size, len(rows)))
            by_row: dict[str, Any] = {n: value[rows[some]] for n, value in self.by_row.items()}
            if self.groups is not None:
                by_row["groups"] = self.groups
            draws = model.posterior_mean_draws(seen.take(some).X, n_draws, 0, **by_row)
            with np.errstate(over="ignore", invalid="ignore"):
                draws = unwrapped.from_model(draws)
                sums = np.einsum("n...s,n->s...", draws, weight[some], optimize=True)
            if not np.isfinite(sums).all():
                self._refuse(rows[some], draws)
            return sums

        with warnings.catch_warnings():  # for a row whose response is infinite, or nearly so
            warnings.filterwarnings("ignore", ".*whose square is out of the range", UserWarning)
            return sum_in_threads(total, range(0, len(rows), size))

    def _refuse(self, rows: Array, draws: Array) -> None:
        """Raise for the first of the rows whose response is not finite under a draw."""
        finite = np.isfinite(draws.reshape(len(rows), -1)).all(axis=1)
        row = int(rows[finite.argmin()])
        row = row if self.rows is None else int(self.rows[row])
        raise ValueError(
            f"the expected response at row {row} of X (from 0) is out of the range of floating "
            "point numbers under a draw, so no mean over rows is known; check the units of its "
            "columns, or leave it out."
        )

    def slope(self, j: int, spread: float, jumps: bool) -> Array:
        """Mean derivative by a column over the rows, under every draw; ``spread`` is its range.

        Rows at which a step before the model jumps, as at the edge of a bin, are left out.
        """
        some, x = self.without_gaps(j)
        if jumps:
            keep = reactions(self._seen, some.table, j, x, close_by(x, spread)) >= 0
            some, x = some.some(keep), x[keep]
        width = close_by(x, spread)
        low, high = x - width, x + width
        scale = 1.0 / (high - low)
        ends = [some.at(some.table.moved(j, at)).mean(scale) for at in (high, low)]
        return ends[0] - ends[1]


def _to_all_draws(draws: Any) -> Array | None:
    """Matrix ``(S, k)`` that maps values at some draws to values at all draws.

    It is that of least squares, for functions that are nearly linear in the parameters. None if two
    draws for each parameter would be most of the draws.
    """
    k = 2 * len(draws.names) + _FEWEST
    if 2 * k > len(draws.flat):
        return None
    theta = draws.flat - draws.flat.mean(axis=0)
    sd = theta.std(axis=0)
    # so that a heavy tail has no leverage
    z = (theta / np.where(sd > 0.0, sd, 1.0)).clip(-4.0, 4.0)
    z = np.column_stack([np.ones(len(z)), z])
    given, wanted = (z[draws.choose(size)] for size in (k, None))
    with one_blas_thread():
        # the ridge is for dependent parameters
        gram = given.T @ given + 1e-9 * k * np.eye(z.shape[1])
        return wanted @ linalg.solve(gram, given.T, assume_a="pos")


@numpy_defaults
def effects(
    estimator: Any,
    X: Any,
    columns: Any = None,
    kind: str = "average",
    *,
    factors: Any = None,
    step: float | None = None,
    coverage: float = 0.9,
    n_rows: int | None = 2000,
    random_state: Any = 0,
    by: Any = None,
    groups: str | None = None,
    **by_row: Any,
) -> pd.DataFrame:
    r"""Marginal effects of columns on the response, with credible intervals, through wrappers.

    Under every draw :math:`\theta_s` the effect of a column of numbers is the mean of the
    derivative of the expected response, and that of a level of a factor is the mean difference from
    its first level, with all other columns unchanged:

    .. math::

        \frac{1}{n} \sum_i \frac{\partial}{\partial x_{ij}} E[y \mid x_i, \theta_s]
        \quad \text{and} \quad
        \frac{1}{n} \sum_i \left(E[y \mid x_i, x_{ij} = b, \theta_s]
        - E[y \mid x_i, x_{ij} = a, \theta_s]\right).

    These are ``avg_slopes`` of marginaleffects (Arel-Bundock, Greifer & Heiss 2024) and
    ``get_margeff(dummy=True)`` of statsmodels. The table summarises their posterior.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator of this package, or a ``Pipeline``, a search, a
        ``TransformedTargetRegressor`` or a classifier of a chosen threshold around one, in any
        order. For a transformed target the response is what ``predict`` returns, the inverse of
        the transformed mean: with a log of the target it is the median of y.
    X : array-like of shape (n_samples, n_features)
        Rows to average over, as the outermost wrapper takes them; usually those of ``fit``.
    columns : str, int or list of these, default=None
        Columns of X by name, or by position. None: all that change predictions.
    kind : {"average", "at_mean"}, default="average"
        ``"average"``: the mean effect over the rows. ``"at_mean"``: the effect in one row, with
        the mean of every column of numbers and the most frequent level of every other column.
    factors : str, int or list of these, default=None
        Columns of numbers whose values are compared as the levels of a factor, besides those that
        are factors anyway (see Notes).
    step : float or None, default=None
        For columns of numbers: None is the derivative, by central differences; a number is the
        mean difference between the response at ``x + step`` and at ``x``. Factors have no step.
    coverage : float, default=0.9
        Probability of the equal-tailed credible interval, in (0, 1).
    n_rows : int or None, default=2000
        Number of rows, chosen at random, that are predicted under all draws. The other rows are
        predicted under 32 draws and two more for each parameter, which corrects for the choice:
        the table is that of all rows, to a few hundredths of an sd or better. If it is None, or
        if these would be more than half of the draws, all draws predict all rows.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the choice of rows.
    by : str, int or None, default=None
        Column of X, by name or position, within each of whose values the effects are averaged:
        with ``by="Subject"`` and a slope that varies by subject, each subject's own slope. Rows
        without a value are left out.
    groups : {"population"} or None, default=None
        For a model with ``group_effects``: None takes the groups as they are in X;
        ``"population"`` leaves their effects out.
    **by_row : dict
        Arguments by row that the model takes. With ``exposure`` the effects are on the mean count
        of each row, without it on the rate; with ``n_trials`` the effects of a beta-binomial model
        are on the number of successes, without it on their share. Sizes of averages, and a
        classifier's trials, change no mean response.

    Returns
    -------
    table : pandas.DataFrame
        One row for each column of numbers, and for each level of a factor but the first; for a
        classifier one for each of these and each class, for several outputs one for each output.

        ``column``
            Name of the column; ``x0``, ``x1``, ... of an array.
        ``contrast``
            ``dy/dx``, ``+step``, or ``b - a`` for the levels b and a.
        ``by``
            Only with ``by``: the value of that column, whose name is in ``attrs``.
        ``class`` or ``output``
            Only for a classifier, or for several outputs. Effects on the probabilities of all
            classes add up to 0.
        ``sd``, ``estimate``, ``lower``, ``upper``
            Posterior sd and mean, and the ends of the interval, whose coverage is in ``attrs``. The
            sd comes first because a narrow screen leaves out the middle of a table.

    Raises
    ------
    ValueError
        If X does not have a column, or a column has no effect to measure: it has one level, or more
        than 50 and ``columns`` is None; or if the response of a row under a draw is infinite, as
        with counts for rows far beyond those of the fit.

    Warns
    -----
    UserWarning
        If the predictions do not change with a column although its values differ, for example
        because a ``ColumnTransformer`` drops it. Such a column has no row in the table, or effects
        of 0 if it is in ``columns``.

    Notes
    -----
    A factor is a column that holds no numbers (text, categories or truth values), a column of
    numbers that are all 0 or 1, and a column of numbers that a step before the model treats as
    codes: a ``OneHotEncoder``, ``OrdinalEncoder``, ``TargetEncoder``, ``KBinsDiscretizer`` or a
    function of your own, even if it is also passed on as a number. Such a column is found by what
    the steps do to slightly different numbers. If the steps make no difference between some values,
    such as those in a bin, their range ``[a, b]`` is one level.

    Columns of labels of groups have rows in the table only if they are in ``columns``, and are then
    factors; ``group_effects_`` of the model has the effects of all labels.

    The levels are those in X, in the order of their categories, or sorted (numbers within a text by
    size); for another reference reorder the categories of ``X``. Rows in which a number is missing
    have no derivative by it and are left out of its mean. So are rows at which a step before the
    model jumps, such as the edge of a bin.

    The interval is that of the mean over the rows of X. The chance that chose these rows is not
    part of it. After five seconds, lines on standard error name the column that is being measured.

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
      column contrast  class     sd  estimate  lower  upper
    1    bmi    dy/dx   True  0.004     0.024  0.017  0.030
    3     bp    dy/dx   True  0.001     0.006  0.004  0.008
    """
    check_number(coverage, "coverage", low=0, high=1)
    if step is not None:
        check_number(step, "step")
        if step == 0:
            raise ValueError("step=0 is out of range; give a number that is not 0, or None.")
    rows = Response.of("effects", estimator, X, by_row, n_rows, random_state, groups)
    known, names = rows.columns(factors), rows.table.names
    parts = [(None, rows, known)] if by is None else list(rows.by(by, known))
    of_parts = [(value, some.at_kind(kind, there)) for value, some, there in parts]
    positions = list(range(len(names))) if columns is None else rows.positions(columns, "columns")
    if not positions:
        raise ValueError("columns is empty; name one column at least, or give None for all.")
    if columns is None:
        positions = _used(known, rows.labels(known))
    by_column = dict[int, dict[tuple[str, Any], Array]]()
    with stages("effects", "column", len(positions)) as begin:
        for j in positions:
            begin(printable(names[j]))
            by_column[j] = {
                (contrast, value): draws
                for value, at in of_parts
                for contrast, draws in _contrasts(
                    rows, at, known, j, step, columns is not None
                ).items()
            }
    for j, contrasts in by_column.items():
        if not contrasts and (columns is not None or not any(by_column.values())):
            raise ValueError(
                f"X has one level in the column {names[j]!r}; a comparison needs rows of two."
            )
    _warn_of_no_effect(known, by_column)
    table = _table(
        {(names[j], *name): draws for j, each in by_column.items() for name, draws in each.items()},
        *components(unwrap(estimator).model),
        coverage,
    )
    if by is None:
        return table.drop(columns="by")
    table.attrs["by"] = names[rows.position(by, "by")]
    return table


def _used(known: Columns, labels: list[int]) -> list[int]:
    """Positions of the columns but those of labels.

    Those that the model does not see are left out too, with a warning.
    """
    names = known.table.names
    others = [j for j in range(len(names)) if j not in labels]
    if not others:
        raise ValueError(
            f"X has labels of groups alone, in {', '.join(map(repr, names))}; group_effects_ has "
            "their effects, or name one in columns= to compare its levels."
        )
    left_out = [j for j in others if known.is_left_out(j)]
    if len(left_out) == len(others):
        raise ValueError(
            "the predictions change with no column of X: the steps before the model leave out what "
            "tells the values of each apart, so there is no effect to measure."
        )
    _warn_of_no_change(known, left_out, "they have no row in the table")
    return [j for j in others if j not in left_out]


def _warn_of_no_effect(known: Columns, by_column: dict[int, dict[Any, Array]]) -> None:
    """Warn of columns that no prediction depends on, although their values differ."""
    zero = [j for j, each in by_column.items() if each and not any(d.any() for d in each.values())]
    left_out = [j for j in zero if known.is_left_out(j)]
    _warn_of_no_change(known, left_out, "the effect is exactly 0")


def _warn_of_no_change(known: Columns, left_out: list[int], so: str) -> None:
    """Warn of columns, with what follows for the table."""
    if left_out:
        names = [repr(known.table.names[j]) for j in left_out]
        listed = ", ".join(names[:8]) + ", ..." * (len(names) > 8)
        each = "s" * (len(names) > 1)
        warn(
            f"The predictions do not change with the column{each} {listed}, whose values differ: "
            f"the steps before the model leave out what tells them apart, so {so}.",
            UserWarning,
        )


def dependence(
    estimator: Any,
    X: Any,
    column: Any,
    kind: Any,
    n_points: int,
    factors: Any,
    n_rows: Any,
    random_state: Any,
    groups: Any,
    by_row: dict[str, Any],
) -> tuple[str, Array, Array]:
    """Name of a column, a grid of its values, and the mean response there ``(G, S[, K])``.

    The grid of a column of numbers is equidistant over its range, and that of a factor holds the
    names of its levels, as objects.
    """
    caller = "PartialDependenceDisplay"
    rows = Response.of(caller, estimator, X, by_row, n_rows, random_state, groups)
    known = rows.columns(factors)
    at, j = rows.at_kind(kind, known), rows.position(column, "column")
    name, levels = str(rows.table.names[j]), known.levels(j)
    if levels is None:
        x = rows.without_gaps(j)[1]
        grid = np.linspace(x.min(), x.max(), n_points)
        responses = [at.at_number(j, value) for value in grid]
    else:
        grid = np.empty(len(levels.names), dtype=object)
        grid[:] = levels.names
        responses = [at.at_level(j, value) for value in levels.values]
    draws = []
    with stages(caller, "value", len(grid)) as begin:
        for value, response in zip(grid, responses, strict=True):
            begin(printable(value))
            draws.append(response.mean())
    return name, grid, np.array(draws)


def _contrasts(
    rows: Response, at: Response, known: Columns, j: int, step: float | None, is_named: bool
) -> dict[str, Array]:
    """Draws of the effects of a column, by the names of the contrasts.

    The column's levels and range are those in ``rows``; effects are averaged over ``at``.
    """
    levels = known.levels(j)
    if levels is not None:
        size = len(levels.values)
        if size > _MOST_LEVELS and not is_named and known.is_open(j):
            raise ValueError(
                f"X has {size} different values in the column {rows.table.names[j]!r}, which is "
                "not of numbers, or of numbers that the pipeline takes for codes; name the columns "
                f"of interest in columns=, with this one if all {size} are to be compared."
            )
        first, *others = zip(levels.names, levels.values, strict=True) if size else [(None, None)]
        reference = at.at_level(j, first[1]).mean() if others else 0.0
        return {f"{b} - {first[0]}": at.at_level(j, v).mean() - reference for b, v in others}
    if step is not None:
        some, x = at.without_gaps(j)
        with naming("step"):
            return {f"{step:+g}": some.at(some.table.moved(j, x + step)).mean() - some.mean()}
    spread = spread_of(rows.without_gaps(j)[1])
    return {"dy/dx": at.slope(j, spread, known.jumps(j))}


def _table(
    draws: dict[tuple[Any, str, Any], Array], kind: str | None, names: list[Any], coverage: float
) -> pd.DataFrame:
    """Summary of the draws of contrasts, one row for each component of the response."""
    table = []
    for (column, contrast, by), values in draws.items():
        for name, each in zip(names, np.reshape(values, (len(values), -1)).T, strict=True):
            lower, upper = np.quantile(each, tails(coverage))
            of = {} if kind is None else {kind: name}
            row = {"column": column, "contrast": contrast, "by": by, **of, "sd": each.std()}
            table.append(row | {"estimate": each.mean(), "lower": lower, "upper": upper})
    frame = pd.DataFrame(table)
    frame.attrs["coverage"] = coverage
    return frame
