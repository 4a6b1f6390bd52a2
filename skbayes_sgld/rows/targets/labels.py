"""Targets that are labels of classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from skbayes_sgld._checks import escaped, naming
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Categorical, LabelLikelihood, Likelihood
from skbayes_sgld.rows.checks import check_weight_sizes
from skbayes_sgld.rows.fingerprint import Fingerprint
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets.base import Target


@dataclass(frozen=True, kw_only=True, eq=False)
class Labels(Target):
    """Labels of two classes or more.

    Attributes
    ----------
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, the estimator's parameter.
    keeps_absent : bool, default=True
        Whether classes whose rows all have weight zero stay in the model: the prior of the
        intercepts, or later rows, determine them.
    known : bool, default=False
        Whether the classes are those of the first call of ``partial_fit``, and not those of y.
    make : callable or None, default=None
        Function that makes the likelihood of a number of classes. :meth:`encode` calls it once the
        classes are known; a fitted target has None.
    family : LabelLikelihood or None, default=None
        Likelihood that was made; None before :meth:`encode`.
    """

    class_weight: Any = None
    keeps_absent: bool = True
    known: bool = False
    make: Callable[[int], LabelLikelihood] | None = None
    family: LabelLikelihood | None = None

    numeric: ClassVar[bool] = False
    has_labels: ClassVar[bool] = True

    @property
    def likelihood(self) -> LabelLikelihood:
        """Distribution of a code among the classes in the model."""
        assert self.family is not None
        return self.family

    def _of_classes(self, classes: Array, codes: Array) -> Self:
        """Target for these classes, given the codes of the rows with weight."""
        present = self._present(codes, classes)
        assert self.make is not None
        family = self.make(len(classes)) if present is None else self._of_present(len(present))
        return replace(self, classes=classes, present=present, family=family, make=None)

    @staticmethod
    def _of_present(n_classes: int) -> LabelLikelihood:
        """Likelihood of the classes with weight: two of several keep their own predictors."""
        return Categorical(n_classes)

    @property
    def class_names(self) -> list[str]:
        """Names of the classes in the model."""
        assert self.classes is not None
        in_model = self.classes if self.present is None else self.classes[self.present]
        return [escaped(c) for c in in_model]

    # ---- a fit --------------------------------------------------------------------------------

    def encode(self, rows: Rows) -> tuple[Self, Rows]:
        """Target of these rows, and the rows of positive weight with codes for y."""
        classes = self._classes_of(rows.y)
        codes = positions(rows.y, classes)
        factors = self._factors(rows.y, classes, codes, rows.weight)
        weight = rows.weight
        if factors is not None:
            weight = factors[codes] if weight is None else weight * factors[codes]
        rows = rows.having(y=codes).weighing(weight)
        target = self._of_classes(classes, rows.y)
        return target, rows.having(y=target._in_model(rows.y))

    def of_stream(self, stream: Any) -> Self:
        """Target of a batch, whose classes are known and stay: later rows may have them."""
        target = super().of_stream(stream)
        return replace(target, known=True, classes=stream.classes, keeps_absent=True)

    def encode_labels(self, labels: Array, total: Array) -> tuple[Self, Array, Array]:
        """Target, number and factor on the weight of each label that was read in blocks.

        ``total`` is the weight of the rows of each label.
        """
        y, weight = np.repeat(labels, 2), np.repeat(0.5 * total, 2)  # two rows represent all
        classes = self._classes_of(y)
        codes = positions(y, classes)
        by_class = self._factors(y, classes, codes, weight)
        factors = np.ones(len(labels)) if by_class is None else by_class[codes[::2]]
        some = weight[::2] * factors > 0
        present = codes[::2][some]
        target = self._of_classes(classes, present)
        numbers = np.zeros(len(labels))
        numbers[some] = target._in_model(present)
        return target, numbers, np.where(some, factors, 0.0)

    def _classes_of(self, y: Array) -> Array:
        """The different labels, sorted, at least two; or those that are known."""
        if self.known:
            assert self.classes is not None
            if isinstance(self.class_weight, str):
                raise ValueError(
                    f"class_weight={self.class_weight!r} depends on rows that are yet to come; "
                    "partial_fit takes None or a dict of class to weight."
                )
            codes_of(y, self.classes, "the first call of partial_fit")
            return self.classes
        classes = unique_labels(y)
        # the check sorts its argument: the few labels are enough
        few = 2 * len(classes) <= len(y)
        if few and classes.dtype.kind in "biuU":  # it accepts whole numbers and strings
            return check_two(classes)
        with naming("y"), np.errstate(invalid="ignore"):  # the check rounds numbers beyond 2**63
            try:
                check_classification_targets(np.repeat(classes, 2) if few else y)
            except ValueError as error:
                raise ValueError(f"{error}{_hint_of_shares(y)}") from None
        return check_two(classes)

    def _factors(
        self, y: Array, classes: Array, codes: Array, weight: Array | None
    ) -> Array | None:
        """Factor on the weights of the rows of each class; None if all are 1."""
        if self.class_weight is None:
            return None
        factors = class_weights(self.class_weight, y, classes, codes, weight)
        product = factors[codes] if weight is None else weight * factors[codes]
        if not product.any():
            raise ValueError(
                f"class_weight={self.class_weight!r} leaves no row a weight above zero."
            )
        check_weight_sizes(product, f"class_weight={self.class_weight!r}")
        return factors

    def _present(self, codes: Array, classes: Array) -> Array | None:
        """Codes of the classes with weight, if others leave the model; None otherwise."""
        present = np.flatnonzero(np.bincount(codes))
        if len(present) == len(classes) or self.keeps_absent:
            return None
        if len(present) < 2:
            only = classes[present].tolist()[0]
            raise ValueError(
                f"the weights are zero for every class but {only!r}: under its flat prior the "
                "intercept would go to infinity; give rows of another class a weight, or set "
                "intercept_prior='normal' or fit_intercept=False."
            )
        return present

    def _in_model(self, codes: Array) -> Array:
        """Codes among the classes in the model, as the likelihood takes them."""
        if self.present is not None:
            codes = np.searchsorted(self.present, codes)
        return self.likelihood.check_target(codes)

    def before_fit(self, y: Any, n_rows: int) -> tuple[Array, Likelihood, Array | None]:
        """Codes of y, or of 0 and 1 in turn, the likelihood, and the labels."""
        labels, codes = np.arange(2), np.arange(n_rows) % 2
        if y is not None:
            labels, codes = np.unique(y, return_inverse=True)
        assert self.make is not None
        return codes.astype(float), self.make(len(labels)), labels

    def fingerprint(self, found: Fingerprint) -> Fingerprint:
        """The fingerprint, without the weights if class weights are among them."""
        return found if self.class_weight is None else replace(found, weight=np.nan)

    # ---- later calls --------------------------------------------------------------------------

    def numbers_by_row(self, X: Any, by_row: Mapping[str, Any]) -> dict[str, Array]:
        """Checked arguments by row; raise if some are trials: the fit was to labels."""
        if by_row.get("n_trials") is not None:
            raise ValueError(
                "n_trials is given, and the model was fitted to labels; give labels, or n_trials "
                "in fit too."
            )
        return super().numbers_by_row(X, by_row)

    def numbers(self, y: Array) -> Array:
        """Codes of labels among all classes."""
        assert self.classes is not None
        return codes_of(y, self.classes, "the fit")

    def decode(self, sample: Array) -> Array:
        """Labels, from codes among all classes."""
        assert self.classes is not None
        labels: Array = self.classes[sample]
        return labels

    def among_all(self, codes: Array) -> Array:
        """Codes among all classes, from codes among those in the model."""
        return codes if self.present is None else self.present[codes.astype(int)]

    def reported(self, parts: dict[str, Array]) -> dict[str, Array]:
        """Draws of all classes: a class that is not in the model has the intercept -infinity."""
        if self.present is None:
            return parts
        assert self.classes is not None
        S, _, d = parts["coef"].shape
        coef = np.zeros((S, len(self.classes), d))
        intercept = np.full((S, len(self.classes)), -np.inf)
        coef[:, self.present], intercept[:, self.present] = parts["coef"], parts["intercept"]
        return {"coef": coef, "intercept": intercept}


def class_weights(
    class_weight: Any, y: Array, classes: Array, codes: Array, weight: Array | None
) -> Array:
    """Weight of each class, checked."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(codes, weights=weight, minlength=len(classes))
        present = counts > 0
        return counts.sum() / (present.sum() * np.where(present, counts, np.inf))
    if not isinstance(class_weight, dict):
        raise ValueError(
            f"class_weight={class_weight!r} is not accepted; give 'balanced', None or a "
            "dict of class to weight."
        )
    for label, value in class_weight.items():
        if not isinstance(value, Real) or isinstance(value, bool):
            raise TypeError(
                f"class_weight={class_weight!r} gives class {label!r} the weight "
                f"{value!r}; weights must be numbers, 0 or more."
            )
    unknown = set(class_weight) - set(classes.tolist())
    if unknown and set(classes.tolist()) - set(class_weight):
        raise ValueError(
            f"class_weight={class_weight!r} has {unknown.pop()!r}, which is not among the "
            f"classes of y, {classes.tolist()}; give weights to these, the others have 1."
        )
    by_class = compute_class_weight(class_weight, classes=classes, y=y)
    if not np.all((by_class >= 0) & (by_class < np.inf)):
        raise ValueError(
            f"class_weight={class_weight!r} is out of range; the weight of every class "
            "must be finite and not negative."
        )
    return by_class


def codes_of(y: Array, classes: Array, known_from: str) -> Array:
    """Positions of labels among the classes; raise for another label."""
    member = np.isin(y, classes)
    if not member.all():
        raise ValueError(
            f"y has the label {y[~member].tolist()[0]!r}, which is not among the classes of "
            f"{known_from}, {classes.tolist()}.{_hint_of_shares(y)}"
        )
    return positions(y, classes)


def _hint_of_shares(y: Array) -> str:
    """Advice if y holds shares of successes; "" if it does not."""
    if y.dtype.kind != "f" or not np.all((y >= 0) & (y <= 1)) or np.all(y == np.floor(y)):
        return ""
    return (
        " Of shares of successes among trials give SGLDLogisticRegression the numbers: "
        "fit(X, successes, n_trials=n)."
    )


def positions(y: Array, classes: Array) -> Array:
    """Position of each label in ``classes``, which contains all and need not be sorted."""
    order = np.argsort(classes)
    return order[np.searchsorted(classes, y, sorter=order)]


def check_two(classes: Array) -> Array:
    """The classes; raise if there are fewer than two."""
    if len(classes) < 2:
        raise ValueError(
            f"y has one class, {classes.tolist()[0]!r}; a classifier needs at least two classes."
        )
    return classes


def unique_labels(y: Array) -> Array:
    """The different labels, sorted."""
    if y.dtype.kind in "biu":  # for whole numbers a hash table is faster
        return np.sort(pd.unique(y))
    try:
        labels = np.unique(y)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise TypeError(
            f"y has labels of type {', '.join(kinds)}, which have no order; give all of them as "
            "strings, or all as whole numbers."
        ) from None
    if len(labels) and isinstance(labels[0], bytes):
        raise TypeError(
            f"y has labels of bytes, such as {labels[0]!r}; give them as strings or whole numbers."
        )
    return labels
