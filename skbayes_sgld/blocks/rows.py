"""Rows in blocks, as a fit takes them: what passes over them make for a model to be bound to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from skbayes_sgld.blocks.files import is_large
from skbayes_sgld.blocks.passes import Encoding, encode_labels, find_posterior, first_pass, sum_up
from skbayes_sgld.blocks.row_blocks import RowBlocks
from skbayes_sgld.blocks.scores import score_blocks
from skbayes_sgld.blocks.source import RowSource, called, kind_of
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.propriety import check_proper, check_weights
from skbayes_sgld.rows.arguments import size_argument
from skbayes_sgld.rows.checks import check_ranges, warn_of_fraction, warn_of_light_rows
from skbayes_sgld.rows.fingerprint import Fingerprint
from skbayes_sgld.rows.model import LinearModel, check_sums
from skbayes_sgld.rows.record import Rows, RowsInPart
from skbayes_sgld.rows.scores import Score
from skbayes_sgld.rows.targets import Labels, Target


@dataclass(frozen=True)
class Blocks:
    """Rows in blocks as ``fit`` is given them, before any pass.

    Attributes
    ----------
    source : RowSource
    arguments : tuple of str
        Names of the arguments by row that the blocks hold.
    """

    source: RowSource
    arguments: tuple[str, ...]

    def encode(self, target: Target, estimator: Any) -> tuple[Target, BlockRows]:
        """Target of the rows, and what a first pass adds up of them."""
        if not estimator._takes_blocks:
            raise TypeError(
                f"{type(estimator).__name__} does not take {type(self.source).__name__}, as linear "
                "models do; give arrays, such as a sample of the rows."
            )
        target = target.with_arguments(self.arguments)
        check_sums(estimator, self.source.n_features, "a pass over blocks")
        has_sums = not target.has_labels and target.likelihood.quadratic
        if has_sums and not target.likelihood.takes:
            return target, self._summed(target)
        own = estimator.random_state
        target, rows = self._sampled(target, int(own) if isinstance(own, Integral) else 0)
        return target, replace(rows, error=estimator._error_of_mode)

    def score(self, model: Any, score: Score) -> float:
        """Score of a fitted model's predictions of the rows."""
        return score_blocks(model, score, self.source)

    def _summed(self, target: Target) -> BlockRows:
        """Sums of products, which are all that a normal model needs, by one pass."""
        source = self.source
        sums, extent, moments = sum_up(source, target)
        check_ranges(extent.low, extent.high, source.feature_names)
        X, values = sums.as_rows()
        assert values.y is not None
        target.likelihood.check_target(values.y)
        mean, sd = sums.mean[:-1], np.sqrt(np.diagonal(sums.products)[:-1] / sums.total)
        if moments is not None:  # of averages, whose sizes are in the sums
            mean, sd = moments.together(np.ones(1))
        rows = Rows(X, values, (mean, extent.spread(sd)), source.feature_names)
        return BlockRows(rows, source, summed=True)

    def _sampled(self, target: Target, seed: int) -> tuple[Target, BlockRows]:
        """A sample of the rows, to expand all beside it; all rows if they are few."""
        source = self.source
        moments, extent, sample, fraction = first_pass(source, target, seed)
        check_ranges(extent.low, extent.high, source.feature_names)
        warn_of_fraction(fraction, "exposure" in self.arguments)
        encoding = Encoding(target)
        if isinstance(target, Labels):
            target, *codes = encode_labels(target, moments.labels, moments.total)
            encoding = Encoding(target, moments.labels, *codes)
        rows = Rows(*encoding.sampled(sample, moments), names=source.feature_names)
        if rows.weight is not None:
            total, n_rows = float(moments.total @ encoding.factors), int(moments.n_rows.sum())
            warn_of_light_rows(total, n_rows, source.n_features)
        if sample.complete:
            return target, BlockRows(rows, source)
        mean, sd = moments.together(encoding.factors)
        rows = replace(rows, moments=(mean, extent.spread(sd)))
        return target, BlockRows(rows, source, encoding=encoding)


@dataclass(frozen=True)
class BlockRows(RowsInPart):
    """Rows in blocks once they have been read: in memory are their sums, a sample, or all.

    Attributes
    ----------
    rows : Rows
        Rows in memory, which a model is bound to.
    source : RowSource
    summed : bool, default=False
        Whether these are not rows of the user's but stand for sums of products of all.
    encoding : Encoding or None, default=None
        Where they are a sample: how further passes encode the blocks.
    error : float, default=0.0
        Error of the mode, in sds, that spares a pass over the blocks.
    """

    source: RowSource
    summed: bool = False
    encoding: Encoding | None = None
    error: float = 0.0

    @property
    def why_no_learned_scale(self) -> str:
        """Why no prior can learn its scale from these rows, or ""."""
        return "" if self.encoding is None else "a scale is not learned from rows in blocks"

    def bind(self, model: LinearModel) -> tuple[GLMPosterior, BlockRows]:
        """Posterior of all rows, checked to be proper; and these rows."""
        if self.encoding is not None:
            model.check_known_scale("a sample of the rows of blocks")
            posterior = model.posterior(self.rows)
            check_weights(posterior)
            return find_posterior(posterior, self.source, self.encoding, self.error), self
        if not self.summed:
            return self.rows.bind(model)[0], self
        posterior = model.posterior(self.rows)
        check_proper(posterior)
        return posterior, self

    def fingerprint(self, target: Target) -> Fingerprint | None:
        """Sums over all rows; those of labels say nothing of y."""
        found = self.source.fingerprint
        return found.without_target() if found is not None and target.has_labels else found

    def stream(self, posterior: Any, draws: Any, target: Target) -> None:
        """No state: ``partial_fit`` takes arrays."""
        return

    def workers(self, n_jobs: int | None) -> Any:
        """Workers of a cluster that has the rows."""
        return self.source.workers(n_jobs)


def read_blocks(
    X: Any, y: Any, sample_weight: Any, by_row: Mapping[str, Any], estimator: Any
) -> Blocks | None:
    """Rows in blocks that ``fit`` is given; None where they are arrays like any other."""
    names = estimator._row_arguments
    source = as_source(X, y, sample_weight, **dict.fromkeys(names) | dict(by_row))
    if source is None:
        return None
    size = size_argument(names)
    held = tuple(name or size for name in source.arguments)
    if held and not names:
        raise TypeError(
            "the blocks have exposures, numbers of trials or sizes of averages, which this model "
            "has no use for; give blocks (X, y) or (X, y, weight), or use SGLDPoissonRegressor for "
            "counts, SGLDLogisticRegression for totals, or SGLDLinearRegression for averages."
        )
    for name in held:
        if name not in names:
            raise TypeError(
                f"{X!r} was made with {name or called(name)}=, and this model takes "
                f"{' and '.join(names)}; give it as {size or names[0]}=."
            )
    size_argument(held)
    return Blocks(source, held)


def as_source(X: Any, y: Any = None, sample_weight: Any = None, **by_row: Any) -> RowSource | None:
    """Source of the rows that ``fit`` is given; None where they are an array like any other.

    ``by_row`` has the arguments by row that the model takes; None if they are not given.

    Raises
    ------
    TypeError, ValueError
        If X is a source that already holds what is given beside it, or other arguments do not fit.
    """
    beside = {"y": y, "sample_weight": sample_weight, **by_row}
    if kind_of(X).startswith("dask."):
        from skbayes_sgld.blocks.dask_rows import DaskRows

        return DaskRows(X, y, sample_weight, **by_row)
    if isinstance(X, np.memmap) and y is not None and is_large(X):
        return RowBlocks._from_map(X, **beside)
    if not isinstance(X, RowSource):
        return None
    for name, value in beside.items():
        if value is not None:
            more = "".join(f", or (X, y, weight, {argument})" for argument in by_row)
            raise TypeError(
                f"{name} is given beside {type(X).__name__}, whose blocks hold it: leave it None, "
                f"and let the source yield (X, y, weight){more}."
            )
    return X
