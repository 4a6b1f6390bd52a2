"""Classification of ordered classes: one linear predictor, and cut points between the classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._warnings import warn
from skbayes_sgld.blocks.moments import Moments
from skbayes_sgld.estimators.base import Array, Rows
from skbayes_sgld.estimators.classification import (
    LinearClassifier,
    check_two,
    positions,
    unique_labels,
)
from skbayes_sgld.estimators.ordered_labels import in_order, order_of, plain
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.scores import ACCURACY
from skbayes_sgld.inference.passes import Encoding
from skbayes_sgld.likelihoods import LabelLikelihood, Likelihood, Ordinal
from skbayes_sgld.prediction.predictors import LinearPredictor
from skbayes_sgld.prediction.wrappers import unless_random_walks


@parameters
class OrdinalClassifier(LinearClassifier):
    """A classifier of ordered classes, by cut points on one linear predictor.

    Parameters
    ----------
    prior : str, Prior or dict, default="auto"
        Prior of the coefficients of the X that ``fit`` sees: one of ``"normal"``, ``"laplace"``,
        ``"flat"``, or an instance such as ``Normal(scale=2.5)``; where the posterior is sampled
        also ``"hierarchical_normal"`` and ``"horseshoe"``, whose scales are learned. By name its
        scale is in the units of each column, ``1 / sd(x_j)``, so that no prediction depends on
        them. ``"auto"`` is ``"normal"``. A dict such as ``{"age": Normal(scale=1.0)}`` gives some
        columns, by name or position, priors of their own.
    gap_prior : str or NoisePrior, default="log_normal"
        Prior of each gap between neighbouring cut points. The default is log-normal (Albert & Chib
        2001): the log of a gap is normal with sd 1.5 about a median of 1, so that 90 % of the gaps
        are between 0.08 and 12 on the scale of log odds. Of K > 6 classes the median is 6 / K:
        many gaps share one range. The first cut point is minus the intercept, and has minus its
        prior, ``intercept_prior``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        From the lowest to the highest: in the order of the categories where the type of y has
        one (an ordered pandas categorical, a polars Enum, an ordered Arrow dictionary), else
        sorted.
    cut_points_ : ndarray of shape (n_classes - 1,)
        Cut points between neighbouring classes, at X = 0; those with weight.
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
        Minus the first cut point.
    gap_prior_ : NoisePrior
        Prior of the gaps, of more than two classes.
    """

    gap_prior: Any = "log_normal"
    _row_arguments = ()
    _target = (
        "labels. An ordered pandas categorical, a polars Enum or an ordered Arrow dictionary gives "
        "their order, else they are sorted. Intervals, as of ``pandas.cut``, become their text."
    )
    # categories of the fit's y; an annotation would make it a parameter
    _order = cast("Array | None", None)

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: the classes of its checks have no order, and are predicted ill."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _begin_totals(self) -> None:
        raise ValueError("the blocks hold n_trials: ordered classes have no totals; give labels.")

    # ---- labels -------------------------------------------------------------------------------

    def _check_data(self, X: Any, y: Any, sample_weight: Any, by_row: dict[str, Any]) -> Rows:
        if self._stream is None:
            self._order = order_of(y)
        rows = super()._check_data(X, y, sample_weight, by_row)
        names = self.classes_
        known = self._order is not None or self._is_later_batch
        if not known and len(names) > 2 and isinstance(names[0], str):
            listed = " < ".join(names[:5]) + " < ..." * (len(names) > 5)
            warn(
                f"y holds text, and the classes are in alphabetical order: {listed}. If that is "
                "not their order, give pandas.Categorical(y, categories=[...], ordered=True), or "
                "its codes where scikit-learn sorts labels before the fit: VotingClassifier, "
                "StackingClassifier, and probabilities of cross_val_predict.",
                UserWarning,
            )
        return rows

    def _validate_rows(self, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
        return super()._validate_rows(X, y if isinstance(y, str) else plain(y), **checks)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **by_row: Any) -> float:
        """Share of the labels that are predicted: the accuracy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), RowBlocks, or of Dask
            Rows in blocks are read once; the blocks of RowBlocks hold the other arguments too.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        score : float
            NaN, with a warning, where the chains are no better than random walks.
        """
        check_is_fitted(self)
        # scikit-learn's accuracy takes labels with fractions for a regression
        if order_of(y) is None and self.classes_.dtype.kind != "f":
            return super().score(X, y, sample_weight, **by_row)
        accuracy = replace(ACCURACY, reference=None)
        score = accuracy.score_arrays(np.asarray(plain(y)), self.predict(X), sample_weight)
        return unless_random_walks(self, score)

    def _encoding(self, moments: Moments) -> Encoding:
        self._order = None  # labels of blocks are sorted
        return super()._encoding(moments)

    def _know_classes(self, classes: Any) -> None:
        known = vars(self).get("classes_")
        if self._stream is None and classes is not None:
            known = self._order = order_of(classes)
            if known is not None:  # with fractions they would be refused as numbers
                self.classes_ = check_two(
                    in_order(unique_labels(np.asarray(plain(classes))), known)
                )
                return
        elif known is not None:
            self.classes_ = np.sort(known)
            if classes is not None and np.array_equal(np.unique(plain(classes)), self.classes_):
                classes = None
        super()._know_classes(classes)
        self.classes_ = in_order(self.classes_, known)

    def _target_before_fit(self, y: Any, n_rows: int) -> tuple[Array, Likelihood, Array | None]:
        order, y = order_of(y), None if y is None else np.asarray(plain(y))
        codes, likelihood, labels = super()._target_before_fit(y, n_rows)
        if order is None or labels is None:
            return codes, likelihood, labels
        ordered = in_order(labels, order)
        return positions(labels, ordered)[codes.astype(np.intp)].astype(float), likelihood, ordered

    def _classes_of(self, y: Array) -> Array:
        if self._stream is not None or self._order is None:
            return super()._classes_of(y)
        return check_two(in_order(unique_labels(y), self._order))

    @staticmethod
    def _label_likelihood(n_classes: int) -> LabelLikelihood:
        return Ordinal(n_classes)

    def _likelihood(self) -> LabelLikelihood:
        return Ordinal(len(self.classes_ if self._present is None else self._present))

    # ---- draws --------------------------------------------------------------------------------

    def _split(self, values: Array) -> dict[str, Array]:
        parts = super(LinearClassifier, self)._split(values)
        first = parts["intercept"]  # of theta's layout, which holds the first cut point
        cut_points = np.column_stack([first, parts.get("cut_point", first[:, :0])])
        return {**parts, "intercept": -first, "cut_point": cut_points}

    def _set_point(self, values: Array) -> None:
        super()._set_point(values)
        self.cut_points_ = self._split(values[None])["cut_point"][0]

    def _own_draws(self) -> Array | None:
        gaps = np.diff(self._draws()["cut_point"], axis=1)
        return np.log(np.maximum(gaps, np.finfo(float).tiny)) if gaps.size else None

    def _predictor(self, selection: Any = slice(None)) -> LinearPredictor:
        return super(LinearClassifier, self)._predictor(selection)  # of one predictor
