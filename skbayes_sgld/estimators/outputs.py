"""A linear estimator whose y may have several columns: outputs with noise of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import Tags

from skbayes_sgld._components import as_random_state
from skbayes_sgld.estimators.base import Array, LinearEstimator
from skbayes_sgld.estimators.multi_output import fit_outputs, has_outputs, split_columns
from skbayes_sgld.inference import arviz


class IndependentOutputs(LinearEstimator):
    """A linear estimator of one output, or of several that are independent given X.

    Attributes
    ----------
    estimators_ : list of estimators
        Where y had a column for each output: the model of each.
    output_names_ : list of str
    """

    estimators_: list[Any]
    output_names_: list[str]

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: y may have several columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _fit(self, X: Any, y: Any, sample_weight: Any, stream: Any = None, **row_data: Any) -> Any:
        if not has_outputs(y):
            return super()._fit(X, y, sample_weight, stream, **row_data)
        if stream is not None:
            raise ValueError(
                f"y has shape {np.shape(y)}; partial_fit takes one output, y of shape "
                "(n_samples,). Use an estimator for each output."
            )
        fit_outputs(self, X, y, sample_weight)
        self._stream = None
        return self

    def _infer(self, X: Array, y: Array, weight: Array | None) -> None:
        super()._infer(X, y, weight)
        for name in ("estimators_", "output_names_"):
            self.__dict__.pop(name, None)

    def _groups(
        self,
        X: Any,
        y: Any,
        random_state: Any,
        wanted: Sequence[str],
        offset: Array | None = None,
    ) -> dict[str, Any]:
        models = vars(self).get("estimators_")
        if models is None:
            return super()._groups(X, y, random_state, wanted, offset)
        columns: list[Any] = [None] * len(models)
        if y is not None:
            columns = split_columns(y, len(models))
        stream = as_random_state(random_state)
        parts = [
            model._groups(X, column, stream, wanted)
            for model, column in zip(models, columns, strict=True)
        ]
        joined = arviz.join_outputs(parts, self.output_names_)
        return joined | {"posterior": self.posterior_.to_xarray()}
