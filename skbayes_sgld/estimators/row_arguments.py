"""Arguments of methods that have one number a row: exposures of counts, trials of totals.

A method that takes such an argument is written once, with ``**row_data``. An estimator names the
argument in ``_row_argument``; its methods then have the argument in their signature and
documentation, where scikit-learn's metadata routing finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, isfunction, signature
from typing import Any

import numpy as np

from skbayes_sgld.estimators.validation import Array, check_exposure, check_trials

_REST = "row_data"  # name under which a method takes the argument


@dataclass(frozen=True)
class RowArgument:
    """One argument.

    Attributes
    ----------
    check : callable
        Numbers as floats ``(n,)``, from the argument and the rows X; errors name the argument.
    offset : callable
        These as a predictive distribution takes them.
    text : str
        Documentation.
    """

    check: Callable[[Any, Any], Array]
    offset: Callable[[Array], Array]
    text: str


ROW_ARGUMENTS = {
    "exposure": RowArgument(
        check_exposure,
        np.log,
        """exposure : array-like of shape (n_samples,) or float, default=None
            Time, area or population of each row's count. None: 1, which makes a mean a rate,
            whatever ``fit`` saw (as in statsmodels).
""",
    ),
    "n_trials": RowArgument(
        check_trials,
        np.asarray,
        """n_trials : array-like of shape (n_samples,) or int, default=None
            Trials of each row, where ``fit`` had them. None: 1.
""",
    ),
}


def with_row_argument(cls: Any) -> None:
    """Give the methods of a class that are written with ``**row_data`` their own argument."""
    for name in dir(cls):
        method = getattr(cls, name)
        if name.startswith("_") or not isfunction(method):
            continue
        written = getattr(method, "_as_written", method)
        new = method is written or "_row_argument" in vars(cls)
        if new and _REST in signature(written).parameters:
            setattr(cls, name, _explicit(written, cls._row_argument))


def _explicit(method: Any, argument: str) -> Any:
    """Method with one further argument in place of ``**row_data``; none where the name is empty."""
    known = signature(method)
    taken = [each for each in known.parameters.values() if each.name != _REST]
    if argument:
        at = sum(each.kind is not Parameter.KEYWORD_ONLY for each in taken)
        own = Parameter(argument, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Any)
        taken.insert(at, own)
    explicit = known.replace(parameters=taken)

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return method(**explicit.bind(*args, **kwargs).arguments)

    if argument:
        head, returns, rest = (method.__doc__ or "").partition("\n        Returns\n")
        text = f"\n        {ROW_ARGUMENTS[argument].text}"
        call.__doc__ = f"{head.rstrip()}{text}{returns}{rest}"
    call.__signature__ = explicit  # type: ignore[attr-defined]
    call._as_written = method  # type: ignore[attr-defined]
    return call
