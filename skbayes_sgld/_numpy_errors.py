"""Decorator of public functions: NumPy's default error handling, and clearer TypeErrors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from skbayes_sgld._linalg import one_blas_thread

T = TypeVar("T", bound=Callable[..., Any])


def numpy_defaults(public: T) -> T:
    """Decorator of a public function, or of all public methods of a class.

    Inside, NumPy's defaults hold whatever the caller has set, and underflows are ignored. With
    ``np.errstate(all="raise")`` of the caller a fit would stop at the first density of 0.
    """
    if not isinstance(public, type):
        return _function(public)
    for name, member in list(vars(public).items()):
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(member, FunctionType):
            setattr(public, name, _function(member))
        elif isinstance(member, classmethod):
            setattr(public, name, classmethod(_function(member.__func__)))
    return public


def _function(function: Any) -> Any:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        errors, depth = np.geterr(), one_blas_thread().depth
        try:
            with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
                return function(*args, **kwargs)
        except TypeError as error:
            _explain(error, function, args, kwargs)
            raise
        except BaseException:
            # an interrupt may come just before these are restored
            np.seterr(**errors)
            one_blas_thread().leave(depth)
            raise

    return call


def _explain(error: TypeError, function: Any, args: Any, kwargs: Any) -> None:
    """Raise a TypeError that names the caller's class, if the arguments do not fit the method.

    Python's own error names the class that defines the method, which may be private.
    """
    expected, model = signature(function), args[0] if args else None
    is_method = next(iter(expected.parameters), "") == "self" and bool(args)
    is_estimator = is_method and hasattr(model, "_row_arguments")
    known = getattr(model, "_row_arguments", ())
    try:
        given = expected.bind(*args, **kwargs).arguments.get("by_row", {})
    except TypeError as mismatch:
        what = str(mismatch)
    else:
        unknown = [name for name in given if name not in known]
        if not (is_estimator and unknown):
            return
        what = f"got an unexpected keyword argument {unknown[0]!r}"
    of = f"{type(model).__name__}." if is_method else ""
    accepted = [name for name in arguments_of(function, model) if name not in ("self", "cls")]
    # no hint on arguments that other methods of this model take
    hints = {k: v for k, v in getattr(model, "_argument_hints", {}).items() if k not in known}
    hint = "".join(f"; {hints[name]}" for name in kwargs if name in hints)
    takes = ", ".join(accepted) or "no arguments"
    raise TypeError(f"{of}{function.__name__}() {what}; it takes {takes}{hint}.") from error


def arguments_of(function: Any, model: Any = None) -> list[str]:
    """Names of the arguments; those of the model, or of the method's own, for ``**by_row``."""
    model = getattr(function, "__self__", model)
    taken = getattr(model, "_row_arguments", ())
    names = signature(function).parameters
    return [each for name in names for each in (taken if name == "by_row" else [name])]
