"""Rows on the workers of Dask: a pass is a tree of tasks, and only sums cross the network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

import numpy as np

from skbayes_sgld.blocks.dask_cluster import DaskWorkers, compute, current_client
from skbayes_sgld.blocks.source import BlockWork, RowSource, add_up, check_names, kind_of, names_of
from skbayes_sgld.rows.arguments import given

_FAN_IN = 8  # sums that one task adds up, so that no worker holds those of all blocks


class DaskRows(RowSource):
    """Blocks of a Dask array or data frame, each read by the worker that has or computes it.

    Nothing is kept between passes: rows that are not persisted are computed again in each.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        Rows with any chunks; columns in several chunks are joined.
    y : dask.array.Array, dask.dataframe.Series or array-like
        Observations; chunked like X if sizes of chunks are not known.
    weight : as y, or None
    **by_row : as y, or None
        Arguments by row, such as the ``exposure`` of counts.
    """

    _promise = (
        "X, y and weights must be the same rows whenever they are computed; call persist() on "
        "those that are not"
    )

    def __init__(self, X: Any, y: Any, weight: Any = None, **by_row: Any) -> None:
        X = check_columns(X)
        if is_frame(X):
            columns = list(X.columns)
            self.feature_names = columns if all(isinstance(c, str) for c in columns) else None
        self.n_features = int(X.shape[1])
        by_row = given(by_row)
        self.arguments = tuple(by_row)
        beside = {"y": y, "sample_weight": weight, **by_row}
        aligned = [None if v is None else align(v, X, name) for name, v in beside.items()]
        self._graph, keys = joined_graph([X, *(v for v in aligned if v is not None)])
        # the parts of each block; None for arguments that are not given
        parts = (iter(each) for each in keys)
        self._keys = [
            (next(part), *(None if v is None else next(part) for v in aligned)) for part in parts
        ]
        self._shared, self._own = tasks_by_block(self._graph, keys)
        has_shape = not is_frame(X) and not np.isnan(X.shape[0])
        self._n_rows = int(X.shape[0]) if has_shape else None

    @property
    def n_rows(self) -> int:  # type: ignore[override]  # an attribute that is found when asked
        """Number of rows; if it is not known, the workers count them."""
        if self._n_rows is None:
            from dask.delayed import Delayed

            name = f"count-{uuid4().hex}"
            lengths = {(name, k): (len, keys[1]) for k, keys in enumerate(self._keys)}
            graph = self._graph | lengths | {name: (sum, list(lengths))}
            self._n_rows = int(compute(Delayed(name, graph), "the count of the rows"))
        return self._n_rows

    def _pass(self, work: BlockWork, plus: Callable[[Any, Any], Any]) -> Any:
        """One task for each block, which reads it too, and a tree of sums."""
        from dask.delayed import Delayed
        from dask.task_spec import Task, TaskRef

        name, graph = f"pass-{uuid4().hex}", dict(self._shared)
        # separate nodes, which a worker fetches once
        on_block, add = f"work-of-{name}", f"sum-of-{name}"
        graph[on_block], graph[add] = work, plus
        level: list[Any] = []
        for number, (keys, own) in enumerate(zip(self._keys, self._own, strict=True)):
            level.append((f"blocks-of-{name}", number))
            parts = (None if key is None else TaskRef(key) for key in keys)
            names = self.arguments, self.feature_names
            on_parts = Task(level[-1], _call, TaskRef(on_block), *names, number, *parts)
            graph[level[-1]] = Task.fuse(*own, on_parts)
        while len(level) > 1:
            below, level = level, []
            for k in range(0, len(below), _FAN_IN):
                level.append((f"sums-of-{len(below)}-of-{name}", k))
                graph[level[-1]] = (add_up, below[k : k + _FAN_IN], add)
        return compute(Delayed(level[0], graph), f"pass {self.n_passes + 1} over the rows")

    def workers(self, n_jobs: int | None) -> DaskWorkers | None:
        """Workers of the cluster, if there is one and ``n_jobs`` asks for several processes."""
        client = current_client()
        return None if n_jobs in (None, 1) or client is None else DaskWorkers(client, n_jobs)


def _call(
    work: BlockWork,
    names: tuple[str, ...],
    columns: list[str] | None,
    number: int,
    X: Any,
    y: Any,
    weight: Any,
    *by_row: Any,
) -> Any:
    check_names(names_of(X), columns, number)
    return work(number, X, y, weight, dict(zip(names, by_row, strict=True)))


def is_frame(values: Any) -> bool:
    """Whether a Dask collection is a data frame or a series."""
    return hasattr(values, "npartitions") and hasattr(values, "divisions")


def check_columns(X: Any, labels: Iterable[int] = ()) -> Any:
    """Array or frame of numbers; an array gets all its columns in one chunk.

    Columns at the positions ``labels`` of a frame may have any type.
    """
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
    numbers = X.dtypes.drop(X.columns[list(labels)])
    wrong = [k for k, dtype in numbers.items() if getattr(dtype, "kind", "O") not in "fiub"]
    if wrong:
        more = "" if len(wrong) == 1 else f", and {len(wrong) - 1} more"
        raise TypeError(
            f"X has the column {wrong[0]!r} of dtype {X.dtypes[wrong[0]]}{more}, which is not of "
            "numbers; leave it out, or encode it, as dask.dataframe.get_dummies does."
        )
    return X


def align(values: Any, X: Any, name: str) -> Any:
    """One value for each row, as a Dask collection with the chunks of X."""
    import dask.array as da

    has_shape = not is_frame(X) and not np.isnan(X.shape[0])
    if not is_frame(values) and not isinstance(values, da.Array):
        if not has_shape:
            raise TypeError(
                f"{name} is a {type(values).__name__} beside X in blocks of unknown sizes; give "
                f"{name} in the same blocks, as a column of the same data frame, or call "
                "X.compute_chunk_sizes() before."
            )
        values = da.from_array(np.asarray(values), chunks=-1)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[values.columns[0]] if is_frame(values) else values[:, 0]
    if values.ndim != 1:
        has = f"{values.shape[1]} columns" if is_frame(values) else f"shape {values.shape}"
        raise ValueError(f"{name} has {has}; give one value a row.")
    if has_shape and not is_frame(values) and not np.isnan(values.shape[0]):
        if values.shape[0] != X.shape[0]:
            raise ValueError(
                f"{name} has {values.shape[0]} rows and X has {X.shape[0]}; give one value a row."
            )
        return values.rechunk(X.chunks[:1])
    if values.npartitions != X.npartitions:
        raise ValueError(
            f"{name} has {values.npartitions} blocks and X has {X.npartitions}, and the rows of "
            f"each are not known: give {name} in the blocks of X, as a column of the same data "
            "frame is, or call compute_chunk_sizes() on arrays before."
        )
    return values


def _optimized(frame: Any) -> Any:
    """Frame of fewer tasks, in the same blocks: Dask reads few columns of files in larger ones."""
    optimized = frame.optimize()
    return optimized if optimized.npartitions == frame.npartitions else frame.simplify()


def joined_graph(collections: list[Any]) -> tuple[dict[Any, Any], list[tuple[Any, ...]]]:
    """Tasks of collections with equal blocks, and the keys of the parts of each block."""
    from dask.core import flatten
    from dask.highlevelgraph import HighLevelGraph
    from dask.task_spec import Alias

    ready = [_optimized(values) if is_frame(values) else values for values in collections]
    keys = [list(flatten(values.__dask_keys__())) for values in ready]
    arrays = [k for k, values in enumerate(ready) if not is_frame(values)]
    graph: dict[Any, Any] = {}
    for values in ready:
        graph |= dict(values.__dask_graph__()) if is_frame(values) else {}
    if arrays:  # together, so that shared tasks are computed once
        merged = HighLevelGraph.merge(*(ready[k].__dask_graph__() for k in arrays))
        graph_keys = [key for k in arrays for key in keys[k]]
        # blocks that workers hold, which the optimization drops
        graph |= {k: v for k, v in merged.items() if kind_of(v) == "distributed.Future"}
        graph |= dict(ready[arrays[0]].__dask_optimize__(merged, graph_keys))
    for key, task in graph.items():
        if isinstance(task, Alias):  # some have the key of their target
            graph[key] = Alias(key, task.target)
    return graph, list(zip(*keys, strict=True))


def tasks_by_block(
    graph: dict[Any, Any], keys: list[tuple[Any, ...]]
) -> tuple[dict[Any, Any], list[list[Any]]]:
    """Tasks that several blocks need, and for each block those that no other needs.

    A pass makes one task of the latter. As tasks of their own they would leave parts in the memory
    of workers, which read further blocks before they sum over those that they have.
    """
    from dask._task_spec import convert_legacy_graph  # dask.task_spec does not have it
    from dask.core import get_dependencies, toposort

    # parts that workers hold already
    held = {key: task for key, task in graph.items() if kind_of(task) == "distributed.Future"}
    tasks = convert_legacy_graph({k: v for k, v in graph.items() if k not in held}, set(graph))
    needs = {key: get_dependencies(tasks, key) & tasks.keys() for key in tasks}
    several, needed_by = -1, dict[Any, int]()

    def note(needed: Iterable[Any], block: int) -> None:
        for key in needed:
            needed_by[key] = block if needed_by.get(key, block) == block else several

    for number, parts in enumerate(keys):
        note(parts, number)
    shared, own = held, [list[Any]() for _ in keys]
    for key in reversed(toposort(tasks, needs)):
        if key in needed_by:
            block = needed_by[key]
            note(needs[key], block)
            if block == several:
                shared[key] = tasks[key]
            else:
                own[block].append(tasks[key])
    return shared, own
