"""Marginal effects, comparisons and partial dependence on the scale of the response.

Each is a function of mean responses over rows, under every draw, or of their derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skbayes_sgld._checks import check_number, naming, printable
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._progress import stages
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.diagnostics import tails
from skbayes_sgld.prediction.factors import Columns
from skbayes_sgld.prediction.response import Response
from skbayes_sgld.prediction.slopes import follows_lines, slopes
from skbayes_sgld.prediction.wrappers import components, unwrap

_MOST_LEVELS = 50  # in a column that was not named; with more they are names, dates or codes


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
    n_rows: int | None = 500,
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
    n_rows : int or None, default=500
        Number of rows, chosen at random, that are predicted under all draws. All rows are
        predicted under 32 draws and two more for each parameter, which corrects for the choice:
        the table is that of all rows. The error of estimates and ends of intervals is 0.02 sd or
        less, that of 4,000 draws. If ``n_rows`` is None, or if the few draws would be more than
        half of all, all draws predict all rows.
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
    part of it. After two seconds, lines on standard error name the column that is being measured,
    or the block of rows for derivatives by all columns.

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
    numbers = [j for j in positions if step is None and known.levels(j) is None]
    others = [j for j in positions if j not in numbers]
    by_column: dict[int, dict[tuple[str, Any], Array]] = {j: {} for j in positions}
    together = follows_lines(unwrap(estimator).model)
    n_stages = len(others) + (0 if together else len(numbers) * len(of_parts))
    with stages("effects", "column", n_stages) as begin:
        for value, at in of_parts:
            along = slopes(at, known, numbers, lambda j: begin(printable(names[j])))
            for j, draws in along.items():
                by_column[j]["dy/dx", value] = draws
        for j in others:
            begin(printable(names[j]))
            for value, at in of_parts:
                for contrast, draws in _contrasts(at, known, j, step, columns is not None).items():
                    by_column[j][contrast, value] = draws
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
            draws.append(response.expanded_mean())
    return name, grid, np.array(draws)


def _contrasts(
    at: Response, known: Columns, j: int, step: float | None, is_named: bool
) -> dict[str, Array]:
    """Draws of the effects of a column's levels, or of a step, by the names of the contrasts."""
    levels = known.levels(j)
    if levels is not None:
        size = len(levels.values)
        if size > _MOST_LEVELS and not is_named and known.is_open(j):
            raise ValueError(
                f"X has {size} different values in the column {at.table.names[j]!r}, which is "
                "not of numbers, or of numbers that the pipeline takes for codes; name the columns "
                f"of interest in columns=, with this one if all {size} are to be compared."
            )
        first, *others = zip(levels.names, levels.values, strict=True) if size else [(None, None)]
        reference = at.at_level(j, first[1]).mean() if others else 0.0
        return {f"{b} - {first[0]}": at.at_level(j, v).mean() - reference for b, v in others}
    assert step is not None  # slopes are measured together
    some, x = at.without_gaps(j)
    with naming("step"):
        return {f"{step:+g}": some.at(some.table.moved(j, x + step)).mean() - some.mean()}


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
