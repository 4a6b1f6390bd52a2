"""Fits that go on with further rows: sums, or the last rows and a normal density for the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import _check_partial_fit_first_call

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.estimators.base import Array, SampledEstimator, unchanged_on_error
from skbayes_sgld.estimators.blockwise import (
    BlockwiseClassifier,
    BlockwiseCounts,
    BlockwiseRegressor,
)
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior import CoefficientPrior, GLMPosterior, NoisePrior
from skbayes_sgld.posterior.accumulated import Sums
from skbayes_sgld.posterior.assumed_density import site_of, under_priors
from skbayes_sgld.posterior.priors import PRIORS
from skbayes_sgld.posterior.priors.normal import in_units
from skbayes_sgld.posterior.propriety import level_is_held

_KEPT = 2**20  # numbers in X, y and the weights of the rows that are kept: 8 megabytes


@dataclass(frozen=True)
class Stream:
    """Earlier batches of a fit that goes on.

    Attributes
    ----------
    n_batches : int
    known : Sums, NormalSite or None
        What they told, but for the rows that were kept; None before the first.
    rows : tuple of (X, y, weight) or None
        Rows that were kept, of a model that has no sums over rows.
    priors : tuple or None
        Priors of the coefficients, the intercept and the noise in the units of the first batch.
    """

    n_batches: int = 0
    known: Any = None
    rows: tuple[Any, Array, Array | None] | None = None
    priors: tuple[Any, Any, Any] | None = None


class StreamedEstimator(SampledEstimator):
    """A sampled model that ``partial_fit`` gives one batch of rows after the other."""

    _stream: Stream | None

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, **row_data: Any) -> Any:
        """Fit with one more batch; an error leaves the estimator as it was."""
        return self._fit(X, y, sample_weight, self._stream or Stream(), **row_data)

    def _centers(self) -> bool:
        """Whether the intercept is taken at the mean of X."""
        return Settings.check(self).uses_curvature

    def _infer_posterior(self, posterior: GLMPosterior, source: RowSource) -> None:
        """Sample the posterior of rows in blocks."""
        settings = Settings.check(self)
        workers = source.workers(settings.n_jobs)
        self._sample(settings, posterior, self._resolve("prior"), workers=workers)

    def _infer_batch(self, X: Array, y: Array, weight: Array | None) -> None:
        if X.shape[1] >= MAX_DENSE:
            raise ValueError(
                f"X has {X.shape[1]} columns; partial_fit keeps a matrix of parameters by "
                f"parameters, and takes fewer than {MAX_DENSE}. Use fit, or fewer columns."
            )
        if self._resolve("prior").hierarchical:
            raise ValueError(
                f"prior={self.prior!r} learns its scale from all rows; partial_fit takes a prior "
                "of a known scale, such as prior='normal'."
            )
        if getattr(self, "noise_model", "constant") != "constant":
            raise ValueError(
                f"noise_model={self.noise_model!r} has no sums over rows that partial_fit could "
                "keep; set noise_model='constant'."
            )
        self._go_on(X, y, weight)

    def _go_on(self, X: Array, y: Array, weight: Array | None) -> None:
        """Sample the posterior of all batches, and keep their rows, or a normal density for them.

        Rows are kept while they are few; then their likelihood becomes a normal density, of the
        mean and the mean curvature that the draws tell. It does not where a flat prior leaves the
        intercept without end: until further rows hold it, the rows stay, and its prior is normal.
        """
        assert self._stream is not None
        settings, stream, power = Settings.check(self), self._stream, float(self.forgetting)
        rows = joined(stream.rows, power, X, y, weight)
        posterior = self._make_posterior(*rows, center=settings.uses_curvature)
        if stream.priors is None:
            intercept = posterior.linear_prior.intercept or self._resolve_intercept_prior()
            stream = replace(stream, priors=(posterior.prior, intercept, None))
        site = None if stream.known is None else stream.known.tempered(power)
        held = site is not None or level_is_held(posterior)
        width = posterior.n_features + bool(self.fit_intercept)
        if site is not None and site.center.shape != (posterior.n_predictors, width):
            raise ValueError(
                "fit_intercept was changed since the last batch; call fit to start anew."
            )
        assert stream.priors is not None
        coef, intercept, _ = stream.priors
        if not held:  # rows that keep it from infinity, of another class, are yet to come
            intercept = normal_intercept(posterior)
        posterior = under_priors(posterior, coef, intercept, site)
        posterior.check_proper()
        self._sample(settings, posterior, self._resolve("prior"), stream.n_batches)
        if held and rows[0].size + 2 * len(rows[1]) > _KEPT:
            draws, weights = self.posterior_.flat, self.posterior_.flat_weights
            share = np.full(len(draws), 1.0) if weights is None else weights
            site = site_of(posterior, posterior.unconstrain(draws), share / share.sum())
            stream = replace(stream, known=site, rows=None)
        else:
            stream = replace(stream, known=site, rows=rows)
        self._stream = replace(stream, n_batches=stream.n_batches + 1)


def normal_intercept(posterior: GLMPosterior) -> CoefficientPrior:
    """Prior of the intercepts by the name of "normal", in the units of a model's data."""
    data = posterior.likelihood, posterior.y, posterior.weight
    return in_units(posterior.prior, PRIORS["normal"](), None, *data)[1]


def joined(
    earlier: tuple[Any, Array, Array | None] | None,
    power: float,
    X: Any,
    y: Array,
    weight: Array | None,
) -> tuple[Any, Array, Array | None]:
    """Copy of earlier rows, their weights multiplied by ``power``, and of further ones."""
    if earlier is None:
        return X.copy(), y.copy(), None if weight is None else weight.copy()
    X0, y0, weight0 = earlier
    if weight is not None or weight0 is not None or power < 1.0:
        old, new = (np.ones(len(v)) if w is None else w for w, v in ((weight0, y0), (weight, y)))
        weight = np.concatenate([power * old, new])
    stacked = (
        sparse.csr_array(sparse.vstack([X0, X]))
        if sparse.issparse(X0) or sparse.issparse(X)
        else np.concatenate([X0, X])
    )
    return stacked, np.concatenate([y0, y]), weight


class StreamedRegressor(BlockwiseRegressor, StreamedEstimator):
    """A normal linear model: sums over the rows of all batches are all that it needs."""

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit with one more batch of rows.

        The posterior is that of all rows since the first call, as one ``fit`` would have it: sums
        of products, which add up, are kept, and no rows. Scales that follow the units of the data
        are those of the first batch. ``forgetting`` multiplies the weights of all earlier rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative. A row of weight w counts as w rows.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            As of ``fit``, and where the number of columns changes or is 3,000 or more.
        """
        return self._partial_fit(X, y, sample_weight)

    def _encode(
        self, X: Array, y: Array, weight: Array | None
    ) -> tuple[Array, Array, Array | None]:
        if self._goes_on:  # a later batch may be of one value, or of one row
            return X, y.astype(float), weight
        return super()._encode(X, y, weight)

    def _go_on(self, X: Array, y: Array, weight: Array | None) -> None:
        assert self._stream is not None
        settings, stream = Settings.check(self), self._stream
        if stream.priors is None:
            first = self._make_posterior(X, y, weight, center=False)
            intercept = first.linear_prior.intercept or self._resolve_intercept_prior()
            stream = replace(stream, priors=(first.prior, intercept, first.noise_prior))
        known = Sums.of_rows(X, y, weight)
        if stream.known is not None:
            known = stream.known.tempered(float(self.forgetting)).plus(known)
        self._stream = replace(stream, known=known, n_batches=stream.n_batches + 1)
        posterior = self._make_posterior(*known.as_rows(), center=settings.uses_curvature)
        posterior.check_proper()
        self._sample(settings, posterior, self._resolve("prior"), stream.n_batches)

    def _components(self, y: Array, weight: Array | None) -> tuple[Any, NoisePrior | None]:
        if self._stream is None or self._stream.priors is None:
            return super()._components(y, weight)
        return self._stream.priors[0], self._stream.priors[2]

    def _resolve_intercept_prior(self) -> CoefficientPrior:
        if self._stream is None or self._stream.priors is None:
            return super()._resolve_intercept_prior()
        return self._stream.priors[1]


class StreamedCounts(BlockwiseCounts, StreamedEstimator):
    """Counts, whose earlier rows are kept, or a normal density in their place."""

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> Self:
        """Fit with one more batch of rows.

        The posterior is that of all rows since the first call, as one ``fit`` would have it, with
        scales in the units of the first batch. Rows are kept while they hold up to a million
        numbers; then a normal density takes the place of their likelihood, with the gradient and
        the curvature that it has on average over the draws. ``forgetting`` multiplies the weights
        of all earlier rows. While all counts are zero, an intercept whose prior is flat has that
        of ``intercept_prior="normal"``, and all rows are kept.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative. A row of weight w counts as w rows.
        exposure : array-like of shape (n_samples,) or float, default=None
            As in ``fit``.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            As of ``fit``, and where the number of columns changes or is 3,000 or more.
        """
        return self._partial_fit(X, y, sample_weight, exposure=exposure)


class StreamedClassifier(BlockwiseClassifier, StreamedEstimator):
    """Labels, whose earlier rows are kept, or a normal density in their place."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Fit with one more batch of rows.

        The posterior is that of all rows since the first call, as one ``fit`` would have it, with
        scales in the units of the first batch. Rows are kept while they hold up to a million
        numbers; then a normal density takes the place of their likelihood, with the gradient and
        the curvature that it has on average over the draws. ``forgetting`` multiplies the weights
        of all earlier rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All labels that there will be; needed at the first call, unless ``fit`` has seen them.
            A batch may have rows of some of them only. Until there are rows of each, intercepts
            whose prior is flat have that of ``intercept_prior="normal"``, and all rows are kept.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative. A row of weight w counts as w rows.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            As of ``fit``; where a label is none of ``classes``; and where the number of columns
            changes or is 3,000 or more.
        """
        with unchanged_on_error(self):
            if self._stream is None and classes is not None:  # fit may have seen others
                self.__dict__.pop("classes_", None)
            _check_partial_fit_first_call(self, classes)
            return self._partial_fit(X, y, sample_weight)

    def _label_batch(self, y: Array, weight: Array | None) -> tuple[Array, Array | None]:
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} depends on rows that are yet to come; "
                "partial_fit takes None or a dict of class to weight."
            )
        known = np.isin(y, self.classes_)
        if not known.all():
            raise ValueError(
                f"y has the label {y[~known].tolist()[0]!r}, which is not among the classes of "
                f"the first call of partial_fit, {self.classes_.tolist()}."
            )
        return self._weigh_classes(y, np.searchsorted(self.classes_, y), weight)

    def _without_absent(self, codes: Array, seen: Array) -> Array:
        # rows of the other classes may come
        return codes if self._stream is not None else super()._without_absent(codes, seen)
