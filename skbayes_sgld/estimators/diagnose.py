"""Diagnosis of a fit through wrappers, with the columns' names."""

from __future__ import annotations

from typing import Any

from skbayes_sgld._doors import Door
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.prediction.predicted_rows import split_columns
from skbayes_sgld.prediction.wrappers import parameter_namer, rewrapped, unwrap, unwrap_for

_CHECK_MODEL = Door("skbayes_sgld.criticism.report", "check_model")


@numpy_defaults
def diagnose(estimator: Any, X: Any = None, y: Any = None, **params: Any) -> Any:
    """Diagnosis of the draws, and also of the model if X and y are given.

    The first part of the report asks whether the sampler worked, the second whether the model fits
    the data. Columns have the names that the steps of a pipeline give them.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator of this package whose posterior was sampled, or a pipeline, a search, a
        transformed target, a ``MultiOutputRegressor`` or a ``MultiOutputClassifier`` around one.
    X : array-like of shape (n_samples, n_features) or None, default=None
        Rows of the fit, as the outermost wrapper takes them. None: the second part is left out. A
        network takes rows without y too, and its predictions are judged there.
    y : array-like of shape (n_samples,) or None, default=None
    **params : dict
        Further arguments of :func:`check_model`, such as ``exposure``, or ``remedies=False``.

    Returns
    -------
    diagnosis : Diagnosis
        R-hat, effective sample sizes and standard errors by parameter; the ratio of minibatch to
        injected noise; the bias of the step size, and at half of it; the Metropolis acceptance that
        the chain's own transitions would have had; the distance from the Laplace approximation;
        clipped steps and divergent chains; how far the prior is from the data; and the problems,
        each with its remedy. ``model_check`` is the second part. It shows itself as a report, and a
        script prints it. For a network it is a ``NetworkDiagnosis``, for several outputs a dict
        with one for each, by its name.

    Raises
    ------
    TypeError
        If the model's posterior was not sampled.
    ValueError
        If y is given without X, or X without y unless the model is a network; or if X and y are
        given for several outputs that a ``TransformedTargetRegressor`` transforms together.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.compose import TransformedTargetRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sgld import SGLDLinearRegression, diagnose
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), SGLDLinearRegression(random_state=0))
    >>> model = TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp)
    >>> diagnosis = diagnose(model.fit(X[["bmi", "bp"]], y))
    >>> diagnosis
    Did the sampler work? usable: no problem was found.
    ...
    >>> list(diagnosis.table.index)
    ['coef[bmi]', 'coef[bp]', 'intercept', 'noise_variance']
    """
    unwrapped = unwrap(estimator)
    names = _output_names(unwrapped.model, y)
    if names is None:
        unwrapped = unwrap_for("diagnose", "diagnose", estimator, X)
    result = vars(unwrapped.model).get("result_")
    is_network = result is not None and result.predictions is not None
    if (X is None) != (y is None) and not (is_network and y is None):
        raise ValueError("X and y must be given together, the rows of the fit; or neither.")
    if names is not None and y is not None and unwrapped.transformers:
        raise ValueError(
            "several outputs that are transformed together cannot be checked one at a time; call "
            "diagnose without X and y."
        )
    if names is not None:
        models, reports = unwrapped.model.estimators_, Reports()
        for name, one, column in zip(names, models, split_columns(y, len(models)), strict=True):
            reports[name] = diagnose(rewrapped(estimator, one), X, column, **params)
        return reports
    diagnosis = unwrapped.model._diagnosis(unwrapped.X).renamed(parameter_namer(estimator))
    check = None if y is None else _CHECK_MODEL.open()(estimator, X, y, **params)
    return diagnosis.with_model_check(check)


class Reports(dict[str, Any]):
    """Reports by the names of the outputs, shown one below the other."""

    def __repr__(self) -> str:
        """The reports, each under its output's name."""
        return "\n\n".join(f"{name}:\n{report}" for name, report in self.items())


def _output_names(model: Any, y: Any) -> list[str] | None:
    """Names of several outputs, each with its own estimator; None for other models."""
    from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor

    if isinstance(model, (MultiOutputRegressor, MultiOutputClassifier)):
        numbered = [f"y{k}" for k in range(len(model.estimators_))]
        return [str(name) for name in getattr(y, "columns", numbered)]
    names: list[str] | None = vars(model).get("output_names_")
    return names
