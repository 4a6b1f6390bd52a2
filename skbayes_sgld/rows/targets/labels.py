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
from skbayes_sgld._warnings import warn
from skbayes_sgld.likelihoods import Categorical, LabelLikelihood
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.rows.checks import check_weight_sizes
from skbayes_sgld.rows.fingerprint import Fingerprint
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets.base import Target

# Numbers of more values than these, with fewer rows each, may be a quantity
_MOST_CLASSES, _ROWS_A_CLASS = 20, 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Labels(Target):
    """Labels of two classes or more.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,) or None, default=None
        Before :meth:`encode`: the labels that y may have, which stay in the model; None for those
        of y.
    likelihood : LabelLikelihood or None, default=None
        Distribution of a code among the classes in the model; None before :meth:`encode`.
    make_likelihood : callable or None, default=None
        Function that makes the likelihood of a number of classes, the estimator's. A fitted target
        has None.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, the estimator's parameter.
    keeps_absent : bool, default=True
        Whether classes whose rows all have weight zero stay in the model, because the prior of the
        intercepts determines theirs.
    """

    likelihood: Any = None
    make_likelihood: Callable[[int], LabelLikelihood] | None = None
    class_weight: Any = None
    keeps_absent: bool = True

    numeric: ClassVar[bool] = False
    has_labels: ClassVar[bool] = True

    @property
    def class_names(self) -> list[str]:
        """Names of the classes in the model."""
        assert self.classes is not None
        in_model = self.classes if self.present is None else self.classes[self.present]
        return [escaped(c) for c in in_model]

    # ---- a fit --------------------------------------------------------------------------------

    def encode(self, rows: Rows) -> tuple[Self, Rows]:
        """Target of these rows, and the rows of positive weight with codes for y."""
        classes = self.find_classes(rows.y)
        codes = positions(rows.y, classes)
        factors = self.class_factors(rows.y, classes, codes, rows.weight)
        weight = rows.weight
        if factors is not None:
            weight = factors[codes] if weight is None else weight * factors[codes]
        rows = rows.having(y=codes).having_weight(weight)
        target = self.of_classes(classes, rows.y)
        if self.classes is None and isinstance(target.likelihood, Categorical):
            _warn_of_numbers(classes, len(rows.y))
        return target, rows.having(y=target.in_model(rows.y))

    def find_classes(self, y: Array) -> Array:
        """The different labels, sorted, at least two; or those that y may have."""
        if self.classes is not None:
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
                hint = _hint_of_objects(y) or _hint_of_shares(y)
                raise ValueError(f"{error}{hint}") from None
        return check_two(classes)

    def class_factors(
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

    def of_classes(self, classes: Array, codes: Array) -> Self:
        """Fitted target of these classes, given the codes of the rows with weight."""
        assert self.make_likelihood is not None
        present = self._present(codes, classes)
        if present is None:
            likelihood = self.make_likelihood(len(classes))
        else:
            likelihood = self._likelihood_of_present(len(present))
        target = replace(self, classes=classes, present=present)
        return replace(target, likelihood=likelihood, make_likelihood=None)

    def _present(self, codes: Array, classes: Array) -> Array | None:
        """Codes of the classes with weight, if others leave the model; None otherwise."""
        present = np.flatnonzero(np.bincount(codes))
        if len(present) == len(classes) or self.keeps_absent or self.classes is not None:
            return None
        if len(present) < 2:
            only = classes[present].tolist()[0]
            raise ValueError(
                f"the weights are zero for every class but {only!r}: under its flat prior the "
                "intercept would go to infinity; give rows of another class a weight, or set "
                "intercept_prior='normal' or fit_intercept=False."
            )
        return present

    @staticmethod
    def _likelihood_of_present(n_classes: int) -> LabelLikelihood:
        """Likelihood of the classes with weight: two of several keep their own predictors."""
        return Categorical(n_classes)

    def in_model(self, codes: Array) -> Array:
        """Codes among the classes in the model, as the likelihood takes them."""
        if self.present is not None:
            codes = np.searchsorted(self.present, codes)
        checked: Array = self.likelihood.check_target(codes)
        return checked

    def encode_before_fit(self, y: Any, n_rows: int) -> tuple[Self, Array]:
        """Target of the labels of y, or of 0 and 1, and codes of y, or of 0 and 1 in turn."""
        labels, codes = np.arange(2), np.arange(n_rows) % 2
        if y is not None:
            labels, codes = np.unique(y, return_inverse=True)
        assert self.make_likelihood is not None
        likelihood = self.make_likelihood(len(labels))
        return replace(self, classes=labels, likelihood=likelihood), codes.astype(float)

    def fingerprint(self, X: Any, values: RowValues) -> Fingerprint:
        """Sums over encoded rows, with codes among all classes, and without class weights."""
        if self.present is not None:
            assert values.y is not None
            values = replace(values, y=self.present[values.y.astype(int)])
        found = super().fingerprint(X, values)
        return found if self.class_weight is None else replace(found, weight=np.nan)

    def of_stream(self, stream: Any) -> Self:
        """Target of a batch, whose classes are known."""
        return replace(self, classes=stream.classes)

    # ---- later calls --------------------------------------------------------------------------

    def check_by_row(self, X: Any, by_row: Mapping[str, Any]) -> dict[str, Array]:
        """Checked arguments by row; raise if some are trials: the fit was to labels."""
        if by_row.get("n_trials") is not None:
            raise ValueError(
                "n_trials is given, and the model was fitted to labels; give labels, or n_trials "
                "in fit too."
            )
        return super().check_by_row(X, by_row)

    def encode_y(self, y: Array) -> Array:
        """Codes of labels among all classes."""
        assert self.classes is not None
        return codes_of(y, self.classes, "the fit")

    def decode(self, sample: Array) -> Array:
        """Labels, from codes among all classes."""
        assert self.classes is not None
        labels: Array = self.classes[sample]
        return labels

    # ---- draws, split into parts --------------------------------------------------------------

    def parts_to_report(self, parts: dict[str, Array]) -> dict[str, Array]:
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


def _warn_of_numbers(classes: Array, n_rows: int) -> None:
    """Warn if labels are numbers of few rows each; scikit-learn warns of fewer than two."""
    n_classes = len(classes)
    many = n_classes > _MOST_CLASSES and 2 * n_classes <= n_rows < _ROWS_A_CLASS * n_classes
    if many and classes.dtype.kind in "iuf":
        warn(
            f"y has {n_classes} different numbers in {n_rows} rows, and each is a class, which "
            "takes long. If y is a quantity, use SGLDLinearRegression, or SGLDPoissonRegressor "
            "for counts.",
            UserWarning,
        )


def _hint_of_objects(y: Array) -> str:
    """Advice if y holds numbers as objects; "" if it does not."""
    if y.dtype.kind != "O" or not isinstance(y[0], Real):
        return ""
    return f" y has dtype object and the label {y[0]!r}; give y.astype(int), or y.astype(str)."


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
