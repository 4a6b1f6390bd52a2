"""Rows of mixed models: arrays and frames, some of whose columns may hold labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.utils.validation import _get_feature_names

from skbayes_sgld._doors import Door
from skbayes_sgld.mixed.bind import bind_mixed
from skbayes_sgld.mixed.columns import MixedColumns
from skbayes_sgld.mixed.posterior import MixedPosterior
from skbayes_sgld.rows.arrays import Arrays
from skbayes_sgld.rows.reading import reader_of
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets import Target

_BLOCKS = Door("skbayes_sgld.mixed.blocks", "read_mixed_blocks")


@dataclass(frozen=True)
class UnreadMixedRows(Arrays):
    """Rows as ``fit`` is given them; some columns may hold labels."""

    def encode(self, target: Target, estimator: Any) -> tuple[Target, MixedRows]:
        """Target of the rows, and the rows as the model takes them, both checked."""
        names = _get_feature_names(self.X)
        names = None if names is None else list(names)
        columns, X = MixedColumns.learned(self.X, estimator.group_effects, names)
        target, rows = Arrays(X, self.y, self.sample_weight, self.by_row).encode(target, estimator)
        return target, mixed_rows(MixedRows, columns, rows, estimator)


@dataclass(frozen=True)
class MixedRows(Rows):
    """Checked rows of a fit, with codes in place of labels.

    Attributes
    ----------
    mixed : MixedColumns
        What the columns of X are.
    prior : GroupPrior
        Prior of the scales of the effects.
    """

    mixed: Any = None
    prior: Any = field(default=None)

    why_no_learned_scale = "group_effects or smooth_effects"

    @property
    def with_coefficients(self) -> tuple[int, list[str] | None, Mapping[Any, int] | None]:
        """Number and names of the columns that have coefficients: those of numbers."""
        fixed, d = self.mixed.fixed.tolist(), self.n_features
        names = None if self.names is None else [self.names[j] for j in fixed]
        places: dict[Any, int] = {j: k for k, j in enumerate(fixed)}
        places |= {name: k for k, name in enumerate(names or ())}
        places |= {j - d: k for k, j in enumerate(fixed)}
        return len(fixed), names, places

    @property
    def screened(self) -> Rows | None:
        """Rows that the check of the model may leave out."""
        alone = self.mixed.decide_alone(self.X, self.weight)
        return self.changed(itemgetter(~alone)) if alone.any() else self

    def bind(self, model: Any) -> tuple[MixedPosterior, MixedRows]:
        """Posterior under a model, and the rows that later calls need."""
        posterior = bind_mixed(model, self, self.mixed, self.prior)
        columns = replace(self.mixed, covariances=posterior.covariances.each)
        return posterior, replace(self, mixed=columns)


def mixed_rows(
    kind: Callable[..., Any], columns: MixedColumns, rows: Rows, estimator: Any, **more: Any
) -> Any:
    """Rows of a mixed model from checked rows with codes; more fields of their kind follow."""
    if estimator.smooth_effects is not None:
        curves = estimator.smooth_effects
        columns = columns.with_bends(curves, rows.X, rows.weight, rows.names)
    values = {each.name: getattr(rows, each.name) for each in fields(Rows)}
    return kind(**values, mixed=columns, prior=estimator._resolve("group_prior"), **more)


def read_mixed_rows(
    X: Any, y: Any, sample_weight: Any, by_row: Mapping[str, Any], estimator: Any
) -> Any:
    """Rows of a fit with ``group_effects`` or ``smooth_effects``."""
    read = reader_of(X)
    if read is not None:
        blocks = _BLOCKS.open()(X, y, sample_weight, by_row, estimator, read)
        if blocks is not None:
            return blocks
        X = np.asarray(X)  # a small mapped array
    return UnreadMixedRows(X, y, sample_weight, by_row)
