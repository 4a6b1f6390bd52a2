"""Warnings that point at the user's own line."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import joblib
import sklearn

# the package, and what stands between it and its caller: pipelines, searches, callbacks
_PASSED = tuple(
    f"{Path(file).parent}{os.sep}" for file in (__file__, sklearn.__file__, joblib.__file__)
)


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the innermost line of the call stack that is the caller's own."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
