"""Several outputs: a model with its own noise for each column of y, fitted to the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from skbayes_sgld._random import as_random_state
from skbayes_sgld.estimators.fitted import Fitted
from skbayes_sgld.inference.choices import Choice, shown
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.posterior.statistics import shared_columns
from skbayes_sgld.prediction.predictions import split_columns

_STACKED = ("coef_", "intercept_", "noise_variance_", "noise_coef_", "noise_intercept_")


def fit_outputs(
    estimator: Any, X: Any, y: Any, sample_weight: Any, by_row: dict[str, Any]
) -> Fitted:
    """Fit a copy of the estimator to each column of y: the attributes of all together."""
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
    return Fitted(target=models[0]._fitted.target, fingerprint=None, attributes=attributes)


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
