"""The target: what y holds, how it becomes the numbers of a likelihood, and the way back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.rows.arguments import ROW_ARGUMENTS, given, size_argument, values_brought
from skbayes_sgld.rows.fingerprint import Fingerprint
from skbayes_sgld.rows.record import Rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Target(ABC):
    """A kind of target: what y holds, as numbers, counts or labels.

    An estimator makes one from its parameters, without data. Then:

    * :meth:`encode` takes the rows of a fit. It returns the fitted target, a copy that knows them,
      and the rows with numbers for y, or an error that names y.
    * ``likelihood`` is the distribution of such a number.
    * :meth:`encode_later` takes the y of a later call, such as of ``log_likelihood``.
    * :meth:`decode` returns predictions in the user's form, such as labels.

    A further kind defines ``encode`` and ``encode_y``; the other methods have a default.

    Attributes
    ----------
    likelihood : Likelihood
        Distribution of an observation. For labels it depends on the number of classes, and is None
        before :meth:`encode`.
    arguments : tuple of str, default=()
        Names of the arguments by row in the fit.
    classes : ndarray of shape (n_classes,) or None, default=None
        Labels, for a target that has labels.
    present : ndarray or None, default=None
        Codes of the classes that are in the model; None for all.
    """

    likelihood: Any
    arguments: tuple[str, ...] = ()
    classes: Array | None = None
    present: Array | None = None

    numeric: ClassVar[bool] = True  # whether y must hold numbers
    fewest_rows: int = 1
    has_labels: ClassVar[bool] = False  # whether y holds labels, which become codes

    @property
    def class_names(self) -> list[str] | None:
        """Names of the classes in the model; None if y does not hold labels."""
        return None

    @property
    def size_argument(self) -> str:
        """Name of the argument by row in the fit that y was made over, or ""."""
        return size_argument(self.arguments)

    # ---- a fit --------------------------------------------------------------------------------

    def read_type(self, y: Any) -> tuple[Self, Any]:
        """Target with what the type of y shows, and y as scikit-learn's checks take it."""
        return self, y

    def with_arguments(self, arguments: tuple[str, ...]) -> Self:
        """Target of rows that have these arguments by row; raise if it does not suit them."""
        return replace(self, arguments=arguments)

    @abstractmethod
    def encode(self, rows: Rows) -> tuple[Self, Rows]:
        """Target of these rows, and the rows of positive weight with numbers for y."""

    def encode_before_fit(self, y: Any, n_rows: int) -> tuple[Self, Array]:
        """Target that knows the likelihood and the labels of y, and numbers for y.

        For draws from the prior, which need no y: if it is None, the numbers are NaN.
        """
        numbers = self.likelihood.check_target(np.asarray(y)) if y is not None else None
        return self, np.full(n_rows, np.nan) if numbers is None else numbers

    def fingerprint(self, X: Any, values: RowValues) -> Fingerprint:
        """Sums over encoded rows, by which a later call recognises them."""
        return Fingerprint.of(X, values)

    def observed(self, rows: Rows) -> tuple[Array, Array, RowValues]:
        """X, numbers of y and what rows bring besides, of encoded rows, as in a later call."""
        return rows.X, rows.y, replace(rows.values, y=None, weight=None)

    # ---- later calls --------------------------------------------------------------------------

    def check_by_row(self, X: Any, by_row: Mapping[str, Any]) -> dict[str, Array]:
        """Checked arguments by row, of those that are given."""
        return {name: ROW_ARGUMENTS[name].check(v, X) for name, v in given(by_row).items()}

    @abstractmethod
    def encode_y(self, y: Array) -> Array:
        """Numbers for observations, checked."""

    def encode_later(
        self, X: Any, y: Array, by_row: Mapping[str, Array]
    ) -> tuple[Array, RowValues]:
        """Numbers for observations, checked, and what these checked arguments by row bring."""
        return self.encode_y(y).astype(float), values_brought(by_row)

    def decode(self, sample: Array) -> Array:
        """Observations in the user's form, from draws of the likelihood's numbers."""
        return sample

    # ---- draws, split into parts --------------------------------------------------------------

    def parts_to_predict(self, parts: dict[str, Array]) -> dict[str, Array]:
        """Draws of coefficients, intercepts and others for predictions, from those of theta."""
        return parts

    def parts_to_report(self, parts: dict[str, Array]) -> dict[str, Array]:
        """Draws as users see them, for all classes, from those of theta."""
        return self.parts_to_predict(parts)

    def own_coordinates(self, parts: dict[str, Array]) -> Array | None:
        """Coordinates ``(S, n_own)`` of the likelihood's own parameters; None without any."""
        own = [each for each in self.likelihood.own if each.name in parts]
        if own and len(own) == len(self.likelihood.own):
            found: Array = self.likelihood.unconstrain_own(
                np.column_stack([parts[each.name] for each in own])
            )
            return found
        # unequal noise is reported by its own coefficients
        columns = [each.transform.inverse(parts[each.name]) for each in own]
        return np.column_stack(columns) if columns else None

    def fitted_attributes(self, parts: dict[str, Array], names: list[str]) -> dict[str, Any]:
        """Fitted attributes, from the parts of one draw; ``names`` are those of other parameters.

        The only predictor of a regression has no axis.
        """
        coef, intercept = parts["coef"][0].copy(), parts["intercept"][0].copy()
        if self.classes is None:
            coef, intercept = coef[0], float(intercept[0])
        own = {name: parts[name][0] for name in names}
        own = {f"{name}_": each if np.ndim(each) else float(each) for name, each in own.items()}
        return {"coef_": coef, "intercept_": intercept, **own}

    # ---- batches of partial_fit, and rows in blocks -------------------------------------------

    def of_stream(self, stream: Any) -> Self:
        """Target of a batch after those of the stream."""
        return self

    def named(self, numbers: Mapping[str, Array]) -> dict[str, Array]:
        """Arguments by row of a block, with the name of the unnamed one, which is a size."""
        return {name or self.size_argument: each for name, each in numbers.items()}

    def of_block(self, values: RowValues) -> RowValues:
        """Values as the likelihood takes them, of rows whose ``others`` are arguments by row."""
        brought = values_brought(self.named(values.others))
        return replace(values, others={}).beside(brought)
