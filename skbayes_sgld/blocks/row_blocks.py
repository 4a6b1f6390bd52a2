"""Blocks of rows that a function yields, or that are read from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skbayes_sgld._checks import check_number
from skbayes_sgld.blocks.files import (
    NpyFile,
    blocks_of,
    blocks_of_parquet,
)
from skbayes_sgld.blocks.source import (
    BlockWork,
    RowSource,
    add_up,
    as_array,
    check_names,
    named,
    names_of,
)
from skbayes_sgld.rows.arguments import ROW_ARGUMENTS, given, size_argument


class RowBlocks(RowSource):
    """Rows that are read block by block, as often as a fit needs them.

    Parameters
    ----------
    read : callable
        Function without arguments that returns an iterable of ``(X, y)`` or ``(X, y, weight)``. It
        must be the same each time: a pass that reads other values than the one before raises an
        error. X is dense, with the same columns and dtype in every block. A fourth part holds
        arguments by row, in all blocks or in none: an array is the exposure of counts, the
        ``n_trials`` of totals or the ``n_averaged`` of averages; a dict has arrays by the names of
        the arguments. Weight is an array or None. Blocks for predictions may be X alone.
    pool_size : int or None, default=None
        Number of rows of the in-memory sample that chains run on; a source of at most as many rows
        is read into memory. None: 50,000, or 1 % of the rows if their number is known and that is
        more, up to 3 million numbers.

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
        self, read: Callable[[], Iterable[tuple[Any, ...]]], *, pool_size: int | None = None
    ) -> None:
        if not callable(read):
            raise TypeError(
                f"read is a {type(read).__name__}; give a function without arguments that returns "
                "an iterable of blocks (X, y) or (X, y, weight), since a fit reads them more than "
                "once."
            )
        self.read, self.pool_size, self.n_passes = read, pool_size, 0
        self._origin = getattr(read, "__qualname__", type(read).__name__)
        if pool_size is not None:
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
        self.n_features, self.feature_names = shape[1], names_of(X)
        self.arguments = tuple(named(first[3])) if isinstance(first, tuple) and first[3:] else ()
        self._dtype = as_array(X).dtype

    @classmethod
    def from_npy(
        cls,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        exposure: Any = None,
        *,
        pool_size: int | None = None,
        **by_row: Any,
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
        sample_weight, exposure : path of a file or None, default=None
            Weights, and the exposures of counts.
        pool_size : int or None, default=None
            As for :class:`RowBlocks`.
        **by_row : path of a file or None
            Further arguments by row, such as ``n_trials`` of totals and ``n_averaged`` of averages.

        Returns
        -------
        blocks : RowBlocks

        Raises
        ------
        ValueError
            If the files do not hold such arrays with equal numbers of rows.
        """
        by_row = _known("from_npy", {"exposure": exposure, **by_row})
        rows, own = NpyFile(X, 2, "X"), None
        if sample_weight is not None:
            own = NpyFile(sample_weight, 1, "sample_weight")
        beside = {name: NpyFile(path, 1, name) for name, path in by_row.items()}
        read = blocks_of(rows, NpyFile(y, 1, "y"), own, beside)
        return cls(read, pool_size=pool_size)._of(f"file {rows.path}", len(rows))

    @classmethod
    def from_parquet(
        cls,
        path: Any,
        target: str,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        exposure: str | None = None,
        *,
        labels: Sequence[str] = (),
        filesystem: Any = None,
        pool_size: int | None = None,
        **by_row: str | None,
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
        weight, exposure : str or None, default=None
            Names of the columns of weights, and of the exposures of counts.
        labels : sequence of str, default=()
            Names of the columns of X that hold labels of groups, of any type, for models with
            ``group_effects``. Blocks are then data frames.
        filesystem : pyarrow.fs.FileSystem, or one of fsspec, default=None
            File system that opens the files. None: files of this machine.
        pool_size : int or None, default=None
            As for :class:`RowBlocks`.
        **by_row : str or None
            Names of the columns of further arguments by row, such as ``n_trials`` of totals and
            ``n_averaged`` of averages.

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
        beside = _known("from_parquet", {"exposure": exposure, **by_row})
        read, n_rows, names = blocks_of_parquet(
            path, target, columns, weight, beside, filesystem, tuple(labels)
        )
        blocks = cls(read, pool_size=pool_size)._of(f"Parquet {path}", n_rows)
        blocks.feature_names = names
        return blocks

    @classmethod
    def _from_map(cls, X: Any, y: Any, sample_weight: Any, **by_row: Any) -> RowBlocks:
        """Rows of a large memory map and of other arrays; one number stands for all rows."""
        arrays = {name: np.asarray(v) for name, v in given(by_row).items()}
        beside = {k: v if v.ndim else np.broadcast_to(v, len(X)) for k, v in arrays.items()}
        own = None if sample_weight is None else np.asarray(sample_weight)
        if own is not None and own.ndim == 0:
            own = np.broadcast_to(own, len(X))
        read = blocks_of(X, np.asarray(y), own, beside)
        return cls(read)._of(f"memory map {X.filename}", len(X))

    def _of(self, origin: str, n_rows: int) -> RowBlocks:
        self._origin, self.n_rows = origin, n_rows
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
            check_names(names_of(X), self.feature_names, number)
            return work(number, X, *beside)

        total = add_up((term(number, parts) for number, parts in enumerate(self)), plus)
        self.n_rows = sum(prints.n_rows for prints in total[0].values()) if total else 0
        return total


def _known(caller: str, by_row: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by row that are given; raise if there is none of a name, or two are sizes."""
    for name in by_row:
        if name not in ROW_ARGUMENTS:
            raise TypeError(
                f"RowBlocks.{caller} takes no argument {name!r}; arguments by row are "
                f"{', '.join(ROW_ARGUMENTS)}."
            )
    found = given(by_row)
    size_argument(found)
    return found


def _in_bytes(size: float) -> str:
    """Size in bytes, kB, MB or GB."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


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
