"""How NumPy treats floating point errors within the package, whatever the caller has set."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from skbayes_sgld._linalg import one_blas_thread

T = TypeVar("T", bound=Callable[..., Any])


def numpy_defaults(public: T) -> T:
    """Decorator of what users call: a function, or all public methods of a class.

    Within it are NumPy's own defaults, under which densities of far points underflow to 0: under
    the caller's ``np.errstate(all="raise")`` a fit would stop at the first of them.
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
        except BaseException:
            # an interrupt may have come where what was set was about to be taken back
            np.seterr(**errors)
            one_blas_thread().leave(depth)
            raise

    return call
