"""Fits of rows that are read in passes, and never held as a whole."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.blocks.moments import Moments
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.estimators.base import LinearEstimator, limit_blas
from skbayes_sgld.estimators.classification import BayesianClassifier
from skbayes_sgld.estimators.counts import CountRegressor
from skbayes_sgld.estimators.regression import BayesianRegressor
from skbayes_sgld.estimators.validation import check_ranges, warn_of_light_rows
from skbayes_sgld.inference.passes import NUMBERS, Encoding, find_posterior, look, sum_up
from skbayes_sgld.posterior import GLMPosterior, Likelihood


class BlockwiseEstimator(LinearEstimator):
    """A linear model whose rows may be in blocks."""

    random_state: Any
    _centers: Callable[[], bool]
    _infer_posterior: Callable[[GLMPosterior, RowSource], None]

    def _infer_source(self, source: RowSource) -> None:
        if self._stream is not None:
            raise TypeError(
                f"partial_fit takes the rows of one block, and X is {type(source).__name__}; call "
                "it once a block, or call fit."
            )
        if source.n_features >= MAX_DENSE:
            raise ValueError(
                f"the blocks have {source.n_features} columns; a pass adds up a matrix of "
                f"parameters by parameters, and takes fewer than {MAX_DENSE}. Use fewer columns."
            )
        self.n_features_in_ = source.n_features
        self.__dict__.pop("feature_names_in_", None)
        if source.feature_names is not None:
            self.feature_names_in_ = np.array(source.feature_names, dtype=object)
        self._infer_blocks(source)

    def _infer_blocks(self, source: RowSource) -> None:
        """Find the posterior by passes over the blocks."""
        own = self.random_state
        seed = int(own) if isinstance(own, Integral) else 0
        moments, extent, sample = look(source, self._family_of_numbers(), seed)
        check_ranges(extent.low, extent.high, self)
        encoding = self._encoding(moments)
        X, y, weight = encoding.sampled(sample, moments)
        if weight is not None:
            total, n_rows = float(moments.total @ encoding.factors), int(moments.n_rows.sum())
            warn_of_light_rows(total, n_rows, source.n_features)
        mean, sd = moments.together(encoding.factors)
        columns = mean, extent.spread(sd)
        if sample.complete:
            if not np.array_equal(moments.own, moments.total):  # there are exposures
                self._columns = columns
            with limit_blas(X):
                self._infer(X, y, weight)
            return
        if self._resolve("prior").hierarchical:
            raise ValueError(
                f"prior={self.prior!r} learns its scale from all rows, and these are in blocks; "
                "give a prior of a known scale, such as prior='normal'."
            )
        model = self._make_posterior(X, y, weight, center=self._centers(), columns=columns)
        model.check_weights()
        self._infer_posterior(find_posterior(model, source, encoding), source)

    def _family_of_numbers(self) -> Likelihood | None:
        """Likelihood of a target that is a number; None where it is a label."""
        return self._likelihood()

    def _likelihood(self) -> Likelihood:
        raise NotImplementedError

    def _encoding(self, moments: Moments) -> Encoding:
        """How the likelihood takes the target, from the labels that there are."""
        return NUMBERS


class BlockwiseRegressor(BayesianRegressor, BlockwiseEstimator):
    """A normal linear model: sums over the rows of all blocks are all that it needs."""

    def _infer_blocks(self, source: RowSource) -> None:
        if not self._noise().constant:
            raise ValueError(
                f"noise_model={self.noise_model!r} has no sums over rows that a pass could add up; "
                "set noise_model='constant', or give arrays."
            )
        sums, extent = sum_up(source)
        check_ranges(extent.low, extent.high, self)
        X, y, weight = sums.as_rows()
        self._likelihood().check_target(y)
        sd = np.sqrt(np.diagonal(sums.products)[:-1] / sums.total)
        columns = sums.mean[:-1], extent.spread(sd)
        posterior = self._make_posterior(X, y, weight, center=self._centers(), columns=columns)
        posterior.check_proper()
        self._infer_posterior(posterior, source)
        for name in ("estimators_", "output_names_"):
            self.__dict__.pop(name, None)


class BlockwiseCounts(CountRegressor, BlockwiseEstimator):
    """Counts in blocks."""


class BlockwiseClassifier(BayesianClassifier, BlockwiseEstimator):
    """Labels in blocks: those that there are, and their weights, are known from the first pass."""

    def _family_of_numbers(self) -> None:
        """None: y is a label."""

    def _encoding(self, moments: Moments) -> Encoding:
        # two rows a label stand for all of them
        labels, weight = np.repeat(moments.labels, 2), np.repeat(0.5 * moments.total, 2)
        codes, weighed = self._label(labels, weight)
        assert weighed is not None
        factors = np.ones(len(moments.labels))
        if self.class_weight is not None:
            factors = self._class_weights(labels, codes, weight)[codes[::2]]
        kept, of_label = np.asarray(weighed > 0), np.zeros(len(factors))
        of_label[kept[::2]] = self._encode(labels[kept], codes[kept], weighed[kept])[1][::2]
        return Encoding(moments.labels, of_label, np.where(kept[::2], factors, 0.0))
