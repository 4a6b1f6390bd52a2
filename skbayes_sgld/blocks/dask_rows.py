"""Rows on the workers of Dask: passes as trees of tasks, of which only sums cross the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import numpy as np

from skbayes_sgld.blocks.dask_cluster import DaskWorkers, compute, current_client
from skbayes_sgld.blocks.source import (
    Block,
    Prints,
    RowSource,
    Value,
    check_block,
    check_kinds,
    kind_of,
)

_ARGUMENTS = {"y": "y", "weight": "sample_weight", "exposure": "exposure"}
_FAN_IN = 8  # sums that a task adds up, so that no worker holds those of all blocks


class DaskRows(RowSource):
    """Blocks of a Dask array or data frame, each read on the worker that has or makes it.

    Nothing is kept from pass to pass: rows that are not persisted are made anew for each.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        Chunked anyhow along the rows; columns in several chunks are put together.
    y : dask.array.Array, dask.dataframe.Series or array-like
        Chunked as X where sizes are not known.
    weight, exposure : as y, or None
    """

    _promise = (
        "X, y and weights must be the same rows whenever they are computed; call persist() on "
        "those that are not"
    )

    def __init__(self, X: Any, y: Any, weight: Any = None, exposure: Any = None) -> None:
        X = check_columns(X)
        if is_frame(X):
            columns = list(X.columns)
            self.feature_names = columns if all(isinstance(c, str) for c in columns) else None
        self.n_features = int(X.shape[1])
        beside = {"y": y, "weight": weight, "exposure": exposure}
        beside = {name: values for name, values in beside.items() if values is not None}
        given = [X, *(align(values, X, _ARGUMENTS[name]) for name, values in beside.items())]
        self._beside = tuple(beside)
        self._graph, self._keys = joined_graph(given)
        known = not is_frame(X) and not np.isnan(X.shape[0])
        self._n_rows = int(X.shape[0]) if known else None

    @property
    def n_rows(self) -> int:  # type: ignore[override]  # an attribute that is found when asked
        """Number of rows; where it is not known, the workers count them."""
        if self._n_rows is None:
            from dask.delayed import Delayed

            name = f"count-{uuid4().hex}"
            lengths = {(name, k): (len, keys[1]) for k, keys in enumerate(self._keys)}
            graph = self._graph | lengths | {name: (sum, list(lengths))}
            self._n_rows = int(compute(Delayed(name, graph), "the count of the rows"))
        return self._n_rows

    def reduce(
        self, of_block: Callable[[Block], Value], plus: Callable[[Value, Value], Value]
    ) -> Value:
        """Sum over all blocks that have rows: one task a block, and a tree that adds them up."""
        from dask.delayed import Delayed

        name, graph = f"pass-{uuid4().hex}", dict(self._graph)
        # nodes of their own, which a worker fetches once
        work, add = f"block-of-{name}", f"sum-of-{name}"
        graph[work], graph[add] = _OfBlock(of_block, self.n_features, self._beside), _Sum(plus)
        level: list[Any] = []
        for number, keys in enumerate(self._keys):
            level.append((f"blocks-of-{name}", number))
            graph[level[-1]] = (_call, work, number, self._known(number), *keys)
        height = 0
        while len(level) > 1:
            height, below, level = height + 1, level, []
            for k in range(0, len(below), _FAN_IN):
                level.append((f"sums-{height}-of-{name}", k))
                graph[level[-1]] = (_call, add, *below[k : k + _FAN_IN])
        total = compute(Delayed(level[0], graph), f"pass {self.n_passes + 1} over the rows")
        self.n_passes += 1
        prints, value = ({}, None) if total is None else total
        for number in sorted(prints.keys() | (self._prints or {}).keys()):
            self._check_unchanged(number, prints.get(number))
        self._prints = prints
        if total is None:
            raise ValueError("the blocks have no rows; give at least one.")
        return value

    def workers(self, n_jobs: int | None) -> DaskWorkers | None:
        """Workers of the cluster, where there is one and more than one process is asked for."""
        client = current_client()
        return None if n_jobs in (None, 1) or client is None else DaskWorkers(client, n_jobs)


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


class _OfBlock:
    """Checksums of a block and what it adds, or None where it has no rows."""

    def __init__(
        self, of_block: Callable[[Block], Any], n_features: int, beside: tuple[str, ...]
    ) -> None:
        self._of_block, self._n_features, self._beside = of_block, n_features, beside

    def __call__(self, number: int, known: int | None, X: Any, *values: Any) -> Any:
        beside = dict(zip(self._beside, values, strict=True))
        block = check_block(X, **beside, number=number, n_features=self._n_features, known=known)
        return ({number: Prints.of(block)}, self._of_block(block)) if len(block.y) else None


class _Sum:
    """Checksums of all blocks and their sum.

    It is from left to right, so that its rounding does not depend on who computes it.
    """

    def __init__(self, plus: Callable[[Any, Any], Any]) -> None:
        self._plus = plus

    def __call__(self, *values: Any) -> Any:
        total: Any = None
        for found in values:
            if found is None or total is None:
                total = total or found
                continue
            for number, prints in found[0].items():
                check_kinds(total[0], number, prints.kind)
            total = total[0] | found[0], self._plus(total[1], found[1])
        return total


def is_frame(values: Any) -> bool:
    """Whether a Dask collection is a data frame or a series."""
    return hasattr(values, "npartitions") and hasattr(values, "divisions")


def check_columns(X: Any) -> Any:
    """Array or frame of numbers, an array with all its columns in one chunk."""
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimension{'s' * (X.ndim != 1)}; give rows and columns, "
            "(n_samples, n_features)."
        )
    if X.shape[1] == 0:
        raise ValueError("X has no columns; give at least one.")
    if not is_frame(X):
        if X.dtype.kind not in "fiub":
            raise TypeError(
                f"X has dtype {X.dtype}; give numbers, best of dtype float32 or float64."
            )
        if np.isnan(X.shape[1]):
            raise ValueError(
                "X has an unknown number of columns; call X.compute_chunk_sizes() before."
            )
        return X.rechunk({1: -1})
    wrong = [k for k, dtype in X.dtypes.items() if getattr(dtype, "kind", "O") not in "fiub"]
    if wrong:
        more = "" if len(wrong) == 1 else f", and {len(wrong) - 1} more"
        raise TypeError(
            f"X has the column {wrong[0]!r} of dtype {X.dtypes[wrong[0]]}{more}, which is not of "
            "numbers; leave it out, or encode it, as dask.dataframe.get_dummies does."
        )
    return X


def align(values: Any, X: Any, name: str) -> Any:
    """One value a row, as a Dask collection in the blocks of X."""
    import dask.array as da

    known = not is_frame(X) and not np.isnan(X.shape[0])
    if is_frame(values):
        if values.ndim == 2 and len(values.columns) != 1:
            raise ValueError(f"{name} has {len(values.columns)} columns; give one value a row.")
        values = values if values.ndim == 1 else values[values.columns[0]]
        return _same_blocks(values, X, name)
    if not isinstance(values, da.Array):
        if not known:
            raise TypeError(
                f"{name} is a {type(values).__name__} beside X in blocks of unknown sizes; give "
                f"{name} in the same blocks, as a column of the same data frame, or call "
                "X.compute_chunk_sizes() before."
            )
        values = da.from_array(np.asarray(values), chunks=-1)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}; give one value a row.")
    if not known or np.isnan(values.shape[0]):
        return _same_blocks(values, X, name)
    if values.shape[0] != X.shape[0]:
        raise ValueError(
            f"{name} has {values.shape[0]} rows and X has {X.shape[0]}; give one value a row."
        )
    return values.rechunk(X.chunks[:1])


def _same_blocks(values: Any, X: Any, name: str) -> Any:
    n_blocks, n_wanted = _n_blocks(values), _n_blocks(X)
    if n_blocks != n_wanted:
        raise ValueError(
            f"{name} has {n_blocks} blocks and X has {n_wanted}, and the rows of each are not "
            f"known: give {name} in the blocks of X, as a column of the same data frame is, or "
            "call compute_chunk_sizes() on arrays before."
        )
    return values


def _n_blocks(values: Any) -> int:
    return values.npartitions if is_frame(values) else values.numblocks[0]


def joined_graph(collections: list[Any]) -> tuple[dict[Any, Any], list[tuple[Any, ...]]]:
    """Tasks of arrays and frames of equal blocks, and the keys of the parts of each block."""
    from dask.core import flatten
    from dask.highlevelgraph import HighLevelGraph

    ready = [values.optimize() if is_frame(values) else values for values in collections]
    keys = [list(flatten(values.__dask_keys__())) for values in ready]
    arrays = [k for k, values in enumerate(ready) if not is_frame(values)]
    graph: dict[Any, Any] = {}
    for values in ready:
        graph |= dict(values.__dask_graph__()) if is_frame(values) else {}
    if arrays:  # together, so that what they have in common is computed once
        merged = HighLevelGraph.merge(*(ready[k].__dask_graph__() for k in arrays))
        wanted = [key for k in arrays for key in keys[k]]
        # blocks that are kept by workers, which the optimization leaves out
        graph |= {k: v for k, v in merged.items() if kind_of(v) == "distributed.Future"}
        graph |= dict(ready[arrays[0]].__dask_optimize__(merged, wanted))
    return graph, list(zip(*keys, strict=True))
