"""Uncertainty through pipelines, searches and transformed targets.

scikit-learn's wrappers forward only ``predict`` and ``predict_proba``. The functions here take the
wrappers off, layer by layer, and call the model inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, overload
from weakref import WeakValueDictionary

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._checks import naming
from skbayes_sgld._numpy_errors import arguments_of, numpy_defaults
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import names_behind, warn, with_names
from skbayes_sgld.prediction.far_rows import named
from skbayes_sgld.prediction.frames import ENDS, Axis, levels_of, shown
from skbayes_sgld.prediction.intervals import check_levels, equal_tailed


@dataclass(frozen=True)
class Unwrapped:
    """The model inside the wrappers, the rows it sees, and the transformers of its target.

    Attributes
    ----------
    model : estimator
    X : array-like or None
        Rows as the model takes them.
    transformers : tuple of transformers
        Of the target, the outermost first.
    """

    model: Any
    X: Any = None
    transformers: tuple[Any, ...] = ()

    def to_model(self, y: Any) -> Any:
        """Values of the target as the model sees them; the values as given without transformers."""
        for transformer in self.transformers:
            y = _by_column(transformer.transform, y)
        return y

    def from_model(self, z: Array) -> Array:
        """Values of the model's target, in the units of the user's target."""
        with np.errstate(over="ignore"):  # of a row far out the inverse is infinite
            for transformer in reversed(self.transformers):
                z = _by_column(transformer.inverse_transform, z)
        return z

    def slope(self, z: Array, sd: Array) -> Array:
        """Absolute derivative of :meth:`from_model` at ``z``, with predictions of sd ``sd``."""
        if not self.transformers:
            return np.ones(z.shape)
        step = 1e-5 * sd
        with np.errstate(invalid="ignore"):  # of a row far out both are infinite
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
        """Direction of the inverse on the range of ``z``; an error where it has none."""
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

    ``pipeline[:-1].transform`` would refuse a user's transformer that sets nothing in ``fit``.
    """
    for _, step in pipeline.steps[:-1]:
        if step is not None and step != "passthrough":
            X = step.transform(X)
    return X


def unless_random_walks(model: Any, score: float) -> float:
    """Score of the model, or nan, with a warning, if its chains are no better than random walks.

    Steps that are far too short keep chains near their starts. Starts around the mode predict as
    well as the mode, so a search by accuracy would choose them.
    """
    models = getattr(model, "estimators_", [model])
    results = [vars(one).get("result_") for one in models]
    if not any(result is not None and result.are_random_walks for result in results):
        return score
    warn(
        f"The score of {type(model).__name__} is nan: its chains are no better than random walks, "
        "so the draws are not a posterior; set step_size='auto', or a longer step.",
        ConvergenceWarning,
    )
    return float("nan")


_JUDGED: WeakValueDictionary[int, Any] = WeakValueDictionary()  # results, to judge each once


def warn_of_random_walks(model: Any) -> None:
    """Warn, once a fit, where predictions are those of chains that never left their starts.

    Scorers of scikit-learn by name see predictions alone, which are as good as those of the mode.
    """
    result = vars(model).get("result_")
    if result is None or _JUDGED.get(id(result)) is result:
        return
    _JUDGED[id(result)] = result
    if not result.are_random_walks:
        return
    warn(
        f"{type(model).__name__}: the chains are no better than random walks from their starts, so "
        "these predictions are not those of a posterior, however well they score; set "
        "step_size='auto', or a longer step.",
        ConvergenceWarning,
    )


@dataclass(frozen=True)
class Layer:
    """The estimator inside a wrapper.

    Attributes
    ----------
    estimator : estimator
        Fitted where the wrapper is.
    parameter : str or None
        Parameter of the wrapper that it is; None for a search, which found it.
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
    """The estimator inside scikit-learn's wrapper; None where the estimator wraps nothing.

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
    """Each wrapper, from the outermost on, and the estimator inside it."""
    while (layer := wrapped(estimator)) is not None:
        yield estimator, layer
        estimator = layer.estimator


def changes_columns(estimator: Any) -> bool:
    """Whether a step before the model may give other columns in ``fit`` than for the rows later.

    A step does that looks at y, as TargetEncoder, or that draws at random, as IterativeImputer.
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
    """Fitted pipelines and transformed targets around another model than theirs.

    The model is one output of several. Searches are left out.
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
    """Names of the columns that the model inside the wrappers sees; None where it has no names."""
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
    """Model inside the wrappers; raise, naming the caller, where the model lacks the member.

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
        if name not in accepted:
            raise TypeError(
                f"{caller} has no argument {name!r} for {type(unwrapped.model).__name__}, whose "
                f"{member} takes {', '.join(accepted)}."
            )
    return unwrapped


def _instead(model: Any, member: str) -> str:
    """Sentence on what has the intervals or quantiles of a classifier."""
    of_totals = getattr(model, "_by_row", "") == "n_trials"
    of_proba = member.replace("predict_", "predict_proba_")
    if member in ("predict_interval", "predict_quantiles") and not of_totals:
        return f" Of probabilities of classes use {of_proba}." * hasattr(model, of_proba)
    if member not in ("predict_interval", "predict_quantiles"):
        return ""
    return (
        " For intervals of numbers of successes take quantiles of sample_y(..., "
        "n_trials=n_trials), or fit SGLDBetaBinomialRegressor, which has predict_interval."
    )


@overload
def predict_quantiles(
    estimator: Any,
    X: Any,
    q: ArrayLike = ...,
    kind: str = ...,
    *,
    as_frame: Literal[False] = ...,
    **by_row: Any,
) -> Array: ...
@overload
def predict_quantiles(
    estimator: Any,
    X: Any,
    q: ArrayLike = ...,
    kind: str = ...,
    *,
    as_frame: Literal[True],
    **by_row: Any,
) -> Any: ...
@numpy_defaults
def predict_quantiles(
    estimator: Any,
    X: Any,
    q: ArrayLike = (0.05, 0.5, 0.95),
    kind: str = "predictive",
    *,
    as_frame: bool = False,
    **by_row: Any,
) -> Any:
    """Quantiles of the posterior predictive distribution, through wrappers.

    Parameters
    ----------
    estimator : estimator
        Fitted regressor of this package, or a ``Pipeline``, a search such as ``GridSearchCV``, a
        ``TransformedTargetRegressor`` or a ``FrozenEstimator`` around one, in any order.
    X : array-like of shape (n_samples, n_features)
        Rows as the outermost wrapper takes them.
    q : array-like of shape (n_quantiles,), default=(0.05, 0.5, 0.95)
        Levels in (0, 1).
    kind : {"predictive", "mean"}, default="predictive"
        Quantiles of a new observation, or of the regression function.
    as_frame : bool, default=False
        Return a frame with the index of X, whose columns are the levels.
    **by_row : dict
        Arguments by row that the model takes, such as ``exposure``.

    Returns
    -------
    quantiles : ndarray of shape (n_samples, n_quantiles), or (n_samples, n_outputs, n_quantiles)
        Or a frame.

    Raises
    ------
    ValueError
        Where the inverse of the target's transformation is not monotone, or not linear with
        ``kind="mean"``. A decreasing inverse swaps the levels.

    See Also
    --------
    predict_proba_quantiles : Quantiles of the probability of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.compose import TransformedTargetRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGLDLinearRegression, predict_quantiles
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SGLDLinearRegression(random_state=0)
    >>> model = TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp).fit(X, y)
    >>> print(predict_quantiles(model, X[:2], as_frame=True).round())
       0.05   0.50   0.95
    0  98.0  193.0  379.0
    1  36.0   71.0  140.0
    """
    levels = check_levels(q)
    unwrapped = unwrap_for("predict_quantiles", "predict_quantiles", estimator, X)
    values = unwrapped.quantiles(levels, kind=kind, **by_row)
    return shown(values, X, as_frame, [*components_of(unwrapped.model), *levels_of("q", levels)])


@overload
def predict_interval(
    estimator: Any,
    X: Any,
    coverage: ArrayLike = ...,
    kind: str = ...,
    *,
    as_frame: Literal[False] = ...,
    **by_row: Any,
) -> Array: ...
@overload
def predict_interval(
    estimator: Any,
    X: Any,
    coverage: ArrayLike = ...,
    kind: str = ...,
    *,
    as_frame: Literal[True],
    **by_row: Any,
) -> Any: ...
@numpy_defaults
def predict_interval(
    estimator: Any,
    X: Any,
    coverage: ArrayLike = 0.9,
    kind: str = "predictive",
    *,
    as_frame: bool = False,
    **by_row: Any,
) -> Any:
    """Equal-tailed predictive intervals, through wrappers.

    Parameters
    ----------
    estimator : estimator
        As in :func:`predict_quantiles`.
    X : array-like of shape (n_samples, n_features)
        Rows as the outermost wrapper takes them.
    coverage : float or array-like of shape (n_coverages,), default=0.9
        Probability of the interval, in (0, 1); or several.
    kind : {"predictive", "mean"}, default="predictive"
        Intervals of a new observation, or of the regression function.
    as_frame : bool, default=False
        Return a frame with the index of X and the columns ``lower`` and ``upper``.
    **by_row : dict
        Arguments by row that the model takes, such as ``exposure``.

    Returns
    -------
    interval : ndarray of shape (n_samples, 2) or (n_samples, 2, n_coverages)
        Lower and upper end; with the coverages last where several are given, and the outputs before
        the ends where y has several. Or a frame, of pandas unless
        ``sklearn.set_config(transform_output="polars")`` was called: with several coverages or
        outputs its columns are a MultiIndex, in the order of the array's axes.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sgld import SGLDLinearRegression, predict_interval
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), SGLDLinearRegression(random_state=0)).fit(X, y)
    >>> print(predict_interval(model, X[:1], coverage=[0.5, 0.9]).round())
    [[[169. 116.]
      [243. 296.]]]
    >>> print(predict_interval(model, X[:2], as_frame=True).round())
       lower  upper
    0  116.0  296.0
    1  -22.0  158.0
    """
    check_levels(coverage, "coverage")
    unwrapped = unwrap_for("predict_interval", "predict_interval", estimator, X)
    values = equal_tailed(lambda levels: unwrapped.quantiles(levels, kind=kind, **by_row), coverage)
    axes = [*components_of(unwrapped.model), ENDS, *levels_of("coverage", coverage)]
    return shown(values, X, as_frame, axes)


@overload
def predict_proba_quantiles(
    estimator: Any, X: Any, q: ArrayLike = ..., *, as_frame: Literal[False] = ..., **by_row: Any
) -> Array: ...
@overload
def predict_proba_quantiles(
    estimator: Any, X: Any, q: ArrayLike = ..., *, as_frame: Literal[True], **by_row: Any
) -> Any: ...
@numpy_defaults
def predict_proba_quantiles(
    estimator: Any,
    X: Any,
    q: ArrayLike = (0.05, 0.5, 0.95),
    *,
    as_frame: bool = False,
    **by_row: Any,
) -> Any:
    """Posterior quantiles of the probability of each class, through wrappers.

    Parameters
    ----------
    estimator : estimator
        As in :func:`predict_proba_interval`.
    X : array-like of shape (n_samples, n_features)
        Rows as the outermost wrapper takes them.
    q : array-like of shape (n_quantiles,), default=(0.05, 0.5, 0.95)
        Levels in (0, 1).
    as_frame : bool, default=False
        Return a frame with the index of X, whose columns are the classes and the levels.
    **by_row : dict
        Arguments by row that the model takes.

    Returns
    -------
    quantiles : ndarray of shape (n_samples, n_classes, n_quantiles)
        Or a frame.
    """
    levels = check_levels(q)
    unwrapped = unwrap_for("predict_proba_quantiles", "predict_proba_quantiles", estimator, X)
    values = unwrapped.model.predict_proba_quantiles(unwrapped.X, levels, **by_row)
    return shown(values, X, as_frame, [*components_of(unwrapped.model), *levels_of("q", levels)])


@overload
def predict_proba_interval(
    estimator: Any,
    X: Any,
    coverage: ArrayLike = ...,
    *,
    as_frame: Literal[False] = ...,
    **by_row: Any,
) -> Array: ...
@overload
def predict_proba_interval(
    estimator: Any, X: Any, coverage: ArrayLike = ..., *, as_frame: Literal[True], **by_row: Any
) -> Any: ...
@numpy_defaults
def predict_proba_interval(
    estimator: Any, X: Any, coverage: ArrayLike = 0.9, *, as_frame: bool = False, **by_row: Any
) -> Any:
    """Equal-tailed credible intervals of the probability of each class, through wrappers.

    Parameters
    ----------
    estimator : estimator
        Fitted classifier of this package, or a ``Pipeline``, a search, a classifier of a chosen
        threshold or a ``FrozenEstimator`` around one, in any order.
    X : array-like of shape (n_samples, n_features)
        Rows as the outermost wrapper takes them.
    coverage : float or array-like of shape (n_coverages,), default=0.9
        Posterior probability of the interval, in (0, 1); or several.
    as_frame : bool, default=False
        Return a frame with the index of X, whose columns are the classes and, of each, ``lower``
        and ``upper``.
    **by_row : dict
        Arguments by row that the model takes.

    Returns
    -------
    interval : ndarray of shape (n_samples, n_classes, 2) or (n_samples, n_classes, 2, n_coverages)
        Lower and upper end; with the coverages last where several are given. Or a frame.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skbayes_sgld import SGLDLogisticRegression, predict_proba_interval
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = SGLDLogisticRegression(random_state=0).fit(X, y)
    >>> print(predict_proba_interval(model, X[:1], as_frame=True).round(2))
    class     0           1           2
    end   lower upper lower upper lower upper
    0      0.95   1.0   0.0  0.05   0.0   0.0
    """
    unwrapped = unwrap_for("predict_proba_interval", "predict_proba_interval", estimator, X)
    values = unwrapped.model.predict_proba_interval(unwrapped.X, coverage, **by_row)
    axes = [*components_of(unwrapped.model), ENDS, *levels_of("coverage", coverage)]
    return shown(values, X, as_frame, axes)


@overload
def sample_y(
    estimator: Any,
    X: Any,
    n_samples: int = ...,
    random_state: Any = ...,
    *,
    as_frame: Literal[False] = ...,
    **by_row: Any,
) -> Array: ...
@overload
def sample_y(
    estimator: Any,
    X: Any,
    n_samples: int = ...,
    random_state: Any = ...,
    *,
    as_frame: Literal[True],
    **by_row: Any,
) -> Any: ...
@numpy_defaults
def sample_y(
    estimator: Any,
    X: Any,
    n_samples: int = 1,
    random_state: Any = 0,
    *,
    as_frame: bool = False,
    **by_row: Any,
) -> Any:
    """Draws from the posterior predictive distribution, through wrappers.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator of this package, or wrappers around one, as in :func:`predict_quantiles`
        and :func:`predict_proba_interval`. A target's transformation may have any inverse.
    X : array-like of shape (n_rows, n_features)
        Rows as the outermost wrapper takes them.
    n_samples : int, default=1
        Number of draws.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the draws.
    as_frame : bool, default=False
        Return a frame with the index of X, whose columns are the draws, counted from 0.
    **by_row : dict
        Arguments by row that the model takes, such as ``exposure``.

    Returns
    -------
    y : ndarray of shape (n_rows, n_samples) or (n_rows, n_outputs, n_samples)
        Or a frame.
    """
    unwrapped = unwrap_for("sample_y", "sample_y", estimator, X)
    values = unwrapped.from_model(
        unwrapped.model.sample_y(unwrapped.X, n_samples, random_state, **by_row)
    )
    outputs = [] if hasattr(unwrapped.model, "classes_") else components_of(unwrapped.model)
    return shown(values, X, as_frame, [*outputs, ("draw", range(n_samples))])


def components_of(model: Any) -> list[Axis]:
    """Axis of the classes or of several outputs of predictions; none of other models."""
    kind, names = components(model)
    return [] if kind is None else [(kind, names)]


def components(model: Any) -> tuple[str | None, list[Any]]:
    """Kind and names of the response's components: classes, outputs, or one without a name."""
    if hasattr(model, "classes_"):
        return "class", list(model.classes_)
    outputs = vars(model).get("output_names_")
    return (None, [None]) if outputs is None else ("output", list(outputs))


def summary(estimator: Any, coverage: float = 0.9, exponentiate: bool = False) -> pd.DataFrame:
    """Summary table of the posterior, through wrappers; columns have their names.

    ``model[-1].summary()`` of a pipeline numbers the columns ``x0``, ``x1``, ..., unless the
    pipeline's ``set_output(transform="pandas")`` was called. This table has the names that the
    steps before the model give by ``get_feature_names_out``.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator of this package, or wrappers around one, as in :func:`predict_quantiles`
        and :func:`predict_proba_interval`.
    coverage : float, default=0.9
        Probability of the equal-tailed credible interval, in (0, 1).
    exponentiate : bool, default=False
        Summarise exp(draws), as the model's own method does.

    Returns
    -------
    table : pandas.DataFrame
        One row a parameter, in the units of the columns and of the target that the model sees.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sgld import SGLDLinearRegression, summary
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), SGLDLinearRegression(random_state=0))
    >>> print(summary(model.fit(X[["bmi", "bp"]], y))[["mean", "sd"]].rename_axis(None).round(1))
                      mean     sd
    coef[bmi]         37.6    3.1
    coef[bp]          19.1    3.1
    intercept        152.1    2.9
    noise_variance  3623.0  244.9
    """
    model = unwrap_for("summary", "summary", estimator).model
    table: pd.DataFrame = model.summary(coverage, exponentiate)
    return table.rename(index=parameter_namer(estimator))
