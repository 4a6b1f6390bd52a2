"""Equal-tailed intervals, for one coverage or several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skbayes_sgld._checks import out_of_range
from skbayes_sgld._typing import Array
from skbayes_sgld.diagnostics import tails

# least level: sums over draws round at 1e-15, and a quantile at 1 - 1e-14 might be infinite
_FARTHEST = 1e-12


def check_levels(q: Any, argument: str = "q") -> Array:
    """Levels, or coverages, as an array; raise if there is none, or one is not inside (0, 1)."""
    try:
        levels = np.atleast_1d(np.asarray(q))
    except ValueError:  # from lists of different lengths
        levels = np.atleast_1d(np.asarray(q, dtype=object))
    if not levels.size:
        raise ValueError(f"{argument}={q!r} is empty; give a number in (0, 1), or several.")
    if levels.dtype.kind not in "fiu" or levels.ndim != 1:
        raise TypeError(f"{argument}={q!r} is not a number; give one in (0, 1), or several.")
    wrong = ~((levels > 0) & (levels < 1))
    if wrong.any():
        head = out_of_range(q, argument, wrong)
        raise ValueError(f"{head}; give a number in (0, 1), or several.")
    levels = levels.astype(float)
    wrong = np.minimum(levels, 1.0 - levels) < 0.99 * _FARTHEST  # 1 - 1e-12 is rounded
    if wrong.any():
        head = out_of_range(q, argument, wrong)
        raise ValueError(
            f"{head}; give a number in [{_FARTHEST:g}, 1 - {_FARTHEST:g}], or several."
        )
    return levels


def equal_tailed(quantiles: Callable[[Array], Array], coverage: Any) -> Array:
    """Intervals ``(..., 2)``, or ``(..., 2, n_coverages)`` for several coverages.

    ``quantiles`` is a function from levels to quantiles ``(..., n_levels)``.
    """
    coverages = check_levels(coverage, "coverage")
    values = quantiles(tails(coverages).ravel())
    intervals = values.reshape(*values.shape[:-1], 2, len(coverages))
    return intervals[..., 0] if np.ndim(coverage) == 0 else intervals
