"""Several outputs: a model with its own noise for each column of y, fitted to the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch, Tags

from skbayes_sgld._checks import check_readable
from skbayes_sgld._random import as_random_state
from skbayes_sgld._typing import Array
from skbayes_sgld.estimators.fitted import Fitted
from skbayes_sgld.estimators.linear import LinearEstimator
from skbayes_sgld.inference.choices import Choice, shown
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.posterior.statistics import shared_columns
from skbayes_sgld.prediction.predicted_rows import PredictedRows, of_outputs, split_columns, stacked
from skbayes_sgld.rows.arguments import check_names
from skbayes_sgld.rows.arrays import has_outputs
from skbayes_sgld.rows.reading import read_rows

_STACKED = ("coef_", "intercept_", "noise_variance_", "noise_coef_", "noise_intercept_")


class SeveralOutputs(LinearEstimator):
    """A linear estimator that fits a copy of itself to each column of y, if y has columns.

    Methods of such a fit ask the copies, ``estimators_``, and stack their arrays.
    """

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: y may have several columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        by_row: dict[str, Any],
        read: Callable[..., Any] = read_rows,
    ) -> Self:
        if read is not read_rows or not has_outputs(y):
            return super()._fit(X, y, sample_weight, by_row, read)
        check_names(self, by_row)
        self._write(fit_outputs(self, X, y, sample_weight, by_row))
        return self

    def _models(self) -> list[Any]:
        """Model of each output; none if y had one column."""
        models: list[Any] = vars(self).get("estimators_", [])
        return models

    def _models_and_columns(self, y: Any) -> Iterator[tuple[Any, Any]]:
        """Each model, with its column of y; None if y is None."""
        return zip(self._models(), split_columns(y, len(self._models())), strict=True)

    def _predictions(
        self, X: Any, by_row: dict[str, Any], selection: Any = slice(None)
    ) -> PredictedRows:
        if not self._models():
            return super()._predictions(X, by_row, selection)
        return of_outputs(model._predictions(X, by_row, selection) for model in self._models())

    def _predictions_of_observed(self, X: Any, y: Any, by_row: dict[str, Any]) -> PredictedRows:
        if not self._models():
            return super()._predictions_of_observed(X, y, by_row)
        pairs = self._models_and_columns(y)
        return of_outputs(model._predictions_of_observed(X, own, by_row) for model, own in pairs)

    def _draws_at(self, selection: Array) -> Bunch:
        if not self._models():
            return super()._draws_at(selection)
        draws: Bunch = stacked(model._draws_at(selection) for model in self._models())
        return draws

    def _draw_prior(
        self, X: Any, n_samples: int, random_state: Any, y: Any, by_row: dict[str, Any]
    ) -> Array:
        if not self._models():
            return super()._draw_prior(X, n_samples, random_state, y, by_row)
        rng, pairs = as_random_state(random_state), self._models_and_columns(y)
        draws: Array = stacked(m._draw_prior(X, n_samples, rng, own, by_row) for m, own in pairs)
        return draws


def fit_outputs(
    estimator: Any, X: Any, y: Any, sample_weight: Any, by_row: dict[str, Any]
) -> Fitted:
    """Fit a copy of the estimator to each column of y: the attributes of all together."""
    check_readable(y, "y")
    shape = np.asarray(y).shape
    n_outputs = shape[1]
    if not n_outputs:
        raise ValueError(f"y has shape {shape}; give it a column at least.")
    columns = getattr(y, "columns", [f"y{k}" for k in range(n_outputs)])
    names = [str(name) for name in columns]
    last = vars(estimator).get("estimators_", [])
    warm = getattr(estimator, "warm_start", False) and len(last) == n_outputs
    # new ones, so that an error leaves the earlier ones as they are
    models = [clone(estimator) for _ in names]
    for model, earlier in zip(models, last if warm else [], strict=False):
        model._write(earlier._fitted)
    settings = estimator.get_params(deep=False)
    # one stream, so that the outputs' draws are independent of each other
    stream = as_random_state(estimator.random_state)
    with shared_columns():
        for name, model, column in zip(names, models, split_columns(y, n_outputs), strict=True):
            model.set_params(**settings | {"random_state": stream})
            try:
                model.fit(X, column, sample_weight, **by_row)
            except (TypeError, ValueError) as error:
                if str(error).startswith(("y ", "Input y ")):
                    error.args = (f"output {name}: {error}",)
                raise
            model.set_params(random_state=estimator.random_state)
    attributes: dict[str, Any] = {
        "posterior_": join_draws([model.posterior_ for model in models], names)
    }
    for name in ("n_features_in_", "feature_names_in_"):
        if name in vars(models[0]):
            attributes[name] = getattr(models[0], name)
    for name in _STACKED:
        if name in vars(models[0]):
            attributes[name] = np.array([getattr(model, name) for model in models])
    attributes |= {"estimators_": models, "output_names_": names}
    return Fitted(target=models[0]._fitted.target, rows=None, attributes=attributes)


def join_draws(each: Sequence[PosteriorDraws], names: Sequence[str]) -> PosteriorDraws:
    """Draws of all outputs; their names begin with the output's name: ``coef[output, column]``."""
    first = each[0]
    weights = [draws.weights for draws in each if draws.weights is not None]
    if any(not np.allclose(w, weights[0]) for w in weights):
        raise ValueError(
            "the draws of the outputs have unequal weights, since n_burnin or thin differ from "
            "output to output under a schedule that decays; give both as numbers."
        )
    joined, choices = [], {}
    for draws, output in zip(each, names, strict=True):
        for name in draws.names:
            variable, bracket, label = name.partition("[")
            joined.append(f"{variable}[{output}, {label}" if bracket else f"{variable}[{output}]")
    for name, choice in first.choices.items():
        values = [draws.choices[name].value for draws in each]
        shared = len(set(map(shown, values))) == 1
        choices[name] = choice if shared else Choice(values, "one an output: see estimators_")
    values_of_all = np.concatenate([draws.values for draws in each], axis=2)
    coords = {"output": list(names), **first.coords}
    return PosteriorDraws(values_of_all, joined, first.weights, choices, coords)
