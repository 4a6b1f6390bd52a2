"""Arguments by row: numbers that each row has besides its columns, such as an exposure.

Each argument is one entry of :data:`ROW_ARGUMENTS`: its check, the values that it brings to its
rows, its documentation, and words for errors. An estimator lists the arguments that it takes in
``_row_arguments``, and its methods take ``**by_row``. The values travel in one record,
:class:`~skbayes_sgld.likelihoods.row_values.RowValues`, to the likelihood of a fit and of
predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from textwrap import fill
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import UNUSED

from skbayes_sgld.likelihoods.row_values import NO_VALUES, RowValues
from skbayes_sgld.rows.checks import (
    Array,
    check_exposure,
    check_n_averaged,
    trials_of,
)

# methods that scikit-learn routes metadata to
_ROUTED = (
    *("fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "decision_function"),
    "score",
)


@dataclass(frozen=True)
class RowArgument:
    """One argument by row.

    Attributes
    ----------
    check : callable
        Function of the argument and the rows X that returns an array whose first axis is that of
        the rows; errors name the argument.
    brings : callable
        Function from this array to the :class:`RowValues` that it brings to the rows.
    is_size : bool
        Whether the argument is what y is made over: a time, trials, observations. A row has one
        size at most. Scores weigh rows by it, and the fourth array of a block is one.
    fitted_to : str
        What a model with this argument was fitted to, for errors.
    elsewhere : str
        Estimators that take it, for errors of those that do not.
    documentation : str
        Paragraph of the notes of every estimator that takes it.
    """

    check: Callable[[Any, Any], Array]
    brings: Callable[[Array], RowValues]
    is_size: bool
    fitted_to: str
    elsewhere: str
    documentation: str


ROW_ARGUMENTS = {
    "exposure": RowArgument(
        check_exposure,
        lambda exposure: RowValues(offset=np.log(exposure)),
        is_size=True,
        fitted_to="counts with exposures",
        elsewhere="times, areas and populations are of counts, as of SGLDPoissonRegressor",
        documentation="``exposure``, an argument by row, is the time, area or population over "
        "which each count was made; positive. The mean count is the exposure times the rate "
        "exp(X coef + intercept). None in ``fit``: 1 in every row. None in predictions: 1, which "
        "makes a mean a rate, whatever ``fit`` saw (as in statsmodels).",
    ),
    "n_trials": RowArgument(
        trials_of,
        lambda n: RowValues(others={"trials": n}),
        is_size=True,
        fitted_to="totals of trials",
        elsewhere="totals of trials are of SGLDLogisticRegression and SGLDBetaBinomialRegressor",
        documentation="``n_trials``, an argument by row, is the number of trials of which ``y`` "
        "were successes; ``fit`` leaves rows of 0 trials out. None in ``fit``: y of a classifier "
        "holds labels. None in predictions: 1, which makes a mean a share.",
    ),
    "n_averaged": RowArgument(
        check_n_averaged,
        lambda size: RowValues(n_averaged=size),
        is_size=True,
        fitted_to="averages of several observations",
        elsewhere="means of several observations are of SGLDLinearRegression and "
        "SGLDGammaRegressor",
        documentation="``n_averaged``, an argument by row, is the number of observations that "
        "each row's y is, or shall be, the mean of; positive. A mean of k has the k-th part of "
        "the variance of one observation, whose noise is inferred (``var_weights`` of "
        "statsmodels). A ``sample_weight`` of k would count as k rows of the same y. None: 1, one "
        "observation, whatever ``fit`` saw.",
    ),
}
_OF_ALL = (
    "``fit`` and ``partial_fit`` take {0} by keyword, an array of shape (n_samples,) or one number "
    "for all rows, and so do the methods whose signature has ``**by_row``. ``partial_fit`` has it "
    "in all calls or in none. Methods that compare y with predictions need it where ``fit`` had "
    'it. scikit-learn\'s scorers by name, such as "r2", do not pass it: use '
    "``skbayes_sgld.metrics.get_scorer``."
)


def documentation(names: Iterable[str]) -> str:
    """Paragraphs of the notes of an estimator that takes these arguments."""
    parts = [ROW_ARGUMENTS[name].documentation for name in names]
    if parts:
        parts.append(_OF_ALL.format(" and ".join(f"``{name}``" for name in names)))
    return "\n\n".join(fill(part, 96, break_on_hyphens=False) for part in parts)


def metadata_requests(cls: type, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Class attributes that declare the arguments to scikit-learn, by name."""
    of_bases = (vars(base).get("_row_arguments", ()) for base in cls.__mro__[1:])
    known = {name: UNUSED for each in of_bases for name in each} | dict.fromkeys(names)
    return {
        f"__metadata_request__{method}": known
        for method in _ROUTED
        if hasattr(cls, method) and "by_row" in signature(getattr(cls, method)).parameters
    }


def given(by_row: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by row that are not None."""
    return {name: value for name, value in by_row.items() if value is not None}


def size_argument(names: Iterable[str]) -> str:
    """The argument by row that y is made over, or ""; raise if there are two."""
    found = [name for name in names if ROW_ARGUMENTS[name].is_size]
    if len(found) > 1:
        raise ValueError(
            f"{' and '.join(found)} do not go together: each changes what y is of a row; give "
            "one of them."
        )
    return found[0] if found else ""


def size_of(numbers: Mapping[str, Array]) -> Array | None:
    """Size that y is made over, among checked arguments by row; "" is that of a block."""
    sizes = (v for name, v in numbers.items() if not name or ROW_ARGUMENTS[name].is_size)
    return next(sizes, None)


def beside_size(by_row: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by row that are given and no size: scores are of rates, and of shares.

    "" is the size of a block.
    """
    return {n: each for n, each in given(by_row).items() if n and not ROW_ARGUMENTS[n].is_size}


def values_brought(numbers: Mapping[str, Array]) -> RowValues:
    """Values that checked arguments by row bring to their rows."""
    brought = NO_VALUES
    for name, each in numbers.items():
        brought = brought.beside(ROW_ARGUMENTS[name].brings(each))
    return brought


def check_names(estimator: Any, by_row: Mapping[str, Any]) -> None:
    """Raise if an argument by row is not one of the estimator's, or two do not go together.

    The decorator ``numpy_defaults`` of public methods adds the method's name and its arguments.
    """
    for name in by_row:
        if name not in estimator._row_arguments:
            raise TypeError(f"{type(estimator).__name__} takes no argument {name!r}.")
    size_argument(given(by_row))


def check_by_row_given(
    estimator: Any, by_row: Mapping[str, Any], call: str = "", in_search: bool = False
) -> None:
    """Raise if an argument by row that the fit had is missing.

    ``call`` is the function that compares y with predictions, as a user writes it, and
    ``in_search`` whether searches call it.
    """
    missing = [n for n in getattr(estimator, "_arguments_of_fit", ()) if by_row.get(n) is None]
    if not missing:
        return
    name = missing[0]
    search = (
        ", as a search does after sklearn.set_config(enable_metadata_routing=True) and "
        f"set_score_request({name}=True)"
    ) * in_search
    raise ValueError(
        f"{name} is None, and the model was fitted to {ROW_ARGUMENTS[name].fitted_to}; give {name} "
        f"of the rows: {f'{call}(..., {name}={name})' if call else f'{name}={name}'}{search}."
    )
