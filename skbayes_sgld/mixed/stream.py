"""Batches of ``partial_fit`` of a mixed model: all rows so far, pooled if the noise is normal."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _get_feature_names

from skbayes_sgld.mixed.blocks import columns_of_cells, columns_of_codes
from skbayes_sgld.mixed.columns import n_columns
from skbayes_sgld.mixed.groups import resolve_groups
from skbayes_sgld.mixed.labels import Labels
from skbayes_sgld.mixed.pooled import GatheredRows
from skbayes_sgld.mixed.rows import MixedRows, mixed_rows
from skbayes_sgld.rows.fingerprint import Fingerprint
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.stream import Batch, Stream
from skbayes_sgld.rows.targets import Target


@dataclass(frozen=True)
class MixedStream(Stream):
    """Earlier batches of a mixed model.

    Attributes
    ----------
    labels : Labels or None
        Labels in all batches.
    gathered : GatheredRows or None
        Encoded rows of all batches.
    groups : tuple
        Settings that said which columns have labels and curves.
    """

    labels: Labels | None = None
    gathered: GatheredRows | None = None
    groups: tuple[Any, ...] = ()

    is_mixed = True


class MixedBatch(Batch):
    """One more batch as given to ``partial_fit``, before any check."""

    def encode(self, target: Target, estimator: Any) -> tuple[Target, MixedBatchRows]:
        """Target of the batches, and the rows of all batches as the model takes them."""
        earlier, groups = self.earlier, (estimator.group_effects, estimator.smooth_effects)
        if earlier.n_batches and (not isinstance(earlier, MixedStream) or earlier.groups != groups):
            raise ValueError(
                "group_effects or smooth_effects was changed since the last batch; call fit to "
                "start anew."
            )
        before = earlier if isinstance(earlier, MixedStream) else MixedStream()
        names, d = self.columns_of(estimator)
        _, called = resolve_groups(estimator.group_effects, d, names)
        if before.labels is None:
            labels = Labels.learned(self.X, called)
        else:
            labels = before.labels.followed_by(self.X)
        beside = self.y, self.sample_weight, self.by_row
        batch = Batch(labels.encoded(self.X), *beside, self.earlier, self.forgetting)
        target, found = batch.encode(target, estimator)
        last: Rows = found.rows
        cells = columns_of_cells(target, labels, estimator, d, names)
        gathered = GatheredRows.of(np.asarray(last.X, dtype=float), last.values, cells)
        if before.gathered is not None:
            gathered = before.gathered.weighted(self.forgetting).plus(gathered)
        gathered = gathered if cells is None else gathered.pooled()
        X, values = gathered.joined()
        moments = None if cells is None else gathered.moments(X, values.weight)
        rows = Rows(X, values, moments, last.names)
        stream = MixedStream(
            **{each.name: getattr(earlier, each.name) for each in fields(Stream)},
            labels=labels,
            gathered=gathered,
            groups=groups,
        )
        columns = columns_of_codes(estimator.group_effects, labels, X, last.names)
        more = {"earlier": stream, "last": last}
        return target, mixed_rows(MixedBatchRows, columns, rows, estimator, **more)

    def columns_of(self, estimator: Any) -> tuple[list[str] | None, int]:
        """Names of the columns, and their number."""
        names = _get_feature_names(self.X)
        d = n_columns(self.X)
        if self.earlier.n_batches and d != estimator.n_features_in_:
            raise ValueError(
                f"X has {d} features, but {type(estimator).__name__} is expecting "
                f"{estimator.n_features_in_} features as input."
            )
        return None if names is None else list(names), d


@dataclass(frozen=True)
class MixedBatchRows(MixedRows):
    """Rows of all batches.

    Attributes
    ----------
    earlier : MixedStream
        Batches, the last one among its rows.
    last : Rows
        Rows of the last batch.
    """

    earlier: Any = None
    last: Any = None

    screened = None

    @property
    def n_batches(self) -> int:  # type: ignore[override]
        """Number of batches before the last."""
        return int(self.earlier.n_batches)

    def kept(self) -> MixedRows:
        """These rows, which share no memory with the caller's arrays."""
        return self

    def fingerprint(self, target: Target) -> Fingerprint | None:
        """Sums over the rows of all batches."""
        found, earlier = self.last.fingerprint(target), self.earlier.fingerprint
        return found if earlier is None or found is None else earlier.plus(found)

    def stream(self, posterior: Any, draws: Any, target: Target) -> MixedStream:
        """The batches, for the next one."""
        found = self.fingerprint(target)
        n = self.n_batches + 1
        return replace(self.earlier, n_batches=n, target=target, fingerprint=found)
