"""Weighted sums of the expected response of a fitted model over the rows of a table.

They are functions of every draw,

    F_s(X, w) = sum_i w_i mu_s(x_i),    mu_s(x) = E[y | x, theta_s],

whatever the model, its link and the transformers before it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, cast

import numpy as np
import pandas as pd
from scipy import linalg, sparse

from skbayes_sgld._checks import as_numbers, check_choice, check_lengths, check_number, printable
from skbayes_sgld._linalg import one_blas_thread, sum_in_threads
from skbayes_sgld._random import draw_seed
from skbayes_sgld._typing import Array
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.expansions import Expansion
from skbayes_sgld.prediction.factors import Columns, different, numbers_of
from skbayes_sgld.prediction.predicted_rows import PredictedRows
from skbayes_sgld.prediction.tables import Table
from skbayes_sgld.prediction.wrappers import Unwrapped, components, layers, unwrap, unwrap_for

# of the response in a part of the rows: with more, most of the time is spent on memory
_NUMBERS = 2**20
_TRIED = 16  # draws that predict all rows to check an expansion
_ENDS = 0.005, 0.025, 0.975, 0.995  # levels of means whose draws predict all rows, too
_AT_ENDS = 0.05  # sds of a mean: largest error there
_DRAWS_EACH = 10  # with fewer draws for each of these, all draws predict all rows
_REST = 0.1  # of the sd of a mean over rows: largest sd of what is not linear in the parameters
_HARDLY = 0.1  # sd of a class over that of the class of the largest, from which on it has its own
_SKEWNESS = 1.0  # of a mean over rows: with more, few draws do not tell the ends of an interval
_FEWEST = 32  # draws that predict all rows if not all draws do, besides two for each parameter

# all draws, some number of them, or those at some positions
Draws = int | Array | None
# sums over some rows, with weights, under all draws (None) or a few
Total = Callable[[Array, Array, int | None], Array]
# sums over a block of these rows, from the wrapped model and the predictions of each output
OfBlock = Callable[[Array, Unwrapped, list[PredictedRows]], Array]


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
    rows: Array | None = None
    groups: str | None = None
    _kept: dict[str, Any] = field(default_factory=dict)  # of the model, whatever the rows

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
        return cls(estimator, table, by_row, n_rows, draw_seed(random_state), groups=groups)

    def columns(self, factors: Any) -> Columns:
        """The columns: numbers or factors; ``factors`` names some of the latter."""
        prepared = any(layer.is_step and len(outer) > 1 for outer, layer in layers(self.estimator))
        # no encoder takes sparse rows
        see = self.seen if prepared and not sparse.issparse(self.table.X) else None
        if self._mixed is not None:
            see = self._encoded
        named = [] if factors is None else self.positions(factors, "factors")
        return Columns(self.table, see, frozenset(named))

    def seen(self, table: Table) -> Any:
        """Rows as the model sees them."""
        return unwrap(self.estimator, table.X).X

    @property
    def _mixed(self) -> Any:
        """Columns of a mixed model; None of other models."""
        model = unwrap(self.estimator).model
        of_output = vars(model).get("estimators_", [model])[0]
        return getattr(vars(of_output).get("_fitted"), "mixed", None)

    def _encoded(self, table: Table) -> Any:
        """Rows as the model sees them, with codes in place of labels of groups."""
        return self._mixed.encoded(self.seen(table), self.groups)

    def labels(self, known: Columns) -> list[int]:
        """Positions of the columns that a mixed model sees as labels of groups alone."""
        mixed = self._mixed
        if mixed is None or not mixed.labels.of_columns:
            return []
        numbers = replace(known, see=lambda table: mixed.numbers(self.seen(table)))
        labels = replace(known, see=lambda table: mixed.labels.marks(self.seen(table)))
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
        several = isinstance(column, (list, tuple, np.ndarray, pd.Index, pd.Series, pd.DataFrame))
        one = "; give the name or position of one column" * several
        given = printable(repr(column))
        given = f"{given[:77]}..." if len(given) > 80 else given
        raise ValueError(f"{argument}={given} is not a column of X, which has {listed}{one}.")

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
        """Mean over the rows under every draw ``(S, K)``, of K classes or outputs.

        ``scale (n,)`` multiplies the rows' responses, for differences between neighbours. Other
        probabilities of many rows are computed in single precision: the error is 1e-7.
        """
        if scale is not None:
            return self.over_rows(self._total, scale)
        total = partial(self._total, single=self._is_large)
        return self.over_rows(total, np.ones(self.table.n_rows))

    @property
    def _is_large(self) -> bool:
        return self.n_rows is not None and self.table.n_rows > self.n_rows

    def expanded_mean(self) -> Array:
        """Mean over many rows from its expansion about the mean draw, if that is accurate.

        Errors of two means do not cancel, so differences are not taken of these.
        """
        means = self._expanded() if self._is_large else None
        return self.mean() if means is None else means

    def _expanded(self) -> Array | None:
        """Mean over the rows by its expansion; None if too much is left out."""
        if "expansions" not in self._kept:
            self._kept["expansions"] = self._expansions()
        if not (expansions := self._kept["expansions"]):
            return None
        n = self.table.n_rows

        def of_block(block: Array, unwrapped: Unwrapped, each: list[PredictedRows]) -> Array:
            weight = np.full(len(block), 1.0 / n)
            both = zip(expansions, each, strict=True)
            return np.vstack([expansion.sums(one, weight) for expansion, one in both]).T

        tried = unwrap(self.estimator).model._choose_draws(_TRIED, 0)
        sums = self.add_up(np.arange(n), _TRIED, of_block).T
        each = np.split(sums, len(expansions))
        found = [one.means(part, tried) for one, part in zip(expansions, each, strict=True)]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        means = np.hstack(known)
        ends = (np.array(_ENDS) * (len(means) - 1)).round().astype(int)
        at_ends = np.unique(np.argsort(means, axis=0)[ends])
        left = np.abs(self._total(np.arange(n), np.full(n, 1.0 / n), at_ends) - means[at_ends])
        return means if (left <= _AT_ENDS * means.std(axis=0)).all() else None

    def _expansions(self) -> list[Expansion]:
        """Expansion of each output; none if draws are few or weighted, or of a network."""
        unwrapped = unwrap(self.estimator, self.table.take(np.arange(1)).X)
        model, draws = unwrapped.model, unwrapped.model.posterior_
        if len(draws.flat) < _DRAWS_EACH * _TRIED or draws.flat_weights is not None:
            return []
        each = self.predictions(model, Table.of(unwrapped.X).X, np.arange(1), None)
        laws = [one.predictive.by_contrasts() for one in each]
        if laws[0].at_mean() is None:
            return []
        return [Expansion(law, unwrapped.from_model) for law in laws]

    def over_rows(self, total: Total, scale: Array) -> Array:
        """Mean over the rows, each multiplied by its ``scale (n,)``, under every draw ``(S, ...)``.

        If there are very many rows, all draws predict a part of them, and some of the draws predict
        all. The difference between the two means is nearly linear in the parameters, so it is known
        under every draw by least squares. If it is not, as where few rows have nearly all of the
        mean, all draws predict all rows.
        """
        means = self._from_some_draws(total, scale) if self._is_large else None
        n = self.table.n_rows
        return total(np.arange(n), scale / n, None) if means is None else means

    def _from_some_draws(self, total: Total, scale: Array) -> Array | None:
        """Mean over the rows by least squares; None if draws are few, or too much is left out."""
        if "to_all_draws" not in self._kept:
            self._kept["to_all_draws"] = _to_all_draws(unwrap(self.estimator).model.posterior_)
        if (to_all := self._kept["to_all_draws"]) is None:
            return None
        given, matrix, spare = to_all
        n, size = self.table.n_rows, self.n_rows
        part = np.sort(np.random.RandomState(self.seed).choice(n, size, replace=False))
        of_part = np.zeros(n)
        of_part[part] = scale[part] / size
        added = total(np.arange(n), scale / n - of_part, matrix.shape[1])
        fitted = np.tensordot(matrix, added, 1)
        means = total(part, of_part[part], None) + fitted
        left = added - fitted[given]
        with np.errstate(over="ignore", invalid="ignore"):
            away, rounding = means - means.mean(axis=0), 1e-9 * np.abs(means).max(axis=0)
            rest, sd = np.sqrt(np.square(left).sum(axis=0) / spare), away.std(axis=0)
            known = (means[given] + left).std(axis=0)  # under draws that predict all rows
            if hasattr(unwrap(self.estimator).model, "classes_"):
                # a class that hardly moves is compared with the one that moves most
                known = np.maximum(known, _HARDLY * known.max(axis=-1, keepdims=True))
            is_near = (rest <= _REST * known + rounding) & (
                np.abs(np.mean(away**3, axis=0)) <= _SKEWNESS * sd**3 + rounding**3
            )
        return means if is_near.all() else None

    def _total(self, rows: Array, weight: Array, n_draws: Draws, single: bool = False) -> Array:
        """Weighted sum over some rows ``(S, K)``, under all draws or under a few."""

        def of_block(block: Array, unwrapped: Unwrapped, each: list[PredictedRows]) -> Array:
            sums = []
            for one in each:
                eta = one.predictors(single and one.classes is not None)
                w = weight[block][:, None]
                sums.append(one.totals(eta, w, unwrapped.from_model)[0])
            return np.vstack(sums).T

        return self.add_up(rows, n_draws, of_block)

    def add_up(self, rows: Array, n_draws: Draws, of_block: OfBlock) -> Array:
        """Sum over blocks of some rows, under all draws or under a few.

        ``of_block`` takes positions in ``rows``, the model with its wrappers, and the predictions
        of each output.
        """
        unwrapped = unwrap(self.estimator, self.table.take(rows).X)
        seen, model = Table.of(unwrapped.X), unwrapped.model
        n_all = len(_chosen(model, n_draws))
        size = max(1, _NUMBERS // (n_all * len(components(model)[1])))

        def predicted(block: Array) -> list[PredictedRows]:
            return self.predictions(model, seen.take(block).X, rows[block], n_draws)

        # made once for all blocks
        laws = [one.predictive.by_contrasts() for one in predicted(np.arange(1))]

        def total(start: int) -> Array:
            block = np.arange(start, min(start + size, len(rows)))
            each = [
                replace(one, of_draws=partial(_same, law))
                for one, law in zip(predicted(block), laws, strict=True)
            ]
            with np.errstate(over="ignore", invalid="ignore"):
                sums = of_block(block, unwrapped, each)
                if not np.isfinite(sums).all():
                    means = [unwrapped.from_model(one.mean_draws()) for one in predicted(block)]
                    self._refuse(rows[block], np.hstack(means))
            return sums

        with warnings.catch_warnings():  # for a row whose response is infinite, or nearly so
            warnings.filterwarnings("ignore", ".*whose square is out of the range", UserWarning)
            return sum_in_threads(total, range(0, len(rows), size))

    def predictions(self, model: Any, X: Any, rows: Array, n_draws: Draws) -> list[PredictedRows]:
        """Predictions of each output, at rows X that the model sees in place of ``rows``."""
        by_row: dict[str, Any] = {name: value[rows] for name, value in self.by_row.items()}
        if self.groups is not None:
            by_row["groups"] = self.groups
        found = model._predictions(X, by_row, _chosen(model, n_draws))
        return getattr(found, "each", [found])

    def _refuse(self, rows: Array, draws: Array) -> None:
        """Raise for the first of the rows whose response is not finite under a draw."""
        row = int(rows[np.isfinite(draws).all(axis=1).argmin()])
        row = row if self.rows is None else int(self.rows[row])
        raise ValueError(
            f"the expected response at row {row} of X (from 0) is out of the range of floating "
            "point numbers under a draw, so no mean over rows is known; check the units of its "
            "columns, or leave it out."
        )


def _chosen(model: Any, draws: Draws) -> Array:
    """Positions of the draws."""
    return draws if isinstance(draws, np.ndarray) else cast(Array, model._choose_draws(draws, 0))


def _same(law: PredictiveDistribution) -> PredictiveDistribution:
    return law


def _to_all_draws(draws: Any) -> tuple[Array, Array, int] | None:
    """Positions of k draws, and a matrix ``(S, k)`` that maps values there to values at all draws.

    The last number is that of the draws beyond the coefficients. The matrix is that of least
    squares, for functions that are nearly linear in the parameters. None if two draws for each
    parameter would be most of the draws.
    """
    k = 2 * len(draws.names) + _FEWEST
    if 2 * k > len(draws.flat):
        return None
    theta = draws.flat - draws.flat.mean(axis=0)
    sd = theta.std(axis=0)
    # so that a heavy tail has no leverage
    z = (theta / np.where(sd > 0.0, sd, 1.0)).clip(-4.0, 4.0)
    z = np.column_stack([np.ones(len(z)), z])
    at = draws.choose(k)
    given, wanted = z[at], z[draws.choose(None)]
    with one_blas_thread():
        # the ridge is for dependent parameters
        gram = given.T @ given + 1e-9 * k * np.eye(z.shape[1])
        return at, wanted @ linalg.solve(gram, given.T, assume_a="pos"), k - z.shape[1]
