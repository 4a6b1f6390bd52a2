r"""Rows that decide: those whose leverage is so large that every batch reads them.

With :math:`H` the curvature of the log posterior at the mode and :math:`w_i` that of row i in its
predictor, the leverage of the row is

.. math:: h_i = w_i x_i^T H^{-1} x_i.

It is the row's share in what is known of :math:`x_i^T \beta`: near 1 for the one row of a rare
category, or for one far out. Leverages sum to at most the number of parameters. A batch of B of n
rows meets such a row once in n / B steps, with n / B times its gradient, and control variates do
not help: the row's predictor varies by :math:`h_i / w_i`, far beyond where an expansion of second
order holds.

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

_MOST_NEXT = 1000  # rows
_PROBES = 32  # random moves, where no matrix is formed: they give a leverage to a quarter of itself


class Reading(NamedTuple):
    """How the rows of a run are read.

    Attributes
    ----------
    posterior : BasePosterior
        Posterior that batches are drawn of: rows that decide are part of its prior.
    mode : Mode
        Mode, whose expansion is that of the rows that batches are drawn of.
    next_rows : ndarray of int
        Rows of that posterior whose leverage comes next: their noise is never left to a sample.
    """

    posterior: BasePosterior
    mode: Mode
    next_rows: Array = np.zeros(0, int)

    @property
    def told(self) -> str:
        """Words on the rows that are in every batch, for the reason of a choice."""
        m = self.posterior.n_always
        rows = "a row" if m == 1 else f"{m:,} rows"
        verb = "is" if m == 1 else "are"
        return f"; besides, {rows} of high leverage {verb} in every batch" if m else ""


def least_bound(posterior: BasePosterior) -> float:
    """Bound below which rows of a usual leverage would be always read, too."""
    return 5.0 * posterior.n_params / posterior.n_samples


def read_always(
    posterior: BasePosterior, mode: Mode, bound: float = THRESHOLDS.leverages[0]
) -> Reading:
    """Reading of a posterior in which rows of a leverage beyond the bound are in every batch."""
    P = posterior.n_params
    units = np.eye(P) if P <= MAX_DENSE else probe_generator().standard_normal((_PROBES, P))
    moves = mode.metric.sqrt(units if P <= MAX_DENSE else units / np.sqrt(_PROBES))
    bound = max(bound, least_bound(posterior))
    at = mode.theta if mode.expansion is None else mode.expansion
    leverages = posterior.leverages(at, moves, bound)
    if leverages is None:
        return Reading(posterior, mode)
    # rows of about the same leverage are sampled as well as any: all of them have a high one in a
    # dispersion that is hardly known
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
    return Reading(posterior, mode, near)
