"""Coverage of intervals and label sets, overall and by thirds of the predicted mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

LEVELS = [0.9, 0.5]
GROUPS = "all", "low", "middle", "high"
_NEAR, _ERRORS = 0.05, 2.5  # an interval holds within so many points, or standard errors


class Judged(NamedTuple):
    """Predictions of rows beside what was observed.

    Attributes
    ----------
    centre : ndarray of shape (n,)
        Predicted mean; of labels the probability of the second of two, or of the likeliest.
    held : ndarray of shape (n, n_levels)
        Whether the interval, or the set of labels, holds the observation.
    expected : ndarray of shape (n, n_levels)
        Probability that it does by the model: the level, and more of whole numbers and labels.
    score : ndarray of shape (n,)
        Interval score of 90 %, or minus the log probability of a label; less is better.
    """

    centre: np.ndarray
    held: np.ndarray
    expected: np.ndarray
    score: np.ndarray


def of_intervals(y: np.ndarray, centre: np.ndarray, ends: np.ndarray, expected: Any) -> Judged:
    """Judged intervals ``(n, 2, n_levels)``; ``expected`` None: the levels."""
    low, high = ends[:, 0], ends[:, 1]
    held = (low <= y[:, None]) & (y[:, None] <= high)
    if expected is None:
        expected = np.broadcast_to(LEVELS, held.shape)
    outside = np.maximum(low[:, 0] - y, 0.0) + np.maximum(y - high[:, 0], 0.0)
    score = high[:, 0] - low[:, 0] + 2.0 / (1.0 - LEVELS[0]) * outside
    return Judged(centre, held.astype(float), expected, score)


def of_probabilities(y: np.ndarray, p: np.ndarray, classes: np.ndarray) -> Judged:
    """Judged sets of the likeliest labels of at least each level together."""
    codes = np.searchsorted(classes, y)
    order = np.argsort(-p, axis=1)
    total = np.cumsum(np.take_along_axis(p, order, axis=1), axis=1)
    rank = np.argmax(order == codes[:, None], axis=1)
    last = np.column_stack([np.argmax(total >= level - 1e-12, axis=1) for level in LEVELS])
    expected = np.take_along_axis(total, last, axis=1).clip(0.0, 1.0)
    score = -np.log(np.maximum(p[np.arange(len(codes)), codes], 1e-300))
    centre = p[:, 1] if p.shape[1] == 2 else p.max(axis=1)
    return Judged(centre, (rank[:, None] <= last).astype(float), expected, score)


def joined(parts: list[tuple[np.ndarray, Judged]]) -> Judged:
    """Judged rows of all folds, in the order of the rows."""
    order = np.argsort(np.concatenate([rows for rows, _ in parts]))
    columns = zip(*(judged for _, judged in parts), strict=True)
    return Judged(*(np.concatenate(each)[order] for each in columns))


def coverage(judged: Judged) -> dict[str, dict[str, list[float]]]:
    """By level and group: the share that is held, that is expected, and its standard error."""
    thirds = np.array_split(np.argsort(judged.centre, kind="stable"), 3)
    groups = dict(zip(GROUPS, [np.arange(len(judged.centre)), *thirds], strict=True))
    found: dict[str, dict[str, list[float]]] = {}
    for k, level in enumerate(LEVELS):
        of_level = found[f"{level:g}"] = {}
        for name, rows in groups.items():
            share, p = judged.held[rows, k].mean(), judged.expected[rows, k]
            error = np.sqrt(np.sum(p * (1.0 - p))) / len(rows)
            of_level[name] = [round(float(v), 5) for v in (share, p.mean(), error)]
    return found


def holds(share: float, expected: float, error: float) -> bool:
    """Whether a share is what is expected, within 5 points or 2.5 standard errors."""
    return abs(share - expected) <= max(_NEAR, _ERRORS * error)


def wrong(found: dict[str, dict[str, list[float]]]) -> list[str]:
    """Groups in which intervals do not hold: 90 and 50 % of all rows, 90 % in each third."""
    named = [("50 %", found["0.5"]["all"])]
    named += [(name, found["0.9"][name]) for name in GROUPS]
    return [name for name, cell in named if not holds(*cell)]
