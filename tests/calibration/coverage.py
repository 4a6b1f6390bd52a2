"""Coverage: do the intervals hold what they should as often as they say?

Over parameters drawn from the prior a credible interval covers exactly as often as its name says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_regressor

from .models import fitted, replicate

LEVELS = (0.5, 0.8, 0.9, 0.95)
FIRST = 100_000  # replications from here on: other data than those of the calibration


def covered(name: str, number: int, changes: dict[str, Any]) -> tuple[dict[str, np.ndarray], bool]:
    """Share of one data set's new rows that each interval covers, by level."""
    sample, estimator, warned = fitted(name, FIRST + number, changes)
    shares: dict[str, list[float]] = {}

    def add(what: str, interval: np.ndarray, value: np.ndarray) -> None:
        inside = (interval[:, 0] <= value) & (value <= interval[:, 1])
        shares.setdefault(what, []).append(inside.mean())

    for level in LEVELS:
        if is_regressor(estimator):
            if sample.y_new.dtype.kind == "f":  # intervals of counts hold more than they say
                interval = estimator.predict_interval(sample.X_new, level)
                add("new observation", interval, sample.y_new)
            interval = estimator.predict_interval(sample.X_new, level, kind="mean")
            add("regression function", interval, sample.mean_new)
        else:
            interval = estimator.predict_proba_interval(sample.X_new, level)[:, 1]
            add("probability", interval, sample.mean_new)
    return {what: np.array(values) for what, values in shares.items()}, warned


def cover(name: str, n_replications: int | None = None, **changes: Any) -> tuple[pd.DataFrame, int]:
    """Table of one model, a row an interval and a level, and how many fits warned.

    The rows of a data set depend on each other: the standard error is that of the mean of the
    data sets' shares. ``deviation`` is coverage minus nominal in standard errors.

    Parameters
    ----------
    name : str
        One of ``MODELS``.
    n_replications : int or None, default=None
        None: those of the model.
    **changes : dict
        Parameters of the estimator, to make it wrong on purpose.
    """
    results = replicate(covered, name, n_replications, changes)
    rows = []
    for what in results[0][0]:
        shares = np.array([found[what] for found, _ in results])
        error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
        for level, mean, se in zip(LEVELS, shares.mean(axis=0), error, strict=True):
            figures = {
                "nominal": level,
                "coverage": mean,
                "se": se,
                "deviation": (mean - level) / se,
            }
            rows.append({"model": name, "interval for": what, **figures})
    return pd.DataFrame(rows), sum(warned for _, warned in results)
