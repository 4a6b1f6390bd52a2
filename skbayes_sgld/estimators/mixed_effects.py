"""Effects of groups and curves of a linear model: its predictions and fitted attributes."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.utils import Bunch
from sklearn.utils.validation import _check_n_features

from skbayes_sgld._doors import Door
from skbayes_sgld.estimators.base import Array
from skbayes_sgld.estimators.linear import LinearEstimator
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.prediction.predictors import Predictor
from skbayes_sgld.rows.arrays import check_fitted_columns

_EFFECTS = Door("skbayes_sgld.mixed.report", "table_of_effects")
_GROUP_PRIORS = Door("skbayes_sgld.mixed.report", "priors_by_term")
_BY_TERM = Door("skbayes_sgld.mixed.report", "draws_by_term")
_WITHOUT_EFFECTS = Door("skbayes_sgld.mixed.report", "without_effects")


class MixedEffects(LinearEstimator):
    """A linear model that may have effects of groups and curves.

    Its parameters, ``group_effects``, ``group_prior`` and ``smooth_effects``, are those of
    ``SampledEstimator``, which derives from it.
    """

    group_effects: Any

    # ---- rows to predict, whose labels become codes -------------------------------------------

    def _rows_of(self, X: Any, by_row: dict[str, Any]) -> tuple[Array, RowValues]:
        groups = by_row.get("groups") if self._is_mixed else None
        if self._is_mixed:
            by_row = {name: value for name, value in by_row.items() if name != "groups"}
        return super()._rows_of(self._encoded(X, groups), by_row)

    def _observed(self, X: Any, y: Any, by_row: dict[str, Any]) -> tuple[Array, Array, RowValues]:
        return super()._observed(self._encoded(X), y, by_row)

    def _encoded(self, X: Any, groups: Any = None) -> Any:
        """Rows with codes in place of labels; ``groups`` may ask to leave effects of groups out."""
        columns = getattr(self._fitted, "mixed", None)
        if columns is None or getattr(X, "ndim", 2) != 2:
            return X
        check_fitted_columns(self, X)
        _check_n_features(self, X, reset=False)
        return columns.encoded(X, groups)

    def _predictor(self, selection: Any = slice(None)) -> Predictor:
        linear, columns = super()._predictor(selection), self._fitted.mixed
        return linear if columns is None else columns.predictor(linear, self._parts(selection))

    # ---- the fit, by term ---------------------------------------------------------------------

    @property
    def group_effects_(self) -> pd.DataFrame:
        """Effects of groups, one row for each: see the attributes of the class."""
        columns = self._mixed_columns("group_effects_")
        draws, frame = vars(self).get("_group_effects", (None, None))
        if draws is not self.posterior_:
            frame = _EFFECTS.open()(columns, self.posterior_)
            self._group_effects = self.posterior_, frame
        return frame

    @property
    def group_prior_(self) -> dict[str, Any]:
        """Prior of each term, with numbers as scales."""
        priors: dict[str, Any] = _GROUP_PRIORS.open()(self._mixed_columns("group_prior_"))
        return priors

    def _mixed_columns(self, name: str) -> Any:
        """Columns of the mixed model; an attribute of a model without groups is not there."""
        columns = getattr(self._fitted, "mixed", None)
        if columns is not None and self.group_effects is not None:
            return columns
        if self.group_effects is None:
            why = "it needs group_effects"
        elif self._fitted is None:
            why = "it is set by fit"
        else:
            why = "each of estimators_ has its own"
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}: {why}.")

    def _summarised(self) -> PosteriorDraws:
        draws = super()._summarised()
        if not self._is_mixed:
            return draws
        some: PosteriorDraws = _WITHOUT_EFFECTS.open()(draws)
        return some

    def _draws_at(self, selection: Array) -> Bunch:
        draws = super()._draws_at(selection)
        columns = self._fitted.mixed
        if columns is not None:
            draws.update(_BY_TERM.open()(columns, draws))
        return draws

    def __getstate__(self) -> dict[str, Any]:
        """State without the frame of effects."""
        state = super().__getstate__()
        state.pop("_group_effects", None)  # it is made again
        return state
