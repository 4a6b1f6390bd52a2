"""Mixed models of rows in blocks: labels become codes as they are read, and rows are gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skbayes_sgld._checks import column_position
from skbayes_sgld._typing import Array
from skbayes_sgld.blocks.row_blocks import RowBlocks
from skbayes_sgld.blocks.scores import score_blocks
from skbayes_sgld.blocks.source import Block, RowSource, kind_of
from skbayes_sgld.mixed.columns import MixedColumns
from skbayes_sgld.mixed.groups import resolve_groups
from skbayes_sgld.mixed.labels import Labels
from skbayes_sgld.mixed.pooled import GatheredRows
from skbayes_sgld.mixed.rows import MixedRows, mixed_rows
from skbayes_sgld.rows.arrays import Arrays
from skbayes_sgld.rows.checks import check_ranges
from skbayes_sgld.rows.fingerprint import Fingerprint
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.scores import Score
from skbayes_sgld.rows.targets import Target


@dataclass(frozen=True)
class UnreadMixedBlocks:
    """Rows in blocks as ``fit`` is given them, before any pass.

    Attributes
    ----------
    source : RowSource
        Blocks with codes in place of labels.
    labels : callable
        Function that returns the labels of all blocks, after the pass.
    arguments : tuple of str
        Names of the arguments by row that the blocks hold.
    unencoded : Any
        The blocks with labels.
    """

    source: RowSource
    labels: Callable[[], Labels]
    arguments: tuple[str, ...]
    unencoded: Any

    def encode(self, target: Target, estimator: Any) -> tuple[Target, MixedBlockRows]:
        """Target of the rows, and the rows as the model takes them, pooled if noise is normal."""
        source = self.source
        names = source.feature_names
        target = target.with_arguments(self.arguments)
        cells = columns_of_cells(target, self.labels(), estimator, source.n_features, names)
        pools = cells is not None
        gathered: GatheredRows = source.reduce(partial(_of_block, cells=cells), GatheredRows.plus)
        if pools and gathered.extent is None:
            raise ValueError("the weights of all rows are zero; at least one must be positive.")
        X, values = (gathered.pooled() if pools else gathered).joined()
        columns = columns_of_codes(estimator.group_effects, self.labels(), X, names)
        frame = X if names is None else pd.DataFrame(X, columns=names, copy=False)
        by_row = target.named(values.others)
        target, rows = Arrays(frame, values.y, values.weight, by_row).encode(target, estimator)
        found = None
        if pools:
            assert gathered.extent is not None
            check_ranges(gathered.extent.low, gathered.extent.high, names)
            rows = replace(rows, moments=gathered.moments(rows.X, rows.weight))
            found = source.fingerprint
        more = {"source": source, "sums": found}
        return target, mixed_rows(MixedBlockRows, columns, rows, estimator, **more)

    def score(self, model: Any, score: Score) -> float:
        """Score of a fitted model's predictions of the rows."""
        known = model._fitted.mixed.labels
        source: RowSource
        tables: dict[int, Array]
        if isinstance(self.unencoded, RowBlocks):
            source, tables = _changed(self.unencoded, lambda: known.encoded), {}
        else:  # codes of the labels of these rows
            here = self.labels().of_columns
            source, tables = self.source, {j: known.codes(j, here[j]) for j in here}
        return score_blocks(_with_codes(model, tables), score, source)


@dataclass(frozen=True)
class MixedBlockRows(MixedRows):
    """Rows of blocks in memory, pooled if the noise is normal.

    Attributes
    ----------
    source : RowSource
    sums : Fingerprint or None
        Sums over the rows before they were pooled.
    """

    source: Any = None
    sums: Fingerprint | None = None

    def kept(self) -> MixedRows:
        """These rows, which share no memory with the caller's arrays."""
        return self

    @property
    def screened(self) -> Rows | None:
        """Rows that the check of the model may leave out; None if they are pooled."""
        return None if self.sums is not None else super().screened

    def fingerprint(self, target: Target) -> Fingerprint | None:
        """Sums by which a later call recognises the same rows."""
        return super().fingerprint(target) if self.sums is None else self.sums

    def workers(self, n_jobs: int | None) -> Any:
        """Workers of a cluster that has the rows."""
        return self.source.workers(n_jobs)


def read_mixed_blocks(
    X: Any,
    y: Any,
    sample_weight: Any,
    by_row: Mapping[str, Any],
    estimator: Any,
    read: Callable[..., Any],
) -> UnreadMixedBlocks | None:
    """Rows in blocks that ``fit`` is given; None where they are arrays like any other.

    ``read`` is the function that reads such blocks for other models.
    """
    if kind_of(X).startswith("dask."):
        from skbayes_sgld.mixed.dask_labels import encode_dask

        encoded, labels = encode_dask(X, estimator)
        blocks = read(encoded, y, sample_weight, by_row, estimator)
        return UnreadMixedBlocks(blocks.source, lambda: labels, blocks.arguments, X)
    blocks = read(X, y, sample_weight, by_row, estimator)
    if blocks is None:
        return None
    source, found = blocks.source, _Growing(estimator.group_effects, blocks.source)
    encoded = _changed(source, found.begin)
    return UnreadMixedBlocks(encoded, lambda: found.labels, blocks.arguments, source)


class _Growing:
    """Labels that grow while blocks are read: those of a later block come after the others."""

    def __init__(self, group_effects: Any, source: RowSource) -> None:
        names = source.feature_names
        _, self._called = resolve_groups(group_effects, source.n_features, names)
        self.labels = Labels({}, self._called)

    def begin(self) -> Callable[[Any], Any]:
        """Function that encodes the next block of a pass."""
        self.labels = Labels({}, self._called)
        return self._encode

    def _encode(self, X: Any) -> Any:
        if not self.labels.of_columns:
            self.labels = Labels.learned(X, self._called)
        else:
            self.labels = self.labels.followed_by(X)
        return self.labels.encoded(X)


def _changed(source: Any, begin: Callable[[], Callable[[Any], Any]]) -> RowBlocks:
    """Blocks whose columns a function encodes; ``begin`` makes it for each pass."""

    def read() -> Iterator[Any]:
        encode = begin()
        for number, parts in enumerate(source):
            X, *beside = parts if isinstance(parts, tuple) else (parts,)
            if len(X):
                try:
                    X = _numbers(encode(X), source.feature_names)
                except (TypeError, ValueError) as error:
                    raise type(error)(f"block {number}: {error}") from None
            yield (X, *beside)

    encoded = RowBlocks(read, pool_size=source.pool_size)
    encoded._origin, encoded._promise = source._origin, source._promise
    encoded.feature_names, encoded.n_rows = source.feature_names, source.n_rows
    return encoded


def _numbers(X: Any, names: list[str] | None) -> Any:
    """Encoded columns in float64, of a frame or an array."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    values = np.ascontiguousarray(values, dtype=float)
    return values if names is None else pd.DataFrame(values, columns=names, copy=False)


def _of_block(block: Block, cells: list[int] | None) -> GatheredRows:
    return GatheredRows.of(block.X, block.values, cells)


def columns_of_cells(
    target: Target, labels: Labels, estimator: Any, d: int, names: list[str] | None
) -> list[int] | None:
    """Columns whose values make the cells of pooled rows; None if rows may not be pooled."""
    if target.has_labels or target.arguments or not target.likelihood.quadratic:
        return None
    curves = estimator.smooth_effects or ()
    curved = {column_position(key, d, names, "smooth_effects") for key in curves}
    return sorted({*labels.names, *curved})


def columns_of_codes(
    group_effects: Any, labels: Labels, X: Array, names: list[str] | None
) -> MixedColumns:
    """Columns of a mixed model, whose labels are known, and of its rows with codes."""
    groups, _ = resolve_groups(group_effects, X.shape[1], names)
    return MixedColumns.given_labels(labels, groups, X)


@dataclass(frozen=True, eq=False)
class _WithCodes(MixedColumns):
    """Columns of rows that hold codes already.

    Attributes
    ----------
    tables : dict of int to ndarray
        Codes of the fit by those in the rows, for each column of labels that has others.
    """

    tables: Mapping[int, Array] = field(default_factory=dict)

    def encoded(self, X: Any, groups: Any = None) -> Any:
        """The rows with the codes of the fit."""
        if not self.tables:
            return X
        values = np.array(X, dtype=float)
        for j, codes in self.tables.items():
            values[:, j] = codes[values[:, j].astype(int)]
        return pd.DataFrame(values, columns=X.columns) if hasattr(X, "columns") else values


def _with_codes(model: Any, tables: Mapping[int, Array]) -> Any:
    """Copy of a fitted model that predicts rows with codes in place of labels."""
    other, columns = copy(model), model._fitted.mixed
    other._fitted = replace(model._fitted, mixed=_WithCodes(**vars(columns), tables=tables))
    return other
