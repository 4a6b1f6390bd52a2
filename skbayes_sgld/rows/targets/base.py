"""The target: what y holds, how it becomes the numbers of a likelihood, and the way back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.rows.arguments import ROW_ARGUMENTS, given, size_argument, values_brought
from skbayes_sgld.rows.fingerprint import Fingerprint
from skbayes_sgld.rows.record import Rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Target(ABC):
    """A kind of target, made from the parameters of an estimator.

    :meth:`encode` returns a copy that knows the rows of a fit, and the rows with numbers for y. The
    copy checks and encodes the observations of later calls, and decodes predictions.

    Attributes
    ----------
    first : bool, default=True
        Whether a fit begins with the rows to encode; False for later batches of ``partial_fit``.
    arguments : tuple of str, default=()
        Names of the arguments by row in the fit.
    classes : ndarray of shape (n_classes,) or None, default=None
        Labels, for a target that has labels.
    present : ndarray or None, default=None
        Codes of the classes that are in the model; None for all.
    """

    first: bool = True
    arguments: tuple[str, ...] = ()
    classes: Array | None = None
    present: Array | None = None

    numeric: ClassVar[bool] = True  # whether y must hold numbers
    fewest_rows: ClassVar[int] = 1
    has_labels: ClassVar[bool] = False  # whether blocks are read for their labels first

    @property
    @abstractmethod
    def likelihood(self) -> Likelihood:
        """Distribution of an observation; for labels it is known after these are."""

    @property
    def class_names(self) -> list[str] | None:
        """Names of the classes that have their own linear predictors; None without classes."""
        return None

    @property
    def size_argument(self) -> str:
        """Name of the argument by row in the fit that y was made over, or ""."""
        return size_argument(self.arguments)

    # ---- a fit --------------------------------------------------------------------------------

    def read(self, y: Any) -> tuple[Self, Any]:
        """Target with what the type of y shows, and y as scikit-learn's checks take it."""
        return self, y

    @abstractmethod
    def encode(self, rows: Rows) -> tuple[Self, Rows]:
        """Target of these rows, and the rows of positive weight with numbers for y."""

    def of_blocks(self, arguments: tuple[str, ...]) -> Self:
        """Target of rows in blocks that hold these arguments by row."""
        return replace(self, arguments=arguments)

    def of_stream(self, stream: Any) -> Self:
        """Target of a batch of ``partial_fit`` after those of the stream."""
        return replace(self, first=not stream.n_batches)

    def encode_labels(self, labels: Array, total: Array) -> tuple[Self, Array, Array]:
        """Target, and for each label read from blocks its number and the factor on its weight."""
        raise NotImplementedError

    def named(self, numbers: Mapping[str, Array]) -> dict[str, Array]:
        """Arguments by row of a block, with the name of the unnamed one, which is a size."""
        return {name or self.size_argument: each for name, each in numbers.items()}

    def of_block(self, values: RowValues) -> RowValues:
        """Values as the likelihood takes them, of rows whose ``others`` are arguments by row."""
        brought = values_brought(self.named(values.others))
        return replace(values, others={}).beside(brought)

    def numbers_of_fit(self, X: Any, by_row: Mapping[str, Any]) -> dict[str, Array]:
        """Checked arguments by row of a fit."""
        return self.numbers_by_row(X, by_row)

    def before_fit(self, y: Any, n_rows: int) -> tuple[Array, Likelihood, Array | None]:
        """Numbers for y (NaN if not given), the likelihood, and the labels that its draws point to.

        Labels are None if y holds numbers.
        """
        y = np.full(n_rows, np.nan) if y is None else self.likelihood.check_target(np.asarray(y))
        return y, self.likelihood, None

    def fingerprint(self, found: Fingerprint) -> Fingerprint:
        """The fingerprint without the sums that this target changes."""
        return found

    def data(self, rows: Rows) -> tuple[Array, Array, RowValues]:
        """X, the numbers of y, and what the rows bring besides, of encoded rows."""
        return rows.X, rows.y, replace(rows.values, y=None, weight=None)

    # ---- later calls --------------------------------------------------------------------------

    def numbers_by_row(self, X: Any, by_row: Mapping[str, Any]) -> dict[str, Array]:
        """Checked arguments by row that are given."""
        return {name: ROW_ARGUMENTS[name].check(v, X) for name, v in given(by_row).items()}

    @abstractmethod
    def numbers(self, y: Array) -> Array:
        """Observations as checked numbers for the likelihood."""

    def observed(self, X: Any, y: Array, numbers: Mapping[str, Array]) -> tuple[Array, RowValues]:
        """Numbers for the likelihood, and what these arguments by row bring."""
        return self.numbers(y).astype(float), values_brought(numbers)

    def decode(self, sample: Array) -> Array:
        """Observations in the user's form, from draws of the likelihood's numbers."""
        return sample

    def among_all(self, codes: Array) -> Array:
        """Codes among all classes, from codes among those in the model; other numbers unchanged."""
        return codes

    # ---- scores -------------------------------------------------------------------------------

    def are_rates(self, y: Array, weight: Array | None) -> bool:
        """Whether y holds rates: with their exposures as weights they are counts."""
        return False

    def scored(self, y: Array) -> Array:
        """Numbers of y for a score, ``(n,)`` or ``(n, n_outputs)``."""
        return y

    def shares(self, y: Array, size: Array) -> Array:
        """Observations on the scale of predictions, given what they were made over."""
        return y

    # ---- draws --------------------------------------------------------------------------------

    def parts(self, parts: dict[str, Array]) -> dict[str, Array]:
        """Draws, part by part, for predictions, from those of the model's parameters."""
        return parts

    def reported(self, parts: dict[str, Array]) -> dict[str, Array]:
        """Draws, part by part, as they are reported, for all classes."""
        return parts

    def own_coordinates(self, parts: dict[str, Array]) -> Array | None:
        """Coordinates ``(S, n_own)`` of the likelihood's own parameters; None without any."""
        own = [each for each in self.likelihood.own if each.name in parts]
        if own and len(own) == len(self.likelihood.own):
            return self.likelihood.unconstrain_own(np.column_stack([parts[o.name] for o in own]))
        # unequal noise is reported by its own coefficients
        columns = [each.transform.inverse(parts[each.name]) for each in own]
        return np.column_stack(columns) if columns else None

    def attributes(self, parts: dict[str, Array], names: list[str]) -> dict[str, Any]:
        """Fitted attributes, from the parts of one draw."""
        values = {name: parts[name][0] for name in ["coef", "intercept", *names]}
        own = {name: values[name] for name in names}
        own = {f"{name}_": each if np.ndim(each) else float(each) for name, each in own.items()}
        return {"coef_": values["coef"].copy(), "intercept_": values["intercept"].copy(), **own}


@dataclass(frozen=True, kw_only=True, eq=False)
class OfFamily(Target):
    """Target of a regression: its likelihood is known before its rows.

    Attributes
    ----------
    family : Likelihood
    """

    family: Likelihood

    @property
    def likelihood(self) -> Likelihood:
        """Distribution of an observation."""
        return self.family

    def attributes(self, parts: dict[str, Array], names: list[str]) -> dict[str, Any]:
        """Fitted attributes, from the parts of one draw; the only predictor has no axis."""
        found = super().attributes(parts, names)
        coef, intercept = found["coef_"][0], float(found["intercept_"][0])
        return found | {"coef_": coef, "intercept_": intercept}
