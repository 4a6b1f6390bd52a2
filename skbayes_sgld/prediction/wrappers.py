"""Models inside pipelines, searches and transformed targets: the wrappers, taken off in layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._checks import naming
from skbayes_sgld._numpy_errors import arguments_of, numpy_defaults
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import names_behind, warn, with_names
from skbayes_sgld.prediction.far_rows import named
from skbayes_sgld.prediction.frames import Axis


@dataclass(frozen=True)
class Unwrapped:
    """The model inside the wrappers, the rows it sees, and the transformers of its target.

    Attributes
    ----------
    model : estimator
    X : array-like or None
        Rows as the model takes them.
    transformers : tuple of transformers
        Transformers of the target, the outermost first.
    """

    model: Any
    X: Any = None
    transformers: tuple[Any, ...] = ()

    def to_model(self, y: Any) -> Any:
        """Values of the target as the model sees them; unchanged if there are no transformers."""
        for transformer in self.transformers:
            y = _by_column(transformer.transform, y)
        return y

    def from_model(self, z: Array) -> Array:
        """Values of the model's target, in the units of the user's target."""
        with np.errstate(over="ignore"):  # for a row far out the inverse is infinite
            for transformer in reversed(self.transformers):
                z = _by_column(transformer.inverse_transform, z)
        return z

    def slope(self, z: Array, sd: Array) -> Array:
        """Absolute derivative of :meth:`from_model` at ``z``; ``sd`` is that of the prediction."""
        if not self.transformers:
            return np.ones(z.shape)
        step = 1e-5 * sd
        with np.errstate(invalid="ignore"):  # for a row far out both are infinite
            rise = self.from_model(z + step) - self.from_model(z - step)
        return np.abs(rise) / (2.0 * step)

    def quantiles(self, q: Array, **params: Any) -> Array:
        """Quantiles of the user's target ``(n, len(q))``."""
        of = self.model.predict_quantiles
        if not self.transformers:
            return of(self.X, q, **params)
        # the inverse must be monotone between the outer levels
        z = of(self.X, np.concatenate([q, (0.001, 0.999)]), **params)
        if self._is_decreasing(z, linear=params.get("kind") == "mean"):
            z = of(self.X, 1.0 - q, **params)
        values = self.from_model(z[..., : len(q)])
        if np.isnan(values).any():
            raise ValueError(
                f"the inverse of {self._transformation()} is not finite at a quantile of the "
                "prediction; choose a transformation whose inverse takes any number."
            )
        far = np.asarray(np.isinf(values).reshape(len(values), -1).any(axis=1))
        if far.any():
            warn(
                f"{named(far)} a quantile at which the inverse of the target's transformation is "
                "out of the range of floating point numbers: it is infinite there. The other rows "
                "are predicted as ever. Check the units of the columns of X.",
                UserWarning,
            )
        return values

    def _is_decreasing(self, z: Array, linear: bool) -> bool:
        """Whether the inverse decreases on the range of ``z``; raise if it is not monotone."""
        values = self.from_model(np.linspace(z.min(), z.max(), 1001))
        values = values[np.isfinite(values)]
        rises, falls = np.all(np.diff(values) >= 0), np.all(np.diff(values) <= 0)
        if not (rises or falls):
            raise ValueError(
                f"the inverse of {self._transformation()} is not monotone on the range of the "
                "predictions, so the ends of an interval cannot be mapped; sample_y still can."
            )
        if linear:
            chord = np.linspace(values[0], values[-1], len(values))
            if np.any(np.abs(values - chord) > 1e-9 * np.ptp(values)):  # more than rounding
                raise ValueError(
                    "kind='mean' needs a linear transformation of the target, and "
                    f"{self._transformation()} is not linear: the mean of y is not the inverse of "
                    "the mean of the transformed target."
                )
        return not rises

    def _transformation(self) -> str:
        return " of ".join(repr(transformer) for transformer in self.transformers)


def _by_column(function: Callable[[Array], Any], values: Array) -> Array:
    """Values of a transformer's method, which takes one column, in the shape of ``values``."""
    column = np.reshape(np.asarray(values, dtype=float), (-1, 1))
    return np.asarray(function(column)).reshape(np.shape(values))


@numpy_defaults
def unwrap(estimator: Any, X: Any = None) -> Unwrapped:
    """Take pipelines, searches and transformed targets off a fitted estimator."""
    if not hasattr(estimator, "fit"):
        raise TypeError(
            f"estimator is of type {type(estimator).__name__}; give a fitted estimator as the "
            "first argument, and X after it."
        )
    with naming("estimator"):
        check_is_fitted(estimator)
    model, transformers = estimator, tuple[Any, ...]()
    for outer, layer in layers(estimator):
        if layer.is_step and X is not None:
            X = _transformed(outer, X)
        if layer.transformer is not None:
            transformers = (*transformers, layer.transformer)
        model = layer.estimator
    return Unwrapped(model, X, transformers)


def _transformed(pipeline: Any, X: Any) -> Any:
    """Rows as the last step takes them.

    ``pipeline[:-1].transform`` would raise for a user's transformer that sets nothing in ``fit``.
    """
    for _, step in pipeline.steps[:-1]:
        if step is not None and step != "passthrough":
            X = step.transform(X)
    return X


@dataclass(frozen=True)
class Layer:
    """The estimator inside a wrapper.

    Attributes
    ----------
    estimator : estimator
        Fitted if the wrapper is.
    parameter : str or None
        Parameter of the wrapper that holds it; None for a search.
    is_step : bool
        Whether it is the last step of a pipeline.
    transformer : transformer or None
        Fitted transformer of its target.
    """

    estimator: Any
    parameter: str | None = None
    is_step: bool = False
    transformer: Any = None


def wrapped(outer: Any) -> Layer | None:
    """The estimator inside scikit-learn's wrapper; None if the estimator wraps nothing.

    The imports are here because they would double the time of importing the package.
    """
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.pipeline import Pipeline

    if isinstance(outer, Pipeline):
        return Layer(outer.steps[-1][1], outer.steps[-1][0], is_step=True)
    if isinstance(outer, BaseSearchCV):
        if not outer.refit:
            raise ValueError(
                f"{type(outer).__name__} has refit=False, so it keeps no fitted estimator; "
                "set refit=True."
            )
        return Layer(outer.best_estimator_)
    if isinstance(outer, TransformedTargetRegressor):
        inner, transformer = vars(outer).get("regressor_"), vars(outer).get("transformer_")
        return Layer(inner or outer.regressor, "regressor", transformer=transformer)
    if isinstance(outer, (FixedThresholdClassifier, TunedThresholdClassifierCV)):
        return Layer(getattr(outer, "estimator_", outer.estimator), "estimator")
    return Layer(outer.estimator) if isinstance(outer, FrozenEstimator) else None


def layers(estimator: Any) -> Iterator[tuple[Any, Layer]]:
    """Each wrapper, beginning with the outermost, and the estimator inside it."""
    while (layer := wrapped(estimator)) is not None:
        yield estimator, layer
        estimator = layer.estimator


def changes_columns(estimator: Any) -> bool:
    """Whether a step before the model may make other columns in ``fit`` than for later rows.

    That is so for a step that uses y, like TargetEncoder, or random numbers, like IterativeImputer.
    """
    steps = [
        step
        for outer, layer in layers(estimator)
        if layer.is_step and len(outer) > 1
        for step in outer[:-1].get_params().values()
    ]
    return any(
        getattr(step, "sample_posterior", False)
        or (hasattr(step, "__sklearn_tags__") and step.__sklearn_tags__().target_tags.required)
        for step in steps
    )


def rewrapped(estimator: Any, model: Any) -> Any:
    """Fitted pipelines and transformed targets around another model.

    It is used for the model of one output of several. Searches are left out.
    """
    layer = wrapped(estimator)
    if layer is None:
        return model
    inner = rewrapped(layer.estimator, model)
    if layer.is_step:
        return type(estimator)([*estimator.steps[:-1], (layer.parameter, inner)])
    if layer.transformer is None:
        return inner
    other = copy(estimator)
    other.regressor_ = inner
    return other


def column_names(estimator: Any) -> list[str] | None:
    """Names of the columns that the model inside the wrappers sees; None if it has no names."""
    model = unwrap(estimator).model
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        pipelines = [outer for outer, layer in layers(estimator) if layer.is_step]
        return names_behind(pipelines, model.n_features_in_)
    return [str(name) for name in names]


def parameter_namer(estimator: Any) -> Callable[[str], str]:
    """Function that gives a parameter of the model inside the wrappers its column's name."""
    names = column_names(estimator)
    if names is None or hasattr(unwrap(estimator).model, "feature_names_in_"):
        return str
    return lambda parameter: with_names(parameter, names)


_KINDS = {
    "posterior_": "draws of a posterior",
    "diagnose": "draws of a sampled posterior",
    "group_prior_": "a model with group_effects",
    "predict_proba": "a classifier",
    "predict_proba_interval": "a Bayesian classifier",
    "predict_proba_quantiles": "a Bayesian classifier",
    "sample_y": "a Bayesian estimator",
    "summary": "a Bayesian estimator",
    "log_predictive_density": "an estimator with predictive densities",
}


def unwrap_for(
    caller: str, member: str, estimator: Any, X: Any = None, params: Iterable[str] = ()
) -> Unwrapped:
    """Model inside the wrappers; raise, naming the caller, if the model lacks the member.

    ``params`` are names of arguments that the member must take.
    """
    unwrapped = unwrap(estimator, X)
    if not hasattr(unwrapped.model, member):
        each = getattr(unwrapped.model, "estimators_", [])
        by_output = isinstance(each, list) and bool(each) and all(hasattr(e, member) for e in each)
        raise TypeError(
            f"{caller} needs {_KINDS.get(member, 'a regressor with predictive distributions')}: "
            f"{type(unwrapped.model).__name__} has no {member}."
            + _instead(unwrapped.model, member)
            + " Call it for each of the models in its estimators_." * by_output
        )
    for name in params:
        accepted = [n for n in arguments_of(getattr(unwrapped.model, member)) if n != "X"]
        accepted += ["groups"] * bool(getattr(unwrapped.model, "_is_mixed", False))
        if name not in accepted:
            raise TypeError(
                f"{caller} has no argument {name!r} for {type(unwrapped.model).__name__}, whose "
                f"{member} takes {', '.join(accepted)}."
            )
    return unwrapped


def _instead(model: Any, member: str) -> str:
    """Sentence that names the method for intervals or quantiles of a classifier."""
    of_totals = "n_trials" in getattr(model, "_arguments_of_fit", ())
    of_proba = member.replace("predict_", "predict_proba_")
    if member in ("predict_interval", "predict_quantiles") and not of_totals:
        return f" Of probabilities of classes use {of_proba}." * hasattr(model, of_proba)
    if member not in ("predict_interval", "predict_quantiles"):
        return ""
    return (
        " For intervals of numbers of successes take quantiles of sample_y(..., "
        "n_trials=n_trials), or fit SGLDBetaBinomialRegressor, which has predict_interval."
    )


def components_of(model: Any) -> list[Axis]:
    """Axis of the classes or of several outputs in predictions; none for other models."""
    kind, names = components(model)
    return [] if kind is None else [(kind, names)]


def components(model: Any) -> tuple[str | None, list[Any]]:
    """Kind and names of the response's components: classes, outputs, or one without a name."""
    if hasattr(model, "classes_"):
        return "class", list(model.classes_)
    outputs = vars(model).get("output_names_")
    return (None, [None]) if outputs is None else ("output", list(outputs))
