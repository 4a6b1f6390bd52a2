"""Rows of any kind that ``fit`` takes: arrays, or what an annex reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from skbayes_sgld._doors import Door
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.rows.arrays import Arrays
from skbayes_sgld.rows.fingerprint import Fingerprint
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets import Target

MIXED = Door("skbayes_sgld.mixed.rows", "read_mixed_rows")
BLOCKS = Door("skbayes_sgld.blocks.rows", "read_blocks")
# Doors to functions of (X, y, sample_weight, by_row, estimator) by the class of X, or its library.
# They return rows, or None for ordinary arrays. An annex adds the classes of its own.
READERS: dict[Any, Door] = {"dask": BLOCKS, np.memmap: BLOCKS}


class UnreadRows(Protocol):
    """Rows as a fit is given them, before any check: arrays, blocks, or a batch."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments by row that are given."""

    def encode(self, target: Target, estimator: Any) -> tuple[Target, FitRows]:
        """Target of the rows, and the rows as the model takes them, both checked."""


class FitRows(Protocol):
    """Rows that were checked and encoded, to be bound to a model: in memory, blocks, or batches."""

    @property
    def X(self) -> Any:
        """Columns of the rows in memory."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    @property
    def names(self) -> list[str] | None:
        """Names of the columns."""

    @property
    def with_coefficients(self) -> tuple[int, list[str] | None, Mapping[Any, int] | None]:
        """Number and names of the columns that have coefficients.

        Last come their places among these by their names and positions in X; None for all columns.
        """

    @property
    def is_copy(self) -> bool:
        """Whether the rows are a copy in memory, which no caller can change."""

    @property
    def n_batches(self) -> int:
        """Number of batches of ``partial_fit`` before these rows."""

    @property
    def mixed(self) -> Any:
        """Kinds of the columns of X in a mixed model; None in others."""

    @property
    def why_no_learned_scale(self) -> str:
        """Why no prior can learn its scale from these rows, or ""."""

    @property
    def screened(self) -> Rows | None:
        """Rows that the check of the model may leave out; None if not all are in memory."""

    def total(self, likelihood: Likelihood) -> float:
        """Number of observations that the rows stand for."""

    def kept(self) -> FitRows:
        """Rows for a result that uses them later: a copy, if they are few."""

    def bind(self, model: Any) -> tuple[Any, FitRows]:
        """Posterior under a model (raise if it is improper), and the rows that later calls need."""

    def fingerprint(self, target: Target) -> Fingerprint | None:
        """Sums by which a later call recognises the same rows."""

    def stream(self, posterior: Any, draws: Any, target: Target) -> Any:
        """State from which the next call of ``partial_fit`` continues; None after ``fit``."""

    def workers(self, n_jobs: int | None) -> Any:
        """Workers that run chains at the place of the rows; None: processes of this machine."""


def read_rows(X: Any, y: Any, sample_weight: Any, by_row: Mapping[str, Any], estimator: Any) -> Any:
    """Rows of a known kind, not yet checked: :class:`UnreadRows`."""
    if estimator._is_mixed:
        return MIXED.open()(X, y, sample_weight, by_row, estimator)
    read = reader_of(X)
    rows = None if read is None else read(X, y, sample_weight, by_row, estimator)
    return Arrays(X, y, sample_weight, by_row) if rows is None else rows


def reader_of(X: Any) -> Callable[..., Any] | None:
    """Reader of an annex for rows of this type; None for arrays, frames and sparse matrices."""
    for kind in (*type(X).__mro__, type(X).__module__.partition(".")[0]):
        if kind in READERS and READERS[kind].is_there:
            reader: Callable[..., Any] = READERS[kind].open()
            return reader
    return None


def live_elsewhere(X: Any) -> bool:
    """Whether rows are not in this process: in blocks, or on the workers of a cluster."""
    return not isinstance(X, np.ndarray) and reader_of(X) is not None
