"""Blocks of rows from memory maps, NumPy files and Parquet files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from mmap import ALLOCATIONGRANULARITY
from os import PathLike, fspath
from typing import Any

import numpy as np
import pandas as pd
from numpy.lib import format as npy

from skbayes_sgld._checks import check_path, printable
from skbayes_sgld._linalg import row_slices
from skbayes_sgld.blocks.source import Array

Reader = Callable[[], Iterator[tuple[Any, ...]]]

LARGE = 2**27  # numbers in a memory map from which it is read in passes
_BLOCK_NUMBERS = 2**22  # numbers of X in a block
_ADDRESS = re.compile(r"(?!file://)[A-Za-z][A-Za-z0-9+.-]+://")


def block_slices(n_rows: int, n_features: int) -> Iterator[slice]:
    """Slices of the blocks in which rows are read."""
    size = max(1, _BLOCK_NUMBERS // max(1, n_features))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def is_large(X: Any) -> bool:
    """Whether X is a memory map to read in passes: large, of floats and in C order."""
    floats = X.ndim == 2 and X.dtype in (np.float32, np.float64)
    return bool(floats and X.flags.c_contiguous and X.size >= LARGE)


def check_whole(X: Any) -> None:
    """Raise if the file of a memory map is shorter than the map: reading on would crash."""
    base = X
    while isinstance(getattr(base, "base", None), np.ndarray):
        base = base.base
    mapped = getattr(base, "_mmap", None)
    if mapped is None:
        return
    needed = X.offset - X.offset % ALLOCATIONGRANULARITY + len(mapped)
    if mapped.size() < needed:
        raise ValueError(
            f"the file of X, {X.filename}, has {mapped.size()} bytes, and the memory map needs "
            f"{needed}: it was truncated."
        )


def blocks_of(X: Any, y: Any, sample_weight: Any, by_row: Mapping[str, Any]) -> Reader:
    """Function that yields windows of X and of arrays with one value for each row.

    Each array is in memory, a memory map, an :class:`NpyFile` or None.
    """
    for name, values in {"y": y, "sample_weight": sample_weight, **by_row}.items():
        if values is not None and values.shape != (len(X),):
            raise ValueError(
                f"{getattr(values, 'path', name)} has shape {values.shape}; X has {len(X)} rows, "
                f"so give ({len(X)},)."
            )

    def read() -> Iterator[tuple[Any, ...]]:
        for rows in block_slices(*X.shape):
            check_whole(X)
            beside = (None if v is None else v[rows] for v in (y, sample_weight))
            yield X[rows], *beside, {name: v[rows] for name, v in by_row.items()}

    return read


class NpyFile:
    """Array in a NumPy file, mapped into memory one window at a time.

    Parameters
    ----------
    path : path of a ``.npy`` file
    n_dimensions : int
    argument : str
        Name of the argument in errors.

    Raises
    ------
    ValueError
        If the file holds no such array in C order, or is truncated.
    """

    def __init__(self, path: Any, n_dimensions: int, argument: str) -> None:
        check_path(path, argument)
        self.path = fspath(path)
        with open(self.path, "rb") as file:
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            self.shape, fortran, self.dtype = read(file)
            self._offset = file.tell()
        if 0 in self.shape:
            raise ValueError(
                f"{self.path} has an array of shape {self.shape}: it holds no numbers; give at "
                "least one row and one column."
            )
        if len(self.shape) != n_dimensions or self.dtype.hasobject:
            raise ValueError(
                f"{self.path} has an array of shape {self.shape} and dtype {self.dtype}; it must "
                f"be of numbers or text, in {n_dimensions} dimension(s)."
            )
        if fortran and n_dimensions > 1:
            raise ValueError(
                f"{self.path} has its array in Fortran order, in which rows are not together; "
                "save it by np.save(path, np.ascontiguousarray(X))."
            )

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.shape[0])

    def __getitem__(self, part: slice) -> Array:
        """Window of the file, mapped into memory."""
        size = (part.stop - part.start, *self.shape[1:])
        each = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=int))
        try:
            return np.memmap(self.path, self.dtype, "r", self._offset + part.start * each, size)
        except ValueError:
            raise ValueError(
                f"{self.path} ends before row {part.stop - 1} of {self.shape[0]}: it was truncated."
            ) from None


def blocks_of_parquet(
    path: str | PathLike[str],
    target: str,
    columns: Sequence[str] | None,
    weight: str | None,
    by_row: Mapping[str, str],
    filesystem: Any = None,
    labels: Sequence[str] = (),
) -> tuple[Reader, int, list[str]]:
    """Function that yields blocks of Parquet files, the number of rows and the column names.

    Columns named in ``labels`` are of any type, and blocks are then data frames. Every pass opens
    the files again, since a file may have been replaced.
    """
    for each in path if isinstance(path, (list, tuple)) else [path]:
        check_path(each, "path")
        if filesystem is None and _ADDRESS.match(str(each)):
            raise ValueError(
                f"path={each!r} is an address, and from_parquet opens no connection; give the path "
                "of a file, or a filesystem= of pyarrow or fsspec that opens it."
            )
    schema, files = _parquet_files(path, filesystem)
    n_rows = 0
    for file in files:
        with _whole(file.path):
            n_rows += file.count_rows()
    extra = [name for name in (target, weight, *by_row.values()) if name is not None]
    names = [n for n in schema.names if n not in extra] if columns is None else list(columns)
    numbers = [name for name in names if name not in labels]
    wrong = [name for name in labels if name not in names]
    if wrong:
        raise ValueError(
            f"labels has {wrong[0]!r}, which is no column of X; these are {', '.join(names)}."
        )
    _check_schema(path, schema, numbers, extra)
    rows = max(1, _BLOCK_NUMBERS // max(1, len(names)))

    def read() -> Iterator[tuple[Any, ...]]:
        schema, files = _parquet_files(path, filesystem)
        _check_schema(path, schema, numbers, extra)
        for file in files:
            with _whole(file.path):
                for batch in file.to_batches(
                    schema=schema, columns=[*names, *extra], batch_size=rows, batch_readahead=1
                ):
                    yield block_of(batch)

    def block_of(batch: Any) -> tuple[Any, ...]:
        values = {k: batch.column(k).to_numpy(zero_copy_only=False) for k in [*names, *extra]}
        in_columns = [values[name] for name in numbers]
        # booleans with missing values have dtype object
        dtypes = [np.float32 if each.dtype == object else each.dtype for each in in_columns]
        X: Any = np.empty((batch.num_rows, len(numbers)), dtype=np.result_type(*dtypes, np.float32))
        for part in row_slices(*X.shape):  # which stay in cache: half of the time
            for j, column in enumerate(in_columns):
                X[part, j] = column[part]
        if labels:
            X = pd.DataFrame(X, columns=numbers).assign(**{name: values[name] for name in labels})
            X = X[names]
        own = None if weight is None else values[weight]
        return X, values[target], own, {name: values[k] for name, k in by_row.items()}

    return read, n_rows, names


def _parquet_files(path: Any, filesystem: Any) -> tuple[Any, list[Any]]:
    """Schema of a Parquet file or folder, and its files."""
    try:
        from pyarrow import dataset
    except ImportError as error:
        raise ImportError(
            'RowBlocks.from_parquet needs pyarrow: pip install "skbayes-sgld[parquet]"'
        ) from error
    with _whole(path):
        data = dataset.dataset(path, format="parquet", filesystem=filesystem)
        return data.schema, list(data.get_fragments())


@contextmanager
def _whole(path: Any) -> Iterator[None]:
    """Raise an error that names the file that is no Parquet file, or truncated."""
    from pyarrow import ArrowException

    try:
        yield
    except FileNotFoundError:
        raise
    except (ArrowException, OSError) as error:
        raise ValueError(
            f"{printable(path)} is not a file of Parquet, or not a whole one: {printable(error)}"
        ) from None


def _check_schema(path: Any, schema: Any, names: list[str], beside: list[str]) -> None:
    """Raise if a column is missing or not numeric; ``beside[0]`` may hold labels."""
    from pyarrow import types

    missing = [name for name in [*names, *beside] if name not in schema.names]
    if missing:
        raise ValueError(
            f"{path} has no column {missing[0]!r}; it has {printable(', '.join(schema.names))}."
        )
    for name in [*names, *beside[1:]]:
        kind = schema.field(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise TypeError(
                f"column {name!r} of {path} is of type {kind}, which is not of numbers; leave it "
                "out by columns=, encode it, or name it in labels=, for group_effects."
            )
