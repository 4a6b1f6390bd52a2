"""Rows out of memory: blocks, their checks, and passes over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from skbayes_sgld._checks import printable
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.rows.arguments import ROW_ARGUMENTS, size_of
from skbayes_sgld.rows.fingerprint import Fingerprint

Value = TypeVar("Value")

_POOL_SIZE = 50_000
# a larger sample of many rows spares a pass, since its mode is nearer to theirs and its third order
# more precise: the error falls as its size to the power 1.5, and grows as the root of all rows
_SAMPLED_OF, _SAMPLE_NUMBERS = 100, 3_000_000
# what y is made over, accepted with the row of the block that is wrong; all other arguments have
# the check of their entry alone. "" is the fourth array of a block, which has no name
_SIZES = {
    "exposure": "exposures must be positive",
    "n_trials": "numbers of trials must be 1 or more",
    "n_averaged": "sizes of averages must be positive",
    "": "exposures and n_averaged must be positive, and n_trials 1 or more",
}
_KINDS = {**dict.fromkeys("biuf", "numbers"), **dict.fromkeys("UTO", "text"), "S": "bytes"}


class Block(NamedTuple):
    """Checked rows of one block.

    Attributes
    ----------
    X : ndarray of shape (n, d), float32 or float64, in C order
    values : RowValues
        Observations as in the source, where labels may be text; weights; and as ``others`` the
        arguments by row, by their names.
    number : int
        Position of the block in the source; it seeds random choices from its rows.
    """

    X: Array
    values: RowValues
    number: int

    @property
    def y(self) -> Array:
        """Observations ``(n,)``."""
        assert self.values.y is not None
        return self.values.y

    @property
    def weight(self) -> Array | None:
        """Weights ``(n,)``, or None."""
        return self.values.weight

    @property
    def size(self) -> Array | None:
        """Size that each y is made over ``(n,)``: exposure, trials or observations; or None."""
        return size_of(self.values.others)

    def with_y(self, y: Array) -> Block:
        """Block with other observations."""
        return self._replace(values=replace(self.values, y=y))

    def with_weight(self) -> Block:
        """Rows of positive weight."""
        if self.weight is None or self.weight.all():
            return self
        positive = self.weight > 0
        return self._replace(X=self.X[positive], values=self.values[positive])


class Prints(NamedTuple):
    """Checksums of a block, by which later passes check that it has not changed.

    Attributes
    ----------
    kind : str
        Kind of y, such as numbers or text.
    n_rows : int
    X, y, weight : int
        Checksums; -1 for weights that are None.
    by_row : dict of str to int
        Checksums of the arguments by row.
    """

    kind: str
    n_rows: int
    X: int
    y: int
    weight: int
    by_row: dict[str, int]

    @classmethod
    def of(cls, block: Block) -> Prints:
        """Checksums of one block."""
        y = block.y
        kind = _KINDS.get(y.dtype.kind, str(y.dtype))
        if y.dtype.kind in "OT":  # the memory holds addresses
            y = pd.util.hash_array(y.astype(object))
        weight = -1 if block.weight is None else _checksum(block.weight)
        by_row = {name: _checksum(v) for name, v in block.values.others.items()}
        return cls(kind, len(y), _checksum(block.X), _checksum(y), weight, by_row)


def _checksum(values: Array) -> int:
    """CRC of the bytes of an array."""
    return crc32(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


@dataclass(frozen=True)
class BlockWork:
    """Work on one block in a pass: checks, checksums, and a function of the block.

    Attributes
    ----------
    function : callable
        Term of the block, a function of a :class:`Block`.
    n_features : int
    dtype : dtype or None
        Dtype of X in the first block that was read, before any conversion.
    last : dict of Prints, by number, or None
        Checksums of the blocks with rows in the last pass; None in the first pass.
    promise : str
        Condition that a changed block violates, for the error.
    arguments : tuple of str
        As for :class:`RowSource`.
    """

    function: Callable[[Block], Any]
    n_features: int
    dtype: Any
    last: dict[int, Prints] | None
    promise: str
    arguments: tuple[str, ...]

    def __call__(
        self, number: int, X: Any, y: Any, weight: Any = None, by_row: Any = None
    ) -> tuple[dict[int, Prints], Any] | None:
        """Checksums and term of the block; None if it has no rows.

        Raises
        ------
        ValueError, TypeError
            If a row cannot be used; the error names it and the block. Also if one bit of X, y or
            the weights has changed since the last pass.
        """
        block = self.check(number, X, y, weight, named(by_row))
        prints = Prints.of(block) if len(block.y) else None
        self.check_unchanged(number, prints)
        return None if prints is None else ({number: prints}, self.function(block))

    def check(self, number: int, X: Any, y: Any, weight: Any, by_row: Mapping[str, Any]) -> Block:
        """Rows of a block as numbers; an error names the block and the row."""
        where = f"block {number}"
        if issparse(X):
            raise TypeError(
                f"X of {where} is sparse; blocks must be dense arrays. Give fit the whole sparse "
                "matrix, or the blocks to partial_fit."
            )
        X, y = as_array(X), np.asarray(y)
        if X.ndim != 2:
            raise ValueError(
                f"X of {where} has shape {X.shape}; it must be (n_rows, {self.n_features})."
            )
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X of {where} has {X.shape[1]} columns, and that of block 0 has "
                f"{self.n_features}; give all blocks the same columns."
            )
        if X.dtype.kind not in "fiub":
            raise TypeError(
                f"X of {where} has dtype {X.dtype}; give numbers, best of dtype float32 or float64."
            )
        if self.dtype is not None and X.dtype != self.dtype:
            raise TypeError(
                f"X of {where} has dtype {X.dtype}, and the block that was read first has "
                f"{self.dtype}; give all blocks the same."
            )
        if y.shape == (len(X), 1):
            y = y[:, 0]
        if y.shape != (len(X),):
            raise ValueError(
                f"y of {where} has shape {y.shape}, and X has {len(X)} rows; y must be ({len(X)},)."
            )
        X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype == np.float32 else np.float64)
        _check_finite(X, "X", where)
        if y.dtype.kind == "f":
            _check_finite(y, "y", where)
        elif y.dtype.kind == "O":
            _check_objects(y, where)
        if weight is not None:
            weight = _one_a_row(weight, "weight", len(X), where, np.less, "weights must be >= 0")
        others = self._check_by_row(by_row, X, where) if len(X) else {}
        return Block(X, RowValues(y, weight, others=others), number)

    def _check_by_row(self, by_row: Mapping[str, Any], X: Array, where: str) -> dict[str, Array]:
        """Arguments by row of a block as numbers: those of the first block."""
        for name in sorted(set(by_row) ^ set(self.arguments)):
            this, first = ("no ", "has it") if name in self.arguments else ("", "has none")
            raise ValueError(
                f"{where} has {this}{called(name)}, and the first block {first}; give it in all "
                "blocks, or in none."
            )
        checked = {}
        for name, each in by_row.items():
            if name in _SIZES:
                label = called(name) if name else f"{called(name)},"
                each = _one_a_row(each, label, len(X), where, np.less_equal, _SIZES[name])
            else:
                try:
                    each = ROW_ARGUMENTS[name].check(each, X)
                except (TypeError, ValueError) as error:
                    raise type(error)(f"{where}: {error}") from None
            checked[name] = each
        return checked

    def check_unchanged(self, number: int, prints: Prints | None) -> None:
        """Raise if a block has changed since the last pass; ``prints`` is None without rows."""
        if self.last is None:
            return
        last = self.last.get(number)
        sizes = [0 if each is None else each.n_rows for each in (prints, last)]
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"block {number} has {sizes[0]} rows, and had {sizes[1]} in the pass before; "
                f"{self.promise}."
            )
        names = {"X": "X", "y": "y", "weight": "the weights"}
        changed = [names[k] for k in names if getattr(prints, k, None) != getattr(last, k, None)]
        if prints is not None and last is not None:
            now, before = prints.by_row, last.by_row
            changed += [f"the {called(k)}" for k in now if now[k] != before.get(k)]
        if changed:
            raise ValueError(
                f"block {number} is not what it was in the pass before: {' and '.join(changed)} "
                f"changed; {self.promise}."
            )


def named(by_row: Any) -> dict[str, Any]:
    """Arguments by row of a block by name; an array, which has none, is named ""."""
    if by_row is None:
        return {}
    if not isinstance(by_row, Mapping):
        return {"": by_row}
    return {name: each for name, each in by_row.items() if each is not None}


def called(name: str) -> str:
    """Argument by row of a block in an error; one without a name may be any size."""
    *some, last = [each for each, argument in ROW_ARGUMENTS.items() if argument.is_size]
    return name or f"{', '.join(some)} or {last}"


def add_up(terms: Iterable[Any], plus: Callable[[Any, Any], Any]) -> Any:
    """Checksums and sum of the terms of :class:`BlockWork`; None if no block has rows.

    The sum is from left to right, so that its rounding is always the same.
    """
    total: Any = None
    for term in terms:
        if term is None or total is None:
            total = total or term
            continue
        first, kind = next(iter(total[0].items()))
        for number, prints in term[0].items():
            if prints.kind != kind.kind:
                raise TypeError(
                    f"y of block {number} is {prints.kind}, and that of block {first} is "
                    f"{kind.kind}; give all blocks the same."
                )
        total = total[0] | term[0], plus(total[1], term[1])
    return total


class RowSource(ABC):
    """Rows in blocks, which are read in passes, always in the same order.

    A pass computes a sum over the blocks of a function of each. Everything that a fit needs from
    the data is such a sum: moments of the columns, the set of labels, gradient and Hessian at a
    point, a random sample of the rows. A subclass defines :meth:`_pass`.

    Attributes
    ----------
    n_features : int
    feature_names : list of str or None
    n_rows : int or None
        Number of rows, if known before a pass.
    pool_size : int or None
        Number of rows of the in-memory sample that chains run on; a source of at most as many rows
        is read into memory. None: :attr:`n_sampled` chooses.
    n_passes : int
        Number of passes so far.
    arguments : tuple of str
        Names of the arguments by row that the blocks hold; "" is what y is made over, if the
        source does not say what that is.
    fingerprint : Fingerprint or None
        Fingerprint of the rows with a weight above 0, without arguments by row; None before the
        first pass.
    """

    n_features: int
    feature_names: list[str] | None = None
    n_rows: int | None = None
    pool_size: int | None = None
    n_passes: int = 0
    arguments: tuple[str, ...] = ()
    fingerprint: Fingerprint | None = None
    _dtype: Any = None  # dtype of X in the first block that was read
    _prints: dict[int, Prints] | None = None  # of blocks with rows, in the last pass
    _promise = "a source of blocks must yield the same rows in the same order whenever it is read"

    @property
    def n_sampled(self) -> int:
        """Rows of the sample: 50,000, or 1 % of all up to 3 million numbers."""
        if self.pool_size is not None:
            return self.pool_size
        most = max(_POOL_SIZE, _SAMPLE_NUMBERS // self.n_features)
        return min(max(_POOL_SIZE, (self.n_rows or 0) // _SAMPLED_OF), most)

    @abstractmethod
    def _pass(self, work: BlockWork, plus: Callable[[Any, Any], Any]) -> Any:
        """Apply ``work``, which can be pickled, to each block, and :func:`add_up` the results."""

    def reduce(
        self, function: Callable[[Block], Value], plus: Callable[[Value, Value], Value]
    ) -> Value:
        """Sum over all blocks that have rows, in one pass.

        Parameters
        ----------
        function : callable
            Function of a :class:`Block` that gives its term; it can be pickled.
        plus : callable
            Sum of two terms, associative up to rounding; the terms of later blocks are on the
            right.

        Raises
        ------
        ValueError, TypeError
            If a row cannot be used (the error names it and its block), if there are no rows, or if
            one bit of a block's X, y or weights has changed since the last pass.
        """
        first = self._prints is None
        if first:
            function, plus = partial(with_fingerprint, function), partial(add_pairs, plus)  # type: ignore[assignment]
        known = self._dtype, self._prints, self._promise, self.arguments
        work = BlockWork(function, self.n_features, *known)
        total = self._pass(work, plus)
        prints: dict[int, Prints] = {} if total is None else total[0]
        for number in sorted((self._prints or {}).keys() - prints.keys()):
            work.check_unchanged(number, None)
        self._prints, self.n_passes = prints, self.n_passes + 1
        if total is None:
            raise ValueError("the blocks have no rows; give at least one.")
        value: Any = total[1]
        if first:
            self.fingerprint, value = value
        result: Value = value
        return result

    def workers(self, n_jobs: int | None) -> Any:
        """Workers that run chains side by side; None: the processes of ``n_jobs``.

        See :class:`~skbayes_sgld.sampling.workers.Workers`.
        """
        return None


def with_fingerprint(
    function: Callable[[Any], Any], block: Block
) -> tuple[Fingerprint | None, Any]:
    """Fingerprint of a block's rows, without an offset, and the function of the block."""
    rows = block.with_weight()
    known = rows.y.dtype.kind in "fiub"
    if not len(rows.y):
        return None, function(block)
    y = rows.y if known else np.zeros(len(rows.y))
    found = Fingerprint.of(rows.X, RowValues(y, rows.weight))
    found.sums[:, -1] = np.nan
    return found if known else found.without_target(), function(block)


def add_pairs(
    plus: Callable[[Any, Any], Any],
    a: tuple[Fingerprint | None, Any],
    b: tuple[Fingerprint | None, Any],
) -> tuple[Fingerprint | None, Any]:
    """Sum of two values of :func:`with_fingerprint`."""
    first, second = a[0], b[0]
    both = first.plus(second) if first and second else first or second
    return both, plus(a[1], b[1])


def kind_of(rows: Any) -> str:
    """Library and name of the type of rows, such as ``"numpy.memmap"``."""
    kind = type(rows)
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def names_of(X: Any) -> list[str] | None:
    """Names of the columns of a data frame, if all are text."""
    names = getattr(X, "columns", None)
    are_names = names is not None and all(isinstance(name, str) for name in names)
    return list(names) if are_names and names is not None else None


def check_names(names: list[str] | None, expected: list[str] | None, number: int) -> None:
    """Raise if a block has other names of columns than the source, or another order."""
    if names is not None and expected not in (None, names):
        raise ValueError(
            f"X of block {number} has the columns {printable(', '.join(names))}, and that "
            f"of block 0 has {printable(', '.join(expected or ()))}; give all "
            "blocks the same, in one order."
        )


def as_array(X: Any) -> Array:
    """Rows as an array; booleans or missing values beside numbers in a frame are numbers too."""
    array = np.asarray(X)
    kinds = {getattr(dtype, "kind", "O") for dtype in getattr(X, "dtypes", ())}
    if array.dtype == object and kinds and kinds <= set("fiub"):
        return X.to_numpy(np.float64, na_value=np.nan)
    return array


def _check_objects(y: Array, where: str) -> None:
    missing = np.flatnonzero(pd.isna(y))
    if len(missing):
        row = int(missing[0])
        raise ValueError(f"y is {y[row]} in row {row} of {where}; give every row a value.")
    if pd.api.types.infer_dtype(y, skipna=False).startswith("mixed"):
        kinds = sorted({type(value).__name__ for value in y})
        raise TypeError(
            f"y of {where} has values of type {' and '.join(kinds)}; give all of them as text, or "
            "as an array of numbers."
        )


def _one_a_row(
    row_values: Any, name: str, n_rows: int, where: str, is_wrong: Callable[..., Any], accepted: str
) -> Array:
    """Numbers of the rows of a block; raise where ``is_wrong(number, 0)``."""
    values = np.asarray(row_values)
    if values.shape != (n_rows,) or values.dtype.kind not in "fiub":
        raise ValueError(
            f"the {name} of {where} has shape {values.shape} and dtype {values.dtype}; it must be "
            f"{n_rows} numbers, one a row."
        )
    values = values.astype(np.float64)
    _check_finite(values, f"the {name}", where)
    wrong = np.flatnonzero(is_wrong(values, 0))
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(f"the {name} in row {row} of {where} is {values[row]:g}; {accepted}.")
    return values


def _check_finite(values: Array, name: str, where: str) -> None:
    with np.errstate(all="ignore"):
        flat = values.reshape(-1)
        if np.isfinite(flat.dot(flat)):  # then all are finite, without a temporary array
            return
    finite = np.isfinite(values)
    if finite.all():
        return
    row, *column = (int(k) for k in np.argwhere(~finite)[0])
    at = f"row {row}" + "".join(f", column {k}" for k in column)
    raise ValueError(f"{name} is {values[row, *column]} in {at} of {where}; it must be finite.")
