"""Several outputs: a model for each column of y, fitted to the same rows, with noise of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch

from skbayes_sgld._random import as_random_state
from skbayes_sgld.blocks.source import kind_of
from skbayes_sgld.inference.choices import Choice, shown
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.posterior.statistics import shared_columns

Method = TypeVar("Method", bound=Callable[..., Any])

_STACKED = ("coef_", "intercept_", "noise_variance_", "noise_coef_", "noise_intercept_")


def has_outputs(y: Any) -> bool:
    """Whether y has a column for each output, one column included."""
    if kind_of(y).startswith("dask."):  # which as an array would be computed
        return False
    try:
        return np.asarray(y).ndim == 2
    except ValueError:  # lists of unequal lengths, which the validation refuses
        return False


def fit_outputs(estimator: Any, X: Any, y: Any, sample_weight: Any, by_row: dict[str, Any]) -> None:
    """Fit a copy of the estimator to each column of y, and set the attributes of all together."""
    shape = np.asarray(y).shape
    n_outputs = shape[1]
    if not n_outputs:
        raise ValueError(f"y has shape {shape}; give it a column at least.")
    columns = getattr(y, "columns", [f"y{k}" for k in range(n_outputs)])
    names = [str(name) for name in columns]
    last = vars(estimator).get("estimators_", [])
    warm = getattr(estimator, "warm_start", False) and len(last) == n_outputs
    models = [clone(estimator) for _ in names]  # new ones, so that an error leaves those of before
    for model, fitted in zip(models, last if warm else [], strict=False):
        vars(model).update(vars(fitted))
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
    draws = join_draws([model.posterior_ for model in models], names)
    for name in [name for name in vars(estimator) if name.endswith("_") and name[0] != "_"]:
        delattr(estimator, name)
    for name in ("n_features_in_", "feature_names_in_"):
        if name in vars(models[0]):
            setattr(estimator, name, getattr(models[0], name))
    for name in _STACKED:
        if name in vars(models[0]):
            setattr(estimator, name, np.array([getattr(model, name) for model in models]))
    estimator.estimators_, estimator.output_names_ = models, names
    estimator.posterior_ = draws


def split_columns(y: Any, n_outputs: int) -> list[Any]:
    """Columns of y, one an output; None for each where y is None."""
    if y is None:
        return [None] * n_outputs
    values = np.asarray(y)
    if values.ndim < 2 or values.shape[1] != n_outputs:
        raise ValueError(
            f"y has shape {values.shape}; the fit was of {n_outputs} outputs, so give "
            f"(n_samples, {n_outputs})."
        )
    return [values[:, k] for k in range(n_outputs)]


def join_draws(each: Sequence[PosteriorDraws], names: Sequence[str]) -> PosteriorDraws:
    """Draws of all outputs, whose names begin with the output's: ``coef[output, column]``."""
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


def by_output(axis: int, *, one_stream: bool = False) -> Callable[[Method], Method]:
    """Decorator of methods: with several outputs, results of the model of each, stacked.

    Parameters
    ----------
    axis : int
        Axis of the outputs in what the method returns.
    one_stream : bool, default=False
        Whether the outputs share one stream of random numbers, which makes their draws
        independent. A method that only chooses draws chooses the same for all outputs.
    """

    def decorate(method: Method) -> Method:
        parameters = signature(method)

        @wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            models = vars(self).get("estimators_")
            if models is None:
                return method(self, *args, **kwargs)
            bound = parameters.bind(self, *args, **kwargs)
            bound.apply_defaults()
            arguments = dict(bound.arguments)
            del arguments["self"]
            arguments |= arguments.pop("by_row", {})
            if one_stream:
                arguments["random_state"] = as_random_state(arguments["random_state"])
            y, results = arguments.get("y"), []
            for model, column in zip(models, split_columns(y, len(models)), strict=True):
                own = {} if y is None else {"y": column}
                results.append(getattr(model, method.__name__)(**arguments | own))
            return _stack(results, axis)

        return cast(Method, call)

    return decorate


def _stack(results: list[Any], axis: int) -> Any:
    """Results of the outputs' methods, arrays or several of them, stacked."""
    first = results[0]
    if isinstance(first, Bunch):
        return Bunch(**{name: _stack([part[name] for part in results], axis) for name in first})
    if isinstance(first, tuple):
        return tuple(_stack(list(part), axis) for part in zip(*results, strict=True))
    return np.stack(results, axis)
