"""Targets that are labels of ordered classes; their order, from types of pandas, polars, Arrow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.likelihoods import LabelLikelihood, Ordinal
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets.labels import Labels, check_two, positions, unique_labels


@dataclass(frozen=True, kw_only=True, eq=False)
class OrderedLabels(Labels):
    """Labels of classes that have an order, the lowest first.

    Attributes
    ----------
    order : ndarray or None, default=None
        Categories of the type of y, from the lowest; None if the labels are sorted.
    """

    order: Array | None = None

    @staticmethod
    def _likelihood_of_present(n_classes: int) -> LabelLikelihood:
        return Ordinal(n_classes)

    # ---- a fit --------------------------------------------------------------------------------

    def of_stream(self, stream: Any) -> Self:
        """Target of a batch, whose classes and their order are known."""
        return replace(super().of_stream(stream), order=stream.order)

    def read_type(self, y: Any) -> tuple[Self, Any]:
        """Target that knows the order of y, and y as plain labels."""
        return (self if self.classes is not None else replace(self, order=order_of(y))), plain(y)

    def encode(self, rows: Rows) -> tuple[Self, Rows]:
        """Target of these rows, and the rows of positive weight with codes for y."""
        target, rows = super().encode(rows)
        names = target.classes
        assert names is not None
        if self.classes is None and self.order is None:
            warn_of_alphabet(names)
        return target, rows

    def find_classes(self, y: Array) -> Array:
        """The different labels in their order, at least two; or those that y may have."""
        if self.classes is not None or self.order is None:
            return super().find_classes(y)
        return check_two(in_order(unique_labels(y), self.order))

    def encode_before_fit(self, y: Any, n_rows: int) -> tuple[Self, Array]:
        """Target of the labels of y in their order, and codes of y, or of 0 and 1 in turn."""
        order, y = order_of(y), None if y is None else np.asarray(plain(y))
        target, codes = super().encode_before_fit(y, n_rows)
        if order is None:
            return target, codes
        labels = target.classes
        assert labels is not None
        ordered = in_order(labels, order)
        codes = positions(labels, ordered)[codes.astype(np.intp)].astype(float)
        return replace(target, classes=ordered), codes

    # ---- draws, split into parts --------------------------------------------------------------

    def parts_to_predict(self, parts: dict[str, Array]) -> dict[str, Array]:
        """Draws by part, with all cut points; the first is minus the intercept."""
        first = parts["intercept"]  # in theta it is the first cut point
        cut_points = np.column_stack([first, parts.get("cut_point", first[:, :0])])
        return {**parts, "intercept": -first, "cut_point": cut_points}

    def parts_to_report(self, parts: dict[str, Array]) -> dict[str, Array]:
        """Draws as they are: the cut points are those between classes in the model."""
        return self.parts_to_predict(parts)

    def own_coordinates(self, parts: dict[str, Array]) -> Array | None:
        """Log gaps ``(S, n_gaps)`` between neighbouring cut points; None with one of these."""
        gaps = np.diff(parts["cut_point"], axis=1)
        return np.log(np.maximum(gaps, np.finfo(float).tiny)) if gaps.size else None

    def fitted_attributes(self, parts: dict[str, Array], names: list[str]) -> dict[str, Any]:
        """Fitted attributes, from the parts of one draw."""
        return super().fitted_attributes(parts, names) | {"cut_points_": parts["cut_point"][0]}


def warn_of_alphabet(classes: Array) -> None:
    """Warn that classes of text, three or more, have the order of their names."""
    if len(classes) > 2 and isinstance(classes[0], str):
        listed = " < ".join(classes[:5]) + " < ..." * (len(classes) > 5)
        warn(
            f"y holds text, and the classes are in alphabetical order: {listed}. If that is "
            "not their order, give pandas.Categorical(y, categories=[...], ordered=True), or "
            "its codes where scikit-learn sorts labels before the fit: VotingClassifier, "
            "StackingClassifier, and probabilities of cross_val_predict.",
            UserWarning,
        )


def plain(y: Any) -> Any:
    """Labels as scikit-learn takes them: a frame's only column, and intervals as text."""
    column = _column(y)
    dtype = getattr(column, "dtype", None)
    kind = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
    if not isinstance(kind, pd.IntervalDtype):
        return column
    # a missing label stays missing, and the error names its row
    return np.array([each if pd.isna(each) else str(each) for each in column], dtype=object)


def order_of(y: Any) -> Array | None:
    """Categories, from the lowest, of labels whose type has an order; None for other labels."""
    categories = _categories(_column(y))
    if categories is None:
        return None
    order: Array = np.asarray(plain(categories))
    return order


def _column(y: Any) -> Any:
    """The column of a frame or a table that has one; other labels as they are."""
    names: Any = getattr(y, "column_names", getattr(y, "columns", ()))  # of Arrow, or of a frame
    return y if callable(names) or len(names) != 1 else y[names[0]]


def _categories(y: Any) -> Any:
    """Categories of an ordered column; None for others."""
    dtype: Any = getattr(y, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype):
        return dtype.categories if dtype.ordered else None
    if isinstance(dtype, pd.ArrowDtype):
        return _categories(y.array.__arrow_array__())
    if type(dtype).__name__ == "Enum":  # of polars, whose Categorical has no order
        return dtype.categories
    if getattr(getattr(y, "type", None), "ordered", False):  # of Arrow
        chunks = y.unify_dictionaries().chunks if hasattr(y, "chunks") else [y]
        return chunks[0].dictionary if chunks else None
    return None


def in_order(classes: Array, order: Array | None) -> Array:
    """Sorted classes in a given order, if there is one."""
    if order is None:
        return classes
    return np.asarray(order[np.isin(order, classes)], dtype=classes.dtype)
