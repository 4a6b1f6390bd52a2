r"""Rows of such high leverage that every batch reads them.

With :math:`H` the curvature of the log posterior at the mode and :math:`w_i` that of row i in its
predictor, the leverage of the row is

.. math:: h_i = w_i x_i^T H^{-1} x_i.

It is the row's share of the information on :math:`x_i^T \beta`: near 1 for the only row of a rare
category, or for an outlying row. Leverages sum to at most the number of parameters. A batch of B of
n rows reads such a row once in n / B steps, and multiplies its gradient by n / B. Control variates
do not help: the variance of the row's predictor is :math:`h_i / w_i`, far beyond the range of an
expansion of second order.

A row has a leverage in each of its predictors, and in the likelihood's own parameters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld._random import probe_generator
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

_MOST_NEXT = 1000  # largest number of ``next_rows``
# Leverage from which a row makes a wall. A label at 1,000 sds has 2.0 and 2.2 among 8,000 and
# 40,000 balanced labels, 7 and 20 if one in 500 is positive, a beta-binomial total 1.4. The only
# row of a category has 2 to 3 if its count is at most 3, which skews the posterior as much
_WALL = 1.25
_MOST_WALLS = 3  # of classes
_PROBES = 32  # random moves that estimate leverages without a matrix, to a quarter of each


class Split(NamedTuple):
    """Rows of a run, split into those that every batch reads and those that batches are drawn from.

    Attributes
    ----------
    posterior : BasePosterior
        Posterior whose rows batches are drawn from; it counts rows of high leverage as its prior.
    mode : Mode
        Mode, with the expansion of the rows that batches are drawn from.
    next_rows : ndarray of int
        Rows of that posterior with the next highest leverages; the measured noise includes them.
    """

    posterior: BasePosterior
    mode: Mode
    next_rows: Array = np.zeros(0, int)

    @property
    def phrase(self) -> str:
        """Phrase on the rows that every batch reads, for the reasons in the plan."""
        return phrase_of(self.posterior.n_always)


def phrase_of(n_always: int) -> str:
    """Phrase on the number of rows that every batch reads; empty if there are none."""
    rows = "a row" if n_always == 1 else f"{n_always:,} rows"
    verb = "is" if n_always == 1 else "are"
    return f"; besides, {rows} of high leverage {verb} in every batch" if n_always else ""


def bounds_to_try(posterior: BasePosterior) -> list[float]:
    """Bounds on leverages, the largest first; lower ones would read rows of usual leverage."""
    least = 5.0 * posterior.n_params / posterior.n_samples
    return sorted({max(bound, least) for bound in THRESHOLDS.leverages}, reverse=True)


def leverages_of(posterior: BasePosterior, mode: Mode) -> Array | None:
    """Leverages of the rows ``(n_products, n)``, 0 if usual; None if the model has none."""
    P = posterior.n_params
    units = np.eye(P) if P <= MAX_DENSE else probe_generator().standard_normal((_PROBES, P))
    moves = mode.metric.sqrt(units if P <= MAX_DENSE else units / np.sqrt(_PROBES))
    at = mode.theta if mode.expansion is None else mode.expansion
    return posterior.leverages(at, moves, bounds_to_try(posterior)[-1])


def read_always(
    posterior: BasePosterior, mode: Mode, leverages: Array | None, bound: float
) -> Split:
    """Posterior that reads all rows of leverage above ``bound`` in every batch.

    ``leverages`` are those of :func:`leverages_of`; None reads no row always.
    """
    if leverages is None or not leverages.any():
        return Split(posterior, mode)
    # rows whose leverage is not unusual are sampled: in a dispersion that is hardly known, all rows
    # have a high leverage
    usual = 5.0 * np.median(leverages, axis=1, keepdims=True)
    above = (leverages > np.maximum(bound, usual)).any(axis=0)
    if above.any():
        split = posterior.always_reading(np.flatnonzero(above))
        if mode.expansion is not None:
            mode = mode._replace(expansion=split.expansion(mode.expansion))
        posterior, leverages = split, leverages[:, ~above]
    total = leverages.sum(axis=0)
    near = np.flatnonzero(total)
    if len(near) > _MOST_NEXT:
        near = near[np.argpartition(-total[near], _MOST_NEXT)[:_MOST_NEXT]]
    return Split(posterior, mode, near)


def walls_of(posterior: BasePosterior, mode: Mode) -> Array:
    """Rows that bound the posterior on one side, if they are few enough for coordinates of each.

    The leverage of such a row is high within two sds of its predictors.
    """
    leverages = posterior.leverages(mode.theta, mode.metric.sqrt(np.eye(mode.theta.size)), _WALL)
    if leverages is None:
        return np.zeros(0, int)
    of_predictors = leverages[: posterior.facts.n_predictors]  # and not of own parameters
    rows = np.flatnonzero((of_predictors > _WALL).any(axis=0))
    most = _MOST_WALLS if posterior.facts.n_predictors > 1 else 1
    return rows[: len(rows) if len(rows) <= most else 0]
