"""Mean derivatives of the response by columns of numbers; in one pass where predictors are linear.

By the chain rule the derivative by column j of the user's table, in row i and under draw s, is

    sum_k rate_iks sum_m beta_skm D_im,

with the derivative ``rate`` of the response in predictor k, the coefficients beta, and the slopes D
in x_j of the columns that the model sees. Only D differs between the columns of the table: the
response is computed twice for each predictor, whatever the number of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from scipy import sparse

from skbayes_sgld._progress import stages
from skbayes_sgld._typing import Array
from skbayes_sgld.prediction.factors import Columns, close_by, numbers_of, reactions, spread_of
from skbayes_sgld.prediction.predicted_rows import PredictedRows
from skbayes_sgld.prediction.predictors import LinearPredictor, Predictor
from skbayes_sgld.prediction.response import Response
from skbayes_sgld.prediction.tables import Table
from skbayes_sgld.prediction.wrappers import Unwrapped, unwrap

_TOGETHER = 128  # columns of the model whose sums are computed together
_CHANGES = 2**22  # rows times columns whose changes are held
_NUDGE = 6e-6  # of the largest predictor: the cube root of the rounding error

Change = tuple[Array, Array]  # positions of the model's columns that change, and by how much


def slopes(
    response: Response, known: Columns, columns: list[int], begin: Callable[[int], None]
) -> dict[int, Array]:
    """Mean derivatives by columns of numbers over the rows, under every draw ``(S, K)``.

    ``begin`` is called with each column, before it is measured on its own.

    K is the number of classes or outputs. Rows without a number are left out, and so are rows at
    which a step before the model jumps, as at the edge of a bin. The range of each column is that
    in ``known``.
    """
    alike = dict[bytes, tuple[Array, dict[int, float]]]()  # columns that are known in equal rows
    for j in columns:
        x = numbers_of(response.table.column(j))
        used, spread = np.isfinite(x), spread_of(numbers_of(known.table.column(j)))
        if known.jumps(j):
            table, at = response.some(used).table, x[used]
            used[used] = reactions(response.seen, table, j, at, close_by(at, spread)) >= 0
        alike.setdefault(used.tobytes(), (used, {}))[1][j] = spread
    found = dict[int, Array]()
    for used, spreads in alike.values():
        some = response.some(used)
        lines = lines_of(some, spreads)
        if lines:
            found |= _slopes_of_lines(some, lines)
        for j in [j for j in spreads if j not in lines]:
            begin(j)
            found[j] = _slope(some, j, spreads[j])
    return found


def _slope(response: Response, j: int, spread: float) -> Array:
    """Mean derivative by a column, from the mean responses at two neighbours of each number."""
    low, high = _ends(response.table, j, spread)
    scale = 1.0 / (high - low)
    ends = [response.at(response.table.moved(j, at)).mean(scale) for at in (high, low)]
    return ends[0] - ends[1]


def follows_lines(model: Any) -> bool:
    """Whether the model's predictors are linear in the rows that it sees."""
    return all(isinstance(one, LinearPredictor) for one in _predictors(model))


def _predictors(model: Any) -> list[Predictor]:
    """Predictor of each output under one draw."""
    return [one._predictor(slice(0, 1)) for one in vars(model).get("estimators_", [model])]


def lines_of(response: Response, spreads: dict[int, float]) -> dict[int, float]:
    """Columns, with their ranges, that move only columns in which all predictors are linear."""
    model, rows = unwrap(response.estimator).model, np.arange(response.table.n_rows)
    if follows_lines(model):
        return spreads
    each, found = _predictors(model), dict[int, float]()
    if any(one.along(np.arange(0)) is None for one in each):
        return found
    for j, spread in spreads.items():
        ends = _ends(response.table, j, spread)
        moved = _moved(_difference(response, response.table, j, ends, model, rows))
        if all(one.along(moved) is not None for one in each):
            found[j] = spread
    return found


def _ends(table: Table, j: int, spread: float) -> tuple[Array, Array]:
    """Numbers next to those of a column with this range, below and above."""
    x = numbers_of(table.column(j))
    width = close_by(x, spread)
    return x - width, x + width


def _slopes_of_lines(response: Response, spreads: dict[int, float]) -> dict[int, Array]:
    """Mean derivatives by columns, whose ranges are given, in one pass."""
    n_blocks, size = 0, max(1, _CHANGES // len(spreads))
    model = unwrap(response.estimator).model

    def total(rows: Array, weight: Array, n_draws: int | None) -> Array:
        parts = (slice(k, k + size) for k in range(0, len(rows), size))
        return cast(Array, sum(of_some(rows[part], weight[part], n_draws) for part in parts))

    def of_some(rows: Array, weight: Array, n_draws: int | None) -> Array:
        together, table, width = list[list[Change]](), response.table.take(rows), _TOGETHER
        for j, spread in spreads.items():
            ends = _ends(table, j, spread)
            moves = _difference(response, table, j, ends, model, rows)
            if width >= _TOGETHER:
                together.append([])
                width = 0
            together[-1].append(_change(moves, weight / (ends[1] - ends[0])))
            width += len(together[-1][-1][0])

        def of_block(block: Array, unwrapped: Unwrapped, each: list[PredictedRows]) -> Array:
            nonlocal n_blocks
            if block[0] == 0:
                n_blocks += -(-len(rows) // len(block))
            begin("derivatives by all columns", n_blocks)
            parts = [
                _along([(at, change[block]) for at, change in changes], unwrapped, each)
                for changes in together
            ]
            return np.concatenate(parts, axis=1)

        return response.add_up(rows, n_draws, of_block)

    with stages("effects", "block of rows") as begin:
        of_all = response.over_rows(total, np.ones(response.table.n_rows))
    return dict(zip(spreads, of_all.swapaxes(0, 1), strict=True))


def _difference(
    response: Response,
    table: Table,
    j: int,
    ends: tuple[Array, Array],
    model: Any,
    rows: Array,
) -> Any:
    """Rows that the model sees at the upper end of a column of the table, minus at the lower."""
    seen = (unwrap(response.estimator, table.moved(j, x).X).X for x in ends)
    low, high = (response.predictions(model, X, rows, 1)[0].X for X in seen)
    return high - low


def _moved(difference: Any) -> Array:
    """Columns in which two tables differ."""
    if sparse.issparse(difference):
        return np.unique(difference.nonzero()[1])
    return np.flatnonzero(np.any(difference != 0.0, axis=0))


def _change(difference: Any, scale: Array) -> Change:
    """Columns in which two tables differ, with scaled differences ``(n, m)``."""
    columns = _moved(difference)
    some = difference[:, columns]
    return columns, (some.toarray() if sparse.issparse(some) else some) * scale[:, None]


def _along(changes: Sequence[Change], unwrapped: Unwrapped, each: list[PredictedRows]) -> Array:
    """Sums over rows of the response's derivatives along each change ``(S, J, K)``."""
    weight = np.hstack([change for _, change in changes])
    ends = np.cumsum([len(columns) for columns, _ in changes])[:-1]
    outputs = []
    for one in each:
        eta, in_each = one.predictors(), []
        predictor = one.predictive.predictor
        for k in range(len(eta)):
            nudge = np.zeros((len(eta), 1, 1))
            nudge[k] = _NUDGE * float(np.abs(eta[k]).max()) or _NUDGE
            high, low = (
                one.totals(eta + to, weight, unwrapped.from_model) for to in (nudge, -nudge)
            )
            rates = np.split((high - low) / (2.0 * nudge[k, 0, 0]), ends)  # (m, K, S), or (m, S)
            along = [
                np.einsum("sm,m...s->s...", cast(Array, predictor.along(columns))[:, k], rate)
                for (columns, _), rate in zip(changes, rates, strict=True)
            ]
            in_each.append(np.stack(along, axis=1))
        whole = np.sum(in_each, axis=0)
        outputs.append(whole.reshape(*whole.shape[:2], -1))
    return np.concatenate(outputs, axis=2)
