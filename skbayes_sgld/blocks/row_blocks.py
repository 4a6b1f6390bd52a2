"""Blocks of rows that a function yields, or that are read from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skbayes_sgld._checks import check_number, printable
from skbayes_sgld.blocks.files import (
    NpyFile,
    blocks_of,
    blocks_of_parquet,
)
from skbayes_sgld.blocks.source import BY_ROW, POOL_SIZE, BlockWork, RowSource, add_up


class RowBlocks(RowSource):
    """Rows that are read block by block, as often as a fit needs them.

    Parameters
    ----------
    read : callable
        Function without arguments that returns an iterable of ``(X, y)`` or ``(X, y, weight)``. It
        must be the same each time: a pass that reads other values than the one before raises an
        error. X is dense, with the same columns and dtype in every block. Blocks of counts may be
        ``(X, y, weight, exposure)``, those of totals ``(X, y, weight, n_trials)`` and those of
        averages ``(X, y, weight, n_averaged)``, either all or none; weight is an array or None.
        Blocks for predictions may be X alone.
    pool_size : int, default=50_000
        Number of rows of the in-memory sample that chains run on; a source of at most as many rows
        is read into memory.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.blocks import RowBlocks
    >>> def read():
    ...     for seed in range(5):
    ...         X = np.random.default_rng(seed).standard_normal((200, 2))
    ...         yield X, X @ [1.0, -1.0] + 0.1 * X[:, 0] ** 2
    >>> sum(len(y) for X, y in RowBlocks(read))
    1000
    """

    def __init__(
        self, read: Callable[[], Iterable[tuple[Any, ...]]], *, pool_size: int = POOL_SIZE
    ) -> None:
        if not callable(read):
            raise TypeError(
                f"read is a {type(read).__name__}; give a function without arguments that returns "
                "an iterable of blocks (X, y) or (X, y, weight), since a fit reads them more than "
                "once."
            )
        self.read, self.pool_size, self.n_passes = read, pool_size, 0
        self._origin = getattr(read, "__qualname__", type(read).__name__)
        check_number(pool_size, "pool_size", low=1, closed="left", integer=True)
        try:
            first = next(iter(self), None)
        except TypeError as error:
            if "iterable" not in str(error):
                raise
            raise TypeError(f"read={read!r} must yield or hold blocks; {error}.") from None
        if first is None:
            raise ValueError("the source of blocks is empty; it must yield at least one.")
        X = _split(first, 0)[0] if isinstance(first, tuple) else first
        shape = np.shape(X)
        if len(shape) != 2:
            raise ValueError(f"X of block 0 has shape {shape}; it must be (n_rows, n_features).")
        if shape[1] == 0:
            raise ValueError(f"X of block 0 has shape {shape}: give it at least one column.")
        self.n_features, self.feature_names = shape[1], _names_of(X)
        self.has_exposure = isinstance(first, tuple) and any(v is not None for v in first[3:])
        self._dtype = np.asarray(X).dtype

    @classmethod
    def from_npy(
        cls,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        exposure: Any = None,
        *,
        n_trials: Any = None,
        n_averaged: Any = None,
        pool_size: int = POOL_SIZE,
    ) -> RowBlocks:
        """Rows of arrays in NumPy files.

        Windows of the files are mapped into memory, one block at a time. A file may be larger than
        the memory, and than the address space.

        Parameters
        ----------
        X : path of a ``.npy`` file
            File of an array of shape (n_samples, n_features), in C order.
        y : path of a ``.npy`` file
            File of an array of shape (n_samples,).
        sample_weight, exposure, n_trials, n_averaged : path of a file or None, default=None
            Weights, and the exposures of counts, the numbers of trials of totals or the sizes of
            averages.
        pool_size : int, default=50_000
            As for :class:`RowBlocks`.

        Returns
        -------
        blocks : RowBlocks

        Raises
        ------
        ValueError
            If the files do not hold such arrays with equal numbers of rows.
        """
        rows = NpyFile(X, 2, "X")
        by_row = _one_of(exposure=exposure, n_trials=n_trials, n_averaged=n_averaged)
        paths = {"y": y, "sample_weight": sample_weight, **by_row}
        beside = {k: None if path is None else NpyFile(path, 1, k) for k, path in paths.items()}
        blocks = cls(blocks_of(rows, **beside), pool_size=pool_size)
        return blocks._of(f"file {rows.path}", len(rows), by_row)

    @classmethod
    def from_parquet(
        cls,
        path: Any,
        target: str,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        exposure: str | None = None,
        *,
        n_trials: str | None = None,
        n_averaged: str | None = None,
        filesystem: Any = None,
        pool_size: int = POOL_SIZE,
    ) -> RowBlocks:
        """Rows of a Parquet file, or of a folder of them; it needs the extra ``parquet``.

        Parameters
        ----------
        path : path of a file or a folder, or a list of paths of files
            Files to read. An address, such as ``"s3://..."``, needs a ``filesystem``.
        target : str
            Name of the column of y.
        columns : sequence of str or None, default=None
            Names of the columns of X, of numbers or booleans. None: all columns without another
            role.
        weight, exposure, n_trials, n_averaged : str or None, default=None
            Names of the columns of weights, and of the exposures of counts, the numbers of trials
            of totals or the sizes of averages.
        filesystem : pyarrow.fs.FileSystem, or one of fsspec, default=None
            File system that opens the files. None: files of this machine.
        pool_size : int, default=50_000
            As for :class:`RowBlocks`.

        Returns
        -------
        blocks : RowBlocks

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        ValueError
            If a column is missing, or a file is no Parquet file or truncated.
        TypeError
            If a column of X, or another named column, is not numeric.
        """
        by_row = _one_of(exposure=exposure, n_trials=n_trials, n_averaged=n_averaged)
        (beside,) = by_row.values()
        read, n_rows, names = blocks_of_parquet(path, target, columns, weight, beside, filesystem)
        blocks = cls(read, pool_size=pool_size)._of(f"Parquet {path}", n_rows, by_row)
        blocks.feature_names = names
        return blocks

    @classmethod
    def _from_map(cls, X: Any, **beside: Any) -> RowBlocks:
        """Rows of a large memory map and of other arrays; one number stands for all rows."""
        values = {k: None if v is None else np.asarray(v) for k, v in beside.items()}
        for name, value in values.items():
            if value is not None and value.ndim == 0 and name != "y":
                values[name] = np.broadcast_to(value, len(X))
        return cls(blocks_of(X, **values))._of(f"memory map {X.filename}", len(X), values)

    def _of(self, origin: str, n_rows: int, beside: dict[str, Any]) -> RowBlocks:
        self._origin, self.n_rows = origin, n_rows
        self.argument = next((k for k in BY_ROW if beside.get(k) is not None), "")
        self._promise = f"{origin} must have the same rows in the same order whenever it is read"
        return self

    def __repr__(self) -> str:
        """Source, rows, columns, dtype and size."""
        columns = f"{self.n_features} columns in {self._dtype}"
        if self.n_rows is None:
            return f"RowBlocks({self._origin}: {columns}; rows are counted in the first pass)"
        size = self.n_rows * self.n_features * self._dtype.itemsize
        return f"RowBlocks({self._origin}: {self.n_rows:,} rows of {columns}, {_in_bytes(size)})"

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise, since blocks are meant to avoid an array of all rows."""
        raise TypeError(
            "RowBlocks are no array: only fit, score and the predictions of an estimator read "
            "them. Other functions, such as effects, take an array of some of the rows. For the "
            "steps of a pipeline transform each block where it is read: "
            "RowBlocks(lambda: ((scaler.transform(X), y) for X, y in blocks))."
        )

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Blocks as the source yields them."""
        return iter(self.read())

    def columns(self) -> Iterator[Any]:
        """X of each block, for predictions; blocks may be X alone.

        Blocks of Parquet files get the names of their columns.
        """
        for number, parts in enumerate(self):
            X = _split(parts, number)[0] if isinstance(parts, tuple) else parts
            has_names = self.feature_names is not None and isinstance(X, np.ndarray)
            yield pd.DataFrame(X, columns=self.feature_names, copy=False) if has_names else X

    def _pass(self, work: BlockWork, plus: Callable[[Any, Any], Any]) -> Any:
        def term(number: int, parts: Any) -> Any:
            X, *beside = _split(parts, number)
            names = _names_of(X)
            if names is not None and self.feature_names not in (None, names):
                raise ValueError(
                    f"X of block {number} has the columns {printable(', '.join(names))}, and that "
                    f"of block 0 has {printable(', '.join(self.feature_names or ()))}; give all "
                    "blocks the same, in one order."
                )
            return work(number, X, *beside)

        total = add_up((term(number, parts) for number, parts in enumerate(self)), plus)
        self.n_rows = sum(prints.n_rows for prints in total[0].values()) if total else 0
        return total


def _one_of(**by_row: Any) -> dict[str, Any]:
    """The argument that is given, by its name."""
    given = {name: value for name, value in by_row.items() if value is not None}
    if len(given) > 1:
        raise ValueError(
            f"{' and '.join(given)} are both given; counts have exposure, totals n_trials, and "
            "averages n_averaged."
        )
    return given or {"exposure": None}


def _in_bytes(size: float) -> str:
    """Size in bytes, kB, MB or GB."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _names_of(X: Any) -> list[str] | None:
    """Names of the columns of a data frame, if all are text."""
    names = getattr(X, "columns", None)
    are_names = names is not None and all(isinstance(name, str) for name in names)
    return list(names) if are_names and names is not None else None


def _split(parts: Any, number: int) -> tuple[Any, ...]:
    if not isinstance(parts, tuple) or len(parts) not in (2, 3, 4):
        is_tuple = isinstance(parts, tuple)
        of_parts = f" of {len(parts)}" if is_tuple else ""
        raise TypeError(
            f"block {number} is a {type(parts).__name__}{of_parts}; a block must be a tuple (X, "
            "y), (X, y, weight), or (X, y, weight, by_row), by_row being the exposure of counts, "
            "the n_trials of totals or the n_averaged of averages."
        )
    return parts
