"""Predictions and the summary of a model inside pipelines, searches and transformed targets.

scikit-learn's wrappers forward only ``predict`` and ``predict_proba``. The functions here take the
wrappers off and call the method of the same name of the model inside. They return what the method
returns, which depends on the kind of rows, or a frame.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.prediction.frames import ENDS, levels_of, shown
from skbayes_sgld.prediction.intervals import check_levels, equal_tailed
from skbayes_sgld.prediction.wrappers import components_of, parameter_namer, unwrap_for


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
        If the inverse of the target's transformation is not monotone, or not linear with
        ``kind="mean"``. (A decreasing inverse is allowed: it swaps the levels.)

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
        Lower and upper end. Several coverages are the last axis, several outputs that before the
        ends. Or a frame, of pandas unless ``sklearn.set_config(transform_output="polars")`` was
        called: with several coverages or outputs its columns are a MultiIndex, in the order of
        the array's axes.

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
    if unwrapped.transformers:
        values = equal_tailed(
            lambda levels: unwrapped.quantiles(levels, kind=kind, **by_row), coverage
        )
    else:
        values = unwrapped.model.predict_interval(unwrapped.X, coverage, kind, **by_row)
    axes = [*components_of(unwrapped.model), ENDS, *levels_of("coverage", coverage)]
    return shown(values, X, as_frame, axes)


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
        Return a frame with the index of X, whose columns are the classes and, for each class,
        ``lower`` and ``upper``.
    **by_row : dict
        Arguments by row that the model takes.

    Returns
    -------
    interval : ndarray of shape (n_samples, n_classes, 2) or (n_samples, n_classes, 2, n_coverages)
        Lower and upper end; several coverages are the last axis. Or a frame.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skbayes_sgld import SGLDLogisticRegression, predict_proba_interval
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = SGLDLogisticRegression(random_state=0).fit(X, y)
    >>> print(predict_proba_interval(model, X[:1], as_frame=True).round(2))
    class     0           1           2
    end   lower upper lower upper lower upper
    0      0.96   1.0   0.0  0.04   0.0   0.0
    """
    unwrapped = unwrap_for("predict_proba_interval", "predict_proba_interval", estimator, X)
    values = unwrapped.model.predict_proba_interval(unwrapped.X, coverage, **by_row)
    axes = [*components_of(unwrapped.model), ENDS, *levels_of("coverage", coverage)]
    return shown(values, X, as_frame, axes)


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
        One row for each parameter, in the units of the columns and of the target that the model
        sees.

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
    coef[bmi]         37.5    3.1
    coef[bp]          19.2    3.1
    intercept        152.1    2.8
    noise_variance  3624.5  246.0
    """
    model = unwrap_for("summary", "summary", estimator).model
    table: pd.DataFrame = model.summary(coverage, exponentiate)
    return table.rename(index=parameter_namer(estimator))
