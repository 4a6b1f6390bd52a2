"""NumPy's handling of floating point errors inside the package, whatever the caller has set."""

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

    Inside, NumPy's own defaults hold, and densities of far points underflow to 0. With the caller's
    ``np.errstate(all="raise")`` a fit would stop at the first of them.
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
            # an interrupt may have come just before these were restored
            np.seterr(**errors)
            one_blas_thread().leave(depth)
            raise

    return call


def _explain(error: TypeError, function: Any, args: Any, kwargs: Any) -> None:
    """Raise a TypeError that names the caller's class, if the arguments do not fit the method.

    Python's own error names the class that defines the method, which may be private.
    """
    expected = signature(function)
    try:
        expected.bind(*args, **kwargs)
    except TypeError as mismatch:
        names = list(expected.parameters)
        of = f"{type(args[0]).__name__}." if names and names[0] == "self" and args else ""
        accepted = ", ".join(name for name in names if name != "self") or "no arguments"
        model = args[0] if args else None
        # not that the argument is of the model's class, where another method takes it
        known = getattr(model, "_row_argument", None)
        hints = {k: v for k, v in getattr(model, "_argument_hints", {}).items() if k != known}
        hint = "".join(f"; {hints[name]}" for name in kwargs if name in hints)
        what = f"{of}{function.__name__}() {mismatch}; it takes {accepted}{hint}."
        raise TypeError(what) from error
