"""Names of the columns that a model sees behind the steps of pipelines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

_NUMBERED = re.compile(r"(\[(?:[^\],]*, )?)x(\d+)(?=[\],])")  # coef[x19], coef[label, x19]


def names_behind(pipelines: Iterable[Any], n_columns: int) -> list[str] | None:
    """Names of the columns that come out of pipelines, the outermost first.

    None if a step has no ``get_feature_names_out``, or if the number of names is not ``n_columns``.
    """
    names = None
    for pipeline in pipelines:
        if len(pipeline) > 1:
            try:
                names = pipeline[:-1].get_feature_names_out(names)
            except (AttributeError, TypeError, ValueError):
                return None
    if names is None or len(names) != n_columns:
        return None
    return [str(name) for name in names]


def is_numbered(text: str) -> bool:
    """Whether a text names a parameter by the number of its column."""
    return _NUMBERED.search(text) is not None


def with_names(text: str, names: Sequence[str]) -> str:
    """Text with the names of columns in place of their numbers, coef[age] for coef[x0]."""
    return _NUMBERED.sub(lambda found: found[1] + names[int(found[2])], text)
