"""Batches of ``partial_fit``: rows of the last one, and earlier rows, kept or as a density."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skbayes_sgld._doors import Door
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.further_rows import normal_site, under_priors
from skbayes_sgld.posterior.linear_prior import in_units
from skbayes_sgld.posterior.propriety import check_proper, intercept_is_proper
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.posterior.statistics import GaussianStatistics
from skbayes_sgld.priors import PRIORS
from skbayes_sgld.rows.arrays import Arrays, has_outputs
from skbayes_sgld.rows.fingerprint import Fingerprint
from skbayes_sgld.rows.model import LinearModel, Priors, check_sums
from skbayes_sgld.rows.reading import read_rows
from skbayes_sgld.rows.record import Rows, RowsInPart
from skbayes_sgld.rows.targets import Target

_MIXED = Door("skbayes_sgld.mixed.stream", "MixedBatch")
_KEPT = 2**20  # limit of the numbers in X, y and weights of the batches' rows: 8 megabytes


@dataclass(frozen=True)
class Stream:
    """Earlier batches.

    Attributes
    ----------
    n_batches : int
    summary : GaussianStatistics, Expansion or None
        Their likelihood: for a normal model sums of products; for others a normal density for the
        rows that are no longer kept, or None while all are kept.
    rows : Rows or None
        Rows that are kept, for a model without sums over rows.
    priors : tuple or None
        Priors of the coefficients, the intercept and the noise in the units of the first batch.
    target : Target or None
        Target of the batches so far.
    fingerprint : Fingerprint or None
    classes : ndarray of shape (n_classes,) or None
        All labels, those of later batches included.
    order : ndarray or None
        Categories of the type of the labels, from the lowest; None if it has no order.
    """

    n_batches: int = 0
    summary: GaussianStatistics | Expansion | None = None
    rows: Rows | None = None
    priors: Priors | None = None
    target: Target | None = None
    fingerprint: Fingerprint | None = None
    classes: Array | None = None
    order: Array | None = None

    is_mixed = False  # whether the batches are of a model with effects of groups or curves


def next_batch(
    earlier: Stream, X: Any, y: Any, sample_weight: Any, by_row: Mapping[str, Any], estimator: Any
) -> Batch:
    """One more batch after the earlier ones, as ``partial_fit`` is given it."""
    rows = read_rows(X, y, sample_weight, by_row, estimator)
    if not isinstance(rows, Arrays):
        raise TypeError(
            f"partial_fit takes the rows of one block, and X is {type(rows.source).__name__}; "
            "call it once a block, or call fit."
        )
    if has_outputs(y) and estimator.__sklearn_tags__().target_tags.multi_output:
        raise ValueError(
            f"y has shape {np.shape(y)}; partial_fit takes one output, y of shape (n_samples,). "
            "Use an estimator for each output."
        )
    if earlier.is_mixed and not estimator._is_mixed:
        raise ValueError(
            "group_effects and smooth_effects were set to None since the last batch; call fit to "
            "start anew."
        )
    kind: type[Batch] = _MIXED.open() if estimator._is_mixed else Batch
    return kind(X, y, sample_weight, by_row, earlier, float(estimator.forgetting))


@dataclass(frozen=True)
class Batch(Arrays):
    """One more batch as given to ``partial_fit``, before any check.

    Attributes
    ----------
    earlier : Stream
    forgetting : float
        Factor on the weights of all earlier rows.
    """

    earlier: Stream = Stream()
    forgetting: float = 1.0

    @property
    def first(self) -> bool:  # type: ignore[override]
        """Whether no batch came before."""
        return not self.earlier.n_batches

    def encode(self, target: Target, estimator: Any) -> tuple[Target, Any]:
        """Target of the batches, and the batch as the model takes it, both checked."""
        before = self.earlier.target
        others = set() if before is None else set(self.arguments) ^ set(before.arguments)
        for name in sorted(others):
            now = name in self.arguments
            raise ValueError(
                f"{name} is {'' if now else 'not '}given, and earlier calls of partial_fit had "
                f"{'none' if now else 'it'}; give it in all calls, or in none."
            )
        target, rows = super().encode(target.of_stream(self.earlier), estimator)
        check_sums(estimator, rows.n_features, "partial_fit")
        return target, BatchRows(rows, self.earlier, self.forgetting)


@dataclass(frozen=True)
class BatchRows(RowsInPart):
    """Rows of the last batch, and the earlier batches.

    Attributes
    ----------
    rows : Rows
        Rows of the last batch.
    earlier : Stream
        Earlier batches; after :meth:`bind` its summary or its rows include the last batch.
    forgetting : float
    """

    earlier: Stream
    forgetting: float

    why_no_learned_scale = "a scale is not learned from batches"

    @property
    def n_batches(self) -> int:  # type: ignore[override]
        """Number of batches before the last."""
        return self.earlier.n_batches

    def fingerprint(self, target: Target) -> Fingerprint | None:
        """Sums over the rows of all batches."""
        found, earlier = self.rows.fingerprint(target), self.earlier.fingerprint
        return found if earlier is None or found is None else earlier.plus(found)

    def stream(self, posterior: GLMPosterior, draws: Any, target: Target) -> Stream:
        """The batches after sampling: a normal density replaces rows that are not kept."""
        stream = self.earlier
        if stream.rows is None and not isinstance(stream.summary, GaussianStatistics):
            share = np.ones(len(draws.flat)) if draws.flat_weights is None else draws.flat_weights
            theta = posterior.reported.theta(draws.flat)
            stream = replace(stream, summary=normal_site(posterior, theta, share / share.sum()))
        found = self.fingerprint(target)
        return replace(stream, n_batches=self.n_batches + 1, target=target, fingerprint=found)

    def bind(self, model: LinearModel) -> tuple[GLMPosterior, BatchRows]:
        """Posterior of all batches, and the batches including these rows."""
        model.check_known_scale("partial_fit")
        has_sums = model.likelihood.has_sums(self.rows.values)
        add = self._add_to_sums if has_sums else self._add_to_rows
        posterior, stream = add(model)
        check_proper(posterior)
        return posterior, replace(self, earlier=stream)

    def _add_to_sums(self, model: LinearModel) -> tuple[GLMPosterior, Stream]:
        """Posterior by the sums of products of all batches, all that a normal model needs."""
        rows, stream = self.rows, self.earlier
        if stream.priors is None:
            stream = replace(
                stream, priors=_priors_of(replace(model, intercept_at_mean=False).posterior(rows))
            )
        y, size = rows.values.y_less_offset, rows.values.n_averaged
        statistics = GaussianStatistics.from_rows(rows.X, y, rows.weight, size=size)
        if stream.summary is not None:
            assert isinstance(stream.summary, GaussianStatistics)
            statistics = stream.summary.tempered(self.forgetting).plus(statistics)
        sums = Rows(*statistics.as_rows(), names=rows.names)
        return model.posterior(sums, stream.priors), replace(stream, summary=statistics)

    def _add_to_rows(self, model: LinearModel) -> tuple[GLMPosterior, Stream]:
        """Posterior of the rows of all batches, or with a normal density for the earlier ones.

        Rows are kept while they are few; then a normal density replaces their likelihood, with the
        mean gradient and the mean curvature over the draws. As long as the intercept has a flat
        prior and the rows do not determine it (all counts are 0, say), its prior is normal and all
        rows are kept.
        """
        stream, power = self.earlier, self.forgetting
        rows = self.rows.copied()
        if stream.rows is not None:
            rows = stream.rows.weighted(power).followed_by(self.rows)
        posterior = model.posterior(rows)
        if stream.priors is None:
            stream = replace(stream, priors=_priors_of(posterior))
        assert stream.priors is not None and not isinstance(stream.summary, GaussianStatistics)
        site = None if stream.summary is None else stream.summary.tempered(power)
        held = site is not None or intercept_is_proper(posterior)
        if site is not None and site.theta.size != posterior.n_params:
            raise ValueError(
                "fit_intercept was changed since the last batch; call fit to start anew."
            )
        coef, intercept, own = stream.priors
        posterior = posterior.with_own_priors(own)
        if not held:
            data = posterior.likelihood, posterior.y, posterior.weight
            intercept = in_units(posterior.prior, PRIORS["normal"](), None, *data)[1]
        keeps = not held or rows.X.size + 2 * len(rows.y) <= _KEPT
        stream = replace(stream, summary=site, rows=rows if keeps else None)
        return under_priors(posterior, coef, intercept, site), stream


def _priors_of(posterior: GLMPosterior) -> Priors:
    """Priors of a posterior, with numbers for scales."""
    prior = posterior.linear_prior
    return prior.coef, prior.intercept, posterior.own_priors
