"""Regressions as starting points of searches for further modes, under noise with heavy tails.

Such a log likelihood is not concave. Distant rows may be the tails of a wide noise, or outliers of
a narrow noise about the other rows: each may be a mode. The searches begin at

1. least squares, with light tails: every row counts;
2. least trimmed squares (Rousseeuw & Van Driessen 2006), started from least absolute deviations,
   with heavy tails: the closer half of the rows counts;
3. least trimmed squares of the rows far from that fit, if they are many: a second line.
"""

from __future__ import annotations

import numpy as np

from skbayes_sgld._typing import Array

_LIGHT, _HEAVY = np.log(30.0), np.log(1.5)  # log degrees of freedom
_RIDGE = 1e-6  # ridge penalty relative to a column's mean square, for copied columns
_SWEEPS = 8  # sweeps of reweighted least squares, which need not converge
_MAD = 1.4826  # sd of a normal distribution over its median absolute deviation
_FAR = 6.0  # distance, in scales, beyond which a row may belong to another line
_LINE = 0.15  # least share of the rows that makes another line


def value_at(total: float, values: Array, weight: Array | None) -> float:
    """Least value up to which values have this weight in total; 1 each if ``weight`` is None."""
    if weight is None:
        k = int(np.ceil(total)) - 1
        return float(np.partition(values, k)[k])
    order = np.argsort(values)
    k = int(np.searchsorted(np.cumsum(weight[order]), total))
    return float(values[order[min(k, len(order) - 1)]])


def median(values: Array, weight: Array | None) -> float:
    """Lower median of values, which counts a weight as repeated values."""
    return value_at(0.5 * (len(values) if weight is None else weight.sum()), values, weight)


def regressions(design: Array, y: Array, weight: Array | None) -> list[Array]:
    """Starting points: coefficients, log squared scale and log degrees of freedom ``(width + 2,)``.

    Empty with fewer than two rows per column of ``design (n, width)``, since half of the rows could
    then be fitted exactly.
    """
    if weight is not None:
        rows = weight > 0.0
        design, y, weight = design[rows], y[rows], weight[rows]
    width = design.shape[1]
    w = np.ones(len(y)) if weight is None else weight
    n = w.sum()  # a weight counts as repeated rows do
    if n < 2 * width + 2:
        return []
    size = w @ np.square(design)
    ridge = np.where(size > 0.0, _RIDGE * size, 1.0)  # a column of zeros has the coefficient 0

    def solve(w: Array) -> Array:
        gram = (design.T * w) @ design
        gram[np.diag_indices(width)] += ridge
        return np.linalg.solve(gram, design.T @ (w * y))

    def median_of(rows: Array, size: Array) -> float:
        of_rows = None if weight is None else weight[rows]
        return median(size[rows], of_rows)

    def trimmed(rows: Array) -> Array:
        """Least trimmed squares of some rows, started from least absolute deviations."""
        of_rows = w * rows
        residual = y - design @ solve(of_rows)
        for _ in range(_SWEEPS):
            size = np.abs(residual)
            # a floor on the sizes, without which a line would stay at the first rows that it meets
            floor = 0.1 * median_of(rows, size) + np.finfo(float).tiny
            residual = y - design @ solve(of_rows / np.maximum(size, floor) * floor)
        half = (int(of_rows.sum()) + width + 1) // 2
        for _ in range(_SWEEPS // 2):
            size = np.where(rows, np.abs(residual), np.inf)
            coef = solve(w * (size <= value_at(half, size, weight)))
            residual = y - design @ coef
        scale = _MAD * median_of(rows, np.abs(residual))
        return np.append(coef, [2.0 * np.log(scale), _HEAVY]) if scale > 0.0 else np.array([])

    every = np.ones(len(y), bool)
    coef = solve(w)
    variance = np.average(np.square(y - design @ coef), weights=w)
    starts = [np.append(coef, [np.log(variance), _LIGHT])] if variance > 0.0 else []
    core = trimmed(every)
    if not len(core):
        return starts
    starts.append(core)
    far = np.square(y - design @ core[:-2]) > _FAR**2 * np.exp(core[-2])
    if w @ far > max(_LINE * n, 2 * width + 2):
        starts += [line for line in [trimmed(far)] if len(line)]
    return starts
