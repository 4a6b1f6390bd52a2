"""Arguments of methods that have one number a row: exposures, trials, sizes of averages.

A method that takes such an argument is written once, with ``**row_data``. An estimator names the
argument in ``_row_argument``; its methods then have the argument in their signature and
documentation, where scikit-learn's metadata routing finds it. The documentation of ``fit`` and
``partial_fit`` also has what y holds, ``_target``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, isfunction, signature
from textwrap import fill, indent
from typing import Any

import numpy as np

from skbayes_sgld.estimators.validation import (
    Array,
    check_exposure,
    check_n_averaged,
    one_a_row,
    trials_of,
)
from skbayes_sgld.likelihoods import Binomial, as_totals

_REST = "row_data"  # name under which a method takes the argument
_Y = "        y : array-like of shape (n_samples,)\n"


@dataclass(frozen=True)
class RowArgument:
    """One argument.

    Attributes
    ----------
    check : callable
        Numbers as floats ``(n,)``, from the argument and the rows X; errors name the argument.
    offset : callable
        Known part of a local parameter, from these numbers; numbers of trials stay what they are.
    text, in_fit : str
        Documentation, of predictions and of ``fit``.
    """

    check: Callable[[Any, Any], Array]
    offset: Callable[[Array], Array]
    text: str
    in_fit: str


ROW_ARGUMENTS = {
    "exposure": RowArgument(
        check_exposure,
        np.log,
        """exposure : array-like of shape (n_samples,) or float, default=None
            Time, area or population of each row's count. None: 1, which makes a mean a rate,
            whatever ``fit`` saw (as in statsmodels). What compares y with predictions needs it
            where ``fit`` had it. scikit-learn's scorers by name, such as "r2", do not pass it, and
            compare counts with rates: use ``skbayes_sgld.metrics.get_scorer``.
""",
        """exposure : array-like of shape (n_samples,) or float, default=None
            Time, area or population over which each count was made; positive. The mean count is
            the exposure times the rate exp(X coef + intercept). None: 1 in every row.
            ``partial_fit`` has it in all calls or in none.
""",
    ),
    "n_trials": RowArgument(
        trials_of,
        np.asarray,
        """n_trials : array-like of shape (n_samples,) or int, default=None
            Trials of each row. None: 1, which makes a mean a share. What compares y with
            predictions needs it where ``fit`` had it. scikit-learn's scorers by name do not pass
            it, and compare successes with labels or shares: use
            ``skbayes_sgld.metrics.get_scorer``.
""",
        """n_trials : array-like of shape (n_samples,) or int, default=None
            Trials of each row, of which ``y`` were successes; rows of 0 trials are left out. None:
            y of a classifier holds labels. ``partial_fit`` has them in all calls or in none.
""",
    ),
    "n_averaged": RowArgument(
        check_n_averaged,
        lambda size: -np.log(size),
        """n_averaged : array-like of shape (n_samples,) or float, default=None
            Number of observations that each row's y is, or shall be, the mean of. None: 1, one
            observation, whatever ``fit`` saw. What compares y with predictions needs it where
            ``fit`` had it.
""",
        """n_averaged : array-like of shape (n_samples,) or float, default=None
            Number of observations that each row's y is the mean of; positive. A mean of k has the
            k-th part of the variance of one observation, whose noise is inferred
            (``var_weights`` of statsmodels). A ``sample_weight`` of k would count as k rows of the
            same y. None: 1 in every row. ``partial_fit`` has it in all calls or in none.
""",
    ),
}


def totals_of(X: Any, y: Array, n_trials: Any) -> Array:
    """Checked records of successes and trials."""
    if y.dtype.kind not in "biuf":
        raise TypeError(
            f"y has dtype {y.dtype}; with n_trials, y is the number of successes of each row."
        )
    totals = Binomial().check_target(as_totals(y, one_a_row(n_trials, "n_trials", X)))
    if not totals["trials"].any():
        raise ValueError("n_trials is 0 in every row; at least one row must have trials.")
    return totals


def totals_of_fit(
    X: Any, y: Array, weight: Array | None, n_trials: Any
) -> tuple[Array, Array | None]:
    """Totals and weights; rows without trials say nothing, and have the weight 0."""
    totals = totals_of(X, y, n_trials)
    none = totals["trials"] == 0
    if none.any():
        weight = np.where(none, 0.0, 1.0 if weight is None else weight)
    return totals, weight


def with_row_argument(cls: Any) -> None:
    """Give the methods of a class that are written with ``**row_data`` their own argument."""
    for name in dir(cls):
        method = getattr(cls, name)
        if name.startswith("_") or not isfunction(method):
            continue
        written = getattr(method, "_as_written", method)
        of = cls._row_argument, cls._target
        new = getattr(method, "_explicit_of", None) != of
        if new and _REST in signature(written).parameters:
            setattr(cls, name, _explicit(written, *of))


def _explicit(method: Any, argument: str, target: str) -> Any:
    """Method with the named argument in place of ``**row_data``, or without any if it is ""."""
    written = signature(method)
    parameters = [each for each in written.parameters.values() if each.name != _REST]
    if argument:
        at = sum(each.kind is not Parameter.KEYWORD_ONLY for each in parameters)
        own = Parameter(argument, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Any)
        parameters.insert(at, own)
    explicit = written.replace(parameters=parameters)

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return method(**explicit.bind(*args, **kwargs).arguments)

    fits = method.__name__ in ("fit", "partial_fit")
    head, returns, rest = (method.__doc__ or "").partition("\n        Returns\n")
    if fits:
        lines = indent(fill(target, 88), 12 * " ")
        head = head.replace(_Y, f"{_Y}{lines}\n" if target else _Y)
    if argument:
        known_as = ROW_ARGUMENTS[argument]
        head = f"{head.rstrip()}\n        {known_as.in_fit if fits else known_as.text}"
    call.__doc__ = f"{head}{returns}{rest}"
    call.__signature__ = explicit  # type: ignore[attr-defined]
    call._as_written = method  # type: ignore[attr-defined]
    call._explicit_of = argument, target  # type: ignore[attr-defined]
    return call
