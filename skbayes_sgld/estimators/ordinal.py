"""Classification of ordered classes: one linear predictor, and cut points between the classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld.estimators.base import Array
from skbayes_sgld.estimators.classification import LinearClassifier, first_classes
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.likelihoods import LabelLikelihood, Ordinal
from skbayes_sgld.prediction.random_walks import unless_random_walks
from skbayes_sgld.rows.reading import UnreadRows
from skbayes_sgld.rows.scores import ACCURACY
from skbayes_sgld.rows.targets import OrderedLabels, Target
from skbayes_sgld.rows.targets.labels import check_two, unique_labels
from skbayes_sgld.rows.targets.ordered_labels import in_order, order_of, plain, warn_of_alphabet


@parameters
class OrdinalClassifier(LinearClassifier):
    """A classifier of ordered classes, by cut points on one linear predictor.

    Parameters
    ----------
    prior : str, Prior or dict, default="auto"
        Prior of the coefficients of the X that ``fit`` sees: one of ``"normal"``, ``"laplace"``,
        ``"flat"``, or an instance such as ``Normal(scale=2.5)``; if the posterior is sampled
        also ``"hierarchical_normal"`` and ``"horseshoe"``, whose scales are learned. By name its
        scale is in the units of each column, ``1 / sd(x_j)``, so that no prediction depends on
        them. ``"auto"`` is ``"normal"``. A dict such as ``{"age": Normal(scale=1.0)}`` gives some
        columns, by name or position, priors of their own.
    gap_prior : str or NoisePrior, default="log_normal"
        Prior of each gap between neighbouring cut points. The default is log-normal (Albert & Chib
        2001): the log of a gap is normal with sd 1.5 about a median of 1, so that 90 % of the gaps
        are between 0.08 and 12 on the scale of log odds. With K > 6 classes the median is 6 / K,
        because many gaps share one range. The first cut point is minus the intercept, and has minus
        its prior, ``intercept_prior``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes from the lowest to the highest: in the order of the categories if the type of y has
        one (an ordered pandas categorical, a polars Enum, an ordered Arrow dictionary), else
        sorted.
    cut_points_ : ndarray of shape (n_classes - 1,)
        Cut points between neighbouring classes with weight, at X = 0.
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
        Minus the first cut point.
    gap_prior_ : NoisePrior
        Prior of the gaps, with more than two classes.
    """

    gap_prior: Any = "log_normal"
    _row_arguments = ()
    _y_holds = (
        "labels. An ordered pandas categorical, a polars Enum or an ordered Arrow dictionary gives "
        "their order, else they are sorted. Intervals, as of ``pandas.cut``, become their text."
    )

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: the classes in its checks have no order, so scores are poor."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True  # with effects too: there is one predictor
        tags.classifier_tags.poor_score = True
        return tags

    def _target(self, rows: UnreadRows) -> Target:
        return OrderedLabels(**self._of_labels())

    def _label_likelihood(self, n_classes: int) -> LabelLikelihood:
        return Ordinal(n_classes)

    def _known_classes(self, classes: Any, starts: bool) -> tuple[Array, Array | None]:
        known = getattr(self, "classes_", None)
        if starts and classes is not None:
            known = order_of(classes)
            if known is not None:  # scikit-learn would refuse labels with fractions as numbers
                labels = unique_labels(np.asarray(plain(classes)))
                return check_two(in_order(labels, known)), known
            known = first_classes(classes, None)
            warn_of_alphabet(known)
            return known, None
        if known is None:
            return first_classes(classes, None), None
        labels = np.sort(known)
        if classes is not None and np.array_equal(np.unique(plain(classes)), labels):
            classes = None
        return in_order(first_classes(classes, labels), known), known

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **by_row: Any) -> float:
        """Share of the labels that are predicted: the accuracy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), RowBlocks, or of Dask
            Rows in blocks are read once; the blocks of RowBlocks hold the other arguments too.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        score : float
            NaN, with a warning, if the chains are no better than random walks.
        """
        check_is_fitted(self)
        # scikit-learn's accuracy refuses labels with fractions as a regression's
        if order_of(y) is None and self.classes_.dtype.kind != "f":
            return super().score(X, y, sample_weight, **by_row)
        accuracy = replace(ACCURACY, reference=None)
        score = accuracy.score_arrays(np.asarray(plain(y)), self.predict(X), sample_weight)
        return unless_random_walks(self, score)
