"""Classification of ordered classes: one linear predictor, and cut points between the classes."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.utils import Tags

from skbayes_sgld._warnings import warn
from skbayes_sgld.blocks.moments import Moments
from skbayes_sgld.estimators.base import Array, Rows
from skbayes_sgld.estimators.classification import LinearClassifier
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.inference.passes import Encoding
from skbayes_sgld.posterior import LabelLikelihood, Ordinal
from skbayes_sgld.prediction.predictors import LinearPredictor


@parameters
class OrdinalClassifier(LinearClassifier):
    """A classifier of ordered classes, by cut points on one linear predictor.

    Parameters
    ----------
    prior : str or CoefficientPrior, default="auto"
        Prior of the coefficients of the X that ``fit`` sees: one of ``"normal"``, ``"laplace"``,
        ``"flat"``, or an instance such as ``Normal(scale=2.5)``; where the posterior is sampled
        also ``"hierarchical_normal"`` and ``"horseshoe"``, whose scales are learned. By name its
        scale is in the units of each column, ``1 / sd(x_j)``, so that no prediction depends on
        them. ``"auto"`` is ``"normal"``.
    gap_prior : str or NoisePrior, default="log_normal"
        Prior of each gap between neighbouring cut points. The default is log-normal (Albert & Chib
        2001): the log of a gap is normal with mean 0 and sd 1.5, so that 90 % of the gaps are
        between 0.08 and 12 on the scale of log odds. The first cut point is minus the intercept,
        and has minus its prior, ``intercept_prior``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        From the lowest to the highest: in the order of the categories where y was an ordered pandas
        categorical, else sorted.
    cut_points_ : ndarray of shape (n_classes - 1,)
        Cut points between neighbouring classes, at X = 0; those with weight.
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
        Minus the first cut point.
    gap_prior_ : NoisePrior
        Prior of the gaps, of more than two classes.
    """

    gap_prior: Any = "log_normal"
    _row_argument = ""
    _target = "Labels. An ordered pandas categorical gives their order, else they are sorted."
    _order = cast(
        "Array | None", None
    )  # categories of the fit's y; an annotation makes a parameter

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: the classes of its checks have no order, and are predicted ill."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _begin_totals(self) -> None:
        raise ValueError("the blocks hold n_trials: ordered classes have no totals; give labels.")

    # ---- labels -------------------------------------------------------------------------------

    def _check_data(self, X: Any, y: Any, sample_weight: Any, **row_data: Any) -> Rows:
        self._order = categories_of(y)
        rows = super()._check_data(X, y, sample_weight, **row_data)
        names = self.classes_
        if self._order is None and len(names) > 2 and isinstance(names[0], str):
            listed = " < ".join(names[:5]) + " < ..." * (len(names) > 5)
            warn(
                f"y holds text, and the classes are in alphabetical order: {listed}. If that is "
                "not their order, give pandas.Categorical(y, categories=[...], ordered=True).",
                UserWarning,
            )
        return rows

    def _encoding(self, moments: Moments) -> Encoding:
        self._order = None  # labels of blocks are sorted
        return super()._encoding(moments)

    def _know_classes(self, classes: Any) -> None:
        order = vars(self).get("classes_")
        if self._stream is None and classes is not None:
            order = categories_of(classes)
        elif order is not None:
            self.classes_ = np.sort(order)
        super()._know_classes(classes)
        self.classes_ = in_order(self.classes_, order)

    def _classes_of(self, y: Array) -> Array:
        classes = super()._classes_of(y)
        return classes if self._stream is not None else in_order(classes, self._order)

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


def categories_of(y: Any) -> Array | None:
    """Categories of an ordered pandas categorical, from the lowest; None of other labels."""
    dtype = getattr(y, "dtype", None)
    if not isinstance(dtype, pd.CategoricalDtype) or not dtype.ordered:
        return None
    return np.asarray(dtype.categories)


def in_order(classes: Array, order: Array | None) -> Array:
    """Sorted classes in a given order, if there is one."""
    if order is None:
        return classes
    return np.asarray(order[np.isin(order, classes)], dtype=classes.dtype)
